//! Backup and restore of a namespace, while it is in use.

mod file;
mod restore;

pub use file::{BackupReader, BackupWriter};
pub use restore::{Restored, restore};

use std::collections::HashSet;
use std::io::Write;

use jiff::Timestamp;

use super::{Client, ClientError};
use crate::proto::backup::{BackupLine, CronAddedCopy, FORMAT, Head, ObjectCopy, ScriptCopy};
use crate::proto::cron::CronName;
use crate::proto::job::JobId;
use crate::proto::named_script::{PublishedScript, ScriptUse, ScriptVersion};
use crate::proto::object::{Context, ObjectId, ObjectType};
use crate::proto::shard::ShardCount;
use crate::store::{BackupIndex, CopiedJob, Store};

/// Ids and objects of one page.
const PAGE: usize = 500;
/// Contexts of one page.
const CONTEXTS: usize = 100;
/// Passes over the indexes. Each finds jobs that the one before missed, as they went back to an
/// earlier state meanwhile.
const PASSES_MAX: usize = 10;

#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// Redis or its data do not allow it.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The file cannot be read or written.
    #[error(transparent)]
    File(#[from] std::io::Error),
    /// The file is not a complete backup, or cannot be restored here.
    #[error("{0}")]
    Rejected(String),
}

impl From<crate::store::StoreError> for BackupError {
    fn from(error: crate::store::StoreError) -> Self {
        Self::Client(error.into())
    }
}

struct BackupRun<'a, W> {
    client: &'a Client,
    /// The shard that is copied.
    store: &'a Store,
    writer: &'a mut BackupWriter<W>,
    began: Timestamp,
    copied: HashSet<JobId>,
}

impl Client {
    /// Writes a backup of the namespace, with all its shards: its jobs with their logs, objects, paused queues,
    /// dead letters, and the state of these periodic jobs. Each job is copied in one step; the others
    /// go on meanwhile. A job that is submitted or deleted meanwhile may be in it or not.
    ///
    /// # Errors
    /// [`BackupError`]; the file is not complete then.
    pub async fn backup<W: Write>(
        &self,
        periodic_jobs: &[CronName],
        writer: &mut BackupWriter<W>,
    ) -> Result<(), BackupError> {
        let began = self.store.now().await?;
        let has_several = self.shards.count() != ShardCount::ONE;
        let head = Head {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            namespace: self.store.keys().namespace().to_string(),
            time: format!("{began:.3}"),
            shards: has_several.then(|| self.shards.count().get()),
        };
        writer.write(&BackupLine::Backup(head))?;
        let (store, copied) = (&self.store, HashSet::new());
        let mut backup = BackupRun { client: self, store, writer, began, copied };
        backup.schedules(periodic_jobs).await?;
        backup.scripts().await?;
        for store in self.shards.all() {
            if has_several {
                backup.writer.write(&BackupLine::Shard(store.shard().number()))?;
            }
            (backup.store, backup.began) = (store, store.now().await?);
            backup.queues_and_limits().await?;
            backup.jobs().await?;
            backup.graphs().await?;
            backup.events().await?;
        }
        for copy in self.store.backup().messages().await? {
            backup.writer.write(&BackupLine::Notify(copy))?;
        }
        backup.objects().await?;
        writer.end()?;
        Ok(())
    }
}

