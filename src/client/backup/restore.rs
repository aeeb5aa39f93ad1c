//! Restores a backup: first all jobs and objects, then the way of each job that has not ended.

use std::collections::BTreeMap;
use std::io::BufRead;

use jiff::Timestamp;

use super::{BackupError, BackupReader};
use crate::client::Client;
use crate::proto::backup::{BackupLine, DeadCopy, IndexesCopy, JobCopy, ObjectCopy, ScriptCopy};
use crate::proto::job::{JobId, JobStatus};
use crate::proto::object::{Context, Field};
use crate::proto::pauses::Pauses;
use crate::proto::queue::Queue;
use crate::proto::shard::Shard;
use crate::proto::text::counted;
use crate::store::{CronEdit, RetryOutcome, ScriptEdit, Store};

/// The limits of one call: objects, and bytes of their bodies, exceeded by one object at most.
const OBJECTS: usize = 100;
const BYTES: usize = 4 << 20;
/// The time that the log of a job is kept if the backup does not say.
const LOG_TTL_MS: u64 = 24 * 3_600_000;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Restored {
    pub jobs: u64,
    /// The jobs that an actor ran at the time of the backup: they run again.
    pub again: u64,
    /// Jobs whose fields name no queue: they stay `created`.
    pub stay: u64,
    pub objects: u64,
}

struct Waiting {
    id: JobId,
    status: JobStatus,
    /// The first in its queue is first.
    order: (u8, i64),
    queue: Option<Queue>,
    pending: Vec<String>,
}

struct RestoreRun<'a> {
    client: &'a Client,
    /// The shard whose lines are read.
    store: &'a Store,
    restored: Restored,
    waiting: Vec<Waiting>,
    graphs: Vec<JobId>,
    log_ttl_ms: u64,
    /// The time from the backup to its restore.
    later_us: i64,
    indexed: Option<IndexesCopy>,
    objects: Vec<ObjectCopy>,
    /// The bytes of their lines.
    objects_bytes: usize,
}

/// Restores a backup into the namespace of a client, which must have neither jobs nor objects. The
/// backup has been read to its end before, so that its checksum is known to be right.
///
/// # Errors
/// [`BackupError`]. If it comes after the first job was restored, the namespace has a part of the
/// jobs; those that had not ended are `created` and do not run.
pub async fn restore<R: BufRead>(
    client: &Client,
    reader: &mut BackupReader<R>,
) -> Result<Restored, BackupError> {
    let head = reader.head()?;
    let (here, needed) = (client.shards.count().get(), head.shards.unwrap_or(1));
    if needed > here {
        return Err(BackupError::Rejected(format!(
            "it has the jobs of {needed} shards, but the configuration has {}; set redis.shards to {needed} or \
             more",
            counted(here, "shard", "shards")
        )));
    }
    if client.shards.each(|store| store.restore().is_empty()).await?.contains(&false) {
        let namespace = client.store.keys().namespace();
        return Err(BackupError::Rejected(format!(
            "the namespace {namespace} has jobs or objects; choose another with --into NAMESPACE"
        )));
    }
    let now = client.system().now().await?;
    let later_us =
        head.time.parse().map_or(0, |taken: Timestamp| now.duration_since(taken).as_micros());
    let later_us = i64::try_from(later_us).unwrap_or_default();
    let mut restore = RestoreRun {
        client,
        store: &client.store,
        restored: Restored::default(),
        waiting: Vec::new(),
        graphs: Vec::new(),
        log_ttl_ms: LOG_TTL_MS,
        later_us,
        indexed: None,
        objects: Vec::new(),
        objects_bytes: 0,
    };
    while let Some(line) = reader.next_line()? {
        restore.line(line, reader.line_bytes()).await?;
    }
    restore.write_objects().await?;
    restore.send_on_their_way().await?;
    let Restored { jobs, objects, .. } = &restore.restored;
    let (jobs, objects) = (counted(*jobs, "job", "jobs"), counted(*objects, "object", "objects"));
    client.audit().note("backup.restore", format!("{jobs} and {objects}")).await;
    Ok(restore.restored)
}

