//! `hero events`: prints and follows the event log, the transitions of jobs.

use clap::Args;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::answer::NoResults;
use super::time::{PastZone, local, local_zone};
use super::{Global, output};
use crate::client::{Client, ClientError};
use crate::error::{Error, Exit};
use crate::proto::text::escape;
use crate::store::JobEvent;

/// Print the transitions of jobs from one state to another
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hero events -f --type osis\n  \
                        hero events --since 10m --job 7f9c2ba4\n\n\
                        They are recorded with job.events = true in the configuration, about the \
                        latest 100000. With --json and -f, one document per line.")]
pub(super) struct EventsCommand {
    /// Follow new events, from now on or from the time of --since
    #[arg(short, long)]
    follow: bool,
    /// Only events since then: 10m (ago), 09:00, yesterday 18:00, 2026-12-24 18:00, or RFC 3339
    #[arg(long, value_name = "DURATION|TIME")]
    since: Option<String>,
    #[command(flatten)]
    zone: PastZone,
    /// Only jobs of this script type
    #[arg(short = 't', long = "type", value_name = "TYPE")]
    script_type: Option<String>,
    /// Only this job: its id, or the unique beginning of it, of 4 characters or more
    #[arg(long, value_name = "ID")]
    job: Option<String>,
}

impl EventsCommand {
    const PAGE: usize = 1000;

    pub(super) async fn run(mut self, global: &Global) -> Result<(), Error> {
        let config = global.config()?;
        let client = global.client()?;
        let mut unknown = None;
        if let Some(job) = &mut self.job {
            let id = client.jobs().id(job).await?;
            *job = id.to_string();
            unknown = client.get_job_status(&id).await.err();
        }
        if !config.job.events {
            output::note(
                "hero: job.events is false in this configuration: no new events are recorded",
            );
        }
        match unknown {
            Some(error) if self.follow => Err(error.into()),
            None if self.follow => self.follow(&client, global).await,
            // Its events may be kept longer than a job.
            unknown => self.list(&client, global, unknown).await,
        }
    }

    async fn list(
        &self,
        client: &Client,
        global: &Global,
        mut unknown: Option<ClientError>,
    ) -> Result<(), Error> {
        let mut after = match &self.since {
            Some(since) => Some(self.zone.place(since, client.system().now().await?)?),
            None => None,
        };
        let (mut document, zone): (Vec<Value>, _) = (Vec::new(), local_zone());
        let mut has_events = false;
        loop {
            let events = client.events().list(after.as_deref(), Self::PAGE).await?;
            for event in events.iter().filter(|event| self.wants(event)) {
                (unknown, has_events) = (None, true);
                if global.json {
                    document.push(json_of(event));
                } else {
                    output::line(&readable(event, &zone))?;
                }
            }
            match events.last() {
                Some(last) if events.len() == Self::PAGE => after = Some(last.place.clone()),
                _ => break,
            }
        }
        if let Some(error) = unknown {
            return Err(error.into());
        }
        if global.json {
            return output::json(&json!({ "events": document }));
        }
        NoResults::new("recorded event")
            .by("of job", self.job.as_ref())
            .by("of type", self.script_type.as_ref())
            .by("since", self.since.as_ref())
            .report(global, !has_events);
        Ok(())
    }

    async fn follow(&self, client: &Client, global: &Global) -> Result<(), Error> {
        let now = client.system().now().await?;
        let from = self.zone.read_given("--since", self.since.as_ref(), now)?;
        let (mut events, zone) = (client.events().follow(from.unwrap_or(now)), local_zone());
        loop {
            let next = events.next().await.map_err(|error| {
                Error::new(Exit::Unavailable, format!("cannot follow events: {error}"))
            })?;
            for event in next.iter().filter(|event| self.wants(event)) {
                global.print(|| json_of(event), || format!("{}\n", readable(event, &zone)))?;
            }
        }
    }

    fn wants(&self, event: &JobEvent) -> bool {
        self.script_type.as_ref().is_none_or(|only| *only == event.script_type)
            && self.job.as_ref().is_none_or(|only| *only == event.id)
    }
}

fn json_of(event: &JobEvent) -> Value {
    let mut document = json!(event);
    document["at"] = json!(event.time().map(|time| format!("{time:.3}")));
    document
}

/// Formats an event as one line, `TIME ID TYPE FROM → TO ACTOR`, with control characters escaped.
fn readable(event: &JobEvent, zone: &TimeZone) -> String {
    let time = event.time().map(|time| local(time, zone).replacen(' ', "T", 1)).unwrap_or_default();
    let or_dash = |text: &str| if text.is_empty() { "-".to_owned() } else { escape(text) };
    let JobEvent { id, script_type, from, to, actor, .. } = event;
    let [id, script_type, from, to] = [id, script_type, from, to].map(|text| or_dash(text));
    format!("{time} {id} {script_type} {from} → {to} {}", or_dash(actor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_is_one_line_without_control_characters() {
        let event = JobEvent {
            place: "1767225600000-3".to_owned(),
            id: "a\u{1b}[2J".to_owned(),
            script_type: "osis".to_owned(),
            from: String::new(),
            to: "dispatched".to_owned(),
            actor: String::new(),
        };
        let line = "2026-01-01T00:00:00.000Z a\\u{1b}[2J osis - → dispatched -";
        assert_eq!(readable(&event, &TimeZone::UTC), line);
        let document = json_of(&event);
        assert_eq!(
            (&document["at"], &document["type"]),
            (&json!("2026-01-01T00:00:00.000Z"), &json!("osis"))
        );
    }
}
