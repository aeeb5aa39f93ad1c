//! Every pair of old and new on one script type, and what each leaves behind.

use super::{
    Program, W1, all_finish, bash, counting, dual, each_ran_once, jobs, lines, nothing_is_left,
    replies_are_right, runs, submit,
};
use crate::support::{Redis, wait_until};

#[test]
fn an_old_client_gets_its_results_from_a_hero_actor() {
    let redis = Redis::start();
    let hero = dual(&redis, &[W1]);
    let (_supervisor, _actor) = (hero.supervisor().start(), hero.actor("bash-default-1").start());
    let number = jobs(20);
    let script = counting(&redis, "{id}", "out-{id}");
    let printed = Program::run(&redis, "old_client", &["run", "w1", &script, &number.to_string()]);
    replies_are_right(&printed, number);
    each_ran_once(&redis, number);
    nothing_is_left(&redis);
    let id = lines(&printed)[0]["id"].as_str().expect("an id").to_owned();
    assert_eq!(Program::run(&redis, "old_client", &["status", &id]).trim(), "finished");
    assert!(Program::run(&redis, "old_client", &["list"]).lines().any(|line| line == id));
    let ttl_s: i64 = redis.ask(&format!("TTL hero:q:reply:{id}"));
    assert!((1..=60).contains(&ttl_s), "a reply that nobody reads stays for {ttl_s} s");
}

#[test]
fn jobs_of_an_old_client_run_in_the_order_of_their_arrival() {
    let redis = Redis::start();
    let hero = dual(&redis, &[W1]);
    let socket = redis.folder().join("redis.sock").display().to_string();
    let ids: Vec<String> = (0..20).map(|n| format!("old-{n}")).collect();
    for id in &ids {
        let script = format!("redis-cli -s {socket} RPUSH test:order {id} > /dev/null");
        super::scenarios::push(&redis, W1, id, &script);
    }
    let (_supervisor, _actor) =
        (hero.supervisor().start(), hero.actor("bash-default-1").tasks(1).start());
    wait_until("all have run", || redis.list("test:order").len() == ids.len());
    assert_eq!(redis.list("test:order"), ids);
}

#[test]
fn old_workers_alone_serve_a_hero_client_and_their_ends_are_noticed() {
    let redis = Redis::start();
    let hero = dual(&redis, &[W1]);
    let _supervisor = hero.supervisor().start();
    let _worker = Program::serve(&redis, "old_worker", &["w1"]);
    let number = jobs(20);
    let ids = submit(&redis, &hero, "n", number);
    all_finish(&redis, &ids);
    each_ran_once(&redis, number);
    nothing_is_left(&redis);
    let last = ids.last().expect("jobs");
    let waited = hero.run(&["job", "wait", last]).code(0);
    assert_eq!(waited.stdout.trim(), format!("out-{last}"));
}

#[test]
fn old_and_new_on_one_type_share_the_work_of_old_and_new_clients_and_nothing_runs_twice() {
    let redis = Redis::start();
    let hero = dual(&redis, &[W1]);
    let _supervisor = hero.supervisor().start();
    let _worker = Program::serve(&redis, "old_worker", &["w1"]);
    let _actor = hero.actor("bash-default-1").tasks(1).start();
    let number = jobs(20);
    let script = counting(&redis, "{id}", "out-{id}");
    let old = Program::begin(&redis, "old_client", &["run", "w1", &script, &number.to_string()]);
    let ids = submit(&redis, &hero, "n", number);
    all_finish(&redis, &ids);
    replies_are_right(&old.ends(), number);
    each_ran_once(&redis, 2 * number);
    assert_eq!(redis.list(W1), [] as [&str; 0]);
}

#[test]
fn a_dependent_follows_what_an_old_worker_has_ended() {
    let redis = Redis::start();
    let hero = dual(&redis, &[W1]).set("type.note.engine", "\"osis\"");
    let _supervisor = hero.supervisor().start();
    let _worker = Program::serve(&redis, "old_worker", &["w1"]);
    let _actor = hero.actor("note-default-1").start();
    hero.run(&["submit", "-t", "bash", "--id", "first", "-e", "echo 1"]).code(0);
    hero.run(&["exec", "-t", "note", "--after", "first", "-e", "2"]).code(0).stdout("2\n");
}

