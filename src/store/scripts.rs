//! The server-side scripts. Each is one file, run by its hash and loaded again whenever Redis
//! has forgotten it.

use std::sync::{Arc, LazyLock};

use redis::Script;

use super::assembly::assemble;
use crate::proto::keys::Keys;

/// A script that is put together when it is first needed: a process needs but some of them.
pub(super) type Lazy = LazyLock<Script, Box<dyn FnOnce() -> Script + Send>>;

/// Every script of one namespace, ready to run.
pub(super) struct Scripts {
    pub(super) appear: Lazy,
    pub(super) claim: Lazy,
    pub(super) cron_state: Lazy,
    pub(super) commit: Lazy,
    pub(super) delete: Lazy,
    pub(super) disappear: Lazy,
    pub(super) dispatch_due: Lazy,
    pub(super) fan_out: Lazy,
    pub(super) finish: Lazy,
    pub(super) fire: Lazy,
    pub(super) heartbeat: Lazy,
    pub(super) inputs: Lazy,
    pub(super) list_dead: Lazy,
    pub(super) long_waits: Lazy,
    pub(super) progress: Lazy,
    pub(super) pause: Lazy,
    pub(super) purge: Lazy,
    pub(super) objects_index: Lazy,
    pub(super) objects_read: Lazy,
    pub(super) objects_undeclared: Lazy,
    pub(super) objects_write: Lazy,
    pub(super) recover_boots: Lazy,
    pub(super) recover_foreign: Lazy,
    pub(super) recover_legacy: Lazy,
    pub(super) recover_orphans: Lazy,
    pub(super) recover_pops: Lazy,
    pub(super) requeue: Lazy,
    pub(super) retry: Lazy,
    pub(super) sample: Lazy,
    pub(super) settle: Lazy,
    pub(super) stage: Lazy,
    pub(super) start: Lazy,
    pub(super) stop: Lazy,
    pub(super) submit: Lazy,
    pub(super) tend_limits: Lazy,
    pub(super) take_tasks: Lazy,
}

impl Scripts {
    pub(super) fn new(keys: &Keys) -> Self {
        let constants: Arc<str> = keys.lua().into();
        let lazy = |put_together: fn(&str) -> Script| -> Lazy {
            let constants = Arc::clone(&constants);
            LazyLock::new(Box::new(move || put_together(&constants)))
        };
        let script = |body: &'static str| -> Lazy {
            let constants = Arc::clone(&constants);
            LazyLock::new(Box::new(move || whole(&constants, &[], body)))
        };
        Self {
            appear: script(include_str!("scripts/appear.lua")),
            cron_state: script(include_str!("scripts/cron_state.lua")),
            claim: lazy(|constants| {
                let limits = ("limits_in_claim", include_str!("scripts/claim_limits.lua"));
                let legacy = ("legacy_in_claim", include_str!("scripts/claim_legacy.lua"));
                whole(constants, &[limits, legacy], include_str!("scripts/claim.lua"))
            }),
            commit: script(include_str!("scripts/commit.lua")),
            delete: script(include_str!("scripts/delete.lua")),
            disappear: script(include_str!("scripts/disappear.lua")),
            dispatch_due: script(include_str!("scripts/dispatch_due.lua")),
            fan_out: script(include_str!("scripts/fan_out.lua")),
            fire: lazy(|constants| {
                let stop = ("stop", include_str!("scripts/stop.lua"));
                let submit = ("submit", include_str!("scripts/submit.lua"));
                whole(constants, &[stop, submit], include_str!("scripts/fire.lua"))
            }),
            finish: script(include_str!("scripts/finish.lua")),
            heartbeat: script(include_str!("scripts/heartbeat.lua")),
            inputs: script(include_str!("scripts/inputs.lua")),
            // Alone, as it goes along with what calls it.
            progress: lazy(|constants| {
                Script::new(&[constants, include_str!("scripts/progress.lua")].concat())
            }),
            long_waits: script(include_str!("scripts/long_waits.lua")),
            list_dead: script(include_str!("scripts/list_dead.lua")),
            pause: script(include_str!("scripts/pause.lua")),
            purge: script(include_str!("scripts/purge.lua")),
            objects_index: script(include_str!("scripts/objects_index.lua")),
            objects_read: script(include_str!("scripts/objects_read.lua")),
            objects_undeclared: script(include_str!("scripts/objects_undeclared.lua")),
            objects_write: script(include_str!("scripts/objects_write.lua")),
            recover_boots: script(include_str!("scripts/recover_boots.lua")),
            recover_foreign: script(include_str!("scripts/recover_foreign.lua")),
            recover_legacy: script(include_str!("scripts/recover_legacy.lua")),
            recover_orphans: script(include_str!("scripts/recover_orphans.lua")),
            recover_pops: script(include_str!("scripts/recover_pops.lua")),
            requeue: script(include_str!("scripts/requeue.lua")),
            retry: script(include_str!("scripts/retry.lua")),
            sample: script(include_str!("scripts/sample.lua")),
            settle: script(include_str!("scripts/settle.lua")),
            stage: script(include_str!("scripts/stage.lua")),
            start: script(include_str!("scripts/start.lua")),
            stop: script(include_str!("scripts/stop.lua")),
            submit: script(include_str!("scripts/submit.lua")),
            tend_limits: script(include_str!("scripts/tend_limits.lua")),
            take_tasks: script(include_str!("scripts/take_tasks.lua")),
        }
    }
}

/// A script with what it uses of all that scripts share before it, and of other scripts: these as
/// functions of their arguments, for one that does this and more in one step.
fn whole(constants: &str, functions: &[(&str, &str)], body: &str) -> Script {
    Script::new(&assemble(constants, functions, body))
}
