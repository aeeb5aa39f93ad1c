//! Arguments, parameters and files of variables of a script.

use std::fs;

use serde_json::{Value, json};

use super::{field, until};
use crate::support::{Hero, Redis, keys, needs, wait_until};

const ECHO_PYTHON: &str = "import sys, json, hero\nprint(json.dumps([sys.argv[1:], hero.params]))";
const GIVEN: [&str; 8] = [
    "--param=region=north",
    "--param",
    "n:=[1, {\"a\": null}]",
    "--",
    "two words",
    "--type",
    "",
    "é",
];

#[track_caller]
fn exec(hero: &Hero, script_type: &str, script: &str, given: &[&str]) -> String {
    hero.run(&[&["exec", "-t", script_type, "-e", script], given].concat()).code(0).stdout
}

#[test]
fn arguments_and_parameters_reach_scripts_of_every_kind() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _actors = ["python-default-1", "bash-default-1", "osis-default-1", "sal-default-1"]
        .map(|unit| hero.actor(unit).start());
    let both = "[[\"two words\", \"--type\", \"\", \"\\u00e9\"], {\"region\": \"north\", \"n\": [1, {\"a\": null}]}]\n";
    assert_eq!(exec(&hero, "python", ECHO_PYTHON, &GIVEN), both);
    let bash = "echo \"$#|$1|$4|$HERO_PARAMS\"";
    assert_eq!(
        exec(&hero, "bash", bash, &GIVEN),
        "4|two words|é|{\"region\":\"north\",\"n\":[1,{\"a\":null}]}\n"
    );
    let rhai = "fn n() { params.n[0] + 1 } [args[0], args.len(), params.region, n()]";
    for script_type in ["osis", "sal"] {
        let expected = "[\"two words\",4,\"north\",2]\n";
        assert_eq!(exec(&hero, script_type, rhai, &GIVEN), expected);
    }
    assert_eq!(exec(&hero, "osis", "let args = 1; let params = 2; args + params", &GIVEN), "3\n");
    assert_eq!(exec(&hero, "osis", "args.len() + params.len()", &[]), "0\n");
    assert_eq!(exec(&hero, "bash", "echo $#${HERO_PARAMS-none}", &[]), "0none\n");
    // Nobody but the job says what its parameters are.
    assert_eq!(exec(&hero, "bash", "echo ${HERO_PARAMS-none}", &["--env=HERO_PARAMS=x"]), "none\n");
}

#[test]
fn command_after_two_dashes_runs_with_its_words_as_they_are() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _actor = hero.actor("bash-default-1").start();
    let words = ["printf", "%s|", "two words", "$HOME", "it's", "", "--type", "*"];
    let ran = hero.run(&[&["exec", "--"][..], &words].concat()).code(0).stdout;
    assert_eq!(ran, "two words|$HOME|it's||--type|*|\n");
    let id = hero.run(&["submit", "--timeout", "1m", "--", "false"]).code(0).stdout;
    hero.run(&["job", "wait", id.trim()]).code(1);
    assert_eq!(field(&redis, id.trim(), "name").as_deref(), Some("false"));
    let script = redis.folder().join("backup");
    fs::write(&script, "#!/usr/bin/env bash\necho \"saved $1\"\n").expect("written");
    let file = script.to_str().expect("text");
    assert_eq!(hero.run(&["exec", file, "--", "all"]).code(0).stdout, "saved all\n");
    hero.run(&["exec"]).code(2);
    let python = hero.run(&["exec", "-t", "python", "--", "ls"]).code(2).stderr;
    assert!(python.contains("a command after -- is run by a shell"), "{python}");
}

