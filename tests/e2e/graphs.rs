//! Graphs of jobs, from their file to the end of the last job.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::{field, until};
use crate::support::{Hero, Redis, Served, keys, seed, size, wait_until};

/// Writes a file in the folder of the test.
fn file(redis: &Redis, name: &str, text: &str) -> PathBuf {
    let path = redis.folder().join(name);
    std::fs::write(&path, text).expect("writing a file");
    path
}

fn ids(json: &str) -> BTreeMap<String, String> {
    let document: Value = serde_json::from_str(json).expect("one document");
    serde_json::from_value(document["jobs"].clone()).expect("ids by name")
}

#[test]
fn graph_is_submitted_from_its_file_and_runs_in_order() {
    let redis = Redis::start();
    let hero = Hero::on(&redis)
        .set("type.bash.engine", "\"command\"")
        .set("type.bash.command", r#"["/bin/bash", "{script}"]"#)
        .set("type.bash.sandbox.write", &format!("[{:?}]", redis.folder().display().to_string()));
    file(&redis, "load.rhai", "6 * 7");
    let order = redis.folder().join("order");
    let note = |name: &str| format!("echo {name} >> {}", order.display());
    let text = format!(
        "[defaults]\ntype = \"bash\"\n\
         [job.merge]\nscript = '{}'\nafter = [\"left\", \"right\", \"before\"]\n\
         [job.left]\nscript = '{}'\nafter = [\"load\"]\n\
         [job.right]\nscript = '{}'\nafter = [\"load\"]\n\
         [job.load]\nfile = \"load.rhai\"\ntype = \"osis\"\n\
         [job.fails]\nscript = 'exit 3'\nafter = [\"merge\"]\n\
         [job.never]\nscript = '{}'\nafter = [\"fails\"]\n\
         [job.\"clean up\"]\nscript = '{}'\nafter_any = [\"never\"]\n",
        note("merge"),
        note("side"),
        note("side"),
        note("never"),
        note("clean"),
    );
    file(&redis, "g.toml", &text);
    hero.run(&["submit", "-t", "bash", "-e", "true", "--id", "before"]).code(0);
    let printed = hero.run(&["submit", "--graph", "g.toml", "--ids"]).code(0).stdout;
    let first = printed.lines().next().expect("one line a job");
    let (name, last) = first.split_once("  ").expect("a name and an id");
    assert_eq!((name, printed.lines().count()), ("clean up", 7));
    let _units = ["bash-default-1", "osis-default-1"].map(|unit| hero.actor(unit).start());
    hero.run(&["job", "wait", last]).code(0);
    let ran = std::fs::read_to_string(&order).expect("they ran");
    assert_eq!(ran.lines().collect::<Vec<_>>(), ["side", "side", "merge", "clean"]);
    assert_eq!(field(&redis, last, "name").as_deref(), Some("clean up"));
}

#[test]
fn invalid_graph_is_rejected_with_line_and_column() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let node =
        |name: &str, more: &str| format!("[job.{name}]\ntype = \"osis\"\nscript = \"1\"\n{more}\n");
    let circle = [
        node("free", ""),
        node("a", "after = [\"b\"]"),
        node("b", "after_any = [\"c\", \"free\"]"),
        node("c", "after = [\"a\"]"),
    ];
    let long = "x".repeat(70);
    let taken = node("x", "id = \"taken\"");
    hero.run(&["submit", "-t", "osis", "-e", "1", "--id", "taken"]).code(0);
    for (text, message) in [
        (circle.concat(), "g.toml:5:6: jobs wait for each other in a cycle: a → b → c → a"),
        (node("a", "after = [\"a\"]"), "g.toml:1:6: jobs wait for each other in a cycle: a → a"),
        (
            node("fetch", "") + node("count", "after = [\"fetsh\"]").as_str(),
            "g.toml:8:10: job `count` waits for `fetsh`, which is neither a job of the graph nor \
             an existing job; did you mean `fetch`?",
        ),
        (
            node("fetch", "") + node("count", &format!("after = [\"{long}\"]")).as_str(),
            "g.toml:8:10: job `count` waits for",
        ),
        (node("fetch", "") + taken.as_str(), "g.toml:5:6: x: job id taken is taken"),
        (node("a", "timeout = \"2d\""), "g.toml:1:6: a: invalid job: timeout"),
        (
            node("a", "unique_key = \"k\"") + node("b", "unique_key = \"k\"").as_str(),
            "its unique key is",
        ),
        (node("a", "delay = \"-1s\""), "g.toml:4:9: "),
        (node("a", "[job.a]"), "g.toml:4:"),
    ] {
        file(&redis, "g.toml", &text);
        hero.run(&["submit", "--graph", "g.toml"]).code(65).stdout("").says(message);
        assert_eq!(redis.all("JOB"), [keys::job("taken")], "{message}");
    }
    hero.run(&["submit", "--graph", "none.toml"]).code(66).says("no such file: none.toml");
}

