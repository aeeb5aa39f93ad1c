//! Control groups: the memory and the processes of a job as a whole, where the part of the tree
//! that this process is in was handed to it (`Delegate=` of systemd).
//!
//! The kernel lets no group with groups below it hold processes too, so the daemon moves into a
//! group of its own first, `daemon`, and each job gets one beside it, `job-N`. Those are kept for
//! the next job, if the kernel can begin anew to count the most memory: to make one takes longer
//! than to use one.

use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Access, Mode, OFlags, access, open};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use tracing::warn;

use super::FIRST_FREE;
use super::limits::Limit;
use crate::config::SandboxConfig;
use crate::engine::Usage;
use crate::engine::process::timeout_until;

/// The group of this process itself.
const DAEMON: &str = "daemon";
/// What the names of the groups of jobs begin with.
const JOB: &str = "job-";
/// What is needed of the kernel's counters.
const CONTROLLERS: [&str; 2] = ["memory", "pids"];
/// How long killed processes may take to be gone. Only one that hangs in the kernel takes longer.
const GONE_WITHIN: Duration = Duration::from_secs(2);

/// Where the groups of jobs are made; none if they cannot be. Set once, when the daemon begins.
static FOLDER: OnceLock<Result<PathBuf, String>> = OnceLock::new();

/// Moves this process into a group of its own, so that its jobs can have theirs. To be called
/// before anything is started. What was there before is as it was if that fails.
///
/// # Errors
/// Why jobs have no groups of their own here.
pub fn enter() -> Result<(), String> {
    let folder = FOLDER.get_or_init(|| {
        let own = own_folder()?;
        look(&own)?;
        take(&own).map(|()| own)
    });
    folder.as_ref().map(|_| ()).map_err(Clone::clone)
}

/// Whether jobs that this process started would have groups of their own, or have them.
///
/// # Errors
/// Why they would not.
pub(super) fn outlook() -> Result<(), String> {
    match FOLDER.get() {
        Some(folder) => folder.as_ref().map(|_| ()).map_err(Clone::clone),
        None => own_folder().and_then(|own| look(&own)),
    }
}

/// The folder of the group that this process is in.
fn own_folder() -> Result<PathBuf, String> {
    let read = |file| fs::read_to_string(file).map_err(|error| format!("{file}: {error}"));
    let (own, mounts) = (read("/proc/self/cgroup")?, read("/proc/self/mountinfo")?);
    folder_in(&own, &mounts).ok_or_else(|| "the machine has no control groups 2".to_owned())
}

/// The same, from what `/proc/self/cgroup` and `/proc/self/mountinfo` say.
fn folder_in(own: &str, mounts: &str) -> Option<PathBuf> {
    let own = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
    mounts.lines().find_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        let mut words = mount.split(' ').skip(3);
        let (root, place) = (words.next()?.strip_prefix('/')?, words.next()?);
        let below = Path::new(own).strip_prefix(root).ok()?;
        kind.starts_with("cgroup2 ").then(|| Path::new(place).join(below))
    })
}

/// Whether the group is this process's to divide. Changes nothing.
fn look(own: &Path) -> Result<(), String> {
    // The root of the whole tree has no type: it is the machine's.
    if !own.join("cgroup.type").exists() {
        return Err("this process is in the root group".to_owned());
    }
    let read = |name: &str| fs::read_to_string(own.join(name)).unwrap_or_default();
    let controllers = read("cgroup.controllers");
    let has = |wanted: &&str| controllers.split_whitespace().any(|name| name == *wanted);
    if let Some(missing) = CONTROLLERS.iter().find(|wanted| !has(wanted)) {
        return Err(format!("its group has no controller {missing}"));
    }
    for name in ["", "cgroup.procs", "cgroup.subtree_control"] {
        if access(own.join(name), Access::WRITE_OK).is_err() {
            return Err("its group is not delegated to it".to_owned());
        }
    }
    let this = std::process::id().to_string();
    if read("cgroup.procs").lines().any(|pid| pid != this) {
        return Err("it is not alone in its group".to_owned());
    }
    let daemon = fs::read_to_string(own.join(DAEMON).join("cgroup.procs")).unwrap_or_default();
    if daemon.is_empty() { Ok(()) } else { Err("its group is in use".to_owned()) }
}

