//! The outputs of finished prerequisites, as inputs of jobs.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jiff::Timestamp;
use redis::Value;

use super::outputs::READS_MAX;
use super::{JobStore, Result, StoreError};
use crate::proto::job::{JobId, JobOutput};
#[cfg(doc)]
use crate::proto::job_rights::JobRights;

/// The output of each prerequisite, in Base64 where it is not UTF-8; none if it did not finish or is gone.
pub type Outputs = BTreeMap<JobId, Option<String>>;

/// The reason why a job cannot have its inputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoInputs {
    /// They are larger together than allowed.
    TooLarge,
    /// The output of this prerequisite cannot be read.
    Unreadable(JobId, StoreError),
    /// This prerequisite, which must have finished, has none: it is in this state.
    Absent(JobId, AbsentOutput),
}

/// The reason why a prerequisite that had finished has no output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AbsentOutput {
    /// It was deleted, or has expired.
    Gone,
    /// It failed when it was run again.
    Failed,
    /// It is run again.
    Unended,
}

#[derive(Debug, Clone, Default)]
pub struct AskedInputs {
    /// Their ids, each once.
    pub ids: Vec<JobId>,
    /// The ids of those that must have finished: the job gets no inputs without them.
    pub finished: BTreeSet<JobId>,
    /// They were created before this time: a later job with the same id is not a prerequisite.
    pub until: Option<Timestamp>,
    /// The rights of the job, as [`JobRights::to_outputs`] has them.
    pub rights: String,
}

impl From<Vec<JobId>> for AskedInputs {
    fn from(ids: Vec<JobId>) -> Self {
        Self { ids, ..Self::default() }
    }
}

/// The outputs for each job; with the place of its job, each prerequisite that left files, and each that is
/// gone though its job may run without it; and the names of prerequisites.
pub(super) type FoundInputs = (
    Vec<Result<Outputs, NoInputs>>,
    BTreeSet<(usize, JobId)>,
    BTreeSet<(usize, JobId)>,
    BTreeMap<JobId, String>,
);

const IDS_PER_CALL: usize = 500;
/// The bytes that one call reads of a long output: Redis bounds answers by its `client-output-buffer-limit`.
const PIECE_BYTES: usize = 512 << 10;
/// The answer of `inputs.lua` for an output that is long or has a key of its own.
const APART: i64 = -1;
/// The same for a job that is gone.
const GONE: i64 = -2;
/// The same for a job that has not ended.
const UNENDED: i64 = -3;

