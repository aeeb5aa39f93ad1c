//! The calls that safe Rust has no way to make: those of a child between `fork` and `exec`, and
//! the one that reaps it together with what it used; and one for the memory of this process. The
//! only file with `unsafe` in it.
#![expect(unsafe_code, reason = "clone, clone3, wait4 and Landlock have no safe form")]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::io::{fcntl_dupfd_cloexec, write};
use rustix::process::{Pid, Resource, Rlimit, WaitOptions, setrlimit, setsid, waitpid};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities, set_no_new_privs};
use seccompiler::apply_filter;

use super::limits::{LIMITS_MAX, used};
use super::{Cell, FIRST_FREE, Lease, Program};
use crate::engine::Usage;

/// The stack of a child until its program begins; it takes a few pages of it.
const STACK_BYTES: usize = 64 * 1024;
/// What runs a file that is no program, as `execvp(3)` has it.
const SHELL: &CStr = c"/bin/sh";
/// The signals there are.
const SIGNALS: c_int = 64;

/// Starts a child that is shut into `cell` before its program begins, in a session of its own and in
/// the control group of `lease`, and gives its process id.
///
/// The child shares this process's memory until then, as with `vfork`: nothing has to be copied.
///
/// # Errors
/// Those of starting it; those of the cell too, and then nothing has run.
pub(in crate::engine::process) fn spawn(
    program: &Program<'_>,
    cell: &Cell,
    lease: Option<&Lease>,
) -> io::Result<i32> {
    let mut order = Order::new(program, cell)?;
    let mut stack = Vec::<u8>::with_capacity(STACK_BYTES);
    let (mut all, mut own) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    // SAFETY: the sets are of this frame. Filled with all signals, none reaches the child while it
    // would run a handler of this process in this process's memory.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), own.as_mut_ptr());
    }
    let mut born = match lease {
        // SAFETY: this thread stands still until the child has left this memory, so the order and
        // the stack, which only the child uses, outlive its use of them, and nobody else writes to
        // them.
        Some(lease) => unsafe { clone_into(lease.folder(), &mut stack, &order) },
        None => Err(io::ErrorKind::Unsupported.into()),
    };
    if born.is_err() {
        // Where the kernel or the machine lets none be born in a group, the child moves itself.
        order.members = lease.map(Lease::members).transpose()?;
        // SAFETY: as above.
        born = unsafe { clone(&mut stack, &order) };
    }
    // SAFETY: the set is the one that was in force.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, own.as_ptr(), std::ptr::null_mut()) };
    let pid = born?;
    let child = Pid::from_raw(pid).ok_or(io::ErrorKind::NotFound)?;
    match order.error.load(Ordering::Relaxed) {
        0 => Ok(pid),
        error => {
            let _ = waitpid(Some(child), WaitOptions::empty());
            Err(io::Error::from_raw_os_error(error))
        }
    }
}

/// Starts a child on `stack`, in this memory, while this thread stands still.
///
/// # Safety
/// `order` and `stack` are touched by nobody else until this returns.
unsafe fn clone(stack: &mut Vec<u8>, order: &Order<'_>) -> io::Result<i32> {
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: the top is within the capacity and aligned as every stack is; the rest is promised by
    // whoever calls this.
    let pid = unsafe {
        let top = stack.as_mut_ptr().add(STACK_BYTES);
        let top = top.sub(top.addr() % 16);
        libc::clone(child, top.cast(), flags, (&raw const *order).cast_mut().cast())
    };
    if pid > 0 { Ok(pid) } else { Err(io::Error::last_os_error()) }
}

/// The same for a child that is born in the control group with this folder. The C library has no
/// call for that, and to move a process later takes the kernel many times as long.
#[cfg(target_arch = "x86_64")]
unsafe fn clone_into(
    group: BorrowedFd<'_>,
    stack: &mut Vec<u8>,
    order: &Order<'_>,
) -> io::Result<i32> {
    const INTO_CGROUP: u64 = 1 << 33;
    let flags = INTO_CGROUP | u64::from((libc::CLONE_VM | libc::CLONE_VFORK).cast_unsigned());
    let (bottom, signal) = (stack.as_mut_ptr().expose_provenance(), libc::SIGCHLD.cast_unsigned());
    let size = STACK_BYTES - (bottom + STACK_BYTES) % 16;
    let group = u64::from(group.as_raw_fd().cast_unsigned());
    // The fields of `struct clone_args`: flags, three that are not used, the signal of its end,
    // the stack and its size, three that are not used, the group.
    let how: [u64; 11] =
        [flags, 0, 0, 0, u64::from(signal), bottom as u64, size as u64, 0, 0, 0, group];
    let result: i64;
    // SAFETY: the kernel reads the array and its size. This thread stands still until the child has
    // left this memory. The child begins after the call with a stack of its own, aligned as every
    // stack is, calls `child` with the order, and ends; it never reaches what follows the block.
    // The call changes no registers but those that are named.
    unsafe {
        std::arch::asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, r8",
            "call r9",
            "mov edi, eax",
            "mov eax, {exit}",
            "syscall",
            "ud2",
            "2:",
            exit = const libc::SYS_exit,
            inlateout("rax") libc::SYS_clone3 => result,
            in("rdi") how.as_ptr(),
            in("rsi") size_of_val(&how),
            in("r8") &raw const *order,
            in("r9") child as extern "C" fn(*mut c_void) -> c_int,
            lateout("rcx") _,
            lateout("r11") _,
        );
    }
    match i32::try_from(result) {
        Ok(pid) if pid > 0 => Ok(pid),
        Ok(error) => Err(io::Error::from_raw_os_error(-error)),
        Err(_) => Err(io::ErrorKind::Other.into()),
    }
}

