//! The program `hero` on a private Redis: its commands, and its units as processes that end with
//! the test.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::cluster::NAMESPACE;
use super::{Cluster, Redis, access_lists, wait_until};

/// The program with a configuration for a private Redis.
pub(crate) struct Hero {
    folder: PathBuf,
    settings: BTreeMap<String, String>,
    /// Tables in TOML, after the settings.
    tables: String,
    /// The user of its processes, if it is another.
    user: Option<u32>,
    /// The local time zone.
    zone: &'static str,
    files: AtomicU32,
}

impl Hero {
    /// Returns a program with quick heartbeats and sweeps, and defaults otherwise.
    pub(crate) fn on(redis: &Redis) -> Self {
        Self::at(redis.folder(), &redis.url())
    }

    /// The same on a private cluster.
    pub(crate) fn on_cluster(cluster: &Cluster) -> Self {
        let hero = Self::at(cluster.folder(), &cluster.url());
        hero.set("redis.namespace", &format!("{NAMESPACE:?}"))
    }

    fn at(folder: &Path, url: &str) -> Self {
        let (log_dir, cache_dir) = (folder.join("logs"), folder.join("cache"));
        let spool_dir = folder.join("spool");
        let hero = Self {
            folder: folder.to_owned(),
            settings: BTreeMap::new(),
            tables: String::new(),
            user: None,
            zone: "UTC",
            files: AtomicU32::new(0),
        };
        hero.set("redis.url", &format!("{url:?}"))
            .set("job.log_dir", &format!("\"{}\"", log_dir.display()))
            .set("job.cache_dir", &format!("\"{}\"", cache_dir.display()))
            .set("type.python.sandbox.write", &format!("[\"{}\"]", folder.display()))
            .set("job.kill_grace", "\"200ms\"")
            .set("job.retry_backoff", "\"20ms\"")
            .set("job.requeue_after", "\"0s\"")
            .set("supervisor.sweep_interval", "\"100ms\"")
            .set("actor.heartbeat", "\"100ms\"")
            .set("api.listen", "[]")
            .set("amqp.logs.spool_dir", &format!("\"{}\"", spool_dir.display()))
    }

    /// Adds a setting: its dotted key, and its value in TOML.
    pub(crate) fn set(mut self, key: &str, value: &str) -> Self {
        self.settings.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Logs in as Redis's default user, who may do everything, in place of the users of the shipped access lists.
    pub(crate) fn with_default_user(self) -> Self {
        self.set("redis.username", "\"\"")
    }

    /// Sweeps as often as a test that waits for many sweeps needs. A resting supervisor takes 5 % of a processor so, and
    /// 1 % otherwise.
    pub(crate) fn quick_sweeps(self) -> Self {
        self.set("supervisor.sweep_interval", "\"20ms\"")
    }

    /// Adds tables in TOML.
    pub(crate) fn add(mut self, tables: &str) -> Self {
        self.tables.push_str(tables);
        self
    }

    /// Sets the local time zone.
    pub(crate) fn in_zone(self, zone: &'static str) -> Self {
        Self { zone, ..self }
    }

    /// Runs everything as another user, without other groups.
    pub(crate) fn of_user(self, user: u32) -> Self {
        Self { user: Some(user), ..self }
    }

    /// A unit that runs jobs.
    pub(crate) fn actor(&self, unit: &str) -> Unit<'_> {
        Unit {
            hero: self,
            name: unit.to_owned(),
            tasks: None,
            args: Vec::new(),
            env: Vec::new(),
            enter: None,
        }
    }

