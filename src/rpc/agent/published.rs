//! A tool for each published script that the agent may run. Its schema is the script's.

use serde_json::{Value, json};

use super::super::caller::Scope;
use super::types::AgentTypes;
use super::{CallContext, Result, RpcError, code, shown};
use crate::proto::named_script::{Parameter, Parameters, ScriptName, ScriptVersion};

/// Begins the names of these tools: no other tool has such a name.
const PREFIX: &str = "call_";
/// The maximum number of these tools in the list.
const TOOLS_MAX: usize = 64;

/// Returns the published script that a tool runs.
pub(super) fn script_of(tool: &str) -> Option<ScriptName> {
    tool.strip_prefix(PREFIX)?.parse().ok()
}

/// Lists the tools of the scripts that the agent may run, by name. Without an answer of Redis there are none.
pub(super) async fn list(context: &CallContext, types: &AgentTypes) -> Vec<Value> {
    let usable = usable(context, types).await;
    usable.iter().take(TOOLS_MAX).map(|(name, script)| described(name, script, types)).collect()
}

async fn usable(context: &CallContext, types: &AgentTypes) -> Vec<(ScriptName, ScriptVersion)> {
    if !context.caller.scopes.has(Scope::Submit) {
        return Vec::new();
    }
    let mut scripts = context.client.scripts().list().await.unwrap_or_default();
    scripts.retain(|(_, script)| {
        let script_type = script.definition.script_type.as_str();
        context.sees_script(script) && types.names.iter().any(|name| name == script_type)
    });
    scripts
}

/// Lists a prompt for each of these scripts: a person chooses it, and the agent runs the script.
pub(super) async fn prompts(context: &CallContext, types: &AgentTypes) -> Vec<Value> {
    let prompt = |(name, script): &(ScriptName, ScriptVersion)| {
        let declared = script.definition.params.iter().flat_map(|params| &params.0);
        let argument = |(name, of): (&String, &Parameter)| json!({ "name": name, "description": of.description, "required": of.required });
        json!({
            "name": name,
            "description": script.definition.description,
            "arguments": declared.map(argument).collect::<Vec<_>>(),
        })
    };
    usable(context, types).await.iter().take(TOOLS_MAX).map(prompt).collect()
}

/// Returns the message of a prompt: it asks for a call of the tool of its script.
pub(super) async fn prompt(
    context: &CallContext,
    types: &AgentTypes,
    params: &Value,
) -> Result<Value> {
    let usable = usable(context, types).await;
    let Some((name, script)) = usable.iter().find(|(name, _)| params["name"] == name.as_str())
    else {
        let name = shown(params["name"].as_str().unwrap_or_default());
        let message = format!("there is no prompt `{name}`; prompts/list shows all");
        return Err(RpcError::new(code::INVALID_PARAMS, message));
    };
    let about = about(&script.definition.description);
    let arguments = match &params["arguments"] {
        Value::Object(given) if !given.is_empty() => {
            format!("with these parameters: {}", Value::Object(given.clone()))
        }
        _ => "; ask me for the parameters that it needs".to_owned(),
    };
    let text = format!("{about}Call the tool {PREFIX}{name} {arguments}.").replace(" ;", ";");
    let message = json!({ "role": "user", "content": { "type": "text", "text": text } });
    Ok(json!({ "description": script.definition.description, "messages": [message] }))
}

/// Returns what a script says about itself as sentences before others; nothing if it says nothing.
fn about(description: &str) -> String {
    let text = description.trim_end();
    match text.chars().next_back() {
        None => String::new(),
        Some('.' | '!' | '?' | ':' | '…') => format!("{text} "),
        Some(_) => format!("{text}. "),
    }
}

fn described(name: &ScriptName, script: &ScriptVersion, types: &AgentTypes) -> Value {
    let of = &script.definition;
    let is_unsandboxed = types.unsandboxed.iter().any(|name| name == of.script_type.as_str());
    let sandbox = if is_unsandboxed { " It is not sandboxed." } else { "" };
    let about = about(&of.description);
    let schema = of
        .params
        .as_ref()
        .map_or_else(|| json!({ "type": "object", "properties": {} }), Parameters::schema);
    json!({
        "name": format!("{PREFIX}{name}"),
        "description": format!(
            "{about}Runs the published script {name}@{}, of type {}, and returns its output, as run_script does.{sandbox}",
            script.version, of.script_type
        ),
        "inputSchema": schema,
        "annotations": { "readOnlyHint": false, "openWorldHint": true },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_script_says_about_itself_ends_as_a_sentence() {
        for (description, sentence) in [
            ("Deploys a version", "Deploys a version. "),
            ("Deploys a version.\n", "Deploys a version. "),
            ("Ready?", "Ready? "),
            ("  ", ""),
        ] {
            assert_eq!(about(description), sentence, "{description}");
        }
    }
}
