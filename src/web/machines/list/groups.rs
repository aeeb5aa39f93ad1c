//! The address of the list of machines, and its groups: those with the same value of a label.

use std::collections::BTreeSet;
use std::ops::Range;

use maud::{Markup, html};
use serde::Deserialize;

use super::super::super::links::SiteLinks;
use super::super::super::parts::{count, given, things};
use crate::client::MachineDocument;
use crate::proto::labels::{GIVEN_LABELS, LabelName, LabelValue, label};
use crate::proto::selector::Selector;

/// Groups by nothing; no label has this name.
pub(super) const NOTHING: &str = "-";

/// The label that groups, the filters of the list, and its page; empty ones are off.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(in crate::web) struct MachinesQuery {
    /// The name of a label, or [`NOTHING`].
    pub(super) by: String,
    #[serde(rename = "type")]
    pub(super) script_type: String,
    pub(super) state: String,
    #[serde(rename = "where")]
    pub(super) selector: String,
    pub(super) page: String,
}

impl MachinesQuery {
    pub(super) fn address(&self, links: &SiteLinks, page: &str) -> String {
        let (of_type, selector) = (self.script_type.as_str(), self.selector.trim());
        let filters = [("type", of_type), ("state", &self.state), ("where", selector)];
        links.with(
            "/machines",
            &[&[("by", self.by.as_str())], &filters[..], &[("page", page)]].concat(),
        )
    }

    pub(super) fn is_off(&self) -> bool {
        self.script_type.is_empty() && self.state.is_empty() && self.selector.trim().is_empty()
    }

    pub(super) fn expression(&self) -> Result<Option<Selector>, String> {
        let text = given(self.selector.trim());
        text.map(|text| text.parse::<Selector>().map_err(|error| error.to_string())).transpose()
    }
}

pub(super) struct MachineGroup {
    /// The value; none for machines without the label.
    pub(super) value: Option<String>,
    /// The machines of the group on this page.
    pub(super) shown: Vec<MachineDocument>,
    /// The numbers of all machines of the group: those that are live, those that are absent, their running jobs and their
    /// tasks.
    live: usize,
    absent: usize,
    running: usize,
    tasks: usize,
}

/// Returns the labels that machines have, first the configured ones. Names of machines make no groups.
pub(super) fn labels_to_group_by(all: &[MachineDocument]) -> Vec<&str> {
    let names = all.iter().flat_map(|of| of.labels.keys().map(LabelName::as_str));
    let names: BTreeSet<&str> = names.filter(|name| !["host", "machine"].contains(name)).collect();
    let mut names: Vec<&str> = names.into_iter().collect();
    names.sort_by_key(|name| GIVEN_LABELS.contains(name));
    names
}

/// Returns the label that groups machines: the one that was asked for, else of the labels of the configuration that part
/// them the one that most have, and of several the one with the fewest values.
pub(super) fn chosen(all: &[MachineDocument], asked: &str) -> Option<String> {
    match given(asked) {
        Some(NOTHING) => return None,
        Some(name) => return Some(name.to_owned()),
        None => {}
    }
    let own = labels_to_group_by(all).into_iter().filter(|name| !GIVEN_LABELS.contains(name));
    let parting = own.filter_map(|name| {
        let values: Vec<_> = all.iter().filter_map(|of| label(&of.labels, name)).collect();
        let kinds = values.iter().collect::<BTreeSet<_>>().len();
        let has_others = kinds > 1 || values.len() < all.len();
        has_others.then_some((all.len() - values.len(), kinds, name))
    });
    parting.min().map(|(.., name)| name.to_owned())
}

