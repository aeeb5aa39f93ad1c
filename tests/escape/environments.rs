//! Programs that Hero starts for itself: neither the variables of a job nor those of the daemon reach one. docs/security.md lists
//! them; `hooks.rs` has hooks, compilers, checks and pip.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::hooks::VARIABLES;
use crate::support::keys::keys;
use crate::support::{Hero, Redis, wait_until};

/// Writes a program that appends its arguments and its variables to the file `recorded`, then does more.
fn recording(folder: &Path, name: &str, more: &str) -> String {
    let (file, recorded) = (folder.join(name), folder.join("recorded"));
    let note = format!("{{ echo \"{name} of $*\"; /usr/bin/env; }} >> '{}'", recorded.display());
    fs::write(&file, format!("#!/bin/sh\n{note}\n{more}\n")).expect("written");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("a program");
    file.display().to_string()
}

fn recorded(redis: &Redis) -> String {
    fs::read_to_string(redis.folder().join("recorded")).unwrap_or_default()
}

/// Runs a job with all variables, but for that which answers the question to node.
fn run(hero: &Hero, script_type: &str, script: &str) {
    let is_set = |variable: &&&str| script_type != "asked" || !variable.starts_with("NODE_OPTIONS");
    let variables = VARIABLES.iter().filter(is_set).flat_map(|variable| ["--env", variable]);
    let args = ["exec", "-t", script_type, "-e", script].into_iter().chain(variables);
    hero.run(&args.collect::<Vec<_>>());
}

/// Adds a type of Python whose packages uv installs: `uv` runs the program that its first argument names.
fn with_uv(hero: Hero, redis: &Redis) -> Hero {
    let folder = redis.folder();
    fs::create_dir(folder.join("bin")).expect("created");
    fs::copy("/usr/bin/env", folder.join("bin/uv")).expect("copied");
    recording(folder, "bin/venv", "exec \"$3\" -m venv --without-pip \"$4\"");
    recording(folder, "bin/pip", "exit 1");
    let python = recording(folder, "python3", "exec /usr/bin/python3 \"$@\"");
    let bin = folder.join("bin").display().to_string();
    hero.add(&format!(
        "[type.packed]\nengine = \"command\"\ncommand = [{python:?}, \"{{script}}\"]\nsandbox.enabled = false\n\
         dependencies = {{ index = \"none\", find_links = [\"{bin}\"], env = {{ PATH = \"{bin}:/usr/bin:/bin\" }} }}\n"
    ))
}

const PACKED: &str =
    "# /// script\n# requires-python = \">=3.9\"\n# dependencies = [\"nothing\"]\n# ///\nprint(1)";

/// Fails unless the check of the version, the environment and the installer were run.
fn check_uv(recorded: &str) {
    for expected in ["python3 of -I -c", "bin/venv of --quiet --python", "bin/pip of install"] {
        assert!(recorded.contains(expected), "{expected}: {recorded}");
    }
}

#[test]
fn variables_of_a_job_reach_neither_uv_nor_the_check_of_a_version() {
    let redis = Redis::start();
    let hero = with_uv(Hero::on(&redis), &redis);
    let _actor = hero.actor("packed-default-1").start();
    run(&hero, "packed", PACKED);
    let recorded = recorded(&redis);
    check_uv(&recorded);
    assert!(!recorded.contains("forged"), "{recorded}");
}

/// Adds a type of TypeScript whose node is asked for its options.
fn with_node(hero: Hero, redis: &Redis) -> Hero {
    // It is noted as it is asked, and runs no script.
    let node = recording(redis.folder(), "node", "[ \"$1\" = -p ] && echo v18.0.0");
    hero.add(&format!(
        "[type.asked]\nengine = \"command\"\ncommand = [{node:?}, \"{{script}}\"]\nextension = \".ts\"\nsandbox.enabled = false\n"
    ))
}

#[test]
fn variables_of_a_job_reach_no_node_that_is_asked_for_its_options() {
    let redis = Redis::start();
    let hero = with_node(Hero::on(&redis), &redis);
    let _actor = hero.actor("asked-default-1").start();
    run(&hero, "asked", "let a: number = 1");
    let recorded = recorded(&redis);
    assert!(recorded.contains("node of -p") && !recorded.contains("forged"), "{recorded}");
}

/// Adds notifications by a program and by `sendmail`.
fn with_notifications(hero: Hero, redis: &Redis) -> Hero {
    let folder = redis.folder();
    let page = recording(folder, "page", "cat > /dev/null");
    let sendmail = recording(folder, "sendmail", "cat > /dev/null");
    hero.add(&format!(
        "[notify.page]\ncommand = [{page:?}]\nwrite = [{:?}]\n\
         [notify.mail]\nmail = [\"ops@example.org\"]\nfrom = \"hero@example.org\"\nsendmail = {sendmail:?}\n",
        folder.display().to_string()
    ))
}

