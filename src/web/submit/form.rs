//! The form of a new job: its fields come from the one list of job options.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use jiff::Timestamp;
use maud::{Markup, html};
use serde_json::{Map, Value, json};

use super::super::doc::JobDoc;
use super::super::fields::Fields;
use super::super::parts::{described, labelled, select};
use super::super::web_error::capitalized;
use super::choice::{DraftError, OfferedType, choices, files};
use crate::config::{format_duration, parse_duration};
use crate::proto::job::{Entrance, FieldKind, SETTINGS, Setting, parse_timestamp};

/// The fields that stand above all others, besides the script.
const FIRST: [&str; 10] = [
    "name",
    "tags",
    "script_type",
    "group",
    "instance",
    "priority",
    "timeout",
    "retries",
    "run_at",
    "caller_id",
];
/// The tags stand on one line.
const TAGS: &str = "tags";
/// The number of those that stand above the script.
const ABOVE_SCRIPT: usize = 6;
/// Fields of a job that a copy of it does not have.
const NOT_COPIED: [&str; 2] = ["id", "unique_key"];

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::web) struct JobDraft(BTreeMap<&'static str, String>);

/// The settings that the form has and that are no options of the command line.
const BESIDE_OPTIONS: [&str; 3] = ["script", "args", "params"];

fn settings() -> impl Iterator<Item = &'static Setting> {
    SETTINGS.iter().filter(|setting| {
        BESIDE_OPTIONS.contains(&setting.field)
            || setting.absent_at(Entrance::CommandLine).is_none()
    })
}

impl JobDraft {
    /// Takes the texts of a form. A browser ends lines with two characters, a script with one.
    pub(in crate::web) fn of_fields(fields: &Fields) -> Self {
        let texts = settings()
            .map(|setting| (setting.field, fields.get(setting.field).replace("\r\n", "\n")));
        Self(texts.filter(|(_, text)| !text.is_empty()).collect())
    }

    pub(super) fn of_type(script_type: &str) -> Self {
        Self(BTreeMap::from([("script_type", script_type.to_owned())]))
    }

    /// Takes the settings of a job, without its id and its unique key.
    pub(super) fn of_job(job: &JobDoc) -> Self {
        let mut draft = Self::of_settings(&json!(job));
        // The time of the job that is copied has passed.
        for field in NOT_COPIED.iter().chain(&["run_at"]) {
            draft.remove(field);
        }
        draft
    }

    /// Takes settings, named as the fields of a job.
    pub(in crate::web) fn of_settings(job: &Value) -> Self {
        let texts = settings().filter_map(|setting| {
            let text = text_of(setting.kind, job.get(setting.field)?);
            let is_line = setting.field == TAGS;
            Some((setting.field, if is_line { text.replace('\n', " ") } else { text }))
        });
        Self(texts.filter(|(_, text)| !text.is_empty()).collect())
    }

    pub(in crate::web) fn remove(&mut self, field: &str) {
        self.0.remove(field);
    }

    /// Returns the fields that have a text.
    pub(in crate::web) fn fields(&self) -> impl Iterator<Item = &'static str> {
        self.0.keys().copied()
    }

    pub(in crate::web) fn has(field: &str) -> bool {
        settings().any(|setting| setting.field == field)
    }

    pub(super) fn text(&self, field: &str) -> &str {
        self.0.get(field).map(String::as_str).unwrap_or_default()
    }

    /// Returns the members of the job.
    ///
    /// # Errors
    /// [`DraftError`] for a text that is no value of its field.
    pub(in crate::web) fn members(&self, now: Timestamp) -> Result<Map<String, Value>, DraftError> {
        let mut members = Map::new();
        for setting in settings() {
            let text = self.text(setting.field);
            if text.trim().is_empty() {
                continue;
            }
            let value = value_of(setting, text, now)
                .map_err(|message| DraftError { field: setting.field.to_owned(), message })?;
            members.insert(setting.field.to_owned(), value);
        }
        Ok(members)
    }
}

