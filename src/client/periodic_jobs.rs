//! Periodic jobs: their last firings, a firing at once, and their switch.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::fmt::Write;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::cron_documents::{FiringDocument, PeriodicJobDocument, PeriodicJobHistoryDocument};
use super::{ClientError, CronClient, Result};
use crate::config::{CronEntry, Crontab};
use crate::error::{Error, Exit};
use crate::proto::cron::{CronGraph, CronName};
use crate::proto::job::{Entrance, Job, JobId, JobSpec, Setting};
use crate::proto::message::SupervisorPresence;
use crate::store::{FiredCron, Firing};

/// The number of firings that are shown ahead.
const AHEAD: usize = 5;
/// The number of the latest firings that are shown with a periodic job.
const LATEST: usize = 20;

impl CronClient<'_> {
    /// Lists the periodic jobs of [`CronClient::crontab`], with their state.
    pub async fn documents(self, crontab: &Crontab) -> Result<Vec<PeriodicJobDocument>> {
        let now = self.client.system().now().await?;
        let supervisors = self.client.system().supervisors().await?;
        let mut documents = Vec::with_capacity(crontab.entries.len());
        for entry in &crontab.entries {
            let state = self.client.store.cron().get(&entry.name).await?;
            documents.push(PeriodicJobDocument::of(entry, &state, &supervisors, now));
        }
        Ok(documents)
    }

    /// Returns the periodic jobs of files with those in Redis.
    pub async fn crontab(self, files: &Crontab) -> Result<Crontab> {
        Ok(files.with_added(&self.client.store.cron().added().await?))
    }

    /// Shows one of the periodic jobs of [`CronClient::crontab`] with its next and latest firings.
    ///
    /// # Errors
    /// [`Exit::NotFound`] if there is no such periodic job; the code of [`ClientError::Store`].
    pub async fn history(
        self,
        crontab: &Crontab,
        name: &str,
    ) -> Result<PeriodicJobHistoryDocument, Error> {
        let entry = entry(crontab, name)?;
        let now = self.client.system().now().await?;
        let state = self.client.store.cron().get(&entry.name).await.map_err(ClientError::from)?;
        let firings = self.firing_documents(&entry.name, LATEST).await?;
        let next = |after: &Timestamp| entry.schedule.next_after(*after);
        let ahead = std::iter::successors(next(&now), next).take(AHEAD);
        let supervisors = self.client.system().supervisors().await?;
        let job = PeriodicJobDocument::of(entry, &state, &supervisors, now);
        let upcoming = if job.next.is_none() { Vec::new() } else { ahead.collect() };
        Ok(PeriodicJobHistoryDocument {
            job,
            script: entry.job(now).spec.script,
            settings: settings(entry),
            upcoming: upcoming.iter().map(Timestamp::to_string).collect(),
            history: firings,
            graph: graph(entry),
        })
    }

    /// Lists the latest firings of one of the periodic jobs of [`CronClient::crontab`], the newest first, at most
    /// `most` of those that are kept.
    ///
    /// # Errors
    /// [`Exit::NotFound`] if there is no such periodic job; the code of [`ClientError::Store`].
    pub async fn firings(
        self,
        crontab: &Crontab,
        name: &str,
        most: usize,
    ) -> Result<Vec<FiringDocument>, Error> {
        self.firing_documents(&entry(crontab, name)?.name, most).await
    }

    async fn firing_documents(
        self,
        name: &CronName,
        most: usize,
    ) -> Result<Vec<FiringDocument>, Error> {
        let firings =
            self.client.store.cron().firings(name, most).await.map_err(ClientError::from)?;
        Ok(firings.into_iter().map(|(of, status)| firing_document(of, status)).collect())
    }

    /// Lists the periodic jobs that supervisors fire, for monitoring: the files that a live supervisor has in
    /// force, and the periodic jobs in Redis.
    pub async fn fired(self, supervisors: &[SupervisorPresence]) -> Result<Vec<FiredCron>> {
        let mut fired = self.client.store.cron().fired().await?;
        if fired.is_empty() {
            return Ok(fired);
        }
        let of_files: Option<BTreeSet<&str>> = of_files(supervisors);
        // A file that was removed leaves its name behind.
        if let Some(of_files) = of_files {
            let added = self.client.store.cron().added().await?;
            let is_added = |name: &CronName| added.iter().any(|(added, _)| added == name);
            fired.retain(|of| of_files.contains(of.name.as_str()) || is_added(&of.name));
        }
        Ok(fired)
    }

    /// Submits the job, batch or graph of a periodic job now, besides its schedule. Returns its id.
    ///
    /// # Errors
    /// [`Exit::NotFound`] if there is no such periodic job; as [`Client::submit`](super::Client::submit).
    pub async fn run(self, crontab: &Crontab, name: &str) -> Result<JobId, Error> {
        let crontab = self.crontab(crontab).await?;
        let entry = entry(&crontab, name)?;
        // Its id is fixed, and so on the home shard.
        let (what, id) = match entry.kind() {
            Some(kind) => (kind.as_str(), Box::pin(self.run_batch(entry)).await?),
            None => (
                "job",
                self.client
                    .submit(Job {
                        id: JobId::random(),
                        ..entry.job(self.client.system().now().await?)
                    })
                    .await?,
            ),
        };
        let noted = self.client.store.cron().note_run(&entry.name, &id, what != "job").await;
        noted.map_err(ClientError::from)?;
        self.client.audit().note("cron.run", format!("{}: {what} {id}", entry.name)).await;
        Ok(id)
    }

    /// Enables or disables a periodic job, which does not fire while it is disabled; `by` is who asks. Returns
    /// false if it was so already.
    ///
    /// # Errors
    /// [`Exit::NotFound`] if there is no such periodic job; the code of [`ClientError::Store`].
    pub async fn enable(
        self,
        crontab: &Crontab,
        name: &str,
        enabled: bool,
        by: &str,
    ) -> Result<bool, Error> {
        let crontab = self.crontab(crontab).await?;
        let entry = entry(&crontab, name)?;
        let changed = self.client.store.cron().enable(&entry.name, enabled, by).await;
        let changed = changed.map_err(ClientError::from)?;
        self.client
            .audit()
            .note(if enabled { "cron.enable" } else { "cron.disable" }, &entry.name)
            .await;
        Ok(changed)
    }
}

