//! Starts sandboxed children, and wraps the few system calls that neither std nor nix offers.
//! This is the only file with `unsafe`.
//!
//! A child shares this process's memory until its program begins, as with `vfork`, while the thread
//! that starts it stands still. `fork` by way of `std::process` takes 0.9 ms longer from a process
//! with 10 MB of private memory. So all that the child needs is made before: between `clone` and
//! `execve` it allocates nothing, takes no lock and does not unwind.
#![expect(
    unsafe_code,
    reason = "clone, wait4, pidfd_open, prlimit and malloc_trim have no safe form"
)]

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, OsStr, OsString, c_char, c_int, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::ptr::{null, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use nix::fcntl::{FcntlArg, OFlag, fcntl, open};
use nix::sys::prctl::set_no_new_privs;
use nix::sys::resource::setrlimit;
use nix::sys::signal::{SigSet, SigmaskHow};
use nix::sys::stat::Mode;
use nix::sys::wait::waitpid;
use nix::unistd::{Pid, chdir, read, setsid, write};
use seccompiler::{BpfProgram, apply_filter};

use super::limits::{Limits, RUN_NUMBER, has_run_numbers};
use super::usage::{Usage, used};

/// The stack of a child until its program begins; it uses a few pages of it.
const STACK_BYTES: usize = 64 * 1024;
/// Runs a file that is not a program, as with `execvp(3)`.
const SHELL: &CStr = c"/bin/sh";
const SIGNALS: c_int = 64;
/// All numbers of a child's own descriptors are below this.
const FIRST_FREE: RawFd = 10;

#[derive(Debug)]
pub struct Launch<'a> {
    pub file: &'a Path,
    pub args: &'a [OsString],
    pub env: BTreeMap<&'a OsStr, &'a OsStr>,
    pub cwd: &'a Path,
    /// The number of its run, which all that it starts inherits.
    pub run_number: u64,
    /// The descriptors of the child by their numbers from 0 on. It gets no others.
    pub descriptors: &'a [BorrowedFd<'a>],
}

#[derive(Debug)]
pub struct Restrictions {
    pub(super) confined: bool,
    /// True if it has any.
    pub(super) privileged: bool,
    pub(super) limits: Limits,
    pub(super) rules: Option<OwnedFd>,
    pub(super) filter: Option<Arc<BpfProgram>>,
}

impl Restrictions {
    /// The Landlock rules, for a child that is forked without `exec`.
    pub fn rules(&self) -> Option<BorrowedFd<'_>> {
        self.rules.as_ref().map(AsFd::as_fd)
    }
}

/// Starts a child in a session of its own and returns its process id. The child joins the control
/// group whose file `cgroup.procs` is `group`, and enters the sandbox before its program begins.
/// After an error of its start or of the sandbox the program has not run.
pub fn spawn(
    launch: &Launch<'_>,
    restrictions: &Restrictions,
    group: Option<BorrowedFd<'_>>,
) -> io::Result<Pid> {
    let mut child = Child::new(launch, restrictions, group)?;
    let mut stack: Vec<u8> = Vec::with_capacity(STACK_BYTES);
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // A handler of this process must not run in the child, where it would change this memory.
    let mask = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK)?;
    // SAFETY: the stack's top is within its capacity and aligned; the stack and `child` outlive the
    // child's use of them, as this thread stands still until the child has begun its program or died.
    let cloned = unsafe {
        let top = stack.as_mut_ptr().add(STACK_BYTES);
        let top = top.sub(top.addr() % 16);
        libc::clone(run_child, top.cast(), flags, (&raw mut child).cast())
    };
    let error = io::Error::last_os_error();
    let _ = mask.thread_set_mask();
    if cloned < 0 {
        return Err(error);
    }
    let pid = Pid::from_raw(cloned);
    match child.error.load(Ordering::Acquire) {
        0 => Ok(pid),
        error => {
            let _ = waitpid(pid, None);
            Err(io::Error::from_raw_os_error(error))
        }
    }
}

struct Child<'a> {
    file: CString,
    /// The shell, the program's own name and its arguments.
    args: Strings,
    env: Strings,
    cwd: CString,
    descriptors: &'a [BorrowedFd<'a>],
    group: Option<BorrowedFd<'a>>,
    /// The number of its run, if it gets one.
    run_number: Option<u64>,
    restrictions: &'a Restrictions,
    /// Why the program has not begun; zero once it has.
    error: AtomicI32,
}

