//! `hero migrate …`: the state of the migration from older programs.

use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::Global;
use super::table::TextTable;
use super::terminal_style::TerminalStyle;
use super::time::brief;
use crate::client::blockers;
use crate::config::{LegacyQueue, Migration, parse_duration};
use crate::error::Error;
use crate::store::{CircleState, LegacyState};

/// Move from older programs to Hero
#[derive(Debug, Subcommand)]
#[command(after_help = "Example:\n  hero migrate status")]
pub(super) enum MigrateCommand {
    Status(MigrateStatus),
}

/// Show what older programs still do, and whether the next phase is safe
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hero migrate status --quiet 1d\n\n\
    The report has what supervisors in \"dual\" and actors have seen. A single push of an old client \
    to an idle old worker may go unseen; a longer --quiet is safer. RUNNING ELSEWHERE counts the \
    jobs of the type that Hero knows of and other programs run. NOT CONFIGURED lists other queues \
    and circles of older programs that have entries, as far as a supervisor has found them.")]
pub(super) struct MigrateStatus {
    /// The time that older programs must have been idle before the next phase is safe
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "1h")]
    quiet: Duration,
}

struct MigrationReport {
    migration: Migration,
    queues: Vec<LegacyState>,
    circles: Vec<CircleState>,
    /// Other lists of older programs that have entries.
    others: Vec<(String, Option<u64>)>,
    blockers: Vec<String>,
}

impl MigrateCommand {
    pub(super) async fn run(self, global: &Global) -> Result<(), Error> {
        let Self::Status(MigrateStatus { quiet }) = self;
        let supervisor = &global.config()?.supervisor;
        let client = global.client()?;
        let queues = client.migration().legacy_queues(&supervisor.legacy_queues).await?;
        let circles = client.migration().rhailib_circles(&supervisor.rhailib_circles).await?;
        let others = client.migration().other_older_lists(&queues, &circles).await?;
        let migration = supervisor.migration;
        let is_dual = migration == Migration::Dual;
        let mut blockers: Vec<String> =
            queues.iter().flat_map(|state| blockers(state, is_dual, quiet)).collect();
        if !queues.is_empty() {
            let unserved =
                |(list, _): &(String, _)| format!("{list}: it has entries and is not configured");
            blockers.extend(others.iter().map(unserved));
        }
        let report = MigrationReport { migration, queues, circles, others, blockers };
        global.print(|| report.document(), || report.text(global.look()))
    }
}

impl MigrationReport {
    /// The change of the configuration that comes next.
    fn next(&self) -> &'static str {
        match (self.migration, self.queues.is_empty()) {
            (_, true) => "none: no legacy queue is configured",
            (Migration::Dual, false) => "supervisor.migration = \"canonical\"",
            (Migration::Canonical, false) => "take the queues out of supervisor.legacy_queues",
        }
    }

    fn text(&self, look: TerminalStyle) -> String {
        let mut text = [self.queues(look), self.circles(look), self.others(look)].concat();
        text += &["next phase: ", self.next(), "\n"].concat();
        if !self.queues.is_empty() {
            text += if self.blockers.is_empty() { "safe: yes\n" } else { "safe: not yet\n" };
        }
        for blocker in &self.blockers {
            text += &["  ", blocker, "\n"].concat();
        }
        text
    }

    fn queues(&self, look: TerminalStyle) -> String {
        let table = TextTable::of(&self.queues)
            .column("!LEGACY QUEUE", &|of| of.queue.legacy.clone())
            .column("TYPE", &|of| of.queue.script_type.to_string())
            .column("~TARGET", &|of| target(&of.queue))
            .column(">DEPTH", &|of| of.depth.to_string())
            .column(">STOPS", &|of| of.stops.to_string())
            .column(">LAST PUSH", &|of| of.pushed_ago.map(said_ago).unwrap_or_default())
            .column(">LAST POP", &|of| of.popped_ago.map(said_ago).unwrap_or_default())
            .column(">RUNNING ELSEWHERE", &|of| of.foreign_running.to_string())
            .column(">WATCHED", &|of| of.watched.map(brief).unwrap_or_default());
        part(&table, look)
    }

    fn circles(&self, look: TerminalStyle) -> String {
        let count =
            |of: &CircleState, name| of.counts.get(name).copied().unwrap_or_default().to_string();
        let table = TextTable::of(&self.circles)
            .column("!CIRCLE", &|of| of.circle.circle.to_string())
            .column("TYPE", &|of| of.circle.script_type.to_string())
            .column(">DEPTH", &|of| of.depth.to_string())
            .column(">LATE", &|of| of.late.to_string())
            .column(">TAKEN", &|of| count(of, "taken"))
            .column(">REFUSED", &|of| count(of, "refused"))
            .column(">DROPPED", &|of| count(of, "dropped"))
            .column(">LAST PUSH", &|of| of.pushed_ago.map(said_ago).unwrap_or_default());
        part(&table, look)
    }

    fn others(&self, look: TerminalStyle) -> String {
        let length = |(_, length): &(String, Option<u64>)| length.map(|it| it.to_string());
        let table = TextTable::of(&self.others)
            .column("!NOT CONFIGURED", &|(list, _)| list.clone())
            .column(">DEPTH", &|of| length(of).unwrap_or_default());
        part(&table, look)
    }

    fn document(&self) -> Value {
        json!({
            "migration": self.migration,
            "next_phase": self.next(),
            "safe": !self.queues.is_empty() && self.blockers.is_empty(),
            "reasons": self.blockers,
            "queues": self.queues.iter().map(|state| json!({
                "legacy": state.queue.legacy,
                "script_type": state.queue.script_type,
                "group": state.queue.group,
                "instance": state.queue.instance,
                "depth": state.depth,
                "stops": state.stops,
                "foreign_running": state.foreign_running,
                "last_push_s_ago": state.pushed_ago.map(|ago| ago.as_secs_f64()),
                "last_pop_s_ago": state.popped_ago.map(|ago| ago.as_secs_f64()),
                "watched_s": state.watched.map(|ago| ago.as_secs_f64()),
            })).collect::<Vec<Value>>(),
            "circles": self.circles.iter().map(|state| json!({
                "circle": state.circle.circle,
                "script_type": state.circle.script_type,
                "depth": state.depth,
                "late": state.late,
                "counts": state.counts,
                "last_push_s_ago": state.pushed_ago.map(|ago| ago.as_secs_f64()),
            })).collect::<Vec<Value>>(),
            "not_configured": self.others.iter().map(|(list, length)| json!({
                "list": list,
                "depth": length,
            })).collect::<Vec<Value>>(),
        })
    }
}

/// Returns a table before an empty line; nothing without a row.
fn part<T>(table: &TextTable<'_, T>, look: TerminalStyle) -> String {
    if table.is_empty() { String::new() } else { table.show(look) + "\n" }
}

fn said_ago(ago: Duration) -> String {
    format!("{} ago", brief(ago))
}

/// The target of a legacy queue: a group, or one instance of it.
fn target(queue: &LegacyQueue) -> String {
    match queue.instance {
        None => queue.group.to_string(),
        Some(instance) => format!("{}:{instance}", queue.group),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_next_phase_without_legacy_queues() {
        let report = MigrationReport {
            migration: Migration::Canonical,
            queues: Vec::new(),
            circles: Vec::new(),
            others: Vec::new(),
            blockers: Vec::new(),
        };
        assert_eq!(
            report.text(TerminalStyle::PLAIN),
            "next phase: none: no legacy queue is configured\n"
        );
        assert_eq!(report.document()["safe"], false);
    }
}
