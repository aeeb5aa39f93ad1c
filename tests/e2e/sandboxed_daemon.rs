//! The sandboxed process of an `osis` actor: it serves, reconnects and reloads, and stays restricted.

use std::fs;
use std::net::{Ipv4Addr, TcpListener, ToSocketAddrs};
use std::path::PathBuf;

use hero::sandbox::Support;
use nix::sys::signal::Signal;

use super::until;
use crate::support::{Hero, Process, Redis, needs, replace_file, wait_until};

/// Returns false, with a message, if this kernel has no Landlock.
#[expect(clippy::print_stdout, reason = "a test that shows nothing here says so")]
fn has_landlock() -> bool {
    let can = Support::of_this_kernel().landlock > 0;
    if !can {
        println!("skip: the kernel has no Landlock");
    }
    can
}

/// The configuration that a unit was started with.
pub(super) fn config_of(actor: &Process) -> PathBuf {
    let environ = fs::read_to_string(format!("/proc/{}/environ", actor.pid())).expect("it runs");
    let found = environ.split('\0').find_map(|pair| pair.strip_prefix("HERO_CONFIG="));
    found.expect("it was told its configuration").into()
}

/// Returns true if the process can gain no privileges, the first step of the sandbox.
fn is_sandboxed(actor: &Process) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/status", actor.pid())).expect("it runs");
    status.lines().any(|line| line == "NoNewPrivs:\t1")
}

/// Makes it reload its configuration, and returns what it logs.
#[track_caller]
pub(super) fn reload(actor: &Process) -> String {
    let before = actor.err().len();
    actor.signal(Signal::SIGHUP);
    let said = || actor.err()[before..].to_owned();
    wait_until("it has reloaded", || {
        ["read the configuration again", "changed nothing"].iter().any(|end| said().contains(end))
    });
    said()
}

fn serves(hero: &Hero) {
    hero.run(&["exec", "-t", "osis", "-e", "6 * 7"]).code(0).stdout("42\n");
}

#[test]
fn sandboxed_osis_actor_serves_reconnects_and_reloads() {
    if !has_landlock() {
        return;
    }
    let mut redis = Redis::that_keeps();
    let hero = Hero::on(&redis);
    fs::create_dir(redis.folder().join("logs")).expect("a folder");
    let actor = hero.actor("osis-default-1").start();
    assert!(is_sandboxed(&actor));
    assert!(actor.err().contains("this process is sandboxed: it reads "), "{}", actor.err());
    serves(&hero);
    // The log of a job is written to its file too.
    redis.set_job("logged", "log_path below/job.log");
    redis.push_job("osis", "logged", "print(\"said\")");
    until(&redis, "logged", "finished");
    let log = fs::read_to_string(redis.folder().join("logs/below/job.log"));
    assert_eq!(log.expect("written"), "said\n");
    redis.kill();
    wait_until("it has lost redis", || actor.err().contains("WARN"));
    redis.start_again();
    wait_until("it serves again", || {
        hero.run(&["exec", "-t", "osis", "--wait", "5s", "-e", "1"]).code == 0
    });
    let config = config_of(&actor);
    let text = fs::read_to_string(&config).expect("readable");
    replace_file(&config, &format!("{text}log.level = \"debug\"\n"));
    assert!(reload(&actor).contains("read the configuration again"));
    // New drop-ins are read as well.
    let mut folder = config.clone().into_os_string();
    folder.push(".d");
    fs::create_dir(&folder).expect("a folder");
    let drop_in = PathBuf::from(folder).join("wrong.toml");
    fs::write(&drop_in, "wrong = 1\n").expect("written");
    assert!(reload(&actor).contains("wrong.toml:1"));
    fs::write(&drop_in, "job.log_dir = \"/elsewhere\"\n").expect("written");
    reload(&actor);
    wait_until("it says so after the line of the reload", || {
        actor.err().contains("need a restart: job.log_dir")
    });
    fs::write(&drop_in, "type.osis.engine = \"sal\"\n").expect("written");
    assert!(reload(&actor).contains("the unit osis-default-1 is sandboxed"));
    serves(&hero);
}

#[test]
fn symlink_gives_no_access_to_other_files() {
    if !has_landlock() {
        return;
    }
    let redis = Redis::start();
    let elsewhere = tempfile::tempdir().expect("a folder");
    let confined = Hero::on(&redis);
    let open = Hero::on(&redis).set("actor.sandbox", "false");
    for (hero, instance, is_confined) in [(confined, 1, true), (open, 2, false)] {
        let actor = hero.actor(&format!("osis-default-{instance}")).start();
        assert_eq!(is_sandboxed(&actor), is_confined);
        let config = config_of(&actor);
        let text = fs::read_to_string(&config).expect("readable");
        let secret = elsewhere.path().join(format!("{instance}.toml"));
        fs::write(&secret, text).expect("written");
        let link = config.with_extension("link");
        std::os::unix::fs::symlink(&secret, &link).expect("linked");
        fs::rename(&link, &config).expect("replaced");
        let said = reload(&actor);
        let refused = said.contains("changed nothing") && said.contains("ermission denied");
        assert_eq!(refused, is_confined, "{said}");
        serves(&hero);
    }
}

#[test]
fn sandboxed_actor_reaches_redis_by_tcp_and_reports_the_port() {
    if !has_landlock() {
        return;
    }
    let redis = Redis::start();
    let mut port = 0;
    // A port that was free may be taken by the time Redis wants it.
    wait_until("redis listens", || {
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|free| free.local_addr());
        port = free.expect("a port").port();
        let mut listen = redis::cmd("CONFIG");
        listen.arg(&["SET", "port"]).arg(port).query::<()>(&mut redis.link()).is_ok()
    });
    // A minimal machine has no file of names.
    let has_names = needs("localhost", || ("localhost", port).to_socket_addrs().is_ok());
    for host in ["127.0.0.1"].into_iter().chain(has_names.then_some("localhost")) {
        let url = format!("\"redis://{host}:{port}/0\"");
        let hero = Hero::on(&redis).set("redis.url", &url);
        let actor = hero.actor("osis-default-1").start();
        assert!(is_sandboxed(&actor));
        serves(&hero);
        let said = hero.run(&["check", "osis-default-1"]).code(0).stdout;
        let own = said.lines().find(|line| line.contains("its process is sandboxed: it reads"));
        assert!(own.is_some_and(|own| own.contains(&port.to_string())), "{said}");
        // A new connection is allowed too.
        redis.run("CLIENT KILL TYPE normal");
        serves(&hero);
    }
}
