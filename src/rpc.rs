//! The API: JSON-RPC 2.0 from one table of methods. Each method has a name, a scope that its caller needs,
//! the types of its parameters and its result, and a function that calls the client library.
//!
//! The table knows no transport: the listener, the page and the server for agents call the same [`MethodTable`].

mod agent;
mod agent_calls;
mod agent_http;
mod caller;
mod caller_work;
mod expiring_cache;
mod file_answer;
mod follow;
mod guard;
mod http;
mod http_body;
mod json;
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
mod rpc_error;
mod schema_names;
mod service;
mod socket;
mod subscriptions;
mod table;
mod visible_health;
mod webhook_delivery;
mod webhook_rates;
mod webhooks;

pub use agent::{AgentServer, CallCourse};
pub(crate) use agent_http::{AgentMessage, message as agent_message};
pub use caller::{Bounds, Caller, Scope, Scopes};
pub(crate) use caller_work::{BoundedWork, PATIENCE};
pub(crate) use guard::asking_for_token;
pub use guard::{Arrival, RefusedPage, has_hidden_origin};
pub use http::Pages;
pub(crate) use json::{on_own_thread, response};
pub use login::{CheckedToken, TokenCheck, TokenLogin, Tokens};
pub use method::{CallContext, Method, MethodResult};
pub(crate) use methods::{found_file, names_graph, results, submitted_awaited};
pub use nonce::{LOGIN_LIFETIME, Logins};
pub use places::ConnectionPlace;
pub(crate) use rest::unknown_parameter;
pub use rpc_error::{RpcError, code};
pub use service::ApiService;
pub use table::MethodTable;
pub(crate) use visible_health::{sees_whole_types, visible_snapshot};
