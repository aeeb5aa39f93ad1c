//! The access matrix, made from the document of methods: every method × every parameter that names something × own, another
//! caller's, another type's, another group's, another context's × first life, used again, deleted, on another shard × six tokens, compared with
//! [`access`]. What a token may not see is answered as if there were none, and stays as it is. A parameter that nobody has
//! classified fails by its name.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::thread;

use hero::proto::job::JobId;
use hero::rpc::{Caller, Scope, code};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::discover::committed;
use super::{Api, Refusal, tokens};
use crate::support::http::Link;
use crate::support::keys;
use crate::support::owners::{OWN, OWNERS, Owner, reaches};
use crate::support::websocket::Socket;
use crate::support::{Hero, Served};

/// The kind of thing that a parameter names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// A job, which the method reads, or changes.
    Job { changes: bool },
    /// A graph or batch, which the method reads, or changes.
    Graph { changes: bool },
    /// A job that a new job waits for.
    Prerequisite,
    /// A published script.
    Script,
    /// A periodic job.
    Cron,
    /// The id of a new job or graph, a unique key, a filter or a step: it changes nothing that is there, and shows nothing of it.
    Taken,
}

/// Parameters that name no thing that has an owner, besides those of `actor.*`, `queue.*`, `object.*`, `notify.*` and `hook.*`, which
/// `doors.rs` calls: scripts, numbers, times, texts to search for, cursors, names of types.
const PLAIN: &str = "where after all all_or_none args at_a_time backoff by calendar caller caller_id cancelled catch_up change concurrent context \
    context_id cpu cursor data dead debounce debounce_max delay description discard_if dry_run durable ended_since ended_until \
    env_vars error event every expect_within expires extension failed_because fallback force group held host idle inputs instance \
    job_memory kind last late limit limit_key log_path machine may_fail memory more name network notify only_missing on_duplicate opening order outcome output_overflow \
    overlap params pause_after priority query queue reply reply_format retention retries retry_if run_at schedule script script_digest \
    script_type secrets settings shard_key signature since slow_after spread status stdin stop_after subscription tags text time_zone \
    timeout traceparent trees uncounted unique_by unique_for until version wait what who with_dependents yes actor children";

/// A parameter of a method, with the other parameters of the call.
#[derive(Clone)]
struct Place {
    method: String,
    /// Members of objects, `[]` for items of a list.
    path: Vec<String>,
    kind: Kind,
    base: Value,
}

/// The document of methods, as places to name something in.
struct Places {
    document: Value,
    found: Vec<Place>,
    unknown: BTreeSet<String>,
}

impl Places {
    fn all() -> Self {
        let document = committed();
        let methods = document["methods"].as_array().expect("methods").clone();
        let mut all = Self { document, found: Vec::new(), unknown: BTreeSet::new() };
        for method in &methods {
            let name = method["name"].as_str().expect("a name");
            let nouns = ["actor.", "queue.", "object.", "notify.", "hook."];
            if nouns.iter().any(|noun| name.starts_with(noun)) {
                continue;
            }
            for param in method["params"].as_array().expect("parameters") {
                // One function reads the three callbacks.
                if ["on_failure", "on_end"].iter().any(|of| param["name"] == **of) {
                    continue;
                }
                let path = vec![param["name"].as_str().expect("a name").to_owned()];
                all.walk(method, &param["schema"], &path);
            }
        }
        all
    }

    fn walk(&mut self, method: &Value, schema: &Value, path: &[String]) {
        let name = method["name"].as_str().expect("a name");
        if let Some(kind) = kind_of(method, path) {
            for base in bases(name, path) {
                let (method, path) = (name.to_owned(), path.to_vec());
                self.found.push(Place { method, path, kind, base });
            }
            return;
        }
        let last = path.last().expect("a name").as_str();
        let schema = self.resolved(schema);
        if last == "changes" || last == "job" && name == "cron.edit" {
            // Members of a job, which its schema does not list.
            for member in ["prerequisites", "uses", "unique_key"] {
                self.walk(method, &Value::Null, &[path, &[member.to_owned()]].concat());
            }
        } else if let Some(members) = schema["properties"].as_object() {
            for (member, schema) in members.clone() {
                self.walk(method, &schema, &[path, &[member]].concat());
            }
        } else if schema["items"].is_object()
            && self.resolved(&schema["items"])["properties"].is_object()
        {
            self.walk(method, &schema["items"], &[path, &["[]".to_owned()]].concat());
        } else if !PLAIN.split_whitespace().any(|word| word == last) {
            self.unknown.insert(format!("{name}: {}", path.join(".")));
        }
    }