impl<'a> Child<'a> {
    fn new(
        launch: &Launch<'a>,
        restrictions: &'a Restrictions,
        group: Option<BorrowedFd<'a>>,
    ) -> io::Result<Self> {
        let file = CString::new(launch.file.as_os_str().as_bytes())?;
        let mut args = vec![SHELL.to_owned(), file.clone()];
        for arg in launch.args {
            args.push(CString::new(arg.as_bytes())?);
        }
        let mut env = Vec::with_capacity(launch.env.len());
        for (name, value) in &launch.env {
            env.push(CString::new([name.as_bytes(), b"=", value.as_bytes()].concat())?);
        }
        Ok(Self {
            file,
            args: Strings::new(args),
            env: Strings::new(env),
            cwd: CString::new(launch.cwd.as_os_str().as_bytes())?,
            descriptors: launch.descriptors,
            group,
            run_number: has_run_numbers().then_some(launch.run_number),
            restrictions,
            // A child that is killed before it says more has not begun.
            error: AtomicI32::new(libc::ECANCELED),
        })
    }

    /// Becomes the program; returns only if that fails.
    fn run(&self) -> io::Error {
        if let Err(error) = self.prepare() {
            return error;
        }
        self.error.store(0, Ordering::Release);
        let args = &self.args.pointers;
        let error = execute(&self.file, args.get(1..).unwrap_or_default(), &self.env.pointers);
        if error.raw_os_error() == Some(libc::ENOEXEC) {
            return execute(SHELL, args, &self.env.pointers);
        }
        error
    }

    /// Enters the control group and the sandbox. Each step may forbid those that stand before it.
    fn prepare(&self) -> io::Result<()> {
        if let Some(group) = self.group {
            write(group, b"0")?;
        }
        raise_oom_score();
        chdir(self.cwd.as_c_str())?;
        setsid()?;
        let Restrictions { confined, privileged, limits, rules, filter } = self.restrictions;
        if *confined {
            if *privileged {
                drop_capabilities()?;
            }
            set_no_new_privs()?;
        }
        rules.as_ref().map_or(Ok(()), |rules| restrict_files(rules.as_fd()))?;
        self.place_descriptors()?;
        for (resource, soft, hard) in limits.iter().flatten() {
            setrlimit(*resource, *soft, *hard)?;
        }
        if let Some(number) = self.run_number {
            setrlimit(RUN_NUMBER, number, number)?;
        }
        reset_signals()?;
        if let Some(filter) = filter {
            apply_filter(filter).map_err(|_| io::Error::last_os_error())?;
        }
        SigSet::empty().thread_set_mask()?;
        Ok(())
    }

