//! `script.publish` and the other methods of published scripts.

use std::path::Path;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::super::caller::Scope;
use super::super::method::CallContext;
use super::super::rpc_error::{RpcError, code};
use super::blocking;
use super::job_types::mask;
use super::params::{Nothing, Spelled};
use crate::client::{PublishedDocument, ScriptDocument, ScriptTextDocument};
use crate::config::read_script_head;
use crate::proto::job::{Entrance, InvalidJob, JobSpec, Setting};
use crate::proto::named_script::{Parameters, ScriptName, ScriptUse};

methods! {
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

async fn list(context: CallContext, _: Nothing) -> Result<ScriptList, RpcError> {
    let all = context.client.published_scripts().await?;
    let seen = all.iter().filter(|(_, of)| context.sees_script(of));
    Ok(ScriptList {
        scripts: seen.map(|(name, of)| shown(&context, ScriptDocument::of(name, of))).collect(),
    })
}

/// Returns a script as the caller may see it: its environment variables are for those who may change jobs of others.
fn shown(context: &CallContext, mut of: ScriptDocument) -> ScriptDocument {
    if !context.operates() {
        let mut settings = Value::Object(std::mem::take(&mut of.settings));
        mask(&mut settings);
        if let Value::Object(masked) = settings {
            of.settings = masked;
        }
    }
    of
}

/// A version of a published script.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OneScript {
    /// Its name, or NAME@VERSION; the latest version without one.
    name: Spelled<ScriptUse>,
}

async fn get(context: CallContext, given: OneScript) -> Result<ScriptTextDocument, RpcError> {
    let Spelled(used) = given.name;
    let script = ScriptTextDocument::of(context.visible_script(&used).await?);
    Ok(ScriptTextDocument { of: shown(&context, script.of), ..script })
}

/// A published script.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NamedScript {
    /// Its name.
    name: Spelled<ScriptName>,
}

/// The versions of a script.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ScriptVersions {
    /// The versions that are kept, the newest first.
    pub(crate) versions: Vec<ScriptDocument>,
}

async fn history(context: CallContext, given: NamedScript) -> Result<ScriptVersions, RpcError> {
    let Spelled(name) = given.name;
    context.visible_script(&ScriptUse { name: name.clone(), version: None }).await?;
    let versions = context.client.script_history(&name).await?;
    let seen = versions.iter().filter(|of| context.sees_script(of));
    let versions = seen.map(|of| shown(&context, ScriptDocument::of(&name, of))).collect();
    Ok(ScriptVersions { versions })
}

/// A script to publish.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewScript {
    /// Its name: 1 to 48 of a-z, 0-9, _ and -, the first a letter.
    name: Spelled<ScriptName>,
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

async fn publish(context: CallContext, given: NewScript) -> Result<PublishedDocument, RpcError> {
    context.needs_no_bounds("publish scripts")?;
    let NewScript { name: Spelled(name), script, description, params, settings } = given;
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
    Ok(context.client.publish_script(&name, &script, &definition, by).await?)
}

/// A version to roll back to.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OlderVersion {
    /// The name of the script.
    name: Spelled<ScriptName>,
    /// The version whose text and settings the new one has.
    #[schemars(range(min = 1))]
    version: u32,
}

async fn rollback(
    context: CallContext,
    given: OlderVersion,
) -> Result<PublishedDocument, RpcError> {
    context.needs_no_bounds("publish scripts")?;
    let Spelled(name) = given.name;
    let used = ScriptUse { name, version: Some(given.version) };
    let older = context.visible_script(&used).await?;
    context.uses(&older.of.definition.script_type)?;
    let by = context.caller.name.as_str();
    Ok(context.client.rollback_script(&used.name, given.version, by).await?)
}

/// A script that was deleted.
#[derive(Serialize, JsonSchema)]
struct DeletedScript {
    /// Its name.
    name: String,
}

async fn delete(context: CallContext, given: NamedScript) -> Result<DeletedScript, RpcError> {
    context.needs_no_bounds("delete scripts")?;
    let Spelled(name) = given.name;
    let newest = context.visible_script(&ScriptUse { name: name.clone(), version: None }).await?;
    // Of a type that is no longer configured anybody may delete it.
    if context.config.types.contains_key(&newest.of.definition.script_type) {
        context.uses(&newest.of.definition.script_type)?;
    }
    context.client.delete_script(&name).await?;
    Ok(DeletedScript { name: name.to_string() })
}
