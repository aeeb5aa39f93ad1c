//! The API: its methods, called through the listener of the program, on a real Redis with the real actor.

mod access;
mod audit;
mod batches;
mod bounds;
mod corrected_reach;
mod corrections;
mod discover;
mod doors;
mod matrix;
mod mcp;
mod methods;
mod nouns;
mod older;
mod operator_rights;
mod published;
mod references;
mod rights;
mod shards;
mod submitter_bounds;
mod unique_keys;

use std::fmt;

use hero::rpc::{Bounds, Caller, Scope, Scopes};
use serde_json::Value;

use crate::support::{Hero, Process, Redis, Served, request};

/// A supervisor over the jobs of a private Redis.
struct Api {
    site: Served,
    _units: Vec<Process>,
    redis: Redis,
}

/// The error of a response.
#[derive(Debug)]
struct Refusal {
    code: i32,
    message: String,
    data: Option<Value>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Api {
    /// Starts Redis, a supervisor and these units.
    fn start(units: &[&str]) -> Self {
        Self::with(units, |hero| hero)
    }

    fn with(units: &[&str], set: impl FnOnce(Hero) -> Hero) -> Self {
        let redis = Redis::start();
        let site = Served::with(set(Hero::on(&redis).set("job.retries", "0")), &redis);
        let units = units.iter().map(|unit| site.hero.actor(unit).start()).collect();
        Self { site, _units: units, redis }
    }

    /// Calls a method with a token of this caller.
    #[expect(clippy::needless_pass_by_value, reason = "each is written where it is passed")]
    fn call_as(&self, caller: &Caller, method: &str, params: Value) -> Result<Value, Refusal> {
        let words = of(caller);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let bearer = format!("Bearer {}", self.site.token(&words));
        let headers = [("authorization", bearer.as_str())];
        let answer = self.site.tcp().post("/rpc", &headers, &request(method, &params));
        result_of(answer.json())
    }

    /// Calls a method as a caller with all scopes. It must succeed.
    #[track_caller]
    fn call(&self, method: &str, params: Value) -> Value {
        match self.call_as(&admin(), method, params) {
            Ok(result) => result,
            Err(error) => panic!("{method}: {error} {:?}", error.data),
        }
    }

    /// Calls a method that must fail, and returns the code of its error and the error.
    #[track_caller]
    fn fails(&self, caller: &Caller, method: &str, params: Value) -> (i32, Refusal) {
        let error = self.call_as(caller, method, params).expect_err(method);
        (error.code, error)
    }
}

/// Returns the result of a response, or its error.
fn result_of(mut answer: Value) -> Result<Value, Refusal> {
    let error = answer["error"].take();
    if error.is_null() {
        return Ok(answer["result"].take());
    }
    Err(Refusal {
        code: error["code"].as_i64().and_then(|code| code.try_into().ok()).expect("a code"),
        message: error["message"].as_str().expect("a message").to_owned(),
        data: error.get("data").cloned(),
    })
}

/// Returns the arguments of `hero token new` for a caller.
fn of(caller: &Caller) -> Vec<String> {
    let Bounds { types, groups, callers, contexts, .. } = &caller.bounds;
    let mut words = vec![caller.name.clone(), "--scope".to_owned(), caller.scopes.to_string()];
    for (option, names) in
        [("--type", types), ("--group", groups), ("--caller", callers), ("--context", contexts)]
    {
        for name in names.iter().flatten() {
            words.extend([option.to_owned(), name.clone()]);
        }
    }
    words
}

fn admin() -> Caller {
    Caller { name: "root".to_owned(), scopes: Scopes::all(), bounds: Bounds::default() }
}

fn caller(name: &str, scopes: &[Scope]) -> Caller {
    let scopes = scopes.iter().copied().collect();
    Caller { name: name.to_owned(), scopes, bounds: Bounds::default() }
}

#[expect(clippy::unnecessary_wraps, reason = "bounds are options")]
fn words(words: &[&str]) -> Option<std::collections::BTreeSet<String>> {
    Some(words.iter().map(|word| (*word).to_owned()).collect())
}

/// The six tokens of the access matrix, all of ann: one to read and submit; one to submit; and with all scopes, one bound to a
/// type, a group, a caller and a context.
fn tokens() -> [(&'static str, Caller); 6] {
    let scopes = [Scope::Read, Scope::Submit, Scope::Operate, Scope::Admin];
    let bound = |bounds| Caller { bounds, ..caller("ann", &scopes) };
    let free = Bounds::default;
    [
        ("reads and submits", caller("ann", &scopes[..2])),
        ("submits", caller("ann", &scopes[1..2])),
        ("of a type", bound(Bounds { types: words(&["osis"]), ..free() })),
        ("of a group", bound(Bounds { groups: words(&["io"]), ..free() })),
        ("of a caller", bound(Bounds { callers: words(&["ann"]), ..free() })),
        ("of a context", bound(Bounds { contexts: words(&["work"]), ..free() })),
    ]
}
