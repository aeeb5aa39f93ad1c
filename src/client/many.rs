//! Batches of jobs, atomic or not, and graphs of jobs that wait for each other by name.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use futures_util::future::try_join_all;

use super::confirm::{STORED, confirmed, will_confirm};
use super::files::may_be_accepted;
use super::graph::Graph;
use super::new_batch::{NewBatch, members};
use super::resolve::refused;
use super::{Client, ClientError, accepted};
use crate::proto::graph::GraphKind;
use crate::proto::graph_plan::cycle;
use crate::proto::job::{InvalidJob, Job, JobId};
use crate::proto::shard::Shard;
use crate::store::{BatchOutcome, NewGraph, Store, StoreError, Submitted, TOO_SLOW};

impl Client {
    /// Submits independent jobs, some hundred per round trip, fewer if they are large. Each job is
    /// accepted or rejected by itself; the results are in the order of the jobs.
    ///
    /// # Errors
    /// [`ClientError::Store`] after the round trips before it.
    pub async fn submit_all(
        &self,
        jobs: &[Job],
    ) -> Result<Vec<Result<JobId, ClientError>>, ClientError> {
        let jobs = self.each_checked(jobs).await?;
        self.submit_placed(self.placed(jobs, None)).await
    }

    /// Submits jobs of one shard.
    async fn submit_on(
        &self,
        store: &Store,
        jobs: &[Job],
    ) -> Result<Vec<Result<JobId, ClientError>>, ClientError> {
        let jobs = &*self.completed(store, jobs).await?;
        let confirms = will_confirm(store, jobs).await?;
        let submitted = store.submit(jobs, true, self.job.kept()).await?;
        let results: Vec<Result<JobId, ClientError>> =
            jobs.iter().zip(submitted).map(|(job, what)| accepted(job, what)).collect();
        if confirms {
            let ids: Vec<JobId> = results.iter().flatten().cloned().collect();
            confirmed(store, &ids, STORED).await?;
        }
        Ok(results)
    }

    /// Submits the jobs of each shard, all shards at the same time.
    async fn submit_placed(
        &self,
        placed: Vec<Result<Job, ClientError>>,
    ) -> Result<Vec<Result<JobId, ClientError>>, ClientError> {
        let mut results: Vec<Option<Result<JobId, ClientError>>> = Vec::new();
        let mut of_shards: BTreeMap<Shard, (Vec<usize>, Vec<Job>)> = BTreeMap::new();
        for (place, job) in placed.into_iter().enumerate() {
            results.push(match job {
                Ok(job) => {
                    let (own, jobs) = of_shards.entry(self.of(&job.id)?.shard()).or_default();
                    own.push(place);
                    jobs.push(job);
                    None
                }
                Err(error) => Some(Err(error)),
            });
        }
        let submit = |(shard, (places, jobs)): (Shard, (Vec<usize>, Vec<Job>))| async move {
            let store = self.shards.at(shard);
            let results = self.submit_on(store, &jobs).await?;
            Ok::<_, ClientError>(places.into_iter().zip(results).collect::<Vec<_>>())
        };
        for (place, result) in
            try_join_all(of_shards.into_iter().map(submit)).await?.into_iter().flatten()
        {
            results[place] = Some(result);
        }
        Ok(results.into_iter().flatten().collect())
    }

    /// Submits a batch as [`Client::submit_all`] does, its jobs known by the id of the batch. May be called
    /// again for more jobs of the same batch, the first time with `is_new`: up to
    /// [`Store::BATCH_JOBS_MAX`] jobs in all. [`Client::close_batch`] must follow if it has callbacks, notifications or a share of failures. All of
    /// them are on one shard, which the id of the batch tells afterwards.
    ///
    /// # Errors
    /// [`ClientError::GraphTaken`] if another has the id; as [`Client::submit_all`].
    pub async fn submit_all_of(
        &self,
        batch: &mut NewBatch,
        jobs: &[Job],
        is_new: bool,
    ) -> Result<Vec<Result<JobId, ClientError>>, ClientError> {
        let mut each = self.each_checked(jobs).await?;
        self.resolve_callbacks(jobs.len(), batch).await?;
        self.check_head(jobs.len(), batch)?;
        let legal: Vec<Job> = each.iter().flatten().cloned().collect();
        self.place_batch(batch, &legal)?;
        let adding = self.with_stores(|store| store.adding_to(&batch.opening));
        let store = adding.of(&batch.id)?;
        if is_new && !store.open_batch(&batch.stored_with(GraphKind::Batch, &legal)).await? {
            return Err(ClientError::GraphTaken(batch.id.clone()));
        }
        for job in each.iter_mut().flatten() {
            job.graph_id = Some(batch.id.clone());
        }
        adding.submit_placed(self.placed(each, Some(store.shard()))).await
    }

