//! Starts the child of a job in its sandbox: cold, or as a fork of a warm interpreter.

mod registry;
mod spec;
mod warm;

pub use registry::ProcessRun;
pub(super) use registry::{Registered, RegisteredChild, Run, command};
pub(super) use registry::{pause_starts, registered};
pub(super) use spec::CHANNEL_NUMBER;
pub(crate) use spec::Spec;
pub(super) use spec::{Pipes, Started};
pub(super) use warm::{Warm, Warmed};

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use crate::sandbox::{self, JobGroup, Restrictions};

/// Starts a child: as a fork of the warm interpreter where it can be one, else as a new process.
pub(super) fn start(
    spec: &Spec<'_>,
    warmed: Option<Warmed<'_>>,
    has_channel: bool,
) -> io::Result<Started> {
    let job_id = spec.env.get(OsStr::new("HERO_JOB_ID"));
    let job_id = job_id.map(|id| id.to_string_lossy()).unwrap_or_default();
    let (run, restrictions) = (Run::next(&job_id), spec.restrictions()?);
    // A fork has the standard input of its parent, which is empty.
    if let Some(warmed) = warmed
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