#[test]
fn graph_file_of_a_hundred_megabytes_is_rejected_before_it_is_read() {
    let redis = Redis::start();
    let path = file(&redis, "large.toml", "");
    let large = std::fs::OpenOptions::new().write(true).open(path).expect("the file");
    // A sparse file.
    large.set_len(100_000_000).expect("a large file");
    Hero::on(&redis)
        .run(&["submit", "--graph", "large.toml"])
        .code(65)
        .says("larger than the limit of 32MiB");
}

/// Builds a random graph, each job after up to three others, and returns it with its edges by name.
/// Each job records that it ran.
fn random_graph(rng: &mut fastrand::Rng, jobs: usize) -> (String, Vec<(String, String)>) {
    let (mut text, mut edges) = ("[defaults]\ntype = \"osis\"\n".to_owned(), Vec::new());
    for number in 0..jobs {
        let mut after: Vec<usize> =
            (0..rng.usize(..4).min(number)).map(|_| rng.usize(..number)).collect();
        after.sort_unstable();
        after.dedup();
        let (any, strict): (Vec<_>, Vec<_>) = after.iter().partition(|_| rng.u8(..4) == 0);
        let names =
            |of: &[&usize]| of.iter().map(|n| format!("\"j{n}\"")).collect::<Vec<_>>().join(", ");
        let _ = writeln!(
            text,
            "[job.j{number}]\nscript = \"{number}\"\nafter = [{}]\nafter_any = [{}]",
            names(&strict),
            names(&any)
        );
        edges.extend(after.iter().map(|n| (format!("j{n}"), format!("j{number}"))));
    }
    (text, edges)
}

/// Checks by Redis's clock that each job started after its prerequisites ended.
fn assert_in_order(redis: &Redis, ids: &BTreeMap<String, String>, edges: &[(String, String)]) {
    let times: BTreeMap<&String, (String, String)> = ids
        .iter()
        .map(|(name, id)| {
            let time = |what| field(redis, id, what).expect("it ran");
            (name, (time("started_at"), time("finished_at")))
        })
        .collect();
    for (before, after) in edges {
        let (ended, began) = (&times[before].1, &times[after].0);
        assert!(ended <= began, "{after} began at {began}, before {before} ended at {ended}");
    }
}

fn runs_in_order(jobs: usize, kills: usize) {
    let seed = seed();
    eprintln!("SEED={seed}");
    let mut rng = fastrand::Rng::with_seed(seed);
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("actor.lease", "\"1s\"").set("job.crash_limit", "1000");
    let (text, edges) = random_graph(&mut rng, jobs);
    file(&redis, "g.toml", &text);
    let _supervisor = hero.supervisor().start();
    let done = hero.run(&["--json", "submit", "--graph", "g.toml"]).code(0);
    let ids = ids(&done.stdout);
    assert_eq!(ids.len(), jobs);
    let finished = || redis.ask::<usize>(&format!("ZCARD {}", keys::index("finished", "osis")));
    let units = ["osis-default-1", "osis-default-2"];
    let mut actors = units.map(|unit| hero.actor(unit).tasks(2).start());
    // Some more jobs end within one wait on a slow machine too.
    let until_finished = |enough: usize| {
        let mut last = finished();
        while last < enough {
            let more = format!("more than {last} of {jobs} jobs have finished");
            wait_until(&more, || finished() > last);
            last = finished();
        }
    };
    for kill in 1..=kills {
        until_finished(jobs * kill / (kills + 1));
        let place = kill % 2;
        actors[place].kill();
        actors[place] = hero.actor(units[place]).tasks(2).start();
    }
    until_finished(jobs);
    assert_in_order(&redis, &ids, &edges);
}

