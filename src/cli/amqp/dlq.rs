//! `hero amqp dlq …`: lists dead letters of RabbitMQ, puts them back, deletes them. A letter is named by the
//! id of its message, or by the digest of its contents if it has none.

use clap::{ArgGroup, Args, Subcommand};
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use super::super::answer::NoResults;
use super::super::table::{TextTable, first_line};
use super::super::{Global, output};
use super::open;
use crate::amqp::link::{Again, Death, Delivery, Link};
use crate::amqp::message::{ATTEMPT, KEY, REASON, RUN};
use crate::amqp::topology::{Work, all_work};
use crate::config::Config;
use crate::error::{Error, Exit};
use crate::proto::text::hexadecimal;

/// The maximum number of dead letters of one queue that a command looks at.
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
    #[command(after_help = "Examples:\n  hero amqp dlq retry 5f0c2a6e\n  \
                            hero amqp dlq retry --reason no_route\n  hero amqp dlq retry --all")]
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
    /// The id of the message, or the name that the list shows for one without an id
    id: String,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("chosen").required(true).args(["ids", "all", "reason"])))]
pub(in crate::cli) struct LetterChoice {
    /// The ids of the messages, or the names that the list shows for those without an id
    ids: Vec<String>,
    /// All dead letters
    #[arg(long)]
    all: bool,
    /// Dead letters whose reason contains this text
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Only dead letters of this queue
    #[arg(long, value_name = "QUEUE")]
    queue: Option<String>,
}

#[derive(Clone, Copy)]
enum Fate {
    Back,
    Deleted,
}

impl DlqCommand {
    pub(super) async fn run(self, global: &Global) -> Result<(), Error> {
        let (config, link) = open(global)?;
        let done = match self {
            Self::List(list) => list.run(global, config, &link).await,
            Self::Show(one) => one.run(config, &link).await,
            Self::Retry(choice) => choice.run(global, config, &link, Fate::Back).await,
            Self::Delete(choice) => choice.run(global, config, &link, Fate::Deleted).await,
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

/// Returns the reason of a dead letter: from its header, else the reason why RabbitMQ moved it.
fn reason(delivery: &Delivery) -> String {
    if let Some(reason) = delivery.properties.headers.get(REASON) {
        return reason.clone();
    }
    match &delivery.death {
        Some(Death { queue, reason }) => match reason.as_str() {
            "expired" => format!("expired: it waited too long in the queue {queue}"),
            "maxlen" => format!("maxlen: the queue {queue} was full"),
            "delivery_limit" => {
                format!("delivery_limit: the queue {queue} has delivered it too often")
            }
            reason => format!("{reason} from the queue {queue}"),
        },
        None => "unknown: it was published here, not by a broker".to_owned(),
    }
}

/// Returns the name of a dead letter: its id, else the digest of its content.
fn name_of(delivery: &Delivery) -> String {
    let properties = &delivery.properties;
    if let Some(id) = properties.message_id.as_ref().filter(|id| !id.is_empty()) {
        return id.clone();
    }
    let parts = [properties.kind.as_deref(), properties.correlation_id.as_deref()];
    let parts = parts.map(|text| text.unwrap_or_default().as_bytes());
    let key = properties.headers.get(KEY).map_or(delivery.key.as_bytes(), |key| key.as_bytes());
    let all = [parts[0], parts[1], key, delivery.body.as_slice()].join(&0);
    let hash = digest(&SHA256, &all);
    format!("letter-{}", hexadecimal(&hash.as_ref()[..8]))
}

fn document(work: &Work, delivery: &Delivery) -> Value {
    let body: Value = serde_json::from_slice(&delivery.body)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&delivery.body).into_owned()));
    let properties = &delivery.properties;
    json!({
        "queue": work.queue.name,
        "name": name_of(delivery),
        "message_id": properties.message_id,
        "key": properties.headers.get(KEY),
        "operation": properties.kind,
        "attempt": properties.headers.get(ATTEMPT),
        "reply_to": properties.reply_to,
        "correlation_id": properties.correlation_id,
        "reason": reason(delivery),
        "body": body,
    })
}

