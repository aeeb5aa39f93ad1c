//! `hero amqp topology`, `status` and `check`: the queues as they are, and as the configuration wants them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

use super::super::table::TextTable;
use super::super::{Global, output};
use super::{node_of, open};
use crate::amqp::compare::{FoundQueue, differences, unbound};
use crate::amqp::link::{Link, LinkError, QueueCounts};
use crate::amqp::topology::{AmqpQueue, EXCHANGES, Work, all_work, pools};
use crate::config::{AmqpConfig, Config, Node};
use crate::error::{Error, Exit};
use crate::proto::text::{counted, shown};
use crate::store::{BrokerPresence, Store, StoreError};

/// Say whether every queue has its consumers, what each broker does, and what waits in spools
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hero amqp status\n  hero amqp status --node admin\n\n\
                        Exit codes: 0 every queue has consumers, 69 one has none, or a queue or a \
                        binding is gone.")]
pub(in crate::cli) struct AmqpStatus {
    /// Only the queues of this node
    #[arg(long, value_name = "NODE")]
    node: Option<String>,
}

/// A queue with its lanes, as RabbitMQ has it.
struct LaneCounts {
    work: Work,
    queue: Option<QueueCounts>,
    retrying: u32,
    dead: u32,
}

async fn look(link: &Link, work: Work) -> Result<LaneCounts, Error> {
    let queue = link.counts(&work.queue.name).await?;
    let mut retrying = 0;
    for lane in &work.lanes {
        retrying += link.counts(&lane.name).await?.map_or(0, |counts| counts.messages);
    }
    let dead = link.counts(&work.dead.name).await?.map_or(0, |counts| counts.messages);
    Ok(LaneCounts { work, queue, retrying, dead })
}

fn brokers_of(config: &AmqpConfig, queue: &str) -> String {
    let nodes = Node::ALL.into_iter().flat_map(|node| pools(config, Some(node)));
    let mut names: Vec<&str> =
        nodes.filter(|pool| pool.work.queue.name == queue).map(|pool| pool.name()).collect();
    names.dedup();
    names.join(", ")
}

pub(super) async fn topology(global: &Global) -> Result<(), Error> {
    let (config, link) = open(global)?;
    let mut found = Vec::new();
    for work in all_work(&config.amqp) {
        found.push(look(&link, work).await?);
    }
    let mut exchanges = Vec::new();
    for (name, kind) in EXCHANGES {
        exchanges.push((name, kind, link.has_exchange(name).await?));
    }
    link.close().await;
    if global.json {
        let exchanges: Vec<Value> = exchanges
            .iter()
            .map(|(name, kind, exists)| json!({ "name": name, "type": kind, "exists": exists }))
            .collect();
        let queues: Vec<Value> = found.iter().map(|one| document(&config.amqp, one)).collect();
        return output::json(&json!({ "exchanges": exchanges, "queues": queues }));
    }
    for (name, kind, exists) in exchanges {
        let state = if exists { "declared" } else { "not declared" };
        output::line(&format!("exchange {name} ({kind}): {state}"))?;
    }
    let messages = |one: &LaneCounts| one.queue.map(|counts| counts.messages.to_string());
    let consumers = |one: &LaneCounts| one.queue.map(|counts| counts.consumers.to_string());
    let key = |one: &LaneCounts| one.work.queue.binding.as_ref().map(|(_, key)| key.clone());
    let table = TextTable::of(&found)
        .column("!QUEUE", &|one| one.work.queue.name.clone())
        .column("~KEY", &|one| key(one).unwrap_or_default())
        .column("~BROKERS", &|one| brokers_of(&config.amqp, &one.work.queue.name))
        .column(">MESSAGES", &|one| messages(one).unwrap_or("not declared".to_owned()))
        .column(">CONSUMERS", &|one| consumers(one).unwrap_or_default())
        .column(">RETRYING", &|one| one.retrying.to_string())
        .column(">DEAD", &|one| one.dead.to_string());
    output::text(&table.show(global.look()))
}