/// Returns the text that a person writes for a value of JSON.
fn text_of(kind: FieldKind, value: &Value) -> String {
    match (kind, value) {
        (FieldKind::Duration, value) => {
            let seconds = value.as_f64().and_then(|s| Duration::try_from_secs_f64(s).ok());
            seconds.map(format_duration).unwrap_or_default()
        }
        (FieldKind::List | FieldKind::Texts, Value::Array(values)) => {
            let texts: Vec<&str> = values.iter().filter_map(Value::as_str).collect();
            texts.join(if kind == FieldKind::List { " " } else { "\n" })
        }
        (FieldKind::Map, Value::Object(values)) => {
            values.iter().fold(String::new(), |mut text, (name, value)| {
                let _ = writeln!(text, "{name}={}", value.as_str().unwrap_or_default());
                text
            })
        }
        (_, Value::String(text)) => text.clone(),
        (_, value) => value.to_string(),
    }
}

/// Returns the value of JSON that a text of the form means.
fn value_of(setting: &Setting, text: &str, now: Timestamp) -> Result<Value, String> {
    let trimmed = text.trim();
    let seconds = |text: &str| parse_duration(text).map_err(|error| error.to_string());
    match setting.kind {
        FieldKind::Text if setting.field == "script" => Ok(json!(text)),
        FieldKind::Text | FieldKind::Number | FieldKind::Flag => Ok(json!(trimmed)),
        FieldKind::Duration => Ok(json!(seconds(trimmed)?.as_secs_f64())),
        FieldKind::Time => {
            if let Some(time) = parse_timestamp(trimmed) {
                return Ok(json!(time.to_string()));
            }
            let wait = seconds(trimmed)
                .map_err(|_| "it is neither a wait such as 10m nor a time with its zone")?;
            let time = now.checked_add(wait).map_err(|_| "it is too far away")?;
            Ok(json!(time.to_string()))
        }
        FieldKind::List => {
            let ids = trimmed.split(|letter: char| letter == ',' || letter.is_whitespace());
            Ok(ids.filter(|id| !id.is_empty()).collect())
        }
        FieldKind::Texts if setting.field == TAGS => Ok(text.split_whitespace().collect()),
        FieldKind::Texts => Ok(text.lines().collect()),
        FieldKind::Object => serde_json::from_str(trimmed)
            .ok()
            .filter(Value::is_object)
            .ok_or_else(|| "it is not a JSON object".to_owned()),
        FieldKind::Map => {
            let mut map = Map::new();
            for line in text.lines().filter(|line| !line.trim().is_empty()) {
                let (name, value) = line
                    .split_once('=')
                    .ok_or_else(|| format!("the line `{line}` is not NAME=VALUE"))?;
                map.insert(name.trim().to_owned(), json!(value));
            }
            Ok(Value::Object(map))
        }
    }
}

/// The inputs of a form, with the reason why it was refused.
#[derive(Clone, Copy)]
pub(in crate::web) struct JobForm<'a> {
    pub(in crate::web) draft: &'a JobDraft,
    pub(in crate::web) types: &'a [OfferedType],
    pub(in crate::web) error: &'a DraftError,
}

