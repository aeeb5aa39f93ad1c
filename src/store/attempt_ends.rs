//! The recording of how attempts ended, of many in one call.

use std::borrow::Cow;
use std::fmt::Write;
use std::time::Duration;

use tracing::warn;

use super::attempts::kept;
use super::portions::{JOB_WORK, portions};
use super::{AttemptStore, Result, StoreError};
use crate::proto::job::{BootId, JobId, JobOutput, ReplyFormat, Retention};
use crate::proto::message::Reply;
use crate::proto::target::ScriptType;

/// The outcome of an attempt, decided by the actor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The job finished, with this output.
    Finished {
        output: JobOutput,
        /// The exit code, where a process ran.
        exit_code: Option<i32>,
    },
    /// The job ends in `error`.
    Error {
        error: String,
        exit_code: Option<i32>,
        /// True if it used up its attempts, and so becomes a dead letter.
        dead: bool,
    },
    /// The job is tried again.
    Retry { error: String, exit_code: Option<i32>, delay: Duration },
    /// The job runs again later, as its script asked; no attempt is charged.
    Postpone { error: String, exit_code: Option<i32>, delay: Duration },
    /// The job runs again once what its script waits for has come; no attempt is charged.
    Wait {
        /// The wait, as the field `wait` has it.
        wait: String,
        exit_code: Option<i32>,
        /// The time after which it runs again anyway.
        delay: Duration,
    },
}

/// The end of one attempt, to be recorded.
#[derive(Debug, Clone)]
pub struct AttemptEnd {
    pub id: JobId,
    /// By [`Attempt::claimed_at`](super::Attempt::claimed_at): the attempt that ended, and no later one of the same boot.
    pub claimed_at: u64,
    /// The script type of the actor, for a job that names none.
    pub script_type: ScriptType,
    pub verdict: Verdict,
    /// Fields of the hash: the resource usage of a process, the missing lines of the log.
    pub used: Vec<(&'static str, String)>,
    /// Counters of its type that it adds to, beside its end.
    pub counts: Counts,
}

/// Counters, and by how much they grow.
pub type Counts = Vec<(String, u64)>;

/// The answer to the recording of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recorded {
    Recorded,
    /// It was recorded, and its reply waits for [`JobStore::push_replies`](super::JobStore::push_replies).
    Held,
    /// It had been recorded before: the answer to an earlier call was lost, or that call arrived late.
    Before,
    /// The boot no longer owns the job; nothing was written.
    Lost,
    /// Redis could not write it, for this reason.
    Failed(String),
}

impl Verdict {
    /// Returns its word in `finish.lua`, its text, its exit code and its delay.
    fn parts(&self) -> (&'static str, &[u8], Option<i32>, Option<Duration>) {
        match self {
            Self::Finished { output, exit_code } => {
                ("finished", output.as_bytes(), *exit_code, None)
            }
            Self::Error { error, exit_code, dead } => {
                (if *dead { "dead" } else { "error" }, error.as_bytes(), *exit_code, None)
            }
            Self::Retry { error, exit_code, delay } => {
                ("retry", error.as_bytes(), *exit_code, Some(*delay))
            }
            Self::Postpone { error, exit_code, delay } => {
                ("postpone", error.as_bytes(), *exit_code, Some(*delay))
            }
            Self::Wait { wait, exit_code, delay } => {
                ("wait", wait.as_bytes(), *exit_code, Some(*delay))
            }
        }
    }
}

