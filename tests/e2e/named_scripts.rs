//! Published scripts: names, versions and parameters, by the command line.

use std::fs;

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::support::{Done, Hero, Redis, keys, wait_until};

use super::field;

const GREET: &str = "# /// hero\n# description = \"Greets\"\n# type = \"bash\"\n# timeout = \"30s\"\n# env = { TONE = \"kind\" }\n\
    # [params.who]\n# required = true\n# pattern = \"^[a-z]+$\"\n# [params.times]\n# type = \"integer\"\n# minimum = 1\n\
    # maximum = 3\n# default = 2\n# ///\necho \"$HERO_PARAMS $TONE $*\"\n";

fn write(redis: &Redis, name: &str, text: &str) -> String {
    let file = redis.folder().join(name);
    fs::write(&file, text).expect("writing a file");
    file.to_str().expect("text").to_owned()
}

#[track_caller]
fn publish(hero: &Hero, name: &str, text: &str) -> Done {
    hero.run(&["script", "publish", name, "-t", "osis", "-e", text]).code(0)
}

fn json(done: &Done) -> Value {
    serde_json::from_str(&done.stdout).expect("JSON")
}

#[track_caller]
fn versions(hero: &Hero, name: &str) -> Vec<u64> {
    let found = json(&hero.run(&["--json", "script", "history", name]).code(0));
    let all = found["versions"].as_array().expect("versions").iter();
    all.map(|of| of["version"].as_u64().expect("a number")).collect()
}

#[test]
fn published_script_runs_with_its_settings_and_checked_parameters() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _bash = hero.actor("bash-default-1").start();
    let file = write(&redis, "greet.sh", GREET);
    hero.run(&["script", "publish", "greet", &file]).code(0).stdout("greet@1\n");
    let run = |args: &[&str]| hero.run(&[&["run-script", "greet"], args].concat());
    run(&["--param", "who=ann", "--", "a", "b"])
        .code(0)
        .stdout("{\"who\":\"ann\",\"times\":2} kind a b\n");
    run(&["--param", "who=ann", "--param", "times:=3", "--env", "TONE=rude"])
        .code(0)
        .stdout("{\"who\":\"ann\",\"times\":3} rude \n");
    hero.run(&["exec", "--uses", "greet@1", "--param", "who=eve"])
        .code(0)
        .stdout("{\"who\":\"eve\",\"times\":2} kind \n");
    for (wrong, said) in [
        (
            &[][..],
            "params of greet@1: who: is missing; it is required: expected string that matches ^[a-z]+$",
        ),
        (&["--param", "who=ANN"], "who: \"ANN\" does not match"),
        (
            &["--param", "who=ann", "--param", "times=x"],
            "times: \"x\" is text: expected integer from 1 to 3",
        ),
        (&["--param", "who=ann", "--param", "times:=9"], "times: 9 is too large"),
        (
            &["--param", "hwo=ann"],
            "`hwo` is an unknown parameter; did you mean `who`?; declared: who, times",
        ),
        (
            &["--param", "who=ann", "-t", "osis"],
            "--type: `osis` is not the type of greet@1, which is bash",
        ),
    ] {
        let done = run(wrong).code(65);
        assert!(done.stderr.contains(said), "{}", done.stderr);
    }
    let listed = json(&hero.run(&["--json", "job", "list"]).code(0));
    assert_eq!(listed["jobs"].as_array().map(Vec::len), Some(3), "no refused job is stored");
    let id = listed["jobs"][0]["id"].as_str().expect("an id").to_owned();
    assert_eq!(field(&redis, &id, "uses").as_deref(), Some("greet@1"));
    assert_eq!(field(&redis, &id, "timeout").as_deref(), Some("30"));
    let shown = json(&hero.run(&["--json", "script", "show", "greet"]).code(0));
    assert_eq!(field(&redis, &id, "script_digest").as_deref(), shown["digest"].as_str());
    assert_eq!(shown["script"], GREET);
    let help = hero.run(&["run-script", "--help", "greet"]).code(0).stdout;
    assert!(help.contains("--param times:=JSON") && help.contains("default 2"), "{help}");
    let completed = hero.run(&["completions", "--values", "parameters", "--script", "greet"]);
    completed.code(0).stdout("who=\ntimes:=\n");
    hero.run(&["completions", "--values", "scripts"]).code(0).stdout("greet\n");
}

