//! Control groups: bounds for the memory and the processes of a job as a whole, where systemd
//! delegates the daemon's control group to it (`Delegate=`).
//!
//! A group with groups below it cannot hold processes, so the daemon moves into a group `daemon`
//! first; each job gets a group `job-N` beside it, which is removed with the job.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags};
use nix::unistd::{AccessFlags, access};
use tracing::warn;

use super::deadline::poll_until;
use super::limits::Limit;
use super::usage::Usage;
use crate::config::SandboxConfig;

const DAEMON: &str = "daemon";
const JOB: &str = "job-";
const CONTROLLERS: [&str; 2] = ["memory", "pids"];
/// The time that killed processes get to disappear. Only a process that hangs in the kernel takes longer.
const GONE_WITHIN: Duration = Duration::from_secs(2);

/// The folder of the groups of jobs, or why there is none. Set once, when the daemon starts.
static FOLDER: OnceLock<Result<PathBuf, String>> = OnceLock::new();

/// Moves this process into a group of its own, so that each job can have one. To be called before
/// anything is started. If it fails, nothing has changed. The error is why jobs have no groups here.
pub fn divide_cgroup() -> Result<(), String> {
    let folder = FOLDER.get_or_init(|| {
        let own = own_folder()?;
        check(&own)?;
        divide(&own).map(|()| own)
    });
    folder.as_ref().map(|_| ()).map_err(Clone::clone)
}

/// Checks that jobs of this process have groups, or would have them if it divided its own; returns why not.
pub(super) fn outlook() -> Result<(), String> {
    match FOLDER.get() {
        Some(folder) => folder.as_ref().map(|_| ()).map_err(Clone::clone),
        None => own_folder().and_then(|own| check(&own)),
    }
}

/// Returns why jobs of this process have no control groups; `None` where they have.
pub fn lacks_groups() -> Option<&'static str> {
    match FOLDER.get() {
        Some(folder) => folder.as_ref().err().map(String::as_str),
        None => Some("this program runs jobs without them"),
    }
}

fn own_folder() -> Result<PathBuf, String> {
    let read = |file| fs::read_to_string(file).map_err(|error| format!("{file}: {error}"));
    let (own, mounts) = (read("/proc/self/cgroup")?, read("/proc/self/mountinfo")?);
    folder_in(&own, &mounts).ok_or_else(|| "the machine has no control groups 2".to_owned())
}

/// Finds the folder in the texts of `/proc/self/cgroup` and `/proc/self/mountinfo`.
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

/// Checks that this process may divide the group; changes nothing.
fn check(own: &Path) -> Result<(), String> {
    // The root group has no type.
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
        if access(&own.join(name), AccessFlags::W_OK).is_err() {
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

/// Moves this process into the group `daemon` and enables the controllers for all groups below.
fn divide(own: &Path) -> Result<(), String> {
    let daemon = own.join(DAEMON);
    let failed = |what: &str, error: &io::Error| format!("{what} {}: {error}", daemon.display());
    match fs::create_dir(&daemon) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(failed("cannot create", &error));
        }
        _ => {}
    }
    fs::write(daemon.join("cgroup.procs"), "0")
        .map_err(|error| failed("cannot move into", &error))?;
    let wanted: Vec<String> = CONTROLLERS.iter().map(|name| format!("+{name}")).collect();
    if let Err(error) = fs::write(own.join("cgroup.subtree_control"), wanted.join(" ")) {
        // Another process has joined the group meanwhile.
        let _ = fs::write(own.join("cgroup.procs"), "0");
        let _ = fs::remove_dir(&daemon);
        return Err(failed("cannot divide the group of", &error));
    }
    // Leftovers of a daemon that was killed.
    for entry in fs::read_dir(own).into_iter().flatten().flatten() {
        if entry.file_name().as_encoded_bytes().starts_with(JOB.as_bytes()) {
            let _ = fs::write(entry.path().join("cgroup.kill"), "1");
            let _ = fs::remove_dir(entry.path());
        }
    }
    Ok(())
}

/// Returns whether a job as a whole has a bound.
pub(super) fn bounds_jobs(config: &SandboxConfig) -> bool {
    config.job_memory > 0 || config.job_processes > 0
}

/// The control group of one job. Dropping it kills its processes and removes it.
#[derive(Debug)]
pub struct JobGroup {
    path: PathBuf,
    /// The number of times that each limit above was reached before its creation: of the unit, then of its slices.
    ooms_above: Vec<u64>,
}

impl JobGroup {
    /// Creates an empty group with the bounds of a job; `None` without bounds, and where jobs have no groups.
    pub(super) fn of(config: &SandboxConfig) -> io::Result<Option<Self>> {
        match FOLDER.get() {
            Some(Ok(folder)) if bounds_jobs(config) => Self::create(folder, config).map(Some),
            _ => Ok(None),
        }
    }

