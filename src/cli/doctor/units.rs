//! The units of Hero on this machine, as systemd tells them; and those that hang: their process is there and does not renew
//! its presence in Redis.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io::{Read, Seek};
use std::path::Path;
use std::time::Duration;

use super::super::Global;
use super::super::stage::stage_of;
use super::machine::disk;
use super::{DoctorFinding, FindingArea, FindingState};
use crate::client::host_name;
use crate::config::{Config, Unit};
use crate::engine::process::{Service, ServiceSpec, find_program};
use crate::proto::units::brief;
use crate::view::{Snapshot, has_systemd, start_of};

const UNITS: FindingArea = FindingArea::Units;
const LIST: [&str; 7] =
    ["list-units", "--all", "--plain", "--no-legend", "--no-pager", "--full", "hero@*"];
/// The bytes of systemctl's answer that are read.
const ANSWER_BYTES_MAX: u64 = 256 * 1024;

/// A unit that was started so recently need not have a presence.
const START_MAX: Duration = Duration::from_secs(30);

/// Looks at every unit `hero@…` that systemd has loaded.
pub(super) fn findings(global: &Global) -> Vec<DoctorFinding> {
    let note = |text: &str| vec![DoctorFinding::note(UNITS, text)];
    let Some(systemctl) = Systemctl::of(global) else {
        return note(if stage_of(global.file()).is_some() {
            "the units of this hero dev are no units of systemd"
        } else {
            "systemd does not run here, so its units are not looked at"
        });
    };
    match systemctl.asked(&LIST) {
        Ok(answer) => {
            let mut findings = of_units(&answer, |unit| systemctl.restarts(unit));
            findings.extend(folders_of_jobs(&systemctl, &answer));
            findings
        }
        Err(reason) => note(&format!("systemctl does not answer: {reason}")),
    }
}

/// Returns the units of this machine that have failed or are stopped, each in a few words.
pub(in crate::cli) fn not_running(global: &Global) -> Vec<String> {
    let Some(systemctl) = Systemctl::of(global) else { return Vec::new() };
    let answer = systemctl.asked(&LIST).unwrap_or_default();
    units_that_rest(&answer, |unit| systemctl.restarts(unit))
}

/// Returns the units that have failed or are stopped, of an answer of systemctl.
fn units_that_rest(answer: &str, restarts: impl Fn(&str) -> Option<u32>) -> Vec<String> {
    if answer.trim().is_empty() {
        return Vec::new();
    }
    let told =
        of_units(answer, restarts).into_iter().filter(|found| found.state != FindingState::Ok);
    told.map(|found| found.text).collect()
}

/// Looks at the folders of jobs as the running units see them: each has a file system of its own there. Root alone may.
fn folders_of_jobs(systemctl: &Systemctl, answer: &str) -> Vec<DoctorFinding> {
    let running: Vec<&str> = lines(answer)
        .filter(|(_, active, _)| *active == "active")
        .map(|(unit, ..)| unit)
        .filter(|unit| *unit != "hero@supervisor" && !unit.starts_with("hero@broker"))
        .collect();
    if running.is_empty() {
        return Vec::new();
    }
    let names: Vec<String> = running.iter().map(|unit| format!("{unit}.service")).collect();
    let mut args = vec!["show", "--property=MainPID", "--value"];
    args.extend(names.iter().map(String::as_str));
    let pids = systemctl.asked(&args).unwrap_or_default();
    let pids = pids.lines().filter(|line| !line.is_empty());
    let of_unit = |(unit, pid): (&&str, &str)| {
        let folder = format!("/proc/{pid}/root/run/hero");
        disk(&format!("the folders of jobs of {unit}"), Path::new(&folder), "/run/hero")
    };
    running.iter().zip(pids).filter_map(of_unit).collect()
}

/// Reads lines `UNIT LOAD ACTIVE SUB DESCRIPTION`: the unit, and both of its states.
fn lines(answer: &str) -> impl Iterator<Item = (&str, &str, &str)> {
    answer.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let (unit, _, active, sub) = (words.next()?, words.next()?, words.next()?, words.next()?);
        Some((unit.trim_end_matches(".service"), active, sub))
    })
}

/// The manager of the units: of the machine, or of the user whose configuration it is.
struct Systemctl {
    of_user: bool,
}

impl Systemctl {
    /// Returns it; `None` without systemd, and for the units of a `hero dev`.
    fn of(global: &Global) -> Option<Self> {
        let has_units = has_systemd() && stage_of(global.file()).is_none();
        has_units.then_some(Self { of_user: global.of_user.is_some() })
    }

    fn asked(&self, args: &[&str]) -> Result<String, String> {
        let program = find_program("systemctl").ok_or("it is not in PATH")?;
        let args = self.of_user.then_some("--user").into_iter().chain(args.iter().copied());
        let answer = || -> std::io::Result<String> {
            let mut file = tempfile::tempfile()?;
            let mut service = Service::start(ServiceSpec {
                program: program.into_os_string(),
                args: args.map(OsString::from).collect(),
                output: Some(file.try_clone()?),
                ..ServiceSpec::default()
            })?;
            let status = service.wait()?;
            file.rewind()?;
            let mut text = Vec::new();
            file.take(ANSWER_BYTES_MAX).read_to_end(&mut text)?;
            let text = String::from_utf8_lossy(&text).into_owned();
            let failed = || std::io::Error::other(text.trim().to_owned());
            if status.success() { Ok(text) } else { Err(failed()) }
        };
        answer().map_err(|error| error.to_string())
    }