#[test]
fn same_version_publishes_nothing_and_a_rollback_is_a_new_version() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _osis = hero.actor("osis-default-1").start();
    publish(&hero, "sum", "40 + 1").stdout("sum@1\n");
    publish(&hero, "sum", "40 + 2").stdout("sum@2\n");
    let same = publish(&hero, "sum", "40 + 2").stdout("sum@2\n");
    assert!(same.stderr.contains("nothing was published"), "{}", same.stderr);
    // Another setting is another version.
    hero.run(&["script", "publish", "sum", "-t", "osis", "-e", "40 + 2", "--retries", "1"])
        .code(0)
        .stdout("sum@3\n");
    hero.run(&["script", "rollback", "sum", "1"]).code(0).stdout("sum@4\n");
    for (used, output) in [("sum", "41\n"), ("sum@2", "42\n"), ("sum@4", "41\n")] {
        hero.run(&["run-script", used]).code(0).stdout(output);
    }
    let diff = hero.run(&["script", "diff", "sum", "1", "3"]).code(0).stdout;
    assert!(diff.contains("+retries = 1") && diff.contains("-40 + 1\n+40 + 2\n"), "{diff}");
    let last = hero.run(&["script", "diff", "sum"]).code(0).stdout;
    assert!(last.contains("-retries = 1") && last.contains("-40 + 2\n+40 + 1\n"), "{last}");
    publish(&hero, "new", "1").stdout("new@1\n");
    hero.run(&["script", "diff", "new"]).code(66).says("has one version");
    let history = json(&hero.run(&["--json", "script", "history", "sum"]).code(0));
    assert_eq!(history["versions"][0]["rolled_back_to"], 1);
    assert!(history["versions"][0]["published_by"].as_str().is_some_and(|by| !by.is_empty()));
    assert!(history["versions"][0]["published_at"].as_str().is_some_and(|at| at.ends_with('Z')));
    hero.run(&["script", "rollback", "sum", "9"]).code(66);
    let digest = history["versions"][0]["digest"].as_str().expect("a digest");
    hero.run(&["run-script", "sum", "--script-digest", digest]).code(0).stdout("41\n");
    let wrong = hero.run(&["run-script", "sum@2", "--script-digest", digest]).code(65);
    assert!(wrong.stderr.contains("is not the digest of sum@2"), "{}", wrong.stderr);
}

#[test]
fn waiting_job_keeps_its_text_and_a_deleted_name_never_repeats_a_version() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    publish(&hero, "sum", "1");
    let submitted = hero.run(&["submit", "--uses", "sum", "--id", "a"]).code(0);
    drop(submitted.stdout("a\n"));
    publish(&hero, "sum", "2");
    hero.run(&["script", "delete", "sum"]).code(0);
    assert!(redis.ttl(&keys::keys().script(&"sum".parse().expect("legal"))) > 0);
    let gone = hero.run(&["submit", "--uses", "sum@1"]).code(66);
    assert!(gone.stderr.contains("`sum` is not a published script"), "{}", gone.stderr);
    publish(&hero, "sum", "3").stdout("sum@3\n");
    let missing = hero.run(&["submit", "--uses", "sum@1"]).code(66);
    assert!(missing.stderr.contains("sum has the versions 3 to 3"), "{}", missing.stderr);
    // A copy of a job names the script only while the version is kept.
    let clone = |id: &str| hero.run(&["job", "clone", id]).code(0).stdout.trim().to_owned();
    let b = clone("a");
    assert_eq!(field(&redis, &b, "uses"), None);
    hero.run(&["submit", "--uses", "sum", "--id", "c"]).code(0);
    let d = clone("c");
    assert_eq!(field(&redis, &d, "uses").as_deref(), Some("sum@3"));
    // With another text it is no job of the script.
    let other = write(&redis, "other.rhai", "4");
    hero.run(&["job", "edit", &d, "--file", &other]).code(0);
    assert_eq!((field(&redis, &d, "uses"), field(&redis, &d, "script_digest")), (None, None));
    let _osis = hero.actor("osis-default-1").start();
    for (id, output) in [("a", "1\n"), (b.as_str(), "1\n"), ("c", "3\n"), (d.as_str(), "4\n")] {
        hero.run(&["job", "wait", id]).code(0).stdout(output);
    }
}

