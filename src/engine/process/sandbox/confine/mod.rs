//! The calls that safe Rust has no way to make: those of a child between its birth and its program,
//! and the one that reaps it together with what it used; and one for the memory of this process. The
//! only folder with `unsafe` in it.
#![expect(unsafe_code, reason = "clone, clone3, wait4 and Landlock have no safe form")]

mod birth;
mod calls;
mod image;
mod order;

use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use rustix::process::{Pid, WaitOptions, waitpid};

use super::limits::used;
use super::{Cell, Lease, Place, Program};
use crate::engine::Usage;
use birth::{bear, stack};
use image::Image;
use order::Order;

/// Starts a child that is shut into `cell` before its program begins, in a session of its own and in
/// the control group of `lease`, and gives its process id.
///
/// The child shares this process's memory until then, as with `vfork`: nothing has to be copied.
///
/// # Errors
/// Those of starting it; those of the cell too, and then nothing has run.
pub(in crate::engine::process) fn spawn(
    program: &Program<'_>,
    place: &Place<'_>,
    cell: Cell,
    lease: Option<&Lease>,
) -> io::Result<i32> {
    let (image, (order, _lent)) = (Image::new(program)?, Order::new(place, cell)?);
    let mut stack = stack();
    // SAFETY: this thread stands still until the child has left this memory, so the image, the order
    // and the stack, which nobody else has, outlive its use of them.
    let born = unsafe {
        order.becomes(&image);
        bear(&order, &mut stack, lease)
    };
    let pid = born?;
    let child = Pid::from_raw(pid).ok_or(io::ErrorKind::NotFound)?;
    match order.failure() {
        None => Ok(pid),
        Some(error) => {
            let _ = waitpid(Some(child), WaitOptions::empty());
            Err(error)
        }
    }
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
    let status = ExitStatus::from_raw(status);
    Ok((status, used(&usage, status)))
}

/// Gives back the pages of this program's code that only its start has needed, most of its memory.
/// Those that are needed again the kernel maps anew from the file, which it has read.
pub fn give_back_code() {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let own = (give_back_code as fn() as *const ()).addr();
    let address = |text| usize::from_str_radix(text, 16).ok();
    let code = maps.lines().filter(|line| line.contains(" r-xp ")).find_map(|line| {
        let (from, to) = line.split(' ').next()?.split_once('-')?;
        Some(address(from)?..address(to)?).filter(|range| range.contains(&own))
    });
    if let Some(range) = code {
        let start = std::ptr::with_exposed_provenance_mut(range.start);
        // SAFETY: the range is a mapping of the program's file that nobody can write through, so
        // what goes comes back as it was when it is next touched.
        unsafe { libc::madvise(start, range.len(), libc::MADV_DONTNEED) };
    }
}