    fn create(parent: &Path, bounds: &SandboxConfig) -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let path = parent.join(format!("{JOB}{}", NEXT.fetch_add(1, Ordering::Relaxed)));
        let failed = |error: io::Error| {
            let reason = format!("cannot create the control group {}: {error}", path.display());
            io::Error::new(error.kind(), reason)
        };
        fs::create_dir(&path).map_err(failed)?;
        let group = Self { path: path.clone(), ooms_above: ooms_above(&path) };
        group.set(bounds).map_err(failed)?;
        Ok(group)
    }

    fn set(&self, bounds: &SandboxConfig) -> io::Result<()> {
        let set = |name: &str, value: u64| fs::write(self.path.join(name), value.to_string());
        if bounds.job_memory > 0 {
            set("memory.max", bounds.job_memory)?;
            // A job that lost one of its processes is of no use.
            set("memory.oom.group", 1)?;
            match set("memory.swap.max", 0) {
                // The kernel does not account for swap.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                done => done?,
            }
        }
        if bounds.job_processes > 0 {
            set("pids.max", bounds.job_processes)?;
        }
        Ok(())
    }

    /// Opens the file that a process writes `0` to in order to join.
    pub fn members(&self) -> io::Result<fs::File> {
        fs::File::options().write(true).open(self.path.join("cgroup.procs"))
    }

    pub fn add(&self, pid: i32) -> io::Result<()> {
        fs::write(self.path.join("cgroup.procs"), pid.to_string())
    }

    pub fn kill(&self) {
        // A kernel before 5.14 has no such file; the job is killed in other ways there.
        let _ = fs::write(self.path.join("cgroup.kill"), "1");
    }

    /// Sets the peak memory of the job, and for a failed job the bound that it hit.
    pub fn report(&self, usage: &mut Usage, failed: bool) {
        let read = |name: &str| fs::read_to_string(self.path.join(name)).unwrap_or_default();
        let killed = || {
            let events = read("memory.events");
            out_of_memory(&events, &self.ooms_above, || ooms_above(&self.path))
        };
        if let Some(limit) = failed.then(killed).flatten() {
            usage.limit = Some(limit);
        } else if failed && counted(&read("pids.events"), "max") > 0 {
            usage.limit = Some(Limit::JobProcesses);
        }
        // Linux 5.19 and later.
        usage.memory_bytes = read("memory.peak").trim().parse().unwrap_or(usage.memory_bytes);
    }

    /// Waits until the group has no processes, but not for long.
    fn wait_until_empty(&self) {
        let until = Instant::now() + GONE_WITHIN;
        let Ok(events) = fs::File::open(self.path.join("cgroup.events")) else { return };
        loop {
            let mut text = [0_u8; 256];
            let read = events.read_at(&mut text, 0).unwrap_or_default();
            if counted(&String::from_utf8_lossy(&text[..read]), "populated") == 0 {
                return;
            }
            let mut waits = [PollFd::new(events.as_fd(), PollFlags::POLLPRI)];
            if !poll_until(&mut waits, until).unwrap_or(false) {
                return;
            }
        }
    }
}

impl Drop for JobGroup {
    fn drop(&mut self) {
        self.kill();
        self.wait_until_empty();
        if let Err(error) = fs::remove_dir(&self.path) {
            warn!("cannot remove the control group {}: {error}", self.path.display());
        }
    }
}

/// Returns how often the limit of each group above a group was reached, from the unit on. The root has no limit.
fn ooms_above(group: &Path) -> Vec<u64> {
    let above = group.ancestors().skip(1).map(|group| group.join("memory.events.local"));
    let events = above.map_while(|file| fs::read_to_string(file).ok());
    events.map(|events| counted(&events, "oom")).collect()
}

/// Returns the limit that made the kernel kill a process of a job; `None` if it killed none. In
/// `memory.events` of a group, `oom` counts how often its own limit was reached, and `oom_kill` the kills for
/// every limit above it too.
fn out_of_memory(events: &str, before: &[u64], now: impl FnOnce() -> Vec<u64>) -> Option<Limit> {
    if counted(events, "oom_kill") == 0 {
        return None;
    }
    if counted(events, "oom") > 0 {
        return Some(Limit::JobMemory);
    }
    let reached = before.iter().zip(now()).position(|(before, now)| now > *before);
    Some(match reached {
        Some(0) => Limit::UnitMemory,
        Some(_) => Limit::SliceMemory,
        None => Limit::MachineMemory,
    })
}