fn document(config: &AmqpConfig, one: &LaneCounts) -> Value {
    json!({
        "queue": one.work.queue.name,
        "key": one.work.queue.binding.as_ref().map(|(_, key)| key),
        "brokers": brokers_of(config, &one.work.queue.name),
        "exists": one.queue.is_some(),
        "messages": one.queue.map(|counts| counts.messages),
        "consumers": one.queue.map(|counts| counts.consumers),
        "retrying": one.retrying,
        "dead": one.dead,
    })
}

impl AmqpStatus {
    pub(super) async fn run(self, global: &Global) -> Result<ExitCode, Error> {
        let (config, link) = open(global)?;
        let node = self.node.as_deref().map(node_of).transpose()?.or(config.amqp.node);
        let work: Vec<Work> = match node {
            Some(_) => pools(&config.amqp, node).into_iter().map(|pool| pool.work).collect(),
            None => all_work(&config.amqp),
        };
        let mut seen = BTreeSet::new();
        let work: Vec<Work> =
            work.into_iter().filter(|one| seen.insert(one.queue.name.clone())).collect();
        let redis = of_redis(config).await;
        let mut without = Vec::new();
        let number = work.len();
        let found = bindings(config, &link).await?;
        let gone = gone(&link, &work, found.as_ref()).await?;
        for one in work {
            let counts = link.counts(&one.queue.name).await?;
            // The presence of a queue says only that it once had consumers.
            if counts.is_none_or(|counts| counts.consumers == 0) {
                without.push(one.queue.name);
            }
        }
        link.close().await;
        let is_ready = without.is_empty() && gone.is_empty();
        if global.json {
            let document = json!({
                "ready": is_ready,
                "without_consumers": without,
                "gone": gone,
                "spooled": redis.as_ref().ok().map(|(_, spooled)| spooled),
                "brokers": redis.as_ref().ok().map(|(brokers, _)| brokers),
            });
            output::json(&document)?;
            return Ok(if is_ready { Exit::Ok } else { Exit::Unavailable }.into());
        }
        match redis {
            Ok((brokers, spooled)) => {
                for (place, number) in spooled {
                    let events = counted(number, "log event waits", "log events wait");
                    output::line(&format!("{events} in the spool of {}", shown(&place)))?;
                }
                output::text(&broker_lines(&brokers))?;
            }
            Err(error) => output::note(&format!(
                "cannot read the state of the brokers, and what waits in spools: {error}"
            )),
        }
        for what in &gone {
            output::line(&format!("{what}; its broker declares it within a minute"))?;
        }
        if is_ready {
            output::line(&format!("ready: each of {number} queues has consumers"))?;
            return Ok(ExitCode::SUCCESS);
        }
        if without.is_empty() {
            let message =
                "a part of the topology is gone: messages may be lost until it is declared again";
            return Err(Error::new(Exit::Unavailable, message));
        }
        let queues = without.join(", ");
        Err(Error::new(Exit::Unavailable, format!("no consumer serves {queues}; start its broker")))
    }
}

/// Returns the state of the brokers, and the number of log events that wait in the spool of each unit.
async fn of_redis(
    config: &Config,
) -> Result<(Vec<BrokerPresence>, BTreeMap<String, u64>), StoreError> {
    let (store, scope) = (Store::open(&config.redis)?, config.amqp.scope());
    Ok((store.brokers().list(&scope).await?, store.brokers().spooled(&scope).await?))
}

