//! A method of the API: its name, its types and its function.

use std::any::Any;
use std::pin::Pin;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokio::sync::watch;

use super::caller::{Caller, Scope};
use super::caller_work::CallerWork;
use super::follow::Following;
use super::rpc_error::{Result, RpcError, code};
use crate::client::{Client, FilesByPlace};
use crate::config::Config;
use crate::proto::job::JobId;

/// The means of a method: the client library and its caller.
#[derive(Clone)]
pub struct CallContext {
    /// The jobs of the namespace.
    pub client: Client,
    /// The address of Redis, without a password.
    pub address: Arc<str>,
    /// The configuration in force: script types, limits, periodic jobs, bounds of objects.
    pub config: Arc<Config>,
    pub caller: Arc<Caller>,
    /// The work of all callers that is bounded for each.
    pub(super) work: Arc<CallerWork>,
    /// Learns the job that `job.run` waits for.
    pub(super) begun: Option<Arc<watch::Sender<Option<JobId>>>>,
    /// Files that came beside the parameters, for the jobs that are submitted, by their places.
    pub(super) files: Arc<FilesByPlace>,
    /// True for a user of Redis itself, who may use any script type: the configuration of the actors decides, which may
    /// be another one.
    pub(super) is_of_command_line: bool,
}

pub(super) type Answer = Pin<Box<dyn Future<Output = Result<Box<dyn MethodResult>>> + Send>>;
pub(super) type Call = Box<dyn Fn(CallContext, Value) -> Answer + Send + Sync>;
type Opening = Pin<Box<dyn Future<Output = Result<Following>> + Send>>;
type Open = Box<dyn Fn(CallContext, Value) -> Opening + Send + Sync>;

/// The result of a method: of its own type for the page, JSON for everybody else.
pub trait MethodResult: Any + Send {
    /// Returns it as JSON.
    fn json(&self) -> serde_json::Result<Value>;
}

impl dyn MethodResult {
    /// Returns it as a value of its own type.
    pub fn typed<R: 'static>(self: Box<Self>) -> Result<R> {
        let result: Box<dyn Any> = self;
        result.downcast().map(|result| *result).map_err(|_| {
            let message = format!("the result is no {}", std::any::type_name::<R>());
            RpcError::new(code::INTERNAL, message)
        })
    }
}

impl<R: Serialize + Send + 'static> MethodResult for R {
    fn json(&self) -> serde_json::Result<Value> {
        serde_json::to_value(self)
    }
}

pub struct Method {
    /// Its name, as `job.get`.
    pub name: &'static str,
    /// Its purpose in one sentence.
    pub summary: &'static str,
    /// The scope that its caller needs; `None`: any known caller may call it.
    pub scope: Option<Scope>,
    /// The names of its parameters, in the order of positional parameters.
    pub names: fn() -> Vec<String>,
    /// The schema of its parameters, an object.
    pub params: fn(&mut SchemaGenerator) -> Schema,
    pub result: fn(&mut SchemaGenerator) -> Schema,
    pub(super) call: Call,
    pub(super) subscription: Option<Subscription>,
}

/// The further parts of a method that opens a subscription.
pub(super) struct Subscription {
    /// The schema of the parameters of its notifications.
    pub(super) notice: fn(&mut SchemaGenerator) -> Schema,
    pub(super) open: Open,
}

impl Method {
    /// Creates a method from a function that takes its parameters, a struct, and returns its result.
    pub fn new<P, R, F, A>(
        name: &'static str,
        scope: impl Into<Option<Scope>>,
        summary: &'static str,
        function: F,
    ) -> Self
    where
        P: DeserializeOwned + JsonSchema + Send + 'static,
        R: Serialize + JsonSchema + Send + 'static,
        F: Fn(CallContext, P) -> A + Send + Sync + Clone + 'static,
        A: Future<Output = Result<R>> + Send + 'static,
    {
        let call = move |context: CallContext, params: Value| -> Answer {
            let function = function.clone();
            Box::pin(async move {
                let result = function(context, read(name, params)?).await?;
                Ok(Box::new(result) as Box<dyn MethodResult>)
            })
        };
        Self {
            name,
            summary,
            scope: scope.into(),
            names: names_of::<P>,
            params: P::json_schema,
            result: SchemaGenerator::subschema_for::<R>,
            call: Box::new(call),
            subscription: None,
        }
    }