fn counted(text: &str, name: &str) -> u64 {
    let of_name = |line: &str| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok();
    text.lines().find_map(of_name).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_group_is_found_in_any_mount() {
        let mounts = "25 30 0:22 / /sys rw - sysfs sysfs rw\n\
                      29 24 0:26 / /sys/fs/cgroup/unified rw,nosuid - cgroup2 cgroup2 rw\n";
        let of = |own, mounts| folder_in(own, mounts);
        let unit = "1:name=systemd:/\n0::/system.slice/hero.service\n";
        let expected = "/sys/fs/cgroup/unified/system.slice/hero.service";
        assert_eq!(of(unit, mounts), Some(expected.into()));
        assert_eq!(of("0::/\n", mounts), Some("/sys/fs/cgroup/unified/".into()));
        assert_eq!(of("4:memory:/\n", mounts), None, "no control groups 2");
        assert_eq!(of(unit, "25 30 0:22 / /sys rw - sysfs sysfs rw\n"), None, "not mounted");
        // A container sees only its own part of the tree.
        let part = "31 24 0:26 /docker/a1 /sys/fs/cgroup ro shared:9 - cgroup2 cgroup rw\n";
        assert_eq!(of("0::/docker/a1/x\n", part), Some("/sys/fs/cgroup/x".into()));
        assert_eq!(of("0::/docker/b2\n", part), None, "not in that part");
    }

    #[test]
    fn counters_are_matched_by_their_full_names() {
        let events = "low 0\nhigh 0\nmax 7\noom 3\noom_kill 2\noom_group_kill 1\n";
        assert_eq!(counted(events, "oom_kill"), 2);
        assert_eq!(counted(events, "oom"), 3);
        assert_eq!(counted("max 12\n", "max"), 12);
        assert_eq!(counted("", "max"), 0);
    }

    #[test]
    fn kill_is_for_the_limit_that_was_reached_and_not_for_each_below_it() {
        let events = |oom, kills| format!("low 0\nhigh 0\nmax 7\noom {oom}\noom_kill {kills}\n");
        let of = |events: String, now: [u64; 2]| out_of_memory(&events, &[4, 1], || now.to_vec());
        assert_eq!(of(events(0, 0), [5, 1]), None, "it was none of the job's processes");
        assert_eq!(of(events(3, 0), [4, 1]), None, "an allocation failed");
        assert_eq!(of(events(3, 1), [4, 1]), Some(Limit::JobMemory));
        assert_eq!(of(events(1, 1), [5, 2]), Some(Limit::JobMemory));
        assert_eq!(of(events(0, 1), [5, 1]), Some(Limit::UnitMemory));
        assert_eq!(of(events(0, 2), [4, 2]), Some(Limit::SliceMemory));
        assert_eq!(of(events(0, 1), [4, 1]), Some(Limit::MachineMemory));
        // A kernel before 5.2 tells nothing of the groups above.
        let unknown = out_of_memory(&events(0, 1), &[], Vec::new);
        assert_eq!(unknown, Some(Limit::MachineMemory));
    }

    #[test]
    fn limits_above_a_group_are_counted_from_the_unit_up_to_the_root() {
        let root = tempfile::tempdir().expect("a folder");
        let unit = root.path().join("hero.slice/hero@x.service");
        fs::create_dir_all(unit.join("job-1")).expect("created");
        for (folder, ooms) in [(&unit, 2), (&root.path().join("hero.slice"), 5)] {
            let text = format!("low 0\nmax 9\noom {ooms}\noom_kill 7\n");
            fs::write(folder.join("memory.events.local"), text).expect("written");
        }
        assert_eq!(ooms_above(&unit.join("job-1")), [2, 5]);
    }

    #[test]
    fn folder_that_is_not_a_usable_group_is_rejected() {
        let folder = tempfile::tempdir().expect("a folder");
        let reason = check(folder.path()).expect_err("it is not a group");
        assert!(reason.contains("root group"), "{reason}");
        fs::write(folder.path().join("cgroup.type"), "domain\n").expect("written");
        fs::write(folder.path().join("cgroup.controllers"), "cpu memory\n").expect("written");
        let reason = check(folder.path()).expect_err("a controller is missing");
        assert!(reason.contains("no controller pids"), "{reason}");
    }

    #[test]
    fn no_group_is_created_without_bounds() {
        let none = SandboxConfig { job_memory: 0, job_processes: 0, ..SandboxConfig::default() };
        assert!(!bounds_jobs(&none));
        assert!(bounds_jobs(&SandboxConfig::default()), "bounded by default");
        // The tests have not divided their own group.
        let group = JobGroup::of(&SandboxConfig::default());
        assert!(group.expect("nothing to create").is_none());
    }
}
