//! The settings that a submitter gives a job, as one type and as a table.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::arguments::Params;
use super::asked_bounds::{AskedBounds, MemorySize, NetworkAccess};
use super::bounds::{InvalidJob, JobBounds};
use super::id::{ContentHash, JobId, JobName, LimitKey, ShardKey, UniqueKey};
use super::notify_names::NotifyName;
use super::output::ReplyFormat;
use super::output_overflow::OutputOverflow;
use super::retry_delays::{ExitCodes, RetryDelays};
use super::secret_use::SecretUse;
use super::settings::job_settings;
use super::signature::JobSignature;
use super::tags::Tags;
use super::traceparent::TraceParent;
use super::uniqueness::{OnDuplicate, UniqueBy};
use super::value::{FieldKind, HashValue};
use crate::proto::queue::Queue;
use crate::proto::script_use::ScriptUse;
use crate::proto::selector::Selector;
use crate::proto::target::{Fallback, Group, Instance, Priority, ScriptType, Target};
use crate::proto::text::shown;
use crate::proto::units::{format_duration, parse_duration};

/// A way for settings to come in from people. The builder, the hash and JSON know all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entrance {
    /// The options of `hero exec` and `hero submit`.
    CommandLine,
    /// `[job.NAME]` of a graph file.
    Graph,
    /// `[defaults]` of a graph file.
    GraphDefaults,
    /// `[on_success]`, `[on_failure]` and `[on_end]` of a graph file.
    GraphCallback,
    /// `[cron.NAME]`.
    PeriodicJob,
    /// The head of a script that is published, or `[script.NAME]`.
    Script,
}

const EACH_ITS_OWN: &str = "each job has its own";
const STARTED_BY_GRAPH: &str = "the end of its graph alone starts a callback";
const OF_ITS_JOBS: &str = "each job of the script has its own";
const STARTED_BY_TIME: &str = "its schedule alone starts a periodic job";
const WITHOUT_PREREQUISITES: &[(Entrance, &str)] = &[
    (Entrance::Script, OF_ITS_JOBS),
    (Entrance::GraphDefaults, EACH_ITS_OWN),
    (Entrance::GraphCallback, STARTED_BY_GRAPH),
    (Entrance::PeriodicJob, STARTED_BY_TIME),
];
const WITHOUT_DEBOUNCE: &[(Entrance, &str)] = &[
    (Entrance::Graph, "a graph is submitted as a whole or not at all"),
    (Entrance::GraphDefaults, "a graph is submitted as a whole or not at all"),
    (Entrance::GraphCallback, STARTED_BY_GRAPH),
    (Entrance::PeriodicJob, STARTED_BY_TIME),
];

/// One row of the list in `settings.rs`.
#[derive(Debug)]
pub struct Setting {
    /// Its name in the hash and in JSON.
    pub field: &'static str,
    /// Its name on the command line and in TOML files.
    pub word: &'static str,
    /// Its letter on the command line.
    pub short: Option<char>,
    pub value_name: &'static str,
    pub doc: &'static str,
    /// For a flag that is set by default: the help of `--no-WORD`; of any other flag the option is `--WORD`.
    pub negated: &'static str,
    pub kind: FieldKind,
    /// The entrances that do not take it, with the reason.
    pub absent: &'static [(Entrance, &'static str)],
    read: fn(&mut JobSpec, &str) -> Result<(), String>,
    /// Writes the text of the hash; `None` at the default.
    write: fn(&JobSpec) -> Option<String>,
    fault: fn(&JobSpec) -> Option<String>,
    bound: fn(&JobSpec, &JobBounds) -> Option<String>,
}