    /// Follows references, and takes the one alternative that has members.
    fn resolved(&self, schema: &Value) -> Value {
        if let Some(reference) = schema["$ref"].as_str() {
            let found = self.document.pointer(reference.trim_start_matches('#'));
            return self.resolved(found.expect(reference));
        }
        let one_of = [&schema["allOf"], &schema["anyOf"]];
        let mut all = one_of.into_iter().filter_map(Value::as_array).flatten();
        let found = all.find(|one| one["$ref"].is_string() || one["allOf"].is_array());
        found.map_or_else(|| schema.clone(), |one| self.resolved(one))
    }
}

/// Returns the methods that name a job or a graph which is there.
pub(super) fn methods_that_name_one() -> BTreeSet<String> {
    let names_one = |place: &Place| {
        matches!(place.kind, Kind::Job { .. } | Kind::Graph { .. }) && place.path.len() == 1
    };
    Places::all().found.into_iter().filter(names_one).map(|place| place.method).collect()
}

/// Classifies a parameter; `None` for one that names nothing, or that is not known.
fn kind_of(method: &Value, path: &[String]) -> Option<Kind> {
    let name = method["name"].as_str().expect("a name");
    let (noun, last) = (name.split('.').next().unwrap_or_default(), path.last()?.as_str());
    let reads = method["x-scope"] == "read" || name == "job.clone";
    match (last, path.len()) {
        ("id", 1) if noun == "graph" && name != "graph.submit" => {
            Some(Kind::Graph { changes: !reads })
        }
        ("id", 1) if name != "graph.submit" && name != "batch.submit" => {
            Some(Kind::Job { changes: !reads })
        }
        ("ids", 1) => Some(Kind::Job { changes: !reads }),
        ("id" | "unique_key" | "parent" | "from", _) => Some(Kind::Taken),
        ("prerequisites" | "after_any" | "prerequisite_names", _) => Some(Kind::Prerequisite),
        // Of a job by its older name, and of a node of a graph.
        ("after", length) if length > 1 => Some(Kind::Prerequisite),
        ("name", 1) if noun == "cron" && name != "cron.add" => Some(Kind::Cron),
        ("name", 1)
            if noun == "script" && !matches!(name, "script.publish" | "script.functions") =>
        {
            Some(Kind::Script)
        }
        ("uses", _) => Some(Kind::Script),
        _ => None,
    }
}

/// The ways to call a method: its other parameters.
fn bases(method: &str, path: &[String]) -> Vec<Value> {
    let node = json!({ "name": "a", "job": own("") });
    let of_job = json!({ "id": OWN_JOB });
    match method {
        "batch.submit" => {
            let all_or_none = json!({ "jobs": [own("")], "all_or_none": true });
            let each = json!({ "jobs": [own("")] });
            let is_both = path.ends_with(&["prerequisites".to_owned()]);
            if is_both { vec![each, all_or_none] } else { vec![all_or_none] }
        }
        "graph.submit" => vec![json!({ "jobs": [node] })],
        "graph.edit" => vec![json!({ "id": OWN_GRAPH, "at_a_time": 2 })],
        "graph.tell" => vec![json!({ "id": OWN_GRAPH, "order": "go" })],
        "graph.retry" => vec![json!({ "id": OWN_GRAPH, "changes": { "a": {} } })],
        "job.change_many" => {
            let ids = json!([OWN_JOB]);
            let edit = json!({ "change": "edit", "edit": { "priority": 2, "changes": {} } });
            let retry = json!({ "change": "retry", "changes": {} });
            match path[0].as_str() {
                "filter" => vec![json!({ "change": "stop", "filter": {}, "dry_run": true })],
                "edit" => vec![with(edit, "ids", ids)],
                "changes" => vec![with(retry, "ids", ids)],
                _ => vec![json!({ "change": "stop" }), json!({ "change": "delete" }), retry, edit],
            }
        }
        "job.stop" => vec![json!({}), json!({ "children": true })],
        "job.edit" => vec![json!({ "id": OWN_JOB, "priority": 2, "changes": {} })],
        "job.retry" if path[0] == "id" => vec![json!({}), json!({ "with_dependents": true })],
        "job.retry" => vec![json!({ "id": OWN_JOB, "changes": {} })],
        "job.clone" => {
            let changes = json!({ "name": "copy", "script": "1", "context_id": null });
            vec![json!({ "id": OWN_JOB, "changes": changes })]
        }
        "job.wait" | "graph.wait" => vec![json!({ "wait": 0 })],
        "job.tell" => vec![json!({ "event": "go" })],
        "job.file" => vec![json!({ "name": "a.txt" })],
        "session.run" => vec![json!({ "script": "1" })],
        "cron.backfill" => vec![json!({ "since": "1d" })],
        "cron.add" | "cron.edit" if path[0] == "graph" => {
            let name = if method == "cron.add" { "new" } else { "c0" };
            vec![json!({ "name": name, "schedule": "@yearly", "graph": { "jobs": [node] } })]
        }
        "cron.add" => vec![json!({ "name": "new", "schedule": "@yearly", "job": own("") })],
        "cron.edit" if path[0] == "job" => vec![json!({ "name": "c0", "job": {} })],
        "script.rollback" => vec![json!({ "version": 1 })],
        // By its script, beside which prerequisites may stand.
        "run_job" | "run_job_and_await_result" if path.len() == 1 => {
            vec![json!({ "job": "1", "script_type": "osis", "wait": 0 })]
        }
        "job.run" | "run_job" | "run_job_and_await_result" => {
            vec![json!({ "job": own(""), "wait": 0 })]
        }
        "job.submit" | "job.create" | "create_job" => vec![json!({ "job": own("") })],
        _ if path[0] == "job" => vec![of_job],
        _ => vec![json!({})],
    }
}