#[test]
fn old_versions_are_evicted_by_number_and_by_bytes() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    for number in 1..=22 {
        publish(&hero, "many", &number.to_string());
    }
    assert_eq!(versions(&hero, "many"), (3..=22).rev().collect::<Vec<_>>());
    let evicted = hero.run(&["submit", "--uses", "many@2"]).code(66);
    assert!(evicted.stderr.contains("many has the versions 3 to 22"), "{}", evicted.stderr);
    for number in 1..=10 {
        let text = format!("// {number}{}\n1", "x".repeat(1_000_000));
        let file = write(&redis, "large.rhai", &text);
        hero.run(&["script", "publish", "large", &file]).code(0);
    }
    assert_eq!(versions(&hero, "large"), (3..=10).rev().collect::<Vec<_>>());
    let huge = write(&redis, "huge.rhai", &"x".repeat((1 << 20) + 1));
    assert!(hero.run(&["script", "publish", "huge", &huge]).code(65).stderr.contains("1MiB"));
}

#[test]
fn publishers_at_the_same_time_get_versions_without_a_gap() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let begun: Vec<_> = (0..8)
        .map(|number| {
            let text = number.to_string();
            hero.begin(&["script", "publish", "sum", "-t", "osis", "-e", &text])
        })
        .collect();
    let mut told: Vec<String> = begun.into_iter().map(|of| of.ends().code(0).stdout).collect();
    told.sort();
    assert_eq!(told, (1..=8).map(|number| format!("sum@{number}\n")).collect::<Vec<_>>());
    assert_eq!(versions(&hero, "sum"), (1..=8).rev().collect::<Vec<_>>());
}

#[test]
fn graphs_batches_and_periodic_jobs_use_published_scripts() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let file = write(&redis, "greet.sh", GREET);
    hero.run(&["script", "publish", "greet", &file]).code(0);
    let _units = [hero.actor("bash-default-1").start(), hero.supervisor().start()];
    // The type of [defaults] is for the jobs that have a text.
    let graph = "[defaults]\ntype = \"osis\"\n[job.a]\nuses = \"greet@1\"\nparams = { who = \"ann\" }\n\
                 [on_end]\nuses = \"greet\"\nparams = { who = \"end\" }\n";
    let file = write(&redis, "g.toml", graph);
    hero.run(&["submit", "--check", "--graph", &file]).code(0);
    let id = hero.run(&["submit", "--graph", &file, "--id", "g"]).code(0).stdout;
    hero.run(&["graph", "wait", id.trim()]).code(0);
    for (wrong, said) in [
        (
            "[job.a]\nuses = \"greet\"\n",
            "g.toml:1:6: a: invalid job: params of greet@1: who: is missing",
        ),
        ("[job.a]\nuses = \"gret\"\n", "did you mean `greet`?"),
        (
            "[job.a]\nuses = \"greet\"\nscript = \"1\"\n",
            "job.a.uses: cannot be set beside script or file",
        ),
        ("[defaults]\nuses = \"greet\"\n[job.a]\nscript = \"1\"\n", "each job has its own"),
    ] {
        let file = write(&redis, "g.toml", wrong);
        let done = hero.run(&["submit", "--graph", &file]).code(65);
        assert!(done.stderr.contains(said), "{}", done.stderr);
    }
    let lines = "{\"id\":\"b1\",\"uses\":\"greet\",\"params\":{\"who\":\"bob\"}}\n{\"uses\":\"greet\",\"params\":{}}\n";
    let batch = write(&redis, "b.jsonl", lines);
    let done = hero.run(&["submit", "--ids", "--batch", &batch]).code(65).stdout("b1\n");
    assert!(
        done.stderr.contains("b.jsonl:2: invalid job: params of greet@1: who"),
        "{}",
        done.stderr
    );
    hero.run(&["submit", "--all-or-none", "--batch", &batch]).code(65).stdout("");
    hero.run(&["job", "wait", "b1"]).code(0).stdout("{\"who\":\"bob\",\"times\":2} kind \n");
    assert_eq!(field(&redis, "b1", "uses").as_deref(), Some("greet@1"));

    let wrong = hero.run(&["cron", "add", "c", "--schedule", "* * * * * *", "--uses", "greet"]);
    assert!(wrong.code(65).stderr.contains("who: is missing"));
    let add = ["cron", "add", "c", "--schedule", "* * * * * *", "--uses", "greet", "--param"];
    hero.run(&[&add[..], &["who=cron"]].concat()).code(0);
    let fired = |what: &str| {
        let history = hero.run(&["cron", "history", "c"]).code(0).stdout;
        history.contains(what)
    };
    wait_until("it has fired", || fired("finished"));
    // Each firing has the latest version; without the script it fails, and says why.
    hero.run(&["script", "delete", "greet"]).code(0);
    wait_until("a firing failed", || fired("uses `greet` is not a published script"));
}

