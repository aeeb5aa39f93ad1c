//! The programs of the background documents, one by one, with the defaults of `dual`.

use super::{Program, W1, dual, has_status, lines, replies_are_right};
use crate::support::{Hero, Redis, wait_until};

const OF_TYPE: &str = "hero:job:actor_queue:bash";

fn dual_with_circle(redis: &Redis) -> Hero {
    dual(redis, &[W1, OF_TYPE])
        .set("supervisor.rhailib_circles", r#"[{ circle = "main", type = "bash" }]"#)
}

#[test]
fn the_clients_of_the_documents_get_their_results_from_hero() {
    let redis = Redis::start();
    let hero = dual_with_circle(&redis);
    let (_supervisor, _actor) = (hero.supervisor().start(), hero.actor("bash-default-1").start());
    let printed = Program::run(&redis, "old_client", &["run", "w1", "echo out-{id}", "3"]);
    replies_are_right(&printed, 3);
    for _ in 0..3 {
        let words = ["run", "bash", "echo by the supervisor", OF_TYPE];
        assert_eq!(Program::run(&redis, "naming_supervisor", &words).trim(), "by the supervisor");
    }
    let words = ["run", "bash", "exit 3", OF_TYPE];
    assert_eq!(Program::run(&redis, "naming_supervisor", &words).trim(), "exit code 3");
    let printed = Program::run(&redis, "rhailib_client", &["main", "echo {n}", "3"]);
    assert!(lines(&printed).iter().all(|line| line["reply"]["status"] == "completed"), "{printed}");
}

#[test]
fn the_supervisor_of_the_document_stops_a_job_by_the_type_of_its_actor() {
    let redis = Redis::start();
    let hero = dual_with_circle(&redis);
    let (_supervisor, _actor) = (hero.supervisor().start(), hero.actor("bash-default-1").start());
    let words = ["push", "bash", "exec sleep 600", "n", "1", OF_TYPE];
    Program::run(&redis, "naming_supervisor", &words);
    wait_until("it runs", || has_status(&redis, "n-0", "started"));
    Program::run(&redis, "naming_supervisor", &["stop", "bash", "n-0"]);
    wait_until("it has ended", || has_status(&redis, "n-0", "error"));
    let error = redis.field("hero:job:n-0", "error");
    assert_eq!(error.as_deref(), Some("stopped_by_request"));
}

#[test]
fn the_workers_of_the_documents_serve_clients_of_hero() {
    let redis = Redis::start();
    let hero = dual_with_circle(&redis);
    let _supervisor = hero.supervisor().start();
    // Its loop replies only to a queue that exists, and so to nobody.
    let worker = Program::serve(&redis, "old_worker", &["w1", "if-exists"]);
    let of_type = Program::serve(&redis, "old_worker", &[OF_TYPE, "if-exists"]);
    for _ in 0..5 {
        hero.run(&["exec", "-t", "bash", "-e", "echo 1"]).code(0).stdout("1\n");
    }
    drop((worker, of_type));
    let canonical = super::bash(&redis);
    let _actor = Program::serve(&redis, "canonical_actor", &["bash", "default", "1"]);
    canonical.run(&["exec", "-t", "bash", "-e", "echo 2"]).code(0).stdout("2\n");
}

#[test]
fn the_worker_of_rhailib_serves_the_client_of_rhailib_while_hero_runs() {
    let redis = Redis::start();
    let hero = dual_with_circle(&redis);
    let (_supervisor, _actor) = (hero.supervisor().start(), hero.actor("bash-default-1").start());
    let _worker = Program::serve(&redis, "rhailib_worker", &["main", "bash"]);
    let printed = Program::run(&redis, "rhailib_client", &["main", "echo {n}", "10", "reply_to"]);
    assert!(lines(&printed).iter().all(|line| line["reply"]["status"] == "completed"), "{printed}");
}