impl JobForm<'_> {
    /// Returns the inputs of settings that few jobs need, folded up unless one is given or wrong.
    fn further(self, summary: &str, settings: &[&Setting]) -> Markup {
        let is_used = |field| field == self.error.field || !self.draft.text(field).is_empty();
        let is_open = settings.iter().any(|setting| is_used(setting.field));
        let (long, short): (Vec<&Setting>, Vec<&Setting>) =
            settings.iter().partition(|setting| example(setting.kind).is_some());
        html! {
            details open[is_open] {
                summary { (summary) }
                div.form {
                    div.row { @for setting in short { (self.input(setting)) } }
                    @for setting in long { (self.input(setting)) }
                }
            }
        }
    }

    pub(super) fn inputs(self, files_hint: &str) -> Markup {
        let others: Vec<&Setting> = settings()
            .filter(|setting| !FIRST.contains(&setting.field) && setting.field != "script")
            .collect();
        html! {
            (self.row(&FIRST[..ABOVE_SCRIPT]))
            (self.script())
            (files(self.error, files_hint))
            (self.row(&FIRST[ABOVE_SCRIPT..]))
            (self.further("More: waiting for others, keys, environment, keeping", &others))
        }
    }

    /// Returns the inputs of the settings that the jobs of a periodic job may have.
    pub(in crate::web) fn periodic_inputs(self) -> Markup {
        const ABOVE: [&str; 5] = ["script_type", "group", "timeout", "retries", "priority"];
        let is_own = |setting: &&Setting| {
            setting.absent_at(Entrance::PeriodicJob).is_none()
                && !["name", "script"].contains(&setting.field)
        };
        let others: Vec<&Setting> =
            settings().filter(is_own).filter(|setting| !ABOVE.contains(&setting.field)).collect();
        html! {
            (self.script())
            (self.row(&ABOVE))
            (self.further("More: who it is for, keys, environment, keeping", &others))
        }
    }

    fn row(self, fields: &[&str]) -> Markup {
        html! {
            div.row {
                @for setting in fields.iter().filter_map(|field| Setting::of_field(field)) {
                    (self.input(setting))
                }
            }
        }
    }

    fn script(self) -> Markup {
        let is_wrong = self.error.field == "script";
        html! {
            div.f-l {
                label for="f-script" { "Script" }
                textarea #f-script name="script" rows="14" spellcheck="false" autocapitalize="off" required
                    aria-invalid=[is_wrong.then_some("true")]
                    aria-describedby=[is_wrong.then_some("why")] autofocus[is_wrong]
                { "\n" (self.draft.text("script")) }
            }
        }
    }

    fn input(self, setting: &Setting) -> Markup {
        let (field, text) = (setting.field, self.draft.text(setting.field));
        let is_wrong = self.error.field == field;
        let id = format!("f-{field}");
        let described = described(&id, is_wrong);
        let invalid = is_wrong.then_some("true");
        if setting.kind == FieldKind::Flag {
            return html! {
                div.f-l {
                    label {
                        input type="checkbox" #(id) name=(field) value=(ticked(setting))
                            checked[text == ticked(setting) || text == "0"] aria-describedby=(described);
                        " " (label(setting))
                    }
                    small id={ (id) "-hint" } { (hint_of(setting)) }
                }
            };
        }
        let example = example(setting.kind).filter(|_| field != TAGS);
        let input = html! {
            @if let Some(options) = choices(setting, text, self.types) {
                (select(&id, field, &described, &options))
            } @else if example.is_some() {
                textarea #(id) name=(field) rows="3" placeholder=[example] spellcheck="false" aria-invalid=[invalid]
                    aria-describedby=(described) autofocus[is_wrong] { "\n" (text) }
            } @else {
                input #(id) name=(field) value=(text) placeholder=(placeholder(setting)) autocomplete="off"
                    inputmode=[(setting.kind == FieldKind::Number).then_some("numeric")] aria-invalid=[invalid]
                    aria-describedby=(described) autofocus[is_wrong];
            }
        };
        labelled(&id, &label(setting), &input, &html! { (hint_of(setting)) })
    }
}

/// Returns the value of a flag whose box is ticked.
fn ticked(setting: &Setting) -> &'static str {
    if setting.negated.is_empty() { "true" } else { "false" }
}

/// Returns the example of a setting that has several lines.
fn example(kind: FieldKind) -> Option<&'static str> {
    match kind {
        FieldKind::Map => Some("NAME=VALUE, one a line"),
        FieldKind::Texts => Some("one a line"),
        FieldKind::Object => Some("{\"name\": \"value\"}"),
        _ => None,
    }
}

/// Returns the label: the word that the command line has, as a word of a sentence.
fn label(setting: &Setting) -> String {
    if !setting.negated.is_empty() && setting.kind == FieldKind::Flag {
        return setting.negated.split(':').next().unwrap_or_default().to_owned();
    }
    capitalized(&setting.word.replace('_', " "))
}

