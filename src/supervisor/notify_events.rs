//! Duty: turns what has happened to jobs into messages of `[notify.NAME]`.

use std::collections::BTreeSet;

use tracing::debug;

use super::duty::{Next, Round};
use crate::config::NotifyConfig;
use crate::proto::notification::{MessagePlan, NotifyKind};
use crate::proto::units::millis;
use crate::store::{NotifySnapshot, ReadEvents, StoreError, wanted_if_named};

/// The events of one shard per round; if more are there, the next round follows at once.
const PER_ROUND: usize = 500;

pub(super) async fn round(round: Round) -> Result<Next, StoreError> {
    let notify = &round.settings.notify;
    if notify.is_empty() {
        return Ok(Next::After(round.long_pause()));
    }
    let wanted: BTreeSet<String> = notify.values().flat_map(wanted_words).collect();
    let wanted: Vec<String> = wanted.into_iter().collect();
    let look = round.store.notifications().look().await?;
    let look_ref = &look;
    let wanted = &wanted;
    let read = round
        .system
        .each(|store| store.notifications().events(look_ref, wanted, PER_ROUND))
        .await?;
    let is_full = read.iter().any(|of| of.events.len() >= PER_ROUND);
    if read.iter().any(|of| of.until.is_some()) && !tell(&round, look, &read).await? {
        debug!("another supervisor has read the same events");
    }
    Ok(Next::After(round.sweep()).unless_more(is_full))
}

/// Decides which messages report these events, and writes them. Returns false if another supervisor was first.
async fn tell(
    round: &Round,
    look: NotifySnapshot,
    read: &[ReadEvents],
) -> Result<bool, StoreError> {
    let mut plan = MessagePlan::new(look.now_ms, look.states.clone(), look.undelivered);
    for (message, due_ms) in round.store.notifications().messages(&plan.gathering()).await? {
        plan.keeps(message, due_ms);
    }
    for (place, event) in read.iter().flat_map(|of| &of.events) {
        for (name, notify) in &*round.settings.notify {
            if let Some(kind) = notify.tells(name, event) {
                plan.tell(name, kind, event, place, millis(notify.every));
            }
        }
    }
    round.store.notifications().plan(&look, &plan, read).await
}

/// Returns the words by which scripts know the events that a notification needs.
fn wanted_words(notify: &NotifyConfig) -> Vec<String> {
    let word = |kind: &NotifyKind| {
        Some(match kind {
            NotifyKind::Failed | NotifyKind::Dead => "failed",
            // All jobs that finish are looked at.
            NotifyKind::Recovered => "recovered",
            NotifyKind::Finished => "finished",
            NotifyKind::Late => "late",
            NotifyKind::Slow => "slow",
            // Supervisors report these, not jobs.
            NotifyKind::Test | NotifyKind::Held | NotifyKind::NoActor | NotifyKind::CronLate => {
                return None;
            }
        })
    };
    let is_of_named = |word: &str| notify.named && word != "recovered";
    let words = notify.on.iter().filter_map(word);
    words
        .map(|word| if is_of_named(word) { wanted_if_named(word) } else { word.to_owned() })
        .collect()
}