/// The same for a child that is born in a control group: not for this kind of processor.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn clone_into(_: BorrowedFd<'_>, _: &mut Vec<u8>, _: &Order<'_>) -> io::Result<i32> {
    Err(io::ErrorKind::Unsupported.into())
}

/// All that a child needs, made before there is one.
struct Order<'a> {
    cell: &'a Cell,
    /// The members of its control group, if it has to join them itself.
    members: Option<OwnedFd>,
    limits: [Option<(Resource, Rlimit)>; LIMITS_MAX],
    file: CString,
    cwd: CString,
    /// The shell, the program and its arguments, and nothing.
    args: Vec<*const c_char>,
    /// The environment, and nothing.
    env: Vec<*const c_char>,
    /// What they point to.
    _texts: Vec<CString>,
    descriptors: Vec<RawFd>,
    /// Descriptors of this process that lie where the child gets others.
    _moved: Vec<OwnedFd>,
    /// Why the program did not begin; zero if it did.
    error: AtomicI32,
}

impl<'a> Order<'a> {
    fn new(program: &Program<'_>, cell: &'a Cell) -> io::Result<Self> {
        let file = CString::new(program.file.as_os_str().as_bytes())?;
        let cwd = CString::new(program.cwd.as_os_str().as_bytes())?;
        let mut texts = Vec::with_capacity(program.args.len() + program.env.len());
        let mut args = vec![SHELL.as_ptr(), file.as_ptr()];
        for arg in program.args {
            texts.push(CString::new(arg.as_bytes())?);
            args.extend(texts.last().map(|text| text.as_ptr()));
        }
        args.push(std::ptr::null());
        let mut env = Vec::with_capacity(program.env.len() + 1);
        for (name, value) in &program.env {
            texts.push(CString::new([name.as_bytes(), b"=", value.as_bytes()].concat())?);
            env.extend(texts.last().map(|text| text.as_ptr()));
        }
        env.push(std::ptr::null());
        let (mut descriptors, mut moved) = (Vec::new(), Vec::new());
        for descriptor in program.descriptors {
            let number = descriptor.as_raw_fd();
            if number < FIRST_FREE {
                moved.push(fcntl_dupfd_cloexec(descriptor, FIRST_FREE)?);
                descriptors.extend(moved.last().map(AsRawFd::as_raw_fd));
            } else {
                descriptors.push(number);
            }
        }
        let (limits, error) = (cell.limits.list(), AtomicI32::new(0));
        Ok(Self {
            cell,
            members: None,
            limits,
            file,
            cwd,
            args,
            env,
            _texts: texts,
            descriptors,
            _moved: moved,
            error,
        })
    }

    /// Becomes the program. It allocates nothing, takes no lock and does not unwind: the memory is
    /// that of a process whose other threads go on.
    fn obey(&self) -> io::Error {
        match self.prepare() {
            Ok(()) => {}
            Err(error) => return error,
        }
        // SAFETY: file, arguments and environment are texts with a NUL, and lists with a null, that
        // live in `self`. A shell gets the list from its start, a program from its own name on.
        unsafe {
            libc::execve(self.file.as_ptr(), self.args.as_ptr().add(1), self.env.as_ptr());
            if io::Error::last_os_error().raw_os_error() == Some(libc::ENOEXEC) {
                libc::execve(SHELL.as_ptr(), self.args.as_ptr(), self.env.as_ptr());
            }
        }
        io::Error::last_os_error()
    }

    fn prepare(&self) -> io::Result<()> {
        if let Some(members) = &self.members {
            write(members, b"0")?;
        }
        let mut first_closed = 0;
        for descriptor in &self.descriptors {
            // SAFETY: both are numbers; the child's table of descriptors is its own.
            checked(unsafe { libc::dup2(*descriptor, first_closed) })?;
            first_closed += 1;
        }
        // SAFETY: the path is a text with a NUL that lives in `self`.
        checked(unsafe { libc::chdir(self.cwd.as_ptr()) })?;
        default_signals();
        enter(self.cell, &self.limits, first_closed.cast_unsigned())?;
        let mut none = MaybeUninit::uninit();
        // SAFETY: the set is of this frame, and is filled before it is used.
        let done = unsafe {
            libc::sigemptyset(none.as_mut_ptr());
            libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut())
        };
        checked(done)
    }
}

extern "C" fn child(order: *mut c_void) -> c_int {
    // SAFETY: it is the pointer that `spawn` gave, to an order that lives until the child is gone
    // from this memory.
    let order = unsafe { &*order.cast::<Order<'_>>() };
    let error = order.obey().raw_os_error().unwrap_or(libc::EINVAL);
    order.error.store(error, Ordering::Relaxed);
    1
}

/// Takes this process's handlers away, which must not run in the child, and what it ignores of
/// pipes. The rest goes on as it is, as with every program that another one starts.
fn default_signals() {
    for signal in 1..=SIGNALS {
        let mut action = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: the action is of this frame; all zeroes is a legal one, the default. Numbers that
        // are no signals, or are the library's own, are refused.
        unsafe {
            if libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) != 0 {
                continue;
            }
            let handler = action.assume_init().sa_sigaction;
            if handler == libc::SIG_DFL || handler == libc::SIG_IGN && signal != libc::SIGPIPE {
                continue;
            }
            let default = MaybeUninit::<libc::sigaction>::zeroed();
            libc::sigaction(signal, default.as_ptr(), std::ptr::null_mut());
        }
    }
}

fn checked(done: c_int) -> io::Result<()> {
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// What the child does. Restrictions come last: each may forbid what stands before it.
fn enter(
    cell: &Cell,
    limits: &[Option<(Resource, Rlimit)>; LIMITS_MAX],
    first_closed: u32,
) -> io::Result<()> {
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
