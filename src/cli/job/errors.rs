//! `hero job errors`: the latest failures by the kind of their error.

use clap::Args;
use jiff::Timestamp;
use serde_json::json;

use super::moment::PastZone;
use crate::cli::Global;
use crate::cli::input::parsed;
use crate::cli::sought::Sought;
use crate::cli::table::TextTable;
use crate::cli::time::age;
use crate::client::{Client, ErrorGroupDocument};
use crate::error::Error;
use crate::store::{FoundJobs, JobSearch, ListQuery};

/// Group the failed jobs by their error, without its numbers, ids, paths and quoted texts
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hero job errors\n  hero job errors --type python --since 24h\n\n\
                        To retry all of one kind: hero job retry --kind 'ERROR AS PRINTED'"
)]
pub(in crate::cli) struct JobErrors {
    /// Only jobs of this script type
    #[arg(short = 't', long = "type", value_name = "TYPE")]
    script_type: Option<String>,
    /// Only jobs that failed since then: 24h (ago), 09:00, yesterday 18:00, friday, 2026-12-24, or RFC 3339
    #[arg(long, value_name = "DURATION|TIME")]
    since: Option<String>,
    /// Only jobs that failed until then
    #[arg(long, value_name = "DURATION|TIME")]
    until: Option<String>,
    /// The maximum number of kinds of errors to print
    #[arg(long, default_value_t = 20, value_name = "NUMBER",
          value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    #[command(flatten)]
    zone: PastZone,
    /// Only dead letters: jobs that used up their attempts
    #[arg(long)]
    dead: bool,
}

impl JobErrors {
    /// Returns the groups of dead letters alone.
    pub(in crate::cli) fn of_dead(self) -> Self {
        Self { dead: true, ..self }
    }

    pub(in crate::cli) async fn run(&self, client: &Client, global: &Global) -> Result<(), Error> {
        let script_type = self.script_type.as_deref().map(parsed).transpose()?;
        let query = ListQuery { script_type, dead: self.dead, ..ListQuery::default() };
        let now = client.now().await?;
        let from = self.zone.read_given("--since", self.since.as_ref(), now)?;
        let to = self.zone.read_given("--until", self.until.as_ref(), now)?;
        let search = JobSearch { ended_since: from, ended_until: to, ..JobSearch::default() };
        let limit = self.limit.into();
        let found = client.error_groups(&query, &search, |_| true, limit).await?;
        let sought = Sought::new(if self.dead { "dead letter" } else { "failed job" })
            .by("of type", self.script_type.as_ref())
            .by("since", self.since.as_ref())
            .by("until", self.until.as_ref());
        let searched = FoundJobs {
            searched: found.searched,
            complete: found.complete,
            ..FoundJobs::default()
        };
        let sought = sought.among(&searched);
        global.list(|| json!(found), || table(&found.groups, Timestamp::now()), sought)
    }
}

fn table(groups: &[ErrorGroupDocument], now: Timestamp) -> TextTable {
    let since = |at: &Option<String>| at.as_ref().and_then(|at| at.parse().ok());
    TextTable::of(groups)
        .column(">JOBS", &|of| of.jobs.to_string())
        .column("!ERROR", &|of| of.kind.clone())
        .column(">LAST", &|of| since(&of.last_at).map(|at| age(at, now)).unwrap_or_default())
        .column("#LAST JOB", &|of| of.last_job.clone())
        .column("~TYPES", &|of| of.types.keys().cloned().collect::<Vec<_>>().join(" "))
        .table()
}
