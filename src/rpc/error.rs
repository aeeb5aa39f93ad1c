//! The error of a call, as JSON-RPC has it.

use serde::Serialize;
use serde_json::Value;

use crate::client::ClientError;

/// The codes of errors: those of JSON-RPC 2.0, then Hero's own.
pub mod code {
    /// The text is no JSON.
    pub const PARSE: i32 = -32700;
    /// The JSON is no request.
    pub const INVALID_REQUEST: i32 = -32600;
    /// No such method.
    pub const METHOD_NOT_FOUND: i32 = -32601;
    /// The parameters are wrong.
    pub const INVALID_PARAMS: i32 = -32602;
    /// The call failed, for example because Redis cannot be reached.
    pub const INTERNAL: i32 = -32603;
    /// The caller is not known. HTTP answers 401.
    pub const UNAUTHENTICATED: i32 = -32001;
    /// The thing of the call does not exist.
    pub const NOT_FOUND: i32 = -32002;
    /// The caller may not do this. HTTP answers 403.
    pub const NOT_PERMITTED: i32 = -32003;
    /// The state of the thing does not allow it.
    pub const CONFLICT: i32 = -32004;
}

/// The error of a call.
#[derive(Debug, Clone, PartialEq, Serialize, thiserror::Error)]
#[error("{message}")]
pub struct RpcError {
    /// One of [`code`].
    pub code: i32,
    /// A sentence: what was being done, to what, why it failed, what to do.
    pub message: String,
    /// More about it, for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl RpcError {
    /// Creates an error without data.
    pub fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }
}

impl From<ClientError> for RpcError {
    fn from(error: ClientError) -> Self {
        Self::new(code::INTERNAL, error.to_string())
    }
}
