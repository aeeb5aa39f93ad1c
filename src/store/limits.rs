//! Limits: the argument of a claim, and the care for limits that hold jobs.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Store, StoreError};
use crate::config::{LimitConfig, LimitName};

/// The limits of a configuration, as the claim reads them. Cheap to clone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClaimLimits(Arc<str>);

impl ClaimLimits {
    /// The limits of a configuration.
    pub fn new(limits: &BTreeMap<LimitName, LimitConfig>) -> Self {
        if limits.is_empty() {
            return Self::default();
        }
        let all: Vec<Value> = limits.iter().map(|(name, limit)| entry(name, limit)).collect();
        Self(Value::from(all).to_string().into())
    }

    pub(super) fn as_argument(&self) -> &str {
        &self.0
    }
}

/// Leaves out absent keys: `null` in Lua's JSON is not nil.
fn entry(name: &LimitName, limit: &LimitConfig) -> Value {
    let mut entry = serde_json::Map::from_iter([("name".to_owned(), json!(name))]);
    let mut put = |key: &str, value: Option<Value>| {
        entry.extend(value.map(|value| (key.to_owned(), value)));
    };
    put("per", limit.per.map(|per| json!(per.as_str())));
    put("type", limit.script_type.as_ref().map(|name| json!(name)));
    put("group", limit.group.as_ref().map(|name| json!(name)));
    put("caller", limit.caller.as_ref().map(|text| json!(text)));
    put("key", limit.key.as_ref().map(|key| json!(key)));
    put("running", limit.running.map(|number| json!(number)));
    put("rate", limit.rate.map(|rate| json!(rate.number)));
    let period_us = limit.rate.and_then(|rate| u64::try_from(rate.period.as_micros()).ok());
    put("period_us", period_us.map(|us| json!(us)));
    Value::Object(entry)
}

/// The result of a look at limits that hold jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tended {
    /// Held jobs released to their queues, to try again.
    pub released: u64,
    /// Freed slots of jobs that no longer run.
    pub taken_back: u64,
    /// The time until the next look, if a limit holds jobs.
    pub next: Option<Duration>,
}

impl Store {
    /// Tends the limits that hold jobs and are due, up to `most` of them.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn tend_limits(&self, most: usize) -> Result<Tended, StoreError> {
        let mut script = self.scripts.tend_limits.prepare_invoke();
        script.arg(most);
        let (released, taken_back, next_us): (u64, u64, i64) =
            self.invoke("tending limits", &script).await?;
        let next = u64::try_from(next_us).ok().map(Duration::from_micros);
        Ok(Tended { released, taken_back, next })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_keys_of_a_limit_are_left_out() {
        assert_eq!(ClaimLimits::new(&BTreeMap::new()).as_argument(), "");
        let limit = LimitConfig {
            key: Some("api".parse().expect("legal")),
            rate: Some("10/s".parse().expect("legal")),
            ..LimitConfig::default()
        };
        let limits = BTreeMap::from([("a".parse().expect("legal"), limit)]);
        assert_eq!(
            ClaimLimits::new(&limits).as_argument(),
            r#"[{"key":"api","name":"a","period_us":1000000,"rate":10}]"#
        );
    }
}
