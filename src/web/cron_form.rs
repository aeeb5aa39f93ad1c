//! `/cron-form`: the form of a periodic job in Redis, empty or filled from one. Its path is beside `/cron/NAME`, as any
//! word may be a name.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::parts::{described, head, labelled, options, or_any, select};
use super::prelude::*;
use super::submit::{DraftError, JobDraft, JobForm, offered_types};
use crate::client::PeriodicJobHistoryDocument;
use crate::config::format_duration;
use crate::proto::cron::CalendarName;
use crate::rpc::Scope;

/// The fields of a periodic job beside the settings of its jobs: the name, the label and the hint.
const OWN: [(&str, &str, &str); 7] = [
    ("name", "Name", "Its jobs are cron-NAME-TIME; no file may have it"),
    (
        "schedule",
        "Schedule",
        "30 3 * * MON-FRI: minute, hour, day, month, day of the week; or @daily, or @every 90m",
    ),
    ("time_zone", "Time zone", "Such as Europe/Brussels; UTC without one"),
    ("catch_up", "Missed firings", "What no supervisor fired"),
    ("overlap", "Overlap", "While the job of the last firing has not ended"),
    ("spread", "Spread", "The longest delay, such as 10m; the name decides the delay"),
    ("calendar", "Calendar", "Nothing fires on its days"),
];
/// Its choices, the default first.
const CHOICES: [(&str, &[(&str, &str)]); 2] = [
    (
        "catch_up",
        &[("skip", "Drop them"), ("once", "Make up for the latest"), ("all", "Make up for all")],
    ),
    (
        "overlap",
        &[("skip", "Drop the firing"), ("allow", "Run both"), ("replace", "Stop the older job")],
    ),
];

#[derive(Debug, Default)]
struct CronDraft {
    /// The name of the periodic job that is changed; empty for a new one.
    of: String,
    own: BTreeMap<&'static str, String>,
    job: JobDraft,
}

impl CronDraft {
    fn of_fields(fields: &Fields) -> Self {
        let own = OWN.iter().map(|(name, ..)| (*name, fields.get(name).trim().to_owned()));
        let mut draft = Self {
            of: fields.get("of").to_owned(),
            own: own.collect(),
            job: JobDraft::of_fields(fields),
        };
        if !draft.of.is_empty() {
            draft.own.insert("name", draft.of.clone());
        }
        // The field of the form belongs to the periodic job.
        draft.job.remove("name");
        draft
    }

    fn of_document(document: PeriodicJobHistoryDocument) -> Self {
        let PeriodicJobHistoryDocument { job: of, mut settings, script, .. } = document;
        let spread = of.spread.map(|spread| format_duration(Duration::from_secs(spread.most_s)));
        let own = BTreeMap::from([
            ("name", of.name.clone()),
            ("schedule", of.schedule),
            ("time_zone", of.time_zone),
            ("catch_up", of.catch_up),
            ("overlap", of.overlap),
            ("spread", spread.unwrap_or_default()),
            ("calendar", of.calendar.unwrap_or_default()),
        ]);
        settings["script"] = script.into();
        settings["script_type"] = of.script_type.into();
        let mut job = JobDraft::of_settings(&settings);
        // The field of its jobs, which the form does not change.
        job.remove("name");
        Self { of: of.name, own, job }
    }

    fn text(&self, name: &str) -> &str {
        self.own.get(name).map(String::as_str).unwrap_or_default()
    }

    /// Returns the method that the form asks for, and its parameters. `before` are the settings that it has: one
    /// whose text was deleted is taken away.
    fn call(
        &self,
        before: Option<&CronDraft>,
        now: jiff::Timestamp,
    ) -> Result<(&'static str, Value), DraftError> {
        let mut job = self.job.members(now)?;
        if let Some(before) = before {
            let gone = before.job.fields().filter(|field| !job.contains_key(*field));
            let gone: Map<String, Value> =
                gone.map(|field| (field.to_owned(), Value::Null)).collect();
            job.extend(gone);
        }
        let mut params =
            json!({ "name": self.text("name"), "schedule": self.text("schedule"), "job": job });
        for name in ["time_zone", "catch_up", "overlap"] {
            if !self.text(name).is_empty() {
                params[name] = self.text(name).into();
            }
        }
        let spread = Some(self.text("spread")).filter(|text| !text.is_empty());
        if let Some(spread) = spread.or(before.map(|_| "0s")) {
            params["spread"] = spread.into();
        }
        if before.is_some() || !self.text("calendar").is_empty() {
            params["calendar"] = self.text("calendar").into();
        }
        Ok((if before.is_some() { "cron.edit" } else { "cron.add" }, params))
    }
}

#[derive(Deserialize)]
pub(super) struct CronQuery {
    /// The periodic job that is changed; empty for a new one.
    #[serde(default)]
    name: String,
}

pub(super) async fn show(visit: Visit, PageQuery(asked): PageQuery<CronQuery>) -> PageResult {
    visit.needs(Scope::Admin, "add or edit periodic jobs")?;
    let now = visit.snapshot().await?;
    let CronQuery { name } = asked;
    let draft = if name.is_empty() { CronDraft::default() } else { read(&visit, &name).await? };
    Ok(visit.page(&now, &page(&visit, &draft, &DraftError::default())))
}

