//! The table of methods.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde_json::Value;

use super::error::{RpcError, code, shown};
use super::follow::Following;
use super::method::{CallContext, Method};
use super::rest_paths::PATHS;
use super::{methods, openapi, openrpc};

/// All methods, by their names.
pub struct MethodTable {
    methods: BTreeMap<&'static str, Method>,
    document: OnceLock<Value>,
}

impl MethodTable {
    /// The method that describes all others.
    pub const DISCOVER: &'static str = "rpc.discover";

    /// Creates the table of all methods.
    pub fn new() -> Self {
        let methods = methods::all().into_iter().map(|method| (method.name, method)).collect();
        Self { methods, document: OnceLock::new() }
    }

    /// The methods, in the order of their names.
    pub fn methods(&self) -> impl Iterator<Item = &Method> {
        self.methods.values()
    }

    /// Returns the method of this name.
    pub fn method(&self, name: &str) -> Option<&Method> {
        self.methods.get(name)
    }

    /// The `OpenRPC` document of the methods.
    pub fn document(&self) -> &Value {
        self.document.get_or_init(|| openrpc::document(self.methods()))
    }

    /// The `OpenAPI` document of the paths that call methods.
    pub fn paths_document(&self) -> Value {
        openapi::document(&PATHS, self.document())
    }

    /// Calls a method. `params` is an object, an array of the parameters in their order, or null for
    /// none.
    ///
    /// # Errors
    /// [`RpcError`] if there is no such method, its caller may not call it, or it fails.
    pub async fn call(
        &self,
        context: CallContext,
        name: &str,
        params: Value,
    ) -> Result<Value, RpcError> {
        if name == Self::DISCOVER {
            return Ok(self.document().clone());
        }
        let method = self.permitted(&context, name)?;
        (method.call)(context, method.named(params)?).await
    }

    /// Returns what a subscription follows. Its method is called as any other.
    pub(super) async fn open(
        &self,
        context: CallContext,
        name: &str,
        params: Value,
    ) -> Result<Following, RpcError> {
        let method = self.permitted(&context, name)?;
        let subscription = method.subscription.as_ref().ok_or_else(|| unknown(name))?;
        (subscription.open)(context, method.named(params)?).await
    }

    fn permitted(&self, context: &CallContext, name: &str) -> Result<&Method, RpcError> {
        let method = self.methods.get(name).ok_or_else(|| unknown(name))?;
        if let Some(scope) = method.scope {
            context.needs(scope, name)?;
        }
        Ok(method)
    }
}

fn unknown(name: &str) -> RpcError {
    let name = shown(name);
    let message = format!("there is no method `{name}`; rpc.discover lists all methods");
    RpcError::new(code::METHOD_NOT_FOUND, message)
}

impl Default for MethodTable {
    fn default() -> Self {
        Self::new()
    }
}