fn with(mut params: Value, name: &str, value: Value) -> Value {
    params[name] = value;
    params
}

impl Place {
    fn shown(&self) -> String {
        format!("{} {} {}", self.method, self.path.join("."), self.base)
    }

    /// Returns the parameters of a call that names something here.
    fn naming(&self, id: &str) -> Value {
        let mut params = self.base.clone();
        let mut at = &mut params;
        let (last, before) = self.path.split_last().expect("a name");
        for name in before {
            at = if name == "[]" { &mut at[0] } else { &mut at[name.as_str()] };
        }
        at[last.as_str()] = match last.as_str() {
            "ids" | "prerequisites" | "after_any" | "after" => json!([id]),
            "prerequisite_names" => {
                at["prerequisites"] = json!([id]);
                json!({ "x": id })
            }
            _ => json!(id),
        };
        if last == "uses" && before.last().is_some_and(|name| name != "changes") {
            // The published script has the text and the type.
            let members = at.as_object_mut().expect("a job");
            members.retain(|name, _| !matches!(name.as_str(), "script" | "script_type"));
        }
        if last == "unique_key" {
            at["on_duplicate"] = json!("replace");
        }
        params
    }

    /// Returns whether the jobs that it names have ended; otherwise they wait for their time, or were not started.
    fn needs_the_end(&self) -> bool {
        let word = self.base["change"].as_str().unwrap_or(&self.method);
        !["delete", "edit", "start", "stop", "tell"].iter().any(|verb| word.contains(verb))
            || self.method.starts_with("dead.")
    }

    fn needs_no_start(&self) -> bool {
        self.method.contains("start") && !self.method.starts_with("session")
    }

    /// Returns whether it concerns periodic jobs or published scripts.
    fn is_of_operators(&self) -> bool {
        self.method.starts_with("cron.") || self.method.starts_with("script.")
    }

    /// Returns whether the call is refused for another reason where the token may name the thing.
    fn is_refused_anyway(&self) -> bool {
        let at = self.path[0].as_str();
        at.starts_with("on_")
            || at == "edit"
            || at == "changes" && self.method != "job.clone"
            // Dependents are of anybody.
            || self.base["with_dependents"] == true
    }
}

/// The access of a token to a job.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
enum Access {
    None,
    Sees,
    Changes,
}

/// The oracle: the access of a token to a job of an owner.
fn access(token: &Caller, owner: Owner) -> Access {
    let reads = token.scopes.has(Scope::Read);
    let of = |all| reaches(&token.name, all, &token.bounds, owner);
    match (of(token.scopes.has(Scope::Operate)), of(reads)) {
        (true, _) => Access::Changes,
        (false, true) => Access::Sees,
        (false, false) => Access::None,
    }
}

/// The same of a graph, whose caller alone counts: a token with bounds sees its own.
fn access_to_graph(token: &Caller, [of, ..]: Owner) -> Access {
    access(
        token,
        if of == token.name || !is_bound(token) {
            [of, "osis", "io", "work"]
        } else {
            ["", "", "", ""]
        },
    )
}

fn is_bound(token: &Caller) -> bool {
    token.bounds != hero::rpc::Bounds::default()
}

/// The answer that the oracle expects.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Expected {
    /// As if there were none.
    Hidden,
    /// Anything that changes nothing and shows nothing.
    Refused,
    Done,
}