#[test]
fn large_random_graph_runs_in_the_order_of_its_edges() {
    runs_in_order(size(10_000), 0);
}

#[test]
fn large_random_graph_keeps_its_order_while_actors_are_killed() {
    runs_in_order(size(10_000), 10);
}

#[test]
fn graph_of_the_examples_runs_to_its_end() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _units = ["osis-default-1", "python-default-1"].map(|unit| hero.actor(unit).start());
    let graph = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/graph/report.toml");
    let ids = ids(&hero.run(&["--json", "submit", "--graph", graph]).code(0).stdout);
    hero.run(&["job", "wait", &ids["sum"]]).code(0).stdout("{\"sum\":16,\"words\":\"the\"}\n");
    hero.run(&["job", "wait", &ids["clean up"]]).code(0).stdout("done\n");
}

#[test]
fn job_is_shown_with_its_prerequisites_and_dependents() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let mut text = "[defaults]\ntype = \"osis\"\n".to_owned();
    let mut job = |name: &str, after: &str| {
        let _ = writeln!(text, "[job.{name}]\nid = \"{name}\"\nscript = \"1\"\n{after}");
    };
    job("root", "");
    job("mid", "after = [\"root\"]");
    job("end", "after = [\"mid\"]\nafter_any = [\"root\"]");
    (0..2000).for_each(|n| job(&format!("leaf-{n:04}-{}", "x".repeat(20)), "after = [\"mid\"]"));
    file(&redis, "g.toml", &text);
    hero.run(&["submit", "--graph", "g.toml"]).code(0);
    let end = hero.run(&["job", "show", "end"]).code(0).stdout;
    let tree = "\nprerequisites:\n  mid  waiting_for_prerequisites  mid\n    \
                root  dispatched  root\n  root  dispatched  root\n";
    assert!(end.contains(tree), "{end}");
    let root = hero.run(&["job", "show", "root"]).code(0).stdout;
    let tree = "\ndependents:\n  mid  waiting_for_prerequisites  mid\n    \
                end  waiting_for_prerequisites  end\n    leaf-0000-";
    assert!(root.contains(tree) && root.contains("    … and 1 991 more\n"), "{root}");
    let mid = hero.run(&["--json", "job", "show", "mid"]).code(0).stdout;
    let mid: Value = serde_json::from_str(&mid).expect("one document");
    assert_eq!(mid["dependents"].as_array().map(Vec::len), Some(1000));
    assert_eq!(mid["dependents_more"], 1001);
    assert_eq!(mid["prerequisites"], serde_json::json!(["root"]));
    hero.run(&["job", "delete", "root"]).code(0);
    let gone = hero.run(&["job", "show", "end"]).code(0).stdout;
    assert!(gone.contains("  root  gone\n"), "{gone}");
}

#[test]
fn dependent_reads_the_outputs_of_its_prerequisites_by_id_and_by_name() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let text = "[job.numbers]\ntype = \"osis\"\nscript = \"[3, 5]\"\nid = \"n1\"\n\
                [job.fails]\ntype = \"osis\"\nscript = 'throw \"no\"'\n\
                [job.rhai]\ntype = \"osis\"\nafter = [\"numbers\"]\nafter_any = [\"fails\"]\n\
                script = '`${INPUTS.numbers} ${INPUTS[\"n1\"]} ${INPUTS.fails.type_of()}`'\n\
                [job.python]\ntype = \"python\"\nafter = [\"rhai\", \"numbers\"]\nscript = '''\n\
                import json, os\n\
                inputs = json.load(open(os.environ[\"HERO_INPUTS\"]))\n\
                print(inputs[\"rhai\"], sum(json.loads(inputs[\"numbers\"])), len(inputs))\n'''\n";
    file(&redis, "g.toml", text);
    let _units = ["osis-default-1", "python-default-1"].map(|unit| hero.actor(unit).start());
    let done = hero.run(&["--json", "submit", "--graph", "g.toml"]).code(0);
    let ids = ids(&done.stdout);
    hero.run(&["job", "wait", &ids["rhai"]]).code(0).stdout("[3,5] [3,5] ()\n");
    hero.run(&["job", "wait", &ids["python"]]).code(0).stdout("[3,5] [3,5] () 8 4\n");
    let after = ["exec", "-t", "osis", "-e", "INPUTS.n1", "--after", "n1"];
    hero.run(&after).code(0).stdout("[3,5]\n");
    hero.run(&["exec", "-t", "osis", "-e", "INPUTS"]).code(0).stdout("{}\n");
}

