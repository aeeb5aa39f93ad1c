//! `script.*`: checks scripts without running them, and documents their functions.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::caller::Scope;
use super::super::method::CallContext;
use super::super::rpc_error::RpcError;
use super::blocking;
use super::params::Spelled;
use crate::config::EngineKind;
use crate::engine::rhai::Finding;
use crate::engine::scripts::{FunctionDocument, check_script, script_functions};
use crate::proto::job::InvalidJob;
use crate::proto::target::ScriptType;

methods! {
    /// Checks a script without running it, and returns its mistakes.
    "script.check", Scope::Submit => check;
    /// Documents the functions that osis and sal scripts can call.
    "script.functions", Scope::Read => functions;
}

/// A script to check.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CheckScript {
    /// The script.
    script: String,
    /// The script type.
    script_type: Spelled<ScriptType>,
    /// The extension of the script's file, one of its type's, such as .mjs.
    #[serde(default)]
    extension: String,
}

/// The mistakes of a script.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Findings {
    /// The mistakes; none if the script is good.
    pub(crate) errors: Vec<Finding>,
}

async fn check(context: CallContext, given: CheckScript) -> Result<Findings, RpcError> {
    let Spelled(script_type) = given.script_type;
    context.admits(script_type.as_str(), None).or_else(|error| {
        // A check has no group.
        let is_of_groups = error.data.as_ref().is_some_and(|data| data["bound"] == "groups");
        if is_of_groups { Ok(()) } else { Err(error) }
    })?;
    context.uses(&script_type)?;
    let most = context.config.job.script_size_max;
    if given.script.len() as u64 > most {
        return Err(InvalidJob::new("script", format!("is longer than {most} bytes")).into());
    }
    let config = Arc::clone(&context.config);
    let errors = blocking(move || {
        Ok(check_script(
            &config.types,
            (&config.job, &config.osis),
            &script_type,
            &given.script,
            &given.extension,
        )?)
    });
    Ok(Findings { errors: errors.await? })
}

/// Functions to document.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FindFunctions {
    /// The script type, `osis` or `sal`; without it those that the caller may use.
    script_type: Option<String>,
    /// Only functions whose name contains this text.
    name: Option<String>,
}

/// Functions of scripts.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Documented {
    /// The functions.
    pub(crate) functions: Vec<FunctionDocument>,
}

async fn functions(context: CallContext, given: FindFunctions) -> Result<Documented, RpcError> {
    // Without a type, only the functions of osis for a caller that may not use sal.
    let may_use_sal = context.usable_types().any(|name| {
        let config = context.config.types.get(name);
        config.is_some_and(|config| config.engine == EngineKind::Sal)
    });
    let script_type = given.script_type.or_else(|| (!may_use_sal).then(|| "osis".to_owned()));
    let mut functions = blocking(move || Ok(script_functions(script_type.as_deref())?)).await?;
    if let Some(name) = given.name {
        functions.retain(|function| function.name.contains(&name));
    }
    Ok(Documented { functions })
}