    /// Creates a method that opens a subscription with notifications of type `N`. Its function takes the
    /// parameters and returns what to follow. Only a WebSocket has it.
    pub(super) fn subscription<P, N, F, A>(
        name: &'static str,
        scope: Scope,
        summary: &'static str,
        function: F,
    ) -> Self
    where
        P: DeserializeOwned + JsonSchema + Send + 'static,
        N: JsonSchema,
        F: Fn(CallContext, P) -> A + Send + Sync + Clone + 'static,
        A: Future<Output = Result<Following>> + Send + 'static,
    {
        let open = move |context: CallContext, params: Value| -> Opening {
            let function = function.clone();
            Box::pin(async move { function(context, read(name, params)?).await })
        };
        let call = move |_: CallContext, _: P| async move {
            let message =
                format!("{name} is a subscription: open a WebSocket at /rpc and call it there");
            Err::<OpenSubscription, _>(RpcError::new(code::INVALID_REQUEST, message))
        };
        let notice = SchemaGenerator::subschema_for::<N>;
        let subscription = Some(Subscription { notice, open: Box::new(open) });
        Self { subscription, ..Self::new(name, scope, summary, call) }
    }

    pub(super) fn changes(&self) -> bool {
        self.scope.is_some_and(|scope| scope != Scope::Read)
    }

    /// Returns the parameters by their names.
    pub(super) fn named(&self, params: Value) -> Result<Value> {
        let wrong = |what: String| {
            let message = format!("the parameters of {} are {what}", self.name);
            RpcError::new(code::INVALID_PARAMS, message)
        };
        match params {
            Value::Null => Ok(Value::Object(Map::new())),
            Value::Object(_) => Ok(params),
            Value::Array(values) => {
                let names = (self.names)();
                if values.len() > names.len() {
                    return Err(wrong(format!("{}, more than its {}", values.len(), names.len())));
                }
                Ok(Value::Object(names.into_iter().zip(values).collect()))
            }
            _ => Err(wrong("neither an object nor an array".to_owned())),
        }
    }
}

/// An open subscription. Its notifications have the name of its method.
#[derive(Serialize, JsonSchema)]
pub(super) struct OpenSubscription {
    /// The id of the subscription, on this connection.
    pub(super) subscription: String,
}

/// Reads the parameters of a method.
pub(super) fn read<P: DeserializeOwned>(name: &str, params: Value) -> Result<P> {
    serde_path_to_error::deserialize(params).map_err(|error| {
        let field = error.path().to_string();
        let reason = error.inner().to_string();
        let (place, field) = match field.as_str() {
            "." => (String::new(), None),
            field => (format!("{field}: "), Some(field)),
        };
        let message = format!("the parameters of {name} are wrong: {place}{reason}");
        let error = RpcError::new(code::INVALID_PARAMS, message);
        match field {
            Some(field) => error.with("field", field),
            None => error,
        }
    })
}

impl CallContext {
    /// Returns the means of a caller: its client sees and changes jobs with the rights of the caller.
    pub fn new(
        client: Client,
        address: Arc<str>,
        config: Arc<Config>,
        caller: Arc<Caller>,
    ) -> Self {
        let client = client.acting_as(caller.job_rights());
        let (work, begun, files, is_of_command_line) =
            (Arc::default(), None, Arc::default(), false);
        Self { client, address, config, caller, work, begun, files, is_of_command_line }
    }

    /// Returns the means of a user of Redis itself.
    #[must_use]
    pub fn of_command_line(self) -> Self {
        Self { is_of_command_line: true, ..self }
    }

    /// Submits the next jobs with files, by the places of the jobs: 0 for a job alone.
    #[must_use]
    pub fn with_files(self, files: FilesByPlace) -> Self {
        Self { files: Arc::new(files), ..self }
    }

    /// Refuses what needs a scope that the caller does not have.
    pub(super) fn needs(&self, scope: Scope, doing: &str) -> Result<()> {
        if self.caller.scopes.has(scope) {
            return Ok(());
        }
        let word = scope.as_str();
        let may_wait = scope == Scope::Read && self.caller.scopes.has(Scope::Submit);
        let hint = match doing {
            "job.get" | "job.output" if may_wait => {
                "; the scope submit gets the output of a new job from POST /jobs?wait=10, or from job.run"
            }
            _ => "",
        };
        let message =
            format!("{} may not call {doing}: it needs the scope {word}{hint}", self.caller.name);
        Err(RpcError::new(code::NOT_PERMITTED, message).with("scope", word))
    }
}

/// Returns the names of the fields of a struct, in their order but the required ones first.
fn names_of<P: JsonSchema>() -> Vec<String> {
    let schema = P::json_schema(&mut SchemaGenerator::default());
    let properties = schema.get("properties").and_then(Value::as_object);
    let mut names: Vec<String> = properties.into_iter().flat_map(Map::keys).cloned().collect();
    let required = schema.get("required").and_then(Value::as_array);
    names.sort_by_key(|name| !required.is_some_and(|all| all.iter().any(|one| one == name)));
    names
}
