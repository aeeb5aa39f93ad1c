//! Compares a periodic job with what live supervisors fire.

use crate::config::{CronEntry, CronPlace};
use crate::proto::message::SupervisorPresence;

/// Returns why no live supervisor fires a periodic job as it stands here, if none does.
pub(super) fn not_in_force(
    entry: &CronEntry,
    supervisors: &[SupervisorPresence],
) -> Option<&'static str> {
    if supervisors.is_empty() {
        return Some("no live supervisor fires it");
    }
    if matches!(entry.place, CronPlace::Redis { .. }) {
        // The type of a published script may change.
        let script_type = entry.script_type()?.to_string();
        let has = |of: &SupervisorPresence| of.types.is_empty() || of.types.contains(&script_type);
        let is_fired = supervisors.iter().any(has);
        return (!is_fired).then_some("no live supervisor fires it: none has its script type");
    }
    let digest = entry.digest();
    let mut is_known = false;
    for of in supervisors {
        // A supervisor that tells nothing may fire it.
        let jobs = of.cron.as_ref()?.jobs.as_ref()?;
        match jobs.get(entry.name.as_str()) {
            Some(own) if *own == digest => return None,
            Some(_) => is_known = true,
            None => {}
        }
    }
    Some(if is_known {
        "changed on disk, not in force: reload"
    } else {
        "no live supervisor fires it: reload, or see hero doctor"
    })
}
