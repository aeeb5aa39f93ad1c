//! The `OpenRPC` document of the methods, from their types.

use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};

use super::method::Method;
use super::rpc_error::code;
use super::schema_names::name_schemas;

const OPENRPC: &str = "1.3.2";
const SCHEMAS: &str = "/components/schemas";

pub(super) fn document<'m>(methods: impl Iterator<Item = &'m Method>) -> Value {
    let settings = SchemaSettings::draft07().with(|set| set.definitions_path = SCHEMAS.into());
    let mut given = settings.clone().into_generator();
    let mut returned = settings.for_serialize().into_generator();
    let methods: Vec<Value> =
        methods.map(|method| described(method, &mut given, &mut returned)).collect();
    let mut schemas = given.take_definitions(true);
    schemas.extend(returned.take_definitions(true));
    let mut document = json!({
        "openrpc": OPENRPC,
        "info": {
            "title": "Hero",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The API of Hero, a job daemon for scripts. Parameters may be given by name or \
                            by position. A method may be called with an underscore in place of its dot, for \
                            languages whose names have none. x-scope of a method is the scope that its caller needs. A method with \
                            x-notification is a subscription, which only a WebSocket has: its notifications have \
                            the name of the method, and parameters of this schema.",
            "license": { "name": env!("CARGO_PKG_LICENSE") },
        },
        "methods": methods,
        "components": { "schemas": schemas, "errors": errors() },
    });
    name_schemas(&mut document);
    document
}

fn described(
    method: &Method,
    given: &mut SchemaGenerator,
    returned: &mut SchemaGenerator,
) -> Value {
    let object = schema(given, method.params);
    let is_required = |name: &str| {
        let required = object.get("required").and_then(Value::as_array);
        required.is_some_and(|names| names.iter().any(|one| one == name))
    };
    let properties = object.get("properties").and_then(Value::as_object);
    let params: Vec<Value> = (method.names)()
        .iter()
        .map(|name| {
            let schema = properties.and_then(|all| all.get(name)).cloned().unwrap_or(json!(true));
            descriptor(name, is_required(name), schema)
        })
        .collect();
    let result = schema(returned, method.result);
    let reference = |name: &&str| json!({ "$ref": format!("#/components/errors/{name}") });
    let tag = match method.name.split_once('.') {
        Some((noun, _)) => noun,
        None if method.name == "whoami" => "system",
        None if method.name == "unsubscribe" => "subscriptions",
        None => "older names",
    };
    let mut document = json!({
        "name": method.name,
        "summary": method.summary,
        "tags": [{ "name": tag }],
        "paramStructure": "either",
        "params": params,
        "result": descriptor("result", true, result),
        "errors": errors_of(method).iter().map(reference).collect::<Vec<_>>(),
        "examples": [example(method)],
    });
    if let Some(scope) = method.scope {
        document["x-scope"] = json!(scope);
    }
    if let Some(subscription) = &method.subscription {
        document["x-notification"] = schema(returned, subscription.notice);
    }
    document
}

/// The names of the errors that a method may return, beside JSON-RPC's own.
fn errors_of(method: &Method) -> Vec<&'static str> {
    let mut all = vec!["Unauthenticated", "Internal"];
    let own = (method.names)();
    let names = |one: &[&str]| own.iter().any(|name| one.contains(&name.as_str()));
    if !own.is_empty() {
        all.push("InvalidParams");
    }
    if method.scope.is_some() {
        all.push("NotPermitted");
    }
    if names(&["id", "ids", "name", "actor", "machine", "job", "jobs"]) {
        all.push("NotFound");
    }
    let reads_output = method.name.ends_with("output") || method.name == "get_job_result";
    if method.changes() || reads_output || method.name == "events.follow" {
        all.push("Conflict");
    }
    let runs = ["play", "run_job", "run_job_and_await_result"].contains(&method.name);
    if runs || reads_output {
        all.push("JobFailed");
    }
    if runs || method.name == "actor.ping" {
        all.push("GaveUp");
    }
    if method.subscription.is_some() || method.name == "unsubscribe" {
        all.push("InvalidRequest");
    }
    all
}

