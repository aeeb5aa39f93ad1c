//! A child that is made ahead: born, shut in, and waiting for its program.

use std::fmt;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rustix::io::{fcntl_dupfd_cloexec, write};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::thread::futex;

use super::super::{Cell, FIRST_FREE, Lease, Place, Program};
use super::birth::{Parent, Stack, bear, stack};
use super::image::Image;
use super::order::Order;
use crate::engine::process::timeout_until;

/// How long a child that has to may take to leave this memory. Only one that hangs in the kernel, or
/// was stopped, takes longer.
const LEFT_WITHIN: Duration = Duration::from_secs(2);

/// A child that was made ahead, with the memory that it uses until its program begins. To be kept
/// until the child was reaped. Dropped before, it ends a child that still waits.
pub(in crate::engine::process) struct Newborn {
    pid: i32,
    /// Where the child waits. Closed, it lets no program begin.
    gate: Option<OwnedFd>,
    memory: ManuallyDrop<Arc<Memory>>,
    /// Only the child uses it.
    stack: ManuallyDrop<Stack>,
}

/// What a child reads of this memory, or writes to.
struct Memory {
    order: Order,
    image: OnceLock<Image>,
    /// Zero once it uses nothing of this any more.
    is_used: AtomicU32,
}

impl Newborn {
    /// Whether they can be made on this kind of processor: see [`super::calls`].
    pub(in crate::engine::process) const fn is_supported() -> bool {
        cfg!(target_arch = "x86_64")
    }

    /// Makes a child that shuts itself into `cell`, in a session of its own and in the control group
    /// of `lease`, and then waits.
    ///
    /// # Errors
    /// Those of making it. Those of the cell are told when its program is to begin, as with any.
    #[cfg(target_arch = "x86_64")]
    pub(in crate::engine::process) fn new(
        place: &Place<'_>,
        cell: Cell,
        lease: Option<&Lease>,
    ) -> io::Result<Self> {
        let (its, gate) = pipe_with(PipeFlags::CLOEXEC)?;
        let its = fcntl_dupfd_cloexec(its, FIRST_FREE)?;
        let (order, _lent) = Order::new(place, cell, Some(its.as_fd()))?;
        let memory = Memory { order, image: OnceLock::new(), is_used: AtomicU32::new(1) };
        let (memory, mut stack) = (Arc::new(memory), stack());
        // SAFETY: order and stack are freed, in `drop`, once the kernel says that the child has left
        // this memory, and else never; nobody else has the stack, and of the order nothing changes
        // but what is made for that.
        let born =
            unsafe { bear(&memory.order, &mut stack, lease, Parent::GoesOn(&memory.is_used)) };
        let (memory, stack) = (ManuallyDrop::new(memory), ManuallyDrop::new(stack));
        match born {
            Ok(pid) => Ok(Self { pid, gate: Some(gate), memory, stack }),
            Err(error) => {
                let _freed = (ManuallyDrop::into_inner(memory), ManuallyDrop::into_inner(stack));
                Err(error)
            }
        }
    }

    /// Not for this kind of processor.
    ///
    /// # Errors
    /// Always.
    #[cfg(not(target_arch = "x86_64"))]
    pub(in crate::engine::process) fn new(
        _: &Place<'_>,
        _: Cell,
        _: Option<&Lease>,
    ) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Its process id.
    pub(in crate::engine::process) fn pid(&self) -> i32 {
        self.pid
    }

    /// Has it become a program, at once and without waiting for that.
    ///
    /// # Errors
    /// It has ended while it waited, or the program is none that can be told.
    pub(in crate::engine::process) fn begin(&mut self, program: &Program<'_>) -> io::Result<()> {
        let image = Image::new(program)?;
        let image = self.memory.image.get_or_init(|| image);
        // SAFETY: it lives in the memory that is freed once the child has left it.
        unsafe { self.memory.order.becomes(image) };
        let gate = self.gate.take().ok_or(io::ErrorKind::BrokenPipe)?;
        // Nobody but the child has the other end.
        write(gate, b"\n")?;
        Ok(())
    }

    /// Why its program did not begin, to be asked once it was reaped; `None` if it did.
    pub(in crate::engine::process) fn failure(&self) -> Option<io::Error> {
        self.memory.order.failure()
    }

    /// Waits until it has left this memory; returns whether it has.
    fn leaves(&self) -> bool {
        let until = Instant::now() + LEFT_WITHIN;
        while self.memory.is_used.load(Ordering::Acquire) != 0 && Instant::now() < until {
            let left = timeout_until(until);
            let _ = futex::wait(&self.memory.is_used, futex::Flags::empty(), 1, Some(&left));
        }
        self.memory.is_used.load(Ordering::Acquire) == 0
    }
}

impl Drop for Newborn {
    fn drop(&mut self) {
        self.gate = None;
        if self.leaves() {
            // SAFETY: they are dropped nowhere else, and nobody uses them any more.
            unsafe {
                ManuallyDrop::drop(&mut self.memory);
                ManuallyDrop::drop(&mut self.stack);
            }
        }
    }
}

impl fmt::Debug for Newborn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Newborn").field("pid", &self.pid).finish_non_exhaustive()
    }
}
