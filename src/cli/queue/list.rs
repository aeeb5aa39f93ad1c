//! `hero queue list`: one row per target, with the jobs that wait by priority.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;
use std::time::Duration;

use serde_json::json;

use crate::cli::Global;
use crate::cli::no_results::NoResults;
use crate::cli::table::TextTable;
use crate::cli::time::brief;
use crate::client::{Client, QueueDocument};
use crate::error::Error;
use crate::proto::pauses::PauseRule;
use crate::proto::target::{Priority, Target};
use crate::proto::text::shown;
use crate::store::QueueState;

pub(super) async fn run(client: &Client, global: &Global) -> Result<(), Error> {
    let queues = client.list_queues().await?;
    let rules = client.pauses().await?.rules;
    let unserved = client.unserved_lists().await.unwrap_or_default();
    let documents = || queues.iter().map(QueueDocument::from).collect::<Vec<_>>();
    let list = |(list, length): &(String, Option<u64>)| json!({ "list": list, "length": length });
    let lists = || unserved.iter().map(list).collect::<Vec<_>>();
    let pauses = || rules.iter().map(ToString::to_string).collect::<Vec<_>>();
    global.print(
        || json!({ "queues": documents(), "pauses": pauses(), "unserved": lists() }),
        || {
            format!(
                "{}{}{}",
                table(&queues, &rules).show(global.look()),
                paused(&rules),
                left(&unserved)
            )
        },
    )?;
    let is_empty = queues.is_empty() && rules.is_empty() && unserved.is_empty();
    NoResults::new("queue holds jobs or is paused").report(global, is_empty);
    Ok(())
}

/// Returns what is paused as a whole, with the command that resumes it, a line each.
fn paused(rules: &BTreeSet<PauseRule>) -> String {
    let mut text = String::new();
    for rule in rules {
        let _ = writeln!(text, "PAUSED  {}: {}", rule.words(), rule.resume());
    }
    text
}

/// Returns the lists that programs pushed to and nobody serves, a line each.
fn left(unserved: &[(String, Option<u64>)]) -> String {
    let mut text = String::new();
    for (list, length) in unserved {
        let length = length.map_or("some".to_owned(), |length| length.to_string());
        let _ = writeln!(text, "UNSERVED  {}: {length} ids; no queue has this name", shown(list));
    }
    text
}

/// The queues of one target.
struct TargetRow<'q> {
    target: &'q Target,
    queues: Vec<&'q QueueState>,
}

impl TargetRow<'_> {
    fn of(&self, priority: Priority) -> Option<&QueueState> {
        self.queues.iter().copied().find(|state| state.queue.priority == priority)
    }

    fn depth(&self, priority: Priority) -> String {
        self.of(priority).map_or(0, |state| state.depth).to_string()
    }

    fn oldest_wait(&self) -> Option<Duration> {
        self.queues.iter().filter_map(|state| state.oldest_wait).max()
    }

    /// `open`, `paused`, or the priorities that are paused. A rule pauses all priorities, also those without a queue.
    fn state(&self, rules: &BTreeSet<PauseRule>) -> String {
        if self.queues.iter().any(|of| rules.iter().any(|rule| rule.covers(&of.queue))) {
            return "paused".to_owned();
        }
        let is_paused = |priority: &Priority| self.of(*priority).is_some_and(|state| state.paused);
        let paused: Vec<String> =
            Priority::ALL.iter().filter(|of| is_paused(of)).map(ToString::to_string).collect();
        match paused.len() {
            0 => "open".to_owned(),
            3 => "paused".to_owned(),
            _ => format!("paused: prio {}", paused.join(" ")),
        }
    }
}

impl TargetRow<'_> {
    /// Returns the expression of its jobs.
    fn selector(&self) -> Option<&str> {
        self.queues.iter().find_map(|state| state.selector.as_deref())
    }
}

fn table(queues: &[QueueState], rules: &BTreeSet<PauseRule>) -> TextTable {
    let mut rows: Vec<TargetRow<'_>> = Vec::new();
    let mut places: HashMap<&Target, usize> = HashMap::new();
    for state in queues {
        let target = &state.queue.target;
        let place = *places.entry(target).or_insert(rows.len());
        match rows.get_mut(place) {
            Some(row) => row.queues.push(state),
            None => rows.push(TargetRow { target, queues: vec![state] }),
        }
    }
    let rate = |row: &TargetRow<'_>| {
        let mut rates = row.queues.iter().filter_map(|state| state.type_throughput_per_s);
        // A group has no rate of its own.
        let rate = rates.next().filter(|_| row.target.group_name().is_none());
        rate.map(|rate| format!("{rate:.1}")).unwrap_or_default()
    };
    let held = |row: &TargetRow<'_>| row.queues.iter().map(|state| state.held).sum::<u64>();
    TextTable::of(&rows)
        .column("!QUEUE", &|row| row.target.to_string())
        .column(">URGENT", &|row| row.depth(Priority::Urgent))
        .column(">NORMAL", &|row| row.depth(Priority::Normal))
        .column(">BACKGROUND", &|row| row.depth(Priority::Background))
        .column(">HELD", &|row| held(row).to_string())
        .column("?>OLDEST WAIT", &|row| row.oldest_wait().map(brief).unwrap_or_default())
        .column("?>JOBS/S", &rate)
        .column("*STATE", &|row| row.state(rules))
        .column("?WHERE", &|row| row.selector().unwrap_or_default().to_owned())
        .table()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn target_has_one_row_with_its_jobs_by_priority() {
        let state = |queue: &str, depth, paused| QueueState {
            queue: queue.parse().expect("legal"),
            depth,
            selector: None,
            held: 1,
            oldest_wait: Some(Duration::from_millis(500 * depth)),
            held_wait: None,
            held_by: None,
            type_throughput_per_s: None,
            paused,
            paused_by: None,
        };
        let mut states = vec![state("type:osis:prio:0", 3, false), state("type:osis", 5, true)];
        assert_eq!(
            table(&states, &BTreeSet::new()).render(),
            "QUEUE      URGENT  NORMAL  BACKGROUND  HELD  OLDEST WAIT  JOBS/S  STATE\n\
             type:osis       3       5           0     2        2.50s       -  paused: prio 1\n"
        );
        assert_eq!(QueueDocument::from(&states[0]).oldest_wait_s, Some(1.5));
        states[0].paused = true;
        states.push(state("type:osis:prio:2", 0, true));
        let text = table(&states, &BTreeSet::new()).render();
        assert!(text.lines().count() == 2 && text.contains("  paused\n"), "{text}");
        let rule = [PauseRule::default()].into();
        let text = table(&states[..1], &rule).render();
        assert!(text.contains("  paused\n"), "all priorities are paused by the rule: {text}");
        assert!(QueueDocument::from(&states[0]).paused);
    }
}
