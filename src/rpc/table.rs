//! The table of methods.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::caller::{Caller, Scope};
use super::error::{RpcError, code};
use super::methods;
use crate::client::Client;
use crate::config::Config;

/// The means of a method: the client library and its caller.
#[derive(Clone)]
pub struct Context {
    /// The jobs of the namespace.
    pub client: Client,
    /// The address of Redis, without a password.
    pub address: Arc<str>,
    /// The configuration in force: script types, limits, periodic jobs, bounds of objects.
    pub config: Arc<Config>,
    /// The caller.
    pub caller: Arc<Caller>,
}

type Answer = Pin<Box<dyn Future<Output = Result<Value, RpcError>> + Send>>;
type Call = Box<dyn Fn(Context, Value) -> Answer + Send + Sync>;

/// A method of the API.
pub struct Method {
    /// Its name, as `job.get`.
    pub name: &'static str,
    /// Its purpose in one sentence.
    pub summary: &'static str,
    /// The scope that its caller needs.
    pub scope: Scope,
    /// The schema of its parameters, an object.
    pub params: fn(&mut SchemaGenerator) -> Schema,
    /// The schema of its result.
    pub result: fn(&mut SchemaGenerator) -> Schema,
    call: Call,
}

impl Method {
    /// Creates a method from a function that takes its parameters and returns its result.
    pub fn new<P, R, F, A>(
        name: &'static str,
        scope: Scope,
        summary: &'static str,
        function: F,
    ) -> Self
    where
        P: DeserializeOwned + JsonSchema + Send + 'static,
        R: Serialize + JsonSchema,
        F: Fn(Context, P) -> A + Send + Sync + Clone + 'static,
        A: Future<Output = Result<R, RpcError>> + Send + 'static,
    {
        let call = move |context: Context, params: Value| -> Answer {
            let function = function.clone();
            Box::pin(async move {
                let params = serde_json::from_value(params).map_err(|error| {
                    let message = format!("the parameters of {name} are wrong: {error}");
                    RpcError::new(code::INVALID_PARAMS, message)
                })?;
                let result = function(context, params).await?;
                serde_json::to_value(result).map_err(|error| {
                    let message = format!("the result of {name} cannot be written: {error}");
                    RpcError::new(code::INTERNAL, message)
                })
            })
        };
        Self {
            name,
            summary,
            scope,
            params: SchemaGenerator::subschema_for::<P>,
            result: SchemaGenerator::subschema_for::<R>,
            call: Box::new(call),
        }
    }
}

/// All methods, by their names.
pub struct Table {
    methods: BTreeMap<&'static str, Method>,
}

impl Table {
    /// Creates the table of all methods.
    pub fn new() -> Self {
        Self { methods: methods::all().into_iter().map(|method| (method.name, method)).collect() }
    }

    /// The methods, in the order of their names.
    pub fn methods(&self) -> impl Iterator<Item = &Method> {
        self.methods.values()
    }

    /// Calls a method. `params` is an object, or null for none.
    ///
    /// # Errors
    /// [`RpcError`] if there is no such method, its caller may not call it, or it fails.
    pub async fn call(
        &self,
        context: Context,
        name: &str,
        params: Value,
    ) -> Result<Value, RpcError> {
        let method = self.methods.get(name).ok_or_else(|| {
            let message = format!("there is no method {name}; rpc.discover lists all methods");
            RpcError::new(code::METHOD_NOT_FOUND, message)
        })?;
        if !context.caller.scopes.has(method.scope) {
            let scope = serde_json::to_value(method.scope).unwrap_or_default();
            let message =
                format!("{} may not call {name}: it needs the scope {scope}", context.caller.name);
            return Err(RpcError::new(code::NOT_PERMITTED, message));
        }
        let params = if params.is_null() { Value::Object(serde_json::Map::new()) } else { params };
        (method.call)(context, params).await
    }
}

impl Default for Table {
    fn default() -> Self {
        Self::new()
    }
}
