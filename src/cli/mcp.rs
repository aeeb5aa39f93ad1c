//! `hero mcp`: a server of the Model Context Protocol on standard input and output; agents run
//! scripts by it. Each message is one line of JSON-RPC.

use std::collections::HashMap;
use std::io::{BufRead, Read};
use std::str::FromStr;
use std::sync::Arc;

use clap::Args;
use serde_json::{Value, json};
use tokio::sync::mpsc::{self, Receiver};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::author::of_command;
use super::input::parsed;
use super::{Global, output};
use crate::config::check_configured;
use crate::error::{Error, Exit};
use crate::proto::audit::Author;
use crate::proto::json_text::{readable, refuse_wide_integers};
use crate::proto::object::Context as ObjectContext;
use crate::proto::target::{Group, IllegalName, ScriptType};
use crate::rpc::{AgentServer, Bounds, CallContext, CallCourse, Caller, RpcError, Scope, code};

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
                let record = client.check_token(token).await?;
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
            callers: None,
            contexts: set(&self.contexts),
            sees: None,
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
            line = lines.recv(), if open && running.len() < RUNNING_MAX => match line.map(|line| read(&line)) {
                None => open = false,
                Some(Message::Nothing) => {}
                Some(Message::Wrong(answer)) => output::json(&answer)?,
                Some(Message::Cancel(id)) => {
                    if let Some(running) = cancels.get(&id) {
                        running.send_replace(true);
                    }
                }
                Some(Message::Request { id, method, params }) => {
                    let (server, notices) = (Arc::clone(server), notices.clone());
                    let (cancel, cancelled) = watch::channel(false);
                    cancels.insert(id.to_string(), cancel);
                    running.spawn(async move {
                        let course = CallCourse { notices, cancelled };
                        let result = server.answer_in(course, &method, params).await;
                        (id.to_string(), result.map(|result| answer(&id, result)))
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

enum Message {
    /// A notification, an answer or an empty line.
    Nothing,
    /// A request is no longer of interest.
    Cancel(String),
    Request {
        id: Value,
        method: String,
        params: Value,
    },
    /// A message that cannot be read, with its answer.
    Wrong(Value),
}

fn read(line: &[u8]) -> Message {
    let wrong_with = |id: &Value, code, message: &str| {
        Message::Wrong(answer(id, Err(RpcError::new(code, message))))
    };
    let wrong = |code, message: &str| wrong_with(&Value::Null, code, message);
    if line.len() as u64 > MESSAGE_BYTES_MAX {
        return wrong(code::INVALID_REQUEST, "the message is longer than 16 MiB");
    }
    if line.trim_ascii().is_empty() {
        return Message::Nothing;
    }
    let Ok(mut message) = serde_json::from_str::<Value>(&readable(line)) else {
        return wrong(code::PARSE, "the message is not JSON");
    };
    if let Err(why) = refuse_wide_integers(line) {
        let id = message.get("id").cloned().unwrap_or_default();
        return Message::Wrong(answer(&id, Err(RpcError::new(code::INVALID_REQUEST, why))));
    }
    let Some(method) = message.get("method").and_then(Value::as_str).map(str::to_owned) else {
        let is_answer = message.get("result").is_some() || message.get("error").is_some();
        let id = message.get("id").unwrap_or(&Value::Null);
        let why = "the message is no request of JSON-RPC: it has no method";
        return if is_answer {
            Message::Nothing
        } else {
            wrong_with(id, code::INVALID_REQUEST, why)
        };
    };
    let params = message.get_mut("params").map(Value::take).unwrap_or_default();
    match message.get("id") {
        Some(id) => Message::Request { id: id.clone(), method, params },
        None if method == "notifications/cancelled" => {
            Message::Cancel(params["requestId"].to_string())
        }
        None => Message::Nothing,
    }
}

fn answer(id: &Value, result: Result<Value, RpcError>) -> Value {
    match result {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(error) => json!({ "jsonrpc": "2.0", "id": id, "error": error }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_is_a_request_a_notification_or_wrong() {
        let code = |line: &[u8]| match read(line) {
            Message::Wrong(answer) => answer["error"]["code"].as_i64(),
            _ => None,
        };
        assert_eq!(code(b"{"), Some(code::PARSE.into()));
        assert_eq!(code(b"[]"), Some(code::INVALID_REQUEST.into()));
        assert_eq!(code(b"{\"id\": 1}"), Some(code::INVALID_REQUEST.into()));
        let wide =
            read(b"{\"id\": 7, \"method\": \"x\", \"params\": {\"n\": 100000000000000000000}}");
        let Message::Wrong(wide) = wide else { panic!("a float is not what was meant") };
        assert_eq!(
            (&wide["id"], &wide["error"]["code"]),
            (&json!(7), &json!(code::INVALID_REQUEST))
        );
        assert!(wide.to_string().contains("does not fit into 64 bits"), "{wide}");
        let Message::Wrong(odd) = read(b"{\"id\": 7}") else { panic!("it has no method") };
        assert_eq!(odd["id"], 7, "the agent knows which call it was");
        let cut = read(br#"{"id": 7, "method": "x", "params": {"text": "a\ud83d"}}"#);
        let Message::Request { id, params, .. } = cut else { panic!("it is a request") };
        assert_eq!((&id, &params["text"]), (&json!(7), &json!("a\u{fffd}")));
        assert!(matches!(read(b"\n"), Message::Nothing));
        assert!(matches!(read(b"{\"id\": 1, \"result\": {}}"), Message::Nothing));
        assert!(matches!(read(b"{\"method\": \"notifications/initialized\"}"), Message::Nothing));
        let cancel = read(b"{\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":7}}");
        assert!(matches!(cancel, Message::Cancel(id) if id == "7"));
        let request = read(b"{\"id\":\"a\",\"method\":\"ping\"}");
        assert!(matches!(request, Message::Request { method, .. } if method == "ping"));
    }
}
