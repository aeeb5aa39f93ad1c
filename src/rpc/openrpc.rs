//! The `OpenRPC` document of the methods, from their types.

use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};

use super::examples;
use super::method::Method;
use super::rpc_error::code;
use super::schema_names::name_schemas;
use crate::proto::access::Scope;

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
    let changes = method.scope.is_some_and(|scope| scope != Scope::Read);
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
    if changes || reads_output || method.name == "events.follow" {
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
    let given = examples::params(method.name);
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
