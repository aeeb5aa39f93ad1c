//! The caller of the API and its rights; and whether its bounds admit a job, by the type, group, context and caller of the job.

use std::collections::BTreeSet;
use std::fmt;

use crate::config::Config;
pub use crate::proto::access::{Bounds, Scope, Scopes};
use crate::proto::job::Job;
use crate::proto::job_rights::{CallerRights, JobRights};
use crate::proto::target::{ActorId, Group, ScriptType};
use crate::store::JobSummary;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Its name: of a token, a user of this machine, or a public key. It becomes `caller_id` of its jobs.
    pub name: String,
    pub scopes: Scopes,
    pub bounds: Bounds,
}

impl Caller {
    /// Returns whether it may read jobs of others.
    pub fn reads(&self) -> bool {
        self.scopes.has(Scope::Read)
    }

    /// Returns whether it may change jobs of others.
    pub fn operates(&self) -> bool {
        self.scopes.has(Scope::Operate) || self.scopes.has(Scope::Admin)
    }

    pub(super) fn is_bound(&self) -> bool {
        self.bounds != Bounds::default()
    }

    /// Returns its rights to the jobs that its calls name.
    pub fn job_rights(&self) -> JobRights {
        let (sees_all, changes_all) = (self.reads(), self.operates());
        if sees_all && changes_all && !self.is_bound() {
            return JobRights::default();
        }
        let (name, bounds) = (self.name.clone(), self.bounds.clone());
        let caller = Some(CallerRights { name, sees_all, changes_all, bounds });
        JobRights { caller, ..JobRights::default() }
    }

    /// Returns true if the caller may submit scripts of a type.
    pub(crate) fn may_use(&self, config: &Config, script_type: &ScriptType) -> bool {
        config.is_offered(script_type, &self.name, self.bounds.types.as_ref())
    }

    /// Returns the bound that does not admit the queues and actors of a script type and group.
    pub(super) fn outside<'a>(
        &'a self,
        script_type: &'a str,
        group: Option<&'a str>,
    ) -> Option<Outside<'a>> {
        let script_type = Some(script_type);
        let belongs =
            JobOwnership { script_type, group, caller: &self.name, context: "", has_where: false };
        belongs.outside(self).filter(|outside| outside.bound != "contexts")
    }

    /// Returns whether the caller may see the queues and actors of a script type and group.
    pub(crate) fn admits(&self, script_type: &str, group: Option<&str>) -> bool {
        self.outside(script_type, group).is_none()
    }

    /// Returns whether the caller may see an actor.
    pub(crate) fn admits_actor(&self, actor: &ActorId) -> bool {
        self.admits(actor.script_type.as_str(), Some(actor.group.as_str()))
    }

    /// Returns whether a job is within its bounds.
    pub(crate) fn sees(&self, job: &JobSummary) -> bool {
        JobOwnership::of_summary(job).outside(self).is_none()
    }

    /// Returns the same of a whole job.
    pub(super) fn sees_whole(&self, job: &Job) -> bool {
        JobOwnership::of(job).outside(self).is_none()
    }
}

/// The ownership of a job, as far as bounds limit it.
pub(super) struct JobOwnership<'a> {
    script_type: Option<&'a str>,
    group: Option<&'a str>,
    caller: &'a str,
    context: &'a str,
    /// True if an expression names its actors in place of a group.
    has_where: bool,
}

/// A bound that does not admit a job.
pub(super) struct Outside<'a> {
    pub(super) bound: &'static str,
    pub(super) value: Option<&'a str>,
    /// True if the job has an expression in place of the value.
    pub(super) is_of_where: bool,
    pub(super) allowed: &'a BTreeSet<String>,
}

impl fmt::Display for Outside<'_> {
    /// Writes what the caller may not do, and the bound that forbids it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bound, value, is_of_where, allowed } = self;
        match value {
            Some(value) => write!(f, "use `{}`", value.escape_debug()),
            None if *is_of_where => f.write_str("use `where`, which reaches actors of every group"),
            None => write!(f, "leave out the {}", bound.trim_end_matches('s')),
        }?;
        let allowed: Vec<&str> = allowed.iter().map(String::as_str).collect();
        write!(f, ": the {bound} of this caller are {}", allowed.join(", "))
    }
}

impl<'a> JobOwnership<'a> {
    pub(super) fn of(job: &'a Job) -> Self {
        let default = job.spec.instance.map(|_| "default");
        Self {
            script_type: job.spec.script_type.as_ref().map(ScriptType::as_str),
            group: job.spec.group.as_ref().map(Group::as_str).or(default),
            caller: &job.spec.caller_id,
            context: &job.spec.context_id,
            has_where: job.spec.r#where.is_some(),
        }
    }

    /// Reads a job in a list.
    fn of_summary(job: &'a JobSummary) -> Self {
        let field = |name: &str| job.fields.get(name).map(String::as_str);
        let default = field("instance").map(|_| "default");
        Self {
            script_type: field("script_type"),
            group: field("group").or(default),
            caller: field("caller_id").unwrap_or_default(),
            context: field("context_id").unwrap_or_default(),
            has_where: field("where").is_some(),
        }
    }

    pub(super) fn outside(&self, caller: &'a Caller) -> Option<Outside<'a>> {
        let Bounds { types, groups, callers, contexts, .. } = &caller.bounds;
        let own = self.caller == caller.name;
        let checks = [
            ("types", types, self.script_type, false),
            ("groups", groups, self.group, false),
            ("callers", callers, Some(self.caller), own),
            ("contexts", contexts, Some(self.context), false),
        ];
        checks.into_iter().find_map(|(bound, allowed, value, is_free)| {
            let allowed = allowed.as_ref()?;
            let fits = is_free || value.is_some_and(|value| allowed.contains(value));
            let is_of_where = self.has_where && bound == "groups" && value.is_none();
            (!fits).then_some(Outside { bound, value, is_of_where, allowed })
        })
    }
}