#[test]
fn job_fails_whose_prerequisites_have_too_much_output() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("job.inputs_size_max", "\"1KiB\"");
    let _osis = hero.actor("osis-default-1").tasks(8).start();
    let large = "let x = \"\"; x.pad(600, 'x'); x";
    for id in ["a", "b"] {
        hero.run(&["exec", "-t", "osis", "-e", large, "--id", id]).code(0);
    }
    let one = ["exec", "-t", "osis", "-e", "INPUTS.a.len()", "--after", "a"];
    hero.run(&one).code(0).stdout("600\n");
    let both = ["exec", "-t", "osis", "-e", "1", "--after", "a", "--after", "b", "--retries", "3"];
    hero.run(&both)
        .code(1)
        .says("invalid job: prerequisites have more output than job.inputs_size_max allows: 1KiB");
}

#[test]
fn dependent_of_a_stopped_job_fails_with_the_name_of_that_job() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let text = "[defaults]\ntype = \"osis\"\n[job.a]\nscript = \"1\"\nid = \"a\"\n\
                [job.b]\nscript = \"2\"\nid = \"b\"\nafter = [\"a\"]\n";
    file(&redis, "g.toml", text);
    hero.run(&["submit", "--graph", "g.toml", "--ids"]).code(0).stdout("a  a\nb  b\n");
    until(&redis, "b", "waiting_for_prerequisites");
    hero.run(&["job", "stop", "a"]).code(0);
    hero.run(&["job", "wait", "b"]).code(1).says("prerequisite failed: a");
}

#[test]
fn failed_graph_is_resumed_and_its_jobs_get_their_inputs() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _sal = hero.actor("sal-default-1").start();
    let gate = redis.folder().join("gate");
    let text = format!(
        "[defaults]\ntype = \"sal\"\n[job.a]\nid = \"a\"\n\
         script = '''if !exist({gate:?}) {{ throw \"not yet\" }} \"from a\"'''\n\
         [job.b]\nid = \"b\"\nafter = [\"a\"]\nscript = \"INPUTS.a\"\n\
         [job.c]\nid = \"c\"\nafter = [\"b\"]\nscript = \"INPUTS.b + ' to c'\"\n"
    );
    file(&redis, "g.toml", &text.replace("' to c'", "` to c`"));
    hero.run(&["submit", "--graph", "g.toml"]).code(0);
    hero.run(&["job", "wait", "c"]).code(1).says("prerequisite failed: b");
    let refused = hero.run(&["job", "retry", "c"]).code(65);
    refused.says(
        "cannot retry job c: it needs job a, which failed; retry both: \
                  hero job retry --with-dependents a",
    );
    std::fs::write(&gate, "").expect("opening the gate");
    hero.run(&["job", "retry", "--with-dependents", "a"])
        .code(0)
        .stdout("a dispatched\nb waiting_for_prerequisites\nc waiting_for_prerequisites\n");
    hero.run(&["job", "wait", "c"]).code(0).stdout("from a to c\n");
}

/// Writes a graph of osis jobs, each with its name as its id.
fn osis_graph(redis: &Redis, head: &str, jobs: &[(&str, &str, &str)]) {
    let mut text = format!("{head}[defaults]\ntype = \"osis\"\n");
    for (name, script, after) in jobs {
        let _ = writeln!(text, "[job.{name}]\nid = \"{name}\"\nscript = '{script}'\n{after}");
    }
    file(redis, "g.toml", &text);
}

fn document(text: &str) -> Value {
    serde_json::from_str(text).expect("one document")
}

