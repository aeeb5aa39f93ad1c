//! The management API of RabbitMQ: it lists bindings and all arguments of queues, which the protocol does
//! not.

use std::collections::BTreeMap;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::timeout;

use super::error::LinkError;
use super::wire::{BrokerAddress, PATIENCE};
use crate::amqp::compare::FoundQueue;
use crate::config::AmqpConfig;
use crate::http::{HttpPoster, Method, PostError, StatusCode};

const ANSWER_BYTES_MAX: usize = 16 << 20;

pub struct Management {
    url: String,
    /// The file of authorities, for `https`.
    authority: Option<PathBuf>,
    authorization: String,
    /// The vhost as a part of a path.
    vhost: String,
}

#[derive(Deserialize)]
struct QueueOfApi {
    name: String,
    #[serde(default)]
    arguments: BTreeMap<String, Value>,
}

#[derive(Deserialize)]
struct BindingOfApi {
    source: String,
    destination: String,
    destination_type: String,
    routing_key: String,
}

impl Management {
    /// Returns the API of a configuration, with the login of a connection.
    pub(super) fn new(config: &AmqpConfig, way: &BrokerAddress) -> Self {
        let (user, password) = way.login();
        let authorization = format!("Basic {}", STANDARD.encode(format!("{user}:{password}")));
        let vhost = utf8_percent_encode(&way.vhost, NON_ALPHANUMERIC).to_string();
        let (url, authority) = (config.management_url.clone(), config.tls_ca_file.clone());
        Self { url, authority, authorization, vhost }
    }

    pub async fn queues(&self) -> Result<BTreeMap<String, FoundQueue>, LinkError> {
        let path = format!("/api/queues/{}?columns=name,arguments", self.vhost);
        let queues: Vec<QueueOfApi> = self.get(&path).await?;
        let bindings: Vec<BindingOfApi> =
            self.get(&format!("/api/bindings/{}", self.vhost)).await?;
        let mut found: BTreeMap<String, FoundQueue> = queues
            .into_iter()
            .map(|queue| {
                let QueueOfApi { name, arguments } = queue;
                (name, FoundQueue { arguments, ..FoundQueue::default() })
            })
            .collect();
        // The default exchange has no name, and binds each queue by its own.
        for binding in bindings.into_iter().filter(|binding| !binding.source.is_empty()) {
            if binding.destination_type == "queue"
                && let Some(queue) = found.get_mut(&binding.destination)
            {
                queue.bindings.insert((binding.source, binding.routing_key));
            }
        }
        Ok(found)
    }

    async fn get<T: serde::de::DeserializeOwned>(&self, path: &str) -> Result<T, LinkError> {
        let unreachable =
            |reason: String| LinkError::Unreachable { address: self.url.clone(), reason };
        let answer = timeout(PATIENCE, self.ask(path)).await;
        let answer = answer.map_err(|_| unreachable("does not answer".to_owned()))?;
        let (status, body) =
            answer.map_err(|error| unreachable(format!("cannot be reached: {error}")))?;
        let doing = "reading queues and bindings by the management API".to_owned();
        match status {
            StatusCode::OK => serde_json::from_slice(&body).map_err(|error| LinkError::Ended {
                doing,
                reason: format!("the answer is not as expected: {error}"),
            }),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(LinkError::NotPermitted {
                address: self.url.clone(),
                doing,
                reason: format!("{status}: the user needs the tag `management`"),
            }),
            status => {
                Err(LinkError::Ended { doing, reason: format!("{} says {status}", self.url) })
            }
        }
    }

    async fn ask(&self, path: &str) -> Result<(StatusCode, Vec<u8>), PostError> {
        let headers = [("authorization".to_owned(), self.authorization.clone())];
        let mut server = HttpPoster::new(&self.url, PATIENCE)?.trusting(self.authority.clone());
        let answer = server.exchange(Method::GET, path, &headers, (&[][..]).into()).await?;
        Ok((answer.status, answer.whole(ANSWER_BYTES_MAX).await?))
    }
}
