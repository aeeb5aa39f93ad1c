//! When the expressions of jobs are read, and what their answers change.

use std::time::Instant;

use super::Fetch;
use super::background_calls::{BackgroundCall, SelectorRead};
use crate::proto::target::ScriptType;
use crate::store::UsedSelectors;

impl Fetch {
    /// Queues the reads that are due by the time.
    pub(super) fn read_due_selectors(&mut self, now: Instant) {
        for read in self.selectors.due(now) {
            self.calls.push(BackgroundCall::ReadSelectors(read));
        }
    }

    /// Queues the read that a new expression of a type asks for.
    pub(super) fn read_selectors(&mut self, script_type: &ScriptType) {
        if let Some(read) = self.selectors.outdated(script_type) {
            self.calls.push(BackgroundCall::ReadSelectors(read));
        }
    }

    pub(super) fn on_selectors(&mut self, read: &SelectorRead, used: Option<UsedSelectors>) {
        let Self { selectors, jobs, settings, .. } = self;
        if let Some(next) = selectors.read(read, used, &mut jobs.slots, settings) {
            self.calls.push(BackgroundCall::ReadSelectors(next));
        }
    }

    /// Matches the labels of new settings, and shows them.
    pub(super) fn labels_may_differ(&mut self) {
        self.selectors.match_all(&mut self.jobs.slots, &self.settings);
        self.boot.health.presence_changed.notify_one();
    }
}
