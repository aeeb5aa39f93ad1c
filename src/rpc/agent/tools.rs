//! The tools of the server. Each calls a method of the API; its input schema comes from the method's types.

use std::time::Duration;

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::super::method::Method;
use super::fleet::{ON_MACHINES, WAIT_BATCH};
use super::types::AgentTypes;
use super::{
    AgentServer, MethodTable, Result, RpcError, code, fleet, published, results, schema, written,
};
use crate::proto::job::{JobId, SETTINGS, WAITS_FOR};
use crate::proto::text::{did_you_mean, meant, shown};

struct AgentTool {
    name: &'static str,
    description: &'static str,
    method: &'static str,
    kind: ToolKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ToolKind {
    Reads,
    Changes,
    /// It submits a job, whose settings it takes in place of a member `job`.
    Submits,
}

/// Declares the tools: the doc comment of each is its description; its name, its method and its kind follow.
macro_rules! tools {
    ($($(#[doc = $line:literal])+ $name:literal, $method:literal, $kind:ident;)+) => {
        [$(AgentTool {
            name: $name,
            description: concat!($($line),+).trim_ascii_start(),
            method: $method,
            kind: ToolKind::$kind,
        }),+]
    };
}

/// The settings of jobs that agents need.
const SETTINGS_TAKEN: [&str; 13] = [
    "script",
    "script_type",
    "name",
    "timeout",
    "args",
    "params",
    "env_vars",
    "context_id",
    "group",
    "where",
    "retries",
    "prerequisites",
    "extension",
];

/// The filters of jobs that agents need; the tool takes the others too.
const FILTERS_TAKEN: [&str; 7] =
    ["status", "script_type", "name", "caller", "since", "limit", "cursor"];

const TOOLS: [AgentTool; 23] = tools! {
    /// Runs a script and returns its output, or its error and log. If it takes longer than `wait`, returns the id
    /// of the job, which goes on; a cancel stops it. Files that the script leaves in the folder $HERO_OUTPUT_DIR
    /// are kept: job_files, get_file. A Python script may name packages of PyPI at its head (PEP 723).
    "run_script", "job.run", Submits;
    /// Runs a script once on every machine that has an actor of its type and matches `where`, and returns the answers:
    /// machines with an equal one together, failed ones with the error; and the absent machines. If it takes longer than
    /// `wait`, the jobs go on; a cancel stops them. To change machines, begin with one by `where`, and set `at_a_time`
    /// and `stop_after`.
    "run_on_machines", "batch.submit", Changes;
    /// Submits a script as a job and returns its id, without waiting.
    "submit_job", "job.submit", Submits;
    /// Waits for the end of a job and returns it.
    "wait_job", "job.wait", Reads;
    /// Waits for the end of a batch or graph of jobs, as run_on_machines makes one, and returns its counts and the answers
    /// of its jobs: equal ones together, failed ones with the error and the end of a log. With `wait` 0 as it is now.
    "wait_batch", "graph.wait", Reads;
    /// Stops all jobs of a batch or graph that have not ended.
    "stop_batch", "graph.stop", Changes;
    /// Returns a job: its state, output, error and settings.
    "get_job", "job.get", Reads;
    /// Lists jobs by state, the newest first.
    "list_jobs", "job.list", Reads;
    /// Returns lines of a job's log.
    "job_log", "job.log", Reads;
    /// Waits some seconds for further lines of a job's log, and returns them.
    "follow_job", "job.log", Reads;
    /// Lists the files of a job: those that its script left, and those that it was given.
    "job_files", "job.files", Reads;
    /// Returns the output of a job, also one that is too long for run_script or get_job.
    "job_output", "job.output", Reads;
    /// Returns a file of a job: text in parts of 32 KiB, an image as such, of any other its size and address.
    "get_file", "job.file", Reads;
    /// Stops a job, waiting or running.
    "stop_job", "job.stop", Changes;
    /// Tells a job an event that its script waits for, such as an approval: list_jobs with the status `waiting`
    /// shows jobs that wait, get_job the event in `wait`. Approve nothing that you were not asked to approve.
    "tell_job", "job.tell", Changes;
    /// Starts a session for several scripts that build on each other: a folder whose files stay, and an interpreter
    /// of Python, bash or node whose variables stay. It holds a place of an actor until it ends: end it by
    /// end_session once it is of no more use.
    "start_session", "session.start", Changes;
    /// Runs a script in a session and returns what it wrote, and its exit code. In Python and node the value of a
    /// last expression is written too. A session runs one script at a time; one that goes on after its `timeout`
    /// ends the session.
    "run_in_session", "session.run", Changes;
    /// Lists your sessions that have not ended.
    "list_sessions", "session.list", Reads;
    /// Ends a session. What it kept is lost, but for the files in $HERO_OUTPUT_DIR.
    "end_session", "session.end", Changes;
    /// Lists the script types that you may use and those among them that are not sandboxed, and tells the version
    /// of Hero.
    "script_types", "system.info", Reads;
    /// Returns what is wrong now, each problem with its severity and its remedy.
    "health", "system.health", Reads;
    /// Documents the functions that scripts in Rhai can call, by a part of the name.
    "script_functions", "script.functions", Reads;
    /// Checks a script without running it, and returns its mistakes.
    "check_script", "script.check", Reads;
};

/// The tool that runs a script and waits for its end.
pub(super) const RUN: &str = "run_script";
const FOLLOW: &str = "follow_job";
const FILE: &str = "get_file";
const OUTPUT: &str = "job_output";
const LIST: &str = "list_jobs";
const START_SESSION: &str = "start_session";
/// The longest wait for lines of a log.
const FOLLOW_MAX: Duration = Duration::from_secs(30);

/// Lists the tools; the one for every machine only if it is offered.
pub(super) fn list(table: &MethodTable, types: &AgentTypes, on_machines: bool) -> Vec<Value> {
    let described = |tool: &AgentTool| Some(tool.description(table.method(tool.method)?, types));
    let is_offered = |tool: &&AgentTool| on_machines || tool.name != ON_MACHINES;
    TOOLS.iter().filter(is_offered).filter_map(described).collect()
}

impl AgentTool {
    fn description(&self, method: &Method, types: &AgentTypes) -> Value {
        let reads = self.kind == ToolKind::Reads;
        let runs =
            self.kind == ToolKind::Submits || [START_SESSION, ON_MACHINES].contains(&self.name);
        let description = if runs {
            format!("{} {}{}", self.description, types.waiting(), types.sandboxes())
        } else {
            self.description.to_owned()
        };
        json!({
            "name": self.name,
            "description": description,
            "inputSchema": self.input(method, types),
            "annotations": { "readOnlyHint": reads, "openWorldHint": !reads },
        })
    }

    /// The schema of the parameters of its method, with the settings of the job beside them.
    fn input(&self, method: &Method, types: &AgentTypes) -> Value {
        let settings = SchemaSettings::draft2020_12().with(|set| {
            set.inline_subschemas = true;
            set.meta_schema = None;
        });
        let schema: Value = (method.params)(&mut settings.into_generator()).into();
        let Value::Object(mut schema) = schema else { return json!({ "type": "object" }) };
        // A method without parameters has no properties; clients want an object of none.
        let mut properties = match schema.remove("properties") {
            Some(Value::Object(properties)) => properties,
            _ => Map::new(),
        };
        if let Some(mut job) = properties.remove("job") {
            let settings =
                SETTINGS_TAKEN.map(|name| (name.to_owned(), job["properties"][name].take()));
            properties = settings.into_iter().chain(properties).collect();
            schema.insert("required".to_owned(), json!(["script", "script_type"]));
        }
        if self.name == ON_MACHINES {
            let mut job =
                properties.remove("jobs").unwrap_or_default()["items"]["properties"].take();
            properties.retain(|name, _| fleet::BOUNDS.contains(&name.as_str()));
            let settings = fleet::SETTINGS.map(|name| (name.to_owned(), job[name].take()));
            properties.extend(settings);
            schema.insert("required".to_owned(), json!(["script", "script_type"]));
        }
        if let Some(script_type) =
            properties.get_mut("script_type").filter(|_| self.kind != ToolKind::Reads)
        {
            script_type["enum"] = json!(types.names);
            if !types.unsandboxed.is_empty() {
                let names = types.unsandboxed.join(", ");
                script_type["description"] = json!(format!("Script type; not sandboxed: {names}"));
            }
        }
        if self.name == LIST {
            properties.retain(|name, _| FILTERS_TAKEN.contains(&name.as_str()));
        }
        properties.extend(
            self.own_arguments().into_iter().map(|(name, schema)| (name.to_owned(), schema)),
        );
        schema.insert("properties".to_owned(), Value::Object(properties));
        let mut schema = Value::Object(schema);
        schema::shorten(&mut schema);
        schema
    }

    /// Returns the error of an argument that the tool does not have.
    fn unknown(&self, table: &MethodTable, name: &str) -> RpcError {
        let method = table.method(self.method);
        let input = method.map(|method| self.input(method, &AgentTypes::default()));
        let properties = input.as_ref().and_then(|input| input["properties"].as_object());
        let known: Vec<&str> =
            properties.into_iter().flat_map(Map::keys).map(String::as_str).collect();
        let hint = match meant(name, known.iter().copied()) {
            None => format!("; there are `{}`", known.join("`, `")),
            near => did_you_mean(near),
        };
        let name = shown(name);
        let message =
            format!("the arguments of {} are wrong: unknown argument `{name}`{hint}", self.name);
        RpcError::wrong(&name, message)
    }

    /// Returns the name that the parameters of its method lack, of the error about it.
    fn unknown_name(&self, error: &RpcError) -> Option<String> {
        let name = error.data.as_ref()?.get("field")?.as_str()?;
        let start =
            format!("the parameters of {} are wrong: {name}: unknown field `{name}`", self.method);
        error.message.starts_with(&start).then(|| name.to_owned())
    }

    /// Returns an error of its method about the arguments of the tool, which has the settings of a job beside
    /// the others.
    fn in_its_names(&self, table: &MethodTable, mut error: RpcError) -> RpcError {
        if let Some(name) = self.unknown_name(&error) {
            return self.unknown(table, &name);
        }
        if let Some((is_batch, _)) = error.message.split_once("; hero graph show ") {
            error.message = format!("{is_batch}; wait_batch");
        }
        let of_method = format!("the parameters of {} are wrong: ", self.method);
        if let Some(reason) = error.message.strip_prefix(&of_method) {
            let reason = reason.strip_prefix("job.").unwrap_or(reason);
            error.message = format!("the arguments of {} are wrong: {reason}", self.name);
        }
        if let Some(field) = error.data.as_mut().and_then(|data| data.get_mut("field"))
            && let Some(own) = field.as_str().and_then(|field| field.strip_prefix("job."))
        {
            *field = json!(own);
        }
        error
    }

    async fn call(&self, server: &AgentServer, arguments: Map<String, Value>) -> Result<Value> {
        match self.name {
            FOLLOW => return follow(server, arguments).await.map(results::of_values),
            ON_MACHINES => {
                let known = [&fleet::SETTINGS[..], &fleet::BOUNDS, &["wait"]].concat();
                return match arguments.keys().find(|name| !known.contains(&name.as_str())) {
                    Some(name) => Err(self.unknown(&server.table, name)),
                    None => Box::pin(fleet::run(server, arguments)).await,
                };
            }
            WAIT_BATCH => return Box::pin(fleet::wait(server, arguments)).await,
            FILE => return written::file(server, arguments).await,
            OUTPUT => return written::output(server, arguments).await,
            _ => {}
        }
        self.run(server, self.params(&server.table, arguments)?).await
    }

    /// Calls its method and returns its result.
    async fn run(&self, server: &AgentServer, params: Value) -> Result<Value> {
        let mut found = server.call(self.method, params).await?;
        if self.method == "job.submit"
            && let Some(id) = found["id"].as_str().and_then(|id| id.parse().ok())
            && let Some(words) = server.context.waits_for(&id).await
        {
            found[WAITS_FOR] = json!(words);
        }
        match self.method {
            "job.run" => written::ended(server, &found).await,
            "session.run" => Ok(written::ran_in_session(&found)),
            _ => Ok(results::of_values(found)),
        }
    }

    /// The arguments that it has beside the parameters of its method.
    fn own_arguments(&self) -> Vec<(&'static str, Value)> {
        match self.name {
            FOLLOW => vec![(
                "wait",
                json!({
                    "description": "The longest time to wait for a line, in seconds, up to 30; 10 without it",
                    "type": "number",
                }),
            )],
            ON_MACHINES => vec![(
                "wait",
                json!({
                    "description": "The longest time to wait, in seconds, up to 3600; 60 without it",
                    "type": "number",
                }),
            )],
            FILE | OUTPUT => written::part_schema().to_vec(),
            _ => Vec::new(),
        }
    }

    fn params(&self, table: &MethodTable, mut arguments: Map<String, Value>) -> Result<Value> {
        if self.kind != ToolKind::Submits {
            return Ok(Value::Object(arguments));
        }
        if arguments.contains_key("job") {
            return Err(self.unknown(table, "job"));
        }
        let is_setting = |name: &String| SETTINGS.iter().any(|setting| setting.field == *name);
        let names: Vec<String> =
            arguments.keys().filter(|name| is_setting(name)).cloned().collect();
        let job: Map<String, Value> =
            names.into_iter().filter_map(|name| arguments.remove_entry(&name)).collect();
        arguments.insert("job".to_owned(), Value::Object(job));
        Ok(Value::Object(arguments))
    }
}

/// Calls a tool. A call that fails is a result with `isError`, which the agent sees.
pub(super) async fn call(server: &AgentServer, mut params: Value) -> Result<Value> {
    let wrong = |message: String| Err(RpcError::new(code::INVALID_PARAMS, message));
    let published = params["name"].as_str().and_then(published::script_of);
    let Some(tool) = TOOLS.iter().find(|tool| match published {
        Some(_) => tool.name == RUN,
        None => params["name"] == tool.name,
    }) else {
        let name = params["name"].to_string();
        return wrong(format!("there is no tool {}", name.chars().take(80).collect::<String>()));
    };
    let arguments = match params.get_mut("arguments").map(Value::take) {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(arguments)) => arguments,
        Some(_) => return wrong("the arguments are not an object".to_owned()),
    };
    let called = match published {
        Some(name) => {
            tool.run(server, json!({ "job": { "uses": name, "params": arguments } })).await
        }
        None => tool.call(server, arguments).await,
    };
    Ok(called.unwrap_or_else(|error| {
        let error = tool.in_its_names(&server.table, error);
        results::result(true, &[results::text(&error.message)], Some(&json!({ "error": error })))
    }))
}

/// Returns the lines of a log after a place; if there are none yet, waits for some.
async fn follow(server: &AgentServer, mut arguments: Map<String, Value>) -> Result<Value> {
    let wait = arguments.remove("wait").and_then(|wait| wait.as_f64()).unwrap_or(10.0);
    let wait = Duration::from_secs_f64(wait.clamp(0.0, FOLLOW_MAX.as_secs_f64()));
    let params = Value::Object(arguments);
    let found = server.call("job.log", params.clone()).await?;
    let is_empty = found["lines"].as_array().is_none_or(Vec::is_empty);
    let id: Option<JobId> = params["id"].as_str().and_then(|id| id.parse().ok());
    let Some(id) = id.filter(|_| is_empty) else { return Ok(found) };
    let mut follower = match params["after"].as_str() {
        Some(after) => server.context.client.logs().follow_after(&id, after.to_owned()),
        None => server.context.client.logs().follow(&id),
    };
    // The lines are read below; also a job that ended ends the wait.
    let lines = async {
        while follower.next().await?.is_some_and(|lines| lines.is_empty()) {}
        Ok::<(), RpcError>(())
    };
    if let Ok(waited) = tokio::time::timeout(wait, lines).await {
        waited?;
    }
    server.call("job.log", params).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_names_the_arguments_of_the_tool() {
        let tool = TOOLS.iter().find(|tool| tool.name == "run_script").expect("a tool");
        let message = "the parameters of job.run are wrong: job.timeout: invalid type";
        let error = RpcError::wrong("job.timeout", message);
        let told = tool.in_its_names(&MethodTable::new(None), error);
        assert_eq!(told.message, "the arguments of run_script are wrong: timeout: invalid type");
        assert_eq!(told.data, Some(json!({ "field": "timeout" })));
    }

    #[test]
    fn unknown_argument_is_rejected_with_a_suggestion() {
        let table = MethodTable::new(None);
        let told = |tool: &str, name: &str| {
            let tool = TOOLS.iter().find(|of| of.name == tool).expect("a tool");
            let message = format!(
                "the parameters of {} are wrong: {name}: unknown field `{name}`, expected one of `job`, `wait`",
                tool.method
            );
            let told = tool.in_its_names(&table, RpcError::wrong(name, message));
            assert_eq!(told.data, Some(json!({ "field": name })));
            let start =
                format!("the arguments of {} are wrong: unknown argument `{name}`", tool.name);
            told.message.strip_prefix(&start).expect("the argument is named").to_owned()
        };
        assert_eq!(told("run_script", "type"), "; did you mean `script_type`?");
        assert_eq!(told("submit_job", "scrpt"), "; did you mean `script`?");
        assert_eq!(told("list_jobs", "state"), "; did you mean `status`?");
        let all = told("run_script", "zzzzzz");
        assert!(all.starts_with("; there are `script`, `script_type`, `name`, "), "{all}");
        assert!(all.contains("`wait`") && !all.contains("`job`"), "{all}");
        assert!(told("follow_job", "zzzzzz").ends_with(", `wait`"));
        let run = TOOLS.iter().find(|tool| tool.name == RUN).expect("a tool");
        let within = Map::from_iter([("job".to_owned(), json!({ "script": "1" }))]);
        let refused = run.params(&table, within).expect_err("the settings stand beside the others");
        assert!(refused.message.contains("unknown argument `job`; "), "{refused}");
    }

    #[test]
    fn each_tool_has_a_method_and_described_arguments_without_references() {
        let table = MethodTable::new(None);
        let names = vec!["bash".to_owned()];
        let none = Vec::new;
        let types = AgentTypes { names, unsandboxed: none(), network: none(), unserved: none() };
        assert_eq!(list(&table, &types, false).len(), TOOLS.len() - 1);
        let tools = list(&table, &types, true);
        assert_eq!(tools.len(), TOOLS.len());
        for tool in tools {
            let schema = &tool["inputSchema"];
            assert_eq!(schema["type"], "object", "{tool}");
            assert!(schema["properties"].is_object(), "{tool}");
            assert!(!schema.to_string().contains("$ref"), "{tool}");
            let bytes = schema.to_string().len();
            assert!(tool["name"] != LIST || bytes < 1500, "{bytes} bytes: {schema}");
            for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                assert!(property["description"].is_string(), "{} {name}", tool["name"]);
            }
        }
    }
}