#[test]
fn parameters_keep_their_order_on_every_way_to_a_script() {
    const PARAMS: &str = r#"{"z":1,"a":{"y":[],"b":2},"m":"3"}"#;
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _actor = hero.actor("bash-default-1").start();
    let print = "printf %s \"$HERO_PARAMS\"";
    let folder = redis.folder();
    let file = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).expect("writing a file");
        path.to_str().expect("UTF-8").to_owned()
    };
    let submit = |given: &[&str]| {
        hero.run(&[&["submit", "-t", "bash"], given].concat()).code(0);
    };
    let params = file("params.json", PARAMS);
    submit(&["--id", "file", "--params", &params, "-e", print]);
    submit(
        &[
            &["--id", "words", "--param", "z:=1", "--param", "a:={\"y\":[],\"b\":2}"][..],
            &["--param", "m=3", "-e", print],
        ]
        .concat(),
    );
    let line = json!({ "id": "line", "script_type": "bash", "script": print });
    let line = line.to_string().replacen('{', &format!("{{\"params\":{PARAMS},"), 1);
    hero.run(&["submit", "--batch", &file("lines.jsonl", &line)]).code(0);
    let table = "{ z = 1, a = { y = [], b = 2 }, m = \"3\" }";
    let graph = format!(
        "[job.one]\nid = \"node\"\ntype = \"bash\"\nscript = '{print}'\nparams = {table}\n"
    );
    hero.run(&["submit", "--graph", &file("graph.toml", &graph)]).code(0);
    redis.set_field(&keys::job("pushed"), "params", PARAMS);
    redis.push_job("bash", "pushed", print);
    for id in ["file", "words", "line", "node", "pushed"] {
        until(&redis, id, "finished");
        assert_eq!(field(&redis, id, "output").as_deref(), Some(PARAMS), "{id}");
    }
}

#[test]
fn arguments_and_parameters_reach_warm_python() {
    let redis = Redis::start();
    let hero = Hero::on(&redis)
        .set("type.python.warm", "true")
        .set("type.python.command", "[\"/usr/bin/python3\", \"{script}\", \"fixed\"]");
    let _actor = hero.actor("python-default-1").start();
    let script =
        format!("import sys\n{ECHO_PYTHON}\nprint('ctypes' in sys.modules, sys.orig_argv[-1])");
    let both = "[[\"fixed\", \"a b\"], {\"x\": 1.5}]\n";
    let run = || exec(&hero, "python", &script, &["--param", "x:=1.5", "--", "a b"]);
    wait_until("the job is a fork", || {
        let output = run();
        assert!(output.starts_with(both), "{output}");
        output == format!("{both}True a b\n")
    });
}

#[test]
fn arguments_reach_node_and_compiled_programs() {
    let redis = Redis::start();
    let hero = Hero::on(&redis)
        .set("type.copied.engine", "\"command\"")
        .set("type.copied.extension", "\".sh\"")
        .set("type.copied.command", "[\"{binary}\", \"fixed\"]")
        .set("type.copied.compile", "[\"/bin/cp\", \"{script}\", \"{binary}\"]");
    let _copied = hero.actor("copied-default-1").start();
    assert_eq!(exec(&hero, "copied", "#!/bin/sh\necho \"$@\"", &["--", "a", "b"]), "fixed a b\n");
    if needs("node", || std::path::Path::new("/usr/bin/node").exists()) {
        let _node = hero.actor("node-default-1").start();
        let script = "console.log(process.argv.slice(2), JSON.parse(process.env.HERO_PARAMS).a)";
        assert_eq!(exec(&hero, "node", script, &["--param=a=b", "--", "c"]), "[ 'c' ] b\n");
    }
}

#[test]
fn files_of_parameters_and_variables_are_read_and_options_win() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _actor = hero.actor("bash-default-1").start();
    let file = |name: &str, text: &str| {
        let file = redis.folder().join(name);
        fs::write(&file, text).expect("written");
        file.display().to_string()
    };
    let params = file("p.json", "{\"a\": 1, \"b\": 2}");
    let env = file("a.env", "# of the report\nA=\"one\ntwo\"\nexport B=file # comment\nC='$A'\n");
    let given = ["--params", &params, "--param", "b=3", "--env-file", &env, "--env", "B=option"];
    let script = "echo \"$HERO_PARAMS $A $B $C\"";
    assert_eq!(exec(&hero, "bash", script, &given), "{\"a\":1,\"b\":\"3\"} one\ntwo option $A\n");
    let refused = |option: &str, text: &str, message: &str| {
        let path = file("bad", text);
        let run = hero.run(&["submit", "-t", "bash", "-e", "1", option, &path]);
        run.code(65).says(&format!("{path}{message}"));
    };
    refused("--env-file", "A=1\n\nB\n", ":3: `B` is not NAME=VALUE");
    refused("--env-file", "A=1\nB='x\n", ":2: the value of B has no closing '");
    refused("--env-file", "A/B=1\n", ":1: `A/B` is not a legal variable name");
    refused("--env-file", &"#".repeat((1 << 20) + 1), ": larger than the limit of 1MiB");
    refused("--params", "[1]", ": not a JSON object");
    refused("--params", "{\"a\": }", ": not JSON: ");
    hero.run(&["submit", "-t", "bash", "-e", "1", "--params", "/no/such"]).code(66);
    let nul = file("nul", "A=a\0b\n");
    hero.run(&["submit", "-t", "bash", "-e", "1", "--env-file", &nul]).code(65).says("NUL byte");
}