#[test]
fn graph_has_an_id_and_a_name_and_is_listed_shown_and_awaited() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let head = "id = \"g1\"\nname = \"nightly report\"\n";
    osis_graph(&redis, head, &[("a", "1", ""), ("b", "2", "after = [\"a\"]")]);
    let done = hero.run(&["--json", "submit", "--graph", "g.toml"]).code(0);
    assert_eq!(document(&done.stdout)["graph_id"], "g1");
    let shown = hero.run(&["graph", "show", "g1"]).code(0).stdout;
    for part in ["graph g1\n", "nightly report", "0 of 2 done, 2 waiting", "dispatched"] {
        assert!(shown.contains(part), "{part} is not in {shown}");
    }
    hero.run(&["graph", "wait", "--wait", "10ms", "g1"]).code(75).says("hero graph wait g1");
    let _osis = hero.actor("osis-default-1").start();
    hero.run(&["graph", "wait", "g1"]).code(0).stdout("2 of 2 done\n");
    let list = hero.run(&["graph", "list"]).code(0).stdout;
    assert!(list.contains("g1  nightly report  graph  finished  2 of 2 done"), "{list}");
    let shown = document(&hero.run(&["--json", "graph", "show", "g1"]).code(0).stdout);
    assert_eq!(
        (&shown["graph"]["state"], shown["graph"]["finished"].as_u64()),
        (&"finished".into(), Some(2))
    );
    assert_eq!((&shown["jobs"][1]["id"], &shown["jobs"][1]["name"]), (&"b".into(), &"b".into()));
    let job = document(&hero.run(&["--json", "job", "show", "b"]).code(0).stdout);
    assert_eq!(job["graph_id"], "g1");
    let jobs = document(&hero.run(&["--json", "job", "list"]).code(0).stdout);
    assert_eq!(jobs["jobs"][0]["graph_id"], "g1");
    hero.run(&["graph", "show", "none"]).code(66).says("no such graph or batch: none");
    osis_graph(&redis, head, &[("c", "1", "")]);
    hero.run(&["submit", "--graph", "g.toml"]).code(65).says("graph id g1 is taken");
    let named = ["submit", "--graph", "g.toml", "--id", "g2", "--name", "again"];
    hero.run(&named).code(0).says("graph g2: hero graph wait g2");
    osis_graph(&redis, "id = \"no/id\"\n", &[("a", "1", "")]);
    hero.run(&["submit", "--graph", "g.toml"]).code(65).says("g.toml:1:6: job id `no/id`");
    osis_graph(&redis, "name = 1\n", &[("a", "1", "")]);
    hero.run(&["submit", "--graph", "g.toml"]).code(65).says("g.toml:1:8: name: expected a string");
}

#[test]
fn submission_prints_the_one_id_of_a_graph_or_batch_which_its_name_stands_for_while_it_is_unique() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    file(&redis, "g.toml", "[job.a]\ntype = \"osis\"\nscript = \"1\"\n");
    let line = "{\"script_type\":\"osis\",\"script\":\"1\"}\n";
    file(&redis, "b.jsonl", &line.repeat(3));
    let one_id = |args: &[&str]| {
        let printed = hero.run(&[&["submit"], args].concat()).code(0).stdout;
        let id = printed.strip_suffix('\n').expect("a line").to_owned();
        assert!(!id.contains('\n'), "{printed}");
        id
    };
    let graph = one_id(&["--graph", "g.toml", "--name", "the night"]);
    let batch = one_id(&["--batch", "b.jsonl", "--name", "b"]);
    let whole = one_id(&["--batch", "b.jsonl", "--all-or-none"]);
    let _actor = hero.actor("osis-default-1").start();
    for id in [&graph, &batch, &whole] {
        hero.run(&["graph", "wait", id]).code(0);
    }
    for (name, id) in [("the night", &graph), ("b", &batch)] {
        let shown = hero.run(&["graph", "show", name]).code(0).stdout;
        assert!(shown.contains(id.as_str()), "{shown}");
    }
    one_id(&["--batch", "b.jsonl", "--name", "b"]);
    hero.run(&["graph", "show", "b"])
        .code(65)
        .says("several graphs have the name or the id b")
        .says(&batch);
    hero.run(&["graph", "show", "no such name"]).code(65);
}

