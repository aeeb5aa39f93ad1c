//! Control groups of jobs: many processes that each stay within the limits of one, in an actor with a
//! delegated control group.

use std::fs;
use std::path::PathBuf;

use crate::support::{Hero, Process, Redis, keys, needs, wait_until};

/// A control group that is delegated to an actor, as by `Delegate=` of systemd.
struct Delegated {
    folder: PathBuf,
}

impl Delegated {
    /// Returns `None` where cgroup2 with these controllers is not mounted or not writable, and the
    /// test is skipped.
    fn new(test: &str) -> Option<Self> {
        let delegated = Self::below_the_mount(test);
        needs("cgroups", || delegated.is_ok());
        delegated.ok()
    }

    fn below_the_mount(test: &str) -> Result<Self, String> {
        let mounts = fs::read_to_string("/proc/self/mounts").map_err(|error| error.to_string())?;
        let mut mounts = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let mount = mounts
            .find_map(|words| (words.get(2) == Some(&"cgroup2")).then(|| words[1].to_owned()));
        let root = PathBuf::from(mount.ok_or("no control groups 2 are mounted")?);
        let controllers = fs::read_to_string(root.join("cgroup.controllers")).unwrap_or_default();
        for name in ["memory", "pids"] {
            if !controllers.split_whitespace().any(|controller| controller == name) {
                return Err(format!("control groups 2 have no controller {name} here"));
            }
        }
        fs::write(root.join("cgroup.subtree_control"), "+memory +pids")
            .map_err(|error| format!("control groups are not for this user to make: {error}"))?;
        let folder = root.join(format!("hero-test-{}-{test}", std::process::id()));
        fs::create_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(Self { folder })
    }

    /// Lists the groups of jobs.
    fn jobs(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.folder).expect("the group is there").flatten();
        let names = entries.map(|entry| (entry.path(), entry.file_name()));
        let of_jobs = names.filter(|(_, name)| name.as_encoded_bytes().starts_with(b"job-"));
        of_jobs.map(|(path, _)| path).collect()
    }

    /// Lists the processes in them.
    fn members(&self) -> Vec<String> {
        let files = self.jobs().into_iter().map(|job| job.join("cgroup.procs"));
        let texts = files.map(|file| fs::read_to_string(file).unwrap_or_default());
        texts.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect()
    }
}

impl Drop for Delegated {
    fn drop(&mut self) {
        let _ = fs::write(self.folder.join("cgroup.kill"), "1");
        wait_until("the groups are empty", || {
            let below = fs::read_dir(&self.folder).into_iter().flatten().flatten();
            for entry in below.filter(|entry| entry.path().is_dir()) {
                let _ = fs::remove_dir(entry.path());
            }
            fs::remove_dir(&self.folder).is_ok()
        });
    }
}

/// A Python actor in a delegated group, which is removed after it.
struct Stage {
    actor: Process,
    hero: Hero,
    redis: Redis,
    delegated: Delegated,
    /// True if jobs are forks of an interpreter, with two waiting forks.
    warm: bool,
}

impl Stage {
    fn new(test: &str, warm: bool, settings: &[(&str, &str)]) -> Option<Self> {
        let delegated = Delegated::new(&format!("{test}-{}", if warm { "warm" } else { "cold" }))?;
        let redis = Redis::start();
        let hero = Hero::on(&redis).set("type.python.warm", &warm.to_string());
        let hero = settings
            .iter()
            .fold(hero, |hero, (key, value)| hero.set(&format!("type.python.{key}"), value));
        let actor = hero.actor("python-default-1").tasks(2).in_cgroup(&delegated.folder).start();
        let err = actor.err();
        assert!(err.contains("each job that is a process has a control group of its own"), "{err}");
        let stage = Self { actor, hero, redis, delegated, warm };
        stage.is_idle();
        Some(stage)
    }

    /// Waits until only the interpreter and the waiting forks are left. Returns the forks, which alone are
    /// in groups of jobs.
    fn is_idle(&self) -> Vec<String> {
        let (children, members) = if self.warm { (3, 2) } else { (0, 0) };
        wait_until("no process of a job is left", || {
            self.actor.children().len() == children && self.delegated.members().len() == members
        });
        self.delegated.members()
    }

    /// Runs a script that fails. Returns its error, its limit and its peak memory.
    fn fails(&self, id: &str, script: &str) -> (String, Option<String>, u64) {
        let done =
            self.hero.run(&["exec", "-t", "python", "--id", id, "--timeout", "20s", "-e", script]);
        assert_eq!(done.code, 1, "{}", done.stderr);
        let field = |name| self.redis.field(&keys::job(id), name);
        let peak = field("memory_peak").and_then(|peak| peak.parse().ok()).unwrap_or_default();
        (done.stderr, field("limit"), peak)
    }

    /// Checks that only the waiting forks are left in groups, and that the next job runs.
    fn goes_on(&self) {
        let waits = self.is_idle();
        let script = "import os; print(os.getpid())";
        let next = self.hero.run(&["exec", "-t", "python", "-e", script]).code(0).stdout;
        if self.warm {
            let next = next.trim().to_owned();
            assert!(waits.contains(&next), "{waits:?}: not the fork of the next job");
        }
        self.is_idle();
        let jobs = self.delegated.jobs();
        assert!(jobs.len() <= 2 + 2, "more groups than tasks and waiting forks: {jobs:?}");
    }
}

#[test]
fn memory_of_all_processes_of_a_job_is_bounded() {
    [false, true].into_iter().for_each(memory_is_bounded);
}

