//! `hero amqp …`: publishes messages to RabbitMQ, shows its topology, and looks after dead letters.

mod dlq;
mod logs;
mod topology;

pub(super) use topology::broker_lines;

use std::process::ExitCode;
use std::time::Duration;

use clap::{ArgGroup, Args, Subcommand};
use serde_json::{Value, json};

use super::input::bad;
use super::{Global, output};
use crate::amqp::broker::end_brokers;
use crate::amqp::link::{Link, Outgoing};
use crate::amqp::message::{Properties, parse_answer};
use crate::amqp::topology::EVENTS;
use crate::config::{Config, Node, parse_duration};
use crate::error::{Error, Exit};
use crate::proto::text::counted;
use crate::store::Store;

/// Publish messages to RabbitMQ, show its queues, and look after dead letters
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:\n  hero amqp publish rec.read --type ping --wait\n  \
                        hero amqp topology\n  hero amqp dlq list")]
pub(super) enum AmqpCommand {
    Publish(Publish),
    /// Show the queues of every node: their keys, messages and consumers
    #[command(after_help = "Example:\n  hero amqp topology")]
    Topology,
    Status(topology::AmqpStatus),
    /// Compare the existing queues with the configured ones
    #[command(after_help = "Example:\n  hero amqp check\n\n\
                            A queue that does not exist is no fault, as its broker declares it, unless its \
                            lanes or its dead letters alone are gone. Bindings, and all \
                            arguments of a queue, are compared where amqp.management_url is set. Exit codes: 78 a \
                            queue differs.")]
    Check,
    #[command(subcommand)]
    Dlq(dlq::DlqCommand),
    Shutdown(ShutdownBrokers),
    DeleteQueue(DeleteQueue),
    Logs(logs::PrintLogs),
    PurgeLogs(logs::PurgeLogs),
}

/// Publish a message, persistent and confirmed
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hero amqp publish rec.read --type ping --wait\n  \
                        hero amqp publish rec.write --type write --template person \\\n      \
                        --data '{\"name\": \"Ann\"}' --wait 5s\n\n\
                        Exit codes: 1 the answer is an error, 65 no queue takes the key, 69 RabbitMQ \
                        cannot be reached, 75 no answer came in time.")]
pub(super) struct Publish {
    /// The routing key, such as rec.read
    key: String,
    /// The operation: ping, fetch, write, update, delete, shutdown, …
    #[arg(long = "type", value_name = "OPERATION")]
    operation: String,
    /// The template: the type of the object, or the name of the table
    #[arg(long, value_name = "NAME", default_value = "")]
    template: String,
    /// The data, JSON
    #[arg(long, value_name = "JSON")]
    data: Option<String>,
    /// The id, which tells a redelivery; a random one without it
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// Wait for the answer, for 30s unless a time is given, and print its result
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, num_args = 0..=1,
          default_missing_value = "30s", require_equals = false)]
    wait: Option<Duration>,
}

/// Tell the brokers of a node, or of all nodes, to settle their messages and end
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hero amqp shutdown --node admin\n  hero amqp shutdown --tag prod_"
)]
#[command(group(ArgGroup::new("chosen").required(true).args(["node", "tag"])))]
pub(super) struct ShutdownBrokers {
    /// Only the brokers of this node
    #[arg(long, value_name = "NODE")]
    node: Option<String>,
    /// All brokers of this tag, which must be the configured one
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,
}

/// Delete queues with their messages, such as those that another tag has left
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  hero amqp delete-queue qa_events   # how many messages it has\n  \
                        hero amqp delete-queue --yes qa_events"
)]
pub(super) struct DeleteQueue {
    /// Delete them; without it the command says how many messages they have
    #[arg(long)]
    yes: bool,
    /// The names of the queues
    #[arg(required = true, value_name = "QUEUE")]
    queues: Vec<String>,
}

