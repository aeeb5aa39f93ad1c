//! The table of methods.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

use serde_json::Value;
use tokio::sync::Semaphore;

use super::caller_work::CallerWork;
use super::follow::Following;
use super::method::{CallContext, Method, MethodResult};
use super::rpc_error::{Result, RpcError, code};
use super::{methods, openapi, openrpc, request_trace};
use crate::proto::text::shown;
use crate::trace::Tracer;

pub struct MethodTable {
    methods: BTreeMap<&'static str, Method>,
    /// The names of the methods by the same with an underscore for the dot.
    identifiers: HashMap<String, &'static str>,
    document: OnceLock<Value>,
    paths: OnceLock<Value>,
    pub(crate) work: Arc<CallerWork>,
    tracer: Option<Tracer>,
    /// Room for the records of calls whose answers were lost.
    in_doubt: Arc<Semaphore>,
}

/// The maximum number of records that wait for Redis.
const IN_DOUBT_MAX: usize = 1000;

impl MethodTable {
    /// The method that describes all others.
    pub const DISCOVER: &'static str = "rpc.discover";

    /// Creates the table. With a tracer each call that submits jobs is a span.
    pub fn new(tracer: Option<Tracer>) -> Self {
        let methods: BTreeMap<_, _> =
            methods::all().into_iter().map(|method| (method.name, method)).collect();
        let dotted = methods.keys().filter(|name| name.contains('.'));
        let identifiers = dotted.map(|name| (name.replace('.', "_"), *name)).collect();
        let (document, paths) = (OnceLock::new(), OnceLock::new());
        let in_doubt = Arc::new(Semaphore::new(IN_DOUBT_MAX));
        let work = Arc::default();
        Self { methods, identifiers, document, paths, work, tracer, in_doubt }
    }

    /// The methods, in the order of their names.
    pub fn methods(&self) -> impl Iterator<Item = &Method> {
        self.methods.values()
    }

    /// Returns the method of this name, or of the name with an underscore for its dot.
    pub fn method(&self, name: &str) -> Option<&Method> {
        let other = || self.methods.get(self.identifiers.get(name)?);
        self.methods.get(name).or_else(other)
    }

    /// The `OpenRPC` document of the methods.
    pub fn document(&self) -> &Value {
        self.document.get_or_init(|| openrpc::document(self.methods()))
    }

    /// The `OpenAPI` document of the paths that call methods.
    pub fn paths_document(&self) -> &Value {
        self.paths.get_or_init(|| openapi::document(self.document()))
    }

    /// Calls a method. `params` is an object, an array of the parameters in their order, or null for
    /// none.
    ///
    /// # Errors
    /// [`RpcError`] if there is no such method, its caller may not call it, or it fails.
    pub async fn call(&self, context: CallContext, name: &str, params: Value) -> Result<Value> {
        if name == Self::DISCOVER {
            return Ok(self.document().clone());
        }
        let result = self.answer(context, name, params).await?;
        result.json().map_err(|error| {
            let message = format!("the result of {name} cannot be written: {error}");
            RpcError::new(code::INTERNAL, message)
        })
    }

    /// Calls a method as [`MethodTable::call`] does, for a result of its own type.
    pub async fn answer(
        &self,
        context: CallContext,
        name: &str,
        params: Value,
    ) -> Result<Box<dyn MethodResult>> {
        let method = self.permitted(&context, name)?;
        let (client, params) = (context.client.clone(), method.named(params)?);
        let of = method.changes().then(|| target_of(&params));
        let of_call = CallContext { work: Arc::clone(&self.work), ..context.clone() };
        let call = (method.call)(of_call, params);
        let result = match &self.tracer {
            Some(tracer) => request_trace::traced(tracer, method.name, call).await,
            None => call.await,
        };
        let result = match result {
            Err(error) if error.code == code::NOT_FOUND => {
                Err(methods::names_graph(&context, error).await)
            }
            result => result,
        };
        if let (Err(error), Some(of)) = (&result, of)
            && error.is_in_doubt
            && let Ok(room) = Arc::clone(&self.in_doubt).try_acquire_owned()
        {
            let noted = client.note_in_doubt(method.name, of, error.message.clone());
            tokio::spawn(async move {
                noted.await;
                drop(room);
            });
        }
        result
    }

    /// Returns what a subscription follows. Its method is called as any other.
    pub(super) async fn open(
        &self,
        context: CallContext,
        name: &str,
        params: Value,
    ) -> Result<Following> {
        let method = self.permitted(&context, name)?;
        let subscription = method.subscription.as_ref().ok_or_else(|| unknown(name))?;
        (subscription.open)(context, method.named(params)?).await
    }

    pub(super) fn permitted(&self, context: &CallContext, name: &str) -> Result<&Method> {
        let method = self.method(name).ok_or_else(|| unknown(name))?;
        if let Some(scope) = method.scope {
            context.needs(scope, method.name)?;
        }
        Ok(method)
    }
}

/// Returns what a call names, and the names of its other parameters, for a record of it.
fn target_of(params: &Value) -> String {
    const NAMES: [&str; 10] =
        ["id", "ids", "name", "names", "queue", "queues", "actor", "machine", "change", "event"];
    let members = params.as_object().into_iter().flatten();
    let shown = members.map(|(name, value)| match value {
        Value::String(text) if NAMES.contains(&name.as_str()) => text.clone(),
        Value::Array(_) if NAMES.contains(&name.as_str()) => value.to_string(),
        _ => format!("({name})"),
    });
    let shown = shown.collect::<Vec<_>>().join(" ");
    if shown.is_empty() { "all".to_owned() } else { shown }
}

fn unknown(name: &str) -> RpcError {
    let name = shown(name);
    let message = format!("there is no method `{name}`; rpc.discover lists all methods");
    RpcError::new(code::METHOD_NOT_FOUND, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn method_has_a_name_that_is_an_identifier() {
        let table = MethodTable::new(None);
        let found = |name: &str| table.method(name).map(|method| method.name);
        assert_eq!(found("job_change_many"), Some("job.change_many"));
        assert_eq!((found("create_job"), found("job_")), (Some("create_job"), None));
        for name in table.identifiers.keys() {
            assert!(!table.methods.contains_key(name.as_str()), "{name} is another method");
        }
    }

    #[test]
    fn required_parameters_of_a_method_come_first() {
        for method in MethodTable::new(None).document()["methods"].as_array().expect("methods") {
            let params = method["params"].as_array().expect("parameters");
            let is_required = params.iter().map(|param| param["required"] == true);
            let (name, is_required) = (&method["name"], is_required.collect::<Vec<_>>());
            assert!(is_required.is_sorted_by(|one, next| one >= next), "{name}: {is_required:?}");
        }
    }
}
