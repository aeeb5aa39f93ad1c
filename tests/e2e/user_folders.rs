//! The configuration of a user without root: its place, and its defaults.

use std::fs;
use std::os::unix::fs::chown;

use nix::unistd::Uid;

use crate::support::{Hero, Redis, needs};

const USER: u32 = 4242;

#[test]
fn user_has_a_configuration_and_folders_of_its_own() {
    if !needs("root", || Uid::effective().is_root()) {
        return;
    }
    let redis = Redis::absent(false);
    let hero = Hero::on(&redis).of_user(USER);
    let home = redis.folder().join("home");
    let runtime = redis.folder().join("runtime");
    for folder in [home.join(".config/hero"), runtime.clone()] {
        fs::create_dir_all(folder).expect("a folder");
    }
    let file = home.join(".config/hero/hero.toml");
    fs::write(&file, "[actor]\ntasks = 7\n").expect("written");
    for path in [redis.folder(), &runtime] {
        chown(path, Some(USER), None).expect("root may");
    }
    let program = env!("CARGO_BIN_EXE_hero");
    let show = |config: Option<&str>| {
        let mut command = hero.command_of_user(program);
        command.env_remove("HERO_CONFIG").env("HOME", &home).env("XDG_RUNTIME_DIR", &runtime);
        command.envs(config.map(|file| ("HERO_CONFIG", file))).args(["check", "--show"]);
        let done = command.output().expect("the program runs");
        String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned()
    };
    // Root's: another user may have put it there, and `sudo` has kept the home.
    let shown = show(None);
    if !needs("unprivileged-user", || shown.contains("configuration: valid")) {
        return;
    }
    let below = |name: &str| home.join(name).display().to_string();
    let socket = format!("redis+unix://{}/hero/redis.sock", runtime.display());
    for said in [
        "tasks = 7".to_owned(),
        below(".local/state/hero/jobs"),
        below(".cache/hero"),
        below(".config/hero/cron.d"),
        socket.clone(),
    ] {
        assert!(shown.contains(&said), "{said} is not in {shown}");
    }
    let named = show(file.to_str());
    assert!(named.contains(&socket), "the unit of the user names the same file: {named}");
    chown(&file, Some(USER + 1), None).expect("root may");
    assert!(!show(None).contains("tasks = 7"), "of another user");
    chown(&file, Some(USER), None).expect("root may");
    assert!(!show(Some("/etc/hero/hero.toml")).contains("tasks = 7"), "units of the system");
    fs::write(&file, "").expect("written");
    assert!(show(None).contains(&socket), "an empty file is enough");
}