/// The example of a method, its parameters by position.
fn example(method: &Method) -> Value {
    let given = example_params(method.name);
    let named = |name: &String| Some(json!({ "name": name, "value": given.get(name)? }));
    let params: Vec<Value> = (method.names)().iter().filter_map(named).collect();
    json!({ "name": method.name, "params": params })
}

fn schema(
    generator: &mut SchemaGenerator,
    of: fn(&mut SchemaGenerator) -> schemars::Schema,
) -> Value {
    let mut schema = of(generator);
    for transform in generator.transforms_mut() {
        transform.transform(&mut schema);
    }
    schema.into()
}

/// A parameter or a result. Its description moves out of its schema.
fn descriptor(name: &str, required: bool, mut schema: Value) -> Value {
    let description = schema.as_object_mut().and_then(|schema| schema.remove("description"));
    let mut descriptor = Map::from_iter([("name".to_owned(), json!(name))]);
    descriptor.extend(description.map(|text| ("description".to_owned(), text)));
    descriptor.insert("required".to_owned(), json!(required));
    descriptor.insert("schema".to_owned(), schema);
    Value::Object(descriptor)
}

/// The errors that a call may return, beside JSON-RPC's own.
fn errors() -> Value {
    let all = [
        ("InvalidRequest", code::INVALID_REQUEST, "the call is of a WebSocket"),
        (
            "InvalidParams",
            code::INVALID_PARAMS,
            "the parameters are wrong; data.field names the field",
        ),
        (
            "Internal",
            code::INTERNAL,
            "the call failed; data.retryable tells if a retry can succeed",
        ),
        ("Unauthenticated", code::UNAUTHENTICATED, "the caller is not known"),
        ("NotFound", code::NOT_FOUND, "it does not exist, or the caller may not see it"),
        ("NotPermitted", code::NOT_PERMITTED, "the caller may not do this"),
        ("Conflict", code::CONFLICT, "its state does not allow it"),
        ("JobFailed", code::JOB_FAILED, "the job ended in error; data.id names it"),
        ("GaveUp", code::GAVE_UP, "the wait timed out; the job goes on"),
    ];
    all.into_iter()
        .map(|(name, code, message)| (name.to_owned(), json!({ "code": code, "message": message })))
        .collect::<Map<String, Value>>()
        .into()
}

const JOB: &str = "6a9d2c1e-0f53-4b7c-9a1e-0d6f3b1c2a44";

/// Returns the parameters of an example, by their names; those that have a default may be left out.
fn example_params(method: &str) -> Map<String, Value> {
    let example = match method.split_once('.') {
        Some(("actor", "list")) => json!({ "script_type": "python" }),
        Some(("machine", "list")) => json!({ "where": "release >= 12" }),
        Some(("machine", _)) => json!({ "machine": "web1" }),
        Some(("actor", _)) => json!({ "actor": "python-default-1" }),
        Some(("cron", name)) => cron(name),
        Some(("graph", name)) => graph(name),
        Some(("job", name)) => job(name),
        Some(("object", name)) => object(name),
        Some(("queue", name)) if name != "list" => json!({ "queue": "type:python:group:io" }),
        Some(("batch", _)) => {
            json!({ "jobs": [settings("40 + 2"), settings("6 * 7")], "name": "sums" })
        }
        Some(("dead", "list")) => json!({ "script_type": "python", "limit": 20 }),
        Some(("dead", _)) => json!({ "ids": [JOB] }),
        Some(("notify", "test")) => json!({ "name": "ops" }),
        Some(("session", "start")) => json!({ "script_type": "python", "idle": 120 }),
        Some(("session", "run")) => json!({ "id": JOB, "script": "rows = 7; rows * 6" }),
        Some(("session", "end")) => json!({ "id": JOB }),
        Some(("script", "check")) => json!({ "script": "let a = ;", "script_type": "osis" }),
        Some(("script", "publish")) => json!({
            "name": "greet", "script": "\"hello, \" + params.name", "settings": { "script_type": "osis" },
        }),
        Some(("hook", "test")) => json!({
            "name": "github", "headers": { "X-GitHub-Event": "push" }, "body": "{\"ref\": \"refs/heads/main\"}",
        }),
        Some(("script", "rollback")) => json!({ "name": "greet", "version": 1 }),
        Some(("script", "get" | "history" | "delete")) => json!({ "name": "greet" }),
        Some(("script", _)) => json!({ "name": "osis_" }),
        Some(_) => json!({}),
        None => older(method),
    };
    example.as_object().cloned().unwrap_or_default()
}

