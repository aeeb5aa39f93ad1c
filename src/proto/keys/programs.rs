//! The keys of a program that speaks the protocol itself, by the names that the protocol's first clients gave them, in
//! the namespace `hero`; [`Keys`] spells them for another one.

use super::Keys;
use crate::proto::job::JobId;
use crate::proto::queue::Queue;
use crate::proto::target::{Group, Instance, Priority, ScriptType, Target};

/// Hash: the job.
pub fn job_hash_key(id: &JobId) -> String {
    Keys::default().job(id)
}

/// List: the reply to a job.
pub fn reply_queue_key(id: &JobId) -> String {
    Keys::default().reply(id)
}

/// List: ids of the jobs for any actor of a script type.
pub fn work_queue_type(script_type: &ScriptType) -> String {
    work(Target::any(script_type.clone()))
}

/// List: ids of the jobs for a group of actors.
pub fn work_queue_group(script_type: &ScriptType, group: &Group) -> String {
    work(Target::group(script_type.clone(), group.clone()))
}

/// List: ids of the jobs for one actor.
pub fn work_queue_instance(script_type: &ScriptType, group: &Group, instance: Instance) -> String {
    work(Target::instance(script_type.clone(), group.clone(), instance))
}

fn work(target: Target) -> String {
    Keys::default().work(&Queue { target, priority: Priority::Normal })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::target::ActorId;

    #[test]
    fn keys_of_programs_are_spelled_as_the_protocol_says() {
        let id: JobId = "job-1".parse().expect("legal");
        let actor = ActorId::from_unit("osis-io-3").expect("legal");
        let (script_type, group) = (&actor.script_type, &actor.group);
        assert_eq!(job_hash_key(&id), "hero:job:job-1");
        assert_eq!(reply_queue_key(&id), "hero:q:reply:job-1");
        assert_eq!(work_queue_type(script_type), "hero:q:work:type:osis");
        assert_eq!(work_queue_group(script_type, group), "hero:q:work:type:osis:group:io");
        let instance = work_queue_instance(script_type, group, actor.instance);
        assert_eq!(instance, "hero:q:work:type:osis:group:io:inst:3");
    }
}
