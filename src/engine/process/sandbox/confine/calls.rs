//! The system calls of a child that is still in this process's memory. The C library keeps the error
//! of a call where that of the thread is which made the child, and which goes on meanwhile: such a
//! child makes its calls without it, here or by `rustix`, which does without it too.

use std::ffi::{CStr, CString, c_int, c_long};
use std::io;
use std::os::fd::RawFd;

use seccompiler::sock_filter;

/// The signals there are.
const SIGNALS: usize = 64;
/// What the kernel takes a set of signals to be, in bytes.
const SIGNAL_SET_BYTES: usize = 8;
/// The words of what the kernel keeps of a signal: its handler comes first.
type Action = [usize; 4];

/// Texts as the kernel takes a list of them.
#[derive(Debug)]
pub(super) struct List {
    /// Where each is, and zero.
    places: Vec<usize>,
    _texts: Vec<CString>,
}

/// All of a list, or its end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rest<'a>(&'a [usize]);

impl List {
    pub(super) fn new(texts: Vec<CString>) -> Self {
        let places = texts.iter().map(|text| place(text)).chain([0]).collect();
        Self { places, _texts: texts }
    }

    pub(super) fn all(&self) -> Rest<'_> {
        Rest(&self.places)
    }

    /// All but the first; all if there is none.
    pub(super) fn after_first(&self) -> Rest<'_> {
        let first = usize::from(self.places.len() > 1);
        Rest(&self.places[first..])
    }
}

/// Makes a call.
///
/// # Errors
/// That of the call.
///
/// # Safety
/// What the call asks of its arguments.
#[cfg(target_arch = "x86_64")]
unsafe fn call(number: c_long, args: [usize; 5]) -> io::Result<usize> {
    let result: isize;
    // SAFETY: the registers are those of the kernel's convention for calls; it changes no other but
    // those that are named. The rest is promised by whoever calls this.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") args[0],
            in("rsi") args[1],
            in("rdx") args[2],
            in("r10") args[3],
            in("r8") args[4],
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    match usize::try_from(result) {
        Ok(value) => Ok(value),
        Err(_) => Err(io::Error::from_raw_os_error(i32::try_from(-result).unwrap_or(libc::EINVAL))),
    }
}

/// The same by the C library: on such a processor a child is not made ahead, so the thread that
/// makes one stands still until it has left this memory.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn call(number: c_long, [a, b, c, d, e]: [usize; 5]) -> io::Result<usize> {
    // SAFETY: promised by whoever calls this.
    let result = unsafe { libc::syscall(number, a, b, c, d, e) };
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// Becomes the program in a file; returns only if it cannot.
pub(super) fn execute(file: &CStr, args: Rest<'_>, env: Rest<'_>) -> io::Error {
    let lists = [args, env].map(|Rest(list)| list.as_ptr().expose_provenance());
    // SAFETY: the file is a text with a NUL; the lists are of such texts, which live as long as the
    // lists do, with zero at their end.
    let done = unsafe { call(libc::SYS_execve, [place(file), lists[0], lists[1], 0, 0]) };
    done.err().unwrap_or_else(|| io::ErrorKind::Other.into())
}

/// Puts a descriptor where the child is to have it.
pub(super) fn duplicate(descriptor: RawFd, to: RawFd, flags: c_int) -> io::Result<()> {
    let args = [word(descriptor), word(to), word(flags), 0, 0];
    // SAFETY: all are numbers; the child's table of descriptors is its own.
    unsafe { call(libc::SYS_dup3, args) }.map(|_| ())
}

/// Takes this process's handlers away, which must not run in the child, and what it ignores of
/// pipes. The rest goes on as it is, as with every program that another one starts.
pub(super) fn default_signals() -> io::Result<()> {
    for signal in 1..=SIGNALS {
        let mut action: Action = [0; 4];
        let (nothing, own) = (0, (&raw mut action).expose_provenance());
        // SAFETY: the kernel writes what it keeps of a signal, which fits, or refuses.
        let asked =
            unsafe { call(libc::SYS_rt_sigaction, [signal, nothing, own, SIGNAL_SET_BYTES, 0]) };
        let [handler, ..] = action;
        let is_ignored = handler == libc::SIG_IGN && signal != word(libc::SIGPIPE);
        if asked.is_err() || handler == libc::SIG_DFL || is_ignored {
            continue;
        }
        let default: Action = [0; 4];
        let default = (&raw const default).expose_provenance();
        // SAFETY: the kernel reads an action; all zeroes is a legal one, the default.
        unsafe { call(libc::SYS_rt_sigaction, [signal, default, 0, SIGNAL_SET_BYTES, 0]) }?;
    }
    Ok(())
}

/// Lets signals come again.
pub(super) fn admit_signals() -> io::Result<()> {
    let none = 0_u64;
    let none = (&raw const none).expose_provenance();
    let args = [word(libc::SIG_SETMASK), none, 0, SIGNAL_SET_BYTES, 0];
    // SAFETY: the kernel reads a set of this frame.
    unsafe { call(libc::SYS_rt_sigprocmask, args) }.map(|_| ())
}

/// Closes every descriptor from `first` on.
pub(super) fn close(first: RawFd) -> io::Result<()> {
    let args = [word(first), word(RawFd::MAX), 0, 0, 0];
    // SAFETY: all are numbers; the child's table of descriptors is its own, and it uses none of
    // these any more.
    unsafe { call(libc::SYS_close_range, args) }.map(|_| ())
}

/// Holds this thread, and all it starts, to the rules.
pub(super) fn restrict_files(rules: RawFd) -> io::Result<()> {
    let args = [word(rules), 0, 0, 0, 0];
    // SAFETY: both are numbers; the kernel refuses one that is not of rules.
    unsafe { call(libc::SYS_landlock_restrict_self, args) }.map(|_| ())
}

/// Has the system calls of this thread, and of all it starts, go through a filter.
pub(super) fn filter_calls(filter: &[sock_filter]) -> io::Result<()> {
    let len = u16::try_from(filter.len()).map_err(|_| io::Error::from_raw_os_error(libc::E2BIG))?;
    let filter = filter.as_ptr().cast::<libc::sock_filter>().cast_mut();
    let program = libc::sock_fprog { len, filter };
    let program = (&raw const program).expose_provenance();
    let args = [word(libc::SECCOMP_SET_MODE_FILTER.cast_signed()), 0, program, 0, 0];
    // SAFETY: the kernel reads so many steps, which have the form that both crates give them.
    unsafe { call(libc::SYS_seccomp, args) }.map(|_| ())
}

/// Where a text is.
fn place(text: &CStr) -> usize {
    text.as_ptr().expose_provenance()
}

/// A number as the kernel takes it.
fn word(number: c_int) -> usize {
    usize::try_from(number).unwrap_or_default()
}