    /// The supervisor.
    pub(crate) fn supervisor(&self) -> Unit<'_> {
        self.actor("supervisor")
    }

    /// Runs a command to its end.
    #[track_caller]
    pub(crate) fn run(&self, args: &[&str]) -> Done {
        self.run_with_input(args, "")
    }

    /// Runs a command to its end with this standard input.
    #[track_caller]
    pub(crate) fn run_with_input(&self, args: &[&str], input: &str) -> Done {
        self.begin_with_input(args, input).ends()
    }

    /// Starts a command, and does not wait for its end.
    pub(crate) fn begin(&self, args: &[&str]) -> Process {
        self.begin_with_input(args, "")
    }

    /// Runs a command to its end with standard output that cannot be written: a pipe without a
    /// reader, or a full disk.
    #[track_caller]
    pub(crate) fn run_without_output(&self, args: &[&str], pipe: bool) -> Done {
        let stdout = if pipe {
            Stdio::from(std::io::pipe().expect("a pipe").1)
        } else {
            File::options().write(true).open("/dev/full").expect("/dev/full").into()
        };
        let (config, out, err) =
            (self.config_for(args), self.new_file("out"), self.new_file("err"));
        let mut command = self.command(&config);
        command.args(args).stdin(Stdio::null());
        Process::start_with(command, &args.join(" "), stdout, out, err).ends()
    }

    /// Starts a command at a terminal of its own; all its output is in standard output.
    pub(crate) fn begin_at_terminal(&self, args: &[&str]) -> Process {
        self.begin_at_keyboard(args, Stdio::null())
    }

    /// Starts a command at a terminal of 80 columns and 24 lines, with a keyboard.
    #[expect(clippy::disallowed_methods, reason = "tests start the program they test")]
    pub(crate) fn begin_at_keyboard(&self, args: &[&str], keyboard: Stdio) -> Process {
        let words: Vec<String> = std::iter::once(env!("CARGO_BIN_EXE_hero"))
            .chain(args.iter().copied())
            .map(|word| format!("'{word}'"))
            .collect();
        let line = format!("stty rows 24 cols 80; exec {}", words.join(" "));
        let mut command = Command::new("script");
        let path = std::env::var_os("PATH").unwrap_or_default();
        command.args(["-qefc", &line, "/dev/null"]).stdin(keyboard);
        command.env_clear().env("PATH", path).env("HERO_CONFIG", self.config_for(args));
        Process::start(command, &args.join(" "), self.new_file("out"), self.new_file("err"))
    }

    fn begin_with_input(&self, args: &[&str], input: &str) -> Process {
        let stdin = self.new_file("in");
        fs::write(&stdin, input).expect("writing the input");
        let config = self.config_for(args);
        let mut command = self.command(&config);
        command.args(args).stdin(File::open(stdin).expect("the input was written"));
        Process::start(command, &args.join(" "), self.new_file("out"), self.new_file("err"))
    }

    fn command(&self, config: &Path) -> Command {
        self.command_of(env!("CARGO_BIN_EXE_hero"), config)
    }

    /// Returns a command that finds the configuration, as the user of this program.
    pub(crate) fn command_of_user(&self, program: &str) -> Command {
        self.command_of(program, &self.config_for(&[]))
    }

    #[expect(clippy::disallowed_methods, reason = "tests start the program they test")]
    fn command_of(&self, program: &str, config: &Path) -> Command {
        let mut command = match self.user {
            None => Command::new(program),
            Some(user) => {
                let mut command = Command::new("setpriv");
                let ids = [format!("--reuid={user}"), format!("--regid={user}")];
                command.args(ids).args(["--clear-groups", program]);
                command
            }
        };
        let path = std::env::var_os("PATH").unwrap_or_default();
        command.env_clear().env("PATH", path).env("HERO_CONFIG", config).env("TZ", self.zone);
        command.current_dir(&self.folder);
        command
    }

    /// Returns the command, started by another program with arguments.
    fn command_by(&self, enter: &[OsString], config: &Path) -> Command {
        let [program, args @ ..] = enter else { return self.command(config) };
        let mut command = self.command_of(program.to_str().expect("a program"), config);
        command.args(args).arg(env!("CARGO_BIN_EXE_hero"));
        command
    }

    /// A configuration file with the settings and these.
    /// Writes its configuration into a new file.
    pub(crate) fn config_file(&self) -> PathBuf {
        self.config_for(&[])
    }

    /// The configuration with the login for the arguments of a command.
    fn config_for(&self, args: &[&str]) -> PathBuf {
        self.config(&access_lists::login(&self.folder, &self.settings, args))
    }

    fn config(&self, more: &[(String, String)]) -> PathBuf {
        let file = self.new_file("toml");
        let own = self.settings.iter();
        let lines: Vec<String> = own
            .chain(more.iter().map(|(key, value)| (key, value)))
            .map(|(key, value)| format!("{key} = {value}\n"))
            .collect();
        let text = format!("{}{}", lines.concat(), self.tables);
        fs::write(&file, text).expect("writing the configuration");
        file
    }

    fn new_file(&self, extension: &str) -> PathBuf {
        let number = self.files.fetch_add(1, Ordering::Relaxed);
        let own = std::ptr::from_ref(self).addr();
        self.folder.join(format!("{own:x}-{number}.{extension}"))
    }
}

