//! The keys of statistics of the whole namespace.

use super::spell;

spell! {
    /// List: samples of the counters of all types, one a minute of the last hour, JSON.
    samples() = "meta:queue:samples";

    /// List: one of these samples an hour, of the last 30 days.
    hours() = "meta:queue:hour:samples";

    /// Hash: the spans of traces that no receiver got, by the service that made them.
    spans_dropped() = "meta:queue:stats:spans_dropped";
}
