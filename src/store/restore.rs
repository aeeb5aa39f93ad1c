//! The writing side of a restore: one script per job, which checks before it writes.

use std::collections::BTreeMap;

use redis::ToRedisArgs;

use super::attempts::kept;
use super::jobs::moved;
use super::{RestoreStore, Result, RetryOutcome, Store, StoreError};
use crate::proto::backup::{
    Bytes, CronCopy, DeadCopy, GraphCopy, GraphJobsCopy, JobCopy, LimitCopy, LogCopy, NotifyCopy,
    ObjectCopy,
};
use crate::proto::job::{JobId, JobStatus, Retention};
use crate::proto::notification::NotifyMessage;
use crate::proto::object::{Context, Field, ObjectType};
use crate::proto::queue::Queue;

const DOING: &str = "restoring jobs";
const RESTORING_GRAPHS: &str = "restoring graphs";

/// Fields that a job loses with its actor.
const OF_THE_ATTEMPT: [&str; 5] = ["started_at", "actor", "boot_id", "progress", "progress_text"];
/// Fields that name slots, queues and keys of the old namespace.
const OF_THE_NAMESPACE: [&str; 4] = ["limits", "held_by", "legacy", "output_key"];

impl RestoreStore<'_> {
    /// Returns true if the namespace has neither jobs nor objects.
    pub async fn is_empty(self) -> Result<bool> {
        for mut index in self.store.backup().indexes().await? {
            if !self.store.backup().page(&mut index, 1).await?.is_empty() {
                return Ok(false);
            }
        }
        Ok(self.store.object_contexts(None, 1).await?.is_empty())
    }

    /// Restores a job: an ended one completely, with its place in the index so much later, any other as
    /// `created`. Returns false if its id is taken.
    pub async fn job(self, job: &JobCopy, later_us: i64, retention: Retention) -> Result<bool> {
        let mut script = self.store.scripts.restore_job.prepare_invoke();
        let ttl = job.ttl_ms.map(|ms| ms.max(1).to_string()).unwrap_or_default();
        let score = job.order.map(|order| order.saturating_add(later_us).to_string());
        script.arg(job.id.as_str()).arg(kept(retention)).arg(ttl).arg(score.unwrap_or_default());
        for (name, value) in fields_to_restore(job) {
            script.arg(name).arg(value);
        }
        let answer: String = self.store.invoke(DOING, &script).await?;
        Ok(answer == "ok")
    }

    /// Sends a restored job on its way, to the state that it had in the backup. It stays `created` if its fields name no queue.
    /// Calling again is safe.
    pub async fn place(
        self,
        id: &JobId,
        before: JobStatus,
        queue: Option<&Queue>,
        pending: &[String],
        retention: Retention,
    ) -> Result<RetryOutcome> {
        let queue = queue.map(ToString::to_string).unwrap_or_default();
        let arguments = (id.as_str(), before.as_str(), queue, kept(retention), pending);
        let answer: String =
            self.store.run_script(DOING, &self.store.scripts.restore_place, arguments).await?;
        moved(&answer, "").ok_or_else(|| StoreError::unexpected(DOING))
    }

    /// Restores a part of the log of a job, kept for `ttl_ms`. Calling again is safe.
    pub async fn log(self, log: &LogCopy, ttl_ms: u64) -> Result<()> {
        let mut script = self.store.scripts.restore_log.prepare_invoke();
        script.arg(log.id.as_str()).arg(ttl_ms.max(1)).arg(log.entries.len());
        for (id, fields) in &log.entries {
            script.arg(id).arg(fields.len());
            for field in fields {
                script.arg(field.decode().unwrap_or_default());
            }
        }
        self.store.invoke::<u64>("restoring the log of a job", &script).await.map(drop)
    }

    /// Restores the state of a periodic job. Returns false if it has one.
    pub async fn cron(self, cron: &CronCopy) -> Result<bool> {
        let values = |fields: &BTreeMap<String, Bytes>| -> Vec<Vec<u8>> {
            let of_field = |(name, value): (&String, &Bytes)| {
                [name.clone().into_bytes(), value.decode().unwrap_or_default()]
            };
            fields.iter().flat_map(of_field).collect()
        };
        let (name, ttl_ms) = (cron.name.as_str(), Some(cron.ttl_ms));
        self.key("cron_ends", name, ttl_ms, values(&cron.ends)).await?;
        self.key("cron", name, ttl_ms, values(&cron.fields)).await
    }

    /// Restores the starts under a limit. Returns false if it has some.
    pub async fn limit(self, limit: &LimitCopy) -> Result<bool> {
        let starts: Vec<(i64, &str)> =
            limit.starts.iter().map(|(start, at)| (*at, start.as_str())).collect();
        self.key("limit", &limit.name, Some(limit.ttl_ms), starts).await
    }

    /// Restores the dead letters of a script type. Returns false if it has some.
    pub async fn dead(self, dead: &DeadCopy) -> Result<bool> {
        let ids: Vec<&str> = dead.ids.iter().map(JobId::as_str).collect();
        self.key("dead", dead.script_type.as_str(), None, ids).await
    }

    async fn key(
        self,
        kind: &str,
        name: &str,
        ttl_ms: Option<u64>,
        values: Vec<impl ToRedisArgs>,
    ) -> Result<bool> {
        if values.is_empty() {
            return Ok(true);
        }
        let ttl = ttl_ms.map(|ms| ms.max(1).to_string()).unwrap_or_default();
        let (doing, arguments) = ("restoring keys", (kind, name, ttl, values));
        let answer: String =
            self.store.run_script(doing, &self.store.scripts.restore_key, arguments).await?;
        Ok(answer == "ok")
    }

    /// Restores objects of one type and context, all or none. Returns the id that is taken, if one is.
    pub async fn objects(
        self,
        context: &Context,
        object_type: &ObjectType,
        indexed: &[Field],
        objects: &[ObjectCopy],
    ) -> Result<Option<String>> {
        let mut script = self.store.scripts.restore_objects.prepare_invoke();
        script.arg(context.as_key_part()).arg(object_type.as_str()).arg(indexed.len());
        script.arg(indexed.iter().map(Field::as_str).collect::<Vec<_>>()).arg(objects.len());
        for object in objects {
            let ObjectCopy { version, created_ms, modified_ms, body, .. } = object;
            let terms: Vec<String> = indexed
                .iter()
                .flat_map(|field| {
                    let terms = field.terms(body).into_iter();
                    terms.flat_map(move |term| [field.to_string(), term])
                })
                .collect();
            script
                .arg(&object.id)
                .arg(format!("{version} {created_ms} {modified_ms}"))
                .arg(serde_json::Value::from(terms).to_string())
                .arg(serde_json::Value::Object(body.clone()).to_string());
        }
        let answer: String = self.store.invoke("restoring objects", &script).await?;
        Ok(Some(answer).filter(|answer| answer != "ok"))
    }

    /// Restores a graph or batch, which ends after [`GraphStore::close`](super::GraphStore::close). Returns false if its id is taken.
    pub async fn graph(self, graph: &GraphCopy) -> Result<bool> {
        let mut script = self.store.scripts.restore_graph.prepare_invoke();
        script.arg(graph.id.as_str()).arg(graph.ttl_ms.max(1));
        for (name, value) in &graph.fields {
            script.arg(name).arg(value.decode().unwrap_or_default());
        }
        let answer: String = self.store.invoke(RESTORING_GRAPHS, &script).await?;
        Ok(answer == "ok")
    }

    /// Restores jobs of a graph, which have been restored themselves. Calling again is safe.
    pub async fn graph_jobs(self, of: &GraphJobsCopy) -> Result<()> {
        for jobs in of.jobs.chunks(Store::GRAPHS_PER_PAGE_MAX) {
            let jobs: Vec<_> = jobs.iter().map(|(job, score)| (job.as_str(), *score)).collect();
            let arguments = (of.id.as_str(), "", jobs);
            self.store
                .run_script::<String>(
                    RESTORING_GRAPHS,
                    &self.store.scripts.restore_graph,
                    arguments,
                )
                .await?;
        }
        Ok(())
    }

    /// Restores notifications. A message is tried for an hour again, with its id. Calling again is safe.
    pub async fn notify(self, copy: &NotifyCopy) -> Result<()> {
        let mut script = self.store.scripts.restore_notify.prepare_invoke();
        script.arg(copy.messages.len());
        for (due_ms, message) in &copy.messages {
            let again = NotifyMessage { tried_ms: 0, ..message.clone() };
            let text = serde_json::to_string(&again).unwrap_or_default();
            script.arg(&message.id).arg(due_ms).arg(text);
        }
        let bytes = |of: &Bytes| of.decode().unwrap_or_default();
        script.arg(copy.events.len());
        for (id, fields) in &copy.events {
            script.arg(id).arg(fields.len());
            for field in fields {
                script.arg(bytes(field));
            }
        }
        for (name, at) in &copy.failing {
            script.arg(bytes(name)).arg(bytes(at));
        }
        self.store.invoke::<String>("restoring notifications", &script).await.map(drop)
    }
}