impl AmqpCommand {
    pub(super) async fn run(self, global: &Global) -> Result<ExitCode, Error> {
        match self {
            Self::Publish(publish) => return publish.run(global).await,
            Self::Topology => topology::topology(global).await?,
            Self::Status(status) => return status.run(global).await,
            Self::Check => return topology::check(global).await,
            Self::Dlq(dlq) => dlq.run(global).await?,
            Self::Shutdown(shutdown) => shutdown.run(global).await?,
            Self::DeleteQueue(delete) => delete.run(global).await?,
            Self::Logs(logs) => logs.run(global).await?,
            Self::PurgeLogs(purge) => purge.run(global).await?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn open(global: &Global) -> Result<(&Config, Link), Error> {
    let config = global.config()?;
    if config.amqp.url.is_empty() {
        let message = "cannot look for RabbitMQ: amqp.url is not set; the configuration must name it, such as \
                       amqp.url = \"amqp://hero@127.0.0.1:5672/prod\"";
        return Err(Error::new(Exit::Config, message));
    }
    let link = Link::open(&config.amqp, "command")?;
    Ok((config, link))
}

impl Publish {
    async fn run(self, global: &Global) -> Result<ExitCode, Error> {
        let data = self.data.as_deref().map_or(Ok(Value::Null), serde_json::from_str);
        let data = data.map_err(|error| bad(format!("cannot read --data as JSON: {error}")))?;
        let (_, link) = open(global)?;
        let id = self.id.unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
        let properties = Properties {
            kind: Some(self.operation),
            message_id: Some(id.clone()),
            correlation_id: Some(id.clone()),
            ..Properties::default()
        };
        let body = json!({ "template": self.template, "data": data }).to_string().into_bytes();
        let key = self.key.as_str();
        let out = Outgoing { exchange: EVENTS, key, body: &body, properties: &properties };
        let Some(patience) = self.wait else {
            link.publish(out).await?;
            link.close().await;
            global.print(|| json!({ "message_id": id }), || format!("{id}\n"))?;
            return Ok(ExitCode::SUCCESS);
        };
        let answer = link.request(out, patience).await?;
        link.close().await;
        let Some(body) = answer else {
            let message = format!("no answer to the message {id} came in time");
            return Err(Error::new(Exit::GaveUp, message));
        };
        shown(global, &body)
    }
}

/// Prints an answer: its result, or its error with the exit code of a failed job.
fn shown(global: &Global, body: &[u8]) -> Result<ExitCode, Error> {
    let answer = parse_answer(body).ok_or_else(|| {
        let text = String::from_utf8_lossy(body);
        bad(format!("the answer is none of Hero: {text}"))
    })?;
    let document = || serde_json::from_slice(body).unwrap_or_default();
    match answer {
        Ok(Value::String(text)) => global.print(document, || text + "\n")?,
        Ok(result) => global.print(document, || format!("{result}\n"))?,
        Err(_) if global.json => {
            output::json(&document())?;
            return Ok(Exit::JobError.into());
        }
        Err(failure) => {
            let message = format!("{}: {}", failure.code, failure.message);
            return Err(Error::new(Exit::JobError, message));
        }
    }
    Ok(ExitCode::SUCCESS)
}

impl ShutdownBrokers {
    async fn run(self, global: &Global) -> Result<(), Error> {
        let (config, link) = open(global)?;
        let node = self.node.as_deref().map(node_of).transpose()?;
        if let Some(tag) = self.tag.filter(|tag| *tag != config.amqp.queue_tag) {
            let own = &config.amqp.queue_tag;
            let message = format!("the tag of the configuration is {own}, not {tag}");
            return Err(Error::new(Exit::Usage, message));
        }
        let store = Store::open(&config.redis)
            .map_err(|error| Error::new(Exit::Config, error.to_string()))?;
        end_brokers(&store, &link, &config.amqp.scope(), node)
            .await
            .map_err(|error| Error::new(Exit::Unavailable, error.to_string()))?;
        link.close().await;
        let which = node.map_or("all nodes".to_owned(), |node| format!("node {}", node.as_str()));
        output::note(&format!("the brokers of {which} are told to end"));
        Ok(())
    }
}

impl DeleteQueue {
    async fn run(self, global: &Global) -> Result<(), Error> {
        let (_, link) = open(global)?;
        if !self.yes {
            let mut messages = 0;
            for queue in &self.queues {
                messages +=
                    link.counts(queue).await?.map_or(0, |counts| u64::from(counts.messages));
            }
            link.close().await;
            let messages = counted(messages, "message", "messages");
            let message = format!(
                "cannot delete without confirmation: these queues have {messages}, which are lost; add --yes to delete them"
            );
            return Err(Error::new(Exit::Usage, message));
        }
        for queue in &self.queues {
            let number = link.delete(queue).await?;
            output::line(&format!("{queue}: deleted with {number} messages"))?;
        }
        link.close().await;
        Ok(())
    }
}

fn node_of(name: &str) -> Result<Node, Error> {
    Node::of_name(name).ok_or_else(|| {
        let known = Node::ALL.map(Node::as_str).join(", ");
        Error::new(Exit::Usage, format!("no such node: {name}; there are {known}"))
    })
}
