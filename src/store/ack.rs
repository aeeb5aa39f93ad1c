//! Confirmations: that writes are on the disk of Redis, or with its replicas.
//!
//! Redis answers `WAITAOF` and `WAIT` for the latest write of the connection that asks, and runs nothing else of this connection
//! until then: with `appendfsync everysec` for up to a second. So the shared connection cannot ask. A connection of its own does,
//! after a write of its own: `confirm.lua` writes the status of each job once more, if the job is still there. This comes
//! after the writes that are asked about, in the same server: a job that a restart or a failover has lost is not there,
//! and not confirmed.
//!
//! Calls that come during a round share the next one, so any number of callers needs one connection.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tokio::sync::oneshot::error::TryRecvError;

use super::attempts::millis;
use super::backoff::Backoff;
use super::confirmations::{Answer, Asking, How, Question};
use super::text::Legal;
use super::{AckStore, JobStore, Result, StoreError};
use crate::config::Ack;
use crate::proto::job::{Job, JobId};

/// The time within which Redis has to confirm.
const CONFIRMED_WITHIN: Duration = Duration::from_secs(5);
const JOBS_PER_CALL: usize = 500;
const CONFIRMING: &str = "confirming jobs";
/// The command that lets an older Redis confirm by its answers.
const SYNC_ALWAYS: &str = "redis-cli CONFIG SET appendfsync always, redis-cli CONFIG REWRITE";