fn expected(place: &Place, needs: Option<Scope>, token: &Caller, owner: Owner) -> Expected {
    let of = match place.kind {
        Kind::Taken => return Expected::Refused,
        // A window holds and stops all jobs of a graph.
        Kind::Graph { .. }
            if ["graph.edit", "graph.tell"].contains(&place.method.as_str())
                && matches!(access(token, owner), Access::None) =>
        {
            Access::None
        }
        Kind::Graph { .. } => access_to_graph(token, owner),
        Kind::Script
            if token.bounds.types.as_ref().is_some_and(|types| !types.contains(owner[1])) =>
        {
            Access::None
        }
        Kind::Script => Access::Changes,
        _ => access(token, owner),
    };
    let has_scope = needs.is_none_or(|scope| token.scopes.has(scope));
    let changes = matches!(place.kind, Kind::Job { changes: true } | Kind::Graph { changes: true });
    // Nobody with bounds changes periodic jobs and published scripts.
    let is_of_operators = place.is_of_operators() && needs > Some(Scope::Submit) && is_bound(token);
    match of {
        _ if !has_scope || is_of_operators => Expected::Hidden,
        Access::None => Expected::Hidden,
        Access::Sees if changes => Expected::Refused,
        _ => Expected::Done,
    }
}

/// The settings of a job of the token, which never runs: without a context, which a token with other bounds may not name.
fn own(id: &str) -> Value {
    let mut job = json!({ "script": "1", "script_type": OWN[1], "group": OWN[2], "run_at": FAR });
    if !id.is_empty() {
        job["id"] = json!(id);
    }
    job
}

/// The settings of a job of an owner. Those of others have the word `hush`.
fn of_owner(id: &str, owner: Owner) -> Value {
    let [caller, script_type, group, context] = owner;
    let word = if owner == OWN { "mine" } else { "hush" };
    json!({
        "id": id, "script": format!("{word:?}"), "script_type": script_type, "group": group, "caller_id": caller,
        "context_id": context, "name": word,
    })
}

/// A job and a graph of the tokens.
const OWN_JOB: &str = "own---------------------------------";
const OWN_GRAPH: &str = "own-graph---------------------------";

const FAR: &str = "2999-01-01T00:00:00Z";

/// A life of an id.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Life {
    First,
    UsedAgain,
    Deleted,
    /// The first, on another shard than the jobs of the tokens.
    OtherShard,
}

const LIVES: [Life; 4] = [Life::First, Life::UsedAgain, Life::Deleted, Life::OtherShard];

/// The beginning of ids of the other shard.
const OTHER: &str = "s1-";

/// Returns an id of a shard that is as long as the ids that Hero makes: no other is searched for that begins with it, which
/// takes time.
fn whole_in(life: Life, id: &str) -> String {
    let shard = if life == Life::OtherShard { OTHER } else { "" };
    format!("{:-<36}", format!("{shard}{id}"))
}

/// The jobs and graphs that the calls name.
#[derive(Default)]
struct Named {
    /// Jobs that were deleted before the others are stored.
    before: Vec<Value>,
    jobs: Vec<Value>,
    /// Jobs that are not started.
    created: Vec<Value>,
}

impl Named {
    fn add(&mut self, place: &Place, id: &str, life: Life, owner: Owner) {
        let far = |mut job: Value| {
            job["run_at"] = json!(FAR);
            job
        };
        match life {
            Life::First | Life::OtherShard => {}
            Life::UsedAgain => self.before.push(far(of_owner(id, OWN))),
            Life::Deleted => return self.before.push(far(of_owner(id, owner))),
        }
        let job = of_owner(id, owner);
        match place.kind {
            Kind::Job { .. } if place.needs_no_start() => self.created.push(job),
            Kind::Job { .. } if !place.needs_the_end() => self.jobs.push(far(job)),
            _ => self.jobs.push(job),
        }
    }

