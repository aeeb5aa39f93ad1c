//! The API: JSON-RPC 2.0 from one table of methods. Each method has a name, a scope that its caller needs,
//! the types of its parameters and its result, and a function that calls the client library.
//!
//! The table knows no transport: the listener, the page and the server for agents call the same [`Table`].

mod caller;
mod error;
mod methods;
mod nonce;
mod openrpc;
mod table;
mod tokens;

pub use caller::{Bounds, Caller, Scope, Scopes};
pub use error::{RpcError, code};
pub use nonce::{LOGIN_LIFETIME, Logins};
pub use table::{Context, Method, Table};
pub use tokens::Tokens;
