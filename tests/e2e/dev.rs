//! `hero dev`: one process tree with Redis and units, which leaves nothing behind.

use nix::sys::signal::Signal;

use crate::support::{Hero, Redis, wait_until};

#[test]
fn dev_runs_a_command_beside_units_and_ends_them_with_it() {
    let redis = Redis::absent(false);
    let hero = Hero::on(&redis);
    let command =
        "hero status --check; hero exec -t osis -e '40 + 2' && dirname \"$HERO_CONFIG\"; exit 3";
    let done = hero.run(&["dev", "--", "sh", "-c", command]).code(3).says("ready in ");
    assert!(!done.stderr.contains("heroscript"), "of a type nobody asked for: {}", done.stderr);
    let mut lines = done.stdout.lines();
    let status = lines.next().expect("a line of status");
    assert!(status.contains(" supervisors=1;"), "ready before the supervisor is present: {status}");
    assert_eq!(lines.next(), Some("42"));
    let folder = lines.next().expect("the folder of the private configuration");
    assert!(!std::path::Path::new(folder).exists(), "{folder} is left behind");
    let left: Vec<String> = std::fs::read_dir("/proc")
        .expect("this is Linux")
        .filter_map(|entry| std::fs::read_to_string(entry.ok()?.path().join("cmdline")).ok())
        .filter(|command| command.contains(folder))
        .collect();
    assert!(left.is_empty(), "processes are left behind: {left:?}");
}

#[test]
fn dev_says_why_a_type_of_the_configuration_does_not_run() {
    let redis = Redis::absent(false);
    let hero = Hero::on(&redis).add("[type.heroscript]\nmodules = [\"/nowhere\"]\n");
    hero.run(&["dev", "--", "true"]).code(0).says("heroscript: not available: ");
}

#[test]
fn dev_says_which_file_of_periodic_jobs_is_broken() {
    let redis = Redis::absent(false);
    let folder = redis.folder().join("cron.d");
    std::fs::create_dir_all(&folder).expect("a folder");
    let broken = "[cron.a]\nschedule = \"99 * * * *\"\ntype = \"osis\"\nscript = \"1\"\n";
    std::fs::write(folder.join("broken.toml"), broken).expect("writing a file");
    let hero = Hero::on(&redis).set("supervisor.cron_dir", &format!("\"{}\"", folder.display()));
    let done = hero.run(&["dev", "--", "true"]).code(0).says("broken.toml:2:12: cron.a.schedule: ");
    assert!(done.stderr.contains("are not in force"), "{}", done.stderr);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "tests start the program they test against")]
fn page_stays_open_after_the_command_until_an_interrupt() {
    let redis = Redis::absent(false);
    let hero = Hero::on(&redis);
    let dev = hero.begin(&["dev", "--keep", "--", "sh", "-c", "echo \"$HERO_PAGE\"; exit 3"]);
    wait_until("the command has ended", || dev.err().contains("the page, until Ctrl-C: "));
    let page = dev.out().trim_end().to_owned();
    let get = |address: &str| {
        let mut curl = std::process::Command::new("curl");
        curl.args(["-sS", "--noproxy", "*", "-b", "", "-L", address]);
        String::from_utf8_lossy(&curl.output().expect("curl runs").stdout).into_owned()
    };
    let overview = get(&page);
    assert!(overview.contains("<h1") && overview.contains("Overview"), "{overview}");
    dev.signal(Signal::SIGINT);
    dev.ends().code(3);
}
