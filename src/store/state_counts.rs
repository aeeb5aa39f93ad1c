//! Counts the jobs of each state and end.

use super::{Result, Store};
use crate::proto::job::{JobEnd, JobStatus};

const TERMINAL: [JobStatus; 2] = [JobStatus::Finished, JobStatus::Error];
const TYPES_PER_STEP: usize = 100;
const INDEXES_PER_PAGE: usize = 1000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobCounts {
    /// The jobs of each state, the held ones among the dispatched.
    pub states: [(JobStatus, u64); JobStatus::ALL.len()],
    pub ends: [(JobEnd, u64); JobEnd::ALL.len()],
    /// The ended jobs of an older version that are not sorted by their ends yet.
    pub unsorted: u64,
}

impl Default for JobCounts {
    fn default() -> Self {
        let states = JobStatus::ALL.map(|status| (status, 0));
        Self { states, ends: JobEnd::ALL.map(|end| (end, 0)), unsorted: 0 }
    }
}

impl JobCounts {
    pub fn of_state(&self, status: JobStatus) -> u64 {
        self.states.iter().filter(|(of, _)| *of == status).map(|(_, number)| number).sum()
    }

    /// Returns the number of jobs with one of these ends; `None` while some are unsorted.
    pub fn of_ends(&self, ends: &[JobEnd]) -> Option<u64> {
        let wanted = self.ends.iter().filter(|(end, _)| ends.contains(end));
        (self.unsorted == 0).then(|| wanted.map(|(_, number)| number).sum())
    }

    pub fn all(&self) -> u64 {
        self.states.iter().map(|(_, number)| number).sum()
    }

    fn add(&mut self, status: JobStatus, number: u64) {
        let own = self.states.iter_mut().filter(|(of, _)| *of == status);
        own.for_each(|(_, sum)| *sum += number);
    }

    /// Adds the sizes of the indexes of a type: of the terminal states, then of the ends.
    fn add_ended(&mut self, sizes: &[u64]) {
        let (of_states, of_ends) = sizes.split_at(TERMINAL.len().min(sizes.len()));
        for (status, number) in TERMINAL.into_iter().zip(of_states) {
            let ends = JobEnd::ALL.into_iter().zip(of_ends);
            let sorted: u64 =
                ends.filter(|(end, _)| end.status() == status).map(|(_, number)| number).sum();
            self.unsorted += number.abs_diff(sorted);
            self.add(status, *number);
        }
        self.ends.iter_mut().zip(of_ends).for_each(|((_, sum), number)| *sum += number);
    }

    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        self.states.iter_mut().zip(other.states).for_each(|((_, sum), (_, of))| *sum += of);
        self.ends.iter_mut().zip(other.ends).for_each(|((_, sum), (_, of))| *sum += of);
        self.unsorted += other.unsorted;
        self
    }
}

impl Store {
    /// Counts the jobs of each state and end. It costs the indexes and not the jobs.
    pub async fn count_jobs(&self) -> Result<JobCounts> {
        let mut counts = self.count_ended().await?;
        for status in JobStatus::ALL.into_iter().filter(|status| !status.is_terminal()) {
            let indexes = self.indexes(status, None).await?;
            counts.add(status, self.sizes(&indexes).await?.into_iter().sum());
        }
        Ok(counts)
    }

    /// Counts the ended jobs alone. The indexes of a type are counted in one step, so that none is between two.
    pub(super) async fn count_ended(&self) -> Result<JobCounts> {
        let mut counts = JobCounts::default();
        for types in self.types().await?.chunks(TYPES_PER_STEP) {
            let mut step = redis::pipe();
            for of in types {
                for status in TERMINAL {
                    step.cmd("ZCARD").arg(self.keys.index(status, of));
                }
                for end in JobEnd::ALL {
                    step.cmd("ZCARD").arg(self.keys.ended(end, of));
                }
            }
            let sizes: Vec<u64> = self.read_at_once("counting jobs", &step).await?;
            for of_type in sizes.chunks(TERMINAL.len() + JobEnd::ALL.len()) {
                counts.add_ended(of_type);
            }
        }
        Ok(counts)
    }

    async fn sizes(&self, indexes: &[String]) -> Result<Vec<u64>> {
        let mut sizes = Vec::with_capacity(indexes.len());
        for page in indexes.chunks(INDEXES_PER_PAGE) {
            let size = |index: &'_ String| ("ZCARD", index.clone());
            let numbers: Vec<Option<u64>> = self.link.each("counting jobs", page, size).await?;
            // A key of a wrong type counts nothing.
            sizes.extend(numbers.into_iter().map(Option::unwrap_or_default));
        }
        Ok(sizes)
    }
}
