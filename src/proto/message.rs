//! Messages: the reply of a terminal job, control messages for actors, the presence of actors.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::cron::CronInForce;
use super::job::{BootId, JobId, JobOutput, JobStatus};
use super::labels::Labels;
use crate::proto::text::escape;
use crate::proto::units::brief;
use crate::proto::word_table::words;

const CONTROL_SIZE_MAX: usize = 4096;
const PRESENCE_SIZE_MAX: usize = 16_384;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplyOutcome {
    Finished(JobOutput),
    /// Ended in `error`, with the reason.
    Error(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    pub job_id: JobId,
    pub ending: ReplyOutcome,
}

impl Reply {
    /// Returns the reply of a finished job as JSON.
    pub fn json_of(job_id: &JobId, output: &JobOutput) -> String {
        let mut reply = output.to_json();
        reply["job_id"] = job_id.as_str().into();
        reply["status"] = JobStatus::Finished.as_str().into();
        reply.to_string()
    }

    /// Parses a reply, also one of a foreign actor.
    pub fn parse(bytes: &[u8]) -> Result<Self, Unreadable> {
        let unreadable = |reason: &str| Unreadable { what: "reply", reason: reason.to_owned() };
        let value: Value =
            serde_json::from_slice(bytes).map_err(|error| unreadable(&error.to_string()))?;
        let text = |name: &str| match value.get(name) {
            Some(Value::String(text)) => Some(text.clone()),
            // A foreign actor may write its output as a JSON value.
            Some(Value::Null) | None => None,
            Some(other) => Some(other.to_string()),
        };
        let job_id = text("job_id")
            .and_then(|id| id.parse().ok())
            .ok_or_else(|| unreadable("it has no job_id"))?;
        let ending = match text("status").as_deref().map(str::parse) {
            Some(Ok(JobStatus::Finished)) => ReplyOutcome::Finished(JobOutput::read(&value)),
            Some(Ok(JobStatus::Error)) => ReplyOutcome::Error(text("error").unwrap_or_default()),
            _ => return Err(unreadable("its status is neither finished nor error")),
        };
        Ok(Self { job_id, ending })
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "cmd", rename_all = "lowercase")]
pub enum Control {
    Stop {
        job_id: JobId,
    },
    /// Claim no more jobs; finish the running ones; stay up.
    Drain,
    /// Claim jobs again.
    Resume,
    /// Drain, then exit.
    Shutdown,
    /// This job, a session, has a call.
    Call {
        job_id: JobId,
    },
    /// Read the queues again: one was paused or resumed.
    Wake,
    /// Read the expressions of `where`: jobs of its type have a new one.
    Where,
    /// Push an answer to this list.
    Ping {
        /// The key of the list, which must be checked before the push; none if the log alone may tell.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reply_to: Option<String>,
    },
}

/// The words of `cmd`. As a text alone each is an order, and no id of a job.
const WORDS: [&str; 6] = ["stop", "drain", "resume", "shutdown", "wake", "ping"];

impl Control {
    /// Parses a message: an object, the word of a `cmd`, or a bare job id, which means stop.
    pub fn parse(bytes: &[u8]) -> Result<Self, Unreadable> {
        let unreadable = |reason: String| Unreadable { what: "control message", reason };
        if bytes.len() > CONTROL_SIZE_MAX {
            return Err(unreadable(format!("it is longer than {CONTROL_SIZE_MAX} bytes")));
        }
        let text = std::str::from_utf8(bytes);
        let bare = text.map_err(|_| unreadable("it is not UTF-8".to_owned()))?.trim();
        if bare.is_empty() {
            return Err(unreadable("it is empty".to_owned()));
        }
        let message: Value = if WORDS.contains(&bare) {
            serde_json::json!({ "cmd": bare })
        } else if let Ok(job_id) = bare.parse() {
            return Ok(Self::Stop { job_id });
        } else {
            serde_json::from_str(bare).unwrap_or_default()
        };
        // Serde would take an array for an object.
        if !message.is_object() {
            return Err(unreadable("it is not a JSON object".to_owned()));
        }
        serde_json::from_value(message).map_err(|error| unreadable(error.to_string()))
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

words! {
    /// The state of an actor.
    #[derive(Default, Deserialize, schemars::JsonSchema)]
    ActorState;
    /// It claims jobs.
    Ready = "ready",
    /// It claims no more jobs; running ones end.
    Draining = "draining",
    /// It belongs to a foreign program, which does not report.
    #[default]
    Foreign = "foreign",
}

/// The presence of an actor, refreshed with every heartbeat.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Presence {
    /// Its process id.
    pub pid: u32,
    /// When its process started, in the kernel's ticks since the boot of its machine: another process may get its id later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid_since: Option<u64>,
    /// The name of its machine.
    pub hostname: String,
    /// The id of its machine's current boot, which tells machines of one name apart; empty in the
    /// presence of foreign programs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub machine: String,
    /// The boot of the actor; none in the presence of foreign programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<BootId>,
    /// The start of the actor: RFC 3339, UTC.
    pub started_at: String,
    /// Its version of Hero.
    pub version: String,
    /// Its engine and the modules of it.
    pub capabilities: Vec<String>,
    /// The time of this presence: RFC 3339, UTC.
    pub last_heartbeat: String,
    /// A random text of this heartbeat: it tells the presence of a process from the presence of its copy
    /// on a cloned machine; empty in the presence of foreign programs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub beat: String,
    /// The number of jobs that it can run at once.
    pub tasks: usize,
    /// The number of jobs that it runs now.
    pub running: usize,
    /// Its state.
    pub state: ActorState,
    /// The overload of its machine: it claims no jobs because of it, though it is ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holding: Option<String>,
    /// The processes that the kernel of its machine has killed for lack of memory since the machine started; absent
    /// where the kernel does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oom_kills: Option<u64>,
    /// When it took the name over from a process that was killed for lack of memory: RFC 3339, UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_oom_kill: Option<String>,
    /// Its labels, which `where` of jobs asks for; empty in the presence of foreign programs and older versions.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    #[schemars(with = "std::collections::BTreeMap<String, Value>")]
    pub labels: Labels,
    /// The folders of jobs that its process could not remove.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub folders_left: u64,
    /// The load of its machine over the last minute, in hundredths; absent where the kernel does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_hundredths: Option<u64>,
    /// The memory of its machine that is available, in bytes; absent where the kernel does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_available: Option<u64>,
    /// The digest of its settings in force, as `hero check` computes it from the files; empty in the presence of foreign
    /// programs and older versions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub settings: String,
    /// When it read them: RFC 3339, UTC; empty as the digest is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub settings_at: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Presence {
    /// Parses a presence, also one of a foreign program, which has no boot.
    pub fn parse(bytes: &[u8]) -> Result<Self, Unreadable> {
        let value: Value = parse_presence(bytes)?;
        let unreadable = |reason: String| Unreadable { what: "presence", reason };
        if !value.is_object() {
            return Err(unreadable("it is not a JSON object".to_owned()));
        }
        if value.get("boot_id").is_some() {
            return serde_json::from_value(value).map_err(|error| unreadable(error.to_string()));
        }
        Ok(Self::of_foreign_program(&value))
    }

    /// Reads the fields `pid`, `hostname`, `started_at`, `version`, `capabilities` and `last_heartbeat`,
    /// each of any type, or absent.
    fn of_foreign_program(value: &Value) -> Self {
        let text = |name: &str| match value.get(name) {
            Some(Value::String(text)) => text.clone(),
            None | Some(Value::Null) => String::new(),
            Some(other) => other.to_string(),
        };
        let capabilities = match value.get("capabilities") {
            Some(Value::Array(all)) => {
                all.iter().filter_map(Value::as_str).map(str::to_owned).collect()
            }
            _ => Vec::from_iter(Some(text("capabilities")).filter(|one| !one.is_empty())),
        };
        Self {
            pid: text("pid").parse().unwrap_or_default(),
            hostname: text("hostname"),
            started_at: text("started_at"),
            version: text("version"),
            capabilities,
            last_heartbeat: text("last_heartbeat"),
            ..Self::default()
        }
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The kernel's boot id of its machine; empty in the presence of foreign programs.
    fn machine_boot(&self) -> &str {
        self.machine.split(' ').next().unwrap_or_default()
    }

    /// Returns whether its machine is another one: it has another host name, or another boot while this one lived. The
    /// boots of one machine follow each other.
    pub fn is_elsewhere(&self, other: &Self) -> bool {
        self.hostname != other.hostname
            || self.machine_boot() != other.machine_boot()
                && self.last_heartbeat > other.started_at
                && other.last_heartbeat > self.started_at
    }

    /// Returns where and when it was seen, for a person who has to tell clones of a machine apart.
    pub fn sighting(&self) -> String {
        let boot = match self.machine_boot() {
            "" => "unknown",
            boot => boot.get(..8).unwrap_or(boot),
        };
        let Self { hostname, pid, started_at, .. } = self;
        format!("{hostname} (boot {boot}, pid {pid} since {started_at})")
    }
}

/// The duty of supervisors without which the jobs of dead actors stay started.
pub const RECOVERING: &str = "recovering jobs of dead actors";

/// The presence of a supervisor, refreshed with every heartbeat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SupervisorPresence {
    pub unit: String,
    pub pid: u32,
    pub hostname: String,
    /// The start of the supervisor: RFC 3339, UTC.
    pub started_at: String,
    pub version: String,
    /// The time of this presence: RFC 3339, UTC.
    pub last_heartbeat: String,
    /// `ok`, or the duty that fails and its error; [`RECOVERING`] before others.
    pub redis: String,
    /// The script types that are configured; empty if an older version wrote it.
    #[serde(default)]
    pub types: Vec<String>,
    /// The periodic jobs of files that it fires; absent if an older version wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron: Option<CronInForce>,
    /// The latest step of Redis's clock that it has noticed within the last hour; absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_step: Option<ClockStep>,
    /// The digest of its settings in force; empty if an older version wrote it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub settings: String,
    /// When it read them: RFC 3339, UTC; empty if an older version wrote it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub settings_at: String,
}

/// A step of Redis's clock against the time since a supervisor's machine started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClockStep {
    /// When it was noticed, by Redis's clock after it: RFC 3339, UTC.
    pub at: String,
    /// By how much the clock was set forward, in seconds; negative if it was set back.
    pub seconds: i64,
}

impl ClockStep {
    /// A longer step is an error.
    pub const MAX: Duration = Duration::from_mins(1);

    /// Returns the step in words, such as `the clock of redis was set back by 1h`.
    pub fn text(&self, of_shard: &str) -> String {
        let way = if self.seconds < 0 { "back" } else { "forward" };
        let step = brief(Duration::from_secs(self.seconds.unsigned_abs()));
        format!("the clock of redis{of_shard} was set {way} by {step}")
    }

    pub fn is_long(&self) -> bool {
        self.seconds.unsigned_abs() > Self::MAX.as_secs()
    }
}

impl SupervisorPresence {
    pub fn parse(bytes: &[u8]) -> Result<Self, Unreadable> {
        parse_presence(bytes)
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

fn parse_presence<T: for<'a> Deserialize<'a>>(bytes: &[u8]) -> Result<T, Unreadable> {
    let unreadable = |reason: String| Unreadable { what: "presence", reason };
    if bytes.len() > PRESENCE_SIZE_MAX {
        return Err(unreadable(format!("it is longer than {PRESENCE_SIZE_MAX} bytes")));
    }
    serde_json::from_slice(bytes).map_err(|error| unreadable(error.to_string()))
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unreadable {what}: {}", escape(.reason))]
pub struct Unreadable {
    pub what: &'static str,
    /// It may quote the message.
    pub reason: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn error_that_quotes_a_message_has_no_control_characters() {
        let error = Control::parse(br#"{"cmd":"drar\u0000\u001b[2J"}"#).expect_err("no order");
        assert!(error.to_string().contains(r"drar\u{0}\u{1b}[2J"), "{error}");
    }

    #[test]
    fn a_bare_job_id_means_stop() {
        let stop = Control::Stop { job_id: "j-1".parse().expect("legal") };
        assert_eq!(Control::parse(b"j-1"), Ok(stop.clone()));
        assert_eq!(Control::parse(stop.to_json().as_bytes()), Ok(stop));
    }

    #[test]
    fn every_control_message_reads_back_as_it_is_written() {
        let ping = Control::Ping { reply_to: Some("hero:q:reply:x".to_owned()) };
        let bare = Control::Ping { reply_to: None };
        for message in [
            Control::Drain,
            Control::Resume,
            Control::Shutdown,
            Control::Wake,
            Control::Where,
            ping,
            bare,
        ] {
            assert_eq!(Control::parse(message.to_json().as_bytes()), Ok(message));
        }
    }

    #[test]
    fn a_bare_word_is_an_order_and_no_id() {
        for (word, order) in [
            ("drain", Control::Drain),
            ("resume\n", Control::Resume),
            (" shutdown", Control::Shutdown),
            ("wake", Control::Wake),
            ("ping", Control::Ping { reply_to: None }),
        ] {
            assert_eq!(Control::parse(word.as_bytes()), Ok(order), "{word}");
        }
        // A job with such an id is stopped by the message in full.
        let stop = Control::Stop { job_id: "drain".parse().expect("legal") };
        assert_eq!(Control::parse(stop.to_json().as_bytes()), Ok(stop));
        for (text, why) in
            [("", "it is empty"), (" \n", "it is empty"), ("stop", "missing field `job_id`")]
        {
            let error = Control::parse(text.as_bytes()).expect_err("no order").to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn unknown_control_messages_are_rejected_by_name() {
        for bad in [
            r#"{"cmd":"dance"}"#,
            "{}",
            "[]",
            "",
            "a:b",
            r#"{"cmd":"stop"}"#,
            r#"{"cmd":"stop","job_id":"a:b"}"#,
        ] {
            assert!(Control::parse(bad.as_bytes()).is_err(), "{bad} was accepted");
        }
        assert!(Control::parse(&[b'a'; 5000]).is_err());
    }

    #[test]
    fn replies_of_any_actor_are_read() {
        let reply = |text: &str| Reply::parse(text.as_bytes()).map(|reply| reply.ending);
        assert_eq!(
            reply(r#"{"job_id":"a","status":"finished","output":"42"}"#),
            Ok(ReplyOutcome::Finished("42".into()))
        );
        assert_eq!(
            reply(r#"{"job_id":"a","status":"finished","output":{"n":1}}"#),
            Ok(ReplyOutcome::Finished(r#"{"n":1}"#.into()))
        );
        assert_eq!(
            reply(r#"{"job_id":"a","status":"error","error":"no"}"#),
            Ok(ReplyOutcome::Error("no".to_owned()))
        );
        for bad in ["42", "{}", r#"{"job_id":"a","status":"started"}"#, r#"{"status":"error"}"#] {
            assert!(reply(bad).is_err(), "{bad} was accepted");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_a_parser_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Control::parse(&bytes);
            let _ = Reply::parse(&bytes);
            let _ = Presence::parse(&bytes);
            let _ = SupervisorPresence::parse(&bytes);
        }
    }
}
