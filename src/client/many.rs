//! Batches of jobs, atomic or not, and graphs of jobs that wait for each other by name.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use futures_util::future::try_join_all;

use super::files::{FilesByPlace, may_be_accepted};
use super::graph::Graph;
use super::named_scripts::{NameOf, refused};
use super::new_batch::{Links, NewBatch, members, stored_with};
use super::wait::{STORED, confirmed, will_confirm};
use super::{Client, ClientError, GraphClient, Result, accepted};
use crate::proto::job::{InvalidJob, Job, JobFiles, JobId};
use crate::proto::shard::Shard;
use crate::store::{BatchOutcome, NewGraph, Store, StoreError, Submitted, TOO_SLOW};

impl Client {
    /// Submits independent jobs, some hundred per round trip, fewer if they are large. Each job is
    /// accepted or rejected by itself; the results are in the order of the jobs.
    ///
    /// # Errors
    /// [`ClientError::Store`] after the round trips before it.
    pub async fn submit_all(&self, jobs: &[Job]) -> Result<Vec<Result<JobId>>> {
        let jobs = self.scripts().each_checked(jobs).await?;
        self.submit_placed(self.placed(jobs, None)).await
    }

    async fn submit_on(&self, store: &Store, jobs: &[Job]) -> Result<Vec<Result<JobId>>> {
        let jobs = &*self.completed(store, jobs).await?;
        let confirms = will_confirm(store, jobs).await?;
        let submitted = store.jobs().submit(jobs, true, self.job.kept()).await?;
        let results: Vec<Result<JobId>> =
            jobs.iter().zip(submitted).map(|(job, what)| accepted(job, what)).collect();
        if confirms {
            let ids: Vec<JobId> = results.iter().flatten().cloned().collect();
            confirmed(store, &ids, STORED).await?;
        }
        Ok(results)
    }

