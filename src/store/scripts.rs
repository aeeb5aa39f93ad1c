//! The server-side scripts. Each is one file, run by its hash and loaded again whenever Redis
//! has forgotten it.

use redis::Script;

use crate::proto::keys::Keys;

/// Every script of one namespace, ready to run.
pub(super) struct Scripts {
    pub(super) appear: Script,
    pub(super) claim: Script,
    pub(super) commit: Script,
    pub(super) delete: Script,
    pub(super) disappear: Script,
    pub(super) dispatch_due: Script,
    pub(super) fan_out: Script,
    pub(super) finish: Script,
    pub(super) heartbeat: Script,
    pub(super) list_dead: Script,
    pub(super) pause: Script,
    pub(super) progress: Script,
    pub(super) purge: Script,
    pub(super) objects_index: Script,
    pub(super) objects_read: Script,
    pub(super) objects_write: Script,
    pub(super) recover_boots: Script,
    pub(super) recover_foreign: Script,
    pub(super) recover_legacy: Script,
    pub(super) recover_orphans: Script,
    pub(super) recover_pops: Script,
    pub(super) requeue: Script,
    pub(super) retry: Script,
    pub(super) sample: Script,
    pub(super) settle: Script,
    pub(super) stage: Script,
    pub(super) start: Script,
    pub(super) stop: Script,
    pub(super) submit: Script,
    pub(super) take_tasks: Script,
}

impl Scripts {
    pub(super) fn new(keys: &Keys) -> Self {
        let constants = keys.lua();
        let script = |body: &str| {
            let shared = [include_str!("scripts/legacy.lua"), include_str!("scripts/common.lua")];
            Script::new(&[constants.as_str(), shared[0], shared[1], body].concat())
        };
        Self {
            appear: script(include_str!("scripts/appear.lua")),
            claim: script(include_str!("scripts/claim.lua")),
            commit: script(include_str!("scripts/commit.lua")),
            delete: script(include_str!("scripts/delete.lua")),
            disappear: script(include_str!("scripts/disappear.lua")),
            dispatch_due: script(include_str!("scripts/dispatch_due.lua")),
            fan_out: script(include_str!("scripts/fan_out.lua")),
            finish: script(include_str!("scripts/finish.lua")),
            heartbeat: script(include_str!("scripts/heartbeat.lua")),
            // Alone, as it goes along with what calls it.
            progress: Script::new(
                &[constants.as_str(), include_str!("scripts/progress.lua")].concat(),
            ),
            list_dead: script(include_str!("scripts/list_dead.lua")),
            pause: script(include_str!("scripts/pause.lua")),
            purge: script(include_str!("scripts/purge.lua")),
            objects_index: script(include_str!("scripts/objects_index.lua")),
            objects_read: script(include_str!("scripts/objects_read.lua")),
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
            take_tasks: script(include_str!("scripts/take_tasks.lua")),
        }
    }
}
