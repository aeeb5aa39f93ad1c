//! The Redis that the configuration names for scripts: another one than Hero's, or the same with its
//! own login. Hero's password is never sent there.

use redis::Value;

use super::connection::SharedConnection;
use super::server::Server;
use super::{Result, StoreError};
use crate::config::{RedisConfig, RedisUrl};
use crate::proto::script_reply::RedisReply;

/// A handle on it. Connects with its first command.
#[derive(Clone)]
pub struct ExternalRedis {
    link: SharedConnection,
}

impl ExternalRedis {
    /// Reads the url, which may hold a login.
    pub fn open(url: &RedisUrl) -> Result<Self> {
        let config = RedisConfig { url: url.clone(), ..RedisConfig::default() };
        Ok(Self { link: SharedConnection::new(Server::with_password(&config, None)?) })
    }

    pub async fn run(&self, words: &[Vec<u8>]) -> Result<RedisReply> {
        const DOING: &str = "a command of a script";
        let mut command = redis::Cmd::new();
        command.arg(words);
        let value: Value = self.link.query(DOING, &command).await?;
        told(value).ok_or_else(|| StoreError::unexpected(DOING))
    }
}

fn told(value: Value) -> Option<RedisReply> {
    Some(match value {
        Value::Nil => RedisReply::Nil,
        Value::Int(number) => RedisReply::Number(number),
        Value::BulkString(bytes) => RedisReply::Text(bytes),
        Value::SimpleString(text) => RedisReply::Text(text.into_bytes()),
        Value::Okay => RedisReply::Text(b"OK".to_vec()),
        Value::Array(values) => {
            RedisReply::List(values.into_iter().map(told).collect::<Option<_>>()?)
        }
        Value::Map(pairs) => {
            let flat = pairs.into_iter().flat_map(|(name, value)| [name, value]);
            RedisReply::List(flat.map(told).collect::<Option<_>>()?)
        }
        _ => return None,
    })
}
