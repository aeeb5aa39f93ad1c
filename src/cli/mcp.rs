//! `hero mcp`: a server of the Model Context Protocol on standard input and output; agents run
//! scripts by it. Each message is one line of JSON-RPC.

use std::collections::HashMap;
use std::io::{BufRead, Read};
use std::str::FromStr;
use std::sync::Arc;

use clap::Args;
use serde_json::Value;
use tokio::sync::mpsc::{self, Receiver};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::author::of_command;
use super::input::parsed;
use super::{Global, output};
use crate::config::check_configured;
use crate::error::{Error, Exit};
use crate::proto::audit::Author;
use crate::proto::object::Context as ObjectContext;
use crate::proto::target::{Group, IllegalName, ScriptType};
use crate::rpc::{
    AgentMessage, AgentServer, Bounds, CallContext, CallCourse, Caller, RpcError, Scope,
    agent_message, code, response,
};

const MESSAGE_BYTES_MAX: u64 = 16 << 20;
/// The maximum number of requests at a time; further ones wait.
const RUNNING_MAX: usize = 32;

/// Let an agent run scripts, over the Model Context Protocol
///
/// The agent talks on standard input and output. It may read all jobs within its bounds, and submit, stop,
/// retry and delete its own. Its scripts are sandboxed; a type without a sandbox, such as sal, is offered only
/// where it is named by --type, by the token, or in [type.NAME] who.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hero mcp\n  hero mcp --caller assistant --type python --type bash\n\n\
                        For clients that read a file of servers:\n  \
                        {\"mcpServers\": {\"hero\": {\"command\": \"hero\", \"args\": [\"mcp\"]}}}"
)]
pub(super) struct Mcp {
    /// The name of the agent, which becomes `caller_id` of its jobs
    #[arg(long, value_name = "NAME", default_value = "mcp")]
    caller: String,
    /// Give the agent the rights and the name of this token, in place of all other options
    #[arg(long, env = "HERO_MCP_TOKEN", hide_env_values = true, value_name = "TOKEN")]
    #[arg(conflicts_with_all = ["caller", "types", "groups", "contexts"])]
    token: Option<String>,
    /// Bind the agent to jobs of this script type; may be repeated
    #[arg(short = 't', long = "type", value_name = "TYPE", value_parser = legal::<ScriptType>)]
    types: Vec<String>,
    /// Bind the agent to jobs of this group; may be repeated
    #[arg(short, long = "group", value_name = "GROUP", value_parser = legal::<Group>)]
    groups: Vec<String>,
    /// Bind the agent to jobs and objects of this context; may be repeated
    #[arg(long = "context", value_name = "NAME", value_parser = legal::<ObjectContext>)]
    contexts: Vec<String>,
}

/// Returns a name as it is given, if it is legal.
fn legal<T: FromStr<Err = IllegalName>>(text: &str) -> Result<String, IllegalName> {
    text.parse::<T>().map(|_| text.to_owned())
}

impl Mcp {
    pub(super) async fn run(self, global: &Global) -> Result<(), Error> {
        let config = global.config()?;
        for name in &self.types {
            check_configured(&parsed(name)?, &config.types)?;
        }
        let client = global.client()?;
        let address = config.redis.redacted_url();
        let caller = match &self.token {
            Some(token) => {
                let record = client.tokens().check(token).await?;
                let unknown = "the token is unknown, expired or revoked: hero token list";
                record.map(Caller::from).ok_or_else(|| Error::new(Exit::NotPermitted, unknown))?
            }
            None => self.caller(),
        };
        let author = Author {
            who: caller.name.clone(),
            through: "agent",
            names: vec![caller.name.clone()],
            ..of_command()
        };
        let (client, config) = (client.as_author(author), Arc::new(config.clone()));
        let context = CallContext::new(client, address.into(), config, Arc::new(caller));
        let server = Arc::new(AgentServer::new(context));
        serve(&server, lines()).await?;
        Ok(())
    }

    fn caller(&self) -> Caller {
        let set = |names: &[String]| (!names.is_empty()).then(|| names.iter().cloned().collect());
        let bounds = Bounds {
            types: set(&self.types),
            groups: set(&self.groups),
            contexts: set(&self.contexts),
            ..Bounds::default()
        };
        let scopes = [Scope::Read, Scope::Submit].into_iter().collect();
        Caller { name: self.caller.clone(), scopes, bounds }
    }
}