/// Returns the settings that the job of a periodic job has, without those that each gets. The jobs of a graph have their own.
fn settings(entry: &CronEntry) -> Value {
    if entry.graph.is_some() {
        return Value::Object(Map::new());
    }
    let spec = entry.job(Timestamp::UNIX_EPOCH).spec;
    let mut members = own_settings(entry, &spec, entry.name.as_str());
    members.retain(|name, _| !["script", "script_type"].contains(&name.as_str()));
    members.entry("priority").or_insert(1.into());
    Value::Object(members)
}

/// Returns the graph of a periodic job as `graph.submit` takes it, without the settings that each job gets.
fn graph(entry: &CronEntry) -> Option<CronGraph> {
    let own = |name: &str, spec: JobSpec| Ok::<_, Infallible>(own_settings(entry, &spec, name));
    entry.graph.clone()?.map(own).ok()
}

fn own_settings(entry: &CronEntry, spec: &JobSpec, name: &str) -> Map<String, Value> {
    let mut members = spec.to_json();
    let caller = format!("cron {}", entry.name);
    let given = [("caller_id", caller.as_str()), ("name", name)];
    members.retain(|field, value| {
        let setting = Setting::of_field(field);
        let is_own = setting.is_some_and(|of| of.absent_at(Entrance::PeriodicJob).is_none());
        (is_own || field == "may_fail")
            && !given.iter().any(|of| *of == (field, value.as_str().unwrap_or_default()))
    });
    if let Some(variables) = members.get_mut("env_vars").and_then(Value::as_object_mut) {
        variables.retain(|name, _| !name.starts_with("HERO_CRON"));
        if variables.is_empty() {
            members.remove("env_vars");
        }
    }
    members
}

/// Returns the names of the periodic jobs of files that live supervisors fire; nothing if that is not known.
fn of_files(supervisors: &[SupervisorPresence]) -> Option<BTreeSet<&str>> {
    let mut names = BTreeSet::new();
    for of in supervisors {
        names.extend(of.cron.as_ref()?.jobs.as_ref()?.keys().map(String::as_str));
    }
    (!supervisors.is_empty()).then_some(names)
}

fn firing_document(firing: Firing, status: Option<&str>) -> FiringDocument {
    let time = |text: &str| text.parse::<Timestamp>().ok();
    let late = time(&firing.due).zip(time(&firing.at)).map(|(due, at)| at.duration_since(due));
    FiringDocument {
        due: firing.due,
        fired_at: firing.at,
        late_s: late.map_or(0.0, |late| late.as_secs_f64().max(0.0)),
        outcome: firing.did.as_str().to_owned(),
        job_id: firing.id.as_ref().filter(|_| !firing.batch).map(ToString::to_string),
        status: status.map(str::to_owned),
        why: firing.why,
        batch_id: firing.id.filter(|_| firing.batch).map(|id| id.to_string()),
    }
}

pub(super) fn entry<'a>(crontab: &'a Crontab, name: &str) -> Result<&'a CronEntry, Error> {
    let found = crontab.entries.iter().find(|entry| entry.name.as_str() == name);
    found.ok_or_else(|| {
        let shown: String = name.chars().take(80).flat_map(char::escape_debug).collect();
        let mut message = format!("no such periodic job: `{shown}`; hero cron list shows all");
        for problem in &crontab.problems {
            let _ = write!(message, "\n{problem}");
        }
        Error::new(Exit::NotFound, message)
    })
}
