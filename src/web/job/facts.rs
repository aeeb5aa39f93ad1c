//! The facts beside a job: its settings, times and resources, and the jobs before and after it.

use std::time::Duration;

use jiff::Timestamp;
use maud::{Markup, html};

use super::super::doc::JobDoc;
use super::super::layout::bar;
use super::super::links::{SiteLinks, encoded};
use super::super::parts::{duration, until, was};
use crate::proto::pattern::matches_name;

/// The most jobs of a list of prerequisites or dependents.
pub(super) const RELATED_MAX: usize = 20;

fn seconds(job: &JobDoc, field: &str) -> Option<String> {
    let seconds = job.number(field)?;
    Some(Duration::try_from_secs_f64(seconds).map_or_else(|_| seconds.to_string(), duration))
}

/// Returns a size in its largest unit: `41 MiB`.
pub(super) fn bytes(bytes: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    let unit = UNITS.iter().find(|(_, size)| bytes >= *size);
    unit.map_or_else(|| format!("{bytes} bytes"), |(name, size)| format!("{} {name}", bytes / size))
}

/// Returns a fact; nothing if the text is empty.
fn fact(name: &str, text: &str) -> Markup {
    html! { @if !text.is_empty() { dt { (name) } dd { (text) } } }
}

fn linked(name: &str, text: &str, href: &str) -> Markup {
    html! { @if !text.is_empty() { dt { (name) } dd { a href=(href) { (text) } } } }
}

/// Returns the facts that change, and those that do not.
pub(super) fn facts(job: &JobDoc, links: &SiteLinks, now: Timestamp) -> Markup {
    let queue = job.queue().unwrap_or_default();
    let caller = job.text("caller_id");
    let json = format!("{}.json", links.job(job.id()));
    let graph = job.text("graph_id");
    html! {
        section #facts {
            (bar("Facts", "", Some(("JSON", &json))))
            dl.facts {
                (fact("Name", job.text("name")))
                (linked("Type", job.text("script_type"), &links.with("/jobs", &[("type", job.text("script_type"))])))
                (linked("Queue", &queue, &links.queue(&queue)))
                (linked("Graph", graph, &links.to(&format!("/graphs/{}", encoded(graph)))))
                (fact("Priority", priority(job)))
                (linked("Caller", caller, &links.with("/jobs", &[("caller", caller)])))
                (fact("Context", job.text("context_id")))
                (linked("Actor", job.text("actor"), &links.actor(job.text("actor"))))
                (linked("Held by", job.text("held_by"), &links.to("/limits")))
                (fact("Limit key", job.text("limit_key")))
                (fact("Shard key", job.text("shard_key")))
                (settings(job))
                (times(job, now))
                (resources(job))
            }
        }
    }
}

fn priority(job: &JobDoc) -> &'static str {
    match job.whole("priority") {
        Some(0) => "0, urgent",
        Some(2) => "2, background",
        _ => "1, normal",
    }
}

fn settings(job: &JobDoc) -> Markup {
    let retries = match job.whole("retries") {
        None | Some(0) => "none".to_owned(),
        Some(number) => format!("{number}, then a dead letter"),
    };
    let timeout = seconds(job, "timeout").map(|time| format!("{time} for each attempt"));
    let kept = seconds(job, "retention").map(|time| format!("{time} after its end"));
    html! {
        (fact("Timeout", &timeout.unwrap_or_default()))
        (fact("Retries", &retries))
        (fact("Kept", &kept.unwrap_or_default()))
        (fact("Unique key", job.text("unique_key")))
        (fact("Fallback", job.text("fallback")))
        (fact("Log file", job.text("log_path")))
    }
}

fn times(job: &JobDoc, now: Timestamp) -> Markup {
    let past = |name: &str, field: &str| {
        html! {
            @if let Some(at) = job.time(field) { dt { (name) } dd { (was(at, now)) } }
        }
    };
    html! {
        (past("Created", "created_at"))
        @if let Some(at) = job.time("run_at") {
            dt { "Due" } dd { @if at > now { (until(at, now)) } @else { (was(at, now)) } }
        }
        (past("Started", "started_at"))
        (past("Ended", "finished_at"))
        (past("Updated", "updated_at"))
    }
}