    /// Returns how often systemd has started a unit again since it was started by a person.
    fn restarts(&self, unit: &str) -> Option<u32> {
        self.asked(&["show", "--property=NRestarts", "--value", unit]).ok()?.trim().parse().ok()
    }
}

/// `restarts` tells how often a unit was started again.
fn of_units(answer: &str, restarts: impl Fn(&str) -> Option<u32>) -> Vec<DoctorFinding> {
    let mut findings = Vec::new();
    let mut running = Vec::new();
    for (unit, active, sub) in lines(answer) {
        match active {
            "active" => running.push(unit),
            "failed" => findings.push(DoctorFinding::error(
                UNITS,
                format!("{unit} has failed"),
                &format!(
                    "see why: journalctl -u {unit} -n 50\nthen: systemctl reset-failed {unit}; \
                     systemctl start {unit}"
                ),
            )),
            "activating" if sub == "auto-restart" => findings.push(DoctorFinding::error(
                UNITS,
                match restarts(unit) {
                    Some(0 | 1) => format!("{unit} has ended, and is started again"),
                    Some(many) => {
                        format!("{unit} has failed {many} times, and is started again and again")
                    }
                    None => format!("{unit} has failed, and is started again"),
                },
                &format!("see why: journalctl -u {unit} -n 50"),
            )),
            "inactive" => findings.push(DoctorFinding::note(UNITS, format!("{unit} is stopped"))),
            _ => findings.push(DoctorFinding::note(UNITS, format!("{unit} is {active} ({sub})"))),
        }
    }
    if !running.is_empty() {
        findings.insert(0, DoctorFinding::ok(UNITS, format!("running: {}", running.join(", "))));
    } else if findings.is_empty() {
        findings.push(DoctorFinding::note(
            UNITS,
            "no unit of Hero is enabled or running on this machine",
        ));
    }
    findings
}

pub(super) struct RunningUnit {
    name: String,
    pid: u32,
    age: Duration,
}

/// Returns the running units of actors and supervisors on this machine.
pub(super) fn running(global: &Global, config: &Config) -> Vec<RunningUnit> {
    let Some(systemctl) = Systemctl::of(global) else { return Vec::new() };
    let list = systemctl.asked(&LIST).unwrap_or_default();
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
    let answer = systemctl.asked(&[&properties[..], &names].concat()).unwrap_or_default();
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
    let host = host_name();
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
    fn failed_and_restarting_units_are_errors_and_stopped_ones_notes() {
        let answer = "hero@osis-default-1.service loaded active running Hero osis\n\
                      hero@supervisor.service loaded failed failed Hero supervisor\n\
                      hero@v-default-1.service loaded activating auto-restart Hero v\n\
                      hero@sal-io-3.service loaded inactive dead Hero sal\n\n";
        let found = of_units(answer, |_| Some(4));
        let states: Vec<FindingState> = found.iter().map(|of| of.state).collect();
        let expected =
            [FindingState::Ok, FindingState::Error, FindingState::Error, FindingState::Note];
        assert_eq!(states, expected);
        assert_eq!(found[0].text, "running: hero@osis-default-1");
        assert!(found[1].remedy.contains("journalctl -u hero@supervisor -n 50"), "{found:?}");
        assert_eq!(of_units("", |_| None).len(), 1);
        let once = of_units(answer, |_| Some(1));
        assert_eq!(once[2].text, "hero@v-default-1 has ended, and is started again");
        assert_eq!(
            units_that_rest(answer, |_| Some(4)),
            [
                "hero@supervisor has failed",
                "hero@v-default-1 has failed 4 times, and is started again and again",
                "hero@sal-io-3 is stopped"
            ]
        );
        assert!(units_that_rest("", |_| None).is_empty(), "no unit is configured");
    }

    #[test]
    fn process_without_a_heartbeat_hangs_and_one_with_it_or_just_started_does_not() {
        let answer = "Id=hero@osis-default-1.service\nMainPID=70\nActiveEnterTimestampMonotonic=1000000\n\n\
                      Id=hero@supervisor.service\nMainPID=7\nActiveEnterTimestampMonotonic=1000000\n\n\
                      Id=hero@v-default-1.service\nMainPID=71\nActiveEnterTimestampMonotonic=99000000\n";
        let units = of_properties(answer, Duration::from_secs(100));
        assert_eq!(units.len(), 3);
        let mut now = healthy_snapshot();
        now.supervisors[0].hostname = host_name();
        let found = hung(&now, &units).into_iter();
        let texts: Vec<String> = found.map(|of| DoctorFinding::from(of).text).collect();
        let hangs = "hero@osis-default-1 has run with pid 70 for 1m39s, and has no heartbeat in redis: it hangs";
        assert_eq!(texts, [hangs]);
        now.redis.append_failed = true;
        assert!(hung(&now, &units).is_empty(), "nobody can renew a heartbeat");
    }
}
