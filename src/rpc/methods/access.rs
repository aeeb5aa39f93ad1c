//! The rights of a caller: its scopes and its bounds, held against one job.

use std::collections::{BTreeSet, HashSet};
use std::fmt::Display;

use jiff::Timestamp;
use serde_json::{Map, Value};
use tokio::sync::OwnedSemaphorePermit;

use super::super::caller::{Bounds, JobOwnership, Outside};
use super::super::request_trace::trace_of_request;
use super::super::visible_health::sees_whole_types;
use super::{BoundedWork, CallContext, PATIENCE, Result, RpcError, Scope, code};
use crate::client::ClientError;
use crate::error::{Error, Exit};
use crate::proto::job::{InvalidJob, Job, JobId, JobReference, unique_scope};
use crate::proto::named_script::{PublishedScript, ScriptUse, ScriptVersion};
use crate::proto::pattern::matches;
use crate::proto::target::{Fallback, ScriptType};
use crate::store::JobSummary;

/// A job that was checked before its change: its id, and its time of creation if that was read.
pub(super) type CheckedJob = (JobId, Option<Timestamp>);

impl CallContext {
    /// Returns whether some jobs are hidden from the caller.
    pub(crate) fn hides_jobs(&self) -> bool {
        self.caller.is_bound() || !self.caller.reads()
    }

    pub(super) fn bounds(&self) -> Option<Bounds> {
        self.caller.is_bound().then(|| self.caller.bounds.clone())
    }

    pub(super) fn may_not(&self, what: impl Display) -> RpcError {
        let message = format!("{} may not {what}", self.caller.name);
        RpcError::new(code::NOT_PERMITTED, message)
    }

    /// Refuses what concerns jobs of all callers and contexts if the caller has bounds.
    pub(super) fn needs_no_bounds(&self, doing: &str) -> Result<()> {
        if !self.caller.is_bound() {
            return Ok(());
        }
        let why = "it may reach jobs beyond the bounds of this caller";
        Err(self.may_not(format!("{doing}: {why}")))
    }

    /// Refuses a script type or group beyond the caller's bounds.
    pub(super) fn admits(&self, script_type: &str, group: Option<&str>) -> Result<()> {
        self.caller.outside(script_type, group).map_or(Ok(()), |of| Err(self.refusal(&of)))
    }

    /// Refuses a context of objects beyond the caller's bounds. Objects belong to contexts alone: a caller with other
    /// bounds needs contexts too.
    pub(super) fn admits_context(&self, context: &str) -> Result<()> {
        match &self.caller.bounds.contexts {
            Some(allowed) if !allowed.contains(context) => Err(self.refusal(&Outside {
                bound: "contexts",
                value: Some(context),
                is_of_where: false,
                allowed,
            })),
            Some(_) => Ok(()),
            None => self.needs_no_bounds("use objects without a bound of contexts"),
        }
    }

    fn refusal(&self, outside: &Outside<'_>) -> RpcError {
        self.may_not(outside).with("bound", outside.bound)
    }

    /// Returns whether it may change any job, and so submit jobs of any other caller and share the unique keys of all. With
    /// bounds it may not: what is given to a caller, such as secrets, keys and log files, is beyond every bound.
    pub(super) fn changes_any_job(&self) -> bool {
        self.caller.operates() && !self.caller.is_bound()
    }

    /// Returns whether it may submit jobs of a `caller_id`: its own, one among its bounds, or any if it may change any job.
    pub(super) fn may_submit_as(&self, caller_id: &str) -> bool {
        let among = self.caller.bounds.callers.as_ref();
        caller_id == self.caller.name
            || self.changes_any_job()
            || among.is_some_and(|all| all.contains(caller_id))
    }

