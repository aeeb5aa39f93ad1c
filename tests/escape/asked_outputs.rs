//! Hostile requests for the outputs of jobs: none tells anything of a job that the script may not have, and the same
//! request for a job of its own is answered.

use crate::support::{Hero, Redis, keys, until};

/// The output that nobody else may have.
const HIDDEN: &str = "hidden-from-others";
/// A name, a hostile request in Python, and the honest one. `say` writes bytes to `HERO_FD`.
const TRIES: [(&str, &str, &str); 21] = [
    ("a job of another caller", "ask('victim')", "ask('mine')"),
    ("the child of another job", "ask(os.environ['CHILD'])", "ask(own)"),
    ("the name of another job's child", "ask('kin')", "ask('mine')"),
    ("the parent of another job's child", "ask('family')", "ask('mine')"),
    ("a job of another graph, by its name", "ask('step')", "ask('mine')"),
    ("a job of another graph, by its id", "ask('step-id')", "ask(own)"),
    ("the key of another job", "ask(os.environ['KEY'])", "ask('mine')"),
    ("the beginning of an id", "ask('vict')", "ask('mine')"),
    ("a pattern", "ask('v*')", "ask('mine')"),
    ("a path to it", "ask('../job:victim')", "ask('mine')"),
    ("a list", "ask(['victim'])", "ask('mine')"),
    ("an object", "ask({'id': 'victim'})", "ask('mine')"),
    ("a quote in the id", "ask('\"victim\"')", "ask('mine')"),
    ("a part of the list of children", "ask(own + '\",\"' + own)", "ask(own)"),
    ("a line feed", "ask('victim\\n')", "ask('mine')"),
    ("an empty name", "ask('')", "ask('mine')"),
    ("a giant name", "ask('x' * 9000000)", "ask('mine')"),
    (
        "two requests in a line",
        r#"say(b'{"inputs": "mine"}{"inputs": "victim"}\n')"#,
        r#"say(b'{"inputs": "mine"}\n')"#,
    ),
    (
        "two names in an object",
        r#"say(b'{"inputs": "mine", "inputs": "victim"}\n')"#,
        r#"say(b'{"inputs": "mine"}\n')"#,
    ),
    (
        "a graph that it says to be of",
        r#"say(b'{"inputs": "step", "graph_id": "g"}\n')"#,
        r#"say(b'{"inputs": "mine"}\n')"#,
    ),
    (
        "a state in the same line",
        r#"say(b'{"inputs": "victim", "state": 1}\n')"#,
        r#"say(b'{"inputs": "mine"}\n')"#,
    ),
];

const HEAD: &str = "import hero, json, os\nfd, answers = int(os.environ['HERO_FD']), int(os.environ['HERO_FD_IN'])\n\
    def say(data):\n    while data: data = data[os.write(fd, data):]\n\
    def ask(job): say(json.dumps({'inputs': job}).encode() + b'\\n')\n\
    own = hero.submit('print(\"of-my-own\")', name='mine')\n\
    while hero.job(own)['status'] != 'finished': pass\n";
const TAIL: &str = "\nanswer = b''\nwhile not answer.endswith(b'\\n'): answer += os.read(answers, 65536)\nprint(answer.decode())";

#[test]
fn hostile_requests_for_outputs_reveal_nothing_of_jobs_of_others() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("type.python.may_submit", "[\"python\"]");
    let _supervisor = hero.supervisor().start();
    let _python = hero.actor("python-default-1").tasks(2).start();
    let print = format!("print({HIDDEN:?})");
    let ann = ["--caller", "ann", "-t", "python"];
    hero.run(&[&["exec", "--id", "victim", "-e", &print], &ann[..]].concat()).code(0);
    let family = format!("import hero\nhero.submit({print:?}, name='kin')\n{print}");
    hero.run(&[&["exec", "--id", "family", "-e", &family], &ann[..]].concat()).code(0);
    let children = redis.field(&keys::job("family"), "children").expect("a child");
    let child = children.trim_matches(['[', ']', '"']).to_owned();
    until(&redis, &child, "finished");
    let graph = format!(
        "id = \"g\"\n[job.step]\nid = \"step-id\"\ncaller = \"ann\"\ntype = \"python\"\nscript = '{print}'\n"
    );
    std::fs::write(redis.folder().join("g.toml"), graph).expect("written");
    hero.run(&["submit", "--graph", "g.toml"]).code(0);
    until(&redis, "step-id", "finished");
    let mut failures = Vec::new();
    for (what, hostile, honest) in TRIES {
        for (script, may) in [(hostile, false), (honest, true)] {
            let script = format!("{HEAD}{script}{TAIL}");
            let run = ["exec", "-t", "python", "--caller", "bob", "--env"];
            let (env, key) = (format!("CHILD={child}"), format!("KEY={}", keys::job("victim")));
            let told = hero
                .run(&[&run[..], &[&env, "--env", &key, "-e", &script]].concat())
                .code(0)
                .stdout;
            let is_told = told.starts_with("{\"ok\"") && told.contains("of-my-own");
            let is_refused = told.starts_with("{\"error\"") && !told.contains("of-my-own");
            if told.contains(HIDDEN) || (may && !is_told) || (!may && !is_refused) {
                failures.push(format!("{what}, {may}: {told:.200}"));
            }
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn graph_of_two_callers_gives_the_outputs_of_one_to_its_own_jobs_alone() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _supervisor = hero.supervisor().start();
    let _python = hero.actor("python-default-1").start();
    let asking = "import hero\ntry: hero.output(hero.job(\"first\")[\"output\"])\n\
                  except hero.Refused as why: hero.output(str(why))";
    let graph = format!(
        "[defaults]\ntype = \"python\"\n[job.first]\nid = \"first-id\"\ncaller = \"ann\"\nscript = 'print({HIDDEN:?})'\n\
         [job.between]\nafter = [\"first\"]\nscript = '1'\n\
         [job.ann]\nid = \"of-ann\"\nafter = [\"between\"]\ncaller = \"ann\"\nscript = '''\n{asking}\n'''\n\
         [job.bob]\nid = \"of-bob\"\nafter = [\"between\"]\ncaller = \"bob\"\nscript = '''\n{asking}\n'''\n"
    );
    std::fs::write(redis.folder().join("g.toml"), graph).expect("written");
    hero.run(&["submit", "--graph", "g.toml"]).code(0);
    let told = |id: &str| {
        until(&redis, id, "finished");
        redis.field(&keys::job(id), "output").unwrap_or_default()
    };
    assert_eq!(told("of-ann"), HIDDEN);
    assert!(told("of-bob").contains("is no job that this one waits for"), "{}", told("of-bob"));
}

#[test]
fn flood_of_requests_whose_answers_nobody_reads_does_not_block_the_actor() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("type.bash.may_submit", "[\"bash\"]");
    let _bash = hero.actor("bash-default-1").tasks(2).start();
    let flood = "echo '{\"submit\": {\"type\": \"bash\", \"name\": \"a\", \"script\": \"head -c 200000 /dev/zero | tr \\\\\\\\0 x\"}}' >&$HERO_FD; \
                 for n in $(seq 5000); do echo '{\"inputs\": \"a\"}'; done >&$HERO_FD; echo done";
    let done = hero.run(&["exec", "-t", "bash", "--id", "flood", "-e", flood]).code(0);
    assert_eq!(done.stdout, "done\n");
    assert_eq!(hero.run(&["exec", "-t", "bash", "-e", "echo on"]).code(0).stdout, "on\n");
}
