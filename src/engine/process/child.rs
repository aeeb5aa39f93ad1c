//! Runs one child from its start to its end. Nothing that it started survives it.

use std::io;
use std::os::fd::BorrowedFd;
use std::process::ExitStatus;

use super::end::ChildProcess;
pub(crate) use super::start::Spec;
use super::start::{Started, Warmed, start};
pub(crate) use super::watch::{ChildOutput, Ended, Watch};
use super::watch::{WatchEvent, WatchedChild};
use crate::engine::Usage;
use crate::sandbox::limit_hit;

#[derive(Debug)]
pub(crate) struct ChildReport {
    pub(crate) ended: Ended,
    pub(crate) status: ExitStatus,
    pub(crate) written: ChildOutput,
    pub(crate) usage: Usage,
}

/// Runs a child to its end and reaps it. Errors after its start do not report their number; it is killed then.
pub(crate) fn run(
    spec: &Spec<'_>,
    watch: &Watch<'_>,
    warmed: Option<Warmed<'_>>,
) -> io::Result<ChildReport> {
    let cancelled = watch.cancel.descriptor()?;
    let Started { pid, run, registered, group, pipes, is_cold } =
        start(spec, warmed, watch.is_of_job)?;
    let mut process = ChildProcess::new(pid, run, registered, group);
    // Without its number, an error does not pass for one from before the script began.
    let unnumbered = |error: io::Error| io::Error::other(error.to_string());
    let mut child = WatchedChild::new(pid, run, pipes, spec, watch).map_err(unnumbered)?;
    attend(&mut process, &mut child, watch, cancelled).map_err(unnumbered)?;
    let until = process.leftovers_end(watch.kill_grace, watch.deadline);
    let cancelled = Some(cancelled).filter(|_| !process.is_ending());
    let holders = child.drain(watch, cancelled, until).map_err(unnumbered)?;
    if !process.is_ending() {
        report_leftovers(&holders, watch);
    }
    process.kill_all();
    let (written, too_much_output) = child.finish(watch);
    let (status, mut usage) = process.reap().map_err(unnumbered)?;
    if is_cold {
        usage.leave_out_daemon(written.memory_seen_bytes);
    }
    let ended = process.ended(too_much_output);
    usage.limit = match ended {
        Ended::Exceeded(limit) => Some(limit),
        Ended::Timeout | Ended::Stopped(_) => None,
        Ended::Itself => limit_hit(&spec.sandbox.limits, status, usage.cpu, &written.stderr_tail),
    };
    if let Some(group) = &process.group {
        group.report(&mut usage, ended == Ended::Itself && !status.success());
    }
    Ok(ChildReport { ended, status, written, usage })
}

/// Logs which processes are killed that still hold the output of a child which has ended by itself.
fn report_leftovers(holders: &[String], watch: &Watch<'_>) {
    if let Some(log) = watch.log
        && !holders.is_empty()
    {
        log.remark(&format!(
            "killed after the end of the script, as they still held its output: {}; what they had not \
             written is lost (a script should wait for what it starts)",
            holders.join(", ")
        ));
    }
}

fn attend(
    process: &mut ChildProcess,
    child: &mut WatchedChild<'_>,
    watch: &Watch<'_>,
    cancelled: BorrowedFd<'_>,
) -> io::Result<()> {
    loop {
        process.tick();
        let until = process.next_tick();
        if process.is_ending() {
            if child.exits(watch, until)? {
                return Ok(());
            }
            continue;
        }
        match child.next(watch, cancelled, until)? {
            Some(WatchEvent::Exited) => return Ok(()),
            Some(WatchEvent::MustEnd(why)) => process.ask_to_end(why, watch.kill_grace),
            None => {}
        }
    }
}
