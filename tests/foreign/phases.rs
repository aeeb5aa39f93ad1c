//! The matrix of the migration: every kind of client at once, with the actors of each phase.

use super::scenarios::push;
use super::{
    Program, W1, all_finish, bash, counting, dual, each_ran_once, finished_in_bash, jobs, lines,
    nothing_is_left, replies_are_right, runs, submit,
};
use crate::support::{Hero, Redis, wait_until};

/// The kinds of clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Client {
    /// The old dispatcher's, to the legacy queue.
    Old,
    /// Hero's own.
    Hero,
    /// A raw one, to the canonical queue.
    Canonical,
    /// Rhailib's, to the circle `main`.
    Rhailib,
}

/// The jobs that Hero's client and a raw one submit at once.
const WAVE: usize = 20;

const ALL: [Client; 4] = [Client::Old, Client::Hero, Client::Canonical, Client::Rhailib];

/// Hero in `dual`, serving the circle too.
fn dual_with_circle(redis: &Redis) -> Hero {
    serving_circle(dual(redis, &[W1]))
}

fn serving_circle(hero: Hero) -> Hero {
    hero.set("supervisor.rhailib_circles", r#"[{ circle = "main", type = "bash" }]"#)
}

/// Lets clients of these kinds submit jobs at once. Each job runs once, and each client gets what
/// it waits for; afterwards nothing is left anywhere. Returns how many jobs each submitted.
#[track_caller]
fn all_are_served(redis: &Redis, hero: &Hero, clients: &[Client]) -> usize {
    let number = jobs(10);
    let script = |name: &str| counting(redis, name, &format!("out-{name}"));
    let mut programs = Vec::new();
    let count = number.to_string();
    let begin = |name: &str, words: &[&str]| {
        Program::begin(redis, name, &[words, &[count.as_str()]].concat())
    };
    for client in clients {
        match client {
            Client::Old => {
                let words = ["run", "w1", &script("{id}")];
                programs.push((*client, begin("old_client", &words)));
            }
            Client::Rhailib => {
                let words = ["main", &script("t{n}")];
                programs.push((*client, begin("rhailib_client", &words)));
            }
            Client::Hero | Client::Canonical => {}
        }
    }
    // Some at a time: those programs wait for each job, and for a minute only.
    for first in (0..number).step_by(WAVE) {
        let wave = WAVE.min(number - first);
        let mut ids = Vec::new();
        if clients.contains(&Client::Hero) {
            ids.extend(submit(redis, hero, &format!("n{first}"), wave));
        }
        if clients.contains(&Client::Canonical) {
            for id in (0..wave).map(|n| format!("c{first}-{n}")) {
                push(redis, "hero:q:work:type:bash", &id, &script(&id));
                ids.push(id);
            }
        }
        all_finish(redis, &ids);
    }
    for (client, program) in programs {
        let printed = program.ends();
        match client {
            Client::Rhailib => answers_are_right(&printed, number),
            _ => replies_are_right(&printed, number),
        }
    }
    each_ran_once(redis, number * clients.len());
    nothing_is_left(redis);
    number
}

/// Checks that a client of rhailib got the output of its scripts, in the reply and in the details.
#[track_caller]
fn answers_are_right(printed: &str, tasks: usize) {
    let lines = lines(printed);
    assert_eq!(lines.len(), tasks);
    for (n, line) in lines.iter().enumerate() {
        for place in ["reply", "details"] {
            assert_eq!(line[place]["status"], "completed", "task {n}");
            let output = line[place]["output"].as_str().unwrap_or_default().trim();
            assert_eq!(output, format!("out-t{n}"));
        }
    }
}

/// So many tasks of rhailib ran as jobs of Hero's.
fn tasks_by_hero(redis: &Redis) -> usize {
    redis.keys("hero:job:rhai-").len()
}

fn tasks_by_rhailib(redis: &Redis) -> usize {
    redis.ask("HLEN test:by_rhailib_worker")
}

#[test]
fn phase_0_hero_runs_with_older_programs_and_touches_nothing_of_theirs() {
    let redis = Redis::start();
    let hero = bash(&redis);
    let (_supervisor, _actor) = (hero.supervisor().start(), hero.actor("bash-default-1").start());
    let _worker = Program::serve(&redis, "old_worker", &["w1"]);
    let _rhailib = Program::serve(&redis, "rhailib_worker", &["main", "bash"]);
    let number = all_are_served(&redis, &hero, &ALL);
    assert_eq!((tasks_by_hero(&redis), tasks_by_rhailib(&redis)), (0, number));
    let finished = finished_in_bash(&redis);
    assert_eq!(finished, 2 * number, "Hero knows of its own and the canonical ones alone");
    assert!(redis.keys("hero:meta:legacy:").is_empty());
}

#[test]
fn phase_1_old_workers_alone_serve_clients_of_hero_too() {
    let redis = Redis::start();
    let hero = dual_with_circle(&redis);
    let _supervisors = [hero.supervisor().start(), hero.supervisor().start()];
    let _workers = [(); 2].map(|()| Program::serve(&redis, "old_worker", &["w1"]));
    // Nobody reads canonical queues yet.
    let clients = [Client::Old, Client::Hero, Client::Rhailib];
    let number = all_are_served(&redis, &hero, &clients);
    assert_eq!(tasks_by_hero(&redis), number);
    let waited = hero.run(&["job", "wait", "n0-0"]).code(0);
    assert_eq!(waited.stdout.trim(), "out-n0-0");
}

#[test]
fn phase_2_old_workers_a_rhailib_worker_and_actors_share_the_work_of_all_clients() {
    let redis = Redis::start();
    let hero = dual_with_circle(&redis);
    let _supervisors = [hero.supervisor().start(), hero.supervisor().start()];
    let _worker = Program::serve(&redis, "old_worker", &["w1"]);
    let _rhailib = Program::serve(&redis, "rhailib_worker", &["main", "bash"]);
    let _actor = hero.actor("bash-default-1").tasks(2).start();
    let number = all_are_served(&redis, &hero, &ALL);
    assert_eq!(tasks_by_hero(&redis) + tasks_by_rhailib(&redis), number);
}

#[test]
fn phase_3_actors_alone_serve_all_clients() {
    let redis = Redis::start();
    let hero = dual_with_circle(&redis);
    let _supervisor = hero.supervisor().start();
    let _actors =
        ["bash-default-1", "bash-default-2"].map(|unit| hero.actor(unit).tasks(2).start());
    let number = all_are_served(&redis, &hero, &ALL);
    assert_eq!(tasks_by_hero(&redis), number);
    let by_hero: u64 = redis.ask("HGET hero:meta:queue:stats:type:bash started");
    assert_eq!(by_hero, 4 * number as u64);
    assert!(redis.keys("hero:reply:rhai-").is_empty(), "a reply that nobody waits for");
}

#[test]
fn phase_3_a_foreign_actor_of_the_canonical_names_takes_no_job_that_an_actor_has() {
    let redis = Redis::start();
    let hero = dual_with_circle(&redis);
    let _supervisor = hero.supervisor().start();
    let _actor = hero.actor("bash-default-1").tasks(2).start();
    let _foreign = Program::serve(&redis, "canonical_actor", &["bash", "default", "9"]);
    all_are_served(&redis, &hero, &ALL);
}

#[test]
fn phase_4_in_canonical_mode_copies_that_are_left_run_nothing_twice() {
    let redis = Redis::start();
    let before = dual_with_circle(&redis);
    let number = jobs(10);
    let left = submit(&redis, &before, "left", number);
    assert_eq!(redis.list(W1).len(), number);
    let hero = serving_circle(bash(&redis));
    let _supervisor = hero.supervisor().start();
    // An old worker that was forgotten.
    let worker = Program::serve(&redis, "old_worker", &["w1"]);
    wait_until("it runs what it finds", || !runs(&redis).is_empty());
    let _actor = hero.actor("bash-default-1").tasks(2).start();
    all_finish(&redis, &left);
    each_ran_once(&redis, number);
    nothing_is_left(&redis);
    drop(worker);
    redis.run("DEL test:runs");
    all_are_served(&redis, &hero, &[Client::Hero, Client::Canonical, Client::Rhailib]);
    assert!(redis.keys("hero:work_queue:").is_empty());
}
