//! Units as systemd has them, which a program in its place tells here: those that hang, and those that are started again.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::{Frozen, Hero, Redis, Served, needs, wait_until};

/// Answers as systemctl does, from files beside it.
const SYSTEMCTL: &str = "#!/bin/sh\nhere=$(dirname \"$0\")\ncase \"$*\" in\n\
    '--user list-units'*) cat \"$here/list-of-user\";;\n\
    list-units*) cat \"$here/list\";;\n\
    *NRestarts*) cat \"$here/restarts\";;\n\
    *Id,MainPID*) cat \"$here/properties\";;\nesac\n";

/// Runs a program where `/run/systemd/system` exists.
const ENTER: &str = "mount -t tmpfs none /run && mkdir -p /run/systemd/system && exec \"$@\"";

/// A machine with systemd, as the program sees it.
struct Machine<'h> {
    hero: &'h Hero,
    folder: PathBuf,
}

impl<'h> Machine<'h> {
    fn new(hero: &'h Hero, folder: &Path) -> Self {
        let machine = Self { hero, folder: folder.join("systemd") };
        fs::create_dir(&machine.folder).expect("a folder");
        machine.says("systemctl", SYSTEMCTL);
        let runs = fs::Permissions::from_mode(0o755);
        fs::set_permissions(machine.folder.join("systemctl"), runs).expect("permissions");
        machine
    }

    fn says(&self, file: &str, text: &str) {
        fs::write(self.folder.join(file), text).expect("writing a file");
    }

    /// Runs a command where `/run/systemd/system` exists.
    fn run(&self, args: &[&str]) -> String {
        let mut command = self.hero.command_of_user("unshare");
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", self.folder.display()));
        command.args([namespace(), "sh", "-c", ENTER, "sh", env!("CARGO_BIN_EXE_hero")]).args(args);
        let done = command.output().expect("unshare runs");
        String::from_utf8_lossy(&done.stdout).into_owned()
    }

    /// Runs `hero doctor` as a user without root, who has a configuration of its own.
    fn doctor_of_user(&self, home: &Path) -> String {
        let mut command = self.hero.command_of_user("unshare");
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", self.folder.display()));
        command.env_remove("HERO_CONFIG").env("HOME", home).args(["-m", "sh", "-c", ENTER, "sh"]);
        command.args(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]);
        command.args([env!("CARGO_BIN_EXE_hero"), "doctor", "--problems"]);
        let done = command.output().expect("unshare runs");
        String::from_utf8_lossy(&done.stdout).into_owned()
    }

    fn doctor(&self) -> String {
        self.run(&["doctor", "--problems"])
    }
}

fn namespace() -> &'static str {
    if nix::unistd::geteuid().is_root() { "-m" } else { "-rm" }
}

#[expect(clippy::disallowed_methods, reason = "it only asks what the machine permits")]
fn can_mount() -> bool {
    needs("unshare", || {
        let mut command = std::process::Command::new("unshare");
        command.args([namespace(), "mount", "-t", "tmpfs", "none", "/run"]);
        command.output().is_ok_and(|done| done.status.success())
    })
}

const UNIT: &str = "hero@bash-default-1";

#[test]
fn unit_that_hangs_is_reported_as_that_and_its_start_is_not_advised() {
    if !can_mount() {
        return;
    }
    let redis = Redis::start();
    let site = Served::on(&redis);
    let hero = &site.hero;
    let machine = Machine::new(hero, redis.folder());
    let actor = hero.actor("bash-default-1").start();
    let pid = actor.pid();
    machine.says("list", &format!("{UNIT}.service loaded active running Hero bash\n"));
    let properties = format!("Id={UNIT}.service\nMainPID={pid}\nActiveEnterTimestampMonotonic=1\n");
    machine.says("properties", &properties);
    assert!(!machine.doctor().contains("hangs"), "{}", machine.doctor());
    let frozen = Frozen::new(pid);
    hero.run(&["submit", "-t", "bash", "-e", "1"]).code(0);
    wait_until("the actor is not live any more", || {
        let actors: Value =
            serde_json::from_str(&hero.run(&["actor", "list", "--json"]).stdout).expect("JSON");
        actors["actors"].as_array().is_some_and(Vec::is_empty)
    });
    let told = machine.doctor();
    assert!(told.contains(&format!("{UNIT} has run with pid {pid} for ")), "{told}");
    assert!(told.contains("it hangs"), "{told}");
    assert!(told.contains(&format!("-> its unit hangs: systemctl restart {UNIT}\n")), "{told}");
    assert!(!told.contains("start one"), "{told}");
    drop(frozen);
    wait_until("it is well again", || !machine.doctor().contains("hangs"));
}

#[test]
fn user_without_root_hears_of_the_units_of_the_user() {
    if !can_mount() || !nix::unistd::geteuid().is_root() {
        return;
    }
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let machine = Machine::new(&hero, redis.folder());
    let home = redis.folder().join("home");
    fs::create_dir_all(home.join(".config/hero")).expect("a folder");
    let text = format!("redis.url = {:?}\n", redis.url());
    fs::write(home.join(".config/hero/hero.toml"), text).expect("written");
    fs::set_permissions(redis.folder(), fs::Permissions::from_mode(0o755)).expect("a mode");
    machine.says("list-of-user", &format!("{UNIT}.service loaded failed failed Hero bash\n"));
    let told = machine.doctor_of_user(&home);
    assert!(told.contains(&format!("{UNIT} has failed")), "{told}");
    assert!(told.contains(&format!("journalctl --user -u {UNIT} -n 50")), "{told}");
    assert!(told.contains("systemctl --user reset-failed"), "{told}");
}

#[test]
fn unit_that_was_killed_once_is_not_said_to_fail_again_and_again() {
    if !can_mount() {
        return;
    }
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let machine = Machine::new(&hero, redis.folder());
    hero.actor("bash-default-1").start().kill();
    let list = format!("{UNIT}.service loaded activating auto-restart Hero bash\n");
    machine.says("list", &list);
    for (restarts, text) in [
        ("0", "has ended, and is started again"),
        ("1", "has ended, and is started again"),
        ("7", "has failed 7 times, and is started again and again"),
    ] {
        machine.says("restarts", restarts);
        let text = format!("{UNIT} {text}\n");
        let told = machine.doctor();
        assert!(told.contains(&text), "{restarts} restarts: {told}");
        let status = machine.run(&["status"]);
        let one_line = status.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(one_line.contains(text.trim()), "{restarts} restarts: {status}");
    }
}
