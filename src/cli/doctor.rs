//! `hero doctor`: one page on what is wrong now, on this machine and in Redis, each with what to do.

mod finding;
mod machine;
mod namespace;
mod units;

use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::Global;
use crate::error::Error;
use crate::proto::text::counted;
use finding::{DoctorFinding, FindingState};
pub(super) use units::not_running;

/// Say what is wrong on this machine and in Redis, and what to do
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hero doctor\n  hero doctor --problems\n  hero doctor --json\n\n\
                        It changes nothing. Run it as root or as a member of the group hero: others may \
                        not read the\nconfiguration. Exit codes: 0 nothing is wrong, 1 something is."
)]
pub(super) struct Doctor {
    /// Print warnings and errors alone
    #[arg(long)]
    problems: bool,
}

impl Doctor {
    pub(super) fn run(&self, global: &Global) -> Result<ExitCode, Error> {
        let config = machine::configuration(global);
        let mut findings = Vec::new();
        match config {
            Err(finding) => findings.push(finding),
            Ok((config, valid)) => {
                findings.push(valid);
                findings.extend(machine::findings(config, global));
                findings.extend(units::findings(global));
                let of_redis = async {
                    Ok(namespace::findings(config, &units::running(global, config)).await)
                };
                findings.extend(super::block_on(of_redis)?);
            }
        }
        if global.of_user.is_some() {
            findings.iter_mut().for_each(DoctorFinding::remedy_for_user);
        }
        let number = |state| findings.iter().filter(|of| of.state == state).count() as u64;
        let (errors, warnings) = (number(FindingState::Error), number(FindingState::Warning));
        let is_wrong = errors + warnings > 0;
        if self.problems {
            findings.retain(DoctorFinding::is_problem);
        }
        global.print(
            || json!({ "errors": errors, "warnings": warnings, "findings": findings }),
            || {
                let sum = match (errors, warnings) {
                    (0, 0) => "nothing is wrong\n".to_owned(),
                    _ => format!(
                        "{}, {}\n",
                        counted(errors, "error", "errors"),
                        counted(warnings, "warning", "warnings")
                    ),
                };
                format!("{}{sum}", finding::page(&findings))
            },
        )?;
        Ok(ExitCode::from(u8::from(is_wrong)))
    }
}