    fn store(&self, api: &Api) {
        if !self.before.is_empty() {
            api.call("batch.submit", json!({ "jobs": self.before }));
            let ids: Vec<&Value> = self.before.iter().map(|job| &job["id"]).collect();
            for ids in ids.chunks(1000) {
                let done = api.call("job.change_many", json!({ "change": "delete", "ids": ids }));
                assert_eq!(done["done"], ids.len(), "{done}");
            }
        }
        let is_other = |job: &&Value| job["id"].to_string().contains(OTHER);
        let (other, home): (Vec<&Value>, Vec<&Value>) = self.jobs.iter().partition(is_other);
        let parted = [other, home].map(|jobs| {
            let (far, now) = jobs.into_iter().partition(|job| job["run_at"].is_string());
            [far, now]
        });
        for jobs in parted.into_iter().flatten().filter(|jobs: &Vec<&Value>| !jobs.is_empty()) {
            let done = api.call("batch.submit", json!({ "jobs": jobs, "name": "named" }));
            assert_eq!(done["refused"], json!([]));
            if jobs.iter().all(|job| job["run_at"].is_null()) {
                let over = api.call("graph.wait", json!([done["id"], 60]));
                assert_eq!(over["finished"], jobs.len(), "{over}");
            }
        }
        for job in &self.created {
            api.call("job.create", json!([job]));
        }
    }
}

/// Stores a graph of one job.
fn store_graph(api: &Api, id: &str, owner: Owner) {
    let mut job = of_owner(&format!("{id}-a"), owner);
    job["run_at"] = json!(FAR);
    job["name"] = Value::Null;
    let jobs = json!([{ "name": "a", "job": job }]);
    api.call("graph.submit", json!({ "id": id, "jobs": jobs, "pause_after": "1 tell" }));
}

fn add_graph(api: &Api, id: &str, life: Life, owner: Owner) {
    if matches!(life, Life::UsedAgain | Life::Deleted) {
        store_graph(api, id, if life == Life::Deleted { owner } else { OWN });
        api.call("graph.delete", json!([id]));
    }
    if life != Life::Deleted {
        store_graph(api, id, owner);
    }
}

/// The job and the graph that have an id, as Redis has them.
fn stored(
    link: &mut redis::Connection,
    id: &str,
    is_shared: bool,
) -> Vec<BTreeMap<String, String>> {
    let all = keys::of_shards(2);
    let keys = &all[usize::from(id.starts_with(OTHER))];
    let ids = [id.to_owned(), format!("{id}-a")];
    let [own, member]: [JobId; 2] = ids.map(|id| id.parse().expect("legal"));
    let keys = [keys.job(&own), keys.job(&member), keys.graph(&own)];
    let mut pipe = redis::pipe();
    for key in &keys {
        pipe.hgetall(key);
    }
    let mut all: Vec<BTreeMap<String, String>> = pipe.query(link).expect("Redis answers");
    if is_shared {
        // Other calls of the same token, which may, wait for it meanwhile.
        all[0].retain(|name, _| !["dependents", "reply", "updated_at"].contains(&name.as_str()));
    }
    all
}

/// A system with actors of every type and group, periodic jobs of each owner, and published scripts.
struct System {
    api: Api,
    /// Another listener for the same jobs: what one allows or refuses, the other does as well.
    second: Served,
    _folder: TempDir,
}

fn system() -> System {
    let folder = tempfile::tempdir().expect("a folder");
    let crons = OWNERS.iter().enumerate().map(|(number, [caller, script_type, group, context])| {
        format!(
            "[cron.c{number}]\nschedule = \"@yearly\"\nscript = \"1\"\ncaller = \"{caller}\"\ntype = \"{script_type}\"\n\
             group = \"{group}\"\ncontext = \"{context}\"\n"
        )
    });
    std::fs::write(folder.path().join("a.toml"), crons.collect::<String>()).expect("a file");
    let place = format!("{:?}", folder.path().to_string_lossy());
    let set = |hero: Hero| {
        hero.add("[type.other]\nengine = \"osis\"\n")
            .set("redis.shards", "2")
            .set("supervisor.cron_dir", &place)
            .set("type.bash.may_submit", "[\"osis\"]")
    };
    let api = Api::with(&["osis-io-1", "osis-far-1", "other-io-1", "bash-io-1"], set);
    let second = Served::in_folder(set(Hero::on(&api.redis)), folder.path());
    for script_type in ["osis", "other"] {
        let settings = json!({ "script_type": script_type });
        api.call(
            "script.publish",
            json!({ "name": format!("s-{script_type}"), "script": "1", "settings": settings }),
        );
    }
    System { api, second, _folder: folder }
}

/// Calls methods with one token, over one connection.
struct Calls<'a> {
    site: &'a Served,
    bearer: String,
    link: Link,
}

impl<'a> Calls<'a> {
    /// Calls by one of the listeners with a token, which `api` has made.
    fn of(api: &Api, site: &'a Served, token: &Caller) -> Self {
        let words = super::of(token);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let bearer = format!("Bearer {}", api.site.token(&words));
        Self { site, bearer, link: site.tcp() }
    }

