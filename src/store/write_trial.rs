//! The proof that Redis refuses all writes, and why: its answer to a write that changes nothing. Settings alone do not
//! tell it, as access lists forbid CONFIG.

use redis::Value;

use super::{RedisStore, Result};

/// The answer of Redis to a write that changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WriteTrial {
    /// It was not asked, or its access list forbids the question.
    #[default]
    Unknown,
    Accepted,
    /// It refuses every write, as it cannot write to its disk.
    DiskFails,
    /// It refuses every write, as it has too few replicas.
    FewReplicas,
}

impl RedisStore<'_> {
    /// Deletes a key that never exists, which Redis refuses as any other write.
    pub(super) async fn try_write(self, doing: &'static str) -> Result<WriteTrial> {
        let mut pipeline = redis::pipe();
        pipeline.ignore_errors();
        pipeline.cmd("DEL").arg(self.store.keys.probe());
        let answers: Vec<Value> = self.store.link.pipeline(doing, &pipeline).await?;
        Ok(match answers.first() {
            Some(Value::ServerError(error)) => match error.code() {
                "MISCONF" => WriteTrial::DiskFails,
                "NOREPLICAS" => WriteTrial::FewReplicas,
                _ => WriteTrial::Unknown,
            },
            Some(_) => WriteTrial::Accepted,
            None => WriteTrial::Unknown,
        })
    }
}

impl WriteTrial {
    pub(super) fn is_refused(self) -> bool {
        matches!(self, Self::DiskFails | Self::FewReplicas)
    }

    /// Returns why every write is refused, and the remedy. `good` is the number of replicas that keep up.
    pub(super) fn refusal(self, good: u64) -> Option<(String, &'static str)> {
        match self {
            Self::Unknown | Self::Accepted => None,
            Self::DiskFails => {
                let text = "refuses every write, as it cannot write its snapshot \
                            (stop-writes-on-bgsave-error yes)";
                let remedy =
                    "see its log, and whether its disk is full; then run: redis-cli BGSAVE";
                Some((text.to_owned(), remedy))
            }
            Self::FewReplicas => {
                let replicas = match good {
                    0 => "none".to_owned(),
                    more => format!("{more} alone"),
                };
                let text = format!(
                    "refuses every write: min-replicas-to-write wants more replicas that keep up, and it has {replicas}"
                );
                let remedy = "start a replica, or see why it lags: redis-cli INFO replication; to accept jobs \
                              without one: redis-cli CONFIG SET min-replicas-to-write 0";
                Some((text, remedy))
            }
        }
    }
}
