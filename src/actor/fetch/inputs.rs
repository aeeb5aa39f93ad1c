//! The inputs of claimed jobs: the outputs of their prerequisites, and the message that a job was. Jobs
//! without either cost nothing here.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::config::{JobConfig, format_size};
use crate::engine::Inputs;
use crate::proto::job::{InvalidJob, Job, JobId};
use crate::store::{Attempt, Outputs, Store, StoreError};

/// The inputs of those jobs of a claim that have prerequisites.
pub(super) type InputsOf = HashMap<JobId, Result<Inputs, InvalidJob>>;

/// Reads the inputs of all jobs in one round trip.
///
/// # Errors
/// [`StoreError`]; the jobs are claimed nevertheless.
pub(super) async fn fetch(
    store: &Store,
    config: &JobConfig,
    attempts: &[Attempt],
) -> Result<InputsOf, StoreError> {
    let jobs: Vec<&Job> = attempts
        .iter()
        .filter_map(|attempt| attempt.job.as_ref().ok())
        .filter(|job| job.spec.waits_for().next().is_some())
        .collect();
    let messages = attempts.iter().filter_map(|attempt| message_of(attempt.job.as_ref().ok()?));
    if jobs.is_empty() {
        return Ok(messages.collect());
    }
    let prerequisites: Vec<Vec<JobId>> = jobs
        .iter()
        .map(|job| job.spec.waits_for().cloned().collect::<BTreeSet<_>>().into_iter().collect())
        .collect();
    let found = store.inputs(&prerequisites, config.inputs_size_max).await?;
    let inputs = jobs.iter().zip(found).map(|(job, outputs)| {
        let inputs = outputs.map(|outputs| named(job, outputs));
        (job.id.clone(), inputs.ok_or_else(|| too_large(config)))
    });
    Ok(inputs.chain(messages).collect())
}

/// The input of a job that was a message of RabbitMQ.
fn message_of(job: &Job) -> Option<(JobId, Result<Inputs, InvalidJob>)> {
    job.extra.get("amqp_scope")?;
    let message: Arc<str> = job.extra.get("message")?.as_str().into();
    Some((job.id.clone(), Ok(Inputs::from([("message".to_owned(), Some(message))]))))
}

/// Names the outputs by job id and, in a graph, by name as well.
fn named(job: &Job, outputs: Outputs) -> Inputs {
    let mut inputs: Inputs =
        outputs.into_iter().map(|(id, output)| (id.to_string(), output.map(Arc::from))).collect();
    for (name, id) in &job.spec.prerequisite_names {
        if let Some(output) = inputs.get(id.as_str()).cloned() {
            inputs.insert(name.clone(), output);
        }
    }
    inputs
}

fn too_large(config: &JobConfig) -> InvalidJob {
    let max = format_size(config.inputs_size_max);
    let reason = format!("have more output than job.inputs_size_max allows: {max}");
    InvalidJob::new("prerequisites", reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prerequisite_of_a_graph_is_named_by_id_and_by_name() {
        let id = |text: &str| -> JobId { text.parse().expect("legal") };
        let mut job = Job::new(id("j"), "1");
        job.spec.prerequisite_names.insert("first".to_owned(), id("a"));
        job.spec.prerequisite_names.insert("a lie".to_owned(), id("elsewhere"));
        let outputs = Outputs::from([(id("a"), Some("1".to_owned())), (id("b"), None)]);
        let inputs = named(&job, outputs);
        let one: Option<Arc<str>> = Some("1".into());
        let expected = [("a", one.clone()), ("b", None), ("first", one)];
        assert_eq!(inputs, expected.map(|(name, output)| (name.to_owned(), output)).into());
    }
}
