//! Queues: lists, pauses, resumes and purges them.

use std::collections::{BTreeMap, BTreeSet};

use super::{ClientError, QueueClient, Result};
use crate::config::{Config, Unit};
use crate::error::{Error, Exit};
use crate::proto::job::{JobId, JobStatus};
use crate::proto::pauses::{PauseRule, Pauses};
use crate::proto::queue::Queue;
use crate::proto::target::Target;
use crate::proto::text::{counted, did_you_mean, nearest};
use crate::store::{Blocker, JobSummary, ListQuery, QueueState};

/// The start of the names of all queues.
const TYPE: &str = "type:";

impl QueueClient<'_> {
    /// Lists every queue that may hold jobs or is paused, by name.
    pub async fn list(self) -> Result<Vec<QueueState>> {
        self.list_with([]).await
    }

    /// Rejects queues that nothing knows, which are mistyped or of a later time.
    ///
    /// # Errors
    /// [`Exit::Data`] if no configured or live actor serves one of them and it holds no jobs; the code of
    /// [`ClientError::Store`].
    pub async fn check_known(self, queues: &[Queue], config: &Config) -> Result<(), Error> {
        let known = self.targets_with(config).await?;
        let Some(unknown) = queues.iter().find(|queue| !known.contains(&queue.target)) else {
            return Ok(());
        };
        let unknown = unknown.target.to_string();
        let names: Vec<String> = known.iter().map(ToString::to_string).collect();
        // All names begin alike.
        let known = names.iter().filter_map(|name| name.strip_prefix(TYPE));
        let near = nearest(unknown.trim_start_matches(TYPE), known);
        let near = near.map(|near| format!("{TYPE}{near}"));
        let message = format!(
            "unknown queue {unknown}: no configured or live actor serves it, and it holds no jobs \
             (--force accepts it){}",
            did_you_mean(near.as_deref())
        );
        Err(Error::new(Exit::Data, message))
    }

    /// Returns everything that is paused.
    pub async fn pauses(self) -> Result<Pauses> {
        Ok(together(self.client.shards.each(|store| store.queues().pauses()).await?))
    }

    /// Returns who paused queues last, by the names of queues and rules, as far as the latest records of changes tell.
    pub async fn paused_by(self) -> Result<BTreeMap<String, String>> {
        let mut records =
            self.client.store.audit().latest(|record| record.what == "queue.pause").await?;
        // The newest counts.
        records.reverse();
        Ok(records.into_iter().map(|record| (record.to, record.who)).collect())
    }

    /// Pauses all queues of a rule, also those that come later, as [`QueueClient::pause`] pauses some. Returns
    /// whether the rule is new.
    pub async fn pause_by_rule(self, rule: &PauseRule) -> Result<bool> {
        let is_new = self
            .client
            .shards
            .each(|store| store.queues().pause_by_rule(rule))
            .await?
            .contains(&true);
        if is_new {
            self.client.audit().note("queue.pause", rule).await;
        }
        Ok(is_new)
    }

    /// Ends the pause of all queues of a rule: the rules that pause no others, and the queues that were paused by
    /// their names. Returns the resumed ones.
    pub async fn resume_by_rule(self, rule: &PauseRule) -> Result<Pauses> {
        let ended =
            together(self.client.shards.each(|store| store.queues().resume_by_rule(rule)).await?);
        if ended != Pauses::default() {
            self.client.audit().note("queue.resume", rule).await;
        }
        Ok(ended)
    }

    /// Counts the running jobs of these queues, or of all: with a rule for all, also jobs of no known queue.
    pub async fn count_running(self, of: &Pauses) -> Result<u64> {
        let of_all = of.rules.contains(&PauseRule::default());
        let mut query = ListQuery {
            statuses: vec![JobStatus::Started],
            limit: ListQuery::LIMIT_MAX,
            ..ListQuery::default()
        };
        let mut running = 0;
        loop {
            let page = self.client.shards.list_jobs(&query).await?;
            let is_of = |job: &&JobSummary| {
                job.status == JobStatus::Started
                    && (of_all || job.queue().is_some_and(|own| of.covers(&own)))
            };
            running += page.items.iter().filter(is_of).count() as u64;
            query.cursor = page.next;
            if query.cursor.is_none() {
                return Ok(running);
            }
        }
    }

    /// Lists the known targets, and the targets of the configured types and actors.
    async fn targets_with(self, config: &Config) -> Result<BTreeSet<Target>> {
        let mut known = self.known_targets().await?;
        known.extend(config.types.keys().cloned().map(Target::any));
        let units = config.units.keys().filter_map(|name| config.unit(name).ok());
        for unit in units {
            let Unit::Actors(actors) = unit else { continue };
            let queues = actors.iter().flat_map(|actor| actor.id.queues());
            known.extend(queues.map(|queue| queue.target));
        }
        Ok(known)
    }

    /// Lists the targets that have live actors, waiting jobs or a paused queue, and every script
    /// type that ever had a job or an actor.
    pub async fn known_targets(self) -> Result<BTreeSet<Target>> {
        Ok(self
            .client
            .shards
            .each(|store| store.queues().known_targets())
            .await?
            .into_iter()
            .flatten()
            .collect())
    }

    /// Returns the reason why a dispatched job does not start, if it has one.
    pub async fn blocker(self, id: &JobId) -> Result<Option<Blocker>> {
        Ok(self.client.of(id)?.jobs().blocker(id).await?)
    }

    /// Pauses queues, on each shard all at once: no actor claims their jobs until they are resumed. Running jobs go on,
    /// and jobs may be submitted to them. Returns those that were not paused before. A foreign actor that pops
    /// ids itself is not affected.
    pub async fn pause(self, queues: &[Queue]) -> Result<Vec<Queue>> {
        let news = self.client.shards.each(|store| store.queues().pause(queues)).await?;
        Ok(self.changed("queue.pause", queues, &news).await)
    }

    /// Resumes queues that are paused by their names, on each shard all at once. Returns those that were.
    ///
    /// # Errors
    /// [`ClientError::PausedByRule`] if one would stay paused, and then nothing is changed; [`ClientError::Store`].
    pub async fn resume(self, queues: &[Queue]) -> Result<Vec<Queue>> {
        let pauses = self.pauses().await?;
        for queue in queues {
            if let Some(rule) = pauses.rules.iter().find(|rule| rule.covers(queue)) {
                let (queue, rule) = (queue.clone(), rule.clone());
                return Err(ClientError::PausedByRule { queue, rule });
            }
        }
        let news = self.client.shards.each(|store| store.queues().resume(queues)).await?;
        Ok(self.changed("queue.resume", queues, &news).await)
    }

    /// Returns the queues that a call changed on a shard, and records them.
    async fn changed(
        self,
        what: &'static str,
        queues: &[Queue],
        of_shards: &[Vec<bool>],
    ) -> Vec<Queue> {
        let is_changed = |number: usize| of_shards.iter().any(|of| of.get(number) == Some(&true));
        let numbered = queues.iter().enumerate();
        let changed: Vec<Queue> =
            numbered.filter(|(number, _)| is_changed(*number)).map(|(_, of)| of.clone()).collect();
        for queue in &changed {
            self.client.audit().note(what, queue).await;
        }
        changed
    }

    /// Stops every job that waits in a queue, as [`Client::stop_job`](super::Client::stop_job) does. Jobs that run, or are
    /// pushed meanwhile, stay. Returns the number of stopped jobs.
    ///
    /// # Errors
    /// [`ClientError::Store`]; the jobs before it are stopped.
    pub async fn purge(self, queue: &Queue) -> Result<u64> {
        let kept = self.client.job.kept();
        let purged = self
            .client
            .shards
            .each(|store| store.queues().purge(queue, kept))
            .await?
            .into_iter()
            .sum();
        self.client
            .audit()
            .note("queue.purge", format!("{queue}: {}", counted(purged, "job", "jobs")))
            .await;
        Ok(purged)
    }
}

fn together(of_shards: Vec<Pauses>) -> Pauses {
    let mut all = Pauses::default();
    for of in of_shards {
        all.queues.extend(of.queues);
        all.rules.extend(of.rules);
    }
    all
}