/// A unit that has not started yet.
pub(crate) struct Unit<'a> {
    hero: &'a Hero,
    name: String,
    tasks: Option<usize>,
    args: Vec<String>,
    env: Vec<(String, PathBuf)>,
    /// The program that starts it, with arguments.
    enter: Option<Vec<OsString>>,
}

impl Unit<'_> {
    /// Sets the jobs that it runs at once.
    pub(crate) fn tasks(mut self, tasks: usize) -> Self {
        self.tasks = Some(tasks);
        self
    }

    /// Adds arguments to its command line.
    pub(crate) fn args(mut self, args: &[&str]) -> Self {
        self.args = args.iter().map(|arg| (*arg).to_owned()).collect();
        self
    }

    /// Adds an environment variable that names a folder.
    pub(crate) fn env(mut self, name: &str, folder: &Path) -> Self {
        self.env.push((name.to_owned(), folder.to_owned()));
        self
    }

    /// Starts it in a control group.
    pub(crate) fn in_cgroup(self, folder: &Path) -> Self {
        let enter = "echo 0 > \"$0\"/cgroup.procs && exec \"$@\"";
        self.entered_by(&["/bin/sh".as_ref(), "-c".as_ref(), enter.as_ref(), folder.as_ref()])
    }

    /// Starts it on a machine of its own, as far as it can tell: with this host name and a machine id that follows from it.
    /// Needs root.
    pub(crate) fn on_machine(self, host: &str) -> Self {
        let id = self.hero.folder.join(format!("{host}.machine-id"));
        let hash = host.bytes().fold(7, |hash: u64, byte| hash.wrapping_mul(31) + u64::from(byte));
        fs::write(&id, format!("{hash:032x}\n")).expect("writing a machine id");
        let enter =
            "mount --bind \"$0\" /etc/machine-id && hostname \"$1\" && shift && exec \"$@\"";
        let program = ["unshare", "-m", "-u", "/bin/sh", "-c", enter].map(OsStr::new);
        self.entered_by(&[&program[..], &[id.as_os_str(), host.as_ref()]].concat())
    }

    fn entered_by(mut self, program: &[&OsStr]) -> Self {
        self.enter = Some(program.iter().map(|part| (*part).to_owned()).collect());
        self
    }

    /// Starts it, and waits until it serves.
    #[track_caller]
    pub(crate) fn start(self) -> Process {
        let what = format!("{} is ready", self.name);
        let mut process = self.begin();
        wait_until(&what, || process.err().contains("ready: ") || process.has_ended());
        assert!(process.err().contains("ready: "), "it ended instead");
        process
    }

    /// Starts it, and does not wait.
    pub(crate) fn begin(self) -> Process {
        let Self { hero, name, tasks, args, env, enter } = self;
        let tasks = tasks.map(|tasks| (format!("unit.{name}.tasks"), tasks.to_string()));
        let login = access_lists::login(&hero.folder, &hero.settings, &["run", &name]);
        let config = hero.config(&login.into_iter().chain(tasks).collect::<Vec<_>>());
        let mut command = hero.command_by(&enter.unwrap_or_default(), &config);
        command.arg("run").arg(&name).args(args).envs(env).stdin(Stdio::null());
        let (out, err) = (hero.new_file("out"), hero.new_file("err"));
        let mut process = Process::start(command, &name, out, err);
        process.config = Some(config);
        process
    }
}

