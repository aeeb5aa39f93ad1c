//! `hero dev`: one process tree with Redis and units, which leaves nothing behind but a folder that is kept.

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::support::{Hero, Process, Redis, wait_until};

#[test]
fn dev_runs_a_command_with_units_and_ends_them_with_it() {
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
fn agent_in_the_shell_of_dev_has_sandboxed_types_alone_and_dev_says_which_are_not() {
    let redis = Redis::absent(false);
    let hero = Hero::on(&redis).set("job.retries", "0");
    let call = |id: u32, script_type: &str| {
        let arguments = json!({ "script": "40 + 2", "script_type": script_type });
        let params = json!({ "name": "run_script", "arguments": arguments });
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
    };
    let words: String = [call(1, "osis"), call(2, "sal")].map(|call| format!("'{call}' ")).concat();
    let agent = |more: &str| {
        let command = format!("printf '%s\\n' {words}| hero mcp --caller assistant {more}");
        let done = hero.run(&["dev", "--", "sh", "-c", &command]).code(0);
        assert!(done.stderr.contains("sal (not sandboxed)"), "{}", done.stderr);
        let answers = done.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON"));
        let mut answers: Vec<Value> = answers.collect();
        answers.sort_by_key(|answer| answer["id"].as_u64());
        let text = |place: usize| answers[place]["result"]["content"][0]["text"].to_string();
        [text(0), text(1)]
    };
    let [good, refused] = agent("");
    assert_eq!(good, "\"42\"");
    assert!(refused.contains("its scripts are not sandboxed"), "{refused}");
    let [refused, good] = agent("--type sal");
    assert_eq!(good, "\"42\"");
    assert!(refused.contains("the types of this caller are sal"), "{refused}");
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
fn kept_folder_has_the_jobs_of_a_run_that_was_killed() {
    let redis = Redis::absent(false);
    let hero = Hero::on(&redis);
    let dir = redis.folder().join("kept");
    let dir = dir.to_str().expect("a path in UTF-8");
    let config = format!("{dir}/hero.toml");
    let on = |args: &[&str]| hero.run(&[&["--config", config.as_str()], args].concat());
    let begin = || {
        let mut dev = hero.begin(&["dev", "--keep", dir]);
        wait_until("hero dev is ready", || dev.out().contains("the page: ") || dev.has_ended());
        assert!(dev.out().contains("the page: "), "{}", dev.err());
        dev
    };
    let page = |dev: &Process| dev.out().lines().last().unwrap_or_default().to_owned();

    let mut first = begin();
    let done = on(&["submit", "-t", "osis", "--name", "before", "-e", "\"kept\""]).code(0).stdout;
    on(&["job", "wait", done.trim()]).code(0).stdout("kept\n");
    let held =
        ["submit", "-t", "osis", "--name", "held", "--delay", "1h", "-e", "\"ran tomorrow\""];
    let held = on(&held).code(0).stdout;
    let queued = on(&["submit", "-t", "osis", "--instance", "2", "-e", "1"]).code(0).stdout;
    hero.run(&["dev", "--keep", dir, "--", "true"]).code(69).says("another `hero dev` uses it");
    let address = page(&first);
    first.kill();

    let second = begin();
    assert_eq!(page(&second), address, "the port and the token stay");
    let listed = on(&["job", "list", "--json"]).code(0).stdout;
    for id in [&done, &held, &queued] {
        assert!(listed.contains(id.trim()), "{id} is not in {listed}");
    }
    second.signal(Signal::SIGHUP);
    for unit in ["supervisor", "osis-default-1"] {
        let log = redis.folder().join(format!("kept/{unit}.log"));
        let said = || std::fs::read_to_string(&log).unwrap_or_default();
        wait_until("each unit has reloaded", || said().contains("read the configuration again"));
    }
    on(&["job", "edit", held.trim(), "--delay", "1ms"]).code(0);
    on(&["job", "wait", held.trim()]).code(0).stdout("ran tomorrow\n");
    second.signal(Signal::SIGINT);
    second.ends().code(0);
    let last = hero.run(&["dev", "--keep", dir, "--", "hero", "job", "wait", done.trim()]);
    last.code(0).stdout("kept\n");
}

#[test]
fn dev_reports_what_each_unit_did_at_a_reload_and_starts_new_types() {
    let redis = Redis::absent(false);
    let hero = Hero::on(&redis);
    let dir = redis.folder().join("kept");
    let dir = dir.to_str().expect("a path in UTF-8");
    let file = format!("{dir}/hero.toml");
    let mut dev = hero.begin(&["dev", "--keep", dir]);
    wait_until("hero dev is ready", || dev.out().contains("the page: ") || dev.has_ended());
    let before = std::fs::read_to_string(&file).expect("a configuration");
    let reload = |more: &str, reports: &[&str]| {
        std::fs::write(&file, format!("{before}\n{more}")).expect("writing the configuration");
        dev.signal(Signal::SIGHUP);
        for report in reports {
            wait_until(report, || dev.err().contains(report));
        }
    };
    let shell = "[type.shell]\nengine = \"command\"\ncommand = [\"/bin/sh\", \"{script}\"]\nextension = \".x\"\n";
    reload(
        shell,
        &[
            "hero: supervisor: read the configuration again\n",
            "hero: osis-default-1: read the configuration again\n",
            "hero: shell-default-1 is started for type shell\n",
        ],
    );
    let args = ["--config", file.as_str(), "exec", "-t", "shell", "-e", "echo new"];
    hero.run(&args).code(0).stdout("new\n");
    reload("wrong = 1\n", &["hero: osis-default-1: the reload changed nothing: "]);
    dev.signal(Signal::SIGINT);
    dev.ends().code(0);
}

#[test]
fn dev_whose_caller_ignores_hangups_goes_on_after_one_and_its_units_reload() {
    let redis = Redis::absent(false);
    let hero = Hero::on(&redis);
    // As nohup does: what is ignored stays so in the program that is started.
    let run = "trap '' HUP; hero dev --keep \"$0\" > \"$0.log\" 2>&1 & \
               until grep -q 'the page: ' \"$0.log\"; do kill -0 $! || exit 9; sleep 0.05; done; \
               kill -HUP $!; \
               until grep -q 'read the configuration again' \"$0/supervisor.log\"; do kill -0 $! || exit 7; sleep 0.05; done; \
               hero --config \"$0/hero.toml\" exec -t osis -e '40 + 2'; kill -0 $! || exit 8; \
               kill -TERM $!; wait $!; true";
    let dir = redis.folder().join("kept");
    let dir = dir.to_str().expect("a path in UTF-8");
    // The outer one only sets the path where the shell finds this program.
    let done = hero.run(&["dev", "--", "sh", "-c", run, dir]);
    assert_eq!(done.code(0).stdout, "42\n");
}

#[test]
fn kept_folder_takes_over_nothing_of_another_whose_configuration_a_variable_names() {
    let redis = Redis::absent(false);
    let hero = Hero::on(&redis);
    let dir = |name: &str| redis.folder().join(name).display().to_string();
    let (first, second) = (dir("first"), dir("second"));
    let own = |dir: &str| {
        std::fs::read_to_string(format!("{dir}/hero.toml.d/zz-hero-dev.toml")).expect("settings")
    };
    let setting = |dir: &str| format!("cron_dir = \"{dir}/cron.d\"");
    hero.run(&["dev", "--keep", &first, "--", "true"]).code(0);
    assert!(own(&first).contains(&setting(&first)), "{}", own(&first));
    assert!(own(&first).contains(&format!("dir = \"{first}/secrets\"")), "{}", own(&first));
    let scripts = format!("scripts_dir = \"{first}/scripts\"");
    assert!(own(&first).contains(&scripts), "{}", own(&first));
    // The outer one only sets the path where the shell finds this program.
    let run = "HERO_CONFIG=\"$0/hero.toml\" hero dev --keep \"$1\" -- true";
    let done = hero.run(&["dev", "--", "sh", "-c", run, &first, &second]).code(0);
    done.says("HERO_CONFIG names the configuration of another hero dev");
    assert!(own(&second).contains(&setting(&second)), "{}", own(&second));
    // Its own, and another file of its folder.
    std::fs::write(format!("{first}/other.toml"), "[job]\nretries = 7\n").expect("written");
    for (file, retries) in [("hero.toml", "retries = 0"), ("other.toml", "retries = 7")] {
        let run = format!("HERO_CONFIG=\"$0/{file}\" hero dev --keep \"$0\" -- hero check --show");
        let done = hero.run(&["dev", "--", "sh", "-c", &run, &first]).code(0);
        assert!(!done.stderr.contains("another hero dev"), "{}", done.stderr);
        assert!(done.stdout.contains(retries), "{file}: {}", done.stdout);
    }
}

#[test]
fn kept_folder_with_keys_of_the_api_listens_on_its_own_port() {
    let redis = Redis::absent(false);
    let hero = Hero::on(&redis);
    let dir = redis.folder().join("kept").display().to_string();
    let addresses = || {
        let done =
            hero.run(&["dev", "--keep", &dir, "--", "sh", "-c", "cat \"$0/api.address\"", &dir]);
        done.code(0).stdout
    };
    assert!(addresses().starts_with("http://127.0.0.1:"));
    let file = format!("{dir}/hero.toml");
    let text = std::fs::read_to_string(&file).expect("the configuration");
    let key = "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";
    let text = format!("{text}\n[api.keys.ann]\npublic_key = \"{key}\"\nscopes = [\"read\"]\n");
    std::fs::write(&file, text).expect("writing the configuration");
    let with_keys = addresses();
    assert!(with_keys.starts_with("http://127.0.0.1:"), "{with_keys}");
}

#[test]
fn actor_of_dev_that_was_killed_is_started_again() {
    let redis = Redis::absent(false);
    let hero = Hero::on(&redis);
    let command = "for pid in $(hero --json actor list | tr ',{' '\\n\\n' | sed -n 's/^\"pid\":\\([0-9]*\\).*/\\1/p'); do \
                   kill -9 $pid && echo killed; done; hero exec -t osis -e '40 + 2'";
    let done = hero.run(&["dev", "--", "sh", "-c", command]).code(0);
    assert!(
        done.stdout.starts_with("killed\n") && done.stdout.ends_with("42\n"),
        "{}",
        done.stdout
    );
    assert!(done.stderr.contains("hero: osis-default-1 was killed; it is started again"));
}

#[test]
fn actor_of_dev_that_ends_with_an_error_ends_no_other() {
    let redis = Redis::absent(false);
    let hero = Hero::on(&redis);
    let command = "pid=$(hero --json actor list | tr ',{' '\\n\\n' | grep -A9 '\"osis:default:1\"' | \
                   sed -n 's/^\"pid\":\\([0-9]*\\).*/\\1/p' | head -n 1); kill -ABRT $pid; \
                   while kill -0 $pid 2> /dev/null; do sleep 0.05; done; hero exec -t bash -- echo goes on";
    let done = hero.run(&["dev", "--", "sh", "-c", command]).code(0);
    assert!(done.stdout.ends_with("goes on\n"), "{}", done.stdout);
    assert!(done.stderr.contains("hero: osis-default-1 has ended: signal: 6"), "{}", done.stderr);
}
