//! Children that actors of commands make ahead: they are there where jobs come one after the other,
//! and go when none comes, and with their actor.

use std::fs;
use std::path::Path;

use rustix::process::Pid;

use crate::support::{Hero, Process, Redis, wait_until};

/// Puts jobs that say where they are on the queue of `bash`.
fn push(redis: &Redis, name: &str, number: usize) -> Vec<String> {
    let ids: Vec<String> = (0..number).map(|n| format!("{name}-{n}")).collect();
    for id in &ids {
        redis.push_job("bash", id, "echo $HOME");
    }
    ids
}

/// The children of an actor that have not begun their programs, and sleep until they may.
fn waiting(actor: &Process) -> Vec<Pid> {
    let program = |pid: &Pid| fs::read_link(format!("/proc/{pid}/exe")).ok();
    let own = fs::read_link(format!("/proc/{}/exe", actor.pid())).ok();
    let sleeps = |pid: &Pid| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(')').next().is_some_and(|fields| fields.starts_with(" S "))
    };
    let waits = |pid: &Pid| own.is_some() && program(pid) == own && sleeps(pid);
    actor.children().into_iter().filter(waits).collect()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn two_hundred_jobs_of_a_command_leave_nothing_behind() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let folder = tempfile::tempdir().expect("a folder");
    let unit = hero.actor("bash-default-1").tasks(4).env("RUNTIME_DIRECTORY", folder.path());
    let actor = unit.start();
    let descriptors = || names(Path::new(&format!("/proc/{}/fd", actor.pid()))).len();
    hero.run(&["exec", "-t", "bash", "-e", "echo 1"]).code(0).stdout("1\n");
    wait_until("the first job is over", || actor.children().is_empty());
    let before = descriptors();
    for id in push(&redis, "job", 200) {
        wait_until("the job has finished", || {
            redis.field(&format!("hero:job:{id}"), "status").as_deref() == Some("finished")
        });
        let home = redis.field(&format!("hero:job:{id}"), "output").expect("an output");
        assert!(home.contains("job-") && !Path::new(&home).exists(), "{home} is left");
    }
    wait_until("no process, no folder and no descriptor is left", || {
        actor.children().is_empty() && names(folder.path()).is_empty() && descriptors() <= before
    });
}

#[test]
fn an_actor_that_is_killed_leaves_no_child_that_waits() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let mut actor = hero.actor("bash-default-1").tasks(1).start();
    let (mut left, mut round) = (Vec::new(), 0);
    wait_until("a child waits for its program", || {
        if redis.ask::<usize>("LLEN hero:q:work:type:bash") < 10 {
            push(&redis, &format!("round-{round}"), 50);
            round += 1;
        }
        left = waiting(&actor);
        !left.is_empty()
    });
    actor.kill();
    wait_until("it has ended with its actor", || {
        left.iter().all(|pid| !Path::new(&format!("/proc/{pid}")).exists())
    });
}