#[test]
fn scripts_of_files_are_published_by_the_supervisor_and_win() {
    let redis = Redis::start();
    let folder = redis.folder().join("scripts");
    fs::create_dir(&folder).expect("a folder");
    fs::write(folder.join("greet.sh"), GREET).expect("written");
    let table = "[script.greet]\nfile = \"greet.sh\"\ntimeout = \"5s\"\n";
    fs::write(folder.join("a.toml"), table).expect("written");
    let hero = Hero::on(&redis)
        .set("supervisor.scripts_dir", &format!("{:?}", folder.display().to_string()));
    publish(&hero, "greet", "1");
    let supervisor = hero.supervisor().start();
    let is_at = |version: u64| {
        let done = hero.run(&["--json", "script", "show", "greet"]);
        done.code == 0 && json(&done)["version"] == version
    };
    wait_until("the file is published", || is_at(2));
    let shown = json(&hero.run(&["--json", "script", "show", "greet"]).code(0));
    assert!(shown["file"].as_str().is_some_and(|file| file.ends_with("a.toml")), "{shown}");
    assert_eq!(shown["settings"]["timeout"], 5.0);
    wait_until("it says so", || supervisor.err().contains("a.toml wins"));
    let refused = hero.run(&["script", "publish", "greet", "-t", "osis", "-e", "2"]).code(65);
    assert!(refused.stderr.contains("a.toml: change that file and reload"), "{}", refused.stderr);
    hero.run(&["script", "rollback", "greet", "1"]).code(65);
    // What Redis lost is published again.
    hero.run(&["script", "delete", "greet"]).code(0);
    wait_until("it is published again", || is_at(3));
    fs::write(folder.join("greet.sh"), format!("{GREET}true\n")).expect("written");
    fs::write(folder.join("bad.toml"), "[script.bad]\nfile = \"none.sh\"\n").expect("written");
    let check = hero.run(&["check"]).code(78);
    assert!(check.stderr.contains("none.sh: no such file"), "{}", check.stderr);
    supervisor.signal(Signal::SIGHUP);
    wait_until("the change is published", || is_at(4));
    wait_until("the mistake is logged", || supervisor.err().contains("script.bad.file"));
}

#[test]
fn backup_has_published_scripts_with_their_versions() {
    let (redis, other) = (Redis::start(), Redis::start());
    let (hero, restored) = (Hero::on(&redis), Hero::on(&other));
    publish(&hero, "sum", "1");
    publish(&hero, "sum", "2");
    publish(&hero, "twice", "3");
    let file = redis.folder().join("backup").display().to_string();
    hero.run(&["backup", &file]).code(0);
    restored.run(&["restore", &file]).code(0);
    assert_eq!(versions(&restored, "sum"), [2, 1]);
    let show =
        |hero: &Hero, used: &str| hero.run(&["--json", "script", "show", used]).code(0).stdout;
    for used in ["sum@1", "sum@2", "twice"] {
        assert_eq!(show(&restored, used), show(&hero, used));
    }
    publish(&restored, "sum", "4").stdout("sum@3\n");
}

#[test]
fn wrong_heads_and_options_are_rejected_with_their_place() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    for (text, args, said) in [
        ("# /// hero\n# timeout = 5\n# ///\n1", &[][..], "a.sh:2:13: timeout: expected a duration"),
        (
            "# /// hero\n# [params.a]\n# pattern = \"(\"\n# ///\n1",
            &[],
            "a: pattern is not a regular expression",
        ),
        ("# /// hero\n1", &[], "the head that begins in line 1 has no end"),
        ("1", &["--caller", "me"], "caller_id each job of the script has its own"),
        ("1", &["--at", "tomorrow 09:00"], "run_at each job of the script has its own"),
        ("1", &["-t", "ruby"], "`ruby` is not a configured script type"),
        ("1", &["--timeout", "9999h"], "timeout"),
        ("", &[], "it is empty"),
    ] {
        let file = write(&redis, "a.sh", text);
        let done = hero.run(&[&["script", "publish", "x", &file], args].concat()).code(65);
        assert!(done.stderr.contains(said), "{}", done.stderr);
    }
    for name in ["X", "9", "a b", "a/b", "a:b", "-a", "é", "a\n", &"a".repeat(49)] {
        let done = hero.run(&["script", "publish", "-e", "1", "-t", "osis", "--", name]);
        assert_ne!(done.code, 0, "{name}");
    }
    let index = keys::keys().scripts();
    let names: Vec<String> = redis.keys(index.trim_end_matches("index"));
    assert_eq!(names, Vec::<String>::new());
}

