//! Every method that names no job and no graph, called with six tokens on the caller's own things and on another's: a new method
//! without a row fails. No answer tells or changes another's things. `matrix.rs` has the methods that name one.

use std::collections::{BTreeMap, BTreeSet};

use hero::rpc::code;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::discover::committed;
use super::{Api, matrix, tokens};
use crate::support::keys;

/// The thing that a call names.
#[derive(Clone, Copy, PartialEq)]
enum Thing {
    /// Nothing that is stored: the call names a caller, a type, a group and a context.
    None,
    /// A job that has finished.
    Ended,
    /// A graph of one job.
    Graph,
}

/// A method, its parameters, and its answers to the six tokens for a thing of the caller and one of another: `+` a
/// result, `-` not permitted, `0` not found, `!` another error.
struct Row(&'static str, Thing, fn(&Named) -> Value, &'static str, &'static str);

/// The things that a call names.
struct Named {
    id: String,
    is_own: bool,
}

impl Named {
    fn pick(&self, own: &'static str, other: &'static str) -> &'static str {
        if self.is_own { own } else { other }
    }

    /// The settings of a job.
    fn job(&self) -> Value {
        json!({
            "script": self.pick("\"mine\"", "\"hush\""),
            "name": self.pick("mine", "hush"),
            "script_type": self.pick("osis", "other"),
            "group": self.pick("io", "far"),
            "context_id": self.pick("work", "home"),
            "caller_id": self.pick("ann", "bob"),
        })
    }

    fn queue(&self) -> Value {
        let queue = self.pick("type:osis:group:io:inst:7", "type:other:group:far:inst:7");
        json!({ "queue": queue, "force": true })
    }

    fn actor(&self) -> Value {
        json!([self.pick("osis-io-7", "other-far-7")])
    }
}

fn machine(of: &Named) -> Value {
    json!([of.pick("web1", "web2")])
}

fn nothing(_: &Named) -> Value {
    Value::Null
}

fn job(of: &Named) -> Value {
    json!({ "job": of.job() })
}

fn cron(of: &Named) -> Value {
    json!({ "name": of.pick("own", "foreign") })
}

fn yes(_: &Named) -> Value {
    json!({ "yes": true })
}

fn objects(of: &Named) -> Value {
    json!({ "type": "thing", "context": of.pick("work", "home") })
}

fn with(mut params: Value, name: &str, value: &Value) -> Value {
    params[name] = value.clone();
    params
}

