//! `hero job errors`: the latest failures by the kind of their error.

use clap::Args;
use jiff::Timestamp;
use serde_json::json;

use super::filter::JobFilters;
use crate::cli::no_results::NoResults;
use crate::cli::table::TextTable;
use crate::cli::time::age;
use crate::cli::{Global, output};
use crate::client::{Client, ErrorGroupDocument};
use crate::error::Error;
use crate::store::FoundJobs;

/// Group the failed jobs by their error, without its numbers, ids, paths and quoted texts
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hero job errors\n  hero job errors --type python --ended-since 24h\n\n\
                        To retry all of one kind: hero job retry --kind 'ERROR AS PRINTED'"
)]
pub(in crate::cli) struct JobErrors {
    #[command(flatten)]
    pub(super) filter: JobFilters,
    /// The maximum number of kinds of errors to print
    #[arg(long, default_value_t = 20, value_name = "NUMBER",
          value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(super) limit: u16,
}

impl JobErrors {
    /// Returns the groups of dead letters alone.
    pub(in crate::cli) fn of_dead(self) -> Self {
        Self { filter: self.filter.of_dead(), ..self }
    }

    pub(in crate::cli) async fn run(&self, client: &Client, global: &Global) -> Result<(), Error> {
        let (query, search) = self.filter.search(0, client).await?;
        let found = client.error_groups(&query, &search, |_| true, self.limit.into()).await?;
        let noun = if query.dead { "dead letter" } else { "failed job" };
        let searched = FoundJobs {
            searched: found.searched,
            complete: found.complete,
            ..FoundJobs::default()
        };
        let none = NoResults::new(&self.filter.filter.sentence(noun)).among(&searched);
        global.list(|| json!(found), || table(&found.groups, Timestamp::now()), none)?;
        if found.kinds > found.groups.len() && !global.json {
            let (kinds, limit) = (found.kinds, self.limit);
            output::note(&format!(
                "hero: the {limit} most frequent of {kinds} kinds; --limit prints more"
            ));
        }
        Ok(())
    }
}

pub(super) fn table(groups: &[ErrorGroupDocument], now: Timestamp) -> TextTable {
    let since = |at: &Option<String>| at.as_ref().and_then(|at| at.parse().ok());
    TextTable::of(groups)
        .column(">JOBS", &|of| of.jobs.to_string())
        .column("!ERROR", &|of| of.kind.clone())
        .column(">LAST", &|of| since(&of.last_at).map(|at| age(at, now)).unwrap_or_default())
        .column("#LAST JOB", &|of| of.last_job.clone())
        .column("~TYPES", &|of| of.types.keys().cloned().collect::<Vec<_>>().join(" "))
        .table()
}