impl RestoreRun<'_> {
    async fn script(&self, script: &ScriptCopy) -> Result<(), BackupError> {
        let json = |value: Result<String, serde_json::Error>| {
            value.map_err(|error| BackupError::Rejected(error.to_string()))
        };
        let definition = json(serde_json::to_string(&script.definition))?;
        let provenance = json(serde_json::to_string(&script.story))?;
        let edit = ScriptEdit::Restore {
            version: script.version,
            definition: &definition,
            text: &script.script,
            provenance: &provenance,
        };
        self.client.store.published_scripts().edit(&script.name, edit).await?;
        Ok(())
    }

    async fn line(&mut self, line: BackupLine, bytes: usize) -> Result<(), BackupError> {
        let store = self.store;
        match line {
            BackupLine::Backup(_) | BackupLine::End(_) => {}
            BackupLine::Shard(number) => {
                let missing =
                    || BackupError::Rejected(format!("its shard {number} is not in its head"));
                let shard = self.client.shards.count().shard(number).ok_or_else(missing)?;
                self.store = self.client.shards.at(shard);
            }
            BackupLine::Paused(names) => {
                let Pauses { queues, rules } = Pauses::of_names(&names);
                let queues: Vec<Queue> = queues.into_iter().collect();
                self.client.shards.each(|store| store.queues().pause(&queues)).await?;
                for rule in &rules {
                    self.client.queues().pause_by_rule(rule).await?;
                }
            }
            BackupLine::Cron(cron) => drop(self.client.store.restore().cron(&cron).await?),
            BackupLine::CronAdded(added) => {
                let store = &self.client.store;
                store.cron().edit(&added.name, CronEdit::Restore(&added.definition)).await?;
            }
            BackupLine::Script(script) => self.script(&script).await?,
            BackupLine::Limit(limit) => drop(store.restore().limit(&limit).await?),
            BackupLine::Dead(dead) => self.dead(dead).await?,
            BackupLine::Graph(graph) => {
                if self.client.of(&graph.id)?.restore().graph(&graph).await? {
                    self.graphs.push(graph.id);
                }
            }
            // Of a graph whose id was taken meanwhile, nothing.
            BackupLine::GraphJobs(jobs) if self.graphs.last() != Some(&jobs.id) => {}
            BackupLine::GraphJobs(jobs) => {
                self.client.of(&jobs.id)?.restore().graph_jobs(&jobs).await?;
            }
            BackupLine::Job(job) => self.job(job).await?,
            BackupLine::Log(log) => {
                self.client.of(&log.id)?.restore().log(&log, self.log_ttl_ms).await?;
            }
            BackupLine::Notify(copy) => {
                // Messages are on the home shard.
                let home = &self.client.store;
                let store = if copy.messages.is_empty() { store } else { home };
                store.restore().notify(&copy).await?;
            }
            BackupLine::Indexes(indexes) => {
                self.write_objects().await?;
                self.indexed = Some(indexes);
            }
            BackupLine::Object(object) => {
                let of = self.indexed.as_ref();
                let is_next = of.is_some_and(|of| {
                    of.context == object.context && of.object_type == object.object_type
                });
                if !is_next || self.objects.len() >= OBJECTS || self.objects_bytes >= BYTES {
                    self.write_objects().await?;
                }
                if !is_next {
                    let (context, object_type) =
                        (object.context.clone(), object.object_type.clone());
                    self.indexed = Some(IndexesCopy { context, object_type, fields: Vec::new() });
                }
                self.objects_bytes += bytes;
                self.objects.push(object);
            }
        }
        Ok(())
    }

    /// Restores the list of dead letters of a type. A backup of one shard may have ids that tell another here.
    async fn dead(&self, dead: DeadCopy) -> Result<(), BackupError> {
        let DeadCopy { script_type, ids } = dead;
        let mut of_shards: BTreeMap<Shard, Vec<JobId>> = BTreeMap::new();
        for id in ids {
            of_shards.entry(self.client.of(&id)?.shard()).or_default().push(id);
        }
        for (shard, ids) in of_shards {
            let dead = DeadCopy { script_type: script_type.clone(), ids };
            self.client.shards.at(shard).restore().dead(&dead).await?;
        }
        Ok(())
    }

    async fn job(&mut self, job: JobCopy) -> Result<(), BackupError> {
        let kept = self.client.job.kept();
        if !self.client.of(&job.id)?.restore().job(&job, self.later_us, kept).await? {
            let message = format!("the id of job {} is taken: it was submitted meanwhile", job.id);
            return Err(BackupError::Rejected(message));
        }
        self.restored.jobs += 1;
        self.log_ttl_ms = job.log_ttl_ms.unwrap_or(LOG_TTL_MS);
        let status = job.status();
        if status.is_terminal() || status == JobStatus::Created {
            return Ok(());
        }
        // Jobs that ran go to the front of their queues, as after the death of their actor.
        let rank = match status {
            JobStatus::Started => 0,
            JobStatus::Dispatched => 1,
            _ => 2,
        };
        let order = (rank, job.order.unwrap_or(i64::MAX));
        let queue = job.queue.and_then(|queue| queue.parse().ok());
        self.waiting.push(Waiting { id: job.id, status, order, queue, pending: job.pending });
        Ok(())
    }

    async fn send_on_their_way(&mut self) -> Result<(), BackupError> {
        self.waiting.sort_by_key(|job| job.order);
        let kept = self.client.job.kept();
        for graph in self.graphs.drain(..) {
            self.client.of(&graph)?.graphs().close(&graph, kept).await?;
        }
        for Waiting { id, status, queue, pending, .. } in self.waiting.drain(..) {
            let place =
                self.client.of(&id)?.restore().place(&id, status, queue.as_ref(), &pending, kept);
            match place.await? {
                RetryOutcome::Moved(_) if status == JobStatus::Started => self.restored.again += 1,
                RetryOutcome::Illegal => self.restored.stay += 1,
                // It runs, or was deleted meanwhile.
                _ => {}
            }
        }
        Ok(())
    }

    async fn write_objects(&mut self) -> Result<(), BackupError> {
        let objects = std::mem::take(&mut self.objects);
        self.objects_bytes = 0;
        let Some((of, first)) = self.indexed.as_ref().zip(objects.first()) else { return Ok(()) };
        let context: Context = first.context.parse().map_err(crate::client::ClientError::from)?;
        let fields: &[Field] = &of.fields;
        let store = &self.client.store;
        let taken = store.restore().objects(&context, &of.object_type, fields, &objects).await?;
        if let Some(id) = taken {
            let message =
                format!("the id of {} {id} is taken: it was written meanwhile", of.object_type);
            return Err(BackupError::Rejected(message));
        }
        self.restored.objects += objects.len() as u64;
        Ok(())
    }
}
