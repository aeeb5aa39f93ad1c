//! `system.*`: the daemon itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::caller::Scope;
use super::super::error::RpcError;
use super::super::table::{Context, Method};

/// No parameters.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct None {}

/// The program that answers.
#[derive(Serialize, JsonSchema)]
struct Info {
    /// The version of Hero.
    version: String,
    /// The address of Redis, without a password.
    redis: String,
}

pub(super) fn methods() -> [Method; 1] {
    [Method::new("system.info", Scope::Read, "Returns the version and the address of Redis.", info)]
}

async fn info(context: Context, _: None) -> Result<Info, RpcError> {
    context.client.ping().await?;
    Ok(Info {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        redis: context.address.as_ref().to_owned(),
    })
}
