//! Units whose process is there and does not renew its presence in Redis: they hang.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use super::super::Global;
use super::super::stage::stage_of;
use super::finding::{DoctorFinding, FindingArea};
use super::units::{LIST, asked, lines};
use crate::config::{Config, Unit};
use crate::proto::units::brief;
use crate::view::{Snapshot, has_systemd, start_of};

/// A unit that was started so recently need not have a presence.
const START_MAX: Duration = Duration::from_secs(30);

/// A unit that systemd runs.
pub(super) struct RunningUnit {
    name: String,
    pid: u32,
    /// The time since its start.
    age: Duration,
}

/// Returns the running units of actors and supervisors on this machine.
pub(super) fn running(global: &Global, config: &Config) -> Vec<RunningUnit> {
    if !has_systemd() || stage_of(global.file()).is_some() {
        return Vec::new();
    }
    let list = asked(&LIST).unwrap_or_default();
    // Brokers have a heartbeat of their own.
    let has_presence = |unit: &str| {
        let name = unit.trim_end_matches(".service").split_once('@').map(|(_, name)| name);
        let unit = name.and_then(|name| config.unit(name).ok());
        unit.is_some_and(|unit| !matches!(unit, Unit::Broker(_)))
    };
    let is_active =
        |(unit, active, _): &(&str, &str, &str)| *active == "active" && has_presence(unit);
    let names: Vec<&str> = lines(&list).filter(is_active).map(|(unit, ..)| unit).collect();
    if names.is_empty() {
        return Vec::new();
    }
    let properties = ["show", "--property=Id,MainPID,ActiveEnterTimestampMonotonic"];
    let answer = asked(&[&properties[..], &names].concat()).unwrap_or_default();
    let uptime = fs::read_to_string("/proc/uptime").unwrap_or_default();
    let uptime = uptime.split(' ').next().and_then(|seconds| seconds.parse().ok());
    let uptime = uptime.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    of_properties(&answer, uptime.unwrap_or_default())
}

/// Reads what systemctl shows of units: a block of lines `NAME=VALUE` for each.
fn of_properties(answer: &str, uptime: Duration) -> Vec<RunningUnit> {
    let of_block = |block: &str| {
        let value =
            |name: &str| block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        let started = value("ActiveEnterTimestampMonotonic")?.parse().ok()?;
        Some(RunningUnit {
            name: value("Id")?.trim_end_matches(".service").to_owned(),
            pid: value("MainPID")?.parse().ok().filter(|pid| *pid > 0)?,
            age: uptime.saturating_sub(Duration::from_micros(started)),
        })
    };
    answer.split("\n\n").filter_map(of_block).collect()
}

/// Finds the units that run without a presence. While Redis refuses writes, nobody can renew one.
pub(super) fn hung<'u>(snapshot: &Snapshot, units: &'u [RunningUnit]) -> Vec<&'u RunningUnit> {
    if snapshot.refuses_writes() {
        return Vec::new();
    }
    let host = nix::unistd::gethostname().unwrap_or_default().to_string_lossy().into_owned();
    let supervisors = snapshot.supervisors.iter().map(|of| (&of.hostname, of.pid));
    let actors = snapshot.actors.iter().map(|of| (&of.presence.hostname, of.presence.pid));
    let here = supervisors.chain(actors).filter(|(name, _)| **name == host);
    let live: BTreeSet<u32> = here.map(|(_, pid)| pid).collect();
    let hangs = |of: &&RunningUnit| of.age > START_MAX && !live.contains(&of.pid);
    units.iter().filter(hangs).collect()
}

impl RunningUnit {
    /// Replaces its start in a remedy: it runs already.
    pub(super) fn correct_remedy(&self, finding: &mut DoctorFinding) {
        let name = &self.name;
        let start = start_of(name.trim_start_matches("hero@"));
        if finding.remedy.ends_with(&start) {
            finding.remedy = format!("its unit hangs: systemctl restart {name}");
        }
    }
}

impl From<&RunningUnit> for DoctorFinding {
    fn from(unit: &RunningUnit) -> Self {
        let RunningUnit { name, pid, age } = unit;
        let text = format!(
            "{name} has run with pid {pid} for {}, and has no heartbeat in redis: it hangs",
            brief(*age)
        );
        let remedy =
            format!("see where: journalctl -u {name} -n 50\nthen: systemctl restart {name}");
        Self::error(FindingArea::Units, text, &remedy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::snapshot::tests::healthy_snapshot;

    #[test]
    fn process_without_a_heartbeat_hangs_and_one_with_it_or_just_started_does_not() {
        let answer = "Id=hero@osis-default-1.service\nMainPID=70\nActiveEnterTimestampMonotonic=1000000\n\n\
                      Id=hero@supervisor.service\nMainPID=7\nActiveEnterTimestampMonotonic=1000000\n\n\
                      Id=hero@v-default-1.service\nMainPID=71\nActiveEnterTimestampMonotonic=99000000\n";
        let units = of_properties(answer, Duration::from_secs(100));
        assert_eq!(units.len(), 3);
        let mut now = healthy_snapshot();
        now.supervisors[0].hostname =
            nix::unistd::gethostname().unwrap_or_default().to_string_lossy().into_owned();
        let found = hung(&now, &units).into_iter();
        let texts: Vec<String> = found.map(|of| DoctorFinding::from(of).text).collect();
        let hangs = "hero@osis-default-1 has run with pid 70 for 1m39s, and has no heartbeat in redis: it hangs";
        assert_eq!(texts, [hangs]);
        now.redis.append_failed = true;
        assert!(hung(&now, &units).is_empty(), "nobody can renew a heartbeat");
    }
}
