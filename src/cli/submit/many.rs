//! `hero submit --batch`, `--each` and of a job for every machine: a batch, in as many calls as it needs.

use std::path::Path;

use serde_json::{Value, json};

use super::Submit;
use super::batch_lines::{BatchLines, JobPerLine, LinesOfCall};
use crate::cli::api::{ApiMethods, read, settings};
use crate::cli::every::EveryOptions;
use crate::cli::job_options::trace_of_environment;
use crate::cli::sent_job::SubmitSpan;
use crate::cli::window_options::WindowOptions;
use crate::cli::{Global, job_notes, output};
use crate::client::{Client, job_of_members};
use crate::config::Config;
use crate::error::{Error, Exit};
use crate::proto::job::{JobSpec, TraceParent};
use crate::proto::text::{counted, escape_lines};
use crate::rpc::results::{Refused, SubmittedBatch};
use crate::store::Store;

/// The rejected lines that --dry-run names.
const REJECTED_SHOWN: u64 = 100;

struct BatchResults<'a> {
    /// The file, or the option, that makes the jobs.
    from: String,
    /// The result of the last call, with those before. Ids are kept for JSON alone.
    total: SubmittedBatch,
    accepted: u64,
    prints_ids: bool,
    global: &'a Global,
}

impl Submit {
    pub(super) async fn submit_everywhere(
        &self,
        api: &ApiMethods,
        word: &str,
        global: &Global,
    ) -> Result<(), Error> {
        if self.signing.is_given() {
            let message = "--sign signs no copies for every machine";
            return Err(Error::new(Exit::Usage, message));
        }
        let (config, window) = (global.config()?, self.window.window());
        let mut params = EveryOptions::params(&self.options, (word, window), config)?;
        self.add_of_batch(&mut params, None, config)?;
        let (_, batch) = EveryOptions::submit(api, params).await?;
        let mut results = self.results(format!("--every-{word}"), global);
        results.add(batch)?;
        results.end()
    }

    pub(super) async fn submit_lines(
        &self,
        api: &ApiMethods,
        global: &Global,
    ) -> Result<(), Error> {
        let Some(file) = self.batch.as_ref().or(self.each.as_ref()) else { return Ok(()) };
        let config = global.config()?;
        let JobSpec { id, name, notify, .. } = self.options.settings_of_many()?;
        if matches!(api, ApiMethods::Local { .. }) {
            output::notes(job_notes::unknown_notifications(&notify, config));
        }
        let span = SubmitSpan::begin(config, trace_of_environment());
        let mut head = json!({ "id": id, "name": name, "notify": notify });
        WindowOptions::add_to(&mut head, self.window.window());
        self.add_of_batch(&mut head, span.place, config)?;
        let each =
            self.each.as_ref().map(|_| JobPerLine::new(&self.options, config)).transpose()?;
        let mut lines = BatchLines::open(file, each.as_ref(), config, span.place)?;
        let mut results = self.results(file.display().to_string(), global);
        let mut is_last = false;
        while !is_last {
            let of_call = lines.next(self.all_or_none)?;
            is_last = of_call.is_last;
            let is_refused = self.all_or_none && !of_call.rejected.is_empty();
            let batch = if is_refused || of_call.jobs.is_empty() && results.total.opening.is_none()
            {
                SubmittedBatch { refused: of_call.rejected, ..SubmittedBatch::default() }
            } else {
                let params = results.joining().unwrap_or_else(|| head.clone());
                let first = of_call.numbers.first().copied();
                submitted(api, params, of_call).await.map_err(|error| match first {
                    Some(first) if !self.all_or_none => {
                        let doing = format!("submitting the jobs from line {first} on");
                        let message = format!("{}: {doing}: {}", file.display(), error.message);
                        Error::new(error.exit, message)
                    }
                    _ => error,
                })?
            };
            results.add(batch)?;
        }
        let id = results.total.id.clone().unwrap_or_default();
        let ended = results.end();
        span.end("batch", &id).await;
        ended
    }

    fn results<'a>(&self, from: String, global: &'a Global) -> BatchResults<'a> {
        let (total, prints_ids) = (SubmittedBatch::default(), self.ids);
        BatchResults { from, total, accepted: 0, prints_ids, global }
    }

    fn add_of_batch(
        &self,
        params: &mut Value,
        trace: Option<TraceParent>,
        config: &Config,
    ) -> Result<(), Error> {
        params["all_or_none"] = json!(self.all_or_none);
        for (callback, mut job) in self.callbacks.clone().jobs(config)? {
            job.spec.traceparent = trace;
            params[callback.as_str()] = json!(settings(&job));
        }
        Ok(())
    }
}

