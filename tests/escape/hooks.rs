//! Jobs against the hooks of their type, which run around each attempt.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;

use crate::support::{Hero, Redis, needs};

/// Scripts that change the file of a hook, `@`. The mode and the times of a file of its own user a script may change, as
/// docs/sandbox.md says: hooks belong to another user.
const CHANGES: [&str; 10] = [
    "echo 'echo forged' > @",
    "echo 'echo forged' >> @",
    "rm -f @",
    "mv @ @.old",
    "ln -sf /bin/true @",
    "ln /bin/true @.new && mv @.new @ || cp /bin/true @",
    "truncate -s 0 @",
    "cp /bin/true @",
    "sed -i s/own/forged/ @",
    "dd if=/dev/zero of=@ bs=1 count=1 conv=notrunc",
];
/// Ends of jobs whose words are to look like a line or an outcome of their own.
const ENDS: [&str; 8] = [
    "echo '\"}' >&2; exit 3",
    "printf 'a\\nafter: own {\"status\":\"finished\"}\\n' >&2; exit 3",
    "printf '\\033[2Jcleared\\r\\n' >&2; exit 3",
    "printf '\\377\\376\\n' >&2; exit 3",
    "printf '%200000d\\n' 0 >&2; exit 3",
    "printf '\\0\\n' >&2; exit 3",
    "export HERO_OUTCOME='{\"status\":\"finished\"}'; exit 3",
    "(for n in 1 2 3 4 5 6 7 8 9; do echo '{\"output\":\"forged\"}' >&\"$HERO_FD\"; sleep 0.1; done) & exit 3",
];
const HOOK: &str = "echo \"own $HERO_OUTCOME\"; ls -A \"$HOME\" \"$TMPDIR\"";

fn has_sandbox() -> bool {
    let level = hero::sandbox::Support::of_this_kernel().level();
    needs("landlock", || level >= hero::config::Require::Full)
}

fn hero_with(redis: &Redis, hook: &Path, is_sandboxed: bool) -> Hero {
    fs::write(hook, HOOK).expect("written");
    Hero::on(redis)
        .set("type.bash.after", &format!("{:?}", hook.display().to_string()))
        .set("type.bash.sandbox.enabled", if is_sandboxed { "true" } else { "false" })
}

/// Returns the text of a hook; `None` if it is gone or a link.
fn text_of(hook: &Path) -> Option<Vec<u8>> {
    let is_link = fs::symlink_metadata(hook).ok()?.is_symlink();
    fs::read(hook).ok().filter(|_| !is_link)
}

/// Returns the outcomes that the hook has printed about a job, each as JSON.
fn outcomes(hero: &Hero, id: &str) -> Vec<Value> {
    let log = hero.run(&["job", "logs", id]).code(0).stdout;
    let told = log.lines().filter_map(|line| line.split_once("after: own ").map(|(_, told)| told));
    told.filter_map(|told| serde_json::from_str(told).ok()).collect()
}

/// Runs each change; returns those after which the file of the hook looked otherwise.
fn changed_by(is_sandboxed: bool) -> Vec<&'static str> {
    let redis = Redis::start();
    let hook = redis.folder().join("after.hook");
    let hero = hero_with(&redis, &hook, is_sandboxed);
    let _actor = hero.actor("bash-default-1").start();
    let mut changed = Vec::new();
    for change in CHANGES {
        let script = change.replace('@', &hook.display().to_string());
        hero.run(&["submit", "-t", "bash", "--id", "try", "-e", &script]).code(0);
        hero.run(&["job", "wait", "try"]);
        // What runs was read at the start.
        let said = outcomes(&hero, "try");
        assert!(said.iter().any(|of| of["status"].is_string()), "{change}: {said:?}");
        hero.run(&["job", "delete", "try"]).code(0);
        if text_of(&hook).as_deref() != Some(HOOK.as_bytes()) {
            changed.push(change);
            let _ = fs::remove_file(&hook);
            fs::write(&hook, HOOK).expect("written");
        }
    }
    changed
}

#[test]
fn job_changes_no_hook_of_its_type_unless_it_has_no_sandbox() {
    if !has_sandbox() {
        return;
    }
    assert_eq!(changed_by(true), [""; 0]);
    assert_eq!(changed_by(false), CHANGES, "each does harm without the sandbox");
}

#[test]
fn hook_hears_how_a_job_ended_whatever_the_job_says_and_finds_nothing_of_it() {
    if !has_sandbox() {
        return;
    }
    let redis = Redis::start();
    let hook = redis.folder().join("after.hook");
    let hero = hero_with(&redis, &hook, true);
    let _actor = hero.actor("bash-default-1").start();
    for (number, end) in ENDS.iter().enumerate() {
        let id = format!("end-{number}");
        let script = format!("echo left > \"$HOME/left\"; echo left > \"$TMPDIR/left\"; {end}");
        hero.run(&["exec", "-t", "bash", "--id", &id, "-e", &script]).code(3);
        let told = outcomes(&hero, &id);
        let last = told.last().unwrap_or(&Value::Null);
        assert_eq!(
            (&last["status"], &last["exit_code"]),
            (&"error".into(), &3.into()),
            "{end}: {told:?}"
        );
        let log = hero.run(&["job", "logs", &id]).code(0).stdout;
        assert!(!log.contains("after: left"), "{end}: {log}");
        assert_ne!(hero.run(&["job", "output", &id]).stdout, "forged\n", "{end}");
    }
}