fn settings(script: &str) -> Value {
    json!({ "script": script, "script_type": "osis" })
}

fn cron(name: &str) -> Value {
    match name {
        "list" => json!({}),
        "add" => {
            json!({ "name": "report", "schedule": "30 3 * * *", "time_zone": "Europe/Brussels", "job": settings("40 + 2") })
        }
        "edit" => json!({ "name": "report", "overlap": "replace" }),
        "history" => json!({ "name": "report", "limit": 20 }),
        "backfill" => json!({ "name": "report", "since": "7d", "only_missing": true }),
        _ => json!({ "name": "report" }),
    }
}

fn graph(name: &str) -> Value {
    let jobs = json!([
        { "name": "one", "job": settings("41") },
        { "name": "sum", "job": settings("parse_int(INPUTS.one) + 1"), "after": ["one"] },
    ]);
    match name {
        "submit" => json!({ "jobs": jobs, "name": "sums" }),
        "list" => json!({ "limit": 20 }),
        "get" => json!({ "id": JOB, "outcome": "failed" }),
        "edit" => json!({ "id": JOB, "at_a_time": 8, "stop_after": "5%" }),
        "tell" => json!({ "id": JOB, "order": "go" }),
        "wait" => json!({ "id": JOB, "wait": 10 }),
        _ => json!({ "id": JOB }),
    }
}

fn job(name: &str) -> Value {
    match name {
        "submit" | "create" => json!({ "job": settings("40 + 2") }),
        "run" => json!({ "job": settings("40 + 2"), "wait": 10 }),
        "wait" => json!({ "id": JOB, "wait": 10 }),
        "list" => json!({ "status": "error", "script_type": "python", "limit": 20 }),
        "errors" => json!({ "script_type": "python", "ended_since": "24h" }),
        "log" => json!({ "id": JOB, "limit": 100 }),
        "file" => json!({ "id": JOB, "name": "report.txt" }),
        "clone" => json!({ "id": JOB, "changes": { "timeout": 60 } }),
        "edit" => json!({ "id": JOB, "priority": 0 }),
        "change_many" => {
            json!({ "change": "retry", "filter": { "error": "timeout" }, "dry_run": true })
        }
        "clear" => json!({ "yes": true }),
        "tell" => json!({ "id": JOB, "event": "approved", "data": { "by": "18:00" } }),
        _ => json!({ "id": JOB }),
    }
}

fn object(name: &str) -> Value {
    match name {
        "types" => json!({ "context": "work" }),
        "list" => json!({ "type": "person", "context": "work", "limit": 20 }),
        "find" => json!({ "type": "person", "query": "age > 30 order by name", "context": "work" }),
        "get" => json!({ "type": "person", "id": "ann", "context": "work" }),
        _ => json!({ "type": "person", "ids": ["ann"], "context": "work" }),
    }
}

fn older(method: &str) -> Value {
    match method {
        "create_job" | "run_job" | "run_job_and_await_result" => {
            json!({ "job": settings("40 + 2") })
        }
        "play" => json!({ "script": "40 + 2", "script_type": "osis", "wait": 10 }),
        "list_jobs" => json!({ "status": "started" }),
        "clear_all_jobs" => json!({ "yes": true }),
        "unsubscribe" => json!({ "subscription": "1" }),
        "whoami" => json!({}),
        _ => json!({ "id": JOB }),
    }
}
