//! Starts the child of a job in its sandbox: cold, or as a fork of a warm interpreter.

mod registry;
mod spec;
mod started;
mod warm;

pub(super) use registry::{Registered, RegisteredChild, Run, command};
pub(super) use registry::{pause_starts, registered};
pub(super) use spec::CHANNEL_NUMBER;
pub use spec::Spec;
pub(super) use started::{Pipes, Started};
pub(super) use warm::{Warm, Warmed};

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use crate::sandbox::{self, JobGroup, Restrictions};

/// The way to start a child.
#[derive(Debug, Clone, Copy)]
pub enum Origin<'a> {
    /// As a new process.
    Cold,
    /// For Python: as a fork of an interpreter that runs already, or cold if that fails.
    Fork(Warmed<'a>),
}

/// Starts a child, with a channel if `has_channel`.
///
/// # Errors
/// The errors of starting it.
pub(super) fn start(spec: &Spec<'_>, origin: Origin<'_>, has_channel: bool) -> io::Result<Started> {
    let (run, restrictions) = (Run::next(), spec.restrictions()?);
    // A fork has the standard input of its parent, which is empty.
    if let Origin::Fork(warmed) = origin
        && spec.stdin.is_none()
        && let Some(started) = warmed.fork(run, &restrictions, spec, Pipes::open(has_channel)?)
    {
        return Ok(started);
    }
    cold(run, spec, &restrictions, Pipes::open(has_channel)?)
}

fn cold(
    run: Run,
    spec: &Spec<'_>,
    restrictions: &Restrictions,
    pipes: Pipes,
) -> io::Result<Started> {
    let null = File::open("/dev/null")?;
    let stdin = spec.stdin.unwrap_or(&null);
    let standard = [stdin.as_fd(), pipes.stdout.write_end.as_fd(), pipes.stderr.write_end.as_fd()];
    let descriptors: Vec<_> = standard.into_iter().chain(pipes.of_channel()).collect();
    let (group, mark) = (spec.sandbox.job_group()?, OsString::from(run.mark()));
    let members = group.as_ref().map(JobGroup::members).transpose()?;
    let launch = spec.launch(run, &mark, pipes.channel.is_some(), &descriptors);
    let (pid, registered) = Registered::adopt(Some(run), || {
        sandbox::spawn(&launch, restrictions, members.as_ref().map(AsFd::as_fd))
    })?;
    Ok(Started { pid, run, registered, group, pipes, is_cold: true })
}