#[test]
fn hostile_arguments_and_parameters_are_rejected() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let submit = ["submit", "-t", "bash", "-e", "1"];
    let large = "x".repeat(70_000);
    hero.run(&[&submit[..], &["--", &large]].concat()).code(65).says("--: has 70000 bytes");
    let param = format!("a={large}");
    hero.run(&[&submit[..], &["--param", &param]].concat())
        .code(65)
        .says("--param: has 70008 bytes");
    hero.run(&[&submit[..], &["--param", "a:=x"]].concat()).code(2).says("is not JSON");
    hero.run(&[&submit[..], &["--param", "a"]].concat()).code(2).says("NAME:=JSON");
    let lines = [
        json!({ "script_type": "bash", "script": "1", "args": ["a\0b"] }),
        json!({ "script_type": "bash", "script": "1", "args": "a b" }),
        json!({ "script_type": "bash", "script": "1", "params": [1] }),
    ];
    let lines = lines.map(|line| line.to_string()).join("\n");
    hero.run_with_input(&["submit", "--batch", "-"], &lines)
        .code(65)
        .says(":1: invalid job: args has an argument with a NUL byte")
        .says(":2: invalid job: args is not a JSON array of strings")
        .says(":3: invalid job: params is not a JSON object");
    assert_eq!(redis.all("JOB").len(), 0, "nothing was submitted");
}

#[test]
fn graphs_and_copies_of_jobs_have_arguments_and_parameters() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let graph = "[defaults]\ntype = \"osis\"\nparams = { a = 1, b = 2 }\n[job.one]\nid = \"one\"\n\
                 script = \"[args, params]\"\nargs = [\"x\", \"y z\"]\n\
                 params = { b = [1.5, 2026-12-24], c = { d = true } }\n";
    fs::write(redis.folder().join("g.toml"), graph).expect("written");
    let _actor = hero.actor("osis-default-1").start();
    hero.run(&["submit", "--graph", "g.toml"]).code(0);
    until(&redis, "one", "finished");
    let expected = json!([["x", "y z"], { "a": 1, "b": [1.5, "2026-12-24"], "c": { "d": true } }]);
    let output = |id: &str| -> Value {
        serde_json::from_str(&field(&redis, id, "output").expect("an output")).expect("JSON")
    };
    assert_eq!(output("one"), expected);
    let clone = hero.run(&["job", "clone", "one"]).code(0).stdout;
    until(&redis, clone.trim(), "finished");
    assert_eq!(output(clone.trim()), expected);
    // Options add to variables and parameters, and replace all else.
    let more = ["--env", "EXTRA=1", "--param", "extra:=[2]", "--timeout", "9s"];
    let shown = hero.run(&[&["job", "clone", "one", "--dry-run"][..], &more].concat()).code(0);
    let copy: Value = serde_json::from_str(&shown.stdout).expect("JSON");
    let own: Value =
        serde_json::from_str(&hero.run(&["job", "show", "one", "--json"]).code(0).stdout)
            .expect("JSON");
    let with = |of: &Value, name: &str, value: Value| {
        let mut all = of.as_object().cloned().unwrap_or_default();
        all.insert(name.to_owned(), value);
        Value::Object(all)
    };
    assert_eq!(copy["env_vars"], with(&own["env_vars"], "EXTRA", json!("1")), "{copy}");
    assert_eq!(copy["params"], with(&own["params"], "extra", json!([2])), "{copy}");
    assert_eq!((&copy["timeout"], &copy["script"]), (&json!(9), &own["script"]), "{copy}");
    let id = copy["id"].as_str().expect("an id");
    hero.run(&["job", "show", id]).code(66);
    let shown = hero.run(&["--json", "job", "show", "one"]).code(0).stdout;
    let shown: Value = serde_json::from_str(&shown).expect("JSON");
    assert_eq!((&shown["args"], &shown["params"]["a"]), (&json!(["x", "y z"]), &json!(1)));
    let shown = hero.run(&["job", "show", "one"]).code(0).stdout;
    assert!(shown.contains("y z"), "{shown}");
}