impl AckStore<'_> {
    /// Returns whether the submission of a job, and its end, are confirmed before they are answered.
    pub fn confirms(self, job: &Job) -> bool {
        job.spec.durable || self.confirms_all()
    }

    /// Returns whether the writes of all jobs are.
    pub fn confirms_all(self) -> bool {
        self.store.ack != Ack::Memory
    }

    /// Returns whether the end of a job is, as its hash or the configuration says.
    pub async fn confirms_end(self, id: &JobId) -> Result<bool> {
        if self.confirms_all() {
            return Ok(true);
        }
        let said: Option<String> = self
            .store
            .link
            .command("reading a job", "HGET", (self.store.keys.job(id), "durable"))
            .await?;
        let says_no = |said: &str| matches!(said, "" | "0" | "false" | "no");
        Ok(said.is_some_and(|said| !says_no(&said.to_ascii_lowercase())))
    }

    /// Checks that Redis can confirm, before a job is sent that needs it.
    ///
    /// # Errors
    /// [`StoreError::Failed`] says why Redis cannot, and what to do; as [`AckStore::confirm`].
    pub async fn can_confirm(self) -> Result<()> {
        // A round may be under way, which need not be waited for.
        if self.store.confirmations.is_able.load(Ordering::Relaxed) {
            return Ok(());
        }
        let mut asking = self.store.confirmations.asking.lock().await;
        if asking.is_none() {
            *asking = Some(self.open_asking().await?);
        }
        self.store.confirmations.is_able.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Waits until everything that was written of these jobs has arrived where `redis.ack` says, on the disk if it says nothing.
    /// Returns those that do not exist any more: they were deleted, or lost before they had arrived.
    ///
    /// # Errors
    /// [`StoreError`] if Redis does not confirm within 5 s; the jobs are in its memory all the same.
    pub async fn confirm(self, ids: &[JobId]) -> Result<Vec<JobId>> {
        let mut answer = self.store.confirmations.ask(ids);
        let mut asking = self.store.confirmations.asking.lock().await;
        loop {
            match answer.try_recv() {
                Ok(answer) => return answer,
                Err(TryRecvError::Empty) => {}
                // The caller that asked for all has given up.
                Err(TryRecvError::Closed) => answer = self.store.confirmations.ask(ids),
            }
            let questions = self.store.confirmations.take();
            let all: Vec<&JobId> = questions.iter().flat_map(|question| &question.ids).collect();
            let round = self.round(&mut asking, &all).await;
            self.store.confirmations.is_able.store(round.is_ok(), Ordering::Relaxed);
            for Question { ids, answer } in questions {
                let own = round.clone().map(|gone| {
                    gone.into_iter().filter(|id| ids.contains(id)).collect::<Vec<JobId>>()
                });
                // Its caller may have given up.
                let _ = answer.send(own);
            }
        }
    }

    /// Asks about all these jobs, again if the connection was lost.
    async fn round(self, asking: &mut Option<Asking>, ids: &[&JobId]) -> Answer {
        let (began, mut backoff) = (Instant::now(), Backoff::default());
        loop {
            // A caller that gives up meanwhile drops the connection, which would wait for the old answer.
            let mut own = match asking.take() {
                Some(own) => own,
                None => self.open_asking().await?,
            };
            match self.ask_once(&mut own, ids).await {
                Ok(gone) => {
                    *asking = Some(own);
                    return Ok(gone);
                }
                Err(error) if error.is_outage() && began.elapsed() < CONFIRMED_WITHIN => {
                    tokio::time::sleep(backoff.failed()).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn ask_once(self, asking: &mut Asking, ids: &[&JobId]) -> Answer {
        let mut gone = Vec::new();
        for ids in ids.chunks(JOBS_PER_CALL) {
            let mut script = self.store.scripts.confirm.prepare_invoke();
            script.arg(ids.iter().map(|id| id.as_str()).collect::<Vec<_>>());
            let Legal(missing) = asking.link.invoke(CONFIRMING, &script).await?;
            gone.extend(missing);
        }
        let (within, link) = (millis(CONFIRMED_WITHIN), &mut asking.link);
        let (arrived, wanted): (u64, u64) = match asking.how {
            How::WaitAof => {
                let command = wait_aof(within);
                let (local, _): (u64, u64) =
                    link.query(CONFIRMING, &command, CONFIRMED_WITHIN).await?;
                (local, 1)
            }
            How::Wait(replicas) => {
                let mut command = redis::cmd("WAIT");
                command.arg(u64::from(replicas)).arg(within);
                (link.query(CONFIRMING, &command, CONFIRMED_WITHIN).await?, replicas.into())
            }
            How::Answer => {
                self.checked_answer().await?;
                (1, 1)
            }
        };
        if arrived >= wanted { Ok(gone) } else { Err(not_confirmed(asking.how, arrived)) }
    }

    /// Opens the connection that asks, and finds out how Redis confirms.
    async fn open_asking(self) -> Result<Asking> {
        let mut link = self.store.blocking();
        if let Ack::Replicas(number) = self.store.ack {
            return Ok(Asking { link, how: How::Wait(number) });
        }
        // This connection has written nothing, so Redis does not wait.
        let answer: Result<redis::Value> =
            link.query(CONFIRMING, &wait_aof(1), CONFIRMED_WITHIN).await;
        match answer {
            Ok(_) => Ok(Asking { link, how: How::WaitAof }),
            Err(StoreError::Failed { reason, .. }) if reason.contains("unknown command") => {
                self.checked_answer().await?;
                Ok(Asking { link, how: How::Answer })
            }
            Err(StoreError::Failed { reason, .. }) if reason.contains("appendonly is disabled") => {
                Err(refused(
                    "it appends to no file (appendonly no); run: redis-cli CONFIG SET appendonly yes, redis-cli CONFIG REWRITE",
                ))
            }
            Err(error) => Err(error),
        }
    }

    /// Checks that an older Redis synchronises each write with the disk before it answers.
    async fn checked_answer(self) -> Result<()> {
        let state = self.store.redis().state(true).await?;
        if state.appends == Some(true) && state.fsync.as_deref() == Some("always") {
            return Ok(());
        }
        let version = state.version.as_deref().unwrap_or("of unknown version");
        let keeps = state.keeps();
        Err(refused(&format!(
            "redis {version} has no WAITAOF (Redis 7.2 or later, Valkey 8 or later has), and keeps {keeps}, not each write \
             before its answer (appendonly yes, appendfsync always); run: redis-cli CONFIG SET appendonly yes, {SYNC_ALWAYS}"
        )))
    }
}

impl JobStore<'_> {
    /// Pushes the replies that wait for the confirmation of their jobs' ends.
    pub async fn push_replies(self, ids: &[JobId]) -> Result<u64> {
        let mut pushed = 0;
        for ids in ids.chunks(JOBS_PER_CALL) {
            let ids: Vec<&str> = ids.iter().map(JobId::as_str).collect();
            let script = &self.store.scripts.push_replies;
            pushed += self.store.run_script::<u64>("pushing replies", script, ids).await?;
        }
        Ok(pushed)
    }
}

fn refused(why: &str) -> StoreError {
    let doing = "confirming that a job is on the disk of redis";
    StoreError::failed(doing, format!("{why}; or leave out redis.ack and --durable"))
}

fn not_confirmed(how: How, arrived: u64) -> StoreError {
    let within = CONFIRMED_WITHIN.as_secs();
    let reason = match how {
        How::Wait(wanted) => {
            format!("{arrived} of {wanted} replicas have it after {within} s (redis.ack)")
        }
        How::WaitAof | How::Answer => {
            format!("its append-only file was not synchronised with the disk within {within} s")
        }
    };
    StoreError::failed(CONFIRMING, reason)
}

fn wait_aof(within_ms: u64) -> redis::Cmd {
    let mut command = redis::cmd("WAITAOF");
    command.arg(1).arg(0).arg(within_ms);
    command
}