    /// Notes that a batch has all its jobs. Its end, and so its callbacks, come no sooner than that.
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn close_batch(&self, batch: &NewBatch) -> Result<(), ClientError> {
        if batch.callbacks.is_empty() && batch.notify.is_empty() && !batch.window.has_share() {
            return Ok(());
        }
        Ok(self.of(&batch.id)?.close_batch(&batch.id, self.job.kept()).await?)
    }

    /// Submits a graph as an atomic batch: no job of it is visible before all are stored. Returns
    /// the ids by name. It may have [`Store::WHOLE_MAX`] jobs. All of them are on one shard, which its id tells
    /// afterwards.
    ///
    /// # Errors
    /// [`ClientError::Cycle`] names jobs that wait for each other; [`ClientError::UnknownInGraph`]
    /// an unknown prerequisite; [`ClientError::Refused`] a job that breaks a bound or cannot be
    /// stored; [`ClientError::TooMany`], [`ClientError::Store`].
    pub async fn submit_graph(
        &self,
        graph: &mut Graph,
    ) -> Result<BTreeMap<String, JobId>, ClientError> {
        graph.join_trace(None);
        let (new, mut jobs) = self.prepared(graph).await?;
        let given = self.give_graph_files(graph, &mut jobs).await?;
        let on = self.of(graph.id())?;
        let submitted = self.submit_batch(on, &jobs, Some(&new), &|place| graph.name(place)).await;
        if submitted.as_ref().is_err_and(|error| !may_be_accepted(error)) {
            self.take_files_back(given.iter()).await;
        }
        submitted.map_err(|error| match error {
            ClientError::Refused { name, error, place } => match *error {
                ClientError::UnknownPrerequisite(id) => graph.unknown(&name, &id),
                error => ClientError::Refused { name, error: error.into(), place },
            },
            error => error,
        })?;
        Ok(graph.ids())
    }

    /// Returns a graph as it is stored, on its shard, and its jobs without the files.
    pub(super) async fn prepared(
        &self,
        graph: &mut Graph,
    ) -> Result<(NewGraph, Vec<Job>), ClientError> {
        self.resolve_graph(graph).await?;
        self.place_graph(graph)?;
        let jobs = graph.jobs()?;
        self.check_head(graph.len(), &graph.head)?;
        let new = graph.head.stored_with(GraphKind::Graph, &jobs);
        let mut jobs = members(&jobs, graph.id());
        for (place, job) in jobs.iter_mut().enumerate() {
            self.place_beside(graph.id(), job)
                .map_err(|error| refused(place, graph.name(place), error))?;
        }
        Ok((new, jobs))
    }

    /// Checks the id and the callbacks of a graph or batch that has so many jobs.
    fn check_head(&self, place: usize, head: &NewBatch) -> Result<(), ClientError> {
        Self::check_chosen_id(&head.id)?;
        for (callback, job) in &head.callbacks {
            let checked = self.check(job).and_then(|()| self.check_unsigned());
            checked.map_err(|error| ClientError::Refused {
                place,
                name: callback.as_str().to_owned(),
                error: Box::new(error.into()),
            })?;
        }
        Ok(())
    }

    /// Checks a graph as far as it can be told without Redis. Prerequisites outside of it are not looked
    /// for.
    ///
    /// # Errors
    /// As [`Client::submit_graph`].
    pub fn check_graph(&self, graph: &Graph) -> Result<(), ClientError> {
        self.check_head(graph.len(), &graph.head)?;
        self.check_batch(&graph.jobs()?, &|place| graph.name(place))
    }

