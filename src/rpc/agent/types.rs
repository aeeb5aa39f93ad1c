//! The script types of an agent, in words.

use super::super::method::CallContext;

#[derive(Default)]
pub(super) struct AgentTypes {
    pub(super) names: Vec<String>,
    /// The names of those whose scripts are not sandboxed.
    pub(super) unsandboxed: Vec<String>,
    /// The names of those whose scripts may use the network.
    pub(super) network: Vec<String>,
    /// The names of those that no actor serves now.
    pub(super) unserved: Vec<String>,
}

impl AgentTypes {
    pub(super) async fn of(context: &CallContext) -> Self {
        let names = || context.usable_types();
        // Without an answer nothing is said of actors.
        let actors = context.client.actors().documents(None, None).await.ok();
        let is_served = |name: &str| {
            actors.as_ref().is_none_or(|actors| {
                let admits = |group: &str| context.caller.admits(name, Some(group));
                actors.iter().any(|actor| actor.script_type == name && admits(&actor.group))
            })
        };
        let unsandboxed = names().filter(|name| !context.config.is_sandboxed(name));
        let network = names().filter(|name| context.config.has_network(name));
        Self {
            network: network.map(ToString::to_string).collect(),
            unserved: names().map(ToString::to_string).filter(|name| !is_served(name)).collect(),
            unsandboxed: unsandboxed.map(ToString::to_string).collect(),
            names: names().map(ToString::to_string).collect(),
        }
    }

    /// Says in one sentence which scripts would wait for an actor, if there are some.
    pub(super) fn waiting(&self) -> String {
        match self.unserved.join(", ") {
            none if none.is_empty() => none,
            some => format!("No actor serves {some} now: such scripts wait for one. "),
        }
    }

    /// Says in one sentence which scripts run in a sandbox.
    pub(super) fn sandboxes(&self) -> String {
        match self.unsandboxed.join(", ") {
            all if all.is_empty() => "Each script runs in a sandbox.".to_owned(),
            some => format!(
                "Each script runs in a sandbox, except scripts of the type {some}: they may do all that the \
                 user of the daemon may."
            ),
        }
    }
}
