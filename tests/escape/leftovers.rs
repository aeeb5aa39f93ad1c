//! Scripts that leave something behind: processes, folders, forged lines in the log of the daemon.
//! Jobs have no control groups here.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use nix::sys::signal::{Signal, kill};

use crate::support::{Hero, Process, Redis, keys, needs, wait_until};

/// An actor whose jobs have their folders in a folder of the test.
struct Stage {
    actor: Process,
    hero: Hero,
    redis: Redis,
}

impl Stage {
    fn new(settings: &[(&str, &str)]) -> Self {
        let redis = Redis::start();
        fs::create_dir(folders(&redis)).expect("a folder");
        let cold = Hero::on(&redis).set("type.python.warm", "false");
        let hero = settings.iter().fold(cold, |hero, (key, value)| hero.set(key, value));
        let actor = Self::start(&hero, &redis);
        Self { actor, hero, redis }
    }

    fn start(hero: &Hero, redis: &Redis) -> Process {
        let actor = hero.actor("python-default-1").tasks(2);
        actor.env("RUNTIME_DIRECTORY", &folders(redis)).start()
    }

    /// Runs a script to its end.
    fn runs(&self, script: &str) {
        self.hero.run(&["exec", "-t", "python", "--timeout", "25s", "-e", script]).code(0);
    }

    /// Starts a job that runs until [`Stage::end_older_job`].
    fn start_older_job(&self) {
        let end = self.redis.folder().join("end");
        let end = end.display();
        let script =
            format!("import os, time\nwhile not os.path.exists('{end}'): time.sleep(0.01)\n");
        self.redis.push_job("python", "older", &script);
        wait_until("the older job runs", || self.status("older") == "started");
    }

    fn end_older_job(&self) {
        fs::write(self.redis.folder().join("end"), "").expect("written");
        wait_until("the older job has ended", || self.status("older") == "finished");
    }

    fn status(&self, id: &str) -> String {
        self.redis.field(&keys::job(id), "status").unwrap_or_default()
    }

    /// Waits until the actor has no more children than these.
    fn has_children(&self, count: usize) {
        wait_until("no process of an ended job is left", || self.actor.children().len() == count);
    }
}

/// The folder that systemd would give the unit.
fn folders(redis: &Redis) -> PathBuf {
    redis.folder().join("folders")
}

/// Lists what is in the folder of each process.
fn job_folders(parent: &Path) -> Vec<PathBuf> {
    let list = |folder: &Path| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    list(parent).iter().flat_map(|folder| list(folder)).collect()
}

/// Starts a process in a session of its own with another environment, and waits until it runs.
fn hide(environment: &str) -> String {
    format!(
        "import os, time\nhome = os.environ['HOME']\nmark = os.environ['HERO_RUN_ID']\n\
         for number in range(1, 41):\n    if os.fork() == 0:\n        os.setsid()\n        \
         text = f'echo > {{home}}/{{number}}; exec sleep 600'\n        \
         os.execve('/bin/sh', ['sh', '-c', text], {environment})\n\
         for number in range(1, 41):\n    \
         while not os.path.exists(f'{{home}}/{{number}}'): time.sleep(0.01)\n"
    )
}

/// Hides processes by an environment while an older job runs; they end with their own job.
fn hidden_processes_end(environment: &str) {
    let stage = Stage::new(&[]);
    stage.start_older_job();
    stage.runs(&hide(environment));
    stage.has_children(1);
    stage.end_older_job();
    stage.has_children(0);
}

#[test]
fn process_without_an_environment_ends_with_its_job_while_an_older_job_runs() {
    hidden_processes_end("{}");
}

#[test]
fn process_with_the_mark_of_another_job_ends_with_its_own_job() {
    hidden_processes_end("{'HERO_RUN_ID': mark.split('.')[0] + '.' + str(number)}");
}

