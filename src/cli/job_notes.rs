//! Notes about settings of a new job that this configuration does not know. The configuration of the actors
//! decides, which may be another one: the job is submitted nevertheless.

use std::collections::BTreeSet;

use serde_json::json;

use super::api::ApiMethods;
use super::output;
use crate::config::{Config, Fair, Per};
use crate::proto::graph_plan::GraphPlan;
use crate::proto::job::{Job, JobId, JobSpec, WAITS_FOR};
use crate::proto::notification::NotifyName;
use crate::proto::text::{counted, did_you_mean, nearest};
use crate::rpc::results::UnservedJobs;

pub(super) fn print(job: &JobSpec, config: &Config) {
    output::notes(notes(job, config));
}

/// Prints the notes about the jobs of a graph that was submitted, each once.
pub(super) fn print_of_graph(plan: &GraphPlan<Job>, config: &Config) {
    let jobs = plan.jobs_and_callbacks();
    let mut notes: BTreeSet<String> = jobs.flat_map(|(_, job)| notes(&job.spec, config)).collect();
    let names: Vec<NotifyName> = plan.notify.iter().filter_map(|name| name.parse().ok()).collect();
    notes.extend(unknown_notifications(&names, config));
    output::notes(notes);
}

/// Reports new jobs that no live actor claims.
pub(super) fn report_unserved(unserved: &[UnservedJobs]) {
    output::notes(unserved.iter().map(|UnservedJobs { jobs, reason }| {
        format!("{}: {reason}", counted(*jobs, "job waits", "jobs wait"))
    }));
}

pub(super) fn report_blocker(id: &str, reason: &str) {
    output::note(&format!("hero: job {id} waits for {reason}"));
}

/// Returns why a job does not start. Without an answer it returns nothing.
pub(super) async fn blocker(api: &ApiMethods, id: &str) -> Option<String> {
    let job = api.call("job.get", json!({ "id": id })).await.ok()?;
    job[WAITS_FOR].as_str().map(str::to_owned)
}

/// Returns the note about a submission that stored no job: `known` holds its unique key, since it has not ended or
/// its `unique_for` lasts, or is the job that was submitted before with its id, `own`, and its content.
pub(super) fn known(job: &JobSpec, own: &JobId, known: &JobId) -> String {
    if own == known {
        return format!("no new job: job {known} was submitted before with the same content");
    }
    let why =
        if job.replaces() { ": it has started, and only one that waits is replaced" } else { "" };
    format!("no new job: job {known} holds its unique key{why}")
}

fn notes(job: &JobSpec, config: &Config) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(key) = &job.limit_key {
        let is_used = config.limits.values().any(|limit| {
            limit.per == Some(Per::Key)
                || limit.fair == Some(Fair::Key)
                || limit.key.as_ref() == Some(key)
        });
        if !is_used {
            notes.push(format!(
                "no limit of this configuration uses the limit key {key}: `[limit.NAME]` with \
                 key = \"{key}\", per = \"key\" or fair = \"key\", on the machines of the actors"
            ));
        }
    }
    for secret in &job.secrets {
        let name = secret.name();
        if !config.secrets.allow.contains_key(name) {
            notes.push(format!(
                "this configuration allows no job the secret {name}: `[secrets.allow.{name}]`, on the \
                 machines of the actors"
            ));
        }
    }
    notes.extend(unknown_notifications(&job.notify, config));
    notes
}

/// Returns the notes about notifications that jobs name and a configuration does not have.
pub(super) fn unknown_notifications(
    named: &[NotifyName],
    config: &Config,
) -> impl Iterator<Item = String> {
    let known = &config.notify;
    let unknown = named.iter().filter(|name| !known.contains_key(*name));
    unknown.map(|name| {
        let near = nearest(name.as_str(), known.keys().map(NotifyName::as_str));
        let add = ": add the table to hero.toml on the machines of the supervisors, with webhook, mail, command \
                   or journal";
        let hint = if near.is_some() { did_you_mean(near) } else { add.to_owned() };
        format!("this configuration has no [notify.{name}], so nobody may be told{hint}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_key_that_no_limit_uses_and_secret_that_nobody_may_use_are_noted() {
        let mut job = JobSpec { limit_key: "a".parse().ok(), ..JobSpec::default() };
        job.secrets = vec!["db".parse().expect("legal")];
        let with = |job: &JobSpec, text: &str| {
            notes(job, &Config::from_toml("hero.toml".as_ref(), text).expect("legal")).len()
        };
        assert_eq!(with(&job, ""), 2);
        assert_eq!(
            with(
                &job,
                "[limit.x]\nper = \"key\"\nrunning = 1\n[secrets.allow.db]\ntypes = [\"bash\"]\n"
            ),
            0
        );
        assert_eq!(with(&job, "[limit.x]\nkey = \"a\"\nrunning = 1\n"), 1);
        job.notify = vec!["opps".parse().expect("legal")];
        assert_eq!(with(&job, ""), 3);
        assert_eq!(with(&job, "[notify.ops]\njournal = true\n"), 3);
        assert_eq!(with(&job, "[notify.opps]\njournal = true\n"), 2);
        assert_eq!(
            with(
                &job,
                "[limit.x]\nkey = \"b\"\nrunning = 1\n[secrets.allow.db]\ntypes = [\"bash\"]\n"
            ),
            2
        );
    }
}
