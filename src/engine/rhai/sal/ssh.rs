//! Commands on other machines, with the program ssh and the keys of the daemon's user.

use ::rhai::INT;

use super::context::{CallResult, SalJob, operation};
use super::external_program::{Exited, ExternalProgram};
use crate::engine::rhai::functions::Functions;

pub(super) fn register(functions: &mut Functions<'_>) {
    functions.add(
        "ssh_execute",
        ["host", "user", "command"],
        "Runs a command on another machine, and returns its exit code.",
        r#"
ssh_execute("web1.example.org", "deploy", "systemctl is-active nginx")
// → 0"#,
        |host: &str, user: &str, command: &str| {
            operation("ssh_execute", host, |job| {
                let ran = ssh(job, host, user, command)?;
                let code = ran.code().ok_or_else(|| ran.failure("ssh"))?;
                // 255 is an error of ssh itself: the command did not run.
                if code == 255 { Err(ran.failure("ssh")) } else { Ok(INT::from(code)) }
            })
        },
    );
    functions.add(
        "ssh_execute_output",
        ["host", "user", "command"],
        "Runs a command on another machine, and returns its output.",
        r#"
ssh_execute_output("web1.example.org", "deploy", "hostname")
// → web1"#,
        |host: &str, user: &str, command: &str| {
            operation("ssh_execute_output", host, |job| {
                let ran = ssh(job, host, user, command)?;
                if ran.success() { Ok(ran.stdout()) } else { Err(ran.failure("ssh")) }
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
            operation("ssh_ping", host, |job| Ok(ssh(job, host, user, "true")?.success()))
        },
    );
}

/// Rejects an invalid host name, and one that a program would take for an option.
pub(super) fn check_host(host: &str) -> CallResult<()> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || ".-_:%[]".contains(c);
    if host.is_empty() || host.len() > 255 || host.starts_with('-') || !host.chars().all(is_plain) {
        return Err("invalid host name".into());
    }
    Ok(())
}

/// Runs ssh in batch mode: it never prompts for a password.
fn ssh(job: SalJob<'_>, host: &str, user: &str, command: &str) -> CallResult<Exited> {
    job.settings.check_network()?;
    check_host(host)?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-@+".contains(c);
    if user.is_empty() || user.starts_with('-') || !user.chars().all(is_plain) {
        return Err("invalid user name".into());
    }
    let options = ["-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-l", user, "--", host];
    ExternalProgram::new("ssh").args(options).arg(command).run(job)
}
