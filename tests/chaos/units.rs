//! Real processes of the program, each with a way to Redis of its own, gone with the value.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::proxy::Lane;

/// The settings that all processes share.
pub(crate) struct Settings {
    pub(crate) lease: &'static str,
    pub(crate) heartbeat: &'static str,
    pub(crate) sweep: &'static str,
    pub(crate) crash_limit: u32,
    pub(crate) tasks: usize,
}

impl Settings {
    /// Short enough for a test to see many leases end.
    pub(crate) const SHORT: Self =
        Self { lease: "2s", heartbeat: "500ms", sweep: "100ms", crash_limit: 3, tasks: 4 };

    fn toml(&self, socket: &Path, folder: &Path) -> String {
        let Self { lease, heartbeat, sweep, crash_limit, tasks } = self;
        format!(
            "[redis]\nurl = \"redis+unix://{}\"\n\
             [supervisor]\nsweep_interval = \"{sweep}\"\n\
             [job]\nretry_backoff = \"50ms\"\ncrash_limit = {crash_limit}\nlog_dir = \"{}\"\n\
             [actor]\nlease = \"{lease}\"\nheartbeat = \"{heartbeat}\"\ntasks = {tasks}\n\
             drain_timeout = \"2s\"\n\
             [type.sh]\nengine = \"command\"\ncommand = [\"/bin/sh\", \"{{script}}\"]\n\
             sandbox.write = [\"{}\"]\n\
             [api]\nlisten = []\n\
             [unit.second]\nrole = \"supervisor\"\n",
            socket.display(),
            folder.display(),
            folder.display(),
        )
    }
}

/// One process, or the place of a process that does not run now.
pub(crate) struct Unit {
    name: String,
    config: PathBuf,
    log: PathBuf,
    pub(crate) lane: Lane,
    /// The parent of the folders of its jobs.
    of_jobs: Option<PathBuf>,
    child: Option<Child>,
}

impl Unit {
    /// The place of a unit whose files are in `folder`, and whose Redis is at `redis`.
    pub(crate) fn new(name: &str, settings: &Settings, folder: &Path, redis: &Path) -> Self {
        let lane = Lane::open(&folder.join(format!("{name}.sock")), redis);
        let config = folder.join(format!("{name}.toml"));
        std::fs::write(&config, settings.toml(lane.path(), folder)).expect("a configuration");
        let log = folder.join(format!("{name}.log"));
        Self { name: name.to_owned(), config, log, lane, of_jobs: None, child: None }
    }

    /// Puts the folders of its jobs there.
    pub(crate) fn with_jobs_in(mut self, folder: &Path) -> Self {
        self.of_jobs = Some(folder.to_owned());
        self
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Starts it, or starts it again.
    pub(crate) fn start(&mut self) {
        self.start_with(&[]);
    }

    /// Starts it with this in its environment.
    #[expect(clippy::disallowed_methods, reason = "the processes are what is tested")]
    pub(crate) fn start_with(&mut self, environment: &[(&str, &str)]) {
        let log = File::options().create(true).append(true).open(&self.log).expect("a log");
        let child = Command::new(env!("CARGO_BIN_EXE_hero"))
            .args(["run", &self.name, "--config"])
            .arg(&self.config)
            .env_remove("HERO_FAILPOINT")
            .env_remove("NOTIFY_SOCKET")
            .envs(environment.iter().copied())
            .envs(self.of_jobs.iter().map(|folder| ("RUNTIME_DIRECTORY", folder)))
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a second handle"))
            .stderr(log)
            .spawn()
            .expect("the program can be started");
        self.child = Some(child);
    }

    /// Returns whether it runs; reaps it if it has ended by itself.
    pub(crate) fn runs(&mut self) -> bool {
        let ended = self
            .child
            .as_mut()
            .is_some_and(|child| child.try_wait().expect("the state of a child").is_some());
        if ended {
            self.child = None;
        }
        self.child.is_some()
    }

    /// Ends it at once, as if the machine had been switched off.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            // A process that has just ended by itself is as dead.
            let _ = child.kill();
            child.wait().expect("reaping a child");
        }
    }

    /// Pauses it.
    pub(crate) fn pause(&self) {
        self.signal(Signal::SIGSTOP);
    }

    /// Lets it go on.
    pub(crate) fn go_on(&self) {
        self.signal(Signal::SIGCONT);
    }

    fn signal(&self, signal: Signal) {
        if let Some(child) = &self.child {
            let _ = kill(Pid::from_raw(child.id().cast_signed()), signal);
        }
    }

    /// Starts it again if it has ended by itself, as systemd would. Returns whether it had.
    pub(crate) fn revive(&mut self) -> bool {
        let ended = self.child.is_some() && !self.runs();
        if ended {
            self.start();
        }
        ended
    }

    /// Returns its log so far.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Unit {
    fn drop(&mut self) {
        self.kill();
    }
}
