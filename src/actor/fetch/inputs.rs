//! The givens of claimed jobs: the outputs and files of their prerequisites, their own files, and the message
//! that a job was. Jobs without any of these cost nothing here.

mod files;
mod produced;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::config::{JobConfig, format_size};
use crate::engine::{InputFiles, Inputs};
use crate::proto::job::{INPUT_FILES, InvalidJob, Job, JobId};
use crate::proto::job_rights::JobRights;
use crate::store::{AbsentOutput, AskedInputs, Attempt, NoInputs, Outputs, Store, StoreError};

/// Everything that one job is given.
#[derive(Debug, Default)]
pub(super) struct JobInputs {
    /// The outputs of its prerequisites.
    pub(super) outputs: Inputs,
    /// The prerequisites that are gone, and without which it may run.
    pub(super) gone: Vec<JobId>,
    pub(super) files: InputFiles,
}

/// The givens of a job, or why it cannot have them.
pub(super) type ReadInputs = Result<JobInputs, InvalidJob>;

/// The givens of those jobs of a claim that have any.
pub(super) type InputsOf = HashMap<JobId, ReadInputs>;

/// Reads what all jobs are given, outputs in one round trip.
///
/// # Errors
/// A transient [`StoreError`]; the jobs are claimed nevertheless. Any other is the error of the one job that it
/// concerns, so that the next claim does not meet it again.
pub(super) async fn fetch(
    store: &Store,
    config: &JobConfig,
    attempts: &[Attempt],
) -> Result<InputsOf, StoreError> {
    let all = attempts.iter().filter_map(|attempt| attempt.job.as_ref().ok());
    let jobs: Vec<&Job> = all.clone().filter(|job| job.spec.waits_for().next().is_some()).collect();
    let mut given: InputsOf = all.clone().filter_map(message_of).collect();
    let (outputs, with_files) = outputs_of(store, config, &jobs).await?;
    given.extend(outputs);
    let none = BTreeSet::new();
    for job in all {
        if let Some(outputs) = produced::read(store, config, job).await? {
            given.insert(job.id.clone(), Ok(JobInputs { outputs, ..JobInputs::default() }));
        }
        let left = with_files.get(&job.id).unwrap_or(&none);
        let mut leaving = job.spec.waits_for().filter(|id| left.contains(*id)).peekable();
        if job.extra.contains_key(INPUT_FILES) || leaving.peek().is_some() {
            let files = match files::read(store, config, job, leaving).await {
                Err(error) if error.is_outage() => return Err(error),
                Err(error) => Err(InvalidJob::new(INPUT_FILES, format!("cannot be read: {error}"))),
                Ok(files) => files,
            };
            let of_job = given.entry(job.id.clone()).or_insert_with(|| Ok(JobInputs::default()));
            if let Ok(given) = of_job {
                match files {
                    Ok(files) => given.files = files,
                    Err(invalid) => *of_job = Err(invalid),
                }
            }
        }
    }
    Ok(given)
}

/// Reads the outputs of the prerequisites of jobs, and for each job the ids of those that left files.
async fn outputs_of(
    store: &Store,
    config: &JobConfig,
    jobs: &[&Job],
) -> Result<(InputsOf, HashMap<JobId, BTreeSet<JobId>>), StoreError> {
    if jobs.is_empty() {
        return Ok((InputsOf::new(), HashMap::new()));
    }
    let asked = |job: &&Job| AskedInputs {
        ids: job.spec.waits_for().cloned().collect::<BTreeSet<_>>().into_iter().collect(),
        finished: job.spec.prerequisites.iter().cloned().collect(),
        until: job.prerequisites_at,
        rights: JobRights::to_outputs(job),
    };
    let prerequisites: Vec<AskedInputs> = jobs.iter().map(asked).collect();
    let (found, with_files, gone, names) =
        store.jobs().inputs(&prerequisites, config.inputs_size_max).await?;
    let inputs = jobs.iter().zip(found).enumerate().map(|(place, (job, outputs))| {
        let gone = gone.iter().filter(|(of, _)| *of == place).map(|(_, id)| id.clone()).collect();
        let given = outputs.map(|outputs| JobInputs {
            outputs: named(job, outputs, &names),
            gone,
            ..JobInputs::default()
        });
        (job.id.clone(), given.map_err(|reason| without_inputs(config, reason)))
    });
    let mut files_of: HashMap<JobId, BTreeSet<JobId>> = HashMap::new();
    for (place, id) in with_files {
        files_of.entry(jobs[place].id.clone()).or_default().insert(id);
    }
    Ok((inputs.collect(), files_of))
}