impl JobStore<'_> {
    /// Reads the outputs of the prerequisites of jobs, in as many calls as their number and bytes
    /// need. A job whose inputs exceed `bytes_max` or cannot be read gets an error of its own. Returns with
    /// them the prerequisites that left files, and those that are gone, each with the place of its job, and all names.
    pub async fn inputs(
        self,
        prerequisites: &[AskedInputs],
        bytes_max: u64,
    ) -> Result<FoundInputs> {
        const DOING: &str = "reading the outputs of prerequisites";
        let mut inputs = vec![Ok(Outputs::new()); prerequisites.len()];
        let (mut with_files, mut gone, mut names) =
            (BTreeSet::new(), BTreeSet::new(), BTreeMap::new());
        let mut bytes = vec![0; prerequisites.len()];
        let all = prerequisites.iter().enumerate();
        let mut left: VecDeque<(usize, &JobId)> =
            all.flat_map(|(job, of)| of.ids.iter().map(move |id| (job, id))).collect();
        while !left.is_empty() {
            let asked = left.len().min(IDS_PER_CALL);
            let mut script = self.store.scripts.inputs.prepare_invoke();
            script.arg(bytes_max);
            for (job, id) in left.iter().take(asked) {
                let AskedInputs { until, rights, .. } = &prerequisites[*job];
                script.arg(id.as_str()).arg(until.map(|at| at.to_string()).unwrap_or_default());
                script.arg(rights);
            }
            let answers: Vec<(Value, u8, String)> = self.store.invoke(DOING, &script).await?;
            if answers.is_empty() || answers.len() > asked {
                return Err(StoreError::unexpected(DOING));
            }
            let answered = left.drain(..answers.len());
            for ((job, id), (answer, has_files, name)) in answered.zip(answers) {
                with_files.extend((has_files == 1).then(|| (job, id.clone())));
                names.extend((!name.is_empty()).then(|| (id.clone(), name)));
                gone.extend((answer == Value::Int(GONE)).then(|| (job, id.clone())));
                let is_needed = prerequisites[job].finished.contains(id);
                if let Some(why) = absent(&answer).filter(|_| is_needed) {
                    inputs[job] = Err(NoInputs::Absent(id.clone(), why));
                    continue;
                }
                let (size, output) = match answer {
                    Value::Int(GONE | UNENDED) => (0, None),
                    // The job cannot have its inputs already.
                    Value::Int(APART) if inputs[job].is_err() => (0, None),
                    Value::Int(APART) => match self.output_in_pieces(id, bytes_max).await {
                        Ok(Some(output)) => sized(Value::BulkString(output)),
                        Ok(_) if is_needed => {
                            inputs[job] = Err(NoInputs::Absent(id.clone(), AbsentOutput::Gone));
                            continue;
                        }
                        Ok(_) => (0, None),
                        Err(error) if error.is_outage() => return Err(error),
                        Err(error) => {
                            inputs[job] = Err(NoInputs::Unreadable(id.clone(), error));
                            continue;
                        }
                    },
                    answer => sized(answer),
                };
                bytes[job] += size;
                match &mut inputs[job] {
                    Ok(of) if bytes[job] <= bytes_max => _ = of.insert(id.clone(), output),
                    Ok(_) => inputs[job] = Err(NoInputs::TooLarge),
                    Err(_) => {}
                }
            }
            left.retain(|(job, _)| inputs[*job].is_ok());
        }
        Ok((inputs, with_files, gone, names))
    }

    /// Reads the output of a job in pieces, until it has more than `bytes_max`. `None` if the job has none any more.
    async fn output_in_pieces(self, id: &JobId, bytes_max: u64) -> Result<Option<Vec<u8>>> {
        const DOING: &str = "reading a long output";
        let mut restarts = 0;
        let (mut output, mut of) = (Vec::new(), None);
        while restarts < READS_MAX {
            let arguments = (id.as_str(), output.len(), PIECE_BYTES);
            let answer: Vec<Vec<u8>> =
                self.store.run_script(DOING, &self.store.scripts.output_piece, arguments).await?;
            let [piece, now] = match <[Vec<u8>; 2]>::try_from(answer) {
                Ok(both) => both,
                Err(nothing) if nothing.is_empty() => return Ok(None),
                Err(_) => {
                    let key = self.store.keys.output(id);
                    let reason = format!("key {key} is gone, though the job has not expired");
                    return Err(StoreError::failed(DOING, reason));
                }
            };
            if of.get_or_insert_with(|| now.clone()) != &now {
                // The job has ended again.
                (output, of, restarts) = (Vec::new(), None, restarts + 1);
                continue;
            }
            let is_last = piece.len() < PIECE_BYTES;
            output.extend(piece);
            if is_last || output.len() as u64 > bytes_max {
                return Ok(Some(output));
            }
        }
        let reason = format!("job {id} changes while it is read");
        Err(StoreError::not_serving(&self.store.address(), reason))
    }
}

fn absent(answer: &Value) -> Option<AbsentOutput> {
    match answer {
        Value::Int(GONE) => Some(AbsentOutput::Gone),
        Value::Int(UNENDED) => Some(AbsentOutput::Unended),
        Value::Nil | Value::Boolean(false) => Some(AbsentOutput::Failed),
        _ => None,
    }
}

/// The size and the text of an output; without the text if it is larger than asked for.
fn sized(answer: Value) -> (u64, Option<String>) {
    match answer {
        Value::BulkString(bytes) => (bytes.len() as u64, Some(JobOutput::from(bytes).into_text())),
        Value::Int(size) => (size.unsigned_abs(), None),
        _ => (0, None),
    }
}
