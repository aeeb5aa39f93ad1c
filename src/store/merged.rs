//! Lists of all shards as one. Each shard is asked for a whole page at the same time as the others; of the
//! places that come back, the page is the first ones in the order of the list. That order does not depend on the
//! shard, so one cursor serves all, and jobs that are added meanwhile move none to another page.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::cursor::Cursor;
use super::listing::LISTED;
use super::search_range::PlaceRange;
use super::{GraphPage, JobSummary, ListQuery, Page, Result, Shards, Store};
use crate::proto::graph::GraphInfo;
use crate::proto::job::JobId;
use crate::proto::shard::Shard;

impl Shards {
    /// One page of jobs, the latest change first.
    pub async fn list_jobs(&self, query: &ListQuery) -> Result<Page<JobSummary>> {
        let limit = query.limit.clamp(1, ListQuery::LIMIT_MAX);
        let jobs = self.placed_jobs(query, &PlaceRange::default(), &LISTED).await?;
        let next =
            if jobs.len() == limit { jobs.last().map(|(place, _)| place.clone()) } else { None };
        let jobs = jobs.into_iter().filter_map(|(_, job)| job.map(JobSummary::shortened));
        Ok(Page { items: jobs.filter(|job| query.takes(job)).collect(), next })
    }

    /// A page of jobs with these fields, each with the cursor after it; none for an expired job.
    pub(super) async fn placed_jobs(
        &self,
        query: &ListQuery,
        range: &PlaceRange,
        names: &[&'static str],
    ) -> Result<Vec<(Cursor, Option<JobSummary>)>> {
        let limit = query.limit.clamp(1, ListQuery::LIMIT_MAX);
        let places = self.each(|store| store.jobs().places(query, range)).await?;
        let mut found: Vec<(Shard, Cursor)> = self.with_shards(places);
        if self.all().len() > 1 {
            found.sort_by(|(_, a), (_, b)| a.order().cmp(&b.order()));
            found.truncate(limit);
        }
        let ids = found.iter().map(|(shard, place)| (*shard, place.id.clone())).collect();
        let jobs = self.of_each(ids, |store, ids| store.jobs().summaries_with(ids, names)).await?;
        Ok(found.into_iter().map(|(_, place)| place).zip(jobs).collect())
    }

    /// Reads jobs as lists show them, in one round trip per shard; `None` for a missing one.
    pub async fn summaries(&self, ids: Vec<JobId>) -> Result<Vec<Option<JobSummary>>> {
        self.of_each(self.by_shard(ids), |store, ids| store.jobs().summaries(ids)).await
    }

    /// Returns jobs with their shards. No shard has a job whose id names another.
    pub(super) fn by_shard(&self, ids: impl IntoIterator<Item = JobId>) -> Vec<(Shard, JobId)> {
        let shard = |id: &JobId| self.count().shard_of(id.as_str()).unwrap_or(Shard::HOME);
        ids.into_iter().map(|id| (shard(&id), id)).collect()
    }

    /// Reads the prerequisites that jobs still wait for, in one round trip per shard.
    pub async fn pending(&self, ids: Vec<JobId>) -> Result<Vec<Vec<JobId>>> {
        self.of_each(self.by_shard(ids), |store, ids| store.jobs().pending(ids)).await
    }

    /// Lists graphs and batches, the newest first, with their counts.
    pub async fn graphs(&self, limit: usize, after: Option<u64>) -> Result<GraphPage> {
        let limit = limit.clamp(1, Store::GRAPHS_PER_PAGE_MAX);
        let mut page = GraphPage { items: Vec::new(), next: after };
        loop {
            let wanted = limit - page.items.len();
            let entries = self.each(|store| store.graphs().entries(wanted, page.next)).await?;
            let entries = latest(self.with_shards(entries), wanted);
            page.next =
                if entries.len() >= wanted { entries.last().map(|(_, (_, at))| *at) } else { None };
            let ids = entries.into_iter().map(|(shard, (id, _))| (shard, id)).collect();
            let found = self.of_each(ids, read_or_forget).await?;
            page.items.extend(found.into_iter().flatten());
            if page.next.is_none() || page.items.len() >= limit {
                return Ok(page);
            }
        }
    }

    /// Adds to the answers of the shards the shard of each.
    fn with_shards<T>(&self, answers: Vec<Vec<T>>) -> Vec<(Shard, T)> {
        let answers = self.all().iter().zip(answers);
        answers.flat_map(|(store, of)| of.into_iter().map(|one| (store.shard(), one))).collect()
    }

    /// Asks each shard for its part, all at the same time. Returns the answers in the order of the questions.
    pub(super) async fn of_each<'a, T, A>(
        &'a self,
        asked: Vec<(Shard, JobId)>,
        ask: impl Fn(&'a Store, Vec<JobId>) -> A,
    ) -> Result<Vec<T>>
    where
        A: Future<Output = Result<Vec<T>>>,
    {
        if let [only] = self.all() {
            return ask(only, asked.into_iter().map(|(_, id)| id).collect()).await;
        }
        let mut parts: BTreeMap<Shard, Vec<JobId>> = BTreeMap::new();
        let order: Vec<Shard> = asked.iter().map(|(shard, _)| *shard).collect();
        for (shard, id) in asked {
            parts.entry(shard).or_default().push(id);
        }
        let answers =
            self.each(|store| ask(store, parts.remove(&store.shard()).unwrap_or_default()));
        let mut answers: Vec<_> = answers.await?.into_iter().map(Vec::into_iter).collect();
        let next = |shard: Shard| answers.get_mut(usize::from(shard.number()))?.next();
        Ok(order.into_iter().filter_map(next).collect())
    }
}

/// Reads graphs, and removes the expired ones from the list of all.
async fn read_or_forget(store: &Store, ids: Vec<JobId>) -> Result<Vec<Option<GraphInfo>>> {
    let found = store.graphs().read(&ids).await?;
    let expired = ids.iter().zip(&found).filter(|(_, found)| found.is_none());
    let expired: Vec<&JobId> = expired.map(|(id, _)| id).collect();
    store.graphs().forget(&expired).await?;
    Ok(found)
}

/// The newest `wanted` entries and all ties with the last, since a cursor is a time.
fn latest(mut entries: Vec<(Shard, (JobId, u64))>, wanted: usize) -> Vec<(Shard, (JobId, u64))> {
    entries.sort_by_key(|(shard, (_, at))| (Reverse(*at), *shard));
    if let Some((_, (_, last))) = entries.get(wanted.saturating_sub(1)).cloned() {
        entries.retain(|(_, (_, at))| *at >= last);
    }
    entries
}
