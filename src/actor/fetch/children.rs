//! The children that scripts of this actor submit: what the configuration allows, their ids, and the answers.

use serde_json::json;
use tracing::{info, warn};

use crate::actor::boot::Boot;
use crate::actor::requests::{AskedChildren, LOST_LEASE, WorkResult};
use crate::actor::running_job::RunningJob;
use crate::actor::settings::ActorSettings;
use crate::proto::access::Bounds;
use crate::proto::job::{
    ChildName, GENERATIONS_MAX, Job, JobId, SubmitRule, child_id, graph_of_children, holder_of_key,
    in_order, resolve_names, shown_place, unique_scope,
};
use crate::proto::report::JOB_COURSE;
use crate::proto::target::{Fallback, Group, Priority, ScriptType};
use crate::store::{ChildSubmitted, NewGraph, StoreError, Submitted};

/// Submits them, all or none. Returns the answer as JSON, or the reason why one was refused.
///
/// # Errors
/// An outage: it may be called again.
pub(super) async fn submit(
    asked: &AskedChildren,
    run: &RunningJob,
    boot: &Boot,
) -> Result<WorkResult, StoreError> {
    let settings = boot.settings();
    let new = match with_scripts(asked, &run.job, boot).await? {
        Ok(new) => new,
        Err(why) => return Ok(Err(why)),
    };
    let mut jobs = match to_store((asked, new), run, boot, &settings) {
        Ok(jobs) => jobs,
        Err(why) => return Ok(Err(why)),
    };
    if let Err(why) = delayed(&mut jobs, boot).await? {
        return Ok(Err(why));
    }
    let ids: Vec<JobId> = jobs.iter().map(|job| job.id.clone()).collect();
    let graph = match in_order(&mut jobs) {
        Ok(is_graph) => is_graph.then(|| graph_of(&mut jobs, run, boot)),
        Err(why) => return Ok(Err(why)),
    };
    let (id, claimed_at) = run.attempt();
    let (most, kept) = (settings.job.children_max, settings.job.kept());
    let (attempt, children) = ((&id, claimed_at), (&*jobs, graph.as_ref()));
    let done =
        match boot.store.jobs().submit_children(&boot.id, attempt, children, most, kept).await {
            Ok(done) => done,
            Err(error) if error.is_outage() => return Err(error),
            Err(error) => {
                warn!(job_id = %id, "cannot submit children of job {id}: {error}");
                return Ok(Err(format!("the child cannot be submitted: {error}")));
            }
        };
    let (done, number) = done;
    if done == ChildSubmitted::Accepted {
        for job in &jobs {
            let child = &job.id;
            let trace_id = job.spec.traceparent.map(|trace| trace.trace_id());
            info!(target: JOB_COURSE, job_id = %child, parent = %id, trace_id, "job {child} is submitted by job {id}");
        }
    }
    if let Some(why) = why_not(done, most, &jobs) {
        let refused = number.checked_sub(1).and_then(|at| jobs.get(at));
        let place = refused.and_then(|job| ids.iter().position(|id| *id == job.id));
        let place = place.map_or(String::new(), |at| shown_place(at, asked.new.is_list));
        return Ok(Err(format!("{place}{why}")));
    }
    let mut answers = ids.iter().map(|id| json!({ "id": id.as_str() }));
    let answer = if asked.new.is_list {
        serde_json::Value::Array(answers.collect())
    } else {
        answers.next().unwrap_or_default()
    };
    Ok(Ok(Some(answer.to_string())))
}

/// Makes the children a graph, whose id follows from theirs.
fn graph_of(jobs: &mut [Job], run: &RunningJob, boot: &Boot) -> NewGraph {
    let id = boot.store.shard().id(&graph_of_children(jobs));
    for job in jobs {
        job.graph_id = Some(id.clone());
    }
    let caller = run.job.spec.caller_id.clone();
    NewGraph { id, caller, ..NewGraph::default() }
}

