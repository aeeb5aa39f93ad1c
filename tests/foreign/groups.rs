//! Legacy queues for a group, and for one instance.

use super::{Program, counting, dual, each_ran_once, has_status, nothing_is_left};
use crate::support::{Hero, Redis, wait_until};

const OF_DEFAULT: &str = "hero:work_queue:w1";
const OF_GROUP: &str = "hero:job:actor_queue:io";
const OF_INSTANCE: &str = "hero:job:io3";

fn grouped(redis: &Redis) -> Hero {
    let of_group = [OF_GROUP, ", group = \"io\""].concat();
    let of_instance = [OF_INSTANCE, ", group = \"io\", instance = 3"].concat();
    dual(redis, &[OF_DEFAULT, &of_group, &of_instance])
}

/// The legacy queues that hold a job.
fn places(redis: &Redis, id: &str) -> Vec<&'static str> {
    let holds = |queue: &&str| redis.list(queue).iter().any(|entry| entry == id);
    [OF_DEFAULT, OF_GROUP, OF_INSTANCE].into_iter().filter(holds).collect()
}

#[track_caller]
fn finished_by(redis: &Redis, id: &str, actor: &str) {
    wait_until(&format!("job {id} has finished"), || has_status(redis, id, "finished"));
    assert_eq!(redis.field(&format!("hero:job:{id}"), "actor").as_deref(), Some(actor), "{id}");
}

#[test]
fn a_job_stands_in_a_legacy_queue_whose_workers_may_run_it_and_in_no_other() {
    let redis = Redis::start();
    let hero = grouped(&redis);
    let submit = |id: &str, target: &[&str]| {
        let script = counting(&redis, id, id);
        hero.run(&[&["submit", "-t", "bash", "--id", id, "-e", &script], target].concat()).code(0);
        places(&redis, id)
    };
    assert_eq!(submit("third", &["-g", "io", "-i", "3"]), [OF_INSTANCE]);
    assert_eq!(submit("fourth", &["-g", "io", "-i", "4"]), [] as [&str; 0]);
    assert_eq!(submit("group", &["-g", "io"]), [OF_GROUP], "the shorter of two");
    assert_eq!(submit("other", &["-g", "net"]), [] as [&str; 0]);
    assert_eq!(submit("default", &["-g", "default"]), [OF_DEFAULT]);
    assert_eq!(submit("urgent", &["-g", "io", "-i", "3", "--priority", "0"]), [OF_INSTANCE]);
    assert_eq!(submit("any", &[]).len(), 1);

    let _supervisor = hero.supervisor().start();
    let _fourth = hero.actor("bash-io-4").start();
    finished_by(&redis, "fourth", "bash:io:4");
    finished_by(&redis, "group", "bash:io:4");
    finished_by(&redis, "any", "bash:io:4");
    assert_eq!(places(&redis, "any"), [] as [&str; 0]);
    assert_eq!(places(&redis, "third"), [OF_INSTANCE], "for the third alone");
    assert_eq!(places(&redis, "default"), [OF_DEFAULT], "for another group");

    let _old = [OF_DEFAULT, OF_INSTANCE].map(|key| Program::serve(&redis, "old_worker", &[key]));
    for id in ["third", "urgent", "default"] {
        wait_until(&format!("an old worker has run {id}"), || has_status(&redis, id, "finished"));
        assert_eq!(redis.field(&format!("hero:job:{id}"), "actor"), None);
    }
    let _net = hero.actor("bash-net-1").start();
    finished_by(&redis, "other", "bash:net:1");
    each_ran_once(&redis, 7);
    nothing_is_left(&redis);
}

#[test]
fn jobs_of_old_clients_are_for_the_actors_that_their_queue_is_for() {
    let redis = Redis::start();
    let hero = grouped(&redis);
    let _supervisor = hero.supervisor().start();
    let submit = |queue: &str| {
        let script = counting(&redis, "{id}", "{id}");
        Program::run(&redis, "old_client", &["submit", queue, &script]).trim().to_owned()
    };
    let (third, group) = (submit(OF_INSTANCE), submit(OF_GROUP));
    let _default = hero.actor("bash-default-1").start();
    finished_by(&redis, &submit(OF_DEFAULT), "bash:default:1");
    assert!(has_status(&redis, &group, "dispatched"));
    let _fourth = hero.actor("bash-io-4").start();
    finished_by(&redis, &group, "bash:io:4");
    finished_by(&redis, &submit(OF_GROUP), "bash:io:4");
    assert!(has_status(&redis, &third, "dispatched"));
    let _third = hero.actor("bash-io-3").start();
    finished_by(&redis, &third, "bash:io:3");
    let key = format!("hero:job:{third}");
    assert_eq!(redis.field(&key, "group").as_deref(), Some("io"));
    assert_eq!(redis.field(&key, "instance").as_deref(), Some("3"));
    each_ran_once(&redis, 4);
    nothing_is_left(&redis);
}
