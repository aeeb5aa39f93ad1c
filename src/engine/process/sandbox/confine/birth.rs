//! How a child comes to be: in this process's memory, on a stack of its own, where it can be in the
//! control group of its job from the start.

use std::ffi::{c_int, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::super::Lease;
use super::order::Order;

/// The stack of a child until its program begins; it takes a few pages of it.
const STACK_BYTES: usize = 64 * 1024;

/// The stack of one child.
pub(super) type Stack = Vec<u8>;

/// A stack for one child.
pub(super) fn stack() -> Stack {
    Vec::with_capacity(STACK_BYTES)
}

/// The thread stands still until the child has left this memory.
const FLAGS: c_int = libc::CLONE_VM | libc::CLONE_VFORK;

/// Starts a child that does as it is ordered, and gives its process id. It has no signals until its
/// program begins: none reaches it while it would run a handler of this process in its memory.
///
/// # Errors
/// Those of `clone(2)`.
///
/// # Safety
/// The order and the stack are there, and are changed by nobody, until the child has left this
/// memory.
pub(super) unsafe fn bear(
    order: &Order,
    stack: &mut Stack,
    lease: Option<&Lease>,
) -> io::Result<i32> {
    let (mut all, mut own) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    // SAFETY: the sets are of this frame.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), own.as_mut_ptr());
    }
    let mut born = match lease {
        // SAFETY: as promised by whoever calls this.
        Some(lease) => unsafe { clone_into(lease.folder(), stack, order) },
        None => Err(io::ErrorKind::Unsupported.into()),
    };
    if born.is_err() {
        // Where the kernel or the machine lets none be born in a group, the child moves itself.
        let joins = lease.map(Lease::members).transpose();
        born = joins.and_then(|members| {
            if let Some(members) = members {
                order.joins(members);
            }
            // SAFETY: as above.
            unsafe { clone(stack, order) }
        });
    }
    // SAFETY: the set is the one that was in force.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, own.as_ptr(), std::ptr::null_mut()) };
    born
}

/// Starts one, wherever this process is.
///
/// # Safety
/// As for [`bear`].
unsafe fn clone(stack: &mut Stack, order: &Order) -> io::Result<i32> {
    let flags = FLAGS | libc::SIGCHLD;
    let none = std::ptr::null_mut::<c_void>();
    // SAFETY: the top is within the capacity and aligned as every stack is; the place that is set to
    // zero is borrowed for as long as the order is; the rest is promised by whoever calls this.
    let pid = unsafe {
        let top = stack.as_mut_ptr().add(STACK_BYTES);
        let top = top.sub(top.addr() % 16);
        let order = (&raw const *order).cast_mut().cast();
        libc::clone(child, top.cast(), flags, order, none, none, none)
    };
    if pid > 0 { Ok(pid) } else { Err(io::Error::last_os_error()) }
}

/// The same for a child that is born in the control group with this folder. The C library has no
/// call for that, and to move a process later takes the kernel many times as long.
#[cfg(target_arch = "x86_64")]
unsafe fn clone_into(group: BorrowedFd<'_>, stack: &mut Stack, order: &Order) -> io::Result<i32> {
    const INTO_CGROUP: u64 = 1 << 33;
    let flags = INTO_CGROUP | u64::from(FLAGS.cast_unsigned());
    let (bottom, signal) = (stack.as_mut_ptr().expose_provenance(), libc::SIGCHLD.cast_unsigned());
    let size = STACK_BYTES - (bottom + STACK_BYTES) % 16;
    let group = u64::from(group.as_raw_fd().cast_unsigned());
    // The fields of `struct clone_args`: flags, one that is not used, what is set to zero, another,
    // the signal of its end, the stack and its size, three that are not used, the group.
    let how: [u64; 11] =
        [flags, 0, 0, 0, u64::from(signal), bottom as u64, size as u64, 0, 0, 0, group];
    let result: i64;
    // SAFETY: the kernel reads the array and its size. What the child uses is there until it has
    // left this memory, as promised by whoever calls this. It begins after the call with a stack of
    // its own, aligned as every stack is, calls `child` with the order, and ends; it never reaches
    // what follows the block. The call changes no registers but those that are named.
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
unsafe fn clone_into(_: BorrowedFd<'_>, _: &mut Stack, _: &Order) -> io::Result<i32> {
    Err(io::ErrorKind::Unsupported.into())
}

extern "C" fn child(order: *mut c_void) -> c_int {
    // SAFETY: it is the pointer that `clone` or `clone_into` gave, to an order that is there until
    // the child has left this memory.
    let order = unsafe { &*order.cast::<Order>() };
    order.obey();
    1
}
