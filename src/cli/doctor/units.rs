//! The units of Hero on this machine, as systemd tells them.

use std::ffi::OsString;
use std::io::{Read, Seek};

use super::finding::{DoctorFinding, FindingArea};
use crate::engine::process::{Service, ServiceSpec, find_program};
use crate::view::has_systemd;

const UNITS: FindingArea = FindingArea::Units;
/// The bytes of systemctl's answer that are read.
const ANSWER_BYTES_MAX: u64 = 256 * 1024;

/// Looks at every unit `hero@…` that systemd has loaded.
pub(super) fn findings() -> Vec<DoctorFinding> {
    if !has_systemd() {
        let text = "systemd does not run here, so its units are not looked at";
        return vec![DoctorFinding::note(UNITS, text)];
    }
    match asked(&[
        "list-units",
        "--all",
        "--plain",
        "--no-legend",
        "--no-pager",
        "--full",
        "hero@*",
    ]) {
        Ok(answer) => of_units(&answer),
        Err(reason) => {
            vec![DoctorFinding::note(UNITS, format!("systemctl does not answer: {reason}"))]
        }
    }
}

fn asked(args: &[&str]) -> Result<String, String> {
    let program = find_program("systemctl").ok_or("it is not in PATH")?;
    let answer = || -> std::io::Result<String> {
        let mut file = tempfile::tempfile()?;
        let mut service = Service::start(ServiceSpec {
            program: program.into_os_string(),
            args: args.iter().map(OsString::from).collect(),
            output: Some(file.try_clone()?),
            ..ServiceSpec::default()
        })?;
        let status = service.wait()?;
        file.rewind()?;
        let mut text = Vec::new();
        file.take(ANSWER_BYTES_MAX).read_to_end(&mut text)?;
        let text = String::from_utf8_lossy(&text).into_owned();
        if status.success() { Ok(text) } else { Err(std::io::Error::other(text.trim().to_owned())) }
    };
    answer().map_err(|error| error.to_string())
}

/// Reads lines `UNIT LOAD ACTIVE SUB DESCRIPTION`.
fn of_units(answer: &str) -> Vec<DoctorFinding> {
    let mut findings = Vec::new();
    let mut running = Vec::new();
    for line in answer.lines() {
        let mut words = line.split_whitespace();
        let (Some(unit), Some(_), Some(active), Some(sub)) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            continue;
        };
        let unit = unit.trim_end_matches(".service");
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
                format!("{unit} fails and is started again and again"),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::doctor::finding::FindingState;

    #[test]
    fn failed_and_restarting_units_are_errors_and_stopped_ones_notes() {
        let answer = "hero@osis-default-1.service loaded active running Hero osis\n\
                      hero@supervisor.service loaded failed failed Hero supervisor\n\
                      hero@v-default-1.service loaded activating auto-restart Hero v\n\
                      hero@sal-io-3.service loaded inactive dead Hero sal\n\n";
        let found = of_units(answer);
        let states: Vec<FindingState> = found.iter().map(|of| of.state).collect();
        let expected =
            [FindingState::Ok, FindingState::Error, FindingState::Error, FindingState::Note];
        assert_eq!(states, expected);
        assert_eq!(found[0].text, "running: hero@osis-default-1");
        assert!(found[1].remedy.contains("journalctl -u hero@supervisor -n 50"), "{found:?}");
        assert_eq!(of_units("").len(), 1);
    }
}