fn resources(job: &JobDoc) -> Markup {
    let number = |field: &str| job.get(field).map(ToString::to_string).unwrap_or_default();
    let crashes = job.whole("crashes").filter(|crashes| *crashes > 0);
    html! {
        (fact("Exit code", &number("exit_code")))
        (fact("Signal", &number("signal")))
        (fact("Crashes", &crashes.map(|number| number.to_string()).unwrap_or_default()))
        (fact("Ended by", job.text("limit")))
        (fact("CPU time", &seconds(job, "cpu_time").unwrap_or_default()))
        (fact("Memory peak", &job.whole("memory_peak").map(bytes).unwrap_or_default()))
        @if !job.text("boot_id").is_empty() { dt { "Boot" } dd { code { (job.text("boot_id")) } } }
    }
}

/// Returns the environment of the script, without the values of variables with certain names. The API masks all
/// its values for a caller who may only read.
pub(super) fn environment(job: &JobDoc, redact: &[String]) -> Markup {
    let mut variables = job.map("env_vars");
    for (name, value) in &mut variables {
        if matches_name(redact, name) {
            *value = "***";
        }
    }
    html! {
        @if !variables.is_empty() {
            section {
                (bar("Environment", "", None))
                dl.facts {
                    @for (name, value) in variables { dt { code { (name) } } dd { code { (value) } } }
                }
            }
        }
    }
}

/// A job before or after another one.
pub(super) struct RelatedJob {
    pub(super) id: String,
    /// The job; `None` if it does not exist any more.
    pub(super) job: Option<JobDoc>,
    /// The bond: `any end`, or nothing.
    pub(super) note: &'static str,
}

/// Returns a list of jobs before or after a job. `all` is the number of those that there are.
pub(super) fn related(
    title: &str,
    small: &str,
    list: &[RelatedJob],
    all: usize,
    links: &SiteLinks,
    now: Timestamp,
) -> Markup {
    html! {
        @if !list.is_empty() {
            (bar(title, small, None))
            ul {
                @for of in list { li { (related_job(of, links, now)) } }
                @if all > list.len() { li.faint { span { (all - list.len()) " more" } } }
            }
        }
    }
}

fn related_job(of: &RelatedJob, links: &SiteLinks, now: Timestamp) -> Markup {
    let note = |job: &JobDoc| {
        let took = job.took(now).map(duration).unwrap_or_default();
        if of.note.is_empty() { took } else { of.note.to_owned() }
    };
    html! {
        @match &of.job {
            Some(job) => {
                (job.state().shown())
                (job.link(links))
                span.faint { (note(job)) }
            }
            None => {
                span.st {} span.id title=(of.id) { (super::super::parts::short_id(&of.id)) }
                span.faint { "not kept any more" }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn now() -> Timestamp {
        "2026-01-31T13:00:00Z".parse().expect("a time")
    }

    #[test]
    fn facts_have_units_and_are_escaped() {
        let hostile = "<script>alert(1)</script>";
        let job = JobDoc::from(json!({
            "id": hostile, "name": hostile, "script_type": hostile, "caller_id": hostile,
            "context_id": hostile, "actor": hostile, "unique_key": hostile, "boot_id": hostile,
            "held_by": hostile, "timeout": 600, "retries": 3, "memory_peak": 43_000_000,
            "cpu_time": 1.9, "priority": 0, "created_at": "2026-01-31T12:58:00Z",
            "env_vars": { hostile: hostile, "A_KEY": "hidden-value" },
        }));
        let links = SiteLinks::new("/");
        let text = [facts(&job, &links, now()), environment(&job, &["*_KEY".to_owned()])]
            .map(Markup::into_string)
            .concat();
        assert!(!text.contains("<script") && !text.contains("hidden-value"), "{text}");
        for shown in ["10 min for each attempt", "41 MiB", "1.9 s", "0, urgent", "2 min</time> ago"]
        {
            assert!(text.contains(shown), "{shown}: {text}");
        }
    }

    #[test]
    fn job_that_is_gone_is_said_to_be() {
        let gone = RelatedJob { id: "<b>".to_owned(), job: None, note: "" };
        let text = related("Waits for", "", &[gone], 4, &SiteLinks::new("/"), now()).into_string();
        assert!(text.contains("not kept any more") && text.contains("3 more"), "{text}");
        assert!(!text.contains("<b>"), "{text}");
    }

    #[test]
    fn durations_out_of_range_do_not_fail() {
        let job = JobDoc::from(json!({ "timeout": -1, "retention": 1e300 }));
        assert!(seconds(&job, "timeout").is_some() && seconds(&job, "retention").is_some());
    }
}