#[test]
fn chains_of_forks_end_with_their_job() {
    let stage = Stage::new(&[]);
    // Each process of a chain lives 5 ms. The chains end by themselves only after the test. The
    // script ends once each chain has passed from one process to another.
    let script = "import os, time\nend = time.monotonic() + 60\nfor n in range(30):\n    \
                  if os.fork() == 0:\n        os.setsid()\n        \
                  while time.monotonic() < end:\n            time.sleep(0.005)\n            \
                  if os.fork(): os._exit(0)\n            open(str(n), 'w').close()\n        \
                  os._exit(0)\n\
                  while len([n for n in os.listdir() if n.isdigit()]) < 30: time.sleep(0.001)\n";
    stage.runs(script);
    stage.has_children(0);
    stage.runs("print(1)");
    stage.has_children(0);
}

#[test]
fn folders_whose_permissions_a_job_took_away_serve_the_next_job() {
    let stage = Stage::new(&[]);
    // From the inner folder to the outer one, which cannot be passed afterwards.
    let script = "import os\nfolder = os.environ['HOME']\nfor _ in range(3):\n    \
                  folder = os.path.dirname(folder)\n    os.chmod(folder, 0)\n";
    for _ in 0..2 {
        stage.hero.run(&["exec", "-t", "python", "--timeout", "25s", "-e", script]).code(0);
        stage.runs("open('x', 'w').write('1'); print(open('x').read())");
    }
    let root = folders(&stage.redis);
    let of_process = fs::read_dir(&root).expect("readable").flatten().map(|entry| entry.path());
    for folder in of_process.chain([root.clone()]) {
        let mode = fs::metadata(&folder).expect("there").permissions().mode();
        assert_eq!(mode & 0o700, 0o700, "{}", folder.display());
    }
}

#[test]
fn processes_of_a_job_of_root_are_bounded() {
    if !needs("root", || nix::unistd::geteuid().is_root()) {
        return;
    }
    let stage = Stage::new(&[("type.python.sandbox.processes", "64")]);
    let script = "import os, time\nfor _ in range(100):\n    if os.fork() == 0:\n        \
                  os.setsid()\n        if os.fork() == 0: time.sleep(600)\n        os._exit(0)\n\
                  time.sleep(600)\n";
    let args = ["exec", "-t", "python", "--id", "bomb", "--timeout", "25s", "-e", script];
    stage.hero.run(&args).code(1).says("too many processes");
    let limit = stage.redis.field(&keys::job("bomb"), "limit");
    assert_eq!(limit.as_deref(), Some("processes"));
    stage.has_children(0);
}

#[test]
fn folders_nested_deeper_than_descriptors_are_removed() {
    let stage = Stage::new(&[("type.python.sandbox.disk", "\"0B\"")]);
    stage.runs("import os\nfor _ in range(2000):\n    os.mkdir('d')\n    os.chdir('d')\n");
    wait_until("the folder is removed", || job_folders(&folders(&stage.redis)).is_empty());
}

#[test]
fn folder_of_a_job_of_a_killed_actor_is_removed_by_its_successor() {
    let mut stage = Stage::new(&[]);
    stage.redis.push_job("python", "left", "import os, time\nos.mkdir('d')\ntime.sleep(600)\n");
    let folders = folders(&stage.redis);
    let is_at_work =
        || job_folders(&folders).first().is_some_and(|job| job.join("home/d").exists());
    wait_until("the job is at work", is_at_work);
    let left = job_folders(&folders);
    let jobs = stage.actor.children();
    stage.actor.kill();
    assert_eq!(job_folders(&folders), left);
    for job in jobs {
        kill(job, Signal::SIGKILL).expect("killing a job");
    }
    stage.actor = Stage::start(&stage.hero, &stage.redis);
    wait_until("the folder is removed", || !left[0].exists());
}

#[test]
fn output_of_a_job_adds_no_line_to_the_log_of_the_daemon() {
    let stage = Stage::new(&[]);
    for script in [
        "raise ValueError('a\\nFORGED b\\rFORGED \\x1b[2J')",
        "import sys; sys.exit('a\\nFORGED b\\rFORGED \\x1b[2J')",
    ] {
        stage.hero.run(&["exec", "-t", "python", "-e", script]).code(1);
    }
    wait_until("both ends are logged", || stage.actor.err().matches("ended in error").count() == 2);
    let err = stage.actor.err();
    assert!(!err.split(['\n', '\r']).any(|line| line.starts_with("FORGED")), "{err}");
    assert!(!err.contains('\u{1b}'), "{err}");
}
