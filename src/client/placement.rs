//! Placement: the shard that a job, graph or batch goes to. Decided before anything is sent, from the job alone, so
//! that every client comes to the same shard.
//!
//! A job goes to the shard of its id if its submitter chose one, else of its prerequisites, else
//! of its `shard_key`, its unique key, or `TYPE:GROUP`. A graph or batch is on one shard with all its jobs.

use std::collections::{HashMap, HashSet};

use super::{Client, ClientError, Result};
use crate::proto::cron::is_id_of_firing;
use crate::proto::job::{InvalidJob, Job, JobId, JobSpec, is_id_of_callback, is_id_of_child};
use crate::proto::shard::{Shard, ShardCount};
use crate::store::Store;

impl Client {
    /// Rejects the id of a job that a submitter may not choose, and a signature without the id that it signs.
    pub(super) fn check_id(job: &Job) -> Result<(), InvalidJob> {
        let id = &job.id;
        for (is_so, why) in [
            (is_id_of_firing(id), "belongs to the periodic jobs, whose ids a supervisor gives"),
            (
                is_id_of_child(id),
                "belongs to the jobs that scripts submit, whose ids an actor gives",
            ),
            (is_id_of_callback(id), "belongs to the callbacks of graphs, whose ids Hero gives"),
        ] {
            if is_so {
                return Err(InvalidJob::new("id", format!("`{id}` {why}: choose another")));
            }
        }
        Self::check_chosen_id(id)?;
        if job.spec.signature.is_some() && !job.has_fixed_id {
            return Err(InvalidJob::new("signature", "needs an id: it signs the id too"));
        }
        Ok(())
    }

    /// Rejects an id of a job, graph or batch that a command line takes for an option, as after `xargs`, or for the short form
    /// of the id of another.
    pub(super) fn check_chosen_id(id: &JobId) -> Result<(), InvalidJob> {
        let why = if id.as_str().starts_with('-') {
            "begins with `-`, which commands take for an option"
        } else if id.is_like_short_uuid() {
            "reads as the short form of an id that Hero makes, which may be of another"
        } else {
            return Ok(());
        };
        Err(InvalidJob::new("id", format!("`{id}` {why}: choose another")))
    }

    /// Decides which shard a job goes to. If its submitter did not choose its id, it gets an id that tells its
    /// shard, which stays from now on. Submitting a job does this as well.
    ///
    /// # Errors
    /// [`ClientError::PrerequisitesApart`], [`ClientError::OtherShard`]; [`ClientError::NoSuchShard`] if an id
    /// tells a shard that is not there.
    pub fn place(&self, job: &mut Job) -> Result<()> {
        let count = self.shards.count();
        put(job, shard_of(job, count)?, count)
    }

    pub(super) fn place_on_shard_of(&self, id: &JobId, job: &mut Job) -> Result<()> {
        let count = self.shards.count();
        put(job, count.shard_of(id.as_str())?, count)
    }

    /// Places the jobs of a list, each by itself or all on one shard. A job that waits for an earlier one, whose id
    /// was not fixed, waits for its new id. A job that is rejected already stays so.
    pub(super) fn placed(&self, jobs: Vec<Result<Job>>, on: Option<Shard>) -> Vec<Result<Job>> {
        placed(jobs, on, self.shards.count())
    }

    /// Returns the store that has a job, graph or batch.
    pub(super) fn of(&self, id: &JobId) -> Result<&Store> {
        Ok(self.shards.of(id.as_str())?)
    }

    /// The same where an id of a shard that is not there only finds nothing.
    pub(super) fn of_or_home(&self, id: &JobId) -> &Store {
        self.shards.of(id.as_str()).unwrap_or(&self.store)
    }
}

fn shard_of(job: &Job, count: ShardCount) -> Result<Shard> {
    if count == ShardCount::ONE {
        return Ok(Shard::HOME);
    }
    if job.has_fixed_id {
        return Ok(count.shard_of(job.id.as_str())?);
    }
    let mut waits_for = job.spec.waits_for();
    if let Some(first) = waits_for.next() {
        let shard = count.shard_of(first.as_str())?;
        for second in waits_for {
            if count.shard_of(second.as_str())? != shard {
                let (first, second) = (first.clone(), second.clone());
                return Err(ClientError::PrerequisitesApart { first, second });
            }
        }
        return Ok(shard);
    }
    Ok(count.place(&key_of(&job.spec)))
}