/// Sets the time of children with a delay, by the clock of the Redis that gets them.
async fn delayed(jobs: &mut [Job], boot: &Boot) -> Result<Result<(), String>, StoreError> {
    if jobs.iter().all(|job| job.delay.is_none()) {
        return Ok(Ok(()));
    }
    let now = boot.store.now().await?;
    for job in jobs {
        let Some(delay) = job.delay else { continue };
        match now.checked_add(delay) {
            Ok(time) => job.spec.run_at = Some(time),
            Err(_) => return Ok(Err("invalid job: delay is too far in the future".to_owned())),
        }
    }
    Ok(Ok(()))
}

/// Returns the children of a request with the published scripts that they name, each as it is now, or the reason why
/// one cannot have its script. A script learns nothing of scripts whose type it may not submit.
async fn with_scripts(
    asked: &AskedChildren,
    parent: &Job,
    boot: &Boot,
) -> Result<Result<Vec<Job>, String>, StoreError> {
    let (settings, mut jobs) = (boot.settings(), asked.new.jobs.clone());
    for (place, job) in jobs.iter_mut().enumerate() {
        let at = |why: String| Ok(Err(format!("{}{why}", shown_place(place, asked.new.is_list))));
        let Some(used) = job.spec.uses.clone() else {
            if job.spec.script_digest.is_some() {
                return at("invalid job: script_digest needs `uses`".to_owned());
            }
            continue;
        };
        let found = match Box::pin(boot.process.of.home.published_scripts().get(&used)).await {
            Ok(found) => found,
            Err(error) if error.is_outage() => return Err(error),
            Err(error) => {
                warn!("cannot read the published script {used} of a child: {error}");
                return at(format!("the published script {used} cannot be read: {error}"));
            }
        };
        let may_submit = |script_type: &ScriptType| {
            rules_of(parent, &settings).iter().any(|rule| rule.script_type() == script_type)
        };
        let Some(script) = found.filter(|of| may_submit(&of.of.definition.script_type)) else {
            return at(format!(
                "invalid job: uses `{used}` names no published script, or none of a type that may_submit names"
            ));
        };
        if let Err(why) = script.give_to(&mut job.spec) {
            return at(why.to_string());
        }
    }
    Ok(Ok(jobs))
}

/// Returns the jobs that the script of a job may submit.
fn rules_of<'a>(parent: &Job, settings: &'a ActorSettings) -> &'a [SubmitRule] {
    let of_parent = parent.spec.script_type.as_ref();
    let rules = of_parent.and_then(|of_parent| settings.may_submit.get(of_parent));
    rules.map(Vec::as_slice).unwrap_or_default()
}

/// Returns the children as they are stored, or the reason why one of them may not be.
fn to_store(
    (request, jobs): (&AskedChildren, Vec<Job>),
    run: &RunningJob,
    boot: &Boot,
    settings: &ActorSettings,
) -> Result<Vec<Job>, String> {
    let parent = &run.job;
    let mut unnamed = request.unnamed_before;
    let mut done = Vec::new();
    for (place, (mut job, asked)) in jobs.into_iter().zip(&request.new.jobs).enumerate() {
        let at = |why: String| format!("{}{why}", shown_place(place, request.new.is_list));
        keep_within_bounds(parent, &mut job).map_err(at)?;
        allowed(parent, &job, settings).map_err(at)?;
        // The name is the one that the script gives, not the one of a published script.
        job.spec.name.clone_from(&asked.spec.name);
        let name = if let Some(name) = &asked.spec.name {
            ChildName::Named(name.as_str())
        } else {
            unnamed += 1;
            ChildName::Place(unnamed - 1)
        };
        job.id = boot.store.shard().id(&child_id(parent, &name));
        job.has_fixed_id = true;
        resolve_names(&mut job.spec, |name| {
            boot.store.shard().id(&child_id(parent, &ChildName::Named(name)))
        });
        job.spec.caller_id.clone_from(&parent.spec.caller_id);
        job.spec.context_id.clone_from(&parent.spec.context_id);
        if job.bounds.as_ref().is_some_and(Bounds::limit_jobs) {
            job.spec.check_bound_log_file().map_err(|error| at(error.to_string()))?;
        }
        job.spec.traceparent = job.spec.traceparent.or(run.traceparent);
        // The parent may have none because it has no key. Its script takes no key of others.
        job.unique_scope = Some(unique_scope(&job.spec.caller_id, &job.spec.context_id));
        // The settings of a published script may have a priority.
        let is_open = job.spec.priority == Priority::default();
        if is_open && request.new.without_priority.contains(&place) {
            job.spec.priority = parent.spec.priority;
        }
        job.spec.unique_key = job.spec.key_of_content().or(job.spec.unique_key.take());
        job.spec.check_uniqueness().map_err(|error| at(error.to_string()))?;
        job.spec.check(&settings.job.bounds()).map_err(|error| at(error.to_string()))?;
        if job.spec.replaces() {
            return Err(at("invalid job: on_duplicate cannot replace a job".to_owned()));
        }
        done.push(job);
    }
    Ok(done)
}

