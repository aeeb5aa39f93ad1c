//! One tag and one mode per vhost. Routing keys carry no tag, so two tags in one vhost would both get
//! every message. The one message of a queue says which tag and mode the vhost has; the process
//! that holds it decides.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tracing::warn;

use crate::amqp::link::{Link, LinkError, Outgoing};
use crate::amqp::message::Properties;
use crate::amqp::topology::{AmqpQueue, Argument, OWNER, all_work};
use crate::config::{AmqpConfig, AmqpMode};

/// The wait before the queue is read again while another process holds its message.
const HELD: Duration = Duration::from_millis(50);
/// The number of these reads.
const READS: u32 = 6;

/// The tag and the mode of a vhost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Owner {
    tag: String,
    mode: AmqpMode,
    /// The names of its queues.
    queues: Vec<String>,
}

/// Claims a vhost for the tag and the mode of a configuration.
///
/// # Errors
/// [`LinkError::Settings`] if another tag or mode has consumers there.
pub(super) async fn claim(link: &Link, config: &AmqpConfig) -> Result<(), LinkError> {
    let queues = all_work(config).into_iter().map(|work| work.queue.name).collect();
    let own = Owner { tag: config.queue_tag.clone(), mode: config.mode, queues };
    link.declare_queue(&queue()).await?;
    let taking = link.open_queue(OWNER).await?;
    let mut found = taking.next().await?;
    // It is empty for good in a new vhost, and for a moment while another process decides.
    for _ in 0..READS {
        if found.is_some() {
            break;
        }
        tokio::time::sleep(HELD).await;
        found = taking.next().await?;
    }
    let Some(delivery) = found else { return write(link, &own).await };
    let before: Option<Owner> = serde_json::from_slice(&delivery.body).ok();
    let is_same =
        before.as_ref().is_some_and(|before| (&before.tag, before.mode) == (&own.tag, own.mode));
    if is_same && before.as_ref() == Some(&own) {
        delivery.put_back().await;
        return Ok(());
    }
    if let Some(before) = before.filter(|_| !is_same)
        && let Err(error) = check_left(link, &before, &own).await
    {
        delivery.put_back().await;
        return Err(error);
    }
    delivery.ack().await;
    write(link, &own).await
}

/// Rejects a vhost whose former owner has consumers; names the queues that it has left.
async fn check_left(link: &Link, before: &Owner, own: &Owner) -> Result<(), LinkError> {
    let mut left = Vec::new();
    for name in before.queues.iter().filter(|name| !own.queues.contains(name)) {
        let Some(counts) = link.counts(name).await? else { continue };
        if counts.consumers > 0 {
            return Err(LinkError::Settings(format!(
                "the vhost of {} has the tag {} in the mode {}, whose queue {name} has {} \
                 consumers: two of them would both get every message. Give this one a vhost of its \
                 own, or stop the others",
                link.address(),
                before.tag,
                mode(before.mode),
                counts.consumers
            )));
        }
        left.push(name.as_str());
    }
    if !left.is_empty() {
        let queues = left.join(" ");
        warn!(
            "the vhost had the tag {} in the mode {}: its queues still get every message; delete \
             them with `hero amqp delete-queue {queues}`",
            before.tag,
            mode(before.mode)
        );
    }
    Ok(())
}

fn mode(mode: AmqpMode) -> &'static str {
    match mode {
        AmqpMode::Unified => "unified",
        AmqpMode::Matrix => "matrix",
    }
}

async fn write(link: &Link, own: &Owner) -> Result<(), LinkError> {
    let body = serde_json::to_vec(own).unwrap_or_default();
    let properties = Properties::default();
    link.publish(Outgoing { exchange: "", key: OWNER, body: &body, properties: &properties }).await
}

fn queue() -> AmqpQueue {
    let arguments = BTreeMap::from([("x-max-length", Argument::Number(1))]);
    AmqpQueue { name: OWNER.to_owned(), arguments, binding: None }
}