/// A process of the program. It is killed at the end of the test; a failed test shows the end of
/// its standard error.
pub(crate) struct Process {
    name: String,
    child: Child,
    ended: Option<ExitStatus>,
    config: Option<PathBuf>,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl Process {
    fn start(command: Command, name: &str, stdout: PathBuf, stderr: PathBuf) -> Self {
        let file = File::create(&stdout).expect("creating a file for output");
        Self::start_with(command, name, file.into(), stdout, stderr)
    }

    /// Starts it with other standard output than the file that [`Process::out`] reads.
    fn start_with(
        mut command: Command,
        name: &str,
        output: Stdio,
        stdout: PathBuf,
        stderr: PathBuf,
    ) -> Self {
        let file = File::create(&stderr).expect("creating a file for output");
        let child = command.stdout(output).stderr(file).spawn().expect("starting the program");
        Self { name: name.to_owned(), child, ended: None, config: None, stdout, stderr }
    }

    /// Returns its standard output so far.
    pub(crate) fn out(&self) -> String {
        read(&self.stdout)
    }

    /// Returns its standard error so far.
    pub(crate) fn err(&self) -> String {
        read(&self.stderr)
    }

    /// Returns the configuration file of a unit.
    pub(crate) fn config(&self) -> &Path {
        self.config.as_deref().expect("a unit has one")
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal.
    #[track_caller]
    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid().cast_signed()), signal).expect("signalling a process");
    }

    /// Ends it as a crash would.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("killing a process");
        self.ended = Some(self.child.wait().expect("reaping a process"));
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().expect("looking at a process");
        }
        self.ended.is_some()
    }

    /// Waits for its end.
    #[track_caller]
    pub(crate) fn ends(mut self) -> Done {
        wait_until(&format!("`{}` ends", self.name), || self.has_ended());
        let code = self.ended.and_then(|status| status.code().or(status.signal().map(|s| s + 128)));
        let code = code.expect("a process ends with a code or a signal");
        let bytes = fs::read(&self.stdout).unwrap_or_default();
        Done { name: self.name.clone(), code, stdout: self.out(), bytes, stderr: self.err() }
    }
}

impl Process {
    /// Returns the children of all its threads that are not reaped.
    pub(crate) fn children(&self) -> Vec<Pid> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.child.id()));
        let listed = tasks.into_iter().flatten().flatten();
        let listed = listed.map(|task| fs::read_to_string(task.path().join("children")));
        let pids: String = listed.flatten().collect();
        pids.split_whitespace().flat_map(str::parse).map(Pid::from_raw).collect()
    }
}

impl Drop for Process {
    #[expect(clippy::print_stderr, reason = "the test fails, and this says why")]
    fn drop(&mut self) {
        const SHOWN_LINES: usize = 30;
        if !self.has_ended() {
            let jobs = self.children();
            let _ = self.child.kill();
            let _ = self.child.wait();
            // Its jobs would go on running.
            for job in jobs {
                let _ = kill(job, Signal::SIGKILL);
            }
        }
        if std::thread::panicking() {
            let text = self.err();
            let lines: Vec<&str> = text.lines().collect();
            let last = &lines[lines.len().saturating_sub(SHOWN_LINES)..];
            eprintln!("--- {}, the end of its standard error:\n{}", self.name, last.join("\n"));
        }
    }
}

/// A command that has ended.
#[derive(Debug)]
pub(crate) struct Done {
    name: String,
    pub(crate) code: i32,
    pub(crate) stdout: String,
    /// Standard output as it was written.
    pub(crate) bytes: Vec<u8>,
    pub(crate) stderr: String,
}

impl Done {
    /// It exited with this code.
    #[track_caller]
    pub(crate) fn code(self, code: i32) -> Self {
        assert_eq!(self.code, code, "`{}` said: {}", self.name, self.stderr);
        self
    }

    /// It printed exactly this.
    #[track_caller]
    pub(crate) fn stdout(self, text: &str) -> Self {
        assert_eq!(self.stdout, text, "`{}` said: {}", self.name, self.stderr);
        self
    }

    /// Its standard error has this in it.
    #[track_caller]
    pub(crate) fn says(self, text: &str) -> Self {
        assert!(self.stderr.contains(text), "`{}` said: {}", self.name, self.stderr);
        self
    }
}

fn read(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}
