//! `hero amqp logs` and `hero amqp purge-logs`: the log records that brokers store.

use std::fmt::Write as _;
use std::time::Duration;

use clap::Args;
use jiff::Timestamp;
use serde_json::json;

use crate::amqp::logs::{LogCollection, LogPage, LogPurge, LogRecord, RecordQuery, chains};
use crate::amqp::message::MessageFailure;
use crate::cli::Global;
use crate::cli::answer::NoResults;
use crate::cli::table::TextTable;
use crate::cli::time::PastZone;
use crate::config::parse_duration;
use crate::error::{Error, Exit};
use crate::proto::text::escape;

/// Print log records in the order of time; the records of a root as a tree of their chains
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hero amqp logs --root 6a0b…\n  \
                        hero amqp logs --level error --newest-first --limit 20\n\n\
                        The command for the next page, if there is one, is on standard error.")]
pub(in crate::cli) struct PrintLogs {
    /// Only records of this root
    #[arg(long, value_name = "ID")]
    root: Option<String>,
    /// Only records of this chain
    #[arg(long, value_name = "ID")]
    chain: Option<String>,
    /// Only records of this level
    #[arg(long, value_name = "LEVEL")]
    level: Option<String>,
    /// Only records since then: 10m (ago), 09:00, yesterday 18:00, 2026-12-24 18:00, or RFC 3339
    #[arg(long, value_name = "DURATION|TIME")]
    since: Option<String>,
    /// Only records before then
    #[arg(long, value_name = "DURATION|TIME")]
    until: Option<String>,
    #[command(flatten)]
    zone: PastZone,
    /// The latest first
    #[arg(long)]
    newest_first: bool,
    /// The page that begins here, as the previous one prints it
    #[arg(long, value_name = "CURSOR")]
    after: Option<String>,
    /// The page size, up to 1000
    #[arg(long, default_value_t = 100, value_name = "NUMBER",
          value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
}

/// Delete log records
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hero amqp purge-logs --older-than 30d\n  \
                        hero amqp purge-logs --root 6a0b…")]
#[group(required = true, multiple = true)]
pub(in crate::cli) struct PurgeLogs {
    /// The records of this root
    #[arg(long, value_name = "ID")]
    root: Option<String>,
    /// The records older than this, such as 30d
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    older_than: Option<Duration>,
}

fn logs(global: &Global) -> Result<LogCollection, Error> {
    let (client, config) = (global.client()?, global.config()?);
    let logs = LogCollection::new(client, &config.amqp.logs, &config.osis);
    logs.ok_or_else(|| Error::new(Exit::Config, "amqp.logs.context is illegal".to_owned()))
}

fn failed(failure: MessageFailure) -> Error {
    let exit = match (failure.code.as_str(), failure.retryable) {
        ("denied", _) => Exit::NotPermitted,
        (_, true) => Exit::Unavailable,
        _ => Exit::Data,
    };
    Error::new(exit, failure.message)
}

impl PrintLogs {
    pub(super) async fn run(self, global: &Global) -> Result<(), Error> {
        let (limit, now) = (self.limit, Timestamp::now());
        let time = |option: &str, text: Option<&String>| {
            let read = text.map(|text| self.zone.read(option, text, now)).transpose()?;
            Ok::<_, Error>(read.map(|time| time.to_string()))
        };
        let is_tree = self.root.is_some() && self.chain.is_none() && !self.newest_first;
        let none = NoResults::new("log record")
            .by("of root", self.root.as_ref())
            .by("of chain", self.chain.as_ref())
            .by("of level", self.level.as_ref())
            .by("since", self.since.as_ref())
            .by("until", self.until.as_ref())
            .after(self.after.as_ref());
        let query = RecordQuery {
            root: self.root,
            chain: self.chain,
            level: self.level,
            since: time("--since", self.since.as_ref())?,
            until: time("--until", self.until.as_ref())?,
            limit: Some(limit.into()),
            after: self.after,
            newest_first: self.newest_first,
        };
        let LogPage { records, next } = logs(global)?.fetch(&query).await.map_err(failed)?;
        let documents = || records.iter().map(LogRecord::document).collect::<Vec<_>>();
        global.print(
            || json!({ "records": documents(), "next": next }),
            || if is_tree { tree(&records) } else { table(&records).show(global.look()) },
        )?;
        none.report(global, records.is_empty());
        global.more(next.map(|next| format!("the same command with --after '{next}'")));
        Ok(())
    }
}

impl PurgeLogs {
    pub(super) async fn run(self, global: &Global) -> Result<(), Error> {
        let before = self.older_than.map(|age| {
            let time = Timestamp::now().checked_sub(age).unwrap_or(Timestamp::MIN);
            time.to_string()
        });
        let (logs, purge) = (logs(global)?, LogPurge { root: self.root, before });
        let mut deleted = 0;
        loop {
            let purged = logs.purge(&purge).await.map_err(failed)?;
            deleted += purged.deleted;
            if purged.is_complete {
                break;
            }
        }
        global.print(|| json!({ "deleted": deleted }), || format!("{deleted} deleted\n"))
    }
}

/// Prints the records of one root chain by chain, the chain that begins first at the top.
fn tree(records: &[LogRecord]) -> String {
    let chains = chains(records);
    let mut text = records.first().map_or(String::new(), |one| escape(one.text("root")) + "\n");
    for (place, (chain, of_chain)) in chains.iter().enumerate() {
        let is_last = place + 1 == chains.len();
        let (branch, stem) = if is_last { ("└─", "  ") } else { ("├─", "│ ") };
        let name = if chain.is_empty() { "without a chain" } else { chain };
        let _ = writeln!(text, "{branch} {}", escape(name));
        for record in of_chain {
            let [time, level, message] =
                ["time", "level", "message"].map(|name| escape(record.text(name)));
            let _ = writeln!(text, "{stem}   {time} {level:<7} {message}");
        }
    }
    text
}

fn table(records: &[LogRecord]) -> TextTable<'_, LogRecord> {
    TextTable::of(records)
        .column("TIME", &|of| of.text("time").to_owned())
        .column("LEVEL", &|of| of.text("level").to_owned())
        .column("~CHAIN", &|of| of.text("chain").to_owned())
        .column("!MESSAGE", &|of| of.text("message").to_owned())
}