    fn call(&mut self, method: &str, params: &Value) -> Result<Value, Refusal> {
        let headers = [("authorization", self.bearer.as_str())];
        let answer = if method.ends_with(".follow") {
            Socket::open(self.site.tcp(), &headers).answer(method, params)
        } else {
            self.link.post("/rpc", &headers, &crate::support::request(method, params)).json()
        };
        super::result_of(answer)
    }
}

/// Returns an answer as a text, without the id that the call named.
fn answer_text(answer: &Result<Value, Refusal>, id: &str) -> String {
    let text = match answer {
        Ok(result) => result.to_string(),
        Err(error) => format!("{} {error} {:?}", error.code, error.data),
    };
    text.replace(id, "ID")
}

/// The codes of the errors of each method, and the scope that it needs.
type Documented = BTreeMap<String, (BTreeSet<i64>, Option<Scope>)>;

/// The codes of the errors that the document names for each method, and the scope that it needs.
fn documented(document: &Value) -> Documented {
    let code = |reference: &Value| {
        let name = reference["$ref"].as_str().expect("a reference").trim_start_matches('#');
        document.pointer(name).expect(name)["code"].as_i64().expect("a code")
    };
    let methods = document["methods"].as_array().expect("methods").iter();
    methods
        .map(|method| {
            let codes = method["errors"].as_array().expect("errors").iter().map(code).collect();
            let word = if method["name"] == "job.clone" {
                Some("read")
            } else {
                method["x-scope"].as_str()
            };
            let scope = word.map(|word| word.parse().expect("a scope"));
            (method["name"].as_str().expect("a name").to_owned(), (codes, scope))
        })
        .collect()
}

/// One cell of the matrix.
struct Cell {
    place: usize,
    owner: Owner,
    life: Life,
    id: String,
}

/// Returns the id of a job or graph that no call changes.
fn shared(what: &str, owner: usize, life: Life) -> String {
    whole_in(life, &format!("shared-{what}-{owner}-{life:?}"))
}

/// Adds the jobs that no call changes, which have ended. Returns their ids.
fn add_shared(named: &mut Named) -> Vec<String> {
    let ended = Place {
        method: String::new(),
        path: Vec::new(),
        kind: Kind::Prerequisite,
        base: Value::Null,
    };
    let mut ids = Vec::new();
    for (of, owner) in OWNERS.into_iter().enumerate() {
        for life in LIVES {
            ids.push(shared("job", of, life));
            named.add(&ended, &ids[ids.len() - 1], life, owner);
        }
    }
    ids
}

/// Returns the cells of one token, and adds what they name.
fn cells(places: &[Place], token: usize, named: &mut Named, api: &Api) -> Vec<Cell> {
    let mut all = Vec::new();
    for (number, place) in places.iter().enumerate() {
        for (of, owner) in OWNERS.into_iter().enumerate() {
            for life in LIVES {
                let is_prerequisites = place.path.ends_with(&["prerequisites".to_owned()]);
                let is_in_matrix = match (place.kind, life) {
                    // Its type alone counts.
                    (Kind::Script, Life::First) => of == 0 || of == 2,
                    // Its caller alone counts.
                    (Kind::Taken, Life::First) => of == 1,
                    (Kind::Prerequisite, Life::First) if !is_prerequisites => of < 2,
                    (_, Life::First) => true,
                    (Kind::Job { .. } | Kind::Graph { .. }, _) => of < 2,
                    (Kind::Prerequisite, _) => of < 2 && is_prerequisites,
                    _ => false,
                };
                if !is_in_matrix {
                    continue;
                }
                let fresh = whole_in(life, &format!("x-{token}-{number}-{of}-{life:?}"));
                let id = match place.kind {
                    Kind::Script => format!("s-{}", owner[1]),
                    Kind::Cron => format!("c{of}"),
                    Kind::Graph { changes: false } => shared("graph", of, life),
                    // The id of a new graph.
                    Kind::Taken if place.path == ["id"] => shared("graph", of, life),
                    Kind::Graph { changes: true } => {
                        add_graph(api, &fresh, life, owner);
                        fresh
                    }
                    Kind::Job { changes: true } => {
                        named.add(place, &fresh, life, owner);
                        fresh
                    }
                    Kind::Job { changes: false } | Kind::Prerequisite | Kind::Taken => {
                        shared("job", of, life)
                    }
                };
                all.push(Cell { place: number, owner, life, id });
            }
        }
    }
    all
}

/// The threads that call at a time.
const THREADS: usize = 4;

/// The means to check the cells of one token.
struct Matrix<'a> {
    system: &'a System,
    places: &'a [Place],
    documented: &'a Documented,
    word: &'a str,
    token: &'a Caller,
}