pub(in crate::cli) fn broker_lines(brokers: &[BrokerPresence]) -> String {
    let line = |one: &BrokerPresence| {
        let state = if one.is_alive {
            format!("{} of {} dispatchers consume", one.consuming, one.dispatchers)
        } else {
            "its heartbeat is late".to_owned()
        };
        let numbers = [
            (one.in_work, "in work"),
            (one.ended("job"), "became jobs"),
            (one.ended("done"), "done"),
            (one.ended("retried"), "retried"),
            (one.ended("dead"), "dead"),
            (one.answers_dropped, "answers dropped"),
            (one.spooled, "log events in the spool"),
            (one.log_events_lost, "log events lost"),
        ];
        let mut text = format!("broker {}: {state}", shown(&one.name()));
        for (number, what) in numbers.into_iter().filter(|(number, _)| *number > 0) {
            let _ = write!(text, ", {number} {what}");
        }
        for (name, seconds) in &one.outages {
            let _ = write!(text, ", {name} away for {seconds} s");
        }
        text + "\n"
    };
    brokers.iter().map(line).collect()
}

/// Returns the queues with their bindings where the management API is configured.
async fn bindings(
    config: &Config,
    link: &Link,
) -> Result<Option<BTreeMap<String, FoundQueue>>, LinkError> {
    match link.management(&config.amqp) {
        Some(management) => Ok(Some(management.queues().await?)),
        None => Ok(None),
    }
}

/// Names missing parts beside queues that exist: exchanges, lanes, queues of dead letters, and bindings.
async fn gone(
    link: &Link,
    work: &[Work],
    found: Option<&BTreeMap<String, FoundQueue>>,
) -> Result<Vec<String>, LinkError> {
    let (mut gone, mut has_queues) = (Vec::new(), false);
    for one in work {
        if link.counts(&one.queue.name).await?.is_none() {
            continue;
        }
        has_queues = true;
        for queue in one.queues() {
            let name = &queue.name;
            if link.counts(name).await?.is_none() {
                gone.push(format!("the queue {name} is gone"));
            } else if let Some(found) = found.and_then(|found| found.get(name))
                && let Some((exchange, key)) = unbound(queue, found)
            {
                gone.push(format!("the queue {name} is not bound to {exchange} by {key}"));
            }
        }
    }
    for (name, _) in EXCHANGES.iter().filter(|_| has_queues) {
        if !link.has_exchange(name).await? {
            gone.push(format!("the exchange {name} is gone"));
        }
    }
    Ok(gone)
}

pub(super) async fn check(global: &Global) -> Result<ExitCode, Error> {
    let (config, link) = open(global)?;
    let found = bindings(config, &link).await?;
    // Bindings are compared below, with everything else.
    let mut all = gone(&link, &all_work(&config.amqp), None).await?;
    let (mut same, mut missing) = (0, 0);
    for work in all_work(&config.amqp) {
        for queue in work.queues() {
            if link.counts(&queue.name).await?.is_none() {
                missing += 1;
                continue;
            }
            let of_queue = match found.as_ref().and_then(|found| found.get(&queue.name)) {
                Some(found) => differences(queue, found),
                None => compared(&link, queue).await?,
            };
            same += u32::from(of_queue.is_empty());
            all.extend(of_queue);
        }
    }
    link.close().await;
    let document = || {
        json!({
            "same": same,
            "not_declared": missing,
            "differences": all,
            "bindings_compared": found.is_some(),
        })
    };
    let sum = format!("{same} queues are as configured, {missing} not declared yet\n");
    let told = |difference: &String| difference.clone() + "\n";
    global.print(document, || all.iter().map(told).chain([sum]).collect())?;
    Ok(if all.is_empty() { Exit::Ok } else { Exit::Config }.into())
}

/// Compares a queue by the protocol, which names the first other argument.
async fn compared(link: &Link, queue: &AmqpQueue) -> Result<Vec<String>, Error> {
    // It exists, so this declares nothing; without its binding, it binds nothing.
    let unbound = AmqpQueue { binding: None, ..queue.clone() };
    match link.declare_queue(&unbound).await {
        Ok(()) => Ok(Vec::new()),
        Err(LinkError::OtherArguments { reason, .. }) => {
            Ok(vec![format!("{}: {reason}", queue.name)])
        }
        Err(error) => Err(error.into()),
    }
}
