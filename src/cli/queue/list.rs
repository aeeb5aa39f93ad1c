//! `hero queue list`: one row per target, with the jobs that wait by priority.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use serde_json::json;

use crate::cli::Global;
use crate::cli::answer::NoResults;
use crate::cli::api::ApiMethods;
use crate::cli::table::TextTable;
use crate::cli::terminal_style::TerminalStyle;
use crate::cli::time::brief;
use crate::client::QueueDocument;
use crate::error::Error;
use crate::proto::pauses::PauseRule;
use crate::proto::queue::Queue;
use crate::proto::target::{Priority, Target};
use crate::proto::text::shown;
use crate::rpc::results::{QueueList, UnservedList};

pub(super) async fn run(methods: &ApiMethods, global: &Global) -> Result<(), Error> {
    let (document, list) = methods.typed::<QueueList>("queue.list", json!({})).await?;
    let QueueList { queues, pauses, unserved } = list;
    let rules: BTreeSet<PauseRule> = pauses.iter().filter_map(|rule| rule.parse().ok()).collect();
    let table = || table(&queues, &rules, global.look());
    global.print(|| document, || [table(), paused(&rules), left(&unserved)].concat())?;
    let is_empty = queues.is_empty() && rules.is_empty() && unserved.is_empty();
    NoResults::new("queue holds jobs or is paused").report(global, is_empty);
    Ok(())
}

/// Returns what is paused as a whole, with the command that resumes it, a line each.
pub(in crate::cli) fn paused<'r>(rules: impl IntoIterator<Item = &'r PauseRule>) -> String {
    let line = |rule: &PauseRule| format!("PAUSED  {}: {}\n", rule.words(), rule.resume());
    rules.into_iter().map(line).collect()
}

/// Returns the lists that programs pushed to and nobody serves, a line each.
fn left(unserved: &[UnservedList]) -> String {
    let line = |UnservedList { list, length }: &UnservedList| {
        let length = length.map_or("some".to_owned(), |length| length.to_string());
        format!("UNSERVED  {}: {length} ids; no queue has this name\n", shown(list))
    };
    unserved.iter().map(line).collect()
}

/// The queues of one target.
struct TargetRow<'q> {
    target: Target,
    queues: Vec<(Queue, &'q QueueDocument)>,
}

impl TargetRow<'_> {
    fn of(&self, priority: Priority) -> Option<&QueueDocument> {
        self.queues.iter().find(|(queue, _)| queue.priority == priority).map(|(_, of)| *of)
    }

    fn depth(&self, priority: Priority) -> String {
        self.of(priority).map_or(0, |state| state.depth).to_string()
    }

    fn oldest_wait(&self) -> Option<Duration> {
        let waits = self.queues.iter().filter_map(|(_, state)| state.oldest_wait_s);
        waits.filter_map(|wait| Duration::try_from_secs_f64(wait).ok()).max()
    }

    /// `open`, `paused`, or the priorities that are paused. A rule pauses all priorities, also those without a queue.
    fn state(&self, rules: &BTreeSet<PauseRule>) -> String {
        if self.queues.iter().any(|(queue, _)| rules.iter().any(|rule| rule.covers(queue))) {
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

    fn selector(&self) -> Option<&str> {
        self.queues.iter().find_map(|(_, state)| state.selector.as_deref())
    }
}

fn table(queues: &[QueueDocument], rules: &BTreeSet<PauseRule>, look: TerminalStyle) -> String {
    let mut rows: Vec<TargetRow<'_>> = Vec::new();
    let mut places: HashMap<Target, usize> = HashMap::new();
    for state in queues {
        let Ok(queue) = state.queue.parse::<Queue>() else { continue };
        let target = queue.target.clone();
        let place = *places.entry(target.clone()).or_insert(rows.len());
        match rows.get_mut(place) {
            Some(row) => row.queues.push((queue, state)),
            None => rows.push(TargetRow { target, queues: vec![(queue, state)] }),
        }
    }
    let rate = |row: &TargetRow<'_>| {
        let mut rates = row.queues.iter().filter_map(|(_, state)| state.type_throughput_per_s);
        // A group has no rate of its own.
        let rate = rates.next().filter(|_| row.target.group_name().is_none());
        rate.map(|rate| format!("{rate:.1}")).unwrap_or_default()
    };
    let held = |row: &TargetRow<'_>| row.queues.iter().map(|(_, state)| state.held).sum::<u64>();
    let table = TextTable::of(&rows)
        .column("!QUEUE", &|row| row.target.to_string())
        .column(">URGENT", &|row| row.depth(Priority::Urgent))
        .column(">NORMAL", &|row| row.depth(Priority::Normal))
        .column(">BACKGROUND", &|row| row.depth(Priority::Background))
        .column(">HELD", &|row| held(row).to_string())
        .column("?>OLDEST WAIT", &|row| row.oldest_wait().map(brief).unwrap_or_default())
        .column("?>JOBS/S", &rate)
        .column("*STATE", &|row| row.state(rules));
    let selector = |row: &TargetRow<'_>| row.selector().unwrap_or_default().to_owned();
    let has_selectors = rows.iter().any(|row| row.selector().is_some());
    if has_selectors { table.column("?WHERE", &selector) } else { table }.show(look)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn target_has_one_row_with_its_jobs_by_priority() {
        let state = |queue: &str, depth: u32, paused| QueueDocument {
            queue: queue.to_owned(),
            script_type: "osis".to_owned(),
            priority: None,
            depth: depth.into(),
            selector: None,
            held: 1,
            oldest_wait_s: Some(0.5 * f64::from(depth)),
            held_by: None,
            type_throughput_per_s: None,
            paused,
        };
        let mut states = vec![state("type:osis:prio:0", 3, false), state("type:osis", 5, true)];
        assert_eq!(
            table(&states, &BTreeSet::new(), TerminalStyle::PLAIN),
            "QUEUE      URGENT  NORMAL  BACKGROUND  HELD  OLDEST WAIT  JOBS/S  STATE\n\
             type:osis       3       5           0     2        2.50s       -  paused: prio 1\n"
        );
        states[0].paused = true;
        states.push(state("type:osis:prio:2", 0, true));
        let text = table(&states, &BTreeSet::new(), TerminalStyle::PLAIN);
        assert!(text.lines().count() == 2 && text.contains("  paused\n"), "{text}");
        let rule = [PauseRule::default()].into();
        let text = table(&states[..1], &rule, TerminalStyle::PLAIN);
        assert!(text.contains("  paused\n"), "all priorities are paused by the rule: {text}");
    }
}