/// Submits the jobs of some lines. The result names rejected jobs by their lines, and has the lines that make none.
async fn submitted(
    api: &ApiMethods,
    mut params: Value,
    of_call: LinesOfCall,
) -> Result<SubmittedBatch, Error> {
    let (method, LinesOfCall { jobs, numbers, files, rejected, is_last }) =
        ("batch.submit", of_call);
    params["jobs"] = jobs.into();
    params["more"] = (!is_last && params["all_or_none"] != true).into();
    let document = api.answer(method, params, files).await.map_err(|failed| failed.error)?;
    let mut batch: SubmittedBatch = read(method, &document)?;
    for Refused { line, .. } in &mut batch.refused {
        // A callback has none.
        *line = numbers.get(line.saturating_sub(1)).copied().unwrap_or_default();
    }
    batch.refused.extend(rejected);
    batch.refused.sort_by_key(|of| of.line);
    Ok(batch)
}

/// Prints the jobs of the lines, and the first lines that make none.
pub(super) fn print_lines(
    lines: &mut BatchLines<'_>,
    file: &Path,
    client: &Client,
) -> Result<(), Error> {
    let (from, mut rejected) = (file.display().to_string(), 0);
    let mut reject = |line: usize, error: String| {
        rejected += 1;
        if rejected <= REJECTED_SHOWN {
            output::note(&format!("hero: {from}:{line}: {error}"));
        }
    };
    loop {
        let LinesOfCall { jobs, numbers, rejected, is_last, .. } = lines.next(false)?;
        for Refused { line, error } in rejected {
            reject(line, error);
        }
        for (job, line) in jobs.iter().zip(numbers) {
            let members = job.as_object().cloned().unwrap_or_default();
            match job_of_members(members).and_then(|job| client.check(&job)) {
                Ok(()) => output::json(job)?,
                Err(error) => reject(line, error.to_string()),
            }
        }
        if is_last {
            break;
        }
    }
    if rejected > 0 { Err(lines_rejected(&from, rejected)) } else { Ok(()) }
}

fn lines_rejected(from: &str, number: u64) -> Error {
    let number = counted(number, "line was", "lines were");
    Error::new(Exit::Data, format!("{from}: {number} rejected"))
}

impl BatchResults<'_> {
    /// Returns the parameters of a call that adds jobs; `None` for the first.
    fn joining(&self) -> Option<Value> {
        let opening = self.total.opening.as_ref()?;
        Some(json!({ "id": self.total.id, "opening": opening }))
    }

    /// Adds the result of a call: prints the ids of the jobs, and why lines are rejected.
    fn add(&mut self, mut batch: SubmittedBatch) -> Result<(), Error> {
        for Refused { line, error } in &batch.refused {
            output::note(&format!("hero: {}:{line}: {error}", self.from));
        }
        self.accepted += batch.ids.len() as u64;
        if !self.global.json {
            let ids = std::mem::take(&mut batch.ids);
            if self.prints_ids {
                let lines = ids.iter().flat_map(|id| [escape_lines(id), "\n".to_owned()]);
                output::accepted(&lines.collect::<String>())?;
            }
        }
        let mut before = std::mem::replace(&mut self.total, batch);
        before.ids.append(&mut self.total.ids);
        before.refused.append(&mut self.total.refused);
        for of in before.unserved {
            match self.total.unserved.iter_mut().find(|other| other.reason == of.reason) {
                Some(known) => known.jobs += of.jobs,
                None => self.total.unserved.push(of),
            }
        }
        (self.total.ids, self.total.refused) = (before.ids, before.refused);
        self.total.repeated += before.repeated;
        Ok(())
    }

    fn end(self) -> Result<(), Error> {
        let Self { from, total, accepted, prints_ids, global } = self;
        if global.json {
            output::accepted(&format!("{}\n", json!(total)))?;
        } else if let Some(id) = total.id.as_deref().map(escape_lines) {
            if !prints_ids {
                output::accepted(&format!("{id}\n"))?;
            }
            output::note(&format!("batch {id}: hero graph wait {id}"));
        }
        if total.repeated > 0 {
            let number = counted(total.repeated, "job was", "jobs were");
            output::note(&format!("hero: {number} submitted before with the same content"));
        }
        let most = Store::BATCH_JOBS_MAX;
        if accepted.saturating_sub(total.repeated) > most {
            output::note(&format!("hero: jobs after about the first {most} belong to no batch"));
        }
        job_notes::report_unserved(&total.unserved);
        if !total.refused.is_empty() {
            return Err(lines_rejected(&from, total.refused.len() as u64));
        }
        if accepted == 0 {
            let message = format!("{from} has no job: each line makes one, JSON for --batch");
            return Err(Error::new(Exit::Data, message));
        }
        Ok(())
    }
}
