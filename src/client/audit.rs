//! The record of changes. Every function of the client that changes what is there already notes it here, so that
//! no entrance can forget it.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tracing::{info, warn};

use super::{AuditClient, Client, Result};
use crate::proto::audit::{AUDIT_DAYS, AuditRecord, Author};
use crate::proto::job::JobId;
use crate::proto::job_rights::JobRights;
use crate::store::{Backoff, Store};

/// The target of warnings of changes that were made and that the record lacks.
pub const AUDIT_LOST: &str = "hero::audit_lost";

/// The longest time that the record of a call whose answer was lost waits for Redis.
const IN_DOUBT_MAX: Duration = Duration::from_mins(10);

const BY_CHARS_MAX: usize = 200;

#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
    /// Only records of authors whose name contains this text.
    pub who: Option<String>,
    /// Only records of this change, such as `job.stop`, or of one noun, such as `job`.
    pub what: Option<String>,
    pub limit: usize,
}

/// Returns the name of this machine.
pub fn host_name() -> String {
    nix::unistd::gethostname().unwrap_or_default().to_string_lossy().into_owned()
}

pub(super) fn of_process() -> Author {
    let who = format!("uid {}", nix::unistd::geteuid());
    Author { names: vec![who.clone()], who, from: host_name(), through: "library" }
}

impl Client {
    /// Returns a client whose changes are recorded for an author; by default that is the user of the process.
    #[must_use]
    pub fn as_author(mut self, author: Author) -> Self {
        self.author = Arc::new(author);
        self
    }

    /// Sees and changes the jobs that a call names with the rights of a caller: a job beyond them is none.
    #[must_use]
    pub fn acting_as(self, rights: JobRights) -> Self {
        if rights == JobRights::default() {
            return self;
        }
        let rights = Arc::new(rights);
        let shards = self.shards.map(|store| store.acting_as(Arc::clone(&rights)));
        Self { store: shards.home().clone(), shards, ..self }
    }

    /// Changes these jobs only while they are those that were created at these times: their ids may be used again after a
    /// check.
    #[must_use]
    pub fn pinned(&self, jobs: impl IntoIterator<Item = (JobId, Option<Timestamp>)>) -> Self {
        let jobs = jobs.into_iter().filter_map(|(id, created)| Some((id, created?)));
        let jobs: BTreeMap<JobId, Timestamp> = jobs.collect();
        if jobs.is_empty() {
            return self.clone();
        }
        self.with_stores(|store| store.pinned(jobs.clone()))
    }

    pub(super) fn with_stores(&self, change: impl Fn(&Store) -> Store) -> Self {
        let shards = self.shards.map(|store| change(&store));
        Self { store: shards.home().clone(), shards, ..self.clone() }
    }

    /// Returns the name of a person or program as it is kept, and the time now.
    pub(super) async fn by_now(&self, by: &str) -> Result<(String, String)> {
        let by = by.chars().take(BY_CHARS_MAX).collect();
        Ok((by, format!("{:.3}", self.system().now().await?)))
    }

    /// Records a call whose answer was lost, so that nobody knows whether it changed something: as soon as Redis answers
    /// again, for a bounded time.
    pub async fn note_in_doubt(self, what: &'static str, to: String, error: String) {
        let to = format!("{to}: it is not known whether this was done: {error}");
        self.audit().log_change(what, &to);
        let noted = tokio::time::timeout(IN_DOUBT_MAX, async {
            let mut backoff = Backoff::default();
            // A record that is sent meanwhile could be made twice.
            while self.store.ping().await.is_err() {
                tokio::time::sleep(backoff.failed()).await;
            }
            self.store.audit().add(&self.author, what, &to).await
        });
        let lost = match noted.await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.to_string(),
            Err(_) => "redis has not answered again".to_owned(),
        };
        let who = &*self.author.who;
        warn!(target: AUDIT_LOST, "hero audit has no record that {who} called {what} of {to}: {lost}");
    }
}

impl AuditClient<'_> {
    /// Records a change that was made. A failure is logged, since the change is made.
    pub(super) async fn note(self, what: &'static str, to: impl Display) {
        let to = to.to_string();
        self.log_change(what, &to);
        if let Err(error) = self.client.store.audit().add(&self.client.author, what, &to).await {
            let who = &*self.client.author.who;
            warn!(
                target: AUDIT_LOST,
                "it is done, but hero audit has no record that {who} called {what} of {to}: {error}"
            );
        }
    }

    /// Records a delivery of a webhook with its verdict.
    pub async fn note_delivery(self, delivery: String) {
        self.note("hook.receive", &delivery).await;
    }

    /// Records the settings that a reload of a unit has changed: each key with its old and its new value.
    pub async fn note_reload(self, changes: &[String]) {
        for change in changes {
            self.note("config.reload", change).await;
        }
    }

    fn log_change(self, what: &str, to: &str) {
        let by = &*self.client.author;
        let (who, from, through) = (&*by.who, &*by.from, by.through);
        info!(
            target: "hero::audit",
            hero_audit = 1, who, what, to, from, through,
            "{} by {through}: {what} {to}", by.signature()
        );
    }

    /// Lists records of changes, the newest first.
    pub async fn list(self, filter: &AuditFilter) -> Result<Vec<AuditRecord>> {
        let ms = |time: Timestamp| u64::try_from(time.as_millisecond()).unwrap_or_default();
        let kept_since =
            ms(self.client.system().now().await?).saturating_sub(AUDIT_DAYS * 24 * 3_600_000);
        let since = filter.since.map_or(kept_since, |time| ms(time).max(kept_since));
        let wanted = |record: &AuditRecord| {
            filter.who.as_ref().is_none_or(|who| record.who.contains(who.as_str()))
                && filter.what.as_ref().is_none_or(|what| {
                    let rest = record.what.strip_prefix(what.as_str());
                    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
                })
        };
        Ok(self
            .client
            .store
            .audit()
            .list(since, filter.until.map(ms), filter.limit, wanted)
            .await?)
    }
}