/// Reads dead letters queue by queue, up to a bound of each: all, or the one that `name` names.
async fn read(
    config: &Config,
    link: &Link,
    queue: Option<&str>,
    name: Option<&str>,
) -> Result<Vec<Value>, Error> {
    let mut letters = Vec::new();
    for work in queues(config, link, queue).await? {
        let taking = link.open_queue(&work.dead.name).await?;
        // Each is held until all are read, then all return.
        let mut held = Vec::new();
        while held.len() < LOOKED_AT_MAX
            && let Some(delivery) = taking.next().await?
        {
            let letter = document(&work, &delivery);
            match name {
                None => letters.push(letter),
                Some(name) if letter["name"] == *name => return Ok(vec![letter]),
                Some(_) => {}
            }
            held.push(delivery);
        }
        if held.len() == LOOKED_AT_MAX {
            let queue = &work.dead.name;
            output::note(&format!(
                "hero: of {queue}, {LOOKED_AT_MAX} dead letters were read; it may have more"
            ));
        }
    }
    Ok(letters)
}

impl LetterList {
    async fn run(self, global: &Global, config: &Config, link: &Link) -> Result<(), Error> {
        let documents = read(config, link, self.queue.as_deref(), None).await?;
        let text = |of: &Value| of.as_str().unwrap_or_default().to_owned();
        let table = || {
            TextTable::of(&documents)
                .column("MESSAGE", &|one| text(&one["name"]))
                .column("~QUEUE", &|one| text(&one["queue"]))
                .column("~OPERATION", &|one| text(&one["operation"]))
                .column("!REASON", &|one| first_line(one["reason"].as_str().unwrap_or_default()))
        };
        let none = NoResults::new("dead letter").by("of queue", self.queue.as_ref());
        global.list(|| json!({ "dead_letters": documents }), table, none)
    }
}

impl OneLetter {
    async fn run(self, config: &Config, link: &Link) -> Result<(), Error> {
        let letters = read(config, link, None, Some(&self.id)).await?;
        let missing = || Error::new(Exit::NotFound, format!("no such dead letter: {}", self.id));
        output::json(letters.first().ok_or_else(missing)?)
    }
}

impl LetterChoice {
    async fn run(
        self,
        global: &Global,
        config: &Config,
        link: &Link,
        fate: Fate,
    ) -> Result<(), Error> {
        let mut changed = Vec::new();
        for work in queues(config, link, self.queue.as_deref()).await? {
            let taking = link.open_queue(&work.dead.name).await?;
            // A message that fails again at once is another letter.
            let here = link.counts(&work.dead.name).await?.map_or(0, |counts| counts.messages);
            let mut held = Vec::new();
            for _ in 0..here {
                let Some(delivery) = taking.next().await? else { break };
                let id = name_of(&delivery);
                let is_named = self.ids.contains(&id);
                let has_reason =
                    || self.reason.as_ref().is_some_and(|text| reason(&delivery).contains(text));
                if self.all || is_named || has_reason() {
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
        let what = match fate {
            Fate::Back => "put back",
            Fate::Deleted => "deleted",
        };
        let document = || json!({ "changed": changed });
        global.print(document, || format!("{} dead letters {what}\n", changed.len()))
    }
}

/// Publishes a dead letter to its queue, as another run: its jobs of before have ended.
async fn put_back(link: &Link, work: &Work, delivery: &Delivery) -> Result<(), Error> {
    let run: u32 =
        delivery.properties.headers.get(RUN).and_then(|text| text.parse().ok()).unwrap_or(0);
    let headers = vec![(RUN, run.saturating_add(1).to_string())];
    let (exchange, key) = ("", work.queue.name.as_str());
    let again = Again { exchange, key, headers, without: &[REASON, ATTEMPT] };
    link.publish_again(delivery, &again).await?;
    Ok(())
}
