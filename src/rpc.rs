//! The API: JSON-RPC 2.0 from one table of methods. Each method has a name, a scope that its caller needs,
//! the types of its parameters and its result, and a function that calls the client library.
//!
//! The table knows no transport: the listener, the page and the server for agents call the same [`MethodTable`].

mod agent;
mod agent_calls;
mod agent_http;
mod answer_blocks;
mod belongs;
mod caller;
mod examples;
mod file_answer;
mod file_reads;
mod follow;
mod guard;
mod guesses;
mod http;
mod http_body;
mod json;
mod kept;
pub mod listen;
mod login;
mod method;
mod methods;
mod nonce;
mod openapi;
mod openrpc;
mod peer;
mod places;
mod request_trace;
mod rest;
mod rest_paths;
mod rpc_error;
mod schema_names;
mod seen;
mod service;
mod socket;
mod subscriptions;
mod table;
mod tokens;

pub use agent::{AgentServer, CallCourse};
pub(crate) use belongs::Belongs;
pub use caller::{Bounds, Caller, Scope, Scopes};
pub use guard::{Arrival, RefusedPage, has_hidden_origin};
pub use http::Pages;
pub use login::{CheckedToken, TokenCheck, TokenLogin};
pub use method::{CallContext, Method, MethodResult};
pub(crate) use methods::results;
pub use nonce::{LOGIN_LIFETIME, Logins};
pub use places::ConnectionPlace;
pub use rpc_error::{RpcError, code};
pub(crate) use seen::{moment_within, sees_whole_types};
pub use service::ApiService;
pub(crate) use service::author;
pub use table::MethodTable;
pub use tokens::Tokens;
