//! The ownership of a job: its type, group, context and caller, and whether the bounds of a caller admit it.

use std::collections::BTreeSet;

use super::caller::{Bounds, Caller};
use crate::config::Config;
use crate::proto::job::Job;
use crate::proto::target::{Group, ScriptType};
use crate::store::JobSummary;

/// The ownership of a job, as far as bounds limit it.
pub(crate) struct JobOwnership<'a> {
    pub(super) script_type: Option<&'a str>,
    group: Option<&'a str>,
    caller: &'a str,
    context: &'a str,
}

/// A bound that does not admit a job.
pub(super) struct Outside<'a> {
    pub(super) bound: &'static str,
    pub(super) value: Option<&'a str>,
    pub(super) allowed: &'a BTreeSet<String>,
}

impl<'a> JobOwnership<'a> {
    pub(super) fn of(job: &'a Job) -> Self {
        let default = job.spec.instance.map(|_| "default");
        Self {
            script_type: job.spec.script_type.as_ref().map(ScriptType::as_str),
            group: job.spec.group.as_ref().map(Group::as_str).or(default),
            caller: &job.spec.caller_id,
            context: &job.spec.context_id,
        }
    }

    /// Reads the fields of a job in a list.
    pub(super) fn of_fields(field: impl Fn(&str) -> Option<&'a str>) -> Self {
        let default = field("instance").map(|_| "default");
        Self {
            script_type: field("script_type"),
            group: field("group").or(default),
            caller: field("caller_id").unwrap_or_default(),
            context: field("context_id").unwrap_or_default(),
        }
    }

    /// Reads a job in a list.
    pub(crate) fn of_summary(job: &'a JobSummary) -> Self {
        Self::of_fields(|name| job.fields.get(name).map(String::as_str))
    }

    pub(super) fn outside(&self, caller: &'a Caller) -> Option<Outside<'a>> {
        let Bounds { types, groups, callers, contexts } = &caller.bounds;
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
            (!fits).then_some(Outside { bound, value, allowed })
        })
    }

    /// Returns whether the caller may see the job.
    pub(crate) fn is_within(&self, caller: &'a Caller) -> bool {
        self.outside(caller).is_none()
    }
}

impl Caller {
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
        let belongs = JobOwnership { script_type, group, caller: &self.name, context: "" };
        belongs.outside(self).filter(|outside| outside.bound != "contexts")
    }

    /// Returns whether the caller may see the queues and actors of a script type and group.
    pub(crate) fn admits(&self, script_type: &str, group: Option<&str>) -> bool {
        self.outside(script_type, group).is_none()
    }
}
