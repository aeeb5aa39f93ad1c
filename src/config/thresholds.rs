//! `[check]`: the thresholds of problems, for every command and page that names them.

use std::time::Duration;

use super::config_error::{Fault, KeyPath};
use super::key_row::{ANY, TEN_YEARS};
use super::units::duration;
use crate::config::toml_table::toml_table;

toml_table! {
    /// The thresholds of problems, for `hero status --check`, `hero doctor`, `hero top`, the page, the API and the
    /// metrics. A threshold of 0 is off.
    pub struct CheckConfig in "check" {
        /// Fewer live supervisors than this are critical.
        supervisors_min: u64 = 1 => Number(0, ANY);
        /// The wait of a queue's first job, if the queue is not paused.
        wait_warning: Duration as "duration" = Duration::from_mins(5) => Duration(0, TEN_YEARS);
        wait_critical: Duration as "duration" = Duration::from_mins(30) => Duration(0, TEN_YEARS);
        /// The jobs in one queue.
        depth_warning: u64 = 0 => Number(0, ANY);
        depth_critical: u64 = 0 => Number(0, ANY);
        /// The jobs of one queue that limits hold.
        held_warning: u64 = 0 => Number(0, ANY);
        held_critical: u64 = 0 => Number(0, ANY);
        /// The jobs that ended in `error` in the last hour, of all types together.
        failed_warning: u64 = 10 => Number(0, ANY);
        failed_critical: u64 = 0 => Number(0, ANY);
        /// The share of failed jobs in the last ten minutes, in times of that before, from which on it is a warning, if
        /// at least ten jobs failed.
        failures_rise: u64 = 2 => Number(0, ANY);
        /// The dead letters of the last hour, of all types together.
        dead_warning: u64 = 1 => Number(0, ANY);
        dead_critical: u64 = 0 => Number(0, ANY);
        /// The dead letters in one queue of RabbitMQ.
        amqp_dead_warning: u64 = 1 => Number(0, ANY);
        amqp_dead_critical: u64 = 0 => Number(0, ANY);
        /// The time that RabbitMQ, Redis or MariaDB has been away for a broker.
        outage_warning: Duration as "duration" = Duration::from_secs(30) => Duration(0, TEN_YEARS);
        outage_critical: Duration as "duration" = Duration::from_mins(5) => Duration(0, TEN_YEARS);
        /// The memory of Redis in use, in per cent of its `maxmemory`.
        memory_warning: u64 = 80 => Number(0, ANY);
        memory_critical: u64 = 95 => Number(0, ANY);
        /// A Redis that forgets accepted jobs when it is killed is a warning.
        durable: bool = true => Flag;
    }
}

impl CheckConfig {
    /// Rejects a warning that is above its critical threshold: it would never be given. A default may be: nobody wrote it.
    pub(super) fn check(&self) -> Result<(), Fault> {
        for (of, default) in self.pairs().into_iter().zip(Self::default().pairs()) {
            let (warning, critical, pair) = of;
            let key = |name| KeyPath::of(&["check", name]);
            if pair[0] > pair[1] && pair[1] > 0 && pair[0] != default.2[0] {
                let message = format!("must be at most check.{critical}");
                return Err(Fault::new(key(warning), message).or(key(critical)));
            }
        }
        Ok(())
    }

    /// The names and values of each warning with its critical threshold.
    fn pairs(&self) -> [(&'static str, &'static str, [u64; 2]); 8] {
        let millis = |wait: Duration| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        let amqp_dead = [self.amqp_dead_warning, self.amqp_dead_critical];
        let outage = [self.outage_warning, self.outage_critical].map(millis);
        [
            ("wait_warning", "wait_critical", [self.wait_warning, self.wait_critical].map(millis)),
            ("depth_warning", "depth_critical", [self.depth_warning, self.depth_critical]),
            ("held_warning", "held_critical", [self.held_warning, self.held_critical]),
            ("failed_warning", "failed_critical", [self.failed_warning, self.failed_critical]),
            ("dead_warning", "dead_critical", [self.dead_warning, self.dead_critical]),
            ("amqp_dead_warning", "amqp_dead_critical", amqp_dead),
            ("outage_warning", "outage_critical", outage),
            ("memory_warning", "memory_critical", [self.memory_warning, self.memory_critical]),
        ]
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
        let below_the_default = CheckConfig { failed_critical: 2, ..CheckConfig::default() };
        assert_eq!(below_the_default.check(), Ok(()));
    }
}
