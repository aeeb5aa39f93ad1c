//! The keys without a variable part.

use super::Keys;

impl Keys {
    /// Returns the keys without a variable part, each with its type.
    pub fn fixed(&self) -> Vec<(String, &'static str)> {
        let types = [
            ("meta:queue:index", "set"),
            ("meta:type:index", "set"),
            ("meta:type:times", "hash"),
            ("meta:actor:index", "zset"),
            ("meta:actor:foreign", "zset"),
            ("meta:actor:seen", "zset"),
            ("meta:actor:labels", "hash"),
            ("meta:supervisor:index", "zset"),
            ("meta:boot:index", "zset"),
            ("meta:boot:hosts", "hash"),
            ("meta:job:awaited", "zset"),
            ("meta:job:unindexed", "zset"),
            ("meta:job:expiring", "zset"),
            ("meta:job:expected", "zset"),
            ("meta:job:settling", "list"),
            ("meta:job:notes", "list"),
            ("meta:job:committing", "list"),
            ("meta:job:events", "stream"),
            ("meta:graph:index", "zset"),
            ("meta:key:wrong_types", "zset"),
            ("meta:queue:samples", "list"),
            ("meta:queue:hour:samples", "list"),
            ("meta:queue:marks", "hash"),
            ("meta:queue:older", "hash"),
            ("meta:queue:slow", "set"),
            ("meta:queue:paused", "set"),
            ("meta:limit:index", "zset"),
            ("meta:limit:probes", "hash"),
            ("meta:osis:contexts", "zset"),
            ("meta:api:tokens", "hash"),
        ];
        types.map(|(rest, of)| (self.key(format_args!("{rest}")), of)).to_vec()
    }
}