impl Matrix<'_> {
    /// Calls a part of all, and returns what is wrong, and the places that somebody could use.
    fn check(&self, cells: &[Cell], part: usize) -> (Vec<String>, BTreeSet<usize>) {
        let (mut wrong, mut done) = (Vec::new(), BTreeSet::new());
        let System { api, second, .. } = self.system;
        let site = if part.is_multiple_of(2) { &api.site } else { second };
        let mut caller = Calls::of(api, site, self.token);
        let mut link = api.redis.link();
        let mut missing = BTreeMap::new();
        for cell in cells.iter().filter(|cell| cell.place % THREADS == part) {
            let place = &self.places[cell.place];
            let expected = self.expected(cell);
            let on = if cell.life == Life::OtherShard { cell.life } else { Life::First };
            let none = missing.entry((cell.place, on as u8)).or_insert_with(|| {
                if place.kind == Kind::Taken {
                    return String::new();
                }
                let none = whole_in(on, "x-never-there");
                answer_text(&caller.call(&place.method, &place.naming(&none)), &none)
            });
            let may_change = cell.life == Life::Deleted
                || access(self.token, cell.owner) == Access::Changes && expected == Expected::Done;
            // A graph of the token may have jobs of others.
            let is_own_graph =
                matches!(place.kind, Kind::Graph { .. }) && expected == Expected::Done;
            let is_shared = cell.id.contains("shared-");
            let mut read = || {
                let mut all = stored(&mut link, &cell.id, is_shared);
                all.truncate(if is_own_graph { 2 } else { 3 });
                all
            };
            let before = (!may_change).then(&mut read);
            let answer = caller.call(&place.method, &place.naming(&cell.id));
            let is_changed = before.is_some_and(|before| read() != before);
            match self.fault(cell, expected, (&answer, none)) {
                _ if is_changed => wrong.push(self.shown(cell, "changes it", &answer, none)),
                Some(fault) => wrong.push(self.shown(cell, fault, &answer, none)),
                None if expected == Expected::Done => drop(done.insert(cell.place)),
                None => {}
            }
        }
        (wrong, done)
    }

    fn expected(&self, cell: &Cell) -> Expected {
        let place = &self.places[cell.place];
        if cell.life == Life::Deleted && place.kind != Kind::Taken {
            return Expected::Hidden;
        }
        expected(place, self.documented[&place.method].1, self.token, cell.owner)
    }

    /// Returns what is wrong with an answer, if something is. `none` is the answer where there is no such thing.
    fn fault(
        &self,
        cell: &Cell,
        expected: Expected,
        (answer, none): (&Result<Value, Refusal>, &String),
    ) -> Option<&'static str> {
        let place = &self.places[cell.place];
        let said = answer_text(answer, &cell.id);
        let code = answer.as_ref().err().map(|error| error.code);
        if code.is_some_and(|code| !self.documented[&place.method].0.contains(&i64::from(code))) {
            return Some("an error that its document does not name");
        }
        if said.contains("hush") && access(self.token, cell.owner) < Access::Sees {
            return Some("shows it");
        }
        match expected {
            Expected::Hidden if said != *none => Some("not as if there were none"),
            Expected::Done if place.is_refused_anyway() => None,
            Expected::Done if said == *none => Some("not found"),
            // Another's session is only ended.
            Expected::Done
                if code == Some(code::NOT_PERMITTED) && place.method != "session.run" =>
            {
                Some("refused")
            }
            _ => None,
        }
    }

    fn shown(
        &self,
        cell: &Cell,
        fault: &str,
        answer: &Result<Value, Refusal>,
        none: &str,
    ) -> String {
        let (place, said) = (self.places[cell.place].shown(), answer_text(answer, &cell.id));
        let Cell { owner, life, .. } = cell;
        format!(
            "{place} for {owner:?}, {life:?}, by who {}: {fault}: {said}; for none: {none}",
            self.word
        )
    }
}

