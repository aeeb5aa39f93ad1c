//! `[check]`: the thresholds of problems, for every command and page that names them.

use std::time::Duration;

use super::config_error::{Fault, KeyPath};
use super::units;
use crate::config::toml_table::toml_table;

toml_table! {
    /// `[check]`: the thresholds of problems. Zero switches one off.
    pub struct CheckConfig {
        /// Fewer live supervisors are critical.
        pub supervisors_min: u64 = 1,
        /// The wait of a queue's first job that is a warning.
        #[serde(with = "units::duration")]
        pub wait_warning: Duration = Duration::from_mins(5),
        /// The wait of a queue's first job that is critical.
        #[serde(with = "units::duration")]
        pub wait_critical: Duration = Duration::from_mins(30),
        /// The jobs in one queue that are a warning.
        pub depth_warning: u64 = 0,
        /// The jobs in one queue that are critical.
        pub depth_critical: u64 = 0,
        /// The held jobs of one queue that are a warning.
        pub held_warning: u64 = 0,
        /// The held jobs of one queue that are critical.
        pub held_critical: u64 = 0,
        /// The jobs that ended in `error` in the last hour, of all types, that are a warning.
        pub failed_warning: u64 = 0,
        /// The jobs that ended in `error` in the last hour, of all types, that are critical.
        pub failed_critical: u64 = 0,
        /// The share of failed jobs in the last ten minutes, in times of that before, that is a warning.
        pub failures_rise: u64 = 2,
        /// The dead letters of the last hour, of all types, that are a warning.
        pub dead_warning: u64 = 1,
        /// The dead letters of the last hour, of all types, that are critical.
        pub dead_critical: u64 = 0,
        /// The dead letters in one queue of RabbitMQ that are a warning.
        pub amqp_dead_warning: u64 = 1,
        /// The dead letters in one queue of RabbitMQ that are critical.
        pub amqp_dead_critical: u64 = 0,
        /// The outage of RabbitMQ, Redis or MariaDB that a broker sees and that is a warning.
        #[serde(with = "units::duration")]
        pub outage_warning: Duration = Duration::from_secs(30),
        /// The outage of RabbitMQ, Redis or MariaDB that a broker sees and that is critical.
        #[serde(with = "units::duration")]
        pub outage_critical: Duration = Duration::from_mins(5),
        /// The per cent of Redis's `maxmemory` in use that are a warning.
        pub memory_warning: u64 = 80,
        /// The per cent of Redis's `maxmemory` in use that are critical.
        pub memory_critical: u64 = 95,
        /// A Redis that forgets accepted jobs when it is killed is a warning.
        pub durable: bool = true,
    }
}

impl CheckConfig {
    /// Rejects a warning that is above its critical threshold: it would never be given.
    pub(super) fn check(&self) -> Result<(), Fault> {
        let millis = |wait: Duration| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        let amqp_dead = [self.amqp_dead_warning, self.amqp_dead_critical];
        let outage = [self.outage_warning, self.outage_critical].map(millis);
        for (warning, critical, pair) in [
            ("wait_warning", "wait_critical", [self.wait_warning, self.wait_critical].map(millis)),
            ("depth_warning", "depth_critical", [self.depth_warning, self.depth_critical]),
            ("held_warning", "held_critical", [self.held_warning, self.held_critical]),
            ("failed_warning", "failed_critical", [self.failed_warning, self.failed_critical]),
            ("dead_warning", "dead_critical", [self.dead_warning, self.dead_critical]),
            ("amqp_dead_warning", "amqp_dead_critical", amqp_dead),
            ("outage_warning", "outage_critical", outage),
            ("memory_warning", "memory_critical", [self.memory_warning, self.memory_critical]),
        ] {
            let key = |name| KeyPath::of(&["check", name]);
            if pair[0] > pair[1] && pair[1] > 0 {
                let message = format!("must be at most check.{critical}");
                return Err(Fault::new(key(warning), message).or(key(critical)));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warning_above_its_critical_threshold_is_rejected_unless_that_is_off() {
        assert_eq!(CheckConfig::default().check(), Ok(()));
        let check = CheckConfig { dead_warning: 5, dead_critical: 4, ..CheckConfig::default() };
        let fault = check.check().expect_err("rejected");
        assert_eq!(fault.message, "check.dead_warning must be at most check.dead_critical");
        let check = CheckConfig { dead_critical: 0, ..check };
        assert_eq!(check.check(), Ok(()));
    }
}