pub(super) async fn change(visit: Visit, fields: Fields) -> PageResult {
    visit.needs(Scope::Admin, "add or edit periodic jobs")?;
    let draft = CronDraft::of_fields(&fields);
    let now = visit.snapshot().await?;
    let before = match draft.of.as_str() {
        "" => None,
        of => Some(read(&visit, of).await?),
    };
    let error = match draft.call(before.as_ref(), now.snapshot.at) {
        Err(error) => error,
        Ok((method, params)) => match visit.call(method, params).await {
            Ok(()) => {
                let name = draft.text("name");
                let done = if before.is_some() { "Changed" } else { "Added" };
                return Ok(visit.done(&page_of("cron", name), &format!("{done} {name}.")));
            }
            Err(error) => {
                let refused = DraftError::of(error, String::new())?;
                DraftError { field: field_of(&refused.message, draft.text("name")), ..refused }
            }
        },
    };
    Ok(visit.refused(&now, &page(&visit, &draft, &error)))
}

async fn read(visit: &Visit, name: &str) -> PageResult<CronDraft> {
    let asked = json!({ "name": name });
    let document: PeriodicJobHistoryDocument = visit.ask("cron.get", asked).await?;
    if document.job.added_by.is_none() {
        let file = document.job.file;
        let text =
            format!("{name} is in the file {file}: change that file, and reload the supervisor.");
        return Err(PageError::wrong(text));
    }
    if document.graph.is_some() {
        let text = format!(
            "{name} is a graph: hero cron edit {name} changes it, and --graph takes a new one."
        );
        return Err(PageError::wrong(text));
    }
    Ok(CronDraft::of_document(document))
}

/// Returns the field that a message begins with; empty if it names none of the form.
fn field_of(message: &str, name: &str) -> String {
    let own = format!("cron {name}: ");
    let rest = message.strip_prefix(&own).unwrap_or(message);
    let rest = rest.strip_prefix("invalid job: ").unwrap_or(rest);
    let is_about_name = message.starts_with("name of a periodic job")
        || message.starts_with(&format!("cron {name} exists"))
        || message.starts_with(&format!("cron {name} is in "));
    if is_about_name {
        return "name".to_owned();
    }
    let is_field = |word: &String| OWN.iter().any(|(own, ..)| own == word) || JobDraft::has(word);
    let before_colon = rest.split(':').next().unwrap_or_default().replace(' ', "_");
    let first = rest.split([':', ' ']).next().unwrap_or_default().to_owned();
    let words = [before_colon, first];
    let named = words.map(|word| if word == "type" { "script_type".to_owned() } else { word });
    named.into_iter().find(is_field).unwrap_or_default()
}

fn page(visit: &Visit, draft: &CronDraft, error: &DraftError) -> WebPage {
    let config = visit.site.config();
    let calendars: Vec<&str> = config.calendars.keys().map(CalendarName::as_str).collect();
    let types = offered_types(&config, visit);
    let links = visit.links();
    let (title, verb, back) = match draft.of.as_str() {
        "" => ("Add a periodic job", "Add", links.to("/cron")),
        name => ("Edit a periodic job", "Save", links.page("cron", name)),
    };
    let main = html! {
        p.crumb { a href=(links.to("/cron")) { "Periodic jobs" } }
        (head(title, &html! {}, &html! {}))
        form.form method="post" action=(links.to("/cron-form")) {
            (visit.forgery_field())
            input type="hidden" name="of" value=(draft.of);
            @if !error.message.is_empty() { (error.note("Nothing was changed.", &html! {})) }
            div.row { @for own in OWN { (own_input(draft, error, &calendars, own)) } }
            @if draft.of.is_empty() {
                p.dim { "A graph of several jobs: " code { "hero cron add NAME --schedule LINE --graph FILE" } }
            }
            (JobForm { draft: &draft.job, types: &types, error }.periodic_inputs())
            div.actions {
                button.main { (verb) }
                a href=(back) { "Cancel" }
            }
        }
    };
    WebPage::still(title, Nav::PeriodicJobs, main)
}

fn own_input(
    draft: &CronDraft,
    error: &DraftError,
    calendars: &[&str],
    (name, label, hint): (&str, &str, &str),
) -> Markup {
    let text = draft.text(name);
    let is_wrong = error.field == name;
    // The settings of its jobs have a field with the id of `name` nowhere.
    let id = format!("f-{name}");
    let described = described(&id, is_wrong);
    let choices = match name {
        "calendar" => Some(options(or_any("none", calendars.iter().copied()), text)),
        _ => CHOICES
            .iter()
            .find(|(of, _)| *of == name)
            .map(|(_, all)| options(all.iter().copied(), text)),
    };
    let input = html! {
        @if let Some(choices) = choices {
            (select(&id, name, &described, &choices))
        } @else {
            input #(id) name=(name) value=(text) autocomplete="off" spellcheck="false"
                required[matches!(name, "name" | "schedule")]
                readonly[name == "name" && !draft.of.is_empty()]
                aria-invalid=[is_wrong.then_some("true")] aria-describedby=(described) autofocus[is_wrong];
        }
    };
    labelled(&id, label, &input, &html! { (hint) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_of_the_api_belongs_to_its_field() {
        for (message, field) in [
            ("cron report: schedule: not a cron line: it has 1 field", "schedule"),
            ("cron report: time_zone: not a time zone of this machine", "time_zone"),
            ("cron report: invalid job: timeout: larger than the limit", "timeout"),
            ("cron report: type: `ruby` is not a configured script type", "script_type"),
            ("cron report: calendar: unknown calendar `x`", "calendar"),
            ("cron report exists already; hero cron edit report changes it", "name"),
            ("cron report is in /etc/hero/cron.d/a.toml: change that file, and reload", "name"),
            ("redis has 200 periodic jobs", ""),
        ] {
            assert_eq!(field_of(message, "report"), field, "{message}");
        }
    }
}