/// Returns the hash of a job as `restore_job.lua` stores it.
fn fields_to_restore(job: &JobCopy) -> BTreeMap<&str, Vec<u8>> {
    let status = job.status();
    let fields = job.fields.iter();
    let mut fields: BTreeMap<&str, Vec<u8>> = fields
        .map(|(name, value)| (name.as_str(), Bytes::decode(value).unwrap_or_default()))
        .collect();
    for name in OF_THE_NAMESPACE {
        fields.remove(name);
    }
    if status.is_terminal() {
        return fields;
    }
    fields.insert("status", JobStatus::Created.as_str().into());
    // A foreign program need not write it.
    let queue = job.queue.as_ref().and_then(|queue| queue.parse::<Queue>().ok());
    if let Some(queue) = queue.filter(|_| !fields.contains_key("script_type")) {
        fields.insert("script_type", queue.target.script_type().as_str().into());
    }
    // Those that do not fit are added again as they begin to wait.
    if fields.remove("dependents_more").is_some() {
        fields.remove("dependents");
    }
    if status == JobStatus::Started {
        for name in OF_THE_ATTEMPT {
            fields.remove(name);
        }
        let attempt = job.text("attempt").and_then(|text| text.parse::<u32>().ok());
        let attempt = attempt.unwrap_or(1).saturating_sub(1);
        fields.insert("attempt", attempt.to_string().into_bytes());
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    fn restored(status: &str) -> BTreeMap<String, String> {
        let all = [
            ("status", status),
            ("attempt", "2"),
            ("actor", "osis:default:1"),
            ("limits", "a"),
            ("output", "x"),
        ];
        let fields = all.map(|(name, value)| (name.to_owned(), Bytes::Text(value.to_owned())));
        let job = JobCopy {
            id: "j1".parse().expect("legal"),
            fields: fields.into(),
            queue: None,
            order: None,
            pending: Vec::new(),
            ttl_ms: None,
            log_ttl_ms: None,
        };
        let text = |bytes| String::from_utf8(bytes).expect("text");
        fields_to_restore(&job)
            .into_iter()
            .map(|(name, value)| (name.to_owned(), text(value)))
            .collect()
    }

    #[test]
    fn started_job_goes_back_without_its_actor_and_with_its_attempt_uncharged() {
        let fields = restored("started");
        assert_eq!(fields["status"], "created");
        assert_eq!(fields["attempt"], "1");
        assert!(!fields.contains_key("actor") && !fields.contains_key("limits"));
    }

    #[test]
    fn ended_job_stays_as_it_is_but_for_its_slots() {
        let fields = restored("finished");
        assert_eq!(fields["status"], "finished");
        assert_eq!(fields["actor"], "osis:default:1");
        assert!(!fields.contains_key("limits"));
    }
}
