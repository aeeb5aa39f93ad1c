//! A job as the methods of the API return it: one JSON object. Lists have numbers as text, a whole job has them
//! as numbers; both read alike here.

use std::time::Duration;

use jiff::Timestamp;
use maud::{Markup, html};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::links::SiteLinks;
use super::parts::{ShownState, elapsed, short_id};
use crate::proto::error_kind::FailureCause;
use crate::proto::job::JobStatus;
use crate::rpc::results::JobDocument;
use crate::store::JobSummary;
use crate::view::job_csv;

/// The fields that the page adds to a job: the jobs that it waits for, their number, and the job whose failure ended it.
pub(super) const AWAITED: &str = "awaited_jobs";
pub(super) const AWAITED_NUMBER: &str = "waits_for_number";
pub(super) const FAILED: &str = "failed_prerequisite";
/// The outcome of a job of a graph, which a deleted job has instead of a state.
pub(super) const OUTCOME: &str = "outcome";

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(super) struct JobDoc(Map<String, Value>);

impl From<Value> for JobDoc {
    fn from(value: Value) -> Self {
        match value {
            Value::Object(fields) => Self(fields),
            _ => Self::default(),
        }
    }
}

impl From<&JobSummary> for JobDoc {
    fn from(job: &JobSummary) -> Self {
        Self::from(json!(job))
    }
}

impl JobDoc {
    /// Returns the value of a field, by a name that the API or the page gives to a job.
    pub(super) fn get(&self, field: &str) -> Option<&Value> {
        let is_added = [AWAITED, AWAITED_NUMBER, FAILED, OUTCOME].contains(&field);
        debug_assert!(is_added || JobDocument::has(field), "no job has a field {field}");
        self.0.get(field)
    }

    /// Adds a field that the API does not return.
    pub(super) fn set(&mut self, field: &str, value: Value) {
        self.0.insert(field.to_owned(), value);
    }

    /// Returns the text of a field; empty if it is missing or no text.
    pub(super) fn text(&self, field: &str) -> &str {
        self.get(field).and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns the value of a field as text; values of a list have spaces between them.
    pub(super) fn plain(&self, field: &str) -> String {
        job_csv::plain(self.get(field))
    }

    pub(super) fn number(&self, field: &str) -> Option<f64> {
        self.plain(field).parse().ok()
    }

    /// Returns its progress, from 0 to 1.
    pub(super) fn share(&self) -> Option<f64> {
        let share = self.number("progress").filter(|share| share.is_finite())?;
        Some(share.clamp(0.0, 1.0))
    }

    /// Returns the whole number of a field.
    pub(super) fn whole(&self, field: &str) -> Option<u64> {
        self.plain(field).parse().ok()
    }

    pub(super) fn time(&self, field: &str) -> Option<Timestamp> {
        self.text(field).parse().ok()
    }

    pub(super) fn list(&self, field: &str) -> Vec<&str> {
        let values = self.get(field).and_then(Value::as_array);
        values.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    pub(super) fn map(&self, field: &str) -> Vec<(&str, &str)> {
        let values = self.get(field).and_then(Value::as_object);
        let entries = values.into_iter().flatten();
        entries.map(|(name, value)| (name.as_str(), value.as_str().unwrap_or_default())).collect()
    }

    pub(super) fn id(&self) -> &str {
        self.text("id")
    }

    /// Returns its name, or its id as lists show it.
    pub(super) fn label(&self) -> &str {
        match self.text("name") {
            "" => short_id(self.id()),
            name => name,
        }
    }

    pub(super) fn link(&self, links: &SiteLinks) -> Markup {
        html! { a.id href=(links.job(self.id())) title=(self.id()) { (self.label()) } }
    }

    /// Returns its script type, and its group if it has one.
    pub(super) fn type_and_group(&self) -> Markup {
        html! {
            (self.text("script_type"))
            @if !self.text("group").is_empty() { " " span.faint { "· " (self.text("group")) } }
        }
    }

    /// Returns the state that its hash stores.
    pub(super) fn status(&self) -> JobStatus {
        self.text("status").parse().unwrap_or(JobStatus::Created)
    }

    /// Returns the state that people see.
    pub(super) fn state(&self) -> ShownState {
        let is_cancelled = FailureCause::of(self.text("error")).intended().is_some();
        ShownState::of(self.status(), !self.text("held_by").is_empty(), is_cancelled)
    }

    /// Returns how long its last attempt ran, or runs.
    pub(super) fn took(&self, now: Timestamp) -> Option<Duration> {
        let started = self.time("started_at")?;
        match self.status() {
            JobStatus::Started => Some(elapsed(started, now)),
            status if status.is_terminal() => Some(elapsed(started, self.time("finished_at")?)),
            _ => None,
        }
    }

    /// Returns its attempts as "3 of 4": attempts so far, and the limit.
    pub(super) fn attempts(&self) -> String {
        let attempt = self.whole("attempt").unwrap_or_default();
        match (attempt, self.whole("retries").unwrap_or_default()) {
            (0, _) => "–".to_owned(),
            (_, 0) => attempt.to_string(),
            (_, retries) => format!("{attempt} of {}", (retries + 1).max(attempt)),
        }
    }

    pub(super) fn queue(&self) -> Option<String> {
        let names = ["script_type", "group", "instance", "priority", "where"];
        let fields = names.map(|name| (name, self.plain(name))).into_iter();
        let fields = fields.filter(|(_, text)| !text.is_empty()).collect();
        let job = JobSummary { id: self.id().parse().ok()?, status: self.status(), fields };
        Some(job.queue()?.to_string())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_read_alike_from_a_list_and_from_a_whole_job() {
        let listed = JobDoc::from(json!({ "attempt": "2", "retries": "3", "progress": "0.5" }));
        let whole = JobDoc::from(json!({ "attempt": 2, "retries": 3, "progress": 0.5 }));
        for job in [listed, whole] {
            assert_eq!((job.attempts().as_str(), job.number("progress")), ("2 of 4", Some(0.5)));
        }
        assert_eq!(JobDoc::default().attempts(), "–");
    }

    #[test]
    fn stopped_job_is_cancelled_and_one_of_a_limit_is_held() {
        let stopped = json!({ "status": "error", "error": "stopped_by_request" });
        assert_eq!(JobDoc::from(stopped).state(), ShownState::Cancelled);
        let held = json!({ "status": "dispatched", "held_by": "gpu" });
        assert_eq!(JobDoc::from(held).state(), ShownState::Held);
    }

    #[test]
    fn attempt_of_a_running_job_takes_until_now() {
        let now: Timestamp = "2026-01-31T13:00:00Z".parse().expect("a time");
        let job = json!({ "status": "started", "started_at": "2026-01-31T12:59:00Z" });
        assert_eq!(JobDoc::from(job).took(now), Some(Duration::from_mins(1)));
        let waits = json!({ "status": "scheduled", "started_at": "2026-01-31T12:59:00Z" });
        assert_eq!(JobDoc::from(waits).took(now), None);
    }

    #[test]
    fn queue_is_named_as_queues_are_listed() {
        let job = json!({ "id": "a", "script_type": "python", "group": "io", "priority": "1" });
        assert_eq!(JobDoc::from(job).queue().as_deref(), Some("type:python:group:io"));
    }
}
