//! The address of the list of machines: its groups and filters.

use serde::Deserialize;

use super::super::super::links::SiteLinks;
use super::super::super::parts::given;
use crate::proto::selector::Selector;

/// The label that groups, the filters of the list, and its page; empty ones are off.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(in crate::web) struct MachinesQuery {
    /// The name of a label, or [`super::groups::NOTHING`].
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
