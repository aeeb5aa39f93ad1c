//! Hostile requests for children: each submits nothing, and the same request without what makes it hostile is done.

use std::collections::BTreeSet;

use hero::proto::job::{ChildName, GENERATIONS_MAX, Job, child_id};
use serde_json::{Value, json};

use crate::support::{Hero, Redis, Served, keys, request, until, wait_until};

/// A name, a hostile request in Python, and the honest one. `say` writes bytes to `HERO_FD`, `ask` submits a job and
/// reads the answer.
const TRIES: [(&str, &str, &str); 34] = [
    ("a type that is not named", "ask(type='sal')", "ask(type='python')"),
    ("a type without its group", "ask(type='bash')", "ask(type='bash', group='web')"),
    (
        "another group of the type",
        "ask(type='bash', group='root')",
        "ask(type='bash', group='web')",
    ),
    (
        "a second type in the same object",
        r#"say(b'{"submit": {"type": "python", "script": "1", "type": "sal"}}\n')"#,
        r#"say(b'{"submit": {"type": "sal", "script": "1", "type": "python"}}\n')"#,
    ),
    ("a prerequisite of others", "ask(after=['stranger'])", "ask(after=[ask()['ok']['id']])"),
    (
        "a prerequisite of others that may fail",
        "ask(after_any=['stranger'])",
        "ask(after_any=[ask()['ok']['id']])",
    ),
    (
        "itself as prerequisite, by the id that it will have",
        "ask(name='a', after=['child-' + '0' * 32])",
        "ask(name='a', after=[])",
    ),
    (
        "to replace a job",
        "ask(unique_key='k', on_duplicate='replace')",
        "ask(unique_key='k', on_duplicate='reject')",
    ),
    ("to wait for more", "ask(unique_key='k', debounce='1m')", "ask(unique_key='k')"),
    ("years of time", "ask(timeout=99999 * 86400)", "ask(timeout=60)"),
    ("the value of a secret", "ask(script=os.environ['API_TOKEN'])", "ask(script='4')"),
    (
        "the value of a secret in a parameter",
        "ask(params={'a': os.environ['API_TOKEN']})",
        "ask(params={'a': os.environ['API_USER']})",
    ),
    ("a giant script", "ask(script='#' * 300000)", "ask(script='#' * 200000)"),
    ("a giant parameter", "ask(params={'a': 'x' * 300000})", "ask(params={'a': 'x' * 1000})"),
    ("a giant name", "ask(name='x' * 5000000)", "ask(name='x')"),
    ("a long name", "ask(name='x' * 2000)", "ask(name='x' * 20)"),
    ("a line feed in its name", "ask(name='a\\nb')", "ask(name='a-b')"),
    ("an escape sequence in its name", "ask(name='a\\x1b[2J')", "ask(name='a[2J')"),
    ("an escape sequence in a tag", "ask(tags=['\\x1b[2J'])", "ask(tags=['J'])"),
    (
        "more jobs than a request may have",
        "many([{'type': 'python', 'script': '1'}] * 51)",
        "many([{'type': 'python', 'script': '1'}] * 20)",
    ),
    (
        "a list in a list",
        "many([[{'type': 'python', 'script': '1'}]])",
        "many([{'type': 'python', 'script': '1'}])",
    ),
    ("a list without jobs", "many([])", "many([{'type': 'python', 'script': '1'}])"),
    (
        "one job of a list that may not be",
        "many([{'type': 'python', 'script': '1'}, {'type': 'sal', 'script': '1'}])",
        "many([{'type': 'python', 'script': '1'}, {'type': 'python', 'script': '1'}])",
    ),
    (
        "half a line at the end",
        r#"say(b'{"submit": {"type": "python", "script": "1"}')"#,
        r#"say(b'{"submit": {"type": "python", "script": "1"}}')"#,
    ),
    ("two requests in a line", "say(line.strip() + line)", "say(line + line.replace(b'1', b'2'))"),
    (
        "a state in the same line",
        r#"say(line.replace(b'}}', b'}, "state": 1}'))"#,
        r#"say(line + b'{"state": 1}\n')"#,
    ),
    ("a zero byte", r#"say(line.replace(b'"1"', b'"\0"'))"#, "say(line)"),
    ("another encoding", "say(line.decode().encode('utf-16'))", "say(line.decode().encode())"),
    (
        "thousands of brackets",
        r#"say(line.replace(b'"1"', b'"1", "params": {"a": ' + b'[' * 5000 + b']' * 5000 + b'}'))"#,
        r#"say(line.replace(b'"1"', b'"1", "params": {"a": [[]]}'))"#,
    ),
    ("a request on standard output", "os.write(1, line)", "say(line)"),
    (
        "a request on the descriptor of answers",
        "try: os.write(int(os.environ['HERO_FD_IN']), line)\nexcept OSError: pass",
        "say(line)",
    ),
    (
        "a process that outlives the script",
        "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        time.sleep(1)\n        say(line)\n    os._exit(0)",
        "if os.fork() == 0:\n    os.setsid()\n    say(line)\n    os._exit(0)\nos.wait()",
    ),
    (
        "another process's descriptor",
        "for to in range(3, 64):\n    try: os.write(os.open(f'/proc/{os.getppid()}/fd/{to}', os.O_WRONLY), line)\n    \
         except OSError: pass",
        "os.dup2(fd, 60)\nos.write(60, line)",
    ),
    (
        "a file in the place of the descriptor",
        "os.dup2(os.open('own', os.O_CREAT | os.O_WRONLY), fd)\nsay(line)",
        "open('own', 'wb').write(line)\nsay(open('own', 'rb').read())",
    ),
];

/// Settings that a script does not have for its children: each is refused, and as a parameter means nothing.
const NOT_OF_A_CHILD: [&str; 23] = [
    "id",
    "caller",
    "caller_id",
    "context",
    "context_id",
    "parent",
    "generation",
    "children",
    "status",
    "cron",
    "graph_id",
    "graph_callback",
    "unique_scope",
    "bounds",
    "prerequisites_at",
    "message",
    "amqp_scope",
    "created_at",
    "attempt",
    "stopped_by",
    "output",
    "dependents",
    "kept_state",
];

/// The start of each script.
const HEAD: &str = "import hero, json, os, time\nfd, answers = int(os.environ['HERO_FD']), int(os.environ['HERO_FD_IN'])\n\
    line = b'{\"submit\": {\"type\": \"python\", \"script\": \"1\"}}\\n'\n\
    def say(data):\n    while data: data = data[os.write(fd, data):]\n\
    def many(jobs):\n    say(json.dumps({'submit': jobs}).encode() + b'\\n')\n    answer = b''\n\
    \x20   while not answer.endswith(b'\\n'): answer += os.read(answers, 4096)\n    return json.loads(answer)\n\
    def ask(**job): return many({'type': 'python', 'script': '1', **job})\n";

fn hero_on(redis: &Redis) -> Hero {
    Hero::on(redis).set("type.python.may_submit", "[\"python\", \"bash:web\"]")
}

/// Returns the children of a job.
fn children(redis: &Redis, id: &str) -> Vec<String> {
    let text = redis.field(&keys::job(id), "children").unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// Returns the jobs with the id of a child.
fn kin(redis: &Redis) -> usize {
    redis.keys(&keys::job("child-")).len()
}

#[test]
fn hostile_requests_for_children_submit_nothing_and_honest_ones_are_done() {
    let redis = Redis::start();
    let hero = hero_on(&redis);
    let _python = hero.actor("python-default-1").tasks(2).start();
    hero.run(&["submit", "-t", "bash", "--id", "stranger", "-e", "1"]).code(0);
    let submitted = |id: &str, script: &str| {
        let (script, before) = (format!("{HEAD}{script}"), kin(&redis));
        let exec = ["exec", "-t", "python", "--id", id, "--env", "API_TOKEN=s3cr3t", "--env"];
        hero.run(&[&exec[..], &["API_USER=annie", "-e", &script]].concat());
        let own = children(&redis, id).len();
        // Nobody else's either.
        if own == kin(&redis) - before { own } else { usize::MAX }
    };
    let fields = NOT_OF_A_CHILD.map(|name| {
        (name, format!("ask(**{{{name:?}: 'x'}})"), format!("ask(params={{{name:?}: 'x'}})"))
    });
    let tries = TRIES.map(|(what, hostile, honest)| (what, hostile.to_owned(), honest.to_owned()));
    let mut failures = Vec::new();
    for (number, (what, hostile, honest)) in tries.iter().chain(&fields).enumerate() {
        let many = submitted(&format!("hostile-{number}"), hostile);
        if many != 0 {
            failures.push(format!("{what}: {many} children"));
        }
        let many = submitted(&format!("honest-{number}"), honest);
        if !(1..=20).contains(&many) {
            failures.push(format!("control of {what}: {many} children"));
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn child_has_its_unique_key_for_its_caller_and_context_alone() {
    let redis = Redis::start();
    let hero = hero_on(&redis);
    let _python = hero.actor("python-default-1").start();
    let later = ["--at", "2100-01-01T00:00:00Z", "-t", "bash", "-e", "1"];
    let submit = |more: &[&str]| hero.run(&[&["submit"], &later[..], more].concat());
    submit(&["--id", "held", "--unique-key", "first"]).code(0);
    let script = "import hero\n\
        for key in ['first', 'second']:\n    try: hero.log(hero.submit('1', unique_key=key, at='2100-01-01T00:00:00Z'))\n\
        \x20   except hero.Refused as why: hero.log(why)";
    for caller in ["bob", "eve"] {
        let run = ["exec", "-t", "python", "--id", caller, "--caller", caller, "-e", script];
        hero.run(&run).code(0);
        let log = hero.run(&["job", "logs", caller]).stdout;
        assert_eq!(children(&redis, caller).len(), 2, "{log}");
        assert!(!log.contains("held"), "{log}");
    }
    // The key that a child took first is free for others, and its own caller's second job finds it held.
    submit(&["--id", "mine", "--unique-key", "second"]).code(0);
    assert_eq!(redis.field(&keys::job("mine"), "status").as_deref(), Some("scheduled"));
    let again = "import hero\nhero.submit('1', unique_key='second')";
    hero.run(&["exec", "-t", "python", "--id", "again", "--caller", "bob", "-e", again])
        .code(1)
        .says("holds its unique key");
}

#[test]
fn id_of_a_child_cannot_be_taken_before_its_parent_submits_it() {
    let redis = Redis::start();
    let served = Served::with(hero_on(&redis), &redis);
    let hero = &served.hero;
    let script = "import hero\nhero.submit('1', name='a')";
    hero.run(&["submit", "-t", "python", "--id", "p", "-e", script]).code(0);
    let mut parent = Job::new("p".parse().expect("legal"), "1");
    let created = redis.field(&keys::job("p"), "created_at").expect("its creation");
    parent.created_at = created.parse().ok();
    let id = child_id(&parent, &ChildName::Named("a")).to_string();
    let job = json!({ "id": id, "script": "1", "script_type": "python" });
    let files = redis.folder().join("taken");
    let graph = files.with_extension("toml");
    std::fs::write(&files, format!("{job}\n")).expect("written");
    std::fs::write(&graph, format!("[jobs.a]\nid = {id:?}\ntype = \"python\"\nscript = \"1\"\n"))
        .expect("written");
    let [files, graph] = [files, graph].map(|file| file.display().to_string());
    hero.run(&["submit", "-t", "python", "--id", "own", "-e", "1"]).code(0);
    for taking in [
        &["submit", "-t", "python", "--id", &id, "-e", "1"][..],
        &["exec", "-t", "python", "--id", &id, "-e", "1"],
        &["submit", "--batch", &files],
        &["submit", "--batch", &files, "--all-or-none"],
        &["submit", "--graph", &graph],
        &["job", "clone", "own", "--set", &format!("id={id}")],
    ] {
        let done = hero.run(taking);
        assert!(done.code != 0, "{taking:?}: {}", done.stdout);
    }
    for (method, params) in [
        ("job.submit", json!([job])),
        ("job.create", json!([job])),
        ("job.run", json!([job])),
        ("run_job", json!([job])),
        ("create_job", json!([job])),
        ("batch.submit", json!([[job], true])),
        ("batch.submit", json!([[job], false])),
    ] {
        let answer = served.unix().post("/rpc", &[], &request(method, &params)).json();
        assert!(answer["result"]["id"].is_null(), "{method}: {answer}");
        assert_eq!(redis.field(&keys::job(&id), "status"), None, "{method}: {answer}");
    }
    let body = job.to_string();
    let answer = served.unix().post("/api/v1/jobs", &[], &body);
    assert!(answer.status >= 400, "{}", answer.text());
    assert_eq!(kin(&redis), 0);
    let _python = hero.actor("python-default-1").start();
    until(&redis, &id, "finished");
    assert_eq!((children(&redis, "p"), kin(&redis)), (vec![id], 1));
}

#[test]
fn job_that_submits_itself_ends_at_the_last_generation() {
    let redis = Redis::start();
    let hero = hero_on(&redis);
    let _python = hero.actor("python-default-1").start();
    let script = "import hero\ns = hero.params['s']\nhero.submit(s, name='next', params={'s': s})";
    let param = format!("s={script}");
    hero.run(&["submit", "-t", "python", "--id", "p", "--param", &param, "-e", script]).code(0);
    let mut id = "p".to_owned();
    for generation in 1..=GENERATIONS_MAX {
        until(&redis, &id, "finished");
        id = children(&redis, &id).pop().expect("a child");
        let of = redis.field(&keys::job(&id), "generation");
        assert_eq!(of, Some(generation.to_string()));
    }
    until(&redis, &id, "error");
    assert_eq!(kin(&redis), usize::try_from(GENERATIONS_MAX).expect("small"));
}

#[test]
fn child_that_asks_for_more_than_its_type_allows_runs_not() {
    let redis = Redis::start();
    let hero = hero_on(&redis);
    let _python = hero.actor("python-default-1").tasks(2).start();
    let asks = [
        "network='all'",
        "network='80'",
        "memory='900GiB'",
        "job_memory='900GiB'",
        "secrets=['key']",
    ];
    let honest = ["network='none'", "memory='64MiB'", "cpu=1", "name='x'"];
    for (id, settings, end) in [("bad", &asks[..], "error"), ("good", &honest[..], "finished")] {
        let calls = settings.iter().map(|one| format!("hero.submit('print(\"ran\")', {one})\n"));
        let script = format!("import hero\n{}", calls.collect::<String>());
        hero.run(&["exec", "-t", "python", "--id", id, "-e", &script]).code(0);
        for (child, asked) in children(&redis, id).iter().zip(settings) {
            until(&redis, child, end);
            let ran = redis.field(&keys::job(child), "output").is_some();
            assert_eq!(ran, end == "finished", "{asked}");
        }
        assert_eq!(children(&redis, id).len(), settings.len());
    }
}

#[test]
fn flood_of_a_stopped_parent_leaves_no_child_that_goes_on() {
    let redis = Redis::start();
    let hero = hero_on(&redis).set("job.children_max", "2000");
    let _python = hero.actor("python-default-1").start();
    let flood = format!(
        "{HEAD}import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nn = 0\nwhile True:\n    n += 1\n    \
         ask(name=f'n{{n}}', at='2100-01-01T00:00:00Z')"
    );
    hero.run(&["submit", "-t", "python", "--id", "p", "-e", &flood]).code(0);
    wait_until("it has children", || children(&redis, "p").len() > 20);
    hero.run(&["job", "stop", "--children", "p"]).code(0);
    until(&redis, "p", "error");
    let all = children(&redis, "p");
    let states: BTreeSet<Option<String>> =
        all.iter().map(|id| redis.field(&keys::job(id), "status")).collect();
    assert_eq!(states, BTreeSet::from([Some("error".to_owned())]));
    assert_eq!(all.len(), kin(&redis));
}

#[test]
fn script_submits_nothing_through_the_descriptor_of_another_job() {
    let redis = Redis::start();
    let hero = hero_on(&redis);
    let _python = hero.actor("python-default-1").tasks(2).start();
    let victim = format!("{HEAD}hero.checkpoint(os.getpid())\ntime.sleep(600)");
    hero.run(&["submit", "-t", "python", "--id", "victim", "-e", &victim]).code(0);
    let process = || redis.field(&keys::job("victim"), "kept_state").unwrap_or_default();
    wait_until("the victim has told its process", || process().parse::<u32>().is_ok());
    let attack = format!(
        "{HEAD}import sys\nopened = 0\nfor number in range(64):\n    try:\n        to = os.open(f'/proc/{{sys.argv[1]}}/fd/{{number}}', \
         os.O_WRONLY)\n        os.write(to, line)\n        opened += 1\n    except OSError: pass\nsay(line)\nprint(opened)"
    );
    let told = hero.run(&["exec", "-t", "python", "--id", "a", "-e", &attack, "--", &process()]);
    let told: Value = serde_json::from_str(&told.code(0).stdout).expect("JSON");
    assert_eq!((told, children(&redis, "victim").len()), (json!(0), 0));
    assert_eq!(children(&redis, "a").len(), 1, "by its own it does");
}