/// Waits until the supervisor wants the failures of jobs.
fn wanted(redis: &Redis) {
    let wanted = format!("HGET {} failed", keys().notify_wanted());
    wait_until("failures are wanted", || redis.ask::<Option<String>>(&wanted).is_some());
}

#[test]
fn variables_of_a_job_reach_no_program_of_a_notification() {
    let redis = Redis::start();
    let hero = with_notifications(Hero::on(&redis), &redis);
    let (_actor, _supervisor) = (hero.actor("osis-default-1").start(), hero.supervisor().start());
    wanted(&redis);
    run(&hero, "osis", "throw 1");
    wait_until("both are notified", || {
        let recorded = recorded(&redis);
        recorded.contains("page of") && recorded.contains("sendmail of")
    });
    assert!(!recorded(&redis).contains("forged"), "{}", recorded(&redis));
}

#[test]
fn variables_of_a_job_reach_no_job_after_it() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _actors = ["bash-default-1", "python-default-1"].map(|unit| hero.actor(unit).start());
    for (script_type, print) in [("bash", "env"), ("python", "import os; print(dict(os.environ))")]
    {
        run(&hero, script_type, "1");
        let after = hero.run(&["exec", "-t", script_type, "-e", print]).code(0).stdout;
        assert!(after.contains("HERO_JOB_ID") && !after.contains("forged"), "{after}");
    }
}

/// Adds types of each kind of program, with a hook and a compiler that note their variables. A check is run by commands alone.
fn with_scripts(hero: Hero, redis: &Redis) -> Hero {
    let folder = redis.folder();
    // What a hook prints goes to the log of its job; it writes no file here.
    let hook = folder.join("hook");
    fs::write(&hook, "/usr/bin/env").expect("written");
    let hook = hook.display().to_string();
    let compile = recording(folder, "compile", "cp \"$1\" \"$2\"");
    let script = recording(folder, "script", "");
    hero.add(&format!(
        "[type.shell]\nengine = \"command\"\ncommand = [{script:?}, \"{{script}}\"]\nafter = {hook:?}\nsandbox.enabled = false\n\
         [type.warmed]\nengine = \"command\"\ncommand = [\"/usr/bin/python3\", \"{{script}}\"]\nwarm = true\nsandbox.enabled = false\n\
         [type.built]\nengine = \"command\"\ncommand = [\"/bin/sh\", \"{{binary}}\"]\ncompile = [{compile:?}, \"{{script}}\", \"{{binary}}\"]\n\
         sandbox.enabled = false\n"
    ))
}

#[test]
fn variables_of_the_daemon_reach_no_program_but_sendmail() {
    let redis = Redis::start();
    let add = [with_uv, with_node, with_notifications, with_scripts];
    let hero = add.into_iter().fold(Hero::on(&redis), |hero, add| add(hero, &redis));
    let start = |unit: &str| {
        // The daemon itself finds its configuration and no library by them.
        let of_daemon = VARIABLES.iter().filter_map(|variable| variable.split_once('='));
        of_daemon
            .fold(hero.actor(unit), |unit, (name, value)| unit.env(name, Path::new(value)))
            .start()
    };
    let units = ["packed", "asked", "shell", "warmed", "built", "osis"];
    let _units = units.map(|of| start(&format!("{of}-default-1")));
    let _supervisor = start("supervisor");
    wanted(&redis);
    let exec =
        |script_type: &str, script: &str| hero.run(&["exec", "-t", script_type, "-e", script]);
    exec("packed", PACKED);
    exec("asked", "let a: number = 1");
    exec("shell", "true").code(0);
    exec("built", "exit 0").code(0);
    let warm = exec("warmed", "import os; print(dict(os.environ))").code(0).stdout;
    assert!(warm.contains("HERO_JOB_ID") && !warm.contains("forged"), "{warm}");
    exec("osis", "throw 1");
    wait_until("both are notified", || {
        let recorded = recorded(&redis);
        recorded.contains("page of") && recorded.contains("sendmail of")
    });
    let recorded = recorded(&redis);
    check_uv(&recorded);
    for expected in ["node of -p", "compile of", "script of"] {
        assert!(recorded.contains(expected), "{expected}: {recorded}");
    }
    // `sendmail` is the operator's own, and has what the supervisor has.
    let of_sendmail = |note: &&str| note.starts_with("of -i -- ops@example.org");
    let notes = recorded.split("sendmail ").filter(|note| !of_sendmail(note));
    assert!(!notes.collect::<String>().contains("forged"), "{recorded}");
}
