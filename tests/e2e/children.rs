//! The jobs that a running script submits.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};

use super::{field, until};
use crate::support::{Hero, Redis, Served, keys, needs, wait_until};

/// Returns an example of this folder.
fn example(name: &str) -> String {
    format!("{}/examples/children/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Returns a Hero whose types may submit jobs of their own type, and whose dead actors lose their jobs soon.
fn hero_on(redis: &Redis) -> Hero {
    let mut hero = Hero::on(redis).set("actor.lease", "\"1s\"").set("job.crash_limit", "1000");
    for kind in ["bash", "node", "python", "sal"] {
        hero = hero.set(&format!("type.{kind}.may_submit"), &format!("[\"{kind}\"]"));
    }
    hero
}

/// Returns the children of a job.
fn children(redis: &Redis, id: &str) -> Vec<String> {
    let text = field(redis, id, "children").unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// Returns the keys of all jobs.
fn jobs(redis: &Redis) -> Vec<String> {
    redis.ask(&format!("KEYS {}*", keys::job("child-")))
}

#[test]
fn child_takes_a_delay_as_a_line_of_a_batch_does() {
    let redis = Redis::start();
    let hero = hero_on(&redis);
    let _actor = hero.actor("python-default-1").start();
    let exec = |id: &str, more: &str| {
        let script = format!("import hero; hero.submit('1', type='python', name='a', {more})");
        hero.run(&["exec", "-t", "python", "--id", id, "-e", &script])
    };
    exec("p", "delay='1h'").code(0);
    let child = &children(&redis, "p")[0];
    assert_eq!(field(&redis, child, "status").as_deref(), Some("scheduled"));
    exec("q", "delay='soon'").code(1).says("delay");
    exec("r", "delay='1h', at='2030-01-01T00:00:00Z'").code(1).says("cannot be set beside `at`");
}

#[test]
fn list_of_children_that_wait_for_each_other_by_name_is_a_graph_or_nothing() {
    let redis = Redis::start();
    let hero = hero_on(&redis);
    let _actor = hero.actor("python-default-1").start();
    let exec = |id: &str, jobs: &str| {
        let script = format!("import hero\nprint(*hero.submit([{jobs}]))");
        hero.run(&["exec", "-t", "python", "--id", id, "-e", &script])
    };
    // The dependent stands first.
    let b = "dict(name='b', script='import hero; print(int(hero.inputs[\"a\"]) + 1)', after=['a'])";
    let done = exec("p", &format!("{b}, dict(name='a', script='print(41)')")).code(0);
    let ids: Vec<&str> = done.stdout.split_whitespace().collect();
    until(&redis, ids[0], "finished");
    assert_eq!(field(&redis, ids[0], "output").as_deref(), Some("42"));
    let graph = field(&redis, ids[1], "graph_id").expect("a graph");
    hero.run(&["graph", "wait", &graph]).code(0).stdout("2 of 2 done\n");
    for (id, jobs, why) in [
        (
            "q",
            format!("dict(name='a', script='1'), {}", b.replace("['a']", "['c']")),
            "child 2: it cannot wait for job c",
        ),
        ("r", format!("{b}, dict(name='a', script='1', after=['b'])"), "waits for itself"),
    ] {
        exec(id, &jobs).code(1).says(why);
        assert_eq!(field(&redis, id, "children"), None, "none is submitted");
    }
}

#[test]
fn script_submits_children_of_its_caller_in_every_language() {
    let redis = Redis::start();
    let hero = hero_on(&redis);
    let has_node = needs("node", || Path::new("/usr/bin/node").exists());
    for (kind, script, is_there) in
        [("bash", "crawl.sh", true), ("node", "crawl.js", has_node), ("sal", "crawl.rhai", true)]
    {
        if !is_there {
            continue;
        }
        let _actor = hero.actor(&format!("{kind}-default-1")).start();
        let script = example(script);
        let exec = ["exec", "-t", kind, "--id", kind, "--caller", "ann", "--context", "c", &script];
        let done = hero.run(&exec).code(0);
        let said = hero.run(&["job", "logs", kind]).stdout + done.stdout.as_str();
        let ids = children(&redis, kind);
        assert_eq!(ids.len(), 3, "{said}");
        for id in &ids {
            assert!(said.contains(&format!("{{\"ok\":{{\"id\":\"{id}\"}}}}")), "{said}");
            until(&redis, id, "finished");
            let of = |name: &str| field(&redis, id, name).unwrap_or_default();
            assert_eq!((of("parent"), of("generation")), (kind.to_owned(), "1".to_owned()));
            assert_eq!((of("caller_id"), of("context_id")), ("ann".to_owned(), "c".to_owned()));
        }
        let shown = hero.run(&["job", "show", kind]).code(0).stdout;
        assert!(ids.iter().all(|id| shown.contains(id)), "{shown}");
        let child = hero.run(&["job", "show", &ids[0]]).code(0).stdout;
        assert!(child.contains("parent") && child.contains(kind), "{child}");
        let listed = hero.run(&["job", "list", "--parent", kind]).code(0).stdout;
        let listed: BTreeSet<&str> =
            listed.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
        assert_eq!(listed, ids.iter().map(String::as_str).collect());
    }
}

#[test]
fn pages_of_parent_and_child_name_each_other() {
    let redis = Redis::start();
    let api = Served::with(hero_on(&redis), &redis);
    let _actor = api.hero.actor("python-default-1").start();
    let script = "import hero; hero.submit('1', name='page', at='2100-01-01T00:00:00Z')";
    api.hero.run(&["exec", "-t", "python", "--id", "p", "-e", script]).code(0);
    let child = &children(&redis, "p")[0];
    let page = |path: &str| api.unix().get(path, &[("accept", "text/html")]).text();
    assert!(page("/jobs/p").contains(&format!("href=\"/jobs/{child}\"")));
    let of_child = page(&format!("/jobs/{child}"));
    assert!(
        of_child.contains("Submitted by the script of") && of_child.contains("href=\"/jobs/p\"")
    );
    let listed = page("/jobs?parent=p");
    assert!(listed.contains(child.as_str()) && !listed.contains("href=\"/jobs/p\""), "{listed}");
    let found = api.call("job.list", &json!({ "parent": "p" }));
    assert_eq!(found["jobs"][0]["id"], json!(child), "{found}");
    assert_eq!(api.call("job.list", &json!({ "parent": child }))["jobs"], json!([]));
}

#[test]
fn crawl_submits_each_page_once_through_deaths_of_its_actor() {
    let redis = Redis::start();
    let hero = hero_on(&redis);
    let _supervisor = hero.supervisor().start();
    let mut actor = hero.actor("python-default-1").start();
    let script = example("crawl.py");
    hero.run(&["submit", "-t", "python", "--id", "c", "--param", "pages=300", &script]).code(0);
    for goal in [30, 120] {
        wait_until("some pages are submitted", || children(&redis, "c").len() >= goal);
        actor.kill();
        actor = hero.actor("python-default-1").start();
    }
    until(&redis, "c", "finished");
    let ids = children(&redis, "c");
    let distinct: BTreeSet<&String> = ids.iter().collect();
    assert_eq!((ids.len(), distinct.len(), jobs(&redis).len()), (300, 300, 300));
    assert_eq!(field(&redis, "c", "crashes").as_deref(), Some("2"), "two actors died in between");
    let output: Value =
        serde_json::from_str(&hero.run(&["job", "output", "c"]).code(0).stdout).expect("JSON");
    assert_eq!(output, json!(ids), "the answers of the last attempt are the same jobs");
    let names: BTreeSet<String> = ids.iter().filter_map(|id| field(&redis, id, "name")).collect();
    assert_eq!(names.len(), 300);
}

#[test]
fn second_attempt_that_counts_its_children_gets_the_same_ones() {
    let redis = Redis::start();
    let hero = hero_on(&redis).set("job.retry_backoff", "\"1ms\"");
    let _supervisor = hero.supervisor().start();
    let _actor = hero.actor("python-default-1").start();
    let script = "import hero, os\n\
                  ids = [hero.submit('1'), hero.submit('2')] + hero.submit([{'script': '3'}])\n\
                  hero.log(ids)\n\
                  if os.environ['HERO_ATTEMPT'] == '1': raise SystemExit(1)\n\
                  hero.output(ids)";
    hero.run(&["exec", "-t", "python", "--id", "p", "--retries", "1", "-e", script]).code(0);
    let ids = children(&redis, "p");
    assert_eq!((ids.len(), jobs(&redis).len()), (3, 3));
    let output: Value =
        serde_json::from_str(&hero.run(&["job", "output", "p"]).code(0).stdout).expect("JSON");
    assert_eq!(output, json!(ids));
}

/// Runs a script of Python that submits jobs one by one, and returns why each was refused; empty where it was not.
fn refusals(hero: &Hero, id: &str, jobs: &str) -> Vec<String> {
    let script = format!(
        "import hero\nwhy = []\nfor job in {jobs}:\n\
         \x20   try:\n\x20       hero.submit([job])\n\x20       why.append('')\n\
         \x20   except hero.Refused as error:\n\x20       why.append(str(error))\n\
         hero.output(why)"
    );
    let run = ["exec", "-t", "python", "--id", id, "--env", "API_TOKEN=s3cr3t", "-e", &script];
    serde_json::from_str(&hero.run(&run).code(0).stdout).expect("JSON")
}

#[test]
fn child_that_the_configuration_does_not_name_or_that_breaks_a_bound_is_refused() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("job.children_max", "2");
    {
        let _actor = hero.actor("python-default-1").start();
        let why = refusals(&hero, "none", "[{'script': '1'}]");
        assert!(
            why[0].contains("may not submit jobs of python: [type.python] may_submit"),
            "{why:?}"
        );
    }
    let hero = hero.set("type.python.may_submit", "[\"python\", \"bash:web\"]");
    let _actor = hero.actor("python-default-1").start();
    hero.run(&["submit", "-t", "python", "--id", "other", "-e", "1"]).code(0);
    let why = refusals(
        &hero,
        "p",
        "[{'script': '1', 'type': 'sal'}, {'script': '1', 'type': 'bash'}, {'script': '1', 'caller': 'root'}, \
         {'script': '1', 'id': 'mine'}, {'script': 's3cr3t'}, {'script': '1', 'after': ['other']}, \
         {'script': '1', 'timeout': '9999d'}, {'script': '1', 'parent': 'other'}, \
         {'script': '1', 'type': 'bash', 'group': 'web'}, {'script': '2'}, {'script': '3'}]",
    );
    for (place, part) in [
        (0, "may not submit jobs of sal"),
        (1, "may not submit jobs of bash"),
        (2, "caller is the one of the job"),
        (3, "id follows from the name"),
        (4, "the value of a secret"),
        (5, "it cannot wait for job other"),
        (6, "timeout"),
        (7, "written by hero alone"),
        (10, "the job has 2 children"),
    ] {
        assert!(why[place].contains(part), "{place}: {why:?}");
    }
    assert_eq!((why[8].as_str(), why[9].as_str()), ("", ""), "{why:?}");
    assert_eq!((children(&redis, "p").len(), jobs(&redis).len()), (2, 2));
}

#[test]
fn stop_of_a_job_leaves_its_children_unless_it_names_them() {
    let redis = Redis::start();
    let hero = hero_on(&redis);
    let _actor = hero.actor("python-default-1").start();
    let script = "import hero, time\n\
                  for n in range(3): hero.submit('1', name=f'n{n}', at='2100-01-01T00:00:00Z')\n\
                  time.sleep(1000)";
    let state = |id: &String| field(&redis, id, "status").unwrap_or_default();
    for (id, options) in
        [("a", &["job", "stop", "a"][..]), ("b", &["job", "stop", "--children", "b"])]
    {
        hero.run(&["submit", "-t", "python", "--timeout", "1h", "--id", id, "-e", script]).code(0);
        wait_until("it has its children", || children(&redis, id).len() == 3);
        hero.run(options).code(0);
        until(&redis, id, "error");
        let states: BTreeSet<String> = children(&redis, id).iter().map(state).collect();
        let wanted = if id == "a" { "scheduled" } else { "error" };
        assert_eq!(states, BTreeSet::from([wanted.to_owned()]), "{id}");
    }
}

#[test]
fn stop_with_children_leaves_a_job_that_a_program_wrote_among_them() {
    let redis = Redis::start();
    let served = Served::on(&redis);
    for id in ["forged", "victim", "other"] {
        let job = json!({ "id": id, "script": "1", "script_type": "osis", "run_at": "2100-01-01T00:00:00Z" });
        served.call("job.submit", &json!([job]));
    }
    redis.set_field(&keys::job("forged"), "children", "[\"victim\",\"other\"]");
    redis.set_field(&keys::job("other"), "parent", "victim");
    served.hero.run(&["job", "stop", "--children", "forged"]).code(0);
    served.call("job.stop", &json!({ "id": "forged", "children": true }));
    let state = |id: &str| field(&redis, id, "status");
    assert_eq!(state("forged").as_deref(), Some("error"));
    for id in ["victim", "other"] {
        assert_eq!(state(id).as_deref(), Some("scheduled"), "{id}");
    }
}

#[test]
fn submitter_outside_of_jobs_cannot_take_the_id_of_a_child() {
    let redis = Redis::start();
    let hero = hero_on(&redis);
    let id = format!("child-{}", "0".repeat(32));
    let refused = hero.run(&["submit", "-t", "bash", "--id", &id, "-e", "1"]);
    assert!(
        refused.stderr.contains("belongs to the jobs that scripts submit"),
        "{}",
        refused.stderr
    );
    assert_eq!(jobs(&redis).len(), 0);
}

#[test]
fn script_that_never_reads_the_answers_does_not_block_its_actor() {
    let redis = Redis::start();
    let hero = hero_on(&redis);
    let _actor = hero.actor("bash-default-1").start();
    let flood = "for n in $(seq 5000); do echo '{\"submit\": {\"type\": \"bash\", \"name\": \"n'$n'\", \
                 \"script\": \"echo 1\"}}'; done >&$HERO_FD; echo done";
    let done = hero.run(&["exec", "-t", "bash", "--id", "flood", "-e", flood]).code(0);
    assert_eq!(done.stdout, "done\n");
    let number = children(&redis, "flood").len();
    assert!((1..=1000).contains(&number), "{number}");
    assert_eq!(hero.run(&["exec", "-t", "bash", "-e", "echo on"]).code(0).stdout, "on\n");
}

#[test]
fn child_of_a_published_script_has_its_text_settings_and_checked_parameters() {
    const PAGE: &str = "# /// hero\n# type = \"python\"\n# priority = 2\n# timeout = \"77s\"\n\
        # [params.page]\n# type = \"integer\"\n# required = true\n# ///\nimport hero; print(hero.params['page'])\n";
    let redis = Redis::start();
    let hero = hero_on(&redis).set("job.retry_backoff", "\"1ms\"");
    let _supervisor = hero.supervisor().start();
    let _actor = hero.actor("python-default-1").start();
    let file = redis.folder().join("page.py");
    let publish = |text: &str| {
        std::fs::write(&file, text).expect("written");
        hero.run(&["script", "publish", "page", file.to_str().expect("text")]).code(0);
    };
    publish(PAGE);
    hero.run(&["script", "publish", "other", "-t", "bash", "-e", "true"]).code(0);
    let script = "import hero\n\
        hero.submit(uses='page', name='a', params={'page': 1})\n\
        hero.submit([{'uses': 'page@1', 'params': {'page': n}} for n in (2, 3)])\n\
        why = []\n\
        for job in ({'uses': 'page', 'params': {'page': 'x'}}, {'uses': 'page', 'params': {}}, {'uses': 'pge'},\n\
        \x20           {'uses': 'page@9', 'params': {'page': 1}}, {'uses': 'other'}, {'uses': 'page', 'script_digest': '0' * 64},\n\
        \x20           {'uses': 'page', 'type': 'sal', 'params': {'page': 1}}):\n\
        \x20   try: hero.submit(**job)\n\
        \x20   except hero.Refused as error: why.append(str(error))\n\
        hero.output(why)";
    hero.run(&["exec", "-t", "python", "--id", "p", "-e", script]).code(0);
    let why: Vec<String> =
        serde_json::from_str(&hero.run(&["job", "output", "p"]).code(0).stdout).expect("JSON");
    for (place, said) in [
        "params of page@1: page: \"x\" is text: expected integer",
        "params of page@1: page: is missing; it is required",
        "uses `pge` names no published script, or none of a type that may_submit names",
        "uses `page@9` names no published script, or none of a type that may_submit names",
        "uses `other` names no published script, or none of a type that may_submit names",
        "is not the digest of page@1",
        "script_type `sal` is not the type of page@1, which is python",
    ]
    .iter()
    .enumerate()
    {
        assert!(why[place].contains(said), "{place}: {why:?}");
    }
    let ids = children(&redis, "p");
    assert_eq!(ids.len(), 3);
    for (place, id) in ids.iter().enumerate() {
        until(&redis, id, "finished");
        let of = |name: &str| field(&redis, id, name).unwrap_or_default();
        assert_eq!((of("uses"), of("script_digest").len()), ("page@1".to_owned(), 64));
        assert_eq!((of("timeout"), of("priority")), ("77".to_owned(), "2".to_owned()));
        assert_eq!(of("output"), format!("{}", place + 1));
        let name = if place == 0 { Some("a".to_owned()) } else { None };
        assert_eq!(field(&redis, id, "name"), name, "the name that its parent gave it");
    }
    // The latest version is the one at the submission; a further attempt gets the same child.
    publish(&PAGE.replace("print(", "print('page', "));
    let twice = "import hero, os\n\
        id = hero.submit(uses='page', name='b', params={'page': 4})\n\
        hero.log(id)\n\
        if os.environ['HERO_ATTEMPT'] == '1': raise SystemExit(1)";
    hero.run(&["exec", "-t", "python", "--id", "q", "--retries", "1", "-e", twice]).code(0);
    assert_eq!(children(&redis, "q").len(), 1);
    assert_eq!(field(&redis, &children(&redis, "q")[0], "uses").as_deref(), Some("page@2"));
}