/// Returns the text that decides the place of a job without id and prerequisites.
fn key_of(spec: &JobSpec) -> String {
    if let Some(key) = &spec.shard_key {
        return key.to_string();
    }
    if let Some(key) = spec.key_of_content().or(spec.unique_key.clone()) {
        return key.to_string();
    }
    let script_type = spec.script_type.as_ref().map(ToString::to_string).unwrap_or_default();
    format!("{script_type}:{}", spec.group.clone().unwrap_or_default())
}

/// Puts a job on a shard: checks its id and its prerequisites, or gives it an id of the shard.
fn put(job: &mut Job, shard: Shard, count: ShardCount) -> Result<()> {
    if count == ShardCount::ONE {
        return Ok(());
    }
    let own = job.has_fixed_id.then_some(&job.id);
    for id in own.into_iter().chain(job.spec.waits_for()) {
        let of = count.shard_of(id.as_str())?;
        if of != shard {
            return Err(ClientError::OtherShard { id: id.clone(), of, shard });
        }
    }
    if !job.has_fixed_id {
        (job.id, job.has_fixed_id) = (shard.id(&job.id), true);
    }
    Ok(())
}

/// Returns the shard of jobs that must be on one: of the first id that a submitter chose, else of the first
/// prerequisite outside of them, else of the first `shard_key`, else of the first unique key. An id of a shard
/// that is not there tells none: its job is rejected later.
pub(super) fn shard_of_all(jobs: &[Job], count: ShardCount) -> Option<Shard> {
    let told = |id: &JobId| count.shard_of(id.as_str()).ok();
    let mut fixed = jobs.iter().filter(|job| job.has_fixed_id).map(|job| &job.id);
    if let Some(shard) = fixed.find_map(told) {
        return Some(shard);
    }
    let own: HashSet<&JobId> = jobs.iter().map(|job| &job.id).collect();
    let mut outside =
        jobs.iter().flat_map(|job| job.spec.waits_for()).filter(|id| !own.contains(id));
    if let Some(shard) = outside.find_map(told) {
        return Some(shard);
    }
    let has_shard_key = |job: &&Job| job.spec.shard_key.is_some();
    let has_unique_key = |job: &&Job| job.spec.unique_key.is_some() || job.spec.unique_by.is_some();
    let first = jobs.iter().find(has_shard_key).or_else(|| jobs.iter().find(has_unique_key))?;
    Some(count.place(&key_of(&first.spec)))
}

pub(super) fn at_random(id: &JobId, count: ShardCount) -> Shard {
    count.place(id.as_str())
}

fn placed(jobs: Vec<Result<Job>>, on: Option<Shard>, count: ShardCount) -> Vec<Result<Job>> {
    if count == ShardCount::ONE {
        return jobs;
    }
    let mut renamed: HashMap<JobId, JobId> = HashMap::new();
    // On one shard they may wait for each other in any order.
    if let Some(shard) = on {
        let open = jobs.iter().flatten().filter(|job| !job.has_fixed_id);
        renamed.extend(open.map(|job| (job.id.clone(), shard.id(&job.id))));
    }
    let place = |job: Result<Job>| {
        let mut job = job?;
        let old = job.id.clone();
        rename(&mut job, &renamed);
        let shard = on.map_or_else(|| shard_of(&job, count), Ok)?;
        put(&mut job, shard, count)?;
        renamed.insert(old, job.id.clone());
        Ok(job)
    };
    jobs.into_iter().map(place).collect()
}

