//! The `OpenAPI` document of the paths that call methods, from the types of the methods.

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::rpc_error::{RpcError, code};

const OPENAPI: &str = "3.1.0";

struct RestPath {
    /// The verb of HTTP in lower case.
    verb: &'static str,
    path: &'static str,
    operation: &'static str,
    method: &'static str,
    /// True if it may wait for the end of the job.
    waits: bool,
    result: RestResult,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum RestResult {
    /// The result of the method.
    Document,
    /// The same, of a job that was submitted.
    Created,
    /// The same, with the parameters of the method in the address.
    List,
    Text,
    /// Text or bytes, or a range of them.
    File,
}

/// The paths. The pages serve the log and the files.
fn paths() -> [RestPath; 7] {
    use RestResult::{Created, Document, File, List, Text};
    let path = |verb, path, operation, method, waits, result| RestPath {
        verb,
        path,
        operation,
        method,
        waits,
        result,
    };
    [
        path("get", "/jobs", "listJobs", "job.list", false, List),
        path("post", "/jobs", "submitJob", "job.submit", true, Created),
        path("post", "/jobs/{id}/tell", "tellJob", "job.tell", false, Document),
        path("get", "/jobs/{id}", "getJob", "job.get", true, Document),
        path("get", "/jobs/{id}/output", "getJobOutput", "job.output", false, File),
        path("get", "/jobs/{id}/log", "getJobLog", "job.log", false, Text),
        path("get", "/jobs/{id}/files/{name}", "getJobFile", "job.file", false, File),
    ]
}

/// Returns the document of the paths; `openrpc` is the document of all methods.
pub(super) fn document(openrpc: &Value) -> Value {
    let mut described = json!({});
    for path in &paths() {
        let place = path.path.trim_end_matches('/');
        described[place][path.verb] = operation(path, openrpc);
    }
    let mut schemas = openrpc["components"]["schemas"].clone();
    schemas["Error"] = json!({
        "type": "object",
        "required": ["error"],
        "properties": { "error": {
            "type": "object",
            "required": ["code", "message"],
            "properties": {
                "code": { "type": "integer" },
                "message": { "type": "string" },
                "data": { "type": "object" },
            },
        } },
    });
    json!({
        "openapi": OPENAPI,
        "info": {
            "title": "Hero",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Jobs by plain HTTP. Each path calls a method of the JSON-RPC API, which docs/openrpc.json \
                            describes as a whole.",
            "license": { "name": env!("CARGO_PKG_LICENSE") },
        },
        "paths": described,
        "security": [{ "token": [] }],
        "components": {
            "schemas": schemas,
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
        },
    })
}

fn operation(path: &RestPath, openrpc: &Value) -> Value {
    let method = method_of(openrpc, path.method);
    let summary = match path.result {
        RestResult::Text => json!("Returns the log of a job as text."),
        _ => method["summary"].clone(),
    };
    let mut parameters = Vec::new();
    for name in path.path.split('{').skip(1).filter_map(|rest| rest.split('}').next()) {
        parameters.push(json!({
            "name": name, "in": "path", "required": true, "schema": { "type": "string" },
        }));
    }
    if path.waits {
        let wait = method_of(openrpc, "job.run")["params"].as_array().cloned().unwrap_or_default();
        let wait = wait.into_iter().find(|param| param["name"] == "wait").unwrap_or_default();
        parameters.push(json!({
            "name": "wait", "in": "query", "description": wait["description"],
            "schema": { "type": "number", "minimum": 0, "maximum": 3600 },
        }));
    }
    if path.result == RestResult::List {
        let filters = method["params"].as_array().into_iter().flatten();
        parameters.extend(filters.map(|filter| {
            json!({
                "name": filter["name"], "in": "query", "description": filter["description"],
                "schema": filter["schema"],
            })
        }));
    }
    let mut operation = json!({
        "operationId": path.operation,
        "summary": summary,
        "parameters": parameters,
        "responses": responses(path, &method),
    });
    if path.verb == "post" {
        let schema = match path.result {
            RestResult::Created => submission(&method, openrpc),
            _ => parameters_in_body(path, &method),
        };
        operation["requestBody"] = json!({
            "required": true,
            "content": { "application/json": { "schema": schema } },
        });
    }
    operation
}

fn method_of(openrpc: &Value, name: &str) -> Value {
    let mut methods = openrpc["methods"].as_array().into_iter().flatten();
    methods.find(|method| method["name"] == name).cloned().unwrap_or_default()
}

/// The parameters of a method that are not in its path.
fn parameters_in_body(path: &RestPath, method: &Value) -> Value {
    let (mut properties, mut required) = (json!({}), Vec::new());
    for param in method["params"].as_array().into_iter().flatten() {
        let name = param["name"].as_str().unwrap_or_default();
        if path.path.contains(&format!("{{{name}}}")) {
            continue;
        }
        properties[name] = param["schema"].clone();
        if let Some(text) = param["description"].as_str()
            && properties[name].is_object()
        {
            properties[name]["description"] = json!(text);
        }
        if param["required"] == true {
            required.push(json!(name));
        }
    }
    json!({
        "type": "object", "properties": properties, "required": required, "additionalProperties": false,
    })
}

/// The job, with the other parameters of its submission beside its settings.
fn submission(method: &Value, openrpc: &Value) -> Value {
    let params = method["params"].as_array().into_iter().flatten();
    let mut job = openrpc["components"]["schemas"]["JobSettings"].clone();
    for param in params.filter(|param| param["name"] != "job") {
        let name = param["name"].as_str().unwrap_or_default();
        job["properties"][name] = param["schema"].clone();
        job["properties"][name]["description"] = param["description"].clone();
    }
    job
}

fn responses(path: &RestPath, method: &Value) -> Value {
    let schema = &method["result"]["schema"];
    let (status, content) = match path.result {
        RestResult::Document | RestResult::List => {
            ("200", json!({ "application/json": { "schema": schema } }))
        }
        RestResult::Created => ("201", json!({ "application/json": { "schema": schema } })),
        RestResult::Text => ("200", json!({ "text/plain": { "schema": { "type": "string" } } })),
        RestResult::File => ("200", json!({ "application/octet-stream": {}, "text/plain": {} })),
    };
    let mut responses = json!({ status: { "description": "Done", "content": content } });
    if path.result == RestResult::Created {
        responses["200"] = json!({
            "description": "With wait: the job, as it is at the end or after that time",
            "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Job" } } },
        });
    }
    if path.result == RestResult::File {
        responses["206"] =
            json!({ "description": "With a header Range: that part", "content": content });
        responses["416"] = json!({ "description": "The file has no byte of the range" });
    }
    let status = |code| RpcError::new(code, "").status();
    let of_all = [
        (status(code::INVALID_PARAMS), "The request is wrong"),
        (status(code::UNAUTHENTICATED), "The caller is not known"),
        (status(code::NOT_PERMITTED), "The caller may not do this"),
        (status(code::NOT_FOUND), "It does not exist, or the caller may not see it"),
        (status(code::CONFLICT), "Its state does not allow it"),
        (StatusCode::MISDIRECTED_REQUEST, "The host is not known: api.hosts"),
        (
            StatusCode::SERVICE_UNAVAILABLE,
            "Redis does not answer, or the caller reads too many files",
        ),
    ];
    let with_body = [
        (StatusCode::REQUEST_TIMEOUT, "The body did not arrive in time: api.client_timeout"),
        (StatusCode::PAYLOAD_TOO_LARGE, "The body is too large: api.body_size_max"),
        (StatusCode::UNSUPPORTED_MEDIA_TYPE, "The body must be application/json"),
    ];
    let with_body = with_body.into_iter().filter(|_| path.verb == "post");
    for (status, description) in of_all.into_iter().chain(with_body) {
        responses[status.as_str()] = json!({
            "description": description,
            "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Error" } } },
        });
    }
    responses
}
