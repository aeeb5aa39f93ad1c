//! The keys of notifications, and of the times that they tell.

use super::Keys;

impl Keys {
    /// Hash: the times that jobs of a script type have unless they say, in seconds, by setting and type.
    pub fn type_times(&self) -> String {
        self.key(format_args!("meta:type:times"))
    }

    /// Stream, capped: events for notifications, written by the scripts that end jobs.
    pub fn notify_events(&self) -> String {
        self.key(format_args!("meta:notify:events"))
    }

    /// Hash, TTL: the kinds of events that supervisors want, each with the time until which, in ms since 1970.
    pub fn notify_wanted(&self) -> String {
        self.key(format_args!("meta:notify:wanted"))
    }

    /// Hash, TTL: the jobs of which the last one failed, by type and name or group, each with its time.
    pub fn notify_failing(&self) -> String {
        self.key(format_args!("meta:notify:failing"))
    }

    /// Hash: the state of each notification, and how far each shard's events are read.
    pub fn notify_state(&self) -> String {
        self.key(format_args!("meta:notify:state"))
    }

    /// Hash: messages that are not delivered, JSON by id.
    pub fn notify_messages(&self) -> String {
        self.key(format_args!("meta:notify:messages"))
    }

    /// Sorted set: ids of these messages, by when they are due.
    pub fn notify_due(&self) -> String {
        self.key(format_args!("meta:notify:due"))
    }

    /// List: the latest ends of deliveries, JSON, the newest first.
    pub fn notify_recent(&self) -> String {
        self.key(format_args!("meta:notify:recent"))
    }

    /// Hash: the notifications whose last attempt to deliver failed, JSON by name.
    pub fn notify_trouble(&self) -> String {
        self.key(format_args!("meta:notify:trouble"))
    }

    /// Hash, TTL: the problems of queues and periodic jobs that last, JSON by kind and subject, and when they were
    /// last judged.
    pub fn notify_problems(&self) -> String {
        self.key(format_args!("meta:notify:problems"))
    }
}