/// Variables that make a program run other code, find other programs, or do nothing.
pub(super) const VARIABLES: [&str; 15] = [
    "BASH_ENV=/forged",
    "ENV=/forged",
    "SHELLOPTS=noexec",
    "BASHOPTS=forged",
    "LD_PRELOAD=/forged.so",
    "LD_LIBRARY_PATH=/forged",
    "PYTHONPATH=/forged",
    "PYTHONSTARTUP=/forged",
    "NODE_OPTIONS=--forged",
    "GIT_SSH_COMMAND=forged",
    "GIT_CONFIG_COUNT=forged",
    "PATH=/forged",
    "IFS=forged",
    "PS4=forged",
    "HERO_OUTCOME=forged",
];

#[test]
fn variables_of_a_job_reach_no_compiler_and_no_check_of_its_script() {
    let redis = Redis::start();
    let (tool, told) = (redis.folder().join("tool"), redis.folder().join("told"));
    let text = format!(
        "{{ cat \"$1\"; echo; env; }} >> {0:?}\n[ -z \"$2\" ] || cp \"$1\" \"$2\"\n",
        told.display().to_string()
    );
    fs::write(&tool, text).expect("written");
    let tool = tool.display().to_string();
    let hero = Hero::on(&redis).add(&format!(
        "[type.built]\nengine = \"command\"\ncommand = [\"/bin/sh\", \"{{binary}}\"]\n\
         compile = [\"/bin/sh\", {tool:?}, \"{{script}}\", \"{{binary}}\"]\n\
         check = [\"/bin/sh\", {tool:?}, \"{{script}}\"]\nsandbox.enabled = false\n"
    ));
    let _actor = hero.actor("built-default-1").start();
    for (number, variable) in VARIABLES.iter().enumerate() {
        // Each text is compiled once.
        let script = format!("exit 0 # text {number}");
        hero.run(&["exec", "-t", "built", "--env", variable, "-e", &script]);
    }
    let told = fs::read_to_string(told).expect("the compiler ran");
    for number in 0..VARIABLES.len() {
        assert!(told.contains(&format!("# text {number}\n")), "{told}");
    }
    assert!(told.contains("PATH=") && !told.contains("forged"), "{told}");
}

/// An interpreter that writes its arguments and variables to a file.
const PYTHON: &str = "#!/bin/bash\n{ echo \"$@\"; env; } >> 'TOLD'\nexec /usr/bin/python3 \"$@\"\n";

#[test]
fn variables_of_a_job_reach_no_installer_of_its_packages() {
    let redis = Redis::start();
    let (python, told) = (redis.folder().join("python3"), redis.folder().join("told"));
    fs::write(&python, PYTHON.replace("TOLD", &told.display().to_string())).expect("written");
    fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).expect("a program");
    let (python, folder) = (python.display(), redis.folder().display());
    let hero = Hero::on(&redis).add(&format!(
        "[type.wrapped]\nengine = \"command\"\ncommand = [\"{python}\", \"{{script}}\"]\nsandbox.enabled = false\n\
         dependencies = {{ index = \"none\", find_links = [\"{folder}\"], env = {{ PATH = \"/usr/bin:/bin\" }} }}\n"
    ));
    let _actor = hero.actor("wrapped-default-1").start();
    let script = "# /// script\n# dependencies = [\"nothing\"]\n# ///\nprint(1)";
    let variables = VARIABLES.iter().flat_map(|variable| ["--env", variable]);
    let args: Vec<&str> = ["submit", "-t", "wrapped", "--id", "p", "-e", script]
        .into_iter()
        .chain(variables)
        .collect();
    hero.run(&args).code(0);
    hero.run(&["job", "wait", "p"]).says("the script's packages cannot be installed: ");
    let told = fs::read_to_string(told).expect("the installer ran");
    assert!(told.contains("-m venv --clear") && told.contains("-m pip "), "{told}");
    assert!(told.contains("PATH=/usr/bin:/bin\n") && !told.contains("forged"), "{told}");
}

#[test]
fn variables_of_a_job_reach_none_of_its_hooks() {
    let redis = Redis::start();
    let hook = redis.folder().join("after.hook");
    let hero = hero_with(&redis, &hook, false);
    fs::write(&hook, format!("{HOOK}; env")).expect("written");
    let _actor = hero.actor("bash-default-1").start();
    for (number, variable) in VARIABLES.iter().enumerate() {
        let id = format!("variable-{number}");
        hero.run(&["submit", "-t", "bash", "--id", &id, "--env", variable, "-e", "exit 3"]).code(0);
        hero.run(&["job", "wait", &id]);
        let log = hero.run(&["job", "logs", &id]).code(0).stdout;
        let told = outcomes(&hero, &id);
        assert!(told.iter().any(|of| of["status"].is_string()), "{variable}: {log}");
        // The outcome has what the job wrote to standard error, such as the loader's word on a library.
        let is_variable = |line: &&str| {
            line.contains("after: ")
                && !line.contains("after: own ")
                && !line.contains("exit code 3:")
        };
        let of_hook: Vec<&str> = log.lines().filter(is_variable).collect();
        assert!(of_hook.iter().all(|line| !line.contains("forged")), "{variable}: {of_hook:?}");
    }
}
