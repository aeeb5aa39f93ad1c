//! Finds the node of a Redis Cluster that has the slot of the namespace. All keys of a namespace share
//! one slot, so to Hero a cluster is one Redis that may be elsewhere tomorrow: every new connection asks
//! for it again.
//!
//! A node is asked for a key that never exists. The owner of the slot answers; others name it by MOVED.
//! ASK comes from an owner whose slot is being moved. It is not followed: a script must find all keys on
//! one node, and would end in its middle where it does not. Until the slot has moved, calls are refused
//! as a whole, before they write (see `scripts/shared/slot.lua`), and are repeated.

use std::collections::VecDeque;
use std::time::Duration;

use parking_lot::Mutex;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, ConnectionInfo, ErrorKind, RedisError, ServerErrorKind, Value};

use super::node::{self, Place};
use super::store_error::{CONNECTING, Result, StoreError, describe};
use crate::config::ClusterUrl;

/// The timeout of one node, for the connection and again for its answer.
const NODE_TIMEOUT: Duration = Duration::from_secs(1);
/// The maximum number of nodes that are remembered, and that are asked for one connection.
const NODES_MAX: usize = 32;

/// The cluster that has the keys of one namespace.
pub(super) struct Cluster {
    url: ClusterUrl,
    /// A key of the namespace that never exists.
    pub(super) probe: String,
    known: Mutex<Known>,
}

/// The nodes beside the URL's.
#[derive(Default)]
struct Known {
    owner: Option<Place>,
    others: Vec<Place>,
}

enum NodeAnswer {
    /// It has the slot.
    Owner(MultiplexedConnection),
    /// Another one has it, as far as it knows.
    Moved(Place),
}

impl Cluster {
    pub(super) fn new(url: ClusterUrl, probe: String) -> Self {
        Self { url, probe, known: Mutex::default() }
    }

    /// Connects to the owner of the slot with a login, which all nodes share. `address` is for messages.
    ///
    /// # Errors
    /// [`StoreError::Unreachable`] with the error of each node; [`StoreError::NotPermitted`] if one denies access.
    pub(super) async fn connect(
        &self,
        address: &str,
        login: &ConnectionInfo,
        config: &AsyncConnectionConfig,
    ) -> Result<MultiplexedConnection> {
        let config = config.clone().set_connection_timeout(Some(NODE_TIMEOUT));
        let mut to_ask = self.places();
        let (mut asked, mut problems): (Vec<Place>, Vec<String>) = (Vec::new(), Vec::new());
        while let Some(place) = to_ask.pop_front() {
            if asked.contains(&place) || asked.len() >= NODES_MAX {
                continue;
            }
            let problem = match self.ask(&place, login, &config).await {
                Ok(NodeAnswer::Owner(connection)) => {
                    self.learn(place, &mut connection.clone()).await;
                    return Ok(connection);
                }
                Ok(NodeAnswer::Moved(owner)) => {
                    let problem = format!("says that {}:{} has the slot", owner.0, owner.1);
                    to_ask.push_front(owner);
                    problem
                }
                Err(error) => match StoreError::new(address, CONNECTING, &error) {
                    refused @ StoreError::NotPermitted { .. } => return Err(refused),
                    _ => describe(&error),
                },
            };
            problems.push(format!("node {}:{}: {problem}", place.0, place.1));
            asked.push(place);
        }
        Err(StoreError::unreachable(address, problems.join("; "), false))
    }

    fn places(&self) -> VecDeque<Place> {
        let known = self.known.lock();
        known.owner.iter().chain(&self.url.nodes).chain(&known.others).cloned().collect()
    }

    async fn ask(
        &self,
        place: &Place,
        login: &ConnectionInfo,
        config: &AsyncConnectionConfig,
    ) -> Result<NodeAnswer, RedisError> {
        let mut connection = node::connect(login, (&place.0, place.1), config).await?;
        let mut command = redis::cmd("EXISTS");
        command.arg(&self.probe);
        let answer = command.query_async::<Value>(&mut connection);
        let Ok(answer) = tokio::time::timeout(NODE_TIMEOUT, answer).await else {
            return Err((ErrorKind::Io, "it does not answer").into());
        };
        let Err(error) = answer else { return Ok(NodeAnswer::Owner(connection)) };
        match error.kind() {
            ErrorKind::Server(ServerErrorKind::Moved) => match moved_to(&error, &place.0) {
                Some(owner) => Ok(NodeAnswer::Moved(owner)),
                None => Err(error),
            },
            // The owner, while the slot is being moved.
            ErrorKind::Server(ServerErrorKind::Ask | ServerErrorKind::TryAgain) => {
                Ok(NodeAnswer::Owner(connection))
            }
            _ => Err(error),
        }
    }