    /// Makes a job one of the caller's, and refuses a job beyond its bounds. A setting that is left out
    /// becomes the only value that the bounds allow.
    pub(super) fn adopt(&self, job: &mut Job) -> Result<()> {
        let (caller, spec) = (&*self.caller, &mut job.spec);
        let Bounds { types, groups, contexts, .. } = &caller.bounds;
        let only = |allowed: &Option<BTreeSet<String>>| {
            allowed.as_ref().filter(|allowed| allowed.len() == 1)?.first().cloned()
        };
        spec.traceparent = spec.traceparent.or_else(trace_of_request);
        // A user of Redis itself names whom it likes, or nobody.
        if spec.caller_id.is_empty() && !self.is_of_command_line {
            spec.caller_id.clone_from(&caller.name);
        }
        if !self.may_submit_as(&spec.caller_id) {
            let other = spec.caller_id.escape_debug();
            let refused = self.may_not(format!("submit jobs of caller_id `{other}`: leave it out"));
            return Err(refused.with("field", "caller_id"));
        }
        if spec.script_type.is_none() {
            spec.script_type = only(types).and_then(|name| name.parse().ok());
        }
        // An expression is no group: it reaches actors of all.
        if spec.group.is_none() && spec.instance.is_none() && spec.r#where.is_none() {
            spec.group = only(groups).and_then(|name| name.parse().ok());
        }
        if spec.context_id.is_empty() {
            spec.context_id = only(contexts).unwrap_or_default();
        }
        if groups.is_some() {
            spec.fallback = spec.fallback.or(Some(Fallback::None));
        }
        job.bounds = self.bounds();
        if spec.caller_id != caller.name && !self.caller.reads() {
            // Jobs of this caller are not the token's own: it may submit them, and read none.
            job.bounds.get_or_insert_default().sees = Some(caller.name.clone());
        }
        self.scope_key(job)?;
        self.stays_within(job)?;
        self.reaches_nothing_beyond(job)
    }

    /// Sets the owner of a job's unique key, and refuses to replace the jobs of others.
    ///
    /// A key of a caller with bounds, or without the scope operate, belongs to this caller and the context of the job, unless
    /// `api.shared_unique_keys` names it. Then a caller that may not see its holder learns only that it is taken:
    /// `visible_id` in `shared/rights.lua`.
    fn scope_key(&self, job: &mut Job) -> Result<()> {
        let key = job.spec.unique_key.clone().or_else(|| job.spec.key_of_content());
        let Some(key) = key.filter(|_| !self.changes_any_job()) else { return Ok(()) };
        let shared = &self.config.api.shared_unique_keys;
        if !shared.iter().any(|pattern| matches(pattern, key.as_str())) {
            job.unique_scope = Some(unique_scope(&job.spec.caller_id, &job.spec.context_id));
            return Ok(());
        }
        if !job.spec.replaces() {
            return Ok(());
        }
        let refused = self.may_not(
            "replace the job of a shared unique key, which may be of another caller: this needs the scope operate, and \
             no bounds",
        );
        Err(refused.with("field", "on_duplicate"))
    }

    /// Refuses a new or corrected job that would leave the bounds of the caller later: by a fallback beyond its groups,
    /// or by the objects of a context.
    pub(super) fn reaches_nothing_beyond(&self, job: &Job) -> Result<()> {
        let (spec, Bounds { groups, contexts, .. }) = (&job.spec, &self.caller.bounds);
        let of_type = || {
            let of_type = self.config.types.get(spec.script_type.as_ref()?)?;
            Some(of_type.fallback)
        };
        if groups.is_some() && spec.fallback.or_else(of_type) == Some(Fallback::Type) {
            let refused = self.may_not("use the fallback `type`: it is bound to groups");
            return Err(refused.with("bound", "groups"));
        }
        if self.caller.is_bound() {
            spec.check_bound_log_file()?;
        }
        let context = spec.context_id.escape_debug();
        if contexts.is_none() && self.caller.is_bound() && !spec.context_id.is_empty() {
            let why = "a token with bounds needs the context among them, by --context";
            let refused = self.may_not(format!("use the context `{context}`: {why}"));
            return Err(refused.with("bound", "contexts"));
        }
        Ok(())
    }

    /// Makes a fallback that changes take away `none`, if the caller is bound to groups: the fallback of the type may
    /// leave them.
    pub(super) fn keep_groups(&self, changes: &mut Map<String, Value>) {
        if self.caller.bounds.groups.is_some()
            && let Some(fallback) = changes.get_mut("fallback").filter(|value| value.is_null())
        {
            *fallback = Fallback::None.as_str().into();
        }
    }

    /// Returns whether the caller may see a published script: one of the types that it is bound to.
    pub(in crate::rpc) fn sees_script(&self, script: &ScriptVersion) -> bool {
        let types = self.caller.bounds.types.as_ref();
        types.is_none_or(|types| types.contains(script.definition.script_type.as_str()))
    }

    /// Reads a published script that the caller may see. Beyond its bounds there is none.
    pub(in crate::rpc) async fn visible_script(&self, used: &ScriptUse) -> Result<PublishedScript> {
        match self.client.scripts().get(used).await {
            Ok(script) if self.sees_script(&script.of) => Ok(script),
            Err(error) if !self.caller.is_bound() || error.exit != Exit::NotFound => {
                Err(error.into())
            }
            // The error of the client tells the names of others.
            Ok(_) | Err(_) => {
                let message = format!("no such script: `{used}` is not a published script");
                Err(Error::new(Exit::NotFound, message).into())
            }
        }
    }

    /// Gives a job whole ids of prerequisites for their beginnings, and its text and settings if it names a published script.
    pub(super) async fn resolve(&self, job: &mut Job) -> Result<()> {
        if let Some(used) = &job.spec.uses {
            Box::pin(self.visible_script(used)).await?;
        }
        for id in job.spec.prerequisites.iter_mut().chain(&mut job.spec.after_any) {
            let sees = |job: &JobSummary| self.finds(job);
            *id = self.client.jobs().prerequisite_among(id, Some(&self.caller.name), sees).await?;
        }
        Ok(self.client.scripts().resolve(job).await?)
    }

    /// Refuses to change a queue or an actor, which have jobs of all callers and contexts, if the caller is bound to
    /// some of them.
    pub(super) fn needs_all_callers(&self, doing: &str) -> Result<()> {
        let Bounds { callers, contexts, .. } = &self.caller.bounds;
        if callers.is_none() && contexts.is_none() { Ok(()) } else { self.needs_no_bounds(doing) }
    }

    /// Refuses numbers that count jobs of whole script types if the caller is bound to some of them.
    pub(super) fn needs_whole_types(&self, doing: &str) -> Result<()> {
        if sees_whole_types(&self.caller) { Ok(()) } else { self.needs_no_bounds(doing) }
    }

    /// Refuses a job that would be beyond the bounds of the caller.
    pub(super) fn stays_within(&self, job: &Job) -> Result<()> {
        let outside = JobOwnership::of(job).outside(&self.caller);
        outside.map_or(Ok(()), |of| Err(self.refusal(&of)))
    }

    /// Checks jobs before they are submitted together: their types, and that the caller may read the
    /// outputs of the jobs that they wait for.
    pub(super) async fn check_new(&self, jobs: &[Job]) -> Result<()> {
        for job in jobs {
            self.has_type(job)?;
        }
        if !self.hides_jobs() {
            return Ok(());
        }
        let mut known: HashSet<&JobId> = jobs.iter().map(|job| &job.id).collect();
        for id in jobs.iter().flat_map(|job| job.spec.waits_for()) {
            if known.insert(id) {
                let other = self.visible(id).await?;
                if !self.reads_of(Some(&other.spec.caller_id)) {
                    return Err(hidden(id));
                }
            }
        }
        Ok(())
    }

    pub(in crate::rpc) fn usable_types(&self) -> impl Iterator<Item = &ScriptType> {
        let names = self.config.types.keys();
        names.filter(|name| self.caller.may_use(&self.config, name))
    }

    /// Refuses a script type that is not configured, and one without a sandbox that is not named for the caller.
    pub(super) fn uses(&self, script_type: &ScriptType) -> Result<()> {
        if self.is_of_command_line || self.caller.may_use(&self.config, script_type) {
            return Ok(());
        }
        let usable: Vec<&str> = self.usable_types().map(ScriptType::as_str).collect();
        let (caller, usable) = (&self.caller.name, usable.join(", "));
        if !self.config.types.contains_key(script_type) {
            let reason = format!("`{script_type}` is not configured; types for {caller}: {usable}");
            return Err(InvalidJob::new("script_type", reason).into());
        }
        Err(self.may_not(format!(
            "use the script type `{script_type}`: its scripts are not sandboxed, and it is named \
             neither by its token (--type {script_type}) nor in [type.{script_type}] who; types for {caller}: {usable}"
        ))
        .with("field", "script_type"))
    }

    /// Refuses a job without a script type, of a type that the caller may not use, or with limits that its type
    /// forbids.
    pub(super) fn has_type(&self, job: &Job) -> Result<()> {
        let Some(script_type) = &job.spec.script_type else {
            return Err(InvalidJob::new("script_type", "is missing").into());
        };
        self.uses(script_type)?;
        Ok(self.config.check_asked(&job.spec)?)
    }

    /// Waits until the caller may search for jobs, as long as it has the permit.
    pub(super) async fn may_search(&self) -> Result<OwnedSemaphorePermit> {
        self.work.begin(&self.caller.name, BoundedWork::Search, PATIENCE).await
    }

    /// Returns the job that an id or its unique beginning names, which the caller may change.
    pub(super) async fn own_job(&self, of: JobReference, doing: &str) -> Result<JobId> {
        let id = self.job_named(&of).await?;
        self.may_change(&id, doing).await?;
        Ok(id)
    }

    /// Returns whether the caller finds a job in a list: one within its bounds, and without the scope read one of its
    /// own.
    pub(in crate::rpc) fn finds(&self, job: &JobSummary) -> bool {
        self.caller.sees(job) && self.reads_of(job.fields.get("caller_id").map(String::as_str))
    }

    /// Returns whether it may read a job or graph of this caller: without the scope read only its own.
    pub(super) fn reads_of(&self, owner: Option<&str>) -> bool {
        self.caller.reads() || owner == Some(&self.caller.name)
    }

    /// Refuses a job that the caller may not know of, as if there were none: one beyond its bounds, or, without the
    /// scopes read and operate, one of another caller.
    pub(super) async fn may_name(&self, id: &JobId) -> Result<()> {
        let knows_all = self.caller.reads() || self.caller.operates();
        if knows_all && !self.caller.is_bound() {
            return Ok(());
        }
        let job = self.visible(id).await?;
        if knows_all || job.spec.caller_id == self.caller.name { Ok(()) } else { Err(hidden(id)) }
    }

    /// Reads a job that the caller may see.
    pub(super) async fn visible(&self, id: &JobId) -> Result<Job> {
        let job = self.client.get_job(id).await?;
        if self.caller.sees_whole(&job) { Ok(job) } else { Err(hidden(id)) }
    }

    /// Refuses to retry the dependents of a job, which are of anybody.
    pub(super) fn may_retry_dependents(&self) -> Result<()> {
        self.needs(Scope::Operate, "job.retry with dependents")?;
        self.needs_no_bounds("retry the dependents of a job")
    }

    /// Refuses a job that the caller may not change: one beyond its bounds, or of another caller.
    pub(super) async fn may_change(&self, id: &JobId, doing: &str) -> Result<()> {
        if self.changes_any_job() {
            return Ok(());
        }
        let job = self.visible(id).await?;
        let absent = ClientError::NoSuchJob(id.clone());
        self.may_change_of(&job.spec.caller_id, ("job", id), absent, doing)
    }

    /// Refuses a job or graph of another caller; as `absent` if the caller learns nothing of what others have.
    pub(super) fn may_change_of(
        &self,
        owner: &str,
        (noun, id): (&str, &JobId),
        absent: ClientError,
        doing: &str,
    ) -> Result<()> {
        if self.caller.operates() || owner == self.caller.name {
            return Ok(());
        }
        if !self.caller.reads() {
            return Err(absent.into());
        }
        let why = format!("it is a {noun} of another caller, which needs the scope operate");
        Err(self.may_not(format!("{doing} {noun} {id}: {why}")).with("id", id.as_str()))
    }
}

/// The error for a job that the caller may not see: the same as for a job that does not exist.
pub(super) fn hidden(id: &JobId) -> RpcError {
    ClientError::NoSuchJob(id.clone()).into()
}