// For the six tokens of `rpc.rs`.
const TABLE: &[Row] = &[
    Row("actor.drain", Thing::None, Named::actor, "--00--", "------"),
    Row("actor.list", Thing::None, nothing, "+-++++", "+-++++"),
    Row("actor.ping", Thing::None, Named::actor, "0-0000", "0---00"),
    Row("actor.resume", Thing::None, Named::actor, "--00--", "------"),
    Row("actor.stop", Thing::None, Named::actor, "--00--", "------"),
    Row("machine.drain", Thing::None, machine, "--00--", "--00--"),
    Row("machine.forget", Thing::None, machine, "--00--", "--00--"),
    Row("machine.list", Thing::None, nothing, "+-++++", "+-++++"),
    Row("machine.resume", Thing::None, machine, "--00--", "--00--"),
    Row("hook.list", Thing::None, nothing, "------", "------"),
    Row("hook.test", Thing::None, |_| json!({ "name": "a", "body": "{}" }), "------", "------"),
    Row("notify.list", Thing::None, nothing, "------", "------"),
    Row("notify.test", Thing::None, |_| json!({ "name": "ops" }), "------", "------"),
    Row("audit.list", Thing::None, nothing, "------", "------"),
    Row("batch.submit", Thing::None, |of| json!([[of.job()]]), "++++++", "++++++"),
    Row("clear_all_jobs", Thing::Ended, yes, "------", "------"),
    Row("create_job", Thing::None, job, "++---+", "------"),
    Row(
        "cron.add",
        Thing::None,
        |of| json!({ "name": "new", "schedule": "@daily", "job": of.job() }),
        "------",
        "------",
    ),
    Row(
        "cron.backfill",
        Thing::None,
        |of| with(cron(of), "since", &json!("1d")),
        "------",
        "------",
    ),
    Row("cron.delete", Thing::None, cron, "------", "------"),
    Row("cron.disable", Thing::None, cron, "------", "------"),
    Row("cron.edit", Thing::None, cron, "------", "------"),
    Row("cron.enable", Thing::None, cron, "------", "------"),
    Row("cron.get", Thing::None, cron, "+-++++", "+-0000"),
    Row("cron.history", Thing::None, cron, "+-++++", "+-0000"),
    Row("cron.list", Thing::None, nothing, "+-++++", "+-++++"),
    Row("cron.run", Thing::None, cron, "------", "------"),
    Row("dead.list", Thing::None, nothing, "+-++++", "+-++++"),
    Row("events.follow", Thing::None, nothing, "!-!!!!", "!-!!!!"),
    Row("graph.list", Thing::Graph, nothing, "+-++++", "+-++++"),
    Row(
        "graph.submit",
        Thing::None,
        |of| json!([[{ "name": "a", "job": with(of.job(), "name", &Value::Null) }]]),
        "++---+",
        "------",
    ),
    Row("job.clear", Thing::Ended, yes, "------", "------"),
    Row("job.create", Thing::None, job, "++---+", "------"),
    Row("job.errors", Thing::None, nothing, "+-++++", "+-++++"),
    Row("job.list", Thing::Ended, nothing, "+-++++", "+-++++"),
    Row("job.run", Thing::None, job, "++---+", "------"),
    Row("job.submit", Thing::None, job, "++---+", "------"),
    Row("limit.list", Thing::None, nothing, "+-----", "+-----"),
    Row("list_jobs", Thing::Ended, nothing, "+-++++", "+-++++"),
    Row(
        "object.delete",
        Thing::None,
        |of| with(objects(of), "ids", &json!(["none"])),
        "-----+",
        "------",
    ),
    Row(
        "object.find",
        Thing::None,
        |of| with(objects(of), "query", &json!("id == \"x\"")),
        "+----+",
        "+-----",
    ),
    Row("object.get", Thing::None, |of| with(objects(of), "id", &json!("x")), "+----+", "+-----"),
    Row("object.list", Thing::None, objects, "+----+", "+-----"),
    Row("object.types", Thing::None, |of| json!([of.pick("work", "home")]), "+----+", "+-----"),
    // Nobody serves the type: the wait ends at once.
    Row("play", Thing::None, |_| json!(["1", "third", 0]), "!!-!!!", "!!-!!!"),
    Row("queue.list", Thing::None, nothing, "+-++++", "+-++++"),
    Row("queue.drain", Thing::None, Named::queue, "--++--", "------"),
    Row("queue.pause", Thing::None, Named::queue, "--++--", "------"),
    Row("queue.purge", Thing::None, Named::queue, "--++--", "------"),
    Row("queue.resume", Thing::None, Named::queue, "--++--", "------"),
    Row("run_job", Thing::None, job, "++---+", "------"),
    Row("run_job_and_await_result", Thing::None, job, "++---+", "------"),
    Row(
        "script.check",
        Thing::None,
        |of| json!(["1", of.pick("osis", "other")]),
        "++++++",
        "++-+++",
    ),
    Row("script.delete", Thing::None, cron, "------", "------"),
    Row("script.functions", Thing::None, nothing, "+-++++", "+-++++"),
    Row("script.get", Thing::None, cron, "+-++++", "+-0+++"),
    Row("script.history", Thing::None, cron, "+-++++", "+-0+++"),
    Row("script.list", Thing::None, nothing, "+-++++", "+-++++"),
    Row(
        "script.publish",
        Thing::None,
        |of| json!({ "name": "new", "script": "1", "settings": { "script_type": of.pick("osis", "other") } }),
        "------",
        "------",
    ),
    Row(
        "script.rollback",
        Thing::None,
        |of| with(cron(of), "version", &json!(1)),
        "------",
        "------",
    ),
    Row("session.list", Thing::Ended, nothing, "++++++", "++++++"),
    Row("session.start", Thing::None, |of| json!([of.pick("osis", "other")]), "!!!!!!", "!!-!!!"),
    Row("stats.follow", Thing::None, nothing, "!-!!!!", "!-!!!!"),
    Row("stats.get", Thing::None, nothing, "+-+---", "+-+---"),
    Row("system.health", Thing::None, nothing, "+-++++", "+-++++"),
    Row("system.info", Thing::None, nothing, "+-++++", "+-++++"),
    Row("system.status", Thing::None, nothing, "+-++++", "+-++++"),
    Row("unsubscribe", Thing::None, |_| json!(["1"]), "!!!!!!", "!!!!!!"),
    Row("whoami", Thing::None, nothing, "++++++", "++++++"),
];

const CRON: &str = "[cron.own]\nschedule = \"@yearly\"\ntype = \"osis\"\nscript = \"1\"\ngroup = \"io\"\ncaller = \"ann\"\n\
                    context = \"work\"\n[cron.foreign]\nschedule = \"@yearly\"\ntype = \"other\"\nscript = \"1\"\n\
                    group = \"far\"\ncaller = \"bob\"\ncontext = \"home\"\n";

/// A system with periodic jobs and an object of another.
fn system() -> (Api, TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("a.toml"), CRON).expect("a file");
    let place = format!("{:?}", folder.path().to_string_lossy());
    let api = Api::with(&["osis-io-1", "other-far-1"], |hero| {
        hero.add("[type.other]\nengine = \"osis\"\n[type.third]\nengine = \"osis\"\n")
            .set("supervisor.cron_dir", &place)
    });
    for (name, script_type) in [("own", "osis"), ("foreign", "other")] {
        let settings = json!({ "script_type": script_type });
        api.call("script.publish", json!({ "name": name, "script": "1", "settings": settings }));
    }
    for is_own in [true, false] {
        let of = Named { id: String::new(), is_own };
        let script = format!(
            "osis_set(\"thing\", #{{id: \"x\", text: {}}})",
            of.job()["script"].as_str().expect("a text")
        );
        let done = api.call("job.run", json!([with(of.job(), "script", &json!(script))]));
        assert_eq!(done["status"], "finished", "{done}");
    }
    (api, folder)
}

