//! Backup and restore of what notifications have to tell: undelivered messages, events that are in no message yet, and the
//! jobs of which the last one failed.

use std::collections::HashMap;

use super::backup::log_entries;
use super::{NotifySnapshot, Result, Store};
use crate::proto::backup::{Bytes, NotifyCopy};
use crate::proto::notification::NotifyMessage;

/// The entries of one line.
const MESSAGES: usize = 20;
const EVENTS: usize = 100;
const FAILING: usize = 500;
const DOING: &str = "backing up notifications";

/// Ids of messages, each with when it is due in us since 1970.
type DueIds = Vec<(String, f64)>;

impl Store {
    /// Copies events of this shard that are in no message yet, oldest first, after `after`. Empty at the end.
    pub async fn backup_events(
        &self,
        look: &NotifySnapshot,
        after: Option<&str>,
    ) -> Result<NotifyCopy> {
        let from = after.map_or_else(|| look.unread_of(self.shard), |after| format!("({after}"));
        let arguments = (self.keys.notify_events(), from, "+", "COUNT", EVENTS);
        let events = log_entries(self.link.command(DOING, "XRANGE", arguments).await?);
        Ok(NotifyCopy { events, ..NotifyCopy::default() })
    }

    /// Copies the names of jobs of this shard of which the last one failed.
    pub async fn backup_failing(&self) -> Result<Vec<NotifyCopy>> {
        let all: Vec<(Vec<u8>, Vec<u8>)> =
            self.link.command(DOING, "HGETALL", self.keys.notify_failing()).await?;
        let all: Vec<(Bytes, Bytes)> =
            all.into_iter().map(|(name, at)| (name.into(), at.into())).collect();
        let copy = |failing: &[(Bytes, Bytes)]| NotifyCopy {
            failing: failing.to_vec(),
            ..NotifyCopy::default()
        };
        Ok(all.chunks(FAILING).map(copy).collect())
    }

    /// Copies the undelivered messages, which are on the home shard.
    pub async fn backup_messages(&self) -> Result<Vec<NotifyCopy>> {
        let mut pipeline = redis::pipe();
        pipeline.cmd("HGETALL").arg(self.keys.notify_messages());
        pipeline.cmd("ZRANGE").arg(self.keys.notify_due()).arg(0).arg(-1).arg("WITHSCORES");
        let (mut texts, due): (HashMap<String, Vec<u8>>, DueIds) =
            self.read_at_once(DOING, &pipeline).await?;
        let read = |(id, due_us): (String, f64)| {
            let message: NotifyMessage = serde_json::from_slice(&texts.remove(&id)?).ok()?;
            let due = std::time::Duration::try_from_secs_f64(due_us / 1e6).unwrap_or_default();
            Some((super::attempts::millis(due), message))
        };
        let messages: Vec<(u64, NotifyMessage)> = due.into_iter().filter_map(read).collect();
        let copy = |messages: &[(u64, NotifyMessage)]| NotifyCopy {
            messages: messages.to_vec(),
            ..NotifyCopy::default()
        };
        Ok(messages.chunks(MESSAGES).map(copy).collect())
    }

    /// Restores notifications. A message is tried for an hour again, with its id. Calling again is safe.
    pub async fn restore_notify(&self, copy: &NotifyCopy) -> Result<()> {
        let mut script = self.scripts.restore_notify.prepare_invoke();
        script.arg(copy.messages.len());
        for (due_ms, message) in &copy.messages {
            let again = NotifyMessage { tried_ms: 0, ..message.clone() };
            let text = serde_json::to_string(&again).unwrap_or_default();
            script.arg(&message.id).arg(due_ms).arg(text);
        }
        let bytes = |of: &Bytes| of.decode().unwrap_or_default();
        script.arg(copy.events.len());
        for (id, fields) in &copy.events {
            script.arg(id).arg(fields.len());
            for field in fields {
                script.arg(bytes(field));
            }
        }
        for (name, at) in &copy.failing {
            script.arg(bytes(name)).arg(bytes(at));
        }
        self.invoke::<String>("restoring notifications", &script).await.map(drop)
    }
}
