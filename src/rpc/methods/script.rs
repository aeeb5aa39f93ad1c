//! `script.*`: published scripts; checks of scripts without running them, and the functions that they can call.

use std::path::Path;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::job_types::mask;
use super::params::Nothing;
use super::{BoundedWork, CallContext, PATIENCE, Result, RpcError, Scope, blocking, code};
use crate::client::{PublishedDocument, ScriptDocument, ScriptTextDocument};
use crate::config::{EngineKind, read_script_head};
use crate::engine::rhai::{Finding, Function};
use crate::engine::scripts::{check_script, script_groups};
use crate::proto::job::{Entrance, InvalidJob, JobSpec, Setting};
use crate::proto::named_script::{Parameters, ScriptName, ScriptUse};
use crate::proto::target::ScriptType;

methods! {
    /// Checks a script without running it, and returns its mistakes.
    "script.check", Scope::Submit => check;
    /// Documents the functions that osis and sal scripts can call.
    "script.functions", Scope::Read => functions;
    /// Lists the latest version of each published script, without its text.
    "script.list", Scope::Read => list;
    /// Shows a published script: its parameters, its settings and its text.
    "script.get", Scope::Read => get;
    /// Lists the versions of a published script that are kept, the newest first.
    "script.history", Scope::Read => history;
    /// Publishes a version of a script: jobs name it by `uses`. The same version again publishes nothing.
    "script.publish", Scope::Admin => publish;
    /// Publishes the text and the settings of an older version of a script as a new version.
    "script.rollback", Scope::Admin => rollback;
    /// Deletes a published script with all its versions; its jobs keep their texts.
    "script.delete", Scope::Admin => delete;
}

/// The published scripts.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ScriptList {
    /// The latest version of each, by name.
    pub(crate) scripts: Vec<ScriptDocument>,
}

async fn list(context: CallContext, _: Nothing) -> Result<ScriptList> {
    let all = context.client.scripts().list().await?;
    let seen = all.iter().filter(|(_, of)| context.sees_script(of));
    Ok(ScriptList {
        scripts: seen.map(|(name, of)| shown(&context, ScriptDocument::of(name, of))).collect(),
    })
}

/// Returns a script as the caller may see it: its environment variables are for those who may change jobs of others.
fn shown(context: &CallContext, mut of: ScriptDocument) -> ScriptDocument {
    if !context.caller.operates() {
        mask(&mut of.settings);
    }
    of
}

/// A version of a published script.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OneScript {
    /// Its name, or NAME@VERSION; the latest version without one.
    name: ScriptUse,
}

async fn get(context: CallContext, params: OneScript) -> Result<ScriptTextDocument> {
    let script = ScriptTextDocument::of(context.visible_script(&params.name).await?);
    Ok(ScriptTextDocument { of: shown(&context, script.of), ..script })
}

/// A published script.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NamedScript {
    /// Its name.
    name: ScriptName,
}

/// The versions of a script.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ScriptVersions {
    /// The versions that are kept, the newest first.
    pub(crate) versions: Vec<ScriptDocument>,
}

async fn history(context: CallContext, params: NamedScript) -> Result<ScriptVersions> {
    let name = params.name;
    context.visible_script(&ScriptUse { name: name.clone(), version: None }).await?;
    let versions = context.client.scripts().history(&name).await?;
    let seen = versions.iter().filter(|of| context.sees_script(of));
    let versions = seen.map(|of| shown(&context, ScriptDocument::of(&name, of))).collect();
    Ok(ScriptVersions { versions })
}

/// A script to publish.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewScript {
    /// Its name: 1 to 48 of a-z, 0-9, _ and -, the first a letter.
    name: ScriptName,
    /// Its text. Its head, a comment from `# /// hero` to `# ///`, may have the members below as TOML.
    script: String,
    /// Its description.
    description: Option<String>,
    /// Its parameters by name, each an object with the words of JSON Schema: type, description, required, default, enum,
    /// minimum, maximum, minLength, maxLength, pattern.
    params: Option<Map<String, Value>>,
    /// The settings of its jobs that do not say otherwise, as in a job to submit.
    #[serde(default)]
    settings: Map<String, Value>,
}

