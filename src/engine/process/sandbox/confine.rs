//! The calls that safe Rust has no way to make: those of a child between `fork` and `exec`, and
//! the one that reaps it together with what it used. The only file with `unsafe` in it.
#![expect(unsafe_code, reason = "pre_exec, clone3, wait4 and Landlock have no safe form")]

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{Mode, OFlags, openat};
use rustix::io::{fcntl_dupfd_cloexec, read, write};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Resource, Rlimit, WaitOptions, setrlimit, setsid, waitpid};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities, set_no_new_privs};
use seccompiler::apply_filter;

use super::limits::LIMITS_MAX;
use super::{Cell, FIRST_FREE, Lease};
use crate::engine::Usage;

/// A child that runs, and its output where that is piped.
#[derive(Debug, Default)]
pub(in crate::engine::process) struct Started {
    pub(in crate::engine::process) pid: i32,
    pub(in crate::engine::process) stdout: Option<OwnedFd>,
    pub(in crate::engine::process) stderr: Option<OwnedFd>,
    /// The control group that it is in, if there is one.
    pub(in crate::engine::process) cgroup: Option<Arc<Lease>>,
}

/// Starts a child that is shut into `cell` before its program begins. It gets a session of its own,
/// and of the descriptors those below `first_closed`, which are its own.
///
/// # Errors
/// Those of starting it; those of the cell too, and then nothing has run.
pub(in crate::engine::process) fn spawn(
    command: &mut Command,
    cell: Cell,
    first_closed: u32,
) -> io::Result<Started> {
    let (limits, cgroup) = (cell.limits.list(), cell.lease());
    let (birth, told) = match &cell.lease {
        Some(lease) => {
            let (told, tells) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
            let tells = fcntl_dupfd_cloexec(tells, FIRST_FREE)?;
            (Some(Birth { folder: lease.folder()?, tells }), Some(told))
        }
        None => (None, None),
    };
    // SAFETY: between `fork` and `exec` a child of a process with threads may only do what is safe
    // in a signal handler. `enter` makes system calls on values that were made before the fork
    // and live in this closure: it allocates nothing, takes no lock, and does not unwind. An
    // error is a number, made without an allocation too.
    unsafe { command.pre_exec(move || enter(&cell, birth.as_ref(), &limits, first_closed)) };
    let spawned = command.spawn();
    // By now it has begun or failed, and so it has told.
    let mut pid = [0_u8; size_of::<i32>()];
    let second = told.is_some_and(|told| read(&told, &mut pid) == Ok(pid.len()));
    let second = second.then_some(i32::from_ne_bytes(pid));
    let mut child = spawned.inspect_err(|_| {
        if let Some(second) = second.and_then(Pid::from_raw) {
            let _ = waitpid(Some(second), WaitOptions::empty());
        }
    })?;
    if second.is_some() {
        child.wait()?;
    }
    let first = i32::try_from(child.id()).unwrap_or_default();
    Ok(Started {
        pid: second.unwrap_or(first),
        stdout: child.stdout.take().map(OwnedFd::from),
        stderr: child.stderr.take().map(OwnedFd::from),
        cgroup,
    })
}

/// For a child that is to be in a control group from its first moment.
struct Birth {
    folder: OwnedFd,
    /// Where the number of the process is told that runs in the end.
    tells: OwnedFd,
}

impl Birth {
    /// Goes on as a second process, which is born in the group as a child of the same parent; the
    /// first tells its number and ends. To move a process into a group takes the kernel many times
    /// as long as to start one in it, so that is only the other way.
    fn begin(&self) -> io::Result<()> {
        const INTO_CGROUP: u64 = 1 << 33;
        let flags = INTO_CGROUP | u64::from(libc::CLONE_PARENT.cast_unsigned());
        let folder = u64::try_from(self.folder.as_raw_fd()).unwrap_or_default();
        // The fields of `struct clone_args`: first the flags, last the group.
        let how = [flags, 0, 0, 0, 0, 0, 0, 0, 0, 0, folder];
        // SAFETY: the call reads the array, which lives in this frame, and its size. Without flags
        // for it no memory is shared, so both processes go on in memory of their own, each with
        // one thread.
        let pid = unsafe { libc::syscall(libc::SYS_clone3, how.as_ptr(), size_of_val(&how)) };
        if pid == 0 {
            return Ok(());
        }
        if let Ok(pid) = i32::try_from(pid)
            && pid > 0
        {
            let _ = write(&self.tells, &pid.to_ne_bytes());
            // SAFETY: it ends this process at once and runs nothing else in it.
            unsafe { libc::_exit(0) };
        }
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        let members = openat(&self.folder, c"cgroup.procs", flags, Mode::empty())?;
        write(members, b"0")?;
        Ok(())
    }
}

