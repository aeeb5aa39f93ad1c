//! The keys of statistics of the whole namespace.

use super::Keys;

impl Keys {
    /// List: samples of the counters of all types, one a minute of the last hour, JSON.
    pub fn samples(&self) -> String {
        self.key(format_args!("meta:queue:samples"))
    }

    /// List: one of these samples an hour, of the last 30 days.
    pub fn hours(&self) -> String {
        self.key(format_args!("meta:queue:hour:samples"))
    }

    /// Hash: the spans of traces that no receiver got, by the service that made them.
    pub fn spans_dropped(&self) -> String {
        self.key(format_args!("meta:queue:stats:spans_dropped"))
    }
}
