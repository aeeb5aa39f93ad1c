//! `hero submit --dry-run`: what would be submitted, as JSON in the form of the API.

use serde_json::json;

use super::batch_line::JobPerLine;
use super::batch_lines::BatchLines;
use super::{Submit, graph};
use crate::cli::api::settings;
use crate::cli::every::EveryOptions;
use crate::cli::{Global, input, output};
use crate::error::Error;

impl Submit {
    /// Prints the job with its queue, the graph, the batch of a job for every machine, or a job for each line.
    pub(super) fn print_dry_run(&self, global: &Global) -> Result<(), Error> {
        let config = global.config()?;
        if let Some(word) = self.every.word() {
            let every = (word, self.window.window());
            return output::json(&EveryOptions::params(&self.options, every, config)?);
        }
        if let Some(file) = &self.graph {
            let text = graph::read_file(file)?;
            let source = graph::parse(file, &text)?;
            let (_, plan, _) = self.plan_of(&source, file, config)?;
            return output::json(&graph::params(plan));
        }
        let Some(file) = self.batch.as_ref().or(self.each.as_ref()) else {
            let job = self.options.job(config)?;
            let queue = job.spec.queue().map(|queue| queue.to_string());
            return output::json(&json!({ "job": settings(&job), "queue": queue }));
        };
        let each =
            self.each.as_ref().map(|_| JobPerLine::new(&self.options, config)).transpose()?;
        let mut lines = BatchLines::open(file, each.as_ref(), config, None)?;
        loop {
            let of_call = lines.next(false)?;
            of_call.jobs.iter().try_for_each(output::json)?;
            if let Some(refused) = of_call.rejected.first() {
                let (file, line) = (file.display(), refused.line);
                return Err(input::bad(format!("{file}:{line}: {}", refused.error)));
            }
            if of_call.is_last {
                return Ok(());
            }
        }
    }
}
