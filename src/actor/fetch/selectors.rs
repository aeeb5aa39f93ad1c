//! The expressions of `where` that jobs have, and which of them each actor matches.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::background_calls::SelectorRead;
use super::slots::Slots;
use crate::actor::settings::ActorSettings;
use crate::proto::labels::Labels;
use crate::proto::selector::Selector;
use crate::proto::target::{ScriptType, SelectorDigest};
use crate::store::UsedSelectors;

/// The time between two reads without a message: one may have been lost.
const READ_EVERY: Duration = Duration::from_mins(1);
/// The time before the latest use from which uses are read again.
const OVERLAP_US: u64 = 1_000_000;

/// The expressions of the types of this process.
pub(super) struct Selectors {
    of_types: BTreeMap<ScriptType, OfType>,
    read_at: Option<Instant>,
}

#[derive(Default)]
struct OfType {
    /// `None` for a text that is no expression: any actor takes its jobs, and refuses them.
    known: BTreeMap<SelectorDigest, Option<Selector>>,
    since_us: u64,
    /// The expressions of which Redis has no text.
    without_text: usize,
    /// A read is under way or queued.
    is_being_read: bool,
    /// Jobs have had a new one since it was queued.
    is_outdated: bool,
}

impl Selectors {
    pub(super) fn new(slots: &[Slots]) -> Self {
        let types = slots.iter().map(|slots| (slots.id.script_type.clone(), OfType::default()));
        Self { of_types: types.collect(), read_at: None }
    }

    /// Returns the reads that are due by the time.
    pub(super) fn due(&mut self, now: Instant) -> Vec<SelectorRead> {
        if self.read_at.is_some_and(|at| now.duration_since(at) < READ_EVERY) {
            return Vec::new();
        }
        self.read_at = Some(now);
        let types: Vec<ScriptType> = self.of_types.keys().cloned().collect();
        types.iter().filter_map(|of| self.outdated(of)).collect()
    }

    /// Returns when [`Selectors::due`] has something to do.
    pub(super) fn due_at(&self) -> Option<Instant> {
        self.read_at.map(|at| at + READ_EVERY)
    }

    /// Returns the read that a new expression of a type asks for, unless one is queued.
    pub(super) fn outdated(&mut self, script_type: &ScriptType) -> Option<SelectorRead> {
        let of = self.of_types.get_mut(script_type)?;
        if of.is_being_read {
            of.is_outdated = true;
            return None;
        }
        of.is_being_read = true;
        Some((script_type.clone(), of.since_us))
    }

    /// Takes the answer to a read, none if Redis refuses it. Returns another one that it asks for.
    pub(super) fn read(
        &mut self,
        (script_type, since_us): &SelectorRead,
        used: Option<UsedSelectors>,
        slots: &mut [Slots],
        settings: &ActorSettings,
    ) -> Option<SelectorRead> {
        let of = self.of_types.get_mut(script_type)?;
        of.is_being_read = false;
        let used = used?;
        let is_all = *since_us == 0;
        if is_all {
            of.known.retain(|digest, _| used.texts.contains_key(digest));
            of.without_text = used.number.saturating_sub(used.texts.len());
        }
        for (digest, text) in used.texts {
            of.known.entry(digest).or_insert_with(|| text.parse().ok());
        }
        of.since_us = used.until_us.saturating_sub(OVERLAP_US);
        // Some have left, or Redis's clock was set back.
        let lacks_some = !is_all && of.known.len() + of.without_text != used.number;
        if lacks_some {
            of.since_us = 0;
        }
        let again = std::mem::take(&mut of.is_outdated) || lacks_some;
        self.match_all(slots, settings);
        if again { self.outdated(script_type) } else { None }
    }

    /// Gives each actor the queues of the expressions that it matches.
    pub(super) fn match_all(&self, slots: &mut [Slots], settings: &ActorSettings) {
        for (actor, slots) in slots.iter_mut().enumerate() {
            if let Some(of) = self.of_types.get(&slots.id.script_type) {
                slots.set_matched(of.matched_by(settings.labels(actor)));
            }
        }
    }
}

impl OfType {
    fn matched_by(&self, labels: &Labels) -> Vec<SelectorDigest> {
        let is_matched = |selector: &Option<Selector>| {
            selector.as_ref().is_none_or(|selector| selector.matches(labels))
        };
        let matched = self.known.iter().filter(|(_, selector)| is_matched(selector));
        matched.map(|(digest, _)| digest.clone()).collect()
    }
}