    /// Submits an atomic batch of up to [`Store::WHOLE_MAX`] jobs, which may wait for each other
    /// in any order. Returns their ids.
    ///
    /// # Errors
    /// As [`Client::submit_graph`]; a prerequisite that does not exist is
    /// [`ClientError::Refused`].
    pub async fn submit_all_or_none(&self, jobs: &[Job]) -> Result<Vec<JobId>, ClientError> {
        let mut batch = NewBatch::default();
        let jobs = self.resolved_members(jobs).await?;
        self.place_batch(&mut batch, &jobs)?;
        self.submit_members(jobs, &batch, None).await
    }

    /// Submits an atomic batch as [`Client::submit_all_or_none`] does, its jobs known by the id of the
    /// batch.
    ///
    /// # Errors
    /// As [`Client::submit_all_or_none`]; [`ClientError::GraphTaken`] if another has the id.
    pub async fn submit_all_or_none_of(
        &self,
        batch: &mut NewBatch,
        jobs: &[Job],
    ) -> Result<Vec<JobId>, ClientError> {
        let jobs = &self.resolved_members(jobs).await?;
        self.resolve_callbacks(jobs.len(), batch).await?;
        self.check_head(jobs.len(), batch)?;
        self.place_batch(batch, jobs)?;
        let new = batch.stored_with(GraphKind::Batch, jobs);
        self.submit_members(members(jobs, &batch.id), batch, Some(&new)).await
    }

    /// Submits jobs on the shard of a batch, all or none.
    async fn submit_members(
        &self,
        jobs: Vec<Job>,
        batch: &NewBatch,
        new: Option<&NewGraph>,
    ) -> Result<Vec<JobId>, ClientError> {
        let names: Vec<String> = jobs.iter().map(|job| job.id.to_string()).collect();
        let name = |place: usize| names[place].clone();
        let on = self.of(&batch.id)?;
        let jobs = jobs.into_iter().map(Ok).collect();
        let placed = self.placed(jobs, Some(on.shard())).into_iter().enumerate();
        let placed =
            placed.map(|(place, job)| job.map_err(|error| refused(place, name(place), error)));
        let jobs = placed.collect::<Result<Vec<Job>, ClientError>>()?;
        self.submit_batch(on, &jobs, new, &|place| jobs[place].id.to_string()).await?;
        Ok(jobs.into_iter().map(|job| job.id).collect())
    }

    pub(super) async fn submit_batch(
        &self,
        on: &Store,
        jobs: &[Job],
        graph: Option<&NewGraph>,
        name: &(dyn Fn(usize) -> String + Sync),
    ) -> Result<(), ClientError> {
        if jobs.is_empty() {
            return Ok(());
        }
        let jobs = &*self.complete_batch(on, jobs, name).await?;
        let confirms = will_confirm(on, jobs).await?;
        let submitted = on.submit_atomic_graph(jobs, graph, self.job.kept()).await;
        let submitted = submitted.map_err(|error| match error {
            // The first job stands for all.
            StoreError::Unreachable { sent: true, .. } => {
                ClientError::Unsure { id: jobs[0].id.clone(), error }
            }
            error => ClientError::Store(error),
        })?;
        match submitted {
            BatchOutcome::Accepted if confirms => {
                let ids: Vec<JobId> = jobs.iter().map(|job| job.id.clone()).collect();
                confirmed(on, &ids, STORED).await
            }
            BatchOutcome::Accepted => Ok(()),
            outcome => {
                let id = graph.map_or(&jobs[0].id, |graph| &graph.id);
                Err(unaccepted(outcome, jobs, id, name))
            }
        }
    }