fn memory_is_bounded(warm: bool) {
    let bound = [("sandbox.job_memory", "\"64MiB\""), ("sandbox.memory", "\"1GiB\"")];
    let Some(stage) = Stage::new("memory", warm, &bound) else { return };
    // Each is far below the bound of one process.
    let script = "import os, time\nfor _ in range(16):\n    if os.fork() == 0:\n        \
                  os.setsid()\n        hold = bytearray(b'x') * (16 << 20)\n        \
                  time.sleep(600)\ntime.sleep(600)\n";
    let (error, limit, peak) = stage.fails("bomb", script);
    assert!(error.contains("out of memory: the job as a whole"), "{error}");
    assert_eq!(limit.as_deref(), Some("job memory"));
    assert!((48 << 20..=64 << 20).contains(&peak), "{peak}");
    stage.goes_on();
}

#[test]
fn fork_bomb_is_stopped_at_the_limit_of_its_job() {
    [false, true].into_iter().for_each(fork_bomb_is_stopped);
}

fn fork_bomb_is_stopped(warm: bool) {
    let bound = [("sandbox.job_processes", "16")];
    let Some(stage) = Stage::new("processes", warm, &bound) else { return };
    let script = "import os, time\nfor _ in range(64):\n    if os.fork() == 0:\n        \
                  os.setsid()\n        time.sleep(600)\n";
    let (error, limit, _) = stage.fails("forks", script);
    assert!(error.contains("BlockingIOError"), "{error}");
    assert_eq!(limit.as_deref(), Some("job processes"));
    stage.goes_on();
    // A fork bomb that repeats failed forks, and whose parents exit at once.
    let script = "import os\nwhile True:\n    try:\n        if os.fork(): os.setsid()\n    \
                  except OSError: pass\n";
    let args = ["exec", "-t", "python", "--id", "bomb", "--timeout", "2s", "-e", script];
    stage.hero.run(&args).code(1).says("timeout");
    stage.goes_on();
}

#[test]
fn script_starts_in_its_group_and_cannot_leave_it() {
    [false, true].into_iter().for_each(starts_in_its_group);
}

fn starts_in_its_group(warm: bool) {
    // Closed by default; read here to find the group of the script.
    let open = [("sandbox.read", "[\"/proc\", \"/sys/fs/cgroup\"]")];
    let Some(stage) = Stage::new("place", warm, &open) else { return };
    let script = r"
import os, sys
own = open('/proc/self/cgroup').read().split('0::')[1].strip()
base = next(line.split()[1] for line in open('/proc/self/mounts') if line.split()[2] == 'cgroup2')
held = 0
for path, text in (
    (base + own + '/memory.max', 'max'), (base + own + '/pids.max', 'max'),
    (os.path.dirname(base + own) + '/cgroup.procs', '0'), (base + '/cgroup.procs', '0'),
):
    try:
        open(path, 'w').write(text)
    except PermissionError:
        held += 1
print(os.path.basename(own)[:4], held, 'warm' if 'ctypes' in sys.modules else 'cold')
";
    let said = stage.hero.run(&["exec", "-t", "python", "-e", script]).code(0).stdout;
    assert_eq!(said, if warm { "job- 4 warm\n" } else { "job- 4 cold\n" });
    stage.goes_on();
    let own = fs::read_to_string(format!("/proc/{}/cgroup", stage.actor.pid())).expect("it runs");
    assert!(own.trim_end().ends_with("/daemon"), "{own}");
}

#[test]
fn two_hundred_jobs_leave_no_group() {
    [false, true].into_iter().for_each(leave_no_group_of);
}

fn leave_no_group_of(warm: bool) {
    let Some(stage) = Stage::new("many", warm, &[]) else { return };
    let descriptors = || {
        let all = fs::read_dir(format!("/proc/{}/fd", stage.actor.pid())).expect("it runs");
        all.count()
    };
    stage.goes_on();
    let before = descriptors();
    // Each leaves a process in another session.
    let script = "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(600)\n";
    let ids: Vec<String> = (0..200).map(|number| format!("job-{number}")).collect();
    for id in &ids {
        stage.redis.push_job("python", id, script);
    }
    for id in &ids {
        wait_until("a job has finished", || {
            let status = stage.redis.field(&keys::job(id), "status");
            status.as_deref() == Some("finished")
        });
    }
    stage.goes_on();
    wait_until("descriptors are closed", || descriptors() <= before);
}

#[test]
fn actor_without_a_delegated_group_serves() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let actor = hero.actor("python-default-1").start();
    let err = actor.err();
    assert!(err.contains("jobs have no control groups of their own: "), "{err}");
    hero.run(&["exec", "-t", "python", "-e", "print(1)"]).code(0).stdout("1\n");
    let said = hero.run(&["check"]).code(0).stdout;
    assert!(said.contains("started from here, jobs have no control groups: "), "{said}");
}

#[test]
fn group_with_another_process_is_not_divided() {
    let Some(delegated) = Delegated::new("shared") else { return };
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _other = hero.actor("osis-default-1").in_cgroup(&delegated.folder).start();
    let actor = hero.actor("python-default-1").in_cgroup(&delegated.folder).start();
    let err = actor.err();
    assert!(err.contains("it is not alone in its group"), "{err}");
    hero.run(&["exec", "-t", "python", "-e", "print(1)"]).code(0).stdout("1\n");
    assert!(!delegated.folder.join("daemon").exists() && delegated.jobs().is_empty());
}
