//! The heartbeat: renews presence and lease, then feeds the watchdog while the fetch loop makes
//! progress. It shares nothing with the scripts.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;
use tracing::{debug, info, warn};

use super::boot::Boot;
use super::identity::presence_of_all;
use super::machine;
use crate::proto::report::ServiceReport;
use crate::proto::units::brief;
use crate::store::{AdoptionRules, Backoff, Renewal, adopt_what_is_pushed};

/// A fetch loop without a turn for this long is stuck. It turns every two seconds when idle.
const STUCK_AFTER: Duration = Duration::from_secs(10);

/// Beats until the lease is lost. While Redis is away it beats more often: a lease that ran out
/// must be renewed before a supervisor declares this boot dead.
pub(super) async fn run(boot: &Boot, every: Duration, started_at: Timestamp) {
    let mut ticks = tokio::time::interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut backoff = Backoff::default();
    let mut bell = JoinSet::new();
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = boot.health.presence_changed.notified() => {}
            () = boot.health.lease_lost.notified() => return,
        }
        check_overload(boot);
        let presence = presence_of_all(boot, started_at);
        let asked_at = Instant::now();
        let beats = boot.health.beats();
        match boot.store.actors().heartbeat(&boot.id, boot.lease, &presence, &beats).await {
            Ok(Renewal::Lost) => return,
            Ok(renewal) => {
                boot.health.beat_written();
                boot.health.lease_renewed(asked_at, boot.lease);
                backoff.succeeded();
                // It has written: a Redis that is read-only answers other calls.
                if !boot.store.is_refused()
                    && let Some(lasted) = boot.health.outage.over(Instant::now())
                {
                    info!("redis is back after {:.1} s", lasted.as_secs_f64());
                }
                debug!("heartbeat");
                if let Some(tracer) = &boot.process.of.tracer {
                    tracer.count_dropped(&boot.store).await;
                }
                if renewal == Renewal::Unsupervised {
                    hand_on_control(boot).await;
                    // What programs push is adopted here, while no supervisor does that.
                    if bell.is_empty() {
                        let (store, settings) = (boot.store.clone(), boot.settings.clone());
                        bell.spawn(async move {
                            let rules = || AdoptionRules::from(&settings.borrow().job);
                            adopt_what_is_pushed(&store, rules, &Notify::new()).await;
                        });
                    }
                } else {
                    bell = JoinSet::new();
                }
            }
            Err(error) if error.is_outage() => {
                ticks.reset_after(backoff.failed().min(every));
                if boot.health.outage.failed_by(Instant::now(), &error) {
                    warn!("{error}; running jobs go on, trying again");
                } else if let Some(lasted) = boot.health.outage.lasts(Instant::now()) {
                    let lasted = brief(lasted);
                    warn!(
                        "redis has not served for {lasted}: {error}; running jobs go on, trying again"
                    );
                }
            }
            Err(error) => warn!("cannot renew presence and lease: {error}"),
        }
        if boot.health.since_turn() < STUCK_AFTER {
            (boot.report)(ServiceReport::Alive(boot.process.status()));
        } else {
            warn!("the fetch loop makes no progress: the watchdog is not fed");
        }
    }
}

/// Hands on control messages for the types of this process while no supervisor does.
async fn hand_on_control(boot: &Boot) {
    let types = boot.actors.iter().map(|actor| &actor.script_type).collect();
    let retention = boot.settings().job.kept();
    let handed_on = boot.store.actors().fan_out(boot.lease, retention, Some(&types)).await;
    match handed_on.map(|handed_on| handed_on.messages) {
        Ok(0) => {}
        Ok(messages) => info!(messages, "handed on control messages: no supervisor is live"),
        // The next heartbeat tries again.
        Err(error) => debug!("cannot hand on control messages: {error}"),
    }
}

/// Checks whether the machine is overloaded or full, and notifies the fetch loop.
pub(super) fn check_overload(boot: &Boot) {
    let overload = boot.health.shortage().or_else(|| machine::overload(&boot.settings().actor));
    let reason = overload.clone();
    if boot.health.set_overload(overload) {
        let is_new = boot.process.overload_changed(reason.is_some());
        if let Some(reason) = reason.filter(|_| is_new) {
            warn!("claims no jobs while the machine is overloaded or full: {reason}");
        } else if is_new {
            info!("claims jobs again: the machine is no longer overloaded or full");
        }
        boot.health.overload_changed.notify_one();
    }
}
