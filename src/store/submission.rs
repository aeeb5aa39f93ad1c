//! The arguments of a job and the answer to its submission: what submitting jobs one by one shares with
//! atomic batches.

use redis::ScriptInvocation;
use serde_json::json;

use super::attempts::kept;
use super::portions::JOB_WORK;
use crate::proto::job::{INPUT_FILES, Job, JobId, JobStatus, Retention, UniqueKey};
use crate::proto::target::{Group, ScriptType};

/// The prefix of a prerequisite that only has to end; `ANY` in `shared/prerequisites.lua`.
pub(super) const ANY: char = '?';

/// The answer to the submission of one job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Submitted {
    Accepted(JobStatus),
    /// Its id is taken; nothing was written.
    Exists,
    /// This job holds its unique key and has not ended, or one that the caller may not see; nothing was written.
    Duplicate(Option<JobId>),
    /// It names this prerequisite, which does not exist; nothing was written.
    UnknownPrerequisite(String),
    /// Its work list is this key of another type; nothing was written.
    BrokenQueue(String),
}

/// Adds the arguments that decide the index of a job.
pub(super) fn standing(script: &mut ScriptInvocation<'_>, job: &Job) {
    let [script_type, group, instance, priority, unique_key] = named_target(job);
    let selector = job.spec.r#where.as_ref().map(ToString::to_string).unwrap_or_default();
    let run_at = job.spec.run_at.map(|time| time.as_microsecond().to_string()).unwrap_or_default();
    script.arg(job.id.as_str()).arg(script_type).arg(group).arg(instance).arg(priority);
    script.arg(selector).arg(run_at).arg(unique_key);
}

/// Returns the name of a unique key, after its caller's scope and a line feed, as `unique_name` in `shared/unique.lua`.
fn unique_name(job: &Job) -> String {
    let key = job.spec.unique_key.as_ref().map_or("", UniqueKey::as_str);
    match &job.unique_scope {
        Some(scope) if !key.is_empty() => format!("{scope}\n{key}"),
        _ => key.to_owned(),
    }
}

/// Returns script type, group, instance, priority and the name of the unique key of a job; each '' without one.
pub(super) fn named_target(job: &Job) -> [String; 5] {
    let spec = &job.spec;
    let text = |value: Option<&str>| value.unwrap_or_default().to_owned();
    [
        text(spec.script_type.as_ref().map(ScriptType::as_str)),
        text(spec.group.as_ref().map(Group::as_str)),
        spec.instance.map(|instance| instance.to_string()).unwrap_or_default(),
        spec.priority.as_str().to_owned(),
        unique_name(job),
    ]
}

/// Returns the id of the graph or batch that a job belongs to, else ''.
pub(super) fn graph_of(job: &Job) -> &str {
    job.graph_id.as_ref().map_or("", JobId::as_str)
}

/// A job with the fields of its hash.
pub(super) type WithFields<'a> = (&'a Job, Vec<(&'a str, String)>);

/// Writes the fields of a job once, to measure and to send them.
pub(super) fn with_fields(job: &Job) -> WithFields<'_> {
    let mut fields = job.submitted_fields();
    // The key has it.
    fields.retain(|(name, _)| *name != "id");
    fields.extend(job.graph_id.iter().map(|id| ("graph_id", id.to_string())));
    fields.extend(fields_of_submitter(job));
    // Its time is of no person, who would mean it by any clock.
    let since = job.delay.and_then(|delay| job.spec.run_at?.checked_sub(delay).ok());
    fields.extend(since.map(|since| ("delayed_since", format!("{since:.3}"))));
    fields.extend((job.session > 0).then(|| ("session", job.session.to_string())));
    // `submit_jobs.lua` finds it at the end.
    if let Some(at) = fields.iter().position(|(name, _)| *name == INPUT_FILES) {
        let files = fields.remove(at);
        fields.push(files);
    }
    (job, fields)
}

/// The fields with the owner of a unique key that is not shared by all jobs, and the bounds of the submitter.
pub(super) fn fields_of_submitter(job: &Job) -> Vec<(&'static str, String)> {
    let has_key = job.spec.unique_key.is_some();
    let scope = job.unique_scope.clone().filter(|_| has_key).map(|scope| ("unique_scope", scope));
    let bounds = job.bounds.as_ref().map(|bounds| ("bounds", json!(bounds).to_string()));
    scope.into_iter().chain(bounds).collect()
}

/// The same for a job without a reply, as nobody waits; one that names a format pushes it for a program that pops.
pub(super) fn unawaited(job: &Job) -> WithFields<'_> {
    let (job, mut fields) = with_fields(job);
    if job.spec.reply && job.spec.reply_format.is_none() {
        fields.insert(0, ("reply", "0".to_owned()));
    }
    (job, fields)
}

/// The work that the submission of a job is, without its prerequisites.
pub(super) fn work((_, fields): &WithFields<'_>) -> usize {
    let bytes: usize = fields.iter().map(|(name, value)| name.len() + value.len()).sum();
    JOB_WORK + bytes
}

/// Returns true for a job that takes the place of one with its unique key.
pub(super) fn replaces((job, _): &WithFields<'_>) -> bool {
    job.spec.replaces() && job.spec.unique_key.is_some()
}

/// Adds the arguments of `submit.lua`.
pub(super) fn submission(
    script: &mut ScriptInvocation<'_>,
    jobs: &[WithFields<'_>],
    start: bool,
    retention: impl Into<Retention>,
) {
    script.arg(if start { "start" } else { "create" }).arg(kept(retention)).arg(jobs.len());
    // All of them belong to the same batch.
    script.arg(jobs.first().map_or("", |(job, _)| graph_of(job)));
    for (job, fields) in jobs {
        standing(script, job);
        script.arg(job.spec.waits_for().count());
        for id in &job.spec.prerequisites {
            script.arg(id.as_str());
        }
        for id in &job.spec.after_any {
            script.arg(format!("{ANY}{id}"));
        }
        script.arg(2 * fields.len() + 4);
        for (name, value) in fields {
            script.arg(*name).arg(value);
        }
        script.arg("status").arg("").arg("created_at").arg("");
    }
}

pub(super) fn refused(code: &str, detail: String) -> Option<Submitted> {
    match code {
        "exists" => Some(Submitted::Exists),
        "duplicate" => Some(Submitted::Duplicate(detail.parse().ok())),
        "unknown_prerequisite" => Some(Submitted::UnknownPrerequisite(detail)),
        "broken_queue" => Some(Submitted::BrokenQueue(detail)),
        _ => None,
    }
}