/// What the child does. Restrictions come last: each may forbid what stands before it.
fn enter(
    cell: &Cell,
    birth: Option<&Birth>,
    limits: &[Option<(Resource, Rlimit)>; LIMITS_MAX],
    first_closed: u32,
) -> io::Result<()> {
    if let Some(birth) = birth {
        birth.begin()?;
    }
    setsid()?;
    for (resource, limit) in limits.iter().flatten() {
        setrlimit(*resource, *limit)?;
    }
    close_on_exec(first_closed)?;
    if !cell.confined {
        return Ok(());
    }
    if cell.privileged {
        let none = CapabilitySet::empty();
        let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
        set_capabilities(None, sets)?;
    }
    set_no_new_privs(true)?;
    if let Some(rules) = &cell.rules {
        restrict_files(rules)?;
    }
    if let Some(filter) = &cell.filter {
        apply_filter(filter).map_err(|_| io::Error::from_raw_os_error(libc::EACCES))?;
    }
    Ok(())
}

/// Marks every descriptor from `first` on to be closed by `exec`. Closing them here would close
/// the one on which a failure of `exec` itself is told.
fn close_on_exec(first: u32) -> io::Result<()> {
    // SAFETY: the call takes three numbers and touches no memory.
    let done =
        unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Holds this thread, and all it starts, to the rules.
fn restrict_files(rules: &OwnedFd) -> io::Result<()> {
    // SAFETY: the call takes a descriptor, which is open as long as it is borrowed, and a number.
    let done = unsafe { libc::syscall(libc::SYS_landlock_restrict_self, rules.as_raw_fd(), 0_u32) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The version of Landlock here; zero is none.
pub(super) fn landlock_version() -> u32 {
    const ONLY_THE_VERSION: u32 = 1;
    let (nothing, size) = (std::ptr::null::<u8>(), 0_usize);
    // SAFETY: with this flag the call reads nothing, and wants exactly this pointer and this size.
    let version = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, nothing, size, ONLY_THE_VERSION)
    };
    u32::try_from(version).unwrap_or_default()
}

/// Whether a filter of system calls may answer with an error here.
pub(super) fn has_seccomp() -> bool {
    let action = libc::SECCOMP_RET_ERRNO;
    // SAFETY: the call reads one number, which lives in this frame.
    let done = unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_ACTION_AVAIL, 0, &raw const action)
    };
    done == 0
}

/// Waits for a child and gives how it ended and what it used, with all that it has waited for.
///
/// # Errors
/// Those of `wait4(2)`: it is no child of this process, or was reaped before.
pub(in crate::engine::process) fn reap(child: Pid) -> io::Result<(ExitStatus, Usage)> {
    let pid = child.as_raw_pid();
    let (mut status, mut usage) = (0, MaybeUninit::<libc::rusage>::uninit());
    loop {
        // SAFETY: both pointers are to memory of this frame of the types that the call writes.
        let reaped = unsafe { libc::wait4(pid, &raw mut status, 0, usage.as_mut_ptr()) };
        if reaped == pid {
            break;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    // SAFETY: the call succeeded, so the kernel has written it whole.
    let usage = unsafe { usage.assume_init() };
    let time = |time: libc::timeval| {
        let seconds = Duration::from_secs(u64::try_from(time.tv_sec).unwrap_or_default());
        seconds + Duration::from_micros(u64::try_from(time.tv_usec).unwrap_or_default())
    };
    let memory_bytes = u64::try_from(usage.ru_maxrss).unwrap_or_default().saturating_mul(1024);
    let cpu = time(usage.ru_utime) + time(usage.ru_stime);
    let status = ExitStatus::from_raw(status);
    Ok((status, Usage { cpu, memory_bytes, signal: status.signal(), limit: None }))
}