    /// Submits the jobs of each shard, all shards at the same time.
    async fn submit_placed(&self, placed: Vec<Result<Job>>) -> Result<Vec<Result<JobId>>> {
        let mut results: Vec<Option<Result<JobId>>> = Vec::new();
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

    /// Submits a batch as [`Client::submit_all`] does, its jobs known by the id of the batch, some of them with files, by their
    /// places. May be called again for more jobs of the same batch, which [`NewBatch::is_joined`] then: up to
    /// [`Store::BATCH_JOBS_MAX`] jobs in all, and about the first beyond are in no batch. [`Client::close_batch`] must follow.
    /// All of them are on one shard, which the id of the batch tells afterwards.
    ///
    /// # Errors
    /// [`ClientError::GraphTaken`] if another has the id; [`ClientError::NoSuchGraph`] if no batch of this opening has it, to join; as
    /// [`Client::submit_all`].
    pub async fn submit_all_of(
        &self,
        batch: &mut NewBatch,
        jobs: &[Job],
        files: &FilesByPlace,
    ) -> Result<Vec<Result<JobId>>> {
        let mut each = self.scripts().each_checked(jobs).await?;
        self.scripts().resolve_callbacks(jobs.len(), &mut batch.graph).await?;
        self.check_head(jobs.len(), &batch.graph)?;
        let legal: Vec<Job> = each.iter().flatten().cloned().collect();
        self.place_batch(batch, &legal)?;
        let adding = self.with_stores(|store| store.adding_to(&batch.opening));
        let store = adding.of(batch.id())?;
        let before = if batch.is_joined {
            let jobs = store.graphs().join(batch.id()).await?;
            jobs.ok_or_else(|| ClientError::NoSuchGraph(batch.id().clone()))?
        } else if store.graphs().open(&stored_with(&batch.graph, &legal)).await? {
            0
        } else {
            return Err(ClientError::GraphTaken(batch.id().clone()));
        };
        let is_member = before + jobs.len() as u64 <= Store::BATCH_JOBS_MAX;
        for job in each.iter_mut().flatten().filter(|_| is_member) {
            job.graph_id = Some(batch.id().clone());
        }
        let given = self.files().give_each(files, &mut each, is_member.then_some(batch.id())).await;
        let placed = self.placed(each, is_member.then(|| store.shard()));
        let results = adding.submit_placed(placed).await?;
        let is_own =
            |(place, id): &&(usize, JobId)| results[*place].as_ref().is_ok_and(|own| own == id);
        let others = given.iter().filter(|of| !is_own(of)).map(|(_, id)| id);
        self.files().take_back(others).await;
        Ok(results)
    }

    /// Notes that a batch has all its jobs. Its end, and so its callbacks, come no sooner than that.
    pub async fn close_batch(&self, batch: &NewBatch) -> Result<()> {
        if batch.is_joined || batch.graph.needs_close() {
            self.of(batch.id())?.graphs().close(batch.id(), self.job.kept()).await?;
        }
        Ok(())
    }

    /// Returns a graph as it is stored, on its shard, and its jobs without the files.
    pub(super) async fn prepared(&self, graph: &mut Graph) -> Result<(NewGraph, Vec<Job>)> {
        self.scripts().resolve_graph(graph).await?;
        self.place_graph(graph)?;
        let jobs = graph.jobs()?;
        self.check_head(graph.len(), &graph.new)?;
        let new = stored_with(&graph.new, &jobs);
        let mut jobs = members(&jobs, graph.id());
        for (place, job) in jobs.iter_mut().enumerate() {
            self.place_on_shard_of(graph.id(), job)
                .map_err(|error| refused(place, graph.name(place), error))?;
        }
        Ok((new, jobs))
    }

    /// Checks the id and the callbacks of a graph or batch that has so many jobs.
    fn check_head(&self, place: usize, head: &NewGraph) -> Result<()> {
        Self::check_chosen_id(&head.id)?;
        for (callback, job) in &head.callbacks {
            let checked = self.check(job).and_then(|()| self.check_unsigned());
            checked.map_err(|error| refused(place, callback.as_str().to_owned(), error.into()))?;
        }
        Ok(())
    }

    /// Submits an atomic batch of up to [`Store::WHOLE_MAX`] jobs, which may wait for each other in any order, its jobs known by
    /// the id of the batch, some of them with files, by their places. Returns their ids.
    ///
    /// # Errors
    /// As [`GraphClient::submit`]; a prerequisite that does not exist is [`ClientError::Refused`];
    /// [`ClientError::GraphTaken`] if another has the id.
    pub async fn submit_all_or_none_of(
        &self,
        batch: &mut NewBatch,
        jobs: &[Job],
        files: &FilesByPlace,
    ) -> Result<Vec<JobId>> {
        let ids: Vec<JobId> = jobs.iter().map(|job| job.id.clone()).collect();
        let jobs = &mut jobs.to_vec();
        self.scripts()
            .resolve_named(jobs.iter_mut(), |place| (place, ids[place].to_string()))
            .await?;
        self.scripts().resolve_callbacks(jobs.len(), &mut batch.graph).await?;
        self.check_head(jobs.len(), &batch.graph)?;
        self.place_batch(batch, jobs)?;
        let new = stored_with(&batch.graph, jobs);
        let on = self.of(batch.id())?;
        let members = members(jobs, batch.id()).into_iter().map(Ok).collect();
        let placed = self.placed(members, Some(on.shard())).into_iter().zip(jobs).enumerate();
        let placed = placed.map(|(place, (job, given))| {
            job.map_err(|error| refused(place, given.id.to_string(), error))
        });
        let mut jobs = placed.collect::<Result<Vec<Job>>>()?;
        let ids: Vec<JobId> = jobs.iter().map(|job| job.id.clone()).collect();
        let files = files.iter().map(|(place, files)| (*place, files));
        self.submit_batch(on, &mut jobs, files, &new, &|place| ids[place].to_string()).await?;
        Ok(ids)
    }

    /// Submits jobs with the files of some, all or none: then the files go again.
    async fn submit_batch(
        &self,
        on: &Store,
        jobs: &mut [Job],
        files: impl Iterator<Item = (usize, &JobFiles)>,
        graph: &NewGraph,
        name: &NameOf<'_>,
    ) -> Result<()> {
        let given = self.files().give_all(files, jobs, name).await?;
        let submitted = self.submit_whole(on, jobs, graph, name).await;
        if submitted.as_ref().is_err_and(|error| !may_be_accepted(error)) {
            self.files().take_back(given.iter()).await;
        }
        submitted
    }

    /// Submits jobs without files, all or none.
    pub(super) async fn submit_whole(
        &self,
        on: &Store,
        jobs: &[Job],
        graph: &NewGraph,
        name: &NameOf<'_>,
    ) -> Result<()> {
        if jobs.is_empty() {
            return Ok(());
        }
        let jobs = &*self.complete_batch(on, jobs, name).await?;
        let confirms = will_confirm(on, jobs).await?;
        let submitted = on.batches().submit(jobs, Some(graph), self.job.kept()).await;
        // The first job stands for all.
        let submitted =
            submitted.map_err(|error| ClientError::of_submission(&jobs[0].id, error))?;
        match submitted {
            BatchOutcome::Accepted if confirms => {
                let ids: Vec<JobId> = jobs.iter().map(|job| job.id.clone()).collect();
                confirmed(on, &ids, STORED).await
            }
            BatchOutcome::Accepted => Ok(()),
            outcome => Err(unaccepted(outcome, jobs, &graph.id, name)),
        }
    }

    /// Returns the jobs of an atomic batch, checked as far as it can be told without Redis, with what only their submission
    /// tells.
    pub(super) async fn complete_batch<'a>(
        &self,
        on: &Store,
        jobs: &'a [Job],
        name: &NameOf<'_>,
    ) -> Result<Cow<'a, [Job]>> {
        self.check_batch(jobs, name)?;
        let jobs = self.completed(on, jobs).await?;
        // A job may have got its unique key only now.
        match clash(&jobs) {
            Some((place, error)) => Err(refused(place, name(place), error)),
            None => Ok(jobs),
        }
    }

    /// Checks jobs of an atomic batch as far as it can be told without Redis.
    fn check_batch(&self, jobs: &[Job], name: &NameOf<'_>) -> Result<()> {
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
        if let Some(cycle) = links.cycle() {
            return Err(ClientError::Cycle(cycle.into_iter().map(name).collect()));
        }
        if links.others > Store::WHOLE_OTHERS_MAX {
            let (jobs, most) = (links.others, Store::WHOLE_OTHERS_MAX);
            return Err(ClientError::TooManyOthers { jobs, most });
        }
        Ok(())
    }
}

