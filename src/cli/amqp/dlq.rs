//! `hero amqp dlq …`: lists dead letters of RabbitMQ, puts them back, deletes them.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::super::table::{TextTable, first_line};
use super::super::{Global, output};
use super::open;
use crate::amqp::link::{Delivery, Link, Outgoing};
use crate::amqp::message::{ATTEMPT, KEY, REASON};
use crate::amqp::topology::{Work, all_work};
use crate::config::Config;
use crate::error::{Error, Exit};
use crate::store::Store;

/// The most dead letters of one queue that a command looks at.
const LOOKED_AT_MAX: usize = 10_000;

/// List dead letters of RabbitMQ, put them back or delete them
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:\n  hero amqp dlq list\n  hero amqp dlq retry --all")]
pub(in crate::cli) enum DlqCommand {
    /// List dead letters, queue by queue, the oldest first
    #[command(after_help = "Example:\n  hero amqp dlq list --queue prod_rec.write")]
    List(LetterList),
    /// Show a dead letter with its body and its reason
    #[command(after_help = "Example:\n  hero amqp dlq show 5f0c2a6e")]
    Show(OneLetter),
    /// Put dead letters back into their queue
    #[command(
        after_help = "Examples:\n  hero amqp dlq retry 5f0c2a6e\n  hero amqp dlq retry --all"
    )]
    Retry(LetterChoice),
    /// Delete dead letters
    #[command(after_help = "Examples:\n  hero amqp dlq delete 5f0c2a6e\n  \
                            hero amqp dlq delete --all --queue prod_rec.write")]
    Delete(LetterChoice),
}

#[derive(Debug, Args)]
pub(in crate::cli) struct LetterList {
    /// Only dead letters of this queue
    #[arg(long, value_name = "QUEUE")]
    queue: Option<String>,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct OneLetter {
    /// The id of the message
    id: String,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct LetterChoice {
    /// The ids of the messages
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    ids: Vec<String>,
    /// All dead letters
    #[arg(long)]
    all: bool,
    /// Only dead letters of this queue
    #[arg(long, value_name = "QUEUE")]
    queue: Option<String>,
}

/// The change of a dead letter.
#[derive(Clone, Copy)]
enum Fate {
    Back,
    Deleted,
}

impl DlqCommand {
    pub(super) async fn run(self, global: &Global) -> Result<ExitCode, Error> {
        let (config, link) = open(global)?;
        let done = match self {
            Self::List(list) => list.run(global, &config, &link).await,
            Self::Show(one) => one.run(global, &config, &link).await,
            Self::Retry(choice) => choice.run(global, &config, &link, Fate::Back).await,
            Self::Delete(choice) => choice.run(global, &config, &link, Fate::Deleted).await,
        };
        link.close().await;
        done
    }
}

/// Returns the queues that have dead letters, of one name if one is given.
async fn queues(config: &Config, link: &Link, name: Option<&str>) -> Result<Vec<Work>, Error> {
    let mut found = Vec::new();
    let all = all_work(&config.amqp);
    for work in all.into_iter().filter(|work| name.is_none_or(|name| work.queue.name == name)) {
        if link.counts(&work.dead.name).await?.is_some() {
            found.push(work);
        } else if name.is_some() {
            let message = format!("the queue {} has no dead letters yet", work.queue.name);
            return Err(Error::new(Exit::NotFound, message));
        }
    }
    Ok(found)
}

/// Returns the reason of a dead letter: that of its header, else what Redis has kept.
async fn reason(config: &Config, delivery: &Delivery) -> String {
    if let Some(reason) = delivery.properties.headers.get(REASON) {
        return reason.clone();
    }
    let Some(id) = &delivery.properties.message_id else { return String::new() };
    let Ok(store) = Store::open(&config.redis) else { return String::new() };
    store.reason(&config.amqp.scope(), id).await.ok().flatten().unwrap_or_default()
}

async fn document(config: &Config, work: &Work, delivery: &Delivery) -> Value {
    let body: Value = serde_json::from_slice(&delivery.body)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&delivery.body).into_owned()));
    let properties = &delivery.properties;
    json!({
        "queue": work.queue.name,
        "message_id": properties.message_id,
        "key": properties.headers.get(KEY),
        "operation": properties.kind,
        "attempt": properties.headers.get(ATTEMPT),
        "reply_to": properties.reply_to,
        "correlation_id": properties.correlation_id,
        "reason": reason(config, delivery).await,
        "body": body,
    })
}