/// The input of a job that was a message of RabbitMQ.
fn message_of(job: &Job) -> Option<(JobId, ReadInputs)> {
    job.extra.get("amqp_scope")?;
    let message: Arc<str> = job.extra.get("message")?.as_str().into();
    let by_name = [("message".to_owned(), Some(message))].into();
    let outputs = Inputs { by_name, ..Inputs::default() };
    Some((job.id.clone(), Ok(JobInputs { outputs, ..JobInputs::default() })))
}

/// Names the outputs by job id and, in a graph, by name as well; and has the jobs by their own names.
fn named(job: &Job, outputs: Outputs, names_of_jobs: &BTreeMap<JobId, String>) -> Inputs {
    let mut holders: BTreeMap<&str, Vec<&JobId>> = BTreeMap::new();
    for (id, name) in names_of_jobs.iter().filter(|(id, _)| outputs.contains_key(*id)) {
        holders.entry(name).or_default().push(id);
    }
    let names = &job.spec.prerequisite_names;
    let name_of = |id: &JobId| names.iter().find(|(_, of)| *of == id).map(|(name, _)| name.clone());
    let prerequisites =
        outputs.keys().map(|id| name_of(id).unwrap_or_else(|| id.to_string())).collect();
    let mut by_name: BTreeMap<String, Option<Arc<str>>> =
        outputs.into_iter().map(|(id, output)| (id.to_string(), output.map(Arc::from))).collect();
    for (name, id) in names {
        if let Some(output) = by_name.get(id.as_str()).cloned() {
            by_name.insert(name.clone(), output);
        }
    }
    let is_new = |name: &str, ids: &[&JobId]| ids.len() == 1 && !by_name.contains_key(name);
    let alone = holders.into_iter().filter(|(name, ids)| is_new(name, ids));
    let jobs = alone.map(|(name, ids)| (name.to_owned(), ids[0].to_string())).collect();
    Inputs { by_name, prerequisites, jobs }
}

fn without_inputs(config: &JobConfig, reason: NoInputs) -> InvalidJob {
    let reason = match reason {
        NoInputs::TooLarge => {
            let max = format_size(config.inputs_size_max);
            format!("have more output than job.inputs_size_max allows: {max}")
        }
        NoInputs::Unreadable(id, error) => {
            format!("include {id}, whose output cannot be read: {error}; run {id} again")
        }
        NoInputs::Absent(id, why) => match why {
            AbsentOutput::Gone => {
                format!(
                    "include {id}, which is gone with its output: it was deleted, or its retention is over"
                )
            }
            AbsentOutput::Failed => format!("include {id}, which failed when it was run again"),
            AbsentOutput::Unended => {
                format!("include {id}, which is run again and has not ended; retry this job then")
            }
        },
    };
    InvalidJob::new("prerequisites", reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prerequisite_is_named_by_id_by_its_name_in_the_graph_and_by_its_own() {
        let id = |text: &str| -> JobId { text.parse().expect("legal") };
        let mut job = Job::new(id("j"), "1");
        job.spec.prerequisite_names.insert("first".to_owned(), id("a"));
        job.spec.prerequisite_names.insert("a lie".to_owned(), id("elsewhere"));
        let outputs = Outputs::from([(id("a"), Some("1".to_owned())), (id("b"), None)]);
        let name = |of: &str, name: &str| (id(of), name.to_owned());
        let names = [name("a", "own"), name("b", "first"), name("c", "of another job")].into();
        let inputs = named(&job, outputs, &names);
        let one: Option<Arc<str>> = Some("1".into());
        let expected = [("a", one.clone()), ("b", None), ("first", one)];
        let expected = expected.map(|(name, output)| (name.to_owned(), output));
        assert_eq!(inputs.by_name, expected.into());
        assert_eq!(inputs.prerequisites, ["first", "b"], "each once");
        assert_eq!(inputs.jobs, [("own".to_owned(), "a".to_owned())].into());
    }
}
