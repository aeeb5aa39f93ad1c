//! The keys of notifications, and of the times that they report.

use super::spell;

spell! {
    /// Hash: the times that jobs of a script type have unless they say, in seconds, by setting and type.
    type_times() = "meta:type:times";

    /// Stream, capped: events for notifications, written by the scripts that end jobs.
    notify_events() = "meta:notify:events";

    /// Hash, TTL: the kinds of events that supervisors want, each with the time until which, in ms since 1970.
    notify_wanted() = "meta:notify:wanted";

    /// Hash, TTL: the jobs of which the last one failed, by type and name or group, each with its time.
    notify_failing() = "meta:notify:failing";

    /// Hash: the state of each notification, and how far each shard's events are read.
    notify_state() = "meta:notify:state";

    /// Hash: messages that are not delivered, JSON by id.
    notify_messages() = "meta:notify:messages";

    /// Sorted set: ids of these messages, by when they are due.
    notify_due() = "meta:notify:due";

    /// List: the latest ends of deliveries, JSON, the newest first.
    notify_recent() = "meta:notify:recent";

    /// Hash: the notifications whose last attempt to deliver failed, JSON by name.
    notify_trouble() = "meta:notify:trouble";

    /// Hash, TTL: the problems of queues and periodic jobs that last, JSON by kind and subject, and when they were
    /// last judged.
    notify_problems() = "meta:notify:problems";
}