/// Makes the thing of a call.
fn make(api: &Api, thing: Thing, of: &Named) {
    let job = with(of.job(), "id", &json!(of.id));
    match thing {
        Thing::None => {}
        Thing::Ended => assert_eq!(api.call("job.run", json!([job]))["status"], "finished"),
        Thing::Graph => {
            let node = json!({ "name": "a", "job": with(of.job(), "name", &Value::Null) });
            api.call("graph.submit", json!({ "jobs": [node], "id": of.id }));
            api.call("graph.wait", json!([of.id]));
        }
    }
}

/// Returns the jobs, graphs, queue, periodic job and objects of another caller, as Redis has them.
fn stored(api: &Api, foreign: &Named) -> Vec<Vec<String>> {
    let of_id = [keys::job(&foreign.id), keys::keys().graph(&foreign.id.parse().expect("legal"))];
    let mut all: Vec<Vec<String>> =
        of_id.iter().map(|key| api.redis.ask(&format!("HGETALL {key}"))).collect();
    for key in &mut all {
        let mut fields: Vec<String> = key.chunks(2).map(|pair| pair.join("=")).collect();
        fields.sort();
        *key = fields;
    }
    all.push(api.redis.all("PAUSED"));
    all
}

/// The codes of the errors that the document names for each method.
fn documented() -> BTreeMap<String, BTreeSet<i64>> {
    let document = committed();
    let code = |reference: &Value| {
        let name =
            reference["$ref"].as_str().expect("a reference").rsplit('/').next().expect("a name");
        document["components"]["errors"][name]["code"].as_i64().expect("a code")
    };
    let codes =
        |method: &Value| method["errors"].as_array().expect("errors").iter().map(code).collect();
    let methods = document["methods"].as_array().expect("methods");
    let name = |method: &Value| method["name"].as_str().expect("a name").to_owned();
    methods.iter().map(|method| (name(method), codes(method))).collect()
}

fn sign_of(answer: &Result<Value, super::Refusal>) -> char {
    match answer {
        Ok(_) => '+',
        Err(error) if error.code == code::NOT_PERMITTED => '-',
        Err(error) if error.code == code::NOT_FOUND => '0',
        Err(_) => '!',
    }
}

#[test]
fn each_method_has_a_row() {
    let document = committed();
    let methods = document["methods"].as_array().expect("methods");
    let names_one = matrix::methods_that_name_one();
    let all = methods.iter().filter_map(|method| method["name"].as_str());
    let all: BTreeSet<&str> = all.filter(|name| !names_one.contains(*name)).collect();
    let rows: BTreeSet<&str> = TABLE.iter().map(|row| row.0).collect();
    assert_eq!(all, rows, "add a row to TABLE, and think about what is another's");
}

#[test]
fn each_method_keeps_to_what_the_token_may_reach() {
    let ((api, _cron), documented) = (system(), documented());
    let mut wrong = Vec::new();
    for (place, (word, caller)) in tokens().into_iter().enumerate() {
        for (number, Row(method, thing, params, own, foreign)) in TABLE.iter().enumerate() {
            for (is_own, expected) in [(true, own), (false, foreign)] {
                let kind = if is_own { "own" } else { "foreign" };
                let of = Named { id: format!("{kind}-{place}-{number}"), is_own };
                make(&api, *thing, &of);
                let before = stored(&api, &of);
                let answer = api.call_as(&caller, method, params(&of));
                let (sign, expected) =
                    (sign_of(&answer), expected.chars().nth(place).expect("six"));
                let said = match &answer {
                    Ok(result) => result.to_string(),
                    Err(error) => format!("{error} {:?}", error.data),
                };
                if sign != expected {
                    wrong.push(format!(
                        "{method} of {kind} by who {word}: {sign}, not {expected}: {said}"
                    ));
                }
                if answer.is_err_and(|error| !documented[*method].contains(&i64::from(error.code)))
                {
                    wrong.push(format!(
                        "{method} has an error that its document does not name: {said}"
                    ));
                }
                // Only the token without bounds reads another's things.
                if place > 0 && said.contains("hush") {
                    wrong.push(format!("{method} of {kind} by who {word} tells: {said}"));
                }
                if !is_own && stored(&api, &of) != before {
                    wrong.push(format!("{method} by who {word} changes what is another's"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn metrics_are_for_readers_without_bounds() {
    let (api, _cron) = system();
    let expected = [200, 403, 403, 403, 403, 403];
    for ((word, caller), expected) in tokens().into_iter().zip(expected) {
        let arguments = super::of(&caller);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let bearer = format!("Bearer {}", api.site.token(&arguments));
        let headers = [("authorization", bearer.as_str())];
        let answer = api.site.tcp().get("/metrics", &headers);
        assert_eq!(answer.status, expected, "{word}: {}", answer.text());
        let page = api.site.tcp().get("/cron/foreign", &headers);
        let sees = word == "reads and submits";
        assert_eq!(page.status == 200, sees, "{word}: {}", page.status);
    }
}
