//! The clients of other languages: their own tests, against the real daemon; and the example of the Rust
//! client.

mod generated;
mod mcp;
mod python;
mod rust;
mod types;