impl GraphClient<'_> {
    /// Submits a graph as an atomic batch: no job of it is visible before all are stored. Returns
    /// the ids by name. It may have [`Store::WHOLE_MAX`] jobs. All of them are on one shard, which its id tells
    /// afterwards.
    ///
    /// # Errors
    /// [`ClientError::Cycle`] names jobs that wait for each other; [`ClientError::UnknownInGraph`]
    /// an unknown prerequisite; [`ClientError::Refused`] a job that breaks a bound or cannot be
    /// stored; [`ClientError::TooMany`], [`ClientError::Store`].
    pub async fn submit(self, graph: &mut Graph) -> Result<BTreeMap<String, JobId>> {
        graph.join_trace(None);
        let (new, mut jobs) = Box::pin(self.client.prepared(graph)).await?;
        graph.check_files()?;
        let on = self.client.of(graph.id())?;
        let name = |place| graph.name(place);
        let submitted = self.client.submit_batch(on, &mut jobs, graph.files(), &new, &name);
        Box::pin(submitted).await.map_err(|error| match error {
            ClientError::Refused { name, error, place } => match *error {
                ClientError::UnknownPrerequisite(id) => graph.unknown(&name, &id),
                error => ClientError::Refused { name, error: error.into(), place },
            },
            error => error,
        })?;
        Ok(graph.ids())
    }

    /// Checks a graph as far as it can be told without Redis. Prerequisites outside of it are not looked
    /// for.
    ///
    /// # Errors
    /// As [`GraphClient::submit`].
    pub fn check(self, graph: &Graph) -> Result<()> {
        self.client.check_head(graph.len(), &graph.new)?;
        self.client.check_batch(&graph.jobs()?, &|place| graph.name(place))
    }
}

/// Returns why an atomic batch, which becomes the graph of this id, was not accepted.
pub(super) fn unaccepted(
    outcome: BatchOutcome,
    jobs: &[Job],
    id: &JobId,
    name: &NameOf<'_>,
) -> ClientError {
    let BatchOutcome::Refused { place, why } = outcome else {
        return match outcome {
            BatchOutcome::TooSlow => {
                StoreError::failed("submitting an atomic batch", TOO_SLOW).into()
            }
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
