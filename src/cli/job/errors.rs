//! `hero job errors`: the latest failures by the kind of their error.

use clap::Args;
use jiff::Timestamp;

use super::filter::JobFilters;
use crate::cli::answer::NoResults;
use crate::cli::api::ApiMethods;
use crate::cli::table::TextTable;
use crate::cli::time::age_of_text;
use crate::cli::{Global, output};
use crate::client::{ErrorGroupDocument, ErrorGroupsDocument};
use crate::error::Error;
use crate::proto::text::counted;

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
    pub(in crate::cli) async fn run(&self, api: &ApiMethods, global: &Global) -> Result<(), Error> {
        let mut params = self.filter.params(api).await?;
        params.insert("limit".to_owned(), self.limit.into());
        let (document, found) =
            api.typed::<ErrorGroupsDocument>("job.errors", params.into()).await?;
        let filter = &self.filter.filter;
        let noun = if filter.is_of_dead() { "dead letter" } else { "failed job" };
        let (searched, complete) = (found.searched, found.complete);
        let none = NoResults::new(&filter.sentence(noun)).searched(searched, "", complete);
        global.list(|| document, || table(&found.groups, Timestamp::now()), none)?;
        if global.json {
            return Ok(());
        }
        if found.kinds > found.groups.len() {
            let (kinds, limit) = (found.kinds, self.limit);
            output::note(&format!(
                "hero: the {limit} most frequent of {kinds} kinds; --limit prints more"
            ));
        }
        if !(found.complete || found.groups.is_empty()) {
            output::note(&format!(
                "hero: among the latest {}; filters such as --ended-since and --ended-until choose others",
                counted(found.searched as u64, noun, &format!("{noun}s"))
            ));
        }
        Ok(())
    }
}

fn table(groups: &[ErrorGroupDocument], now: Timestamp) -> TextTable<'_, ErrorGroupDocument> {
    TextTable::of(groups)
        .column(">JOBS", &|of| of.jobs.to_string())
        .column("!ERROR", &|of| of.kind.clone())
        .column(">LAST", &|of| {
            of.last_at.as_ref().map(|at| age_of_text(at, now)).unwrap_or_default()
        })
        .column("#LAST JOB", &|of| of.last_job.clone())
        .column("~TYPES", &|of| of.types.keys().cloned().collect::<Vec<_>>().join(" "))
}