#[test]
fn failed_graph_is_retried_stopped_and_deleted_as_a_whole() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let sal = hero.actor("sal-default-1").start();
    let gate = redis.folder().join("gate");
    let text = format!(
        "id = \"g\"\n[defaults]\ntype = \"sal\"\n[job.a]\nid = \"a\"\nscript = \"1\"\n\
         [job.b]\nid = \"b\"\nafter = [\"a\"]\n\
         script = '''if !exist({gate:?}) {{ throw \"not yet\" }} 2'''\n\
         [job.c]\nid = \"c\"\nafter = [\"b\"]\nscript = \"INPUTS.b\"\n"
    );
    file(&redis, "g.toml", &text);
    hero.run(&["submit", "--graph", "g.toml"]).code(0);
    let waited = hero.run(&["graph", "wait", "g"]).code(1).stdout("1 of 3 done, 2 failed\n");
    waited.says("graph g failed: hero graph show g");
    let failed = hero.run(&["graph", "show", "--outcome", "failed", "g"]).code(0).stdout;
    assert!(failed.contains("not yet") && failed.contains("prerequisite failed: b"), "{failed}");
    assert!(!failed.contains("finished"), "{failed}");
    std::fs::write(&gate, "").expect("opening the gate");
    hero.run(&["graph", "retry", "g"]).code(0).stdout("2 jobs retried\n");
    hero.run(&["graph", "wait", "g"]).code(0).stdout("3 of 3 done\n");
    hero.run(&["graph", "retry", "g"]).code(0).stdout("0 jobs retried\n");
    drop(sal);
    hero.run(&["job", "retry", "a", "b", "c"]).code(0);
    hero.run(&["graph", "stop", "g"]).code(0).stdout("3 jobs stopped\n");
    let waited = hero.run(&["graph", "wait", "g"]).code(1).stdout("0 of 3 done, 3 cancelled\n");
    waited.says("graph g cancelled");
    hero.run(&["graph", "delete", "g"]).code(0).stdout("3 jobs deleted\n");
    hero.run(&["graph", "show", "g"]).code(66);
    assert!(redis.all("JOB").is_empty());
}

#[test]
fn graph_is_not_deleted_while_a_job_of_it_runs() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _osis = hero.actor("osis-default-1").start();
    osis_graph(&redis, "id = \"g\"\n", &[("a", "loop { }", ""), ("b", "1", "after = [\"a\"]")]);
    hero.run(&["submit", "--graph", "g.toml"]).code(0);
    until(&redis, "a", "started");
    hero.run(&["graph", "delete", "g"]).code(65).says("its job a runs; stop it first");
    hero.run(&["graph", "stop", "g"]).code(0).stdout("1 job stopped, 1 told to stop\n");
    hero.run(&["graph", "wait", "g"]).code(1).stdout("0 of 2 done, 2 cancelled\n");
    hero.run(&["graph", "delete", "g"]).code(0).stdout("2 jobs deleted\n");
}

#[test]
fn callbacks_of_a_graph_get_its_counts_and_start_again_after_a_retry() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _units = ["sal-default-1", "osis-default-1"].map(|unit| hero.actor(unit).start());
    let gate = redis.folder().join("gate");
    let text = format!(
        "id = \"g\"\nname = \"night\"\n[defaults]\ntype = \"osis\"\nretries = 0\n\
         [job.a]\nscript = \"1\"\n[job.b]\nafter = [\"a\"]\ntype = \"sal\"\n\
         script = '''if !exist({gate:?}) {{ throw \"not yet\" }} 2'''\n\
         [on_success]\nscript = '`${{ENV.HERO_GRAPH_NAME}}: ${{ENV.HERO_GRAPH_FINISHED}} done`'\n\
         [on_failure]\nname = \"tell\"\n\
         script = '`${{ENV.HERO_GRAPH_ID}} ${{ENV.HERO_GRAPH_STATE}}, ${{ENV.HERO_GRAPH_FAILED}} failed`'\n"
    );
    file(&redis, "g.toml", &text);
    hero.run(&["submit", "--graph", "g.toml"]).code(0);
    let called = |name: &str| {
        let mut found = None;
        wait_until(&format!("{name} was started"), || {
            let shown = document(&hero.run(&["--json", "graph", "show", "g"]).code(0).stdout);
            found = shown["graph"]["callbacks"][name].as_str().map(str::to_owned);
            found.is_some()
        });
        found.expect("it was started")
    };
    hero.run(&["job", "wait", &called("on_failure")]).code(0).stdout("g failed, 1 failed\n");
    assert_eq!(field(&redis, &called("on_failure"), "name").as_deref(), Some("tell"));
    std::fs::write(&gate, "").expect("opening the gate");
    hero.run(&["graph", "retry", "g"]).code(0);
    let done = called("on_success");
    hero.run(&["job", "wait", &done]).code(0).stdout("night: 2 done\n");
    assert_eq!(field(&redis, &done, "name").as_deref(), Some("on_success of g"));
    let shown = hero.run(&["graph", "show", "g"]).code(0).stdout;
    assert!(shown.contains(&format!("on_success {done} finished\n")), "{shown}");
    let json = hero.run(&["--json", "graph", "show", "g"]).code(0).stdout;
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["graph"]["callbacks"]["on_success"], done.as_str(), "{json}");
    let job = serde_json::json!({ "callback": "on_success", "id": done, "status": "finished" });
    assert_eq!(json["graph"]["callback_jobs"][1], job, "{json}");
    let waited = hero.run(&["graph", "wait", "g"]).code(0);
    waited.says(&format!("hero: on_success: job {done} finished: hero job wait {done}"));
    hero.run(&["graph", "delete", "g"]).code(0);
}