/// Reads standard input on a thread of its own, which ends with the program.
fn lines() -> Receiver<Vec<u8>> {
    let (lines, receiver) = mpsc::channel(1);
    std::thread::spawn(move || {
        let mut input = std::io::stdin().lock();
        loop {
            let mut line = Vec::new();
            let mut bounded = (&mut input).take(MESSAGE_BYTES_MAX + 1);
            let read = bounded.read_until(b'\n', &mut line);
            if !read.is_ok_and(|read| read > 0) || lines.blocking_send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

/// Answers messages until there are no more, several at a time.
async fn serve(server: &Arc<AgentServer>, mut lines: Receiver<Vec<u8>>) -> Result<(), Error> {
    let mut running: JoinSet<(String, Option<Value>)> = JoinSet::new();
    let mut cancels: HashMap<String, watch::Sender<bool>> = HashMap::new();
    let (notices, mut printed) = mpsc::channel(RUNNING_MAX);
    let mut open = true;
    loop {
        tokio::select! {
            line = lines.recv(), if open && running.len() < RUNNING_MAX => match line.as_deref().map(read) {
                None => open = false,
                Some(Ok(None)) => {}
                Some(Err((id, error))) => output::json(&response(id, Err(error)))?,
                Some(Ok(Some(AgentMessage { id: None, method, params }))) => {
                    let running = cancels.get(&params["requestId"].to_string());
                    if let Some(running) = running.filter(|_| method == "notifications/cancelled") {
                        running.send_replace(true);
                    }
                }
                Some(Ok(Some(AgentMessage { id: Some(id), method, params }))) => {
                    let (server, notices) = (Arc::clone(server), notices.clone());
                    let (cancel, cancelled) = watch::channel(false);
                    cancels.insert(id.to_string(), cancel);
                    running.spawn(async move {
                        let course = CallCourse { notices, cancelled };
                        let result = server.answer_in(course, &method, params).await;
                        (id.to_string(), result.map(|result| response(id, result)))
                    });
                }
            },
            Some(notice) = printed.recv(), if open || !running.is_empty() => output::json(&notice)?,
            Some(done) = running.join_next() => {
                let Ok((key, answer)) = done else { continue };
                cancels.remove(&key);
                // Earlier notifications are printed before it; a cancelled request has no answer.
                while let Ok(notice) = printed.try_recv() {
                    output::json(&notice)?;
                }
                if let Some(answer) = answer {
                    output::json(&answer)?;
                }
            }
            else => return Ok(()),
        }
    }
}

/// Reads a message of one line; `None` for one without a method, and for an empty line.
#[allow(clippy::result_large_err, reason = "it is the answer to a wrong message, made once")]
fn read(line: &[u8]) -> Result<Option<AgentMessage>, (Value, RpcError)> {
    if line.len() as u64 > MESSAGE_BYTES_MAX {
        let error = RpcError::new(code::INVALID_REQUEST, "the message is longer than 16 MiB");
        return Err((Value::Null, error));
    }
    if line.trim_ascii().is_empty() { Ok(None) } else { agent_message(line) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn message_is_a_request_a_notification_or_wrong() {
        let code = |line: &[u8]| match read(line) {
            Err((_, error)) => Some(error.code),
            Ok(_) => None,
        };
        assert_eq!(code(b"{"), Some(code::PARSE));
        assert_eq!(code(b"[]"), Some(code::INVALID_REQUEST));
        assert_eq!(code(b"{\"id\": 1}"), Some(code::INVALID_REQUEST));
        let wide =
            read(b"{\"id\": 7, \"method\": \"x\", \"params\": {\"n\": 100000000000000000000}}");
        let (id, wide) = wide.err().expect("a float is not what was meant");
        assert_eq!((&id, wide.code), (&json!(7), code::INVALID_REQUEST));
        assert!(wide.message.contains("does not fit into 64 bits"), "{}", wide.message);
        let (id, _) = read(b"{\"id\": 7}").err().expect("it has no method");
        assert_eq!(id, 7, "the agent knows which call it was");
        let cut = read(br#"{"id": 7, "method": "x", "params": {"text": "a\ud83d"}}"#);
        let Ok(Some(AgentMessage { id, params, .. })) = cut else { panic!("it is a request") };
        assert_eq!((id, &params["text"]), (Some(json!(7)), &json!("a\u{fffd}")));
        assert!(matches!(read(b"\n"), Ok(None)));
        assert!(matches!(read(b"{\"id\": 1, \"result\": {}}"), Ok(None)));
        let note = read(b"{\"method\": \"notifications/initialized\"}");
        assert!(matches!(note, Ok(Some(AgentMessage { id: None, .. }))));
        let request = read(b"{\"id\":\"a\",\"method\":\"ping\"}");
        assert!(matches!(request, Ok(Some(AgentMessage { method, .. })) if method == "ping"));
    }
}