#[test]
fn a_job_of_an_old_client_waits_for_its_dependencies() {
    let redis = Redis::start();
    let hero = dual(&redis, &[W1]);
    let (_supervisor, _actor) = (hero.supervisor().start(), hero.actor("bash-default-1").start());
    redis.run("HSET hero:job:before status started");
    let wait = ["submit", "w1", "echo late", r#"dependencies=["before"]"#];
    let id = Program::run(&redis, "old_client", &wait).trim().to_owned();
    let key = format!("hero:job:{id}");
    wait_until("it waits", || {
        redis.field(&key, "status").as_deref() == Some("waiting_for_prerequisites")
    });
    redis.run("HSET hero:job:before status finished");
    wait_until("it has finished", || redis.field(&key, "status").as_deref() == Some("finished"));
    let missing = ["submit", "w1", "echo never", r#"prerequisites=["nobody"]"#];
    let id = Program::run(&redis, "old_client", &missing).trim().to_owned();
    wait_until("it fails", || {
        redis.field(&format!("hero:job:{id}"), "error").as_deref()
            == Some("prerequisite failed: nobody")
    });
    assert!(redis.keys("hero:job:nobody").is_empty(), "a stub of a job was made");
}

#[test]
fn a_job_whose_copy_an_old_worker_popped_is_left_to_it_and_comes_back_if_it_died() {
    let redis = Redis::start();
    let hero = dual(&redis, &[W1]);
    let id = submit(&redis, &hero, "n", 1).remove(0);
    // A worker that dies between its pop and its first word.
    assert_eq!(redis.ask::<Option<String>>(&format!("LPOP {W1}")).as_deref(), Some(id.as_str()));
    let actor = hero.actor("bash-default-1").start();
    wait_until("the actor leaves it alone", || actor.err().contains("an old worker has taken it"));
    assert!(runs(&redis).is_empty());
    let _supervisor = hero.supervisor().start();
    all_finish(&redis, &[id]);
    each_ran_once(&redis, 1);
}

#[test]
fn an_id_that_a_program_pushes_to_both_queues_stands_once_in_that_of_hero() {
    let redis = Redis::start();
    let hero = dual(&redis, &[W1]);
    let _supervisor = hero.supervisor().start();
    redis.set_job("n", "script true status dispatched");
    redis.run("LPUSH hero:q:work:type:bash n");
    let field = |name| redis.field("hero:job:n", name);
    wait_until("it was looked at", || field("adopt_after").is_some() || field("legacy").is_some());
    redis.run(&format!("LPUSH {W1} n"));
    wait_until("it is ready", || redis.score("hero:meta:queue:ready:type:bash", "n").is_some());
    assert_eq!(redis.list("hero:q:work:type:bash"), ["n"]);
}

/// A program that pushes to both queues pushes to the older one first, and to that of Hero once Hero has the job.
#[test]
fn id_that_a_program_pushes_to_its_older_queue_first_runs_once() {
    const OWN: &str = "hero:q:work:type:bash";
    let redis = Redis::start();
    let hero = dual(&redis, &[W1]);
    let _supervisor = hero.supervisor().start();
    let _actor = hero.actor("bash-default-1").tasks(1).start();
    let ids: Vec<String> = (0..jobs(12)).map(|n| format!("n{n}")).collect();
    for (place, id) in ids.iter().enumerate() {
        super::scenarios::push(&redis, W1, id, &counting(&redis, id, &format!("out-{id}")));
        let field = |name: &str| redis.field(&format!("hero:job:{id}"), name);
        wait_until("hero has it", || match place % 3 {
            0 => field("legacy").is_some(),
            1 => field("started_at").is_some(),
            _ => field("status").as_deref() == Some("finished"),
        });
        redis.run(&format!("LPUSH {OWN} {id}"));
    }
    all_finish(&redis, &ids);
    super::scenarios::push(&redis, OWN, "last", &counting(&redis, "last", "out-last"));
    all_finish(&redis, &["last".to_owned()]);
    wait_until("nothing waits", || redis.list(OWN).is_empty());
    each_ran_once(&redis, ids.len() + 1);
    nothing_is_left(&redis);
}

#[test]
fn a_popped_copy_comes_back_for_old_workers_too() {
    let redis = Redis::start();
    let hero = dual(&redis, &[W1]);
    let id = submit(&redis, &hero, "n", 1).remove(0);
    redis.run(&format!("LPOP {W1}"));
    let _supervisor = hero.supervisor().start();
    let _worker = Program::serve(&redis, "old_worker", &["w1"]);
    all_finish(&redis, &[id]);
    each_ran_once(&redis, 1);
}

#[test]
fn a_job_in_the_hands_of_a_dead_old_worker_is_recovered_by_its_timeout() {
    let redis = Redis::start();
    let hero = dual(&redis, &[W1]);
    let _supervisor = hero.supervisor().start();
    let mut worker = Program::serve(&redis, "old_worker", &["w1"]);
    let marker = redis.folder().join("once");
    let script = format!("if mkdir {}; then sleep 600; fi; echo again", marker.display());
    hero.run(&["submit", "-t", "bash", "--id", "n", "--timeout", "4s", "-e", &script]).code(0);
    wait_until("the old worker runs it", || marker.exists());
    worker.kill();
    let _actor = hero.actor("bash-default-1").start();
    wait_until("it has finished elsewhere", || {
        redis.field("hero:job:n", "output").is_some_and(|output| output.trim() == "again")
    });
    assert_eq!(redis.field("hero:job:n", "crashes").as_deref(), Some("1"));
}

#[test]
fn back_in_canonical_mode_copies_that_are_left_are_taken_out_and_old_names_stay_untouched() {
    let redis = Redis::start();
    let before = dual(&redis, &[W1]);
    let ids = submit(&redis, &before, "n", 3);
    assert_eq!(redis.list(W1).len(), 3);
    let hero = bash(&redis);
    let (_supervisor, _actor) = (hero.supervisor().start(), hero.actor("bash-default-1").start());
    all_finish(&redis, &ids);
    assert_eq!(redis.list(W1), [] as [&str; 0], "an old worker could still run these");
    hero.run(&["exec", "-t", "bash", "-e", "echo 1"]).code(0).stdout("1\n");
    assert!(redis.keys("hero:reply:").is_empty() && redis.keys("hero:work_queue:").is_empty());
}

#[test]
fn a_legacy_queue_of_another_type_and_jobs_without_sense_stop_nothing() {
    let redis = Redis::start();
    let broken = "hero:work_queue:broken";
    let hero = dual(&redis, &[broken, W1]);
    redis.run(&format!("SET {broken} x"));
    let (_supervisor, _actor) = (hero.supervisor().start(), hero.actor("bash-default-1").start());
    redis.run("HSET hero:job:odd status dispatched timeout soon script 1");
    redis.ask_with::<i64, _>(&format!("RPUSH {W1}"), &["odd", "a:b", "nobody", ""]);
    let id = Program::run(&redis, "old_client", &["submit", "w1", "echo 1", "status=Dispatched"]);
    wait_until("it has finished", || {
        redis.field(&format!("hero:job:{}", id.trim()), "status").as_deref() == Some("finished")
    });
    let ids = submit(&redis, &hero, "n", 2);
    all_finish(&redis, &ids);
}

#[test]
fn migrate_status_says_what_is_left_and_whether_the_next_phase_is_safe() {
    let redis = Redis::start();
    let hero = dual(&redis, &[W1]);
    let status = |more: &[&str]| -> serde_json::Value {
        let words = [&["--json", "migrate", "status"], more].concat();
        serde_json::from_str(&hero.run(&words).code(0).stdout).expect("JSON")
    };
    let unwatched = status(&[]);
    assert_eq!(unwatched["safe"], false);
    assert!(
        unwatched["reasons"][0].as_str().is_some_and(|reason| reason.contains("no supervisor"))
    );
    let id = Program::run(&redis, "old_client", &["submit", "w1", "echo 1"]).trim().to_owned();
    let (_supervisor, _actor) = (hero.supervisor().start(), hero.actor("bash-default-1").start());
    wait_until("it has finished", || {
        redis.field(&format!("hero:job:{id}"), "status").as_deref() == Some("finished")
    });
    wait_until("it is watched", || status(&[])["queues"][0]["watched_s"].is_number());
    let busy = status(&[]);
    assert_eq!(busy["queues"][0]["depth"], 0);
    assert!(busy["queues"][0]["last_push_s_ago"].is_number() && busy["safe"] == false);
    wait_until("a moment of quiet", || status(&["--quiet", "100ms"])["safe"] == true);
    assert_eq!(status(&["--quiet", "100ms"])["next_phase"], "supervisor.migration = \"canonical\"");
    let text = hero.run(&["migrate", "status"]).code(0).stdout;
    assert!(text.contains(W1) && text.contains("safe: not yet"), "{text}");
    let none = bash(&redis).run(&["migrate", "status"]).code(0);
    assert_eq!(none.stdout, "next phase: none: no legacy queue is configured\n");
}

#[test]
fn a_paused_queue_holds_back_what_stands_in_a_legacy_queue_too() {
    let redis = Redis::start();
    let hero = dual(&redis, &[W1]);
    hero.run(&["queue", "pause", "type:bash"]).code(0);
    let ids = submit(&redis, &hero, "n", 3);
    let script = counting(&redis, "{id}", "out-{id}");
    let old = Program::begin(&redis, "old_client", &["run", "w1", &script, "1"]);
    wait_until("all stand there", || redis.list(W1).len() == 4);
    let (_supervisor, _actor) = (hero.supervisor().start(), hero.actor("bash-default-1").start());
    wait_until("they wait in the queue that is paused", || {
        redis.list(W1).is_empty() && redis.list("hero:q:work:type:bash").len() == 4
    });
    hero.run(&["exec", "-t", "bash", "-g", "default", "-e", "echo 1"]).code(0).stdout("1\n");
    assert!(runs(&redis).is_empty(), "a job of a paused queue ran");
    hero.run(&["queue", "resume", "type:bash"]).code(0);
    all_finish(&redis, &ids);
    replies_are_right(&old.ends(), 1);
    each_ran_once(&redis, 4);
    nothing_is_left(&redis);
}

#[test]
fn what_old_programs_do_among_themselves_is_seen() {
    let redis = Redis::start();
    let hero = dual(&redis, &[W1]);
    let _supervisor = hero.supervisor().start();
    let _worker = Program::serve(&redis, "old_worker", &["w1"]);
    let seen = |what: &str| redis.field(&format!("hero:meta:legacy:seen:{W1}"), what);
    let mut clients = 0;
    // A push that meets a worker which has waited for longer than the supervisor goes unseen.
    wait_until("pushes and pops are seen", || {
        Program::run(&redis, "old_client", &["run", "w1", "echo 1", "3"]);
        clients += 1;
        seen("pushed_at").is_some() && seen("popped_at").is_some()
    });
    assert!(redis.keys("hero:meta:job:index:").is_empty(), "{clients} clients: Hero took a job");
    assert!(redis.list(W1).is_empty());
}

#[test]
fn queues_and_circles_of_any_name_are_found_by_pattern() {
    let redis = Redis::start();
    let hero = bash(&redis)
        .set("supervisor.migration", "\"dual\"")
        .set("supervisor.legacy_queues", r#"[{ legacy = "hero:work_queue:*", type = "bash" }]"#)
        .set("supervisor.rhailib_circles", r#"[{ circle = "*", type = "bash" }]"#);
    let (_supervisor, _actor) = (hero.supervisor().start(), hero.actor("bash-default-1").start());
    let key = "02".repeat(33);
    let tasks = Program::begin(&redis, "rhailib_client", &[&key, "echo {n}", "3"]);
    for name in ["w@host:1", key.as_str()] {
        let queue = format!("hero:work_queue:{name}");
        let printed = Program::run(&redis, "old_client", &["run", &queue, "echo out-{id}", "3"]);
        replies_are_right(&printed, 3);
    }
    assert!(lines(&tasks.ends()).iter().all(|line| line["reply"]["status"] == "completed"));

    let queue = "hero:work_queue:w@host:1";
    let id = Program::run(&redis, "old_client", &["submit", queue, "exec sleep 600"]);
    let (id, key) = (id.trim(), format!("hero:job:{}", id.trim()));
    wait_until("it runs", || redis.field(&key, "status").as_deref() == Some("started"));
    Program::run(&redis, "old_client", &["stop", "w@host:1", id]);
    wait_until("it is stopped", || {
        redis.field(&key, "error").as_deref() == Some("stopped_by_request")
    });
    // From now on this queue gets copies of Hero's own jobs as well.
    let _worker = Program::serve(&redis, "old_worker", &[queue]);
    let ids = submit(&redis, &hero, "n", 10);
    all_finish(&redis, &ids);
    each_ran_once(&redis, 10);
}

#[test]
fn a_key_alone_is_a_legacy_queue_of_type_osis() {
    let redis = Redis::start();
    let hero = bash(&redis)
        .set("supervisor.migration", "\"dual\"")
        .set("supervisor.legacy_queues", r#"["hero:work_queue:*"]"#);
    let (_supervisor, _actor) = (hero.supervisor().start(), hero.actor("osis-default-1").start());
    let words = ["run", "any", "40 + 2", "1"];
    let printed = Program::run(&redis, "old_client", &words);
    assert_eq!(lines(&printed)[0]["reply"], "42");
}

#[test]
fn migrate_status_names_every_list_of_older_programs_that_has_entries() {
    let redis = Redis::start();
    let hero = bash(&redis);
    let lists = ["hero:job:actor_queue:v", "hero:work_queue:w@h:1", "rhai_tasks:main"];
    let _supervisor = hero.supervisor().start();
    for list in lists {
        redis.run(&format!("LPUSH {list} a b"));
    }
    redis.run("SET hero:work_queue:no_list x");
    let report = || hero.run(&["migrate", "status"]).code(0).stdout;
    wait_until("all are named", || {
        let report = report();
        lists.iter().all(|list| report.contains(list))
    });
    assert!(!report().contains("no_list"));
    let report = hero.run(&["--json", "migrate", "status"]).code(0).stdout;
    let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
    assert_eq!(report["not_configured"][0]["depth"], 2);
}