fn placeholder(setting: &Setting) -> &'static str {
    match setting.kind {
        FieldKind::List => "job ids",
        FieldKind::Time => "now",
        _ if matches!(setting.field, "group" | "instance") => "any",
        FieldKind::Number => "0",
        _ => "",
    }
}

fn hint_of(setting: &Setting) -> String {
    match setting.field {
        "run_at" => "10m, or a time with its zone".to_owned(),
        TAGS => "Words for lists and searches, with spaces between them".to_owned(),
        // A choice says all.
        "priority" | "script_type" => String::new(),
        _ if !setting.negated.is_empty() => String::new(),
        _ => setting.doc.split_whitespace().collect::<Vec<_>>().join(" ").replace('`', ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-01-31T13:00:00Z".parse().expect("a time")
    }

    fn draft(texts: &[(&'static str, &str)]) -> JobDraft {
        JobDraft(texts.iter().map(|(field, text)| (*field, (*text).to_owned())).collect())
    }

    #[test]
    fn texts_become_the_members_of_a_job() {
        let given = draft(&[
            ("script", "\n  print(1)\n"),
            ("script_type", "python"),
            ("timeout", "10m"),
            ("retries", " 3 "),
            ("run_at", "1h"),
            ("prerequisites", "a, b\nc"),
            ("tags", " x y=1 "),
            ("env_vars", "A=1\n\nB=x=y\n"),
            ("concurrent", "false"),
        ]);
        let members = Value::Object(given.members(now()).expect("a job"));
        assert_eq!(
            members,
            json!({
                "script": "\n  print(1)\n", "script_type": "python", "timeout": 600.0, "retries": "3",
                "run_at": "2026-01-31T14:00:00Z", "prerequisites": ["a", "b", "c"], "tags": ["x", "y=1"],
                "env_vars": { "A": "1", "B": "x=y" }, "concurrent": "false",
            })
        );
    }

    #[test]
    fn text_that_is_no_value_is_refused_at_its_field() {
        for (field, text) in [("timeout", "soon"), ("run_at", "noon"), ("env_vars", "A")] {
            let error = draft(&[(field, text)]).members(now()).expect_err(text);
            assert_eq!(error.field, field);
        }
    }

    #[test]
    fn copy_of_a_job_has_all_but_its_id_its_key_and_its_time() {
        let job = JobDoc::from(json!({
            "id": "a", "unique_key": "k", "run_at": "2026-01-01T00:00:00Z", "script": "1\n",
            "script_type": "osis", "timeout": 90, "priority": 2, "prerequisites": ["x", "y"],
            "env_vars": { "A": "1" }, "concurrent": false, "status": "error",
        }));
        let copy = JobDraft::of_job(&job);
        assert_eq!((copy.text("id"), copy.text("unique_key"), copy.text("run_at")), ("", "", ""));
        assert_eq!((copy.text("script"), copy.text("prerequisites")), ("1\n", "x y"));
        let members = copy.members(now()).expect("a job");
        assert_eq!((&members["timeout"], &members["concurrent"]), (&json!(90.0), &json!("false")));
        assert_eq!(
            (&members["priority"], &members["env_vars"]),
            (&json!("2"), &json!({ "A": "1" }))
        );
    }

    #[test]
    fn refused_form_is_filled_and_its_texts_are_escaped() {
        let hostile = "\"><script>alert(1)</script></textarea>";
        let all: Vec<(&'static str, &str)> =
            settings().map(|setting| (setting.field, hostile)).collect();
        let error = DraftError { field: "timeout".to_owned(), message: String::new() };
        let types = [OfferedType { name: "osis".to_owned(), label: "osis".to_owned() }];
        let form = JobForm { draft: &draft(&all), types: &types, error: &error };
        let text = form.inputs("").into_string();
        assert!(!text.contains("<script>"), "{text}");
        assert_eq!(text.matches("aria-invalid").count(), 1, "{text}");
        for setting in settings() {
            assert!(text.contains(&format!("name=\"{}\"", setting.field)), "{}", setting.field);
        }
    }
}
