//! `hero submit --batch` and `--each`: one job per line.

use std::path::Path;

use serde_json::{Value, json};

use super::batch_line::LineFiles;
use super::batch_lines::{BatchLine, BatchLines};
use super::each::JobPerLine;
use crate::cli::job_notes::JobTargets;
use crate::cli::{input, output};
use crate::client::{Client, ClientError, NewBatch};
use crate::config::Config;
use crate::error::{Error, Exit};
use crate::proto::job::{INPUT_FILES, Job, JobId, TraceParent};
use crate::proto::text::counted;
use crate::store::Store;

/// The size of a line beside its script: escapes, variables, prerequisites.
const LINE_MARGIN_BYTES: u64 = 1 << 20;
/// The jobs, and the bytes of their scripts, that are submitted and reported together.
const JOBS_PER_CALL: usize = 250;
const BYTES_PER_CALL: usize = 1 << 20;

/// The ids that are printed.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum PrintedIds {
    /// The id of the batch, at the end.
    #[default]
    Batch,
    /// The ids of the jobs, as they are accepted.
    Ids,
    /// The ids of all, as one document at the end.
    Json,
}

/// The results of the lines so far.
#[derive(Default)]
struct Tally {
    printed: PrintedIds,
    ids: Vec<Value>,
    /// The number of accepted jobs.
    accepted: u64,
    /// The number of those that were submitted before with the same id and content.
    repeated: u64,
    /// The number of jobs that belong to the batch.
    members: u64,
    /// True once the batch is stored as an object.
    is_stored: bool,
    refused: Vec<Value>,
    /// Ids to write, one per line, after each round trip.
    unwritten: String,
    targets: JobTargets,
}