macro_rules! spec {
    ($(
        $(#[doc = $doc:literal])+
        $field:ident as $method:ident($($argument:ident: $given:ty),+): $type:ty = $default:expr
            => { $($property:ident: $value:expr),* $(,)? }
    )+) => {
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct JobSpec {
            $( $(#[doc = $doc])+ pub $field: $type, )+
        }

        impl Default for JobSpec {
            fn default() -> Self {
                Self { $($field: $default,)+ }
            }
        }

        /// Every setting, in the order of the hash.
        pub static SETTINGS: &[Setting] = &[$(
            Setting {
                $($property: $value,)*
                ..Setting {
                    field: stringify!($field),
                    word: stringify!($method),
                    short: None,
                    value_name: "",
                    doc: concat!($($doc),+),
                    negated: "",
                    kind: <$type as HashValue>::KIND,
                    absent: &[],
                    read: |spec, text| spec.$field.set(text),
                    write: |spec| (spec.$field != $default).then(|| spec.$field.write()),
                    fault: |spec| spec.$field.fault(),
                    bound: |_, _| None,
                }
            },
        )+];
    };
}
job_settings!(spec);

impl Setting {
    pub fn of_field(field: &str) -> Option<&'static Self> {
        SETTINGS.iter().find(|setting| setting.field == field)
    }

    /// Returns the setting with this name in the hash, or this word of the command line and of TOML files.
    pub fn named(name: &str) -> Option<&'static Self> {
        let of_word = || SETTINGS.iter().find(|setting| setting.word == name);
        Self::of_field(name).or_else(of_word)
    }

    /// Returns members by the names of the hash: they may be named by the words of the command line.
    pub fn by_fields(given: &Map<String, Value>) -> Result<Map<String, Value>, InvalidJob> {
        let mut members = Map::new();
        for (name, value) in given {
            let field = Self::named(name).map_or(name.as_str(), |setting| setting.field);
            if field != name && given.contains_key(field) {
                let why = format!("is `{name}` by another name: give one of both");
                return Err(InvalidJob::new(field, why));
            }
            members.insert(field.to_owned(), value.clone());
        }
        Ok(members)
    }

    /// Returns the reason why an entrance does not take it; `None` if it does.
    pub fn absent_at(&self, entrance: Entrance) -> Option<&'static str> {
        self.absent.iter().find(|(other, _)| *other == entrance).map(|(_, reason)| *reason)
    }

    /// Sets it from the text of the hash; a map gains the entries of the text.
    pub fn set(&self, spec: &mut JobSpec, text: &str) -> Result<(), InvalidJob> {
        (self.read)(spec, text).map_err(|reason| InvalidJob::new(self.field, reason))
    }

    /// Returns a value as people write it, as the hash has it: a duration with its unit, a priority by its word, a list
    /// of one text. Any other text stays as it is.
    pub fn spoken<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.kind {
            FieldKind::Duration => match parse_duration(text) {
                Ok(time) => time.as_secs_f64().to_string().into(),
                Err(_) => text.into(),
            },
            // One text of arguments may be meant as several.
            FieldKind::List | FieldKind::Texts
                if self.field != "args" && !text.trim_start().starts_with('[') =>
            {
                serde_json::json!([text]).to_string().into()
            }
            FieldKind::Number if self.field == "priority" => Priority::of_word(text).into(),
            _ => text.into(),
        }
    }

    /// Returns the error of a value that no job may have.
    pub fn fault(&self, spec: &JobSpec) -> Option<InvalidJob> {
        (self.fault)(spec).map(|reason| InvalidJob::new(self.field, reason))
    }

    /// Returns the text that the hash has for it; `None` at the default.
    pub fn text(&self, spec: &JobSpec) -> Option<String> {
        (self.write)(spec)
    }
}

impl JobSpec {
    /// The maximum number of jobs that one may wait for, so that its hash stays within what an actor takes.
    pub const PREREQUISITES_MAX: usize = 10_000;

    /// Creates a job's settings from its script, everything else at the default.
    pub fn new(script: impl Into<String>) -> Self {
        Self { script: script.into(), ..Self::default() }
    }

    /// Checks every setting against its form and the bounds of a configuration.
    pub fn check(&self, bounds: &JobBounds) -> Result<(), InvalidJob> {
        for setting in SETTINGS {
            let fault = (setting.bound)(self, bounds).or_else(|| (setting.fault)(self));
            if let Some(reason) = fault {
                return Err(InvalidJob::new(setting.field, reason));
            }
        }
        Ok(())
    }

    /// Refuses a log file that a job with the bounds of a token may not write: the files of each caller are in a folder of its
    /// name, and others have theirs in the same `job.log_dir`.
    pub fn check_bound_log_file(&self) -> Result<(), InvalidJob> {
        let is_own = |path: &str| {
            path.strip_prefix(&self.caller_id).is_some_and(|rest| rest.starts_with('/'))
        };
        if self.log_path.as_deref().is_some_and(|path| !is_own(path)) {
            let caller = shown(&self.caller_id);
            let why = format!(
                "of a token with bounds must be in the folder of its caller: `{caller}/FILE`"
            );
            return Err(InvalidJob::new("log_path", why));
        }
        Ok(())
    }

    /// Returns the reason why it may not have its `where`: it names a group or an instance as well.
    pub(super) fn where_conflict(&self) -> Option<String> {
        let label = match (&self.r#where, &self.group, self.instance) {
            (Some(_), Some(group), _) => format!("group = \"{group}\""),
            (Some(_), None, Some(instance)) => format!("instance = {instance}"),
            _ => return None,
        };
        Some(format!(
            "cannot stand beside a group or an instance, which are labels: add `{label}` to it instead"
        ))
    }

    pub fn asked_bounds(&self) -> AskedBounds {
        AskedBounds {
            memory: self.memory,
            job_memory: self.job_memory,
            cpu: self.cpu,
            network: self.network.clone(),
        }
    }

    /// Returns every job that it waits for; an id that is named twice comes twice.
    pub fn waits_for(&self) -> impl Iterator<Item = &JobId> {
        self.prerequisites.iter().chain(&self.after_any)
    }

    /// Returns the queue that it goes to; `None` without a script type.
    pub fn queue(&self) -> Option<Queue> {
        let selector = self.r#where.as_ref().map(Selector::digest);
        let script_type = self.script_type.clone()?;
        let target = Target::of(script_type, self.group.clone(), self.instance, selector);
        Some(Queue { target, priority: self.priority })
    }
}

fn longer(asked: Option<Duration>, most: Duration, key: &str) -> Option<String> {
    let asked = format_duration(asked.filter(|asked| *asked > most)?);
    Some(format!("`{asked}` is more than {}, the limit {key}", format_duration(most)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_file_of_a_bound_job_is_in_the_folder_of_its_caller() {
        let mut spec = JobSpec::new("1");
        spec.caller_id = "ann".to_owned();
        for (path, is_legal) in [
            ("ann/a.log", true),
            ("ann", false),
            ("anna/a.log", false),
            ("/ann/a.log", false),
            ("bob/a.log", false),
        ] {
            spec.log_path = Some(path.to_owned());
            assert_eq!(spec.check_bound_log_file().is_ok(), is_legal, "{path}");
        }
    }
}