impl AttemptStore<'_> {
    /// Records how attempts ended, each only while the boot owns the job, in as many calls as their
    /// number and bytes need. Returns one answer for each, in order.
    ///
    /// # Errors
    /// [`StoreError`]; calling again with the same endings is safe.
    pub async fn finish(
        self,
        boot: &BootId,
        retention: impl Into<Retention>,
        endings: &[AttemptEnd],
    ) -> Result<Vec<Recorded>> {
        let retention = kept(retention);
        let mut recorded = vec![None; endings.len()];
        let all = endings.iter().enumerate().map(|(place, ending)| {
            let is_apart = ending
                .output()
                .is_some_and(|output| self.store.jobs().is_apart(&ending.id, output));
            UnsentEnd::new(place, Cow::Borrowed(ending), is_apart)
        });
        let mut left: Vec<UnsentEnd<'_>> = all.collect();
        let mut stagings = 0;
        while !left.is_empty() {
            let (mut unstaged, mut oversized) = (Vec::new(), Vec::new());
            for portion in portions(&left, UnsentEnd::work) {
                let answers = match self.finish_portion(boot, &retention, portion).await {
                    // No portion of several ends is so large.
                    Err(error @ StoreError::Oversized { .. }) => {
                        oversized.extend(portion.iter().map(|end| (end.place, error.clone())));
                        continue;
                    }
                    answers => answers?,
                };
                for (end, answer) in portion.iter().zip(answers) {
                    match answer {
                        AnswerToEnd::Known(answer) => recorded[end.place] = Some(answer),
                        AnswerToEnd::Stage(reply) => unstaged.push((end.place, reply)),
                    }
                }
            }
            left.clear();
            stagings += 1;
            for (place, reply) in unstaged {
                let ending = &endings[place];
                // An output that expires before its end is recorded, and again, goes through the script.
                let staged = if stagings < STAGINGS_MAX {
                    self.stage_output(boot, ending, reply).await
                } else {
                    Ok(false)
                };
                match staged {
                    Err(error @ StoreError::Oversized { .. }) => oversized.push((place, error)),
                    is_apart => left.push(UnsentEnd::new(place, Cow::Borrowed(ending), is_apart?)),
                }
            }
            let stripped = |(place, error): (usize, StoreError)| {
                warn!(job_id = %endings[place].id, "job {} ends in error: {error}", endings[place].id);
                UnsentEnd::new(place, Cow::Owned(endings[place].without_output(&error)), false)
            };
            left.extend(oversized.into_iter().map(stripped));
        }
        let recorded: Option<Vec<Recorded>> = recorded.into_iter().collect();
        recorded.ok_or_else(|| StoreError::unexpected(DOING))
    }

    /// Stages the output of an attempt, and the reply with it in this format if one is wanted. Returns false
    /// if the script has to carry it: the access list of an older version does not permit the keys, or the
    /// memory of Redis is full, despite which the script may write.
    async fn stage_output(
        self,
        boot: &BootId,
        ending: &AttemptEnd,
        reply: Option<ReplyFormat>,
    ) -> Result<bool> {
        let Some(output) = ending.output() else { return Ok(false) };
        let attempt = (&ending.id, boot, ending.claimed_at);
        match self.store.jobs().stage_apart(attempt, output, reply).await {
            Ok(()) => Ok(true),
            Err(StoreError::NotPermitted { .. } | StoreError::Failed { .. }) => Ok(false),
            Err(error) if error.is_memory_full() => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn finish_portion(
        self,
        boot: &BootId,
        retention: &str,
        endings: &[UnsentEnd<'_>],
    ) -> Result<Vec<AnswerToEnd>> {
        let mut script = self.store.scripts.finish.prepare_invoke();
        script.arg(boot.as_str()).arg(retention).arg(endings.len());
        script.arg(if self.store.acks().confirms_all() { "hold" } else { "" });
        for UnsentEnd { ending, reply, is_apart, .. } in endings {
            let (kind, text, exit_code, delay) = ending.verdict.parts();
            let (kind, text) = if *is_apart { ("apart", [].as_slice()) } else { (kind, text) };
            script
                .arg(ending.id.as_str())
                .arg(ending.claimed_at)
                .arg(ending.script_type.as_str())
                .arg(kind)
                .arg(text)
                .arg(exit_code.map(|code| code.to_string()).unwrap_or_default())
                .arg(delay.map(|delay| delay.as_micros().to_string()).unwrap_or_default())
                .arg(lines(ending.used.iter().map(|(name, value)| (*name, value))))
                .arg(reply)
                .arg(ending.counts.len());
            for (counter, by) in &ending.counts {
                script.arg(counter).arg(by);
            }
        }
        let results: Vec<String> = self.store.invoke(DOING, &script).await?;
        let rejected = |answer: &String| StoreError::in_answer(&self.store.address(), answer);
        if let Some(error) = results.iter().find_map(rejected) {
            return Err(error);
        }
        if results.len() > endings.len() {
            self.store.schedule().settle_some(retention).await?;
        }
        Ok(results
            .into_iter()
            .take(endings.len())
            .map(|result| match result.as_str() {
                "ok" => AnswerToEnd::Known(Recorded::Recorded),
                "held" => AnswerToEnd::Known(Recorded::Held),
                "done" => AnswerToEnd::Known(Recorded::Before),
                "lost" => AnswerToEnd::Known(Recorded::Lost),
                "stage" => AnswerToEnd::Stage(None),
                "stage json" => AnswerToEnd::Stage(Some(ReplyFormat::Json)),
                "stage plain" => AnswerToEnd::Stage(Some(ReplyFormat::Plain)),
                _ => AnswerToEnd::Known(Recorded::Failed(
                    self.store.scripts.finish.with_files(&result),
                )),
            })
            .collect())
    }
}

/// The reply with an output of this number of bytes or more is made here. Redis escapes a megabyte in 15 ms.
const LONG_OUTPUT: usize = 16 << 10;

/// The work of a wait for the children of a job.
const CHILDREN_WORK: usize = 64 * JOB_WORK;

const STAGINGS_MAX: u32 = 3;

const DOING: &str = "recording how jobs ended";

enum AnswerToEnd {
    Known(Recorded),
    /// The output is to be staged first, and the reply in this format if one is wanted.
    Stage(Option<ReplyFormat>),
}

impl AttemptEnd {
    fn output(&self) -> Option<&JobOutput> {
        match &self.verdict {
            Verdict::Finished { output, .. } => Some(output),
            _ => None,
        }
    }

    /// The end of the attempt without the output that Redis does not take.
    fn without_output(&self, error: &StoreError) -> Self {
        let (_, _, exit_code, _) = self.verdict.parts();
        let error = format!("the output is lost: {error}");
        Self {
            id: self.id.clone(),
            claimed_at: self.claimed_at,
            script_type: self.script_type.clone(),
            verdict: Verdict::Error { error, exit_code, dead: false },
            used: self.used.clone(),
            counts: self.counts.clone(),
        }
    }
}

/// The end of an attempt with its reply as JSON, if the output is long or not UTF-8, else with ''.
struct UnsentEnd<'a> {
    place: usize,
    ending: Cow<'a, AttemptEnd>,
    reply: String,
    /// True if its output has a key of its own.
    is_apart: bool,
}

impl<'a> UnsentEnd<'a> {
    fn new(place: usize, ending: Cow<'a, AttemptEnd>, is_apart: bool) -> Self {
        let reply = match ending.output().filter(|_| !is_apart) {
            Some(output)
                if matches!(output, JobOutput::Bytes(_))
                    || output.as_bytes().len() >= LONG_OUTPUT =>
            {
                Reply::json_of(&ending.id, output)
            }
            _ => String::new(),
        };
        Self { place, ending, reply, is_apart }
    }

    /// The text goes into the hash and into the reply.
    fn work(&self) -> usize {
        let (_, text, ..) = self.ending.verdict.parts();
        let text = match &self.ending.verdict {
            Verdict::Finished { .. } if self.is_apart => 0,
            // It looks at the jobs of the wait: up to a hundred are named, children may be more.
            Verdict::Wait { wait, .. } if wait.contains("\"children\"") => CHILDREN_WORK,
            Verdict::Wait { .. } => 8 * text.len(),
            _ => text.len(),
        };
        2 * JOB_WORK + text + text.max(self.reply.len())
    }
}

/// Fields and values in the form of `finish.lua`.
fn lines<'a>(fields: impl Iterator<Item = (&'a str, &'a String)>) -> String {
    let mut text = String::new();
    for (name, value) in fields {
        let _ = writeln!(text, "{name}={value}");
    }
    text
}