/// Submits the jobs of a file, some per round trip, or all as one atomic batch.
pub(super) async fn run(
    client: &Client,
    config: &Config,
    (path, each): (&Path, Option<&JobPerLine<'_>>),
    mut batch: NewBatch,
    all_or_none: bool,
    (printed, trace): (PrintedIds, Option<TraceParent>),
) -> Result<(), Error> {
    let bytes_max = config.job.script_size_max.saturating_mul(2).saturating_add(LINE_MARGIN_BYTES);
    let from = input::open(path)?;
    for job in batch.callbacks.values_mut() {
        job.spec.traceparent = trace;
    }
    let mut lines = BatchLines { from, path, each, config, bytes_max, trace, number: 0 };
    let mut tally = Tally { printed, ..Tally::default() };
    if all_or_none {
        submit_atomic_batch(client, &mut batch, &mut lines, &mut tally).await?;
    } else {
        while submit_some(client, &mut batch, &mut lines, &mut tally).await? {}
        if tally.is_stored && tally.accepted == tally.repeated {
            client.drop_empty_batch(&batch.id).await?;
            tally.is_stored = false;
        }
        if tally.is_stored {
            client.close_batch(&batch).await?;
        }
    }
    let targets = std::mem::take(&mut tally.targets);
    let ended = tally.end(path, &batch);
    if config.supervisor.served_legacy_queues().is_empty() {
        targets.report_unserved(client).await;
    }
    ended
}

/// Submits about as many jobs as one call to Redis takes. Returns whether there may be more.
async fn submit_some(
    client: &Client,
    batch: &mut NewBatch,
    lines: &mut BatchLines<'_>,
    tally: &mut Tally,
) -> Result<bool, Error> {
    let (mut read, mut refused) = (Vec::new(), Vec::new());
    let (mut more, mut bytes) = (true, 0);
    while read.len() < JOBS_PER_CALL && bytes < BYTES_PER_CALL {
        match lines.next(client)? {
            None => {
                more = false;
                break;
            }
            Some(Ok(line)) => {
                bytes += line.job.spec.script.len();
                read.push(line);
            }
            Some(Err(error)) => refused.push((lines.number, Err(error.into()))),
        }
    }
    let (jobs, numbers, without) = with_files(client, batch, lines, read).await?;
    refused.extend(without.into_iter().map(|(number, error)| (number, Err(error))));
    let mut submitted = submit_of(client, batch, &jobs, tally).await.map_err(|error| {
        let first = numbers.first().copied().unwrap_or_default();
        let message =
            format!("{}: submitting the jobs from line {first} on: {error}", lines.path.display());
        Error::new(error.exit(), message)
    })?;
    for (job, result) in jobs.iter().zip(&mut submitted) {
        if let Err(ClientError::IdTaken(id)) = result
            && let Some(known) = client.same_job(id, job).await
            // Not by an earlier line.
            && known.graph_id.as_ref() != Some(&batch.id)
        {
            *result = Ok(id.clone());
            tally.repeated += 1;
        }
    }
    let accepted = jobs.iter().zip(&submitted).filter(|(_, result)| result.is_ok());
    accepted.for_each(|(job, _)| tally.targets.add(&job.spec));
    let is_other = |(job, result): &(&Job, &Result<JobId, ClientError>)| {
        job.extra.contains_key(INPUT_FILES) && !result.as_ref().is_ok_and(|id| *id == job.id)
    };
    let others = jobs.iter().zip(&submitted).filter(is_other);
    client.take_files_back(others.map(|(job, _)| &job.id)).await;
    let mut results: Vec<(u64, Result<JobId, ClientError>)> =
        numbers.into_iter().zip(submitted).chain(refused).collect();
    results.sort_by_key(|(number, _)| *number);
    for (number, result) in results {
        tally.add(lines.path, number, result);
    }
    output::accepted(&std::mem::take(&mut tally.unwritten))?;
    Ok(more)
}

/// Puts the batch on the shard that its jobs tell, and stores their files there. Returns the jobs with the
/// numbers of their lines, and the errors of those whose files cannot be given.
async fn with_files(
    client: &Client,
    batch: &mut NewBatch,
    lines: &BatchLines<'_>,
    read: Vec<BatchLine>,
) -> Result<(Vec<Job>, Vec<u64>, Vec<(u64, ClientError)>), ClientError> {
    let (mut files, mut all, mut without) = (Vec::new(), Vec::new(), Vec::new());
    for BatchLine { number, job, files: of_line } in read {
        match resolved(client, lines.config, job).await {
            Ok(job) => {
                files.push((number, of_line));
                all.push(job);
            }
            Err(ClientError::Store(error)) => return Err(error.into()),
            Err(error) => without.push((number, error)),
        }
    }
    if !all.is_empty() {
        client.place_batch(batch, &all)?;
    }
    let (mut jobs, mut numbers) = (Vec::new(), Vec::new());
    for (mut job, (number, files)) in all.into_iter().zip(files) {
        match give_files(client, batch, lines, &mut job, &files).await {
            Ok(()) => {
                jobs.push(job);
                numbers.push(number);
            }
            Err(error) => without.push((number, error)),
        }
    }
    Ok((jobs, numbers, without))
}

/// Gives a job the published script that it names.
async fn resolved(client: &Client, config: &Config, mut job: Job) -> Result<Job, ClientError> {
    if job.spec.uses.is_some() {
        client.resolve_script(&mut job).await?;
        client.check(&job)?;
        config.check_asked(&job.spec)?;
    }
    Ok(job)
}

/// Stores the files of a job.
async fn give_files(
    client: &Client,
    batch: &NewBatch,
    lines: &BatchLines<'_>,
    job: &mut Job,
    files: &LineFiles,
) -> Result<(), ClientError> {
    if files.is_empty() {
        return Ok(());
    }
    let files = lines.read_files(job, files)?;
    client.place_in(batch, job)?;
    client.give_files(job, &files).await
}

/// Submits jobs as members of the batch; jobs beyond its bound belong to no batch.
async fn submit_of(
    client: &Client,
    batch: &mut NewBatch,
    jobs: &[Job],
    tally: &mut Tally,
) -> Result<Vec<Result<JobId, ClientError>>, ClientError> {
    tally.members += jobs.len() as u64;
    if jobs.is_empty() || tally.members > Store::BATCH_JOBS_MAX {
        return client.submit_all(jobs).await;
    }
    let is_new = !std::mem::replace(&mut tally.is_stored, true);
    client.submit_all_of(batch, jobs, is_new).await
}

async fn submit_atomic_batch(
    client: &Client,
    batch: &mut NewBatch,
    lines: &mut BatchLines<'_>,
    tally: &mut Tally,
) -> Result<(), Error> {
    let (mut read, mut refused) = (Vec::new(), Vec::new());
    while let Some(line) = lines.next(client)? {
        match line {
            Ok(line) => read.push(line),
            Err(error) => refused.push((lines.number, error.into())),
        }
        if read.len() > Store::WHOLE_MAX {
            let (jobs, most) = (read.len(), Store::WHOLE_MAX);
            return Err(ClientError::TooMany { jobs, most }.into());
        }
    }
    let (jobs, numbers, without) = with_files(client, batch, lines, read).await?;
    refused.extend(without);
    refused.sort_by_key(|(number, _)| *number);
    for (number, error) in &refused {
        tally.refuse(lines.path, *number, error);
    }
    let given = jobs.iter().filter(|job| job.extra.contains_key(INPUT_FILES)).map(|job| &job.id);
    if !tally.refused.is_empty() {
        client.take_files_back(given).await;
        return Ok(());
    }
    let submitted = client.submit_all_or_none_of(batch, &jobs).await;
    if matches!(submitted, Err(ClientError::Refused { .. })) {
        client.take_files_back(given).await;
    }
    match submitted {
        Ok(ids) => {
            tally.is_stored = !jobs.is_empty();
            for job in &jobs {
                tally.targets.add(&job.spec);
            }
            for (number, id) in numbers.into_iter().zip(ids) {
                tally.add(lines.path, number, Ok(id));
            }
            output::accepted(&tally.unwritten)
        }
        Err(ClientError::Refused { place, error, .. }) => {
            if matches!(*error, ClientError::IdTaken(_))
                && let Some(known) = client.same_jobs(&jobs).await
            {
                tally.repeated = jobs.len() as u64;
                let of = known[0].graph_id.clone();
                if let Some(id) =
                    of.filter(|id| known.iter().all(|job| job.graph_id.as_ref() == Some(id)))
                {
                    (batch.id, tally.is_stored) = (id, true);
                }
                for (number, job) in numbers.into_iter().zip(jobs) {
                    tally.add(lines.path, number, Ok(job.id));
                }
                return output::accepted(&tally.unwritten);
            }
            tally.refuse(lines.path, numbers.get(place).copied().unwrap_or_default(), &error);
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

impl Tally {
    fn add(&mut self, path: &Path, number: u64, result: Result<JobId, ClientError>) {
        self.accepted += u64::from(result.is_ok());
        match result {
            Ok(id) => match self.printed {
                PrintedIds::Json => self.ids.push(id.as_str().into()),
                PrintedIds::Ids => self.unwritten.extend([id.as_str(), "\n"]),
                PrintedIds::Batch => {}
            },
            Err(error) => self.refuse(path, number, &error),
        }
    }

    fn refuse(&mut self, path: &Path, number: u64, error: &ClientError) {
        output::note(&format!("hero: {}:{number}: {error}", path.display()));
        self.refused.push(json!({ "line": number, "error": error.to_string() }));
    }

    fn end(self, path: &Path, batch: &NewBatch) -> Result<(), Error> {
        let id = self.is_stored.then_some(&batch.id);
        if self.printed == PrintedIds::Json {
            let document = json!({ "batch_id": id, "ids": self.ids, "refused": self.refused });
            output::accepted(&format!("{document}\n"))?;
        } else if let Some(id) = id {
            if self.printed == PrintedIds::Batch {
                output::accepted(&format!("{id}\n"))?;
            }
            output::note(&format!("batch {id}: hero graph wait {id}"));
        }
        if self.repeated > 0 {
            let number = counted(self.repeated, "job was", "jobs were");
            output::note(&format!("hero: {number} submitted before with the same content"));
        }
        if self.members > Store::BATCH_JOBS_MAX {
            let most = Store::BATCH_JOBS_MAX;
            output::note(&format!("hero: jobs after about the first {most} belong to no batch"));
        }
        if self.refused.is_empty() {
            if self.accepted == 0 {
                let path = path.display();
                let message = format!("{path} has no job: each line makes one, JSON for --batch");
                return Err(Error::new(Exit::Data, message));
            }
            return Ok(());
        }
        let number = counted(self.refused.len() as u64, "line was", "lines were");
        Err(Error::new(Exit::Data, format!("{}: {number} rejected", path.display())))
    }
}