    /// Remembers a new owner, and the nodes that it knows: the nodes of the URL may be gone one day.
    async fn learn(&self, owner: Place, connection: &mut MultiplexedConnection) {
        if self.known.lock().owner.as_ref() == Some(&owner) {
            return;
        }
        let mut command = redis::cmd("CLUSTER");
        let asked = command.arg("SLOTS").query_async::<Value>(connection);
        // Without the right to ask, and without an answer, the nodes of the URL must do.
        let slots = tokio::time::timeout(NODE_TIMEOUT, asked).await.ok().and_then(Result::ok);
        let mut known = self.known.lock();
        if let Some(slots) = slots {
            known.others = nodes_of(&slots, &owner.0);
        }
        known.owner = Some(owner);
    }
}

/// The place that a MOVED names: `SLOT HOST:PORT`. Without a host it is the node that was asked.
fn moved_to(error: &RedisError, asked: &str) -> Option<Place> {
    let (host, port) = error.redirect_node()?.0.rsplit_once(':')?;
    place(host, port.parse().ok()?, asked)
}

/// A place as a node names it.
fn place(host: &str, port: u16, asked: &str) -> Option<Place> {
    match host {
        // Its own name is not set.
        "?" => None,
        "" => Some((asked.to_owned(), port)),
        _ => Some((host.trim_start_matches('[').trim_end_matches(']').to_owned(), port)),
    }
}

/// The nodes in an answer to CLUSTER SLOTS: for each range its ends, then its nodes: host, port and more.
fn nodes_of(slots: &Value, asked: &str) -> Vec<Place> {
    let entries = |value: &Value| match value {
        Value::Array(values) => values.clone(),
        _ => Vec::new(),
    };
    let mut nodes: Vec<Place> = Vec::new();
    for node in entries(slots).iter().flat_map(|range| entries(range).into_iter().skip(2)) {
        let [host, Value::Int(port), ..] = &entries(&node)[..] else { continue };
        let host = match host {
            Value::BulkString(host) => String::from_utf8_lossy(host).into_owned(),
            Value::SimpleString(host) => host.clone(),
            _ => String::new(),
        };
        let Some(found) = u16::try_from(*port).ok().and_then(|port| place(&host, port, asked))
        else {
            continue;
        };
        if nodes.len() < NODES_MAX && !nodes.contains(&found) {
            nodes.push(found);
        }
    }
    nodes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(host: &str, port: u16) -> Place {
        (host.to_owned(), port)
    }

    #[test]
    fn place_in_a_moved_error_may_lack_its_host() {
        let moved = |to: &str| {
            let text = format!("-MOVED 3999 {to}\r\n");
            let value = redis::parse_redis_value(text.as_bytes()).expect("legal");
            moved_to(&value.extract_error().expect_err("an error"), "asked")
        };
        assert_eq!(moved("10.0.0.1:7000"), Some(host("10.0.0.1", 7000)));
        assert_eq!(moved("::1:7000"), Some(host("::1", 7000)));
        assert_eq!(moved(":7000"), Some(host("asked", 7000)));
        assert_eq!(moved("?:7000"), None);
        assert_eq!(moved("nonsense"), None);
    }

    #[test]
    fn nodes_of_all_ranges_are_known_once_each() {
        let node = |host: Value, port| Value::Array(vec![host, Value::Int(port)]);
        let text = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        let range =
            |nodes: Vec<Value>| Value::Array([vec![Value::Int(0), Value::Int(9)], nodes].concat());
        let slots = Value::Array(vec![
            range(vec![node(text("a"), 1), node(text("b"), 2)]),
            range(vec![node(text("a"), 1), node(Value::Nil, 3), node(text("?"), 4)]),
            range(vec![node(text("c"), 70_000), Value::Nil]),
        ]);
        assert_eq!(nodes_of(&slots, "x"), [host("a", 1), host("b", 2), host("x", 3)]);
        assert_eq!(nodes_of(&Value::Nil, "x"), []);
    }
}
