//! Deaths on both sides while both work.

use super::{Program, W1, all_finish, counting, dual, has_status, jobs, lines, runs, submit};
use crate::support::{Redis, wait_until};

#[test]
fn kills_of_old_and_new_lose_nothing_that_hero_has_accepted() {
    let redis = Redis::start();
    let hero = dual(&redis, &[W1])
        .set("actor.lease", "\"1s\"")
        .set("job.timeout", "\"5s\"")
        .set("job.crash_limit", "100");
    let mut supervisor = hero.supervisor().start();
    let number = jobs(20);
    let ids = submit(&redis, &hero, "n", number);
    let script = counting(&redis, "{id}", "out-{id}");
    let old: Vec<String> = (0..number)
        .map(|_| Program::run(&redis, "old_client", &["submit", "w1", &script]).trim().to_owned())
        .collect();
    for round in 0..4 {
        let mut worker = Program::serve(&redis, "old_worker", &["w1"]);
        let mut actor = hero.actor("bash-default-1").tasks(2).start();
        wait_until("some have run", || runs(&redis).len() > number / 4 * round);
        worker.kill();
        actor.kill();
        supervisor.kill();
        supervisor = hero.supervisor().start();
    }
    let _actor = hero.actor("bash-default-1").start();
    all_finish(&redis, &ids);
    // Hero has never seen jobs from an old client to an old worker: that worker takes it along when
    // it is killed, one job a kill. All others end.
    let open = || old.iter().filter(|id| !has_status(&redis, id, "finished")).count();
    let mut ran = 0;
    while !redis.list(W1).is_empty() || open() > 4 {
        wait_until("nothing waits any more, or others go on", || {
            let before = std::mem::replace(&mut ran, runs(&redis).len());
            ran > before || redis.list(W1).is_empty() && open() <= 4
        });
    }
}

#[test]
fn tasks_of_rhailib_outlive_actors_and_supervisors() {
    let redis = Redis::start();
    let hero = dual(&redis, &[W1])
        .set("supervisor.rhailib_circles", r#"[{ circle = "main", type = "bash" }]"#)
        .set("actor.lease", "\"1s\"")
        .set("job.crash_limit", "100");
    let number = jobs(20);
    let words = ["main", &counting(&redis, "t{n}", "out-t{n}"), &number.to_string()];
    let client = Program::begin(&redis, "rhailib_client", &words);
    let mut supervisors = vec![hero.supervisor().start(), hero.supervisor().start()];
    for round in 1..4 {
        let mut actor = hero.actor("bash-default-1").tasks(1).start();
        wait_until("some have run", || runs(&redis).len() >= number / 4 * round);
        actor.kill();
        supervisors.remove(0).kill();
        supervisors.push(hero.supervisor().start());
    }
    let _actor = hero.actor("bash-default-1").start();
    let answers = lines(&client.ends());
    assert_eq!(answers.len(), number);
    for (n, line) in answers.iter().enumerate() {
        let output = line["reply"]["output"].as_str().unwrap_or_default().trim();
        assert_eq!(output, format!("out-t{n}"));
        let id = line["id"].as_str().expect("an id");
        assert_eq!(
            redis.field(&format!("rhai_task_details:{id}"), "status").as_deref(),
            Some("completed")
        );
    }
}