async fn publish(context: CallContext, params: NewScript) -> Result<PublishedDocument> {
    context.needs_no_bounds("publish scripts")?;
    let NewScript { name, script, description, params, settings } = params;
    let mut spec = JobSpec::default();
    let path = format!("{name}");
    let head = read_script_head(Path::new(&path), &script, &mut spec);
    let mut head = head.map_err(|error| RpcError::new(code::INVALID_PARAMS, error.to_string()))?;
    for (word, value) in &settings {
        let setting = Setting::named(word)
            .ok_or_else(|| InvalidJob::new(word.clone(), "is not a setting of a job"))?;
        if let Some(why) = setting.absent_at(Entrance::Script) {
            return Err(InvalidJob::new(word.clone(), why).into());
        }
        let text = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
        setting.set(&mut spec, &text)?;
    }
    if let Some(description) = description {
        head.description = description;
    }
    if let Some(params) = params {
        let read: Result<Parameters, _> = serde_json::from_value(Value::Object(params));
        head.params = Some(read.map_err(|error| InvalidJob::new("params", error.to_string()))?);
    }
    let config = Arc::clone(&context.config);
    let text = script.clone();
    let definition = blocking(move || Ok(config.define_script(&text, &spec, head)?)).await?;
    context.uses(&definition.script_type)?;
    let by = context.caller.name.as_str();
    Ok(context.client.scripts().publish(&name, &script, &definition, by).await?)
}

/// A version to roll back to.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OlderVersion {
    /// The name of the script.
    name: ScriptName,
    /// The version whose text and settings the new one has.
    #[schemars(range(min = 1))]
    version: u32,
}

async fn rollback(context: CallContext, params: OlderVersion) -> Result<PublishedDocument> {
    context.needs_no_bounds("publish scripts")?;
    let name = params.name;
    let used = ScriptUse { name, version: Some(params.version) };
    let older = context.visible_script(&used).await?;
    context.uses(&older.of.definition.script_type)?;
    let by = context.caller.name.as_str();
    Ok(context.client.scripts().rollback(&used.name, params.version, by).await?)
}

/// A script that was deleted.
#[derive(Serialize, JsonSchema)]
struct DeletedScript {
    /// Its name.
    name: String,
}

async fn delete(context: CallContext, params: NamedScript) -> Result<DeletedScript> {
    context.needs_no_bounds("delete scripts")?;
    let name = params.name;
    let newest = context.visible_script(&ScriptUse { name: name.clone(), version: None }).await?;
    // Of a type that is no longer configured anybody may delete it.
    if context.config.types.contains_key(&newest.of.definition.script_type) {
        context.uses(&newest.of.definition.script_type)?;
    }
    context.client.scripts().delete(&name).await?;
    Ok(DeletedScript { name: name.to_string() })
}

/// A script to check.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CheckScript {
    /// The script.
    script: String,
    /// The script type.
    script_type: ScriptType,
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

async fn check(context: CallContext, params: CheckScript) -> Result<Findings> {
    let script_type = params.script_type;
    context.admits(script_type.as_str(), None).or_else(|error| {
        // A check has no group.
        let is_of_groups = error.data.as_ref().is_some_and(|data| data["bound"] == "groups");
        if is_of_groups { Ok(()) } else { Err(error) }
    })?;
    context.uses(&script_type)?;
    let most = context.config.job.script_size_max;
    if params.script.len() as u64 > most {
        return Err(InvalidJob::new("script", format!("is longer than {most} bytes")).into());
    }
    let config = Arc::clone(&context.config);
    let place = context.work.begin(&context.caller.name, BoundedWork::Check, PATIENCE).await?;
    let errors = blocking(move || {
        // The check goes on after its caller has left.
        let _place = place;
        Ok(check_script(
            &config.types,
            (&config.job, &config.osis),
            &script_type,
            &params.script,
            &params.extension,
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
    pub(crate) functions: Vec<Function>,
}

async fn functions(context: CallContext, params: FindFunctions) -> Result<Documented> {
    // Without a type, only the functions of osis for a caller that may not use sal.
    let may_use_sal = context.usable_types().any(|name| {
        let config = context.config.types.get(name);
        config.is_some_and(|config| config.engine == EngineKind::Sal)
    });
    let script_type = params.script_type.or_else(|| (!may_use_sal).then(|| "osis".to_owned()));
    let groups = blocking(move || Ok(script_groups(script_type.as_deref())?)).await?;
    let mut functions: Vec<Function> =
        groups.into_iter().flat_map(|group| group.functions).collect();
    if let Some(name) = params.name {
        functions.retain(|function| function.full_name.contains(&name));
    }
    Ok(Documented { functions })
}