#[test]
fn callback_is_started_by_its_graph_alone_and_its_mistakes_are_named() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let job = "[job.a]\ntype = \"osis\"\nscript = \"1\"\n";
    for (text, message) in [
        (
            "[on_end]\ntype = \"osis\"\nscript = \"1\"\nafter = [\"a\"]\n",
            "g.toml:7:9: on_end.after: the end of its graph",
        ),
        ("[on_end]\ntype = \"osis\"\n", "g.toml:4:2: on_end: needs one of script, file and uses"),
        (
            "[on_ende]\ntype = \"osis\"\n",
            "g.toml:4:2: unknown key `on_ende`; did you mean `on_end`?",
        ),
        (
            "[on_end]\ntype = \"osis\"\nscript = \"1\"\ntimeout = \"99d\"\n",
            "g.toml:4:2: on_end: invalid job: timeout",
        ),
    ] {
        file(&redis, "g.toml", &format!("{job}{text}"));
        hero.run(&["submit", "--graph", "g.toml"]).code(65).says(message);
        assert!(redis.all("JOB").is_empty(), "{message}");
    }
}

#[test]
fn graph_is_checked_without_being_submitted_and_without_redis() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let check = ["submit", "--check", "--graph", "g.toml"];
    let job = |name: &str, script: &str, after: &str| {
        format!("[job.{name}]\ntype = \"osis\"\nscript = '{script}'\nafter = [{after}]\n")
    };
    file(&redis, "g.toml", &[job("a", "1", ""), job("b", "INPUTS.a", "\"a\"")].concat());
    hero.run(&check).code(0).stdout("2 jobs: no mistake found; jobs and published scripts outside of the file are not checked\n");
    let named = hero.run(&["--json", "submit", "--check", "--graph", "g.toml"]).code(0);
    assert_eq!(document(&named.stdout)["jobs"], 2);
    assert!(redis.all("JOB").is_empty() && redis.all("GRAPH").is_empty());
    for (text, message) in [
        (
            [job("a", "1", "\"b\""), job("b", "1", "\"a\"")].concat(),
            "g.toml:1:6: jobs wait for each other",
        ),
        ([job("a", "1 +", ""), job("b", "nothing()", "")].concat(), "a:1:"),
        (job("a", "1 +", "") + "[on_end]\ntype = \"osis\"\nscript = \"2 +\"\n", "on_end:1:"),
    ] {
        file(&redis, "g.toml", &text);
        hero.run(&check).code(65).says(message);
    }
}

