//! Hashes as older programs have written them, in every spelling there is.

use super::{Program, W1, bash, dual, has_status, nothing_is_left};
use crate::support::{Redis, until, wait_until};

#[test]
fn old_hashes_of_every_spelling_are_run() {
    let redis = Redis::start();
    let hero = dual(&redis, &[W1]);
    let (_supervisor, _actor) = (hero.supervisor().start(), hero.actor("bash-default-1").start());
    redis.run("HSET hero:job:done status Finished output 1");
    for (place, fields) in [
        "status dispatched worker_id w1",
        "status dispatched actor_id w1",
        "status Dispatched worker_id bash-default-1",
        "status DISPATCHED actor_id osis",
        "worker_id w1",
        "status dispatched script_type Bash",
        "status dispatched script_type HeroScript",
        "status dispatched concurrent false retries 0 timeout 60",
        r#"status dispatched dependencies ["done"]"#,
        r#"status dispatched prerequisites ["done"]"#,
        r#"status dispatched dependencies ["done"] prerequisites ["done"]"#,
        "status dispatched created_at soon updated_at never",
        "status dispatched env_vars {} dependents [] prerequisites [] dependencies []",
    ]
    .into_iter()
    .enumerate()
    {
        let id = format!("old-{place}");
        redis.run(&format!("HSET hero:job:{id} id {id} {fields}"));
        redis.ask_with::<i64, _>(&format!("HSET hero:job:{id} script"), &["echo right"]);
        redis.run(&format!("LPUSH {W1} {id}"));
        until(&redis, &id, "finished");
        let output = redis.field(&format!("hero:job:{id}"), "output").unwrap_or_default();
        assert_eq!(output.trim(), "right", "{fields}");
    }
}

#[test]
fn states_that_an_old_worker_writes_in_capitals_are_known() {
    let redis = Redis::start();
    let hero = dual(&redis, &[W1]);
    let supervisor = hero.supervisor().start();
    for id in ["first", "other"] {
        hero.run(&["submit", "-t", "bash", "--id", id, "-e", "echo 1"]).code(0);
    }
    hero.run(&["submit", "-t", "bash", "--id", "later", "--after", "first", "-e", "echo 2"])
        .code(0);
    for id in ["first", "other"] {
        assert_eq!(redis.ask::<String>(&format!("LPOP {W1}")), id);
        redis.run(&format!("HSET hero:job:{id} status Started"));
        wait_until("it is known to have started", || {
            redis
                .ask::<Option<f64>>(&format!("ZSCORE hero:meta:job:index:started:type:bash {id}"))
                .is_some()
        });
    }
    redis.run("HSET hero:job:first status FINISHED output 1");
    redis.run("HSET hero:job:other status Error error spoilt");
    hero.run(&["job", "wait", "first"]).code(0).stdout("1\n");
    hero.run(&["job", "wait", "other"]).code(1).says("spoilt");
    until(&redis, "later", "dispatched");
    drop(supervisor);

    // Nobody sweeps, and yet nobody is misled.
    redis.run(&format!("LREM {W1} 1 later"));
    redis.run("HSET hero:job:later status Finished output 2");
    hero.run(&["job", "wait", "later"]).code(0).stdout("2\n");
    hero.run(&["submit", "-t", "bash", "--id", "last", "--after", "later", "-e", "echo 3"]).code(0);
    assert!(has_status(&redis, "last", "dispatched"));
    let _supervisor = hero.supervisor().start();
    let _worker = Program::serve(&redis, "old_worker", &["w1"]);
    until(&redis, "last", "finished");
    redis.run("DEL hero:job:other");
    redis.run("ZREM hero:meta:job:index:error:type:bash other");
    nothing_is_left(&redis);
}

#[test]
fn a_raw_client_may_write_its_status_in_capitals() {
    let redis = Redis::start();
    let hero = bash(&redis);
    redis.run("HSET hero:job:raw status Dispatched script exit");
    redis.run("RPUSH hero:q:work:type:bash raw");
    let _actor = hero.actor("bash-default-1").start();
    until(&redis, "raw", "finished");
}