impl<W: Write> BackupRun<'_, W> {
    async fn queues_and_limits(&mut self) -> Result<(), BackupError> {
        let paused = self.store.queues().pauses().await?.names();
        if !paused.is_empty() {
            self.writer.write(&BackupLine::Paused(paused))?;
        }
        for limit in self.store.backup().limits().await? {
            self.writer.write(&BackupLine::Limit(limit))?;
        }
        Ok(())
    }

    async fn schedules(&mut self, periodic_jobs: &[CronName]) -> Result<(), BackupError> {
        let store = &self.client.store;
        let added = store.cron().added().await?;
        let is_of_file = |name: &CronName| periodic_jobs.contains(name);
        let others = added.iter().map(|(name, _)| name).filter(|name| !is_of_file(name));
        for name in periodic_jobs.iter().chain(others) {
            if let Some(cron) = store.backup().cron(name).await? {
                self.writer.write(&BackupLine::Cron(cron))?;
            }
        }
        for (name, definition) in added {
            self.writer.write(&BackupLine::CronAdded(CronAddedCopy { name, definition }))?;
        }
        Ok(())
    }

    async fn scripts(&mut self) -> Result<(), BackupError> {
        let store = &self.client.store;
        for name in store.published_scripts().list().await?.into_keys() {
            for version in store.published_scripts().versions(&name).await?.iter().rev() {
                let used = ScriptUse { name: name.clone(), version: Some(version.version) };
                // It may have gone meanwhile.
                let Some(PublishedScript { name, of, text: script }) =
                    store.published_scripts().get(&used).await?
                else {
                    continue;
                };
                let ScriptVersion { version, story, definition } = of;
                let copy = ScriptCopy { name, version, story, definition, script };
                self.writer.write(&BackupLine::Script(copy))?;
            }
        }
        Ok(())
    }

    async fn jobs(&mut self) -> Result<(), BackupError> {
        for _ in 0..PASSES_MAX {
            let mut missed = 0;
            // In the order of a job's life: a job cannot overtake the reader unseen.
            for index in self.store.backup().indexes().await? {
                missed += self.jobs_of(index).await?;
            }
            if missed == 0 {
                break;
            }
        }
        for dead in self.store.backup().dead().await? {
            self.writer.write(&BackupLine::Dead(dead))?;
        }
        Ok(())
    }

    /// Copies the jobs of one index that are not copied yet. Returns how many of them existed as the
    /// backup began.
    async fn jobs_of(&mut self, mut index: BackupIndex) -> Result<usize, BackupError> {
        let mut missed = 0;
        loop {
            let page = self.store.backup().page(&mut index, PAGE).await?;
            if page.is_empty() {
                return Ok(missed);
            }
            let new = page.into_iter().filter(|id| !self.copied.contains(id));
            let new: Vec<JobId> = new.collect();
            for ids in new.chunks(Store::BACKUP_JOBS_MAX) {
                for copy in self.store.backup().jobs(ids, &index).await?.into_iter().flatten() {
                    // A list may name a job twice.
                    if self.copied.insert(copy.job.id.clone()) {
                        let created =
                            copy.job.text("created_at").and_then(|time| time.parse().ok());
                        missed +=
                            usize::from(created.is_none_or(|time: Timestamp| time <= self.began));
                        self.job(copy).await?;
                    }
                }
            }
        }
    }

    async fn job(&mut self, copy: CopiedJob) -> Result<(), BackupError> {
        let CopiedJob { job, mut log, log_until } = copy;
        let id = job.id.clone();
        self.writer.write(&BackupLine::Job(job))?;
        while let Some((last, _)) = log.entries.last() {
            let last = last.clone();
            self.writer.write(&BackupLine::Log(log))?;
            let Some(until) = log_until.as_ref().filter(|until| **until != last) else { break };
            log = self.store.backup().log(&id, &last, until).await?;
        }
        Ok(())
    }

    async fn graphs(&mut self) -> Result<(), BackupError> {
        let (store, mut next) = (self.store, None);
        loop {
            let page = store.graphs().list(PAGE, next).await?;
            for graph in page.items {
                let Some(copy) = store.backup().graph(&graph.id).await? else { continue };
                self.writer.write(&BackupLine::Graph(copy))?;
                let mut after = None;
                loop {
                    let jobs = store.backup().graph_jobs(&graph.id, after).await?;
                    after = jobs.jobs.last().map(|(_, score)| *score);
                    if after.is_none() {
                        break;
                    }
                    self.writer.write(&BackupLine::GraphJobs(jobs))?;
                }
            }
            next = page.next;
            if next.is_none() {
                return Ok(());
            }
        }
    }

    /// Copies what is not told yet. An event that a supervisor reads meanwhile is copied as a message of the same id too.
    async fn events(&mut self) -> Result<(), BackupError> {
        let (store, mut after) = (self.store, None);
        let look = self.client.store.notifications().look().await?;
        loop {
            let copy = store.backup().events(&look, after.as_deref()).await?;
            let Some((last, _)) = copy.events.last() else { break };
            after = Some(last.clone());
            self.writer.write(&BackupLine::Notify(copy))?;
        }
        for copy in store.backup().failing().await? {
            self.writer.write(&BackupLine::Notify(copy))?;
        }
        Ok(())
    }

    async fn objects(&mut self) -> Result<(), BackupError> {
        let mut after: Option<Context> = None;
        loop {
            let page = self.client.objects().contexts(after.as_ref(), CONTEXTS).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = Some(last.clone());
            for context in page {
                for object_type in self.client.objects().counts(&context).await?.into_keys() {
                    self.objects_of(&context, &object_type).await?;
                }
            }
        }
    }

    async fn objects_of(
        &mut self,
        context: &Context,
        object_type: &ObjectType,
    ) -> Result<(), BackupError> {
        let indexes = self.client.store.backup().object_indexes(context, object_type).await?;
        self.writer.write(&BackupLine::Indexes(indexes))?;
        let mut after: Option<ObjectId> = None;
        loop {
            let page = self.client.objects().page(context, object_type, after.as_ref(), PAGE);
            let (objects, next) = page.await?;
            for object in objects {
                self.writer.write(&BackupLine::Object(ObjectCopy {
                    context: context.text(),
                    object_type: object_type.clone(),
                    id: object.id.to_string(),
                    version: object.version,
                    created_ms: object.created_ms,
                    modified_ms: object.modified_ms,
                    body: object.body,
                }))?;
            }
            match next {
                Some(next) => after = Some(next),
                None => return Ok(()),
            }
        }
    }
}