#[test]
fn words_of_a_command_line_become_values_of_the_declared_types() {
    const TYPED: &str = "# /// hero\n# type = \"bash\"\n# [params.count]\n# type = \"integer\"\n# maximum = 5\n\
        # [params.share]\n# type = \"number\"\n# [params.dry]\n# type = \"boolean\"\n\
        # [params.hosts]\n# type = \"array\"\n# [params.name]\n# ///\necho \"$HERO_PARAMS\"\n";
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _bash = hero.actor("bash-default-1").start();
    let file = write(&redis, "typed.sh", TYPED);
    hero.run(&["script", "publish", "typed", &file]).code(0);
    let words = ["--param", "count=3", "--param", "share=0.5", "--param", "dry=true"];
    let words = [&words[..], &["--param", "hosts=[\"a\",\"b\"]", "--param", "name=7"]].concat();
    let values = "{\"count\":3,\"share\":0.5,\"dry\":true,\"hosts\":[\"a\",\"b\"],\"name\":\"7\"}";
    let same = |text: &str| {
        let (text, values) = (text.trim_end(), values.to_owned());
        let of = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
        assert_eq!(of(text), of(&values));
    };
    same(&hero.run(&[&["run-script", "typed"], &words[..]].concat()).code(0).stdout);
    same(&hero.run(&[&["exec", "--uses", "typed@1"], &words[..]].concat()).code(0).stdout);
    hero.run(&[&["submit", "--uses", "typed", "--id", "s"], &words[..]].concat()).code(0);
    same(&hero.run(&["job", "wait", "s"]).code(0).stdout);
    let add = ["cron", "add", "nightly", "--schedule", "@daily", "--uses", "typed"];
    hero.run(&[&add[..], &words[..]].concat()).code(0);
    let of_cron = || {
        let shown = json(&hero.run(&["--json", "cron", "show", "nightly"]).code(0));
        shown.to_string()
    };
    assert!(of_cron().contains("\"count\":3"), "{}", of_cron());
    hero.run(&["cron", "edit", "nightly", "--param", "count=4"]).code(0);
    assert!(of_cron().contains("\"count\":4"), "{}", of_cron());
    for (word, said) in [
        ("count=x", "params of typed@1: count: \"x\" is text: expected integer of at most 5"),
        ("count=6", "params of typed@1: count: 6 is too large: expected integer of at most 5"),
        ("share=half", "params of typed@1: share: \"half\" is text: expected number"),
        ("dry=yes", "params of typed@1: dry: \"yes\" is text: expected boolean"),
        ("hosts=a,b", "params of typed@1: hosts: \"a,b\" is text: expected array"),
    ] {
        for entrance in [&["run-script", "typed"][..], &["submit", "--uses", "typed"]] {
            hero.run(&[entrance, &["--param", word]].concat()).code(65).says(said);
        }
        hero.run(&["cron", "edit", "nightly", "--param", word]).code(65).says(said);
    }
    // JSON is taken as it is.
    let json = ["run-script", "typed", "--param", "count:=\"3\""];
    hero.run(&json).code(65).says("count: \"3\" is text: expected integer");
}

#[test]
fn explained_run_of_a_published_script_says_what_its_sandbox_allows() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _bash = hero.actor("bash-default-1").start();
    hero.run(&["script", "publish", "hi", "-t", "bash", "-e", "echo hi"]).code(0);
    let done = hero.run(&["run-script", "--explain", "hi"]).code(0);
    assert_eq!(done.stdout, "hi\n");
    assert!(done.stderr.contains("what type bash allows on this machine"), "{}", done.stderr);
    assert!(done.stderr.contains("no refusal is known"), "{}", done.stderr);
}