/// Returns the groups of machines in the order of their values, those without the label last; of each the machines in a
/// range of all.
pub(super) fn grouped(
    mut machines: Vec<MachineDocument>,
    by: Option<&str>,
    page: Range<usize>,
) -> Vec<MachineGroup> {
    let value = |of: &MachineDocument| label(&of.labels, by?).cloned();
    machines.sort_by_cached_key(|of| {
        let value = value(of);
        let number = value.as_ref().and_then(LabelValue::number);
        // Numbers in their order; they are of at most 15 digits.
        #[expect(clippy::cast_possible_truncation, reason = "below 2^53")]
        let number = number.map(|number| (number * 1000.0) as i64);
        (value.is_none(), number.is_none(), number, value, of.host.clone())
    });
    let mut groups: Vec<MachineGroup> = Vec::new();
    for (place, of) in machines.into_iter().enumerate() {
        let value = value(&of).map(|value| value.to_string());
        if groups.last().is_none_or(|last| last.value != value) {
            let shown = Vec::new();
            groups.push(MachineGroup { value, shown, live: 0, absent: 0, running: 0, tasks: 0 });
        }
        let Some(group) = groups.last_mut() else { continue };
        group.live += usize::from(of.live);
        group.absent += usize::from(!of.live);
        group.running += of.running;
        group.tasks += of.tasks;
        if page.contains(&place) {
            group.shown.push(of);
        }
    }
    groups.retain(|group| !group.shown.is_empty());
    groups
}

impl MachineGroup {
    /// Returns the head of a group: its value, which leads to its machines alone, and its numbers.
    pub(super) fn head(&self, by: &str, filter: &MachinesQuery, links: &SiteLinks) -> Markup {
        html! {
            @if let Some(value) = &self.value {
                @let only = MachinesQuery { selector: format!("{by} = \"{value}\""), ..filter.clone() };
                a href=(only.address(links, "")) { (by) " = " (value) }
            } @else { "without " (by) }
            " "
            span.faint {
                (things((self.live + self.absent) as u64, "machine"))
                @if self.absent > 0 { ", " (count(self.absent as u64)) " absent" }
                ", " (self.running) " of " (self.tasks) " tasks busy"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn machine(host: &str, labels: &serde_json::Value) -> MachineDocument {
        let document = json!({
            "machine": host, "host": host, "live": true, "seen_at": "", "running": 1, "tasks": 2,
            "load": null, "memory_available": null, "labels": labels, "actors": [],
        });
        serde_json::from_value(document).expect("a machine")
    }

    #[test]
    fn machines_are_grouped_by_the_label_that_parts_most_of_them() {
        let all = [
            machine("a", &json!({ "role": "web", "site": "x", "rack": 10, "os": "debian" })),
            machine("b", &json!({ "role": "db", "site": "x", "rack": 2, "os": "fedora" })),
            machine("c", &json!({ "role": "web", "site": "x", "os": "debian" })),
        ];
        assert_eq!(labels_to_group_by(&all), ["rack", "role", "site", "os"]);
        // One site has all; a rack not each.
        assert_eq!(chosen(&all, "").as_deref(), Some("role"));
        assert_eq!(chosen(&all, "rack").as_deref(), Some("rack"));
        assert_eq!(chosen(&all, NOTHING), None);
        assert_eq!(chosen(&all[..1], ""), None, "one machine needs no groups");
        let names = |by: Option<&str>, page| {
            let groups = grouped(all.to_vec(), by, page).into_iter();
            let hosts = |of: MachineGroup| of.shown.iter().map(|of| of.host.clone()).collect();
            groups.map(|of| (of.value.clone(), of.live, hosts(of))).collect::<Vec<_>>()
        };
        let group = |value: &str, number, hosts: &[&str]| {
            let hosts: Vec<String> = hosts.iter().map(|of| (*of).to_owned()).collect();
            (given(value).map(str::to_owned), number, hosts)
        };
        assert_eq!(
            names(Some("role"), 0..3),
            [group("db", 1, &["b"]), group("web", 2, &["a", "c"])]
        );
        let racks = [group("2", 1, &["b"]), group("10", 1, &["a"]), group("", 1, &["c"])];
        assert_eq!(names(Some("rack"), 0..3), racks);
        // A page has a part of a group, and its head the numbers of all.
        assert_eq!(names(Some("role"), 2..3), [group("web", 2, &["c"])]);
        assert_eq!(names(None, 0..3), [group("", 3, &["a", "b", "c"])]);
    }
}