/// Keeps a child within the bounds of the token that submitted its parent, or the first job above it. Without a group it
/// is of the group of its parent, if groups are bound.
fn keep_within_bounds(parent: &Job, child: &mut Job) -> Result<(), String> {
    let Some(bounds) = &parent.bounds else { return Ok(()) };
    child.bounds = Some(bounds.clone());
    let spec = &mut child.spec;
    if bounds.groups.is_some() {
        if spec.group.is_none() && spec.instance.is_none() && spec.r#where.is_none() {
            spec.group.clone_from(&parent.spec.group);
        }
        if spec.fallback == Some(Fallback::Type) {
            return Err("a child cannot have the fallback `type`: the token that submitted its parent is bound to groups"
                .to_owned());
        }
        spec.fallback = spec.fallback.or(Some(Fallback::None));
    }
    let default = spec.instance.map(|_| "default");
    let group = spec.group.as_ref().map(Group::as_str).or(default);
    match bounds.outside(spec.script_type.as_ref().map(ScriptType::as_str), group) {
        Some(why) => Err(format!(
            "the child is beyond the bounds of the token that submitted its parent: {why}"
        )),
        None => Ok(()),
    }
}

/// Checks that the type of a parent may submit a job.
fn allowed(parent: &Job, child: &Job, settings: &ActorSettings) -> Result<(), String> {
    let Some(of_parent) = &parent.spec.script_type else {
        return Err("the job has no script type".to_owned());
    };
    if rules_of(parent, settings).iter().any(|rule| rule.allows(child)) {
        return Ok(());
    }
    let of_child = child.spec.script_type.as_ref().map(ToString::to_string).unwrap_or_default();
    let group = child.spec.group.as_ref().map(|group| format!(":{group}")).unwrap_or_default();
    Err(format!(
        "a script of type {of_parent} may not submit jobs of {of_child}{group}: [type.{of_parent}] may_submit \
         does not name it"
    ))
}

/// Returns the reason why a child is not submitted; none if it is.
fn why_not(done: ChildSubmitted, most: u64, jobs: &[Job]) -> Option<String> {
    Some(match done {
        ChildSubmitted::Accepted | ChildSubmitted::Known => return None,
        ChildSubmitted::Lost => LOST_LEASE.to_owned(),
        ChildSubmitted::Stopped => "the job was told to stop".to_owned(),
        ChildSubmitted::TooMany => {
            format!("the job has {most} children, as many as job.children_max allows")
        }
        ChildSubmitted::TooDeep => {
            format!(
                "the child would be of generation {}, the last is {GENERATIONS_MAX}",
                GENERATIONS_MAX + 1
            )
        }
        ChildSubmitted::Stranger(id) => {
            let mut names = jobs.iter().flat_map(|job| &job.spec.prerequisite_names);
            let name = names.find(|(_, of)| of.as_str() == id).map_or(&id, |(name, _)| name);
            format!("it cannot wait for job {name}, which is no child of the same job")
        }
        ChildSubmitted::Refused(Submitted::Duplicate(holder)) => {
            format!("{} holds its unique key", holder_of_key(holder.as_ref()))
        }
        ChildSubmitted::Refused(Submitted::UnknownPrerequisite(id)) => {
            format!("it waits for job {id}, which does not exist")
        }
        ChildSubmitted::Refused(Submitted::BrokenQueue(key)) => {
            format!("the key {key} has the wrong type; remove it")
        }
        ChildSubmitted::Refused(Submitted::Exists | Submitted::Accepted(_)) => {
            "its id is taken by a job that is no child of this one".to_owned()
        }
    })
}