/// Lets a job wait for the new ids of others.
pub(super) fn rename(job: &mut Job, renamed: &HashMap<JobId, JobId>) {
    let spec = &mut job.spec;
    let waits_for = spec.prerequisites.iter_mut().chain(&mut spec.after_any);
    for id in waits_for.chain(spec.prerequisite_names.values_mut()) {
        if let Some(new) = renamed.get(id) {
            id.clone_from(new);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::client::JobBuilder;

    const FOUR: u16 = 4;

    fn count(number: u16) -> ShardCount {
        ShardCount::new(number).expect("a legal count")
    }

    fn job(change: impl FnOnce(JobBuilder) -> JobBuilder) -> Job {
        change(JobBuilder::new("osis", "1")).build().expect("legal")
    }

    fn number(job: &Job) -> u16 {
        shard_of(job, count(FOUR)).expect("it has a shard").number()
    }

    #[test]
    fn the_first_that_is_given_of_id_prerequisites_and_keys_places_a_job() {
        let place = |key: &str| count(FOUR).place(key).number();
        assert_eq!(number(&job(|of| of.id("s3-a").after("s1-b").shard_key("k"))), 3);
        assert_eq!(number(&job(|of| of.id("daily").shard_key("k"))), 0);
        assert_eq!(number(&job(|of| of.after("s1-b").after_any("s1-c").shard_key("k"))), 1);
        assert_eq!(number(&job(|of| of.shard_key("k").unique_key("u"))), place("k"));
        assert_eq!(number(&job(|of| of.unique_key("u"))), place("u"));
        assert_eq!(number(&job(|of| of.group("web"))), place("osis:web"));
        assert_eq!(number(&job(|of| of)), place("osis:default"));
        let by_content = job(|of| of.unique_by("script"));
        let key = by_content.spec.key_of_content().expect("a key").to_string();
        assert_eq!(number(&by_content), place(&key));
    }

    #[test]
    fn jobs_of_different_shards_cannot_be_waited_for_together() {
        let told = |job: Job| shard_of(&job, count(FOUR)).expect_err("apart").to_string();
        assert_eq!(
            told(job(|of| of.after("s1-a").after_any("b"))),
            "prerequisites s1-a and b are on different shards; give the jobs the same shard_key"
        );
        let mut own = job(|of| of.id("s3-a").after("s1-b"));
        let shard = shard_of(&own, count(FOUR)).expect("the shard of its id");
        let told = put(&mut own, shard, count(FOUR)).expect_err("refused").to_string();
        assert!(
            told.starts_with("s1-b is on shard 1, but the job or its graph on shard 3"),
            "{told}"
        );
        let unknown = shard_of(&job(|of| of.id("s4-a")), count(FOUR)).expect_err("no such shard");
        assert!(unknown.to_string().contains("has the shards 0 to 3"), "{unknown}");
    }

    #[test]
    fn jobs_of_one_graph_follow_the_first_of_them_that_names_a_shard() {
        let shard = |jobs: &[Job]| shard_of_all(jobs, count(FOUR)).map(Shard::number);
        let keyed = || job(|of| of.shard_key("k"));
        let place = count(FOUR).place("k").number();
        let first = job(|of| of);
        let second = job(|of| of.after(first.id.as_str()));
        assert_eq!(shard(&[first.clone(), second.clone()]), None);
        assert_eq!(shard(&[first.clone(), second.clone(), keyed()]), Some(place));
        let after = job(|of| of.after(first.id.as_str()).after("s2-b"));
        assert_eq!(shard(&[first, second, keyed(), after]), Some(2));
        assert_eq!(shard(&[keyed(), job(|of| of.id("s3-a"))]), Some(3));
        assert_eq!(shard(&[job(|of| of.id("s9-a")), keyed()]), Some(place), "there is no shard 9");
    }

    #[test]
    fn shard_of_many_jobs_that_wait_for_each_other_is_found_in_linear_time() {
        let mut chain: Vec<Job> = (0..200_000).map(|_| job(|of| of)).collect();
        for place in 1..chain.len() {
            let before = chain[place - 1].id.clone();
            chain[place].spec.prerequisites = vec![before];
        }
        assert_eq!(shard_of_all(&chain, count(FOUR)), None);
    }

    #[test]
    fn with_one_shard_ids_stay_as_they_are() {
        let jobs = [job(|of| of), job(|of| of.id("s9-a").after("s3-b").after("c"))];
        let placed = placed(jobs.iter().cloned().map(Ok).collect(), None, ShardCount::ONE);
        for (before, after) in jobs.iter().zip(placed) {
            assert_eq!(*before, after.expect("placed"));
        }
    }

    #[test]
    fn jobs_wait_for_the_new_ids_of_others_of_their_list() {
        let first = job(|of| of.shard_key("k"));
        let second = job(|of| of.after(first.id.as_str()));
        for (jobs, on) in [
            (vec![first.clone(), second.clone()], None),
            (vec![second, first], count(FOUR).shard(3)),
        ] {
            let mut placed: Vec<Job> = placed(jobs.into_iter().map(Ok).collect(), on, count(FOUR))
                .into_iter()
                .map(|job| job.expect("placed"))
                .collect();
            placed.sort_by_key(|job| job.spec.prerequisites.len());
            assert_eq!(placed[1].spec.prerequisites, [placed[0].id.clone()]);
            assert_eq!(number(&placed[0]), number(&placed[1]));
        }
    }

    proptest! {
        #[test]
        fn a_placed_job_stays_where_it_is(key in "[a-z]{1,8}", shards in 1_u16..20) {
            let mut placed = job(|of| of.shard_key(&key));
            let shard = shard_of(&placed, count(shards)).expect("a shard");
            put(&mut placed, shard, count(shards)).expect("placed");
            prop_assert_eq!(count(shards).shard_of(placed.id.as_str()), Ok(shard));
            let again = placed.clone();
            put(&mut placed, shard, count(shards)).expect("placed again");
            prop_assert_eq!(placed, again);
        }
    }
}