    /// Returns the jobs of an atomic batch, checked as far as it can be told without Redis, with what only their submission
    /// tells.
    pub(super) async fn complete_batch<'a>(
        &self,
        on: &Store,
        jobs: &'a [Job],
        name: &(dyn Fn(usize) -> String + Sync),
    ) -> Result<Cow<'a, [Job]>, ClientError> {
        self.check_batch(jobs, name)?;
        let jobs = self.completed(on, jobs).await?;
        // A job may have got its unique key only now.
        match clash(&jobs) {
            Some((place, error)) => Err(refused(place, name(place), error)),
            None => Ok(jobs),
        }
    }

    /// Checks jobs of an atomic batch as far as it can be told without Redis.
    fn check_batch(
        &self,
        jobs: &[Job],
        name: &(dyn Fn(usize) -> String + Sync),
    ) -> Result<(), ClientError> {
        if jobs.len() > Store::WHOLE_MAX {
            return Err(ClientError::TooMany { jobs: jobs.len(), most: Store::WHOLE_MAX });
        }
        let refused = |place, error| refused(place, name(place), error);
        for (place, job) in jobs.iter().enumerate() {
            self.check(job).map_err(|error| refused(place, error.into()))?;
            if job.spec.debounce.is_some() {
                let why =
                    "cannot be set in an atomic batch: it replaces a job of another submission";
                return Err(refused(place, InvalidJob::new("debounce", why).into()));
            }
        }
        if let Some((place, error)) = clash(jobs) {
            return Err(refused(place, error));
        }
        let links = Links::of(jobs);
        if let Some(cycle) = cycle(&links.waits_for) {
            return Err(ClientError::Cycle(cycle.into_iter().map(name).collect()));
        }
        if links.others > Store::WHOLE_OTHERS_MAX {
            let (jobs, most) = (links.others, Store::WHOLE_OTHERS_MAX);
            return Err(ClientError::TooManyOthers { jobs, most });
        }
        Ok(())
    }
}

/// Returns why an atomic batch, which becomes the graph of this id, was not accepted.
pub(super) fn unaccepted(
    outcome: BatchOutcome,
    jobs: &[Job],
    id: &JobId,
    name: &(dyn Fn(usize) -> String + Sync),
) -> ClientError {
    let BatchOutcome::Refused { place, why } = outcome else {
        return match outcome {
            BatchOutcome::TooSlow => ClientError::Store(StoreError::Failed {
                doing: "submitting an atomic batch",
                reason: TOO_SLOW.to_owned(),
            }),
            _ => ClientError::GraphTaken(id.clone()),
        };
    };
    // Submitted alone, the job would get the holder's id.
    let error = match why {
        Submitted::Duplicate(holder) => ClientError::KeyHeld(holder),
        why => accepted(&jobs[place], why)
            .err()
            .unwrap_or_else(|| ClientError::IdTaken(jobs[place].id.clone())),
    };
    refused(place, name(place), error)
}

/// Returns the first job that has the id or the unique key of an earlier one.
fn clash(jobs: &[Job]) -> Option<(usize, ClientError)> {
    let (mut ids, mut keys) = (HashSet::new(), HashMap::new());
    for (place, job) in jobs.iter().enumerate() {
        if !ids.insert(&job.id) {
            return Some((place, ClientError::IdTaken(job.id.clone())));
        }
        let held = job.spec.unique_key.as_ref().and_then(|key| keys.insert(key, &job.id));
        if let Some(holder) = held {
            return Some((place, ClientError::KeyHeld(Some(holder.clone()))));
        }
    }
    None
}

/// The prerequisites within a batch, as indexes.
struct Links {
    waits_for: Vec<Vec<usize>>,
    /// The number of prerequisites outside of the batch.
    others: usize,
}

impl Links {
    fn of(jobs: &[Job]) -> Self {
        let places: HashMap<&JobId, usize> =
            jobs.iter().enumerate().map(|(place, job)| (&job.id, place)).collect();
        let mut others = 0;
        let waits_for = jobs
            .iter()
            .map(|job| {
                let all = job.spec.waits_for().map(|id| places.get(id).copied());
                let (within, outside): (Vec<_>, Vec<_>) = all.partition(Option::is_some);
                others += outside.len();
                within.into_iter().flatten().collect()
            })
            .collect();
        Self { waits_for, others }
    }
}