impl LetterList {
    async fn run(self, global: &Global, config: &Config, link: &Link) -> Result<ExitCode, Error> {
        let mut documents = Vec::new();
        for work in queues(config, link, self.queue.as_deref()).await? {
            let taking = link.open_queue(&work.dead.name).await?;
            // Each is held until all are read, then all return.
            let mut held = Vec::new();
            while let Some(delivery) = taking.next().await? {
                documents.push(document(config, &work, &delivery).await);
                held.push(delivery);
                if held.len() >= LOOKED_AT_MAX {
                    break;
                }
            }
        }
        if global.json {
            output::json(&json!({ "dead_letters": documents }))?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut table = TextTable::new(&["MESSAGE", "QUEUE", "OPERATION", "REASON"]);
        let text = |of: &Value| of.as_str().unwrap_or_default().to_owned();
        for one in &documents {
            let reason = first_line(one["reason"].as_str().unwrap_or_default());
            let cells = [&one["message_id"], &one["queue"], &one["operation"]].map(text);
            table.row(cells.into_iter().chain([reason]));
        }
        output::text(&table.render())?;
        Ok(ExitCode::SUCCESS)
    }
}

impl OneLetter {
    async fn run(self, _global: &Global, config: &Config, link: &Link) -> Result<ExitCode, Error> {
        for work in queues(config, link, None).await? {
            let taking = link.open_queue(&work.dead.name).await?;
            let mut held = Vec::new();
            while let Some(delivery) = taking.next().await? {
                if delivery.properties.message_id.as_deref() == Some(self.id.as_str()) {
                    output::json(&document(config, &work, &delivery).await)?;
                    return Ok(ExitCode::SUCCESS);
                }
                held.push(delivery);
                if held.len() >= LOOKED_AT_MAX {
                    break;
                }
            }
        }
        Err(Error::new(Exit::NotFound, format!("no such dead letter: {}", self.id)))
    }
}

impl LetterChoice {
    async fn run(
        self,
        global: &Global,
        config: &Config,
        link: &Link,
        fate: Fate,
    ) -> Result<ExitCode, Error> {
        let mut changed = Vec::new();
        for work in queues(config, link, self.queue.as_deref()).await? {
            let taking = link.open_queue(&work.dead.name).await?;
            // One that fails again at once is another letter.
            let here = link.counts(&work.dead.name).await?.map_or(0, |counts| counts.messages);
            let mut held = Vec::new();
            for _ in 0..here {
                let Some(delivery) = taking.next().await? else { break };
                let id = delivery.properties.message_id.clone().unwrap_or_default();
                if self.all || self.ids.contains(&id) {
                    if matches!(fate, Fate::Back) {
                        put_back(link, &work, &delivery).await?;
                    }
                    delivery.ack().await;
                    changed.push(id);
                } else {
                    held.push(delivery);
                }
            }
        }
        if let Some(missing) = self.ids.iter().find(|id| !changed.contains(id)) {
            return Err(Error::new(Exit::NotFound, format!("no such dead letter: {missing}")));
        }
        if global.json {
            output::json(&json!({ "changed": changed }))?;
        } else {
            let what = match fate {
                Fate::Back => "put back",
                Fate::Deleted => "deleted",
            };
            output::line(&format!("{} dead letters {what}", changed.len()))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Publishes a dead letter to its queue, as one more attempt: its job of before has ended.
async fn put_back(link: &Link, work: &Work, delivery: &Delivery) -> Result<(), Error> {
    let mut properties = delivery.properties.clone();
    properties.headers.remove(REASON);
    let attempt: u32 =
        properties.headers.get(ATTEMPT).and_then(|text| text.parse().ok()).unwrap_or(0);
    properties.headers.insert(ATTEMPT.to_owned(), (attempt + 1).to_string());
    let (key, body) = (work.queue.name.as_str(), delivery.body.as_slice());
    link.publish(Outgoing { exchange: "", key, body, properties: &properties }).await?;
    Ok(())
}