#[test]
fn object_is_passed_on_from_osis_to_python_and_back() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _units = ["osis-default-1", "python-default-1"].map(|unit| hero.actor(unit).start());
    let text = "id = \"g\"\n[job.one]\ntype = \"osis\"\n\
                script = '#{name: \"web\", ports: [80, 443], on: true}'\n\
                [job.two]\ntype = \"python\"\nafter = [\"one\"]\nscript = '''\n\
                import json, os\n\
                one = json.loads(json.load(open(os.environ[\"HERO_INPUTS\"]))[\"one\"])\n\
                one[\"ports\"].append(8080)\nprint(json.dumps(one))\n'''\n\
                [job.three]\nid = \"three\"\ntype = \"osis\"\nafter = [\"two\"]\n\
                script = 'let two = json_parse(INPUTS.two); two.sum = two.ports.reduce(|a, b| a + b, 0); \
                to_json(two)'\n";
    file(&redis, "g.toml", text);
    hero.run(&["submit", "--graph", "g.toml"]).code(0);
    hero.run(&["graph", "wait", "g"]).code(0).stdout("3 of 3 done\n");
    let done = hero.run(&["job", "output", "three"]).code(0).stdout;
    let three = document(&done);
    assert_eq!(
        three,
        serde_json::json!({ "name": "web", "ports": [80, 443, 8080], "on": true, "sum": 8603 })
    );
}

#[test]
fn object_goes_from_job_to_job_between_languages() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let graph = "[job.orders]\ntype = \"osis\"\nscript = '#{ total: 3, names: [`ann`, `bob`] }'\n\
                 [job.text]\ntype = \"bash\"\nscript = 'echo no json: {'\n\
                 [job.report]\ntype = \"python\"\nafter = [\"orders\", \"text\"]\nscript = '''\n\
                 import hero, os\norders = hero.result('orders')\n\
                 assert hero.inputs == {'orders': orders, 'text': 'no json: {'}, hero.inputs\n\
                 by_id = [name for name in __import__('json').load(open(os.environ['HERO_INPUTS']))]\n\
                 assert len(by_id) == 4 and all(name in hero.inputs or hero.inputs[name] for name in by_id)\n\
                 assert os.listdir('.') == ['script.py'], os.listdir('.')\n\
                 hero.output({'sum': orders['total'] + 1, 'who': orders['names'], 'text': hero.result('text')})\n\
                 '''\n\
                 [job.end]\nid = \"end\"\ntype = \"osis\"\nafter = [\"report\"]\n\
                 script = 'let r = result(\"report\"); `${r.sum} ${r.who[1]} ${r.text}`'\n";
    file(&redis, "g.toml", graph);
    let _units =
        ["osis", "bash", "python"].map(|of| hero.actor(&format!("{of}-default-1")).start());
    hero.run(&["submit", "--graph", "g.toml"]).code(0);
    hero.run(&["job", "wait", "end"]).code(0);
    let output = field(&redis, "end", "output").expect("it finished");
    assert_eq!(output.trim_end(), "4 bob no json: {");
}

#[test]
fn callback_that_runs_again_reads_no_later_job_or_graph_with_the_id_of_its_own() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _bash = hero.actor("bash-default-1").start();
    let graph = json!({
        "id": "own",
        "jobs": [{ "name": "a", "job": { "id": "member", "script_type": "bash", "script": "echo first" } }],
        "on_end": { "script_type": "bash", "script": "cat \"${HERO_INPUTS:-/dev/null}\"" },
    });
    let site = Served::on(&redis);
    site.call("graph.submit", &graph);
    site.call("graph.wait", &json!({ "id": "own" }));
    let of_graph = || {
        let shown = hero.run(&["--json", "graph", "show", "own"]).code(0).stdout;
        serde_json::from_str::<Value>(&shown).expect("JSON")["graph"]["callbacks"].clone()
    };
    wait_until("the callback has started", || of_graph()["on_end"].is_string());
    let callback = of_graph()["on_end"].as_str().expect("an id").to_owned();
    let ran = || hero.run(&["job", "wait", &callback]).code(0).stdout;
    assert!(ran().contains("first"));
    hero.run(&["job", "delete", "member"]).code(0);
    hero.run(&["exec", "-t", "bash", "--id", "member", "-e", "echo SECRET"]).code(0);
    hero.run(&["job", "retry", &callback]).code(0);
    let again = ran();
    assert!(again.contains("own") && !again.contains("SECRET"), "{again}");
    hero.run(&["graph", "delete", "own"]).code(0);
    let later = json!({ "id": "own", "jobs": [{ "name": "b", "job": { "script_type": "bash", "script": "echo SECRET" } }] });
    site.call("graph.submit", &later);
    site.call("graph.wait", &json!({ "id": "own" }));
    hero.run(&["job", "retry", &callback]).code(0);
    let again = ran();
    assert!(!again.contains("SECRET"), "{again}");
}