/// Moves this process below, and has the kernel count for each group beside it.
fn take(own: &Path) -> Result<(), String> {
    let daemon = own.join(DAEMON);
    let failed = |what: &str, error: &io::Error| format!("{what} {}: {error}", daemon.display());
    match fs::create_dir(&daemon) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(failed("cannot make", &error));
        }
        _ => {}
    }
    fs::write(daemon.join("cgroup.procs"), "0")
        .map_err(|error| failed("cannot move into", &error))?;
    let wanted: Vec<String> = CONTROLLERS.iter().map(|name| format!("+{name}")).collect();
    if let Err(error) = fs::write(own.join("cgroup.subtree_control"), wanted.join(" ")) {
        // Somebody else has come into the group meanwhile.
        let _ = fs::write(own.join("cgroup.procs"), "0");
        let _ = fs::remove_dir(&daemon);
        return Err(failed("cannot divide the group of", &error));
    }
    // Those of a daemon that was killed, if nobody else has cleared them away.
    for entry in fs::read_dir(own).into_iter().flatten().flatten() {
        if entry.file_name().as_encoded_bytes().starts_with(JOB.as_bytes()) {
            let _ = fs::write(entry.path().join("cgroup.kill"), "1");
            let _ = fs::remove_dir(entry.path());
        }
    }
    Ok(())
}

/// What a job may use up as a whole. Zero sets no bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Bounds {
    memory_bytes: u64,
    processes: u64,
}

/// The groups of the jobs of one engine. A copy is another handle on the same ones.
#[derive(Debug, Clone)]
pub(super) struct Cgroups {
    bounds: Bounds,
    free: Arc<Mutex<Vec<Arc<Cgroup>>>>,
}

impl Cgroups {
    /// None where nothing is bounded.
    pub(super) fn of(config: &SandboxConfig) -> Option<Self> {
        let bounds = Bounds { memory_bytes: config.job_memory, processes: config.job_processes };
        let is_bounded = bounds.memory_bytes > 0 || bounds.processes > 0;
        is_bounded.then(|| Self { bounds, free: Arc::default() })
    }

    /// A group with nothing in it; none where jobs have no groups.
    ///
    /// # Errors
    /// Those of making it, with its name.
    pub(super) fn lease(&self) -> io::Result<Option<Lease>> {
        let Some(Ok(folder)) = FOLDER.get() else { return Ok(None) };
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let cgroup = match free {
            Some(cgroup) => cgroup,
            None => Arc::new(Cgroup::make(folder, self.bounds)?),
        };
        let before = cgroup.events();
        Ok(Some(Lease { cgroup, before, free: Arc::clone(&self.free) }))
    }
}

/// One group, with nobody in it. Dropping it removes it.
#[derive(Debug)]
struct Cgroup {
    path: PathBuf,
    /// The folder itself: a child can be born in it.
    folder: OwnedFd,
    /// The most memory at a time; none where the kernel does not count it.
    peak: Option<fs::File>,
}

impl Cgroup {
    fn make(parent: &Path, bounds: Bounds) -> io::Result<Self> {
        static MADE: AtomicU64 = AtomicU64::new(1);
        let path = parent.join(format!("{JOB}{}", MADE.fetch_add(1, Ordering::Relaxed)));
        let failed = |error: io::Error| {
            let reason = format!("cannot make the control group {}: {error}", path.display());
            io::Error::new(error.kind(), reason)
        };
        fs::create_dir(&path).map_err(failed)?;
        let made = Self::set_up(&path, bounds);
        made.map_err(|error| {
            let _ = fs::remove_dir(&path);
            failed(error)
        })
    }

    fn set_up(path: &Path, bounds: Bounds) -> io::Result<Self> {
        let set = |name: &str, value: u64| fs::write(path.join(name), value.to_string());
        if bounds.memory_bytes > 0 {
            set("memory.max", bounds.memory_bytes)?;
            // Half a job is no use to anybody.
            set("memory.oom.group", 1)?;
            match set("memory.swap.max", 0) {
                // A kernel that does not count swap.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                done => done?,
            }
        }
        if bounds.processes > 0 {
            set("pids.max", bounds.processes)?;
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = open(path, flags, Mode::empty())?;
        let peak = path.join("memory.peak");
        let anew = fs::File::options().read(true).write(true).open(&peak);
        let peak = anew.or_else(|_| fs::File::open(&peak)).ok();
        Ok(Self { path: path.to_owned(), folder, peak })
    }

    /// What the kernel has counted since the group was made.
    fn events(&self) -> Events {
        let read = |name: &str| fs::read_to_string(self.path.join(name)).unwrap_or_default();
        Events {
            killed: counted(&read("memory.events"), "oom_kill"),
            refused: counted(&read("pids.events"), "max"),
        }
    }

    /// Has the most memory counted anew, for this descriptor of it: Linux 6.12. Returns whether the
    /// kernel can.
    fn begins_anew(&self) -> bool {
        self.peak.as_ref().is_some_and(|peak| peak.write_at(b"0", 0).is_ok())
    }

    /// Waits until nobody is in it. Returns whether that is so.
    fn empties(&self) -> bool {
        let until = Instant::now() + GONE_WITHIN;
        let Ok(events) = fs::File::open(self.path.join("cgroup.events")) else { return false };
        loop {
            let mut text = [0_u8; 256];
            let read = events.read_at(&mut text, 0).unwrap_or_default();
            let text = String::from_utf8_lossy(&text[..read]);
            if counted(&text, "populated") == 0 {
                return true;
            }
            let mut waits = [PollFd::new(&events, PollFlags::PRI)];
            match poll(&mut waits, Some(&timeout_until(until))) {
                Err(Errno::INTR) => {}
                Ok(ready) if ready > 0 => {}
                _ => return false,
            }
        }
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir(&self.path) {
            warn!("the control group {} stays behind: {error}", self.path.display());
        }
    }
}

/// What the kernel has done about the bounds of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Events {
    /// How many processes it has killed for want of memory.
    killed: u64,
    /// How often it let no further process begin.
    refused: u64,
}