#[test]
fn each_parameter_reaches_what_the_token_may_reach_and_no_more() {
    let places = Places::all();
    let unknown: Vec<&String> = places.unknown.iter().collect();
    assert!(
        unknown.is_empty(),
        "say in tests/rpc/matrix.rs what these parameters name: {unknown:#?}"
    );
    let (places, documented) = (places.found.clone(), documented(&places.document));
    let system = system();
    let api = &system.api;
    let mut named = Named::default();
    add_shared(&mut named);
    named.jobs.push(of_owner(OWN_JOB, OWN));
    for (of, owner) in OWNERS.into_iter().enumerate() {
        for life in LIVES {
            add_graph(api, &shared("graph", of, life), life, owner);
        }
    }
    store_graph(api, OWN_GRAPH, OWN);
    let tokens = tokens();
    let cells: Vec<Vec<Cell>> =
        (0..tokens.len()).map(|token| cells(&places, token, &mut named, api)).collect();
    named.store(api);
    let (mut wrong, mut done) = (Vec::new(), BTreeSet::new());
    // A name has one token at a time.
    for ((word, token), cells) in tokens.iter().zip(&cells) {
        let matrix =
            &Matrix { system: &system, places: &places, documented: &documented, word, token };
        thread::scope(|scope| {
            let parts = (0..THREADS).map(|part| scope.spawn(move || matrix.check(cells, part)));
            for check in parts.collect::<Vec<_>>() {
                let (of_part, of_done) = check.join().expect("checked");
                wrong.extend(of_part);
                done.extend(of_done);
            }
        });
    }
    assert!(wrong.is_empty(), "{} wrong:\n{wrong:#?}", wrong.len());
    // Each way was open to somebody: a call that always fails shows nothing.
    for (number, place) in places.iter().enumerate() {
        let is_for_somebody = place.kind != Kind::Taken
            && !place.is_refused_anyway()
            // None of the tokens changes periodic jobs and published scripts.
            && !(place.is_of_operators() && documented[&place.method].1 > Some(Scope::Submit));
        assert!(!is_for_somebody || done.contains(&number), "nobody could use {}", place.shown());
    }
}

/// The lines by which a script asks for a job.
type Asks = fn(&str) -> Vec<Value>;

/// The words of the channel of a script that name a job, and lines that ask by each.
const WORDS: [(&str, Asks); 5] = [
    ("inputs", |id| vec![json!({ "inputs": id })]),
    ("submit", |id| {
        let child = |member: &str, value: Value| json!({ "submit": { "type": "osis", "script": "1", member: value } });
        vec![
            child("after", json!([id])),
            child("after_any", json!([id])),
            child("prerequisites", json!([id])),
        ]
    }),
    // Names no job.
    ("state", |_| Vec::new()),
    ("next", |_| Vec::new()),
    // Ends the attempt: `state_of_a_job_of_another_caller_is_not_revealed`.
    ("wait", |_| Vec::new()),
];

#[test]
fn each_word_of_a_script_is_in_the_matrix() {
    let source = include_str!("../../src/engine/process/watch/channel.rs");
    let asks = source
        .lines()
        .filter_map(|line| line.trim().strip_prefix("(\"")?.split_once("\", ChannelAsk::"));
    let words: BTreeSet<&str> = asks.map(|(word, _)| word).collect();
    assert_eq!(words, WORDS.iter().map(|(word, _)| *word).collect());
}

#[test]
fn words_of_a_script_reach_no_job_that_it_does_not_wait_for() {
    let system = system();
    let api = &system.api;
    let mut named = Named::default();
    let mut ids = vec![whole_in(Life::First, "never-there")];
    ids.extend(add_shared(&mut named));
    named.store(api);
    for (word, mut token) in tokens() {
        if let Some(types) = &mut token.bounds.types {
            types.insert("bash".to_owned());
        }
        let lines: Vec<(&String, Value)> = ids
            .iter()
            .flat_map(|id| WORDS.iter().flat_map(|(_, asks)| asks(id)).map(move |line| (id, line)))
            .collect();
        let mut script = String::new();
        for (_, line) in &lines {
            let _ = writeln!(
                script,
                "printf '%s\\n' '{line}' >&$HERO_FD; read -r answer <&$HERO_FD_IN; echo \"$answer\""
            );
        }
        let job = json!({ "script": script, "script_type": "bash", "group": "io" });
        let ran = Calls::of(api, &api.site, &token)
            .call("job.run", &json!({ "job": job, "wait": 30 }))
            .expect("a job");
        let answers: Vec<&str> = ran["output"].as_str().expect("answers").lines().collect();
        assert_eq!(answers.len(), lines.len(), "{ran}");
        let mut none = BTreeMap::new();
        for ((id, line), answer) in lines.iter().zip(answers) {
            let ask = line.to_string().replace(id.as_str(), "ID");
            let answer = answer.replace(id.as_str(), "ID");
            let of_none = none.entry(ask).or_insert_with(|| answer.clone());
            assert!(answer.contains("error"), "{line} by who {word}: {answer}");
            assert_eq!(*of_none, answer, "{line} by who {word}");
        }
    }
}
