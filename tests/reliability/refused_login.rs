//! A login that Redis begins to refuse: it is told, read again, and ends a unit only after a while. A password is
//! rotated under load, and an address changed, without a restart.

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::support::{Hero, Process, Redis, replace_file, wait_until};

/// A Redis with the user `units`, and the file with its password.
fn redis_with_login() -> (Redis, PathBuf) {
    let redis = Redis::start();
    redis.run("ACL SETUSER units on >one ~* &* +@all");
    let file = redis.folder().join("password");
    fs::write(&file, "one\n").expect("written");
    (redis, file)
}

fn hero_of(redis: &Redis, file: &std::path::Path) -> Hero {
    Hero::on(redis)
        .set("actor.lease", "\"15s\"")
        .set("redis.username", "\"units\"")
        .set("redis.password_file", &format!("{:?}", file.display().to_string()))
}

fn reload(process: &Process) {
    let before = process.err().matches("read the configuration again").count();
    process.signal(Signal::SIGHUP);
    wait_until("it has reloaded", || {
        process.err().matches("read the configuration again").count() > before
    });
}

fn push_jobs(redis: &Redis, from: usize, number: usize) {
    for job in from..from + number {
        redis.push_job("osis", &format!("job-{job}"), "sleep(0.01); 1");
    }
}

#[test]
fn password_is_rotated_under_load_without_a_restart_and_without_a_lost_job() {
    let (redis, file) = redis_with_login();
    let hero = hero_of(&redis, &file);
    let (mut supervisor, mut osis) =
        (hero.supervisor().start(), hero.actor("osis-default-1").start());
    push_jobs(&redis, 0, 300);
    wait_until("jobs end", || redis.count("osis", "finished") > 20);
    // Both passwords are valid until every unit has the new one.
    redis.run("ACL SETUSER units >two");
    replace_file(&file, "two\n");
    reload(&supervisor);
    reload(&osis);
    redis.run("ACL SETUSER units <one");
    redis.run("CLIENT KILL USER units");
    push_jobs(&redis, 300, 100);
    wait_until("all have ended", || redis.count("osis", "finished") == 400);
    assert_eq!(redis.count("osis", "started"), 400, "no job ran twice");
    for process in [&mut supervisor, &mut osis] {
        assert!(!process.has_ended() && !process.err().contains("refuses"), "{}", process.err());
    }
}

#[test]
fn refused_login_is_reported_and_read_again_without_a_reload_and_no_end_is_lost() {
    let (redis, file) = redis_with_login();
    let notify = redis.folder().join("notify");
    let socket = UnixDatagram::bind(&notify).expect("a socket");
    socket.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
    let status = || {
        let mut buffer = [0; 4096];
        let length = socket.recv(&mut buffer).expect("the actor reports its status");
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    };
    let hero = hero_of(&redis, &file);
    let supervisor = hero.supervisor().start();
    let osis = hero.actor("osis-default-1").env("NOTIFY_SOCKET", &notify).start();
    let script = "for n in 0..20 { print(n); sleep(0.1); } 42";
    redis.push_job("osis", "long", script);
    wait_until("it runs", || redis.count("osis", "started") == 1);
    // Redis changes first, and its connections are lost.
    redis.run("ACL SETUSER units resetpass >two");
    redis.run("CLIENT KILL USER units");
    let told = |process: &Process| process.err().matches("refuses the login: WRONGPASS").count();
    wait_until("both say so", || told(&supervisor) > 0 && told(&osis) > 0);
    while !status().contains("redis refuses the login") {}
    replace_file(&file, "two\n");
    wait_until("both are back", || {
        [&supervisor, &osis].iter().all(|process| process.err().contains("redis is back after"))
    });
    while !status().contains("redis ok") {}
    // Nobody reads it any more, and a full one would block the actor.
    drop(socket);
    wait_until("the job ends", || redis.count("osis", "finished") == 1);
    assert_eq!(redis.count("osis", "started"), 1, "it ran once: {}", osis.err());
    let lines = hero.run(&["job", "logs", "long"]).code(0).stdout;
    assert_eq!(lines.lines().count(), 20, "{lines}");
    assert_eq!((told(&supervisor), told(&osis)), (1, 1), "{}", supervisor.err());
}

#[test]
fn unit_whose_login_is_refused_for_long_ends_with_77() {
    let (redis, file) = redis_with_login();
    let hero = hero_of(&redis, &file).set("redis.refused_for", "\"1s\"");
    let (supervisor, osis) = (hero.supervisor().start(), hero.actor("osis-default-1").start());
    redis.run("ACL SETUSER units resetpass >two");
    redis.run("CLIENT KILL USER units");
    for process in [supervisor, osis] {
        process.ends().code(77).says("has refused the login for").says("redis.password_file");
    }
}

#[test]
fn reload_leads_to_another_address_of_redis() {
    let (redis, file) = redis_with_login();
    let hero = hero_of(&redis, &file);
    let config = hero.config_file();
    let osis = hero.actor("osis-default-1").env("HERO_CONFIG", &config).start();
    let supervisor = hero.supervisor().env("HERO_CONFIG", &config).start();
    let other = redis.folder().join("other.sock");
    std::os::unix::fs::symlink(redis.folder().join("redis.sock"), &other).expect("a link");
    let url = format!("redis+unix://{}", other.display());
    let text = fs::read_to_string(&config).expect("readable").replace(&redis.url(), &url);
    assert!(text.contains(&url), "{text}");
    replace_file(&config, &text);
    reload(&osis);
    reload(&supervisor);
    redis.run("CLIENT KILL USER units");
    fs::remove_file(redis.folder().join("redis.sock")).expect("removed");
    fs::rename(&other, redis.folder().join("gone")).expect("renamed");
    wait_until("it is away at the new address", || {
        [&osis, &supervisor].iter().all(|unit| unit.err().contains("other.sock cannot be reached"))
    });
    for unit in [&osis, &supervisor] {
        assert!(!unit.err().contains("need a restart"), "{}", unit.err());
    }
}
