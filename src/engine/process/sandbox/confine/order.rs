//! What a child does between its birth and its program. All of it is made before: the child
//! allocates nothing, takes no lock and does not unwind, as the memory is that of a process whose
//! other threads go on.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering};
use std::sync::{Arc, OnceLock};

use rustix::io::{fcntl_dupfd_cloexec, write};
use rustix::process::{Resource, Rlimit, chdir, setrlimit, setsid};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities, set_no_new_privs};
use seccompiler::BpfProgram;

use super::super::limits::LIMITS_MAX;
use super::super::{Cell, FIRST_FREE, Place};
use super::calls::{
    admit_signals, close, default_signals, duplicate, filter_calls, restrict_files,
};
use super::image::Image;

/// All that a child needs.
pub(super) struct Order {
    confined: bool,
    privileged: bool,
    limits: [Option<(Resource, Rlimit)>; LIMITS_MAX],
    /// The members of its control group, if it has to join them itself.
    members: OnceLock<OwnedFd>,
    cwd: CString,
    descriptors: Vec<RawFd>,
    /// The rules of Landlock.
    rules: Option<RawFd>,
    filter: Option<Arc<BpfProgram>>,
    /// What it becomes; null while that is not known.
    image: AtomicPtr<Image>,
    /// Why the program has not begun; zero once it has.
    error: AtomicI32,
}

/// Descriptors of this process that a child has at its birth and uses by their numbers: they are not
/// needed here any more once it is born.
pub(super) struct Lent {
    _rules: Option<OwnedFd>,
    /// Copies of those that lie where the child gets others.
    _moved: Vec<OwnedFd>,
}

impl Order {
    pub(super) fn new(place: &Place<'_>, cell: Cell) -> io::Result<(Self, Lent)> {
        let cwd = CString::new(place.cwd.as_os_str().as_bytes())?;
        let (mut descriptors, mut moved) = (Vec::new(), Vec::new());
        for descriptor in place.descriptors.iter().copied() {
            let number = descriptor.as_raw_fd();
            if number < FIRST_FREE {
                moved.push(fcntl_dupfd_cloexec(descriptor, FIRST_FREE)?);
                descriptors.extend(moved.last().map(AsRawFd::as_raw_fd));
            } else {
                descriptors.push(number);
            }
        }
        let Cell { confined, privileged, limits, rules, filter } = cell;
        let order = Self {
            confined,
            privileged,
            limits: limits.list(),
            members: OnceLock::new(),
            cwd,
            descriptors,
            rules: rules.as_ref().map(AsRawFd::as_raw_fd),
            filter,
            image: AtomicPtr::default(),
            error: AtomicI32::new(libc::ECANCELED),
        };
        Ok((order, Lent { _rules: rules, _moved: moved }))
    }

    /// Has the child join a control group. It knows of no other.
    pub(super) fn joins(&self, members: OwnedFd) {
        let _ = self.members.set(members);
    }

    /// Tells the child what it becomes.
    ///
    /// # Safety
    /// It is there until it has left this memory.
    pub(super) unsafe fn becomes(&self, image: &Image) {
        self.image.store((&raw const *image).cast_mut(), Ordering::Release);
    }

    /// Why the program did not begin, once the child has left this memory: it may have been killed
    /// before.
    pub(super) fn failure(&self) -> Option<io::Error> {
        match self.error.load(Ordering::Acquire) {
            0 => None,
            error => Some(io::Error::from_raw_os_error(error)),
        }
    }

    /// What the child does: it becomes the program, or leaves behind why it did not.
    pub(super) fn obey(&self) {
        let error = match self.prepare().and_then(|()| self.image()) {
            Ok(image) => {
                self.error.store(0, Ordering::Release);
                image.execute()
            }
            Err(error) => error,
        };
        self.error.store(error.raw_os_error().unwrap_or(libc::EINVAL), Ordering::Release);
    }

    fn prepare(&self) -> io::Result<()> {
        if let Some(members) = self.members.get() {
            write(members, b"0")?;
        }
        let mut next = 0;
        for descriptor in &self.descriptors {
            duplicate(*descriptor, next, 0)?;
            next += 1;
        }
        chdir(self.cwd.as_c_str())?;
        default_signals()?;
        self.enter(next)
    }

    /// Shuts itself in. Restrictions come last: each may forbid what stands before it.
    fn enter(&self, first_closed: RawFd) -> io::Result<()> {
        setsid()?;
        for (resource, limit) in self.limits.iter().flatten() {
            setrlimit(*resource, *limit)?;
        }
        if self.confined {
            if self.privileged {
                let none = CapabilitySet::empty();
                let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
                set_capabilities(None, sets)?;
            }
            set_no_new_privs(true)?;
        }
        self.rules.map_or(Ok(()), restrict_files)?;
        close(first_closed)?;
        self.filter.as_deref().map_or(Ok(()), |filter| filter_calls(filter))
    }

    fn image(&self) -> io::Result<&Image> {
        let image = self.image.load(Ordering::Acquire);
        // SAFETY: it is null, or what `becomes` has left there.
        let image = unsafe { image.as_ref() };
        // It was not told, and never will be.
        let image = image.ok_or_else(|| io::Error::from_raw_os_error(libc::ECANCELED))?;
        admit_signals().map(|()| image)
    }
}
