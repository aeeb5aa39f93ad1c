//! One tag and one mode per vhost. Routing keys carry no tag, so two tags in one vhost would both get
//! every message. The one message of a queue says which tag and mode the vhost has.
//!
//! A process that reads or changes that holds a lock, a queue of its own connection. Each process of the owner
//! consumes a queue that ends with the last of them: while it exists, no other tag or mode starts. Both
//! are given up by RabbitMQ as soon as a connection is lost.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tracing::{error, warn};

use super::shared::Shared;
use crate::amqp::link::{Deliveries, Link, LinkError, Outgoing};
use crate::amqp::message::Properties;
use crate::amqp::topology::{AmqpQueue, OWNER, Work, all_work};
use crate::config::{AmqpConfig, AmqpMode};
use crate::store::Backoff;

/// The wait before the lock is tried again while another process holds it.
const LOCKED: Duration = Duration::from_millis(50);
const TRIES: u32 = 200;

/// The tag and the mode of a vhost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Owner {
    tag: String,
    mode: AmqpMode,
    /// The names of its queues, with their lanes and dead letters.
    queues: Vec<String>,
}

impl Owner {
    fn of(config: &AmqpConfig) -> Self {
        let work = all_work(config);
        let queues = work.iter().flat_map(Work::queues).map(|queue| queue.name.clone());
        Self { tag: config.queue_tag.clone(), mode: config.mode, queues: queues.collect() }
    }

    /// The queue that exists while a process of this owner runs.
    fn presence(&self) -> String {
        format!("{OWNER}.{}.{}", self.tag, self.mode)
    }

    fn is(&self, other: &Self) -> bool {
        (&self.tag, self.mode) == (&other.tag, other.mode)
    }
}

/// Claims a vhost for the tag and the mode of a configuration. The claim holds while the answer consumes.
///
/// # Errors
/// [`LinkError::Settings`] if another tag or mode runs there.
pub(super) async fn claim(link: &Link, config: &AmqpConfig) -> Result<Deliveries, LinkError> {
    let name = format!("{OWNER}.lock");
    let mut tries = 0;
    loop {
        match link.lock(&name).await {
            Err(LinkError::Locked { .. }) if tries < TRIES => {
                tries += 1;
                tokio::time::sleep(LOCKED).await;
            }
            done => break done?,
        }
    }
    let claimed = claim_locked(link, &Owner::of(config)).await;
    // With a lost connection it is given up already.
    let _ = link.delete(&name).await;
    claimed
}

async fn claim_locked(link: &Link, own: &Owner) -> Result<Deliveries, LinkError> {
    link.declare_queue(&queue()).await?;
    let taking = link.open_queue(OWNER).await?;
    let found = taking.next().await?;
    let before: Option<Owner> =
        found.as_ref().and_then(|found| serde_json::from_slice(&found.body).ok());
    let checked = match before.as_ref().filter(|before| !before.is(own)) {
        Some(before) => check_left(link, before, own).await,
        None => Ok(()),
    };
    let is_other = checked.is_ok() && before.as_ref() != Some(own);
    if let Some(found) = found.as_ref().filter(|_| is_other) {
        found.ack().await;
    }
    // A message that was not acknowledged returns before another process has the lock.
    taking.close().await;
    checked?;
    if is_other {
        write(link, own).await?;
    }
    link.stay(&own.presence()).await
}

/// Claims the vhost again whenever the connection was lost, until the process is to end. If another tag
/// or mode has it by then, the process ends.
pub(super) async fn hold(shared: Arc<Shared>, mut claim: Deliveries) {
    loop {
        tokio::select! {
            // Nobody sends something there.
            lost = claim.next() => if lost.is_ok() { continue },
            () = shared.left() => return,
        }
        shared.owns.send_replace(false);
        let mut backoff = Backoff::default();
        claim = loop {
            let error = match self::claim(&shared.link, &shared.settings.amqp).await {
                Ok(claim) => break claim,
                Err(error) => error,
            };
            if matches!(error, LinkError::Settings(_)) {
                error!("{error}");
                let _ = shared.refused.set(error);
                shared.leaving.send_replace(true);
                return;
            }
            shared.rabbit_failed("claiming the vhost", &error);
            if shared.pause(&mut backoff).await.is_none() {
                return;
            }
        };
        shared.owns.send_replace(true);
    }
}

/// Rejects a vhost whose former owner runs; names the queues that it has left.
async fn check_left(link: &Link, before: &Owner, own: &Owner) -> Result<(), LinkError> {
    let mut left = Vec::new();
    let others = before.queues.iter().filter(|name| !own.queues.contains(name));
    let presence = before.presence();
    for name in others.chain([&presence]) {
        let Some(counts) = link.counts(name).await? else { continue };
        if counts.consumers > 0 {
            return Err(LinkError::Settings(format!(
                "the vhost of {} has the tag {} in the mode {}, whose queue {name} has {} \
                 consumers: two of them would both get every message. Give this one a vhost of its \
                 own, or stop the others",
                link.address(),
                before.tag,
                before.mode,
                counts.consumers
            )));
        }
        if *name != presence {
            left.push(name.as_str());
        }
    }
    if !left.is_empty() {
        let queues = left.join(" ");
        warn!(
            "the vhost had the tag {} in the mode {}: its queues still get every message, and fill \
             as nobody consumes them; delete them with `hero amqp delete-queue {queues}`",
            before.tag, before.mode
        );
    }
    Ok(())
}

async fn write(link: &Link, own: &Owner) -> Result<(), LinkError> {
    let body = serde_json::to_vec(own).unwrap_or_default();
    let properties = Properties::default();
    link.publish(Outgoing { exchange: "", key: OWNER, body: &body, properties: &properties }).await
}

fn queue() -> AmqpQueue {
    let arguments = BTreeMap::from([("x-max-length", 1.into())]);
    AmqpQueue { name: OWNER.to_owned(), arguments, binding: None }
}
