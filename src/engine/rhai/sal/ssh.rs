//! Commands on other machines, with the program ssh and the keys of the daemon's user.

use ::rhai::INT;

use super::context::{CallError, CallResult, SalJob, is_word, question};
use super::external_program::{Exited, ExternalProgram};
use crate::engine::rhai::functions::Functions;

/// The exit code of ssh itself: the command did not run.
const SSH_FAILED: INT = 255;
/// The answer if ssh could not be started, or was ended by a signal.
const NOT_RUN: INT = -1;

pub(super) fn register(functions: &mut Functions<'_>) {
    functions.add(
        "ssh_execute",
        ["host", "user", "command"],
        "Runs a command on another machine, and returns its exit code; 255 if ssh could not run it, with \
         the reason in the log, and -1 without ssh.",
        r#"
ssh_execute("web1.example.org", "deploy", "systemctl is-active nginx")
// → 0"#,
        |host: &str, user: &str, command: &str| {
            question("ssh_execute", host, NOT_RUN, |job| {
                if let Err(CallError::Failed(reason)) = check_names(host, user) {
                    job.log_failure("ssh_execute", host, &reason);
                    return Ok(SSH_FAILED);
                }
                let ran = ssh(job, host, user, command)?;
                let code = INT::from(ran.code().ok_or_else(|| failure(&ran))?);
                if code == SSH_FAILED {
                    job.log_failure("ssh_execute", host, &failure(&ran));
                }
                Ok(code)
            })
        },
    );
    functions.add(
        "ssh_execute_output",
        ["host", "user", "command"],
        "Runs a command on another machine, and returns its output; if it fails, what it has printed, with \
         the reason in the log.",
        r#"
ssh_execute_output("web1.example.org", "deploy", "hostname")
// → web1"#,
        |host: &str, user: &str, command: &str| {
            question("ssh_execute_output", host, String::new(), |job| {
                let ran = ssh(job, host, user, command)?;
                if !ran.success() {
                    job.log_failure("ssh_execute_output", host, &failure(&ran));
                }
                Ok(ran.stdout())
            })
        },
    );
    functions.add(
        "ssh_ping",
        ["host", "user"],
        "Returns whether a user can log in on another machine.",
        r#"
ssh_ping("web1.example.org", "deploy")
// → true"#,
        |host: &str, user: &str| {
            question("ssh_ping", host, false, |job| Ok(ssh(job, host, user, "true")?.success()))
        },
    );
}

fn failure(ran: &Exited) -> String {
    format!("ssh: {}", ran.failure())
}

/// Rejects an invalid host name, and a name that a program would take for an option.
pub(super) fn check_host(host: &str) -> CallResult<()> {
    let is_legal = host.len() <= 255 && is_word(host, ".-_:%[]");
    if is_legal { Ok(()) } else { Err("invalid host name".into()) }
}

fn check_names(host: &str, user: &str) -> CallResult<()> {
    check_host(host)?;
    if is_word(user, "._-@+") { Ok(()) } else { Err("invalid user name".into()) }
}

/// Runs ssh in batch mode: it never prompts for a password.
fn ssh(job: SalJob<'_>, host: &str, user: &str, command: &str) -> CallResult<Exited> {
    check_names(host, user)?;
    let options = ["-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-l", user, "--", host];
    ExternalProgram::new("ssh").args(options).arg(command).run(job)
}