/// A counter of a file with one on each line.
fn counted(text: &str, name: &str) -> u64 {
    let of_name = |line: &str| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok();
    text.lines().find_map(of_name).unwrap_or_default()
}

/// A group while it is one job's. Dropping it ends whatever is in it.
#[derive(Debug)]
pub(in crate::engine::process) struct Lease {
    cgroup: Arc<Cgroup>,
    before: Events,
    free: Arc<Mutex<Vec<Arc<Cgroup>>>>,
}

impl Lease {
    /// The folder, for a child that is born in it.
    pub(super) fn folder(&self) -> BorrowedFd<'_> {
        self.cgroup.folder.as_fd()
    }

    /// The file by which a process that writes 0 into it joins the group, under a number that no
    /// child gives to something else.
    ///
    /// # Errors
    /// Those of opening it.
    pub(super) fn members(&self) -> io::Result<OwnedFd> {
        let file = fs::File::options().write(true).open(self.cgroup.path.join("cgroup.procs"))?;
        Ok(fcntl_dupfd_cloexec(file, FIRST_FREE)?)
    }

    /// Takes in a process that was born elsewhere. The kernel stops the whole machine's forks for
    /// that, some milliseconds, which it need not for one that is born in it.
    ///
    /// # Errors
    /// Those of writing: the process is gone, or may not be moved.
    pub(in crate::engine::process) fn take_in(&self, pid: i32) -> io::Result<()> {
        fs::write(self.cgroup.path.join("cgroup.procs"), pid.to_string())
    }

    /// Kills all that is in it at once, wherever its parents are; waits for nothing.
    pub(in crate::engine::process) fn kill(&self) {
        // A kernel before 5.14 has no such file: whoever watches the job kills it in other ways.
        let _ = fs::write(self.cgroup.path.join("cgroup.kill"), "1");
    }

    /// Puts what has been counted since the lease began in the place of what one process told; and,
    /// of a job that failed, the bound that it ran into.
    pub(in crate::engine::process) fn tell(&self, usage: &mut Usage, failed: bool) {
        let now = self.cgroup.events();
        if failed && now.killed > self.before.killed {
            usage.limit = Some(Limit::JobMemory);
        } else if failed && now.refused > self.before.refused {
            usage.limit = Some(Limit::JobProcesses);
        }
        let mut text = [0_u8; 32];
        let read = self.cgroup.peak.as_ref().and_then(|peak| peak.read_at(&mut text, 0).ok());
        let text = std::str::from_utf8(&text[..read.unwrap_or_default()]).unwrap_or_default();
        usage.memory_bytes = text.trim().parse().unwrap_or(usage.memory_bytes);
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.kill();
        if self.cgroup.empties() && self.cgroup.begins_anew() {
            let cgroup = Arc::clone(&self.cgroup);
            self.free.lock().unwrap_or_else(PoisonError::into_inner).push(cgroup);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rustix::pipe::{PipeFlags, pipe_with};
    use rustix::process::Pid;

    use super::super::{Place, Program, Sandbox, reap, spawn};
    use super::*;

    #[test]
    fn the_own_group_is_found_wherever_the_tree_is_mounted() {
        let mounts = "25 30 0:22 / /sys rw - sysfs sysfs rw\n\
                      29 24 0:26 / /sys/fs/cgroup/unified rw,nosuid - cgroup2 cgroup2 rw\n";
        let of = |own, mounts| folder_in(own, mounts);
        let unit = "1:name=systemd:/\n0::/system.slice/hero.service\n";
        let expected = "/sys/fs/cgroup/unified/system.slice/hero.service";
        assert_eq!(of(unit, mounts), Some(expected.into()));
        assert_eq!(of("0::/\n", mounts), Some("/sys/fs/cgroup/unified/".into()));
        assert_eq!(of("4:memory:/\n", mounts), None, "no control groups 2");
        assert_eq!(of(unit, "25 30 0:22 / /sys rw - sysfs sysfs rw\n"), None, "not mounted");
        // A container sees its own part of the tree alone.
        let part = "31 24 0:26 /docker/a1 /sys/fs/cgroup ro shared:9 - cgroup2 cgroup rw\n";
        assert_eq!(of("0::/docker/a1/x\n", part), Some("/sys/fs/cgroup/x".into()));
        assert_eq!(of("0::/docker/b2\n", part), None, "it is not in that part");
    }

    #[test]
    fn counters_are_told_apart_by_their_whole_names() {
        let events = "low 0\nhigh 0\nmax 7\noom 3\noom_kill 2\noom_group_kill 1\n";
        assert_eq!(counted(events, "oom_kill"), 2);
        assert_eq!(counted(events, "oom"), 3);
        assert_eq!(counted("max 12\n", "max"), 12);
        assert_eq!(counted("", "max"), 0);
    }

    #[test]
    fn a_folder_that_is_no_group_is_not_taken() {
        let folder = tempfile::tempdir().expect("a folder");
        let reason = look(folder.path()).expect_err("it is no group");
        assert!(reason.contains("root group"), "{reason}");
        fs::write(folder.path().join("cgroup.type"), "domain\n").expect("written");
        fs::write(folder.path().join("cgroup.controllers"), "cpu memory\n").expect("written");
        let reason = look(folder.path()).expect_err("it has too little");
        assert!(reason.contains("no controller pids"), "{reason}");
    }

    #[test]
    fn a_child_is_born_in_its_group_and_the_group_goes_with_it() {
        let unbounded = Bounds { memory_bytes: 0, processes: 0 };
        let parent = own_folder().unwrap_or_default();
        let Ok(cgroup) = Cgroup::make(&parent, unbounded) else {
            println!("skip: no control group can be made here");
            return;
        };
        let path = cgroup.path.clone();
        let before = cgroup.events();
        let lease = Lease { cgroup: Arc::new(cgroup), before, free: Arc::default() };
        let open = SandboxConfig { enabled: false, ..SandboxConfig::default() };
        let sandbox = Sandbox::of_type(&open);
        let program = Path::new("/bin/cat");
        let cell = || sandbox.cell(program, Path::new("/"), &[]).expect("a cell");
        let null = fs::File::open("/dev/null").expect("it is there");
        for _ in 0..20 {
            let (read_end, its) = pipe_with(PipeFlags::CLOEXEC).expect("a pipe");
            let program = Program {
                file: program,
                args: &["/proc/self/cgroup".into()],
                env: BTreeMap::new(),
            };
            let descriptors = [null.as_fd(), its.as_fd(), its.as_fd()];
            let place = Place { cwd: Path::new("/"), descriptors: &descriptors };
            let child = spawn(&program, &place, cell(), Some(&lease)).expect("started");
            drop(its);
            let said = io::read_to_string(fs::File::from(read_end)).expect("text");
            let (status, _) = reap(Pid::from_raw(child).expect("a number")).expect("a child");
            assert!(status.success(), "{said}");
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            let own = said.lines().find(|line| line.starts_with("0::")).unwrap_or_default();
            assert!(own.ends_with(&name), "not in {name}: {said}");
        }
        // What is still in it goes as well.
        let program =
            Program { file: Path::new("/bin/sleep"), args: &["1000".into()], env: BTreeMap::new() };
        let descriptors = [null.as_fd(), null.as_fd(), null.as_fd()];
        let place = Place { cwd: Path::new("/"), descriptors: &descriptors };
        let child = spawn(&program, &place, cell(), Some(&lease)).expect("started");
        lease.kill();
        let (status, usage) = reap(Pid::from_raw(child).expect("a number")).expect("a child");
        assert_eq!((status.code(), usage.signal), (None, Some(9)));
        drop(lease);
        assert!(!path.exists(), "{} stays behind", path.display());
    }

    #[test]
    fn nothing_is_made_where_nothing_is_bounded() {
        let none = SandboxConfig { job_memory: 0, job_processes: 0, ..SandboxConfig::default() };
        assert!(Cgroups::of(&none).is_none());
        let cgroups = Cgroups::of(&SandboxConfig::default()).expect("bounded by default");
        // The tests are in nobody's own group.
        assert!(cgroups.lease().expect("nothing to make").is_none());
    }
}