    /// Puts the descriptors at their numbers and closes all others.
    fn place_descriptors(&self) -> io::Result<()> {
        let mut copies = [0; 10];
        // First out of the way: one may have the number that another gets.
        for (copy, descriptor) in copies.iter_mut().zip(self.descriptors) {
            *copy = fcntl(descriptor, FcntlArg::F_DUPFD(FIRST_FREE))?;
        }
        // SAFETY: all are numbers in a table that is the child's own; no owner of a descriptor runs in
        // the child, and it uses none of those that are closed.
        let closed = unsafe {
            let mut next = 0;
            for copy in copies.iter().take(self.descriptors.len()) {
                if libc::dup2(*copy, next) < 0 {
                    return Err(io::Error::last_os_error());
                }
                next += 1;
            }
            libc::syscall(libc::SYS_close_range, next, RawFd::MAX, 0)
        };
        if closed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

extern "C" fn run_child(child: *mut c_void) -> c_int {
    // SAFETY: it is the pointer that `spawn` passes, to a value that outlives this use of it; the
    // thread that owns it stands still.
    let child = unsafe { &*child.cast_const().cast::<Child<'_>>() };
    let error = child.run();
    child.error.store(error.raw_os_error().unwrap_or(libc::EINVAL), Ordering::Release);
    1
}

struct Strings {
    pointers: Vec<*const c_char>,
    _strings: Vec<CString>,
}

impl Strings {
    fn new(strings: Vec<CString>) -> Self {
        let pointers = strings.iter().map(|string| string.as_ptr()).chain([null()]).collect();
        Self { pointers, _strings: strings }
    }
}

/// Becomes the program in a file; returns only if that fails.
fn execute(file: &CStr, args: &[*const c_char], env: &[*const c_char]) -> io::Error {
    // SAFETY: both lists are the pointers of a `Strings`, which lives, with null at their end.
    unsafe { libc::execve(file.as_ptr(), args.as_ptr(), env.as_ptr()) };
    io::Error::last_os_error()
}

/// Makes this process and all that it starts the first that the kernel kills, before the daemon with its other jobs.
/// Anyone may raise the score; where it cannot be written, or is as high, it stays. It allocates nothing, as a child calls
/// it before its program begins.
fn raise_oom_score() {
    const LEAST: i32 = 500;
    let flags = OFlag::O_RDWR | OFlag::O_CLOEXEC;
    let Ok(file) = open(c"/proc/self/oom_score_adj", flags, Mode::empty()) else { return };
    let mut text = [0; 16];
    let length = read(&file, &mut text).unwrap_or_default();
    let score = std::str::from_utf8(&text[..length]).ok().and_then(|text| text.trim().parse().ok());
    if score.is_some_and(|score: i32| score < LEAST) {
        let _ = write(&file, b"500");
    }
}

/// Removes this process's signal handlers, which must not run in the child, and its ignoring of
/// SIGPIPE. Other ignored signals stay so, as for any program that another starts.
fn reset_signals() -> io::Result<()> {
    for signal in 1..=SIGNALS {
        let mut action = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: the call writes one action (all zeroes is a legal value, the default),
        // and reads one; it refuses a number that is not a signal's.
        let done = unsafe {
            if libc::sigaction(signal, null(), action.as_mut_ptr()) != 0 {
                continue;
            }
            let handler = action.assume_init().sa_sigaction;
            let is_ignored = handler == libc::SIG_IGN && signal != libc::SIGPIPE;
            if handler == libc::SIG_DFL || is_ignored {
                continue;
            }
            libc::sigaction(signal, MaybeUninit::zeroed().as_ptr(), null_mut())
        };
        if done != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

fn drop_capabilities() -> io::Result<()> {
    /// `_LINUX_CAPABILITY_VERSION_3`, and this process.
    const HEADER: [u32; 2] = [0x2008_0522, 0];
    let mut header = HEADER;
    let none = [0_u32; 6];
    // SAFETY: the kernel reads a header of this version, and two sets of three numbers for it.
    let done = unsafe { libc::syscall(libc::SYS_capset, header.as_mut_ptr(), none.as_ptr()) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Restricts this thread, and all that it starts, to the Landlock rules.
fn restrict_files(rules: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: both arguments are numbers; the kernel rejects a descriptor of anything else.
    let done = unsafe { libc::syscall(libc::SYS_landlock_restrict_self, rules.as_raw_fd(), 0) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Returns the Landlock version of this kernel, zero for none, and whether seccomp may answer with an error here.
pub(super) fn kernel_support() -> (u32, bool) {
    const VERSION: u32 = 1;
    let action = libc::SECCOMP_RET_ERRNO;
    // SAFETY: with this flag the first call reads nothing, and expects a null pointer and a size of
    // zero; the second reads one number, which lives in this frame.
    let (version, seccomp) = unsafe {
        let none = null::<u8>();
        (
            libc::syscall(libc::SYS_landlock_create_ruleset, none, 0_usize, VERSION),
            libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_ACTION_AVAIL, 0, &raw const action),
        )
    };
    (u32::try_from(version).unwrap_or_default(), seccomp == 0)
}

/// Opens a descriptor that is readable once the child `pid` has exited.
pub fn pidfd(pid: Pid) -> io::Result<OwnedFd> {
    // SAFETY: both arguments are numbers; a descriptor that the call returns has no other owner.
    unsafe {
        let opened = libc::syscall(libc::SYS_pidfd_open, pid.as_raw(), 0);
        match RawFd::try_from(opened) {
            Ok(opened) if opened >= 0 => Ok(OwnedFd::from_raw_fd(opened)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Makes a child that runs already, and all that it will start, part of a run. Fails if the child has ended.
pub fn set_run_number(child: Pid, number: u64) -> io::Result<()> {
    if !has_run_numbers() {
        return Ok(());
    }
    let limit = libc::rlimit { rlim_cur: number, rlim_max: number };
    // SAFETY: the call reads one structure, which lives in this frame, and writes nothing.
    let set = unsafe {
        libc::prlimit(
            child.as_raw(),
            RUN_NUMBER as libc::__rlimit_resource_t,
            &raw const limit,
            null_mut(),
        )
    };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Waits for a child and returns how it ended and what it used, with all that it has waited for.
/// Fails if it is not a child of this process, or was reaped before.
pub fn reap(child: Pid) -> io::Result<(ExitStatus, Usage)> {
    let (mut status, mut usage) = (0, MaybeUninit::<libc::rusage>::zeroed());
    loop {
        // SAFETY: both pointers are to memory of this frame of the types that the call writes; all
        // zeroes is a legal value of the second.
        let (reaped, usage) = unsafe {
            let reaped = libc::wait4(child.as_raw(), &raw mut status, 0, usage.as_mut_ptr());
            (reaped, usage.assume_init())
        };
        if reaped == child.as_raw() {
            let status = ExitStatus::from_raw(status);
            return Ok((status, used(&usage, status)));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Gives the kernel back the memory that this process has freed, in the middle of its heaps too: the
/// allocator keeps that by itself. Allocators other than glibc's are left alone.
pub fn give_back_freed_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: the call takes a number, and locks each heap that it works on.
    unsafe {
        libc::malloc_trim(0);
    }
}
