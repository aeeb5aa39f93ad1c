//! The parent interpreter, and the messages to it: see `parent.py`.

use std::fs::metadata;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags};
use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::socket::{
    AddressFamily, ControlMessage, MsgFlags, SockFlag, SockType, recv, sendmsg, socketpair,
};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;
use serde_json::{Map, Value, json};

use crate::engine::process::prepare::{
    HERO_MODULE, LOCALE, Prepared, SEMAPHORES, SYSTEM_PATH, UNBUFFERED,
};
use crate::engine::process::start::registry::{MARK, Registered, Run, command};
use crate::engine::process::start::spec::{CHANNEL, Pipes, Spec};
use crate::sandbox::{JobGroup, Restrictions, Sandbox, poll_until, set_run_number};

/// The program of the parent, which is too long for a command line.
const TEXT: &str = include_str!("parent.py");
const BOOT: &str = "import _socket; control = _socket.socket(fileno=0); \
                    exec(compile(control.recv(1 << 20), 'hero', 'exec'))";
/// The time limit of the imports.
const START_WITHIN: Duration = Duration::from_mins(1);
/// The time limit of a fork, on a busy machine.
const FORK_WITHIN: Duration = Duration::from_secs(5);
/// The message of a fork before its script begins.
const BEGUN: &str = ".";
/// The largest answer.
const ANSWER_BYTES_MAX: usize = 1024;
/// The first line of the answer of a parent that is ready. Then it names the files of its modules.
const READY: &str = "ready";
/// The largest answer of this kind, as in `parent.py`.
const READY_BYTES_MAX: usize = 128 << 10;

/// The parent process. Dropping it ends it.
#[derive(Debug)]
pub(super) struct Parent {
    pub(super) child: Child,
    /// Keeps it from being taken for an orphan.
    _registered: Registered,
    /// The socket to it. Locked for one question and its answer.
    control: Mutex<OwnedFd>,
    /// The files of the modules that it has imported.
    pub(super) modules: ModuleFiles,
}

impl Parent {
    /// Starts it and waits until it has imported the modules.
    pub(super) fn start(
        program: &Path,
        options: &[String],
        preload: &[String],
        sandbox: &Sandbox,
    ) -> io::Result<Self> {
        let (unix, kind) = (AddressFamily::Unix, SockType::SeqPacket);
        let (control, its) = socketpair(unix, kind, None, SockFlag::SOCK_CLOEXEC)?;
        // Imported modules may print. Outputs are pipes like the jobs', as the interpreter remembers what they are.
        let (child, registered) = Registered::start(|| {
            command(program)
                .args(options)
                .args(["-c", BOOT])
                // With `-c` modules are searched in the working directory first.
                .current_dir("/")
                .env_clear()
                .env("PATH", SYSTEM_PATH)
                .env(LOCALE.0, LOCALE.1)
                .env(UNBUFFERED.0, UNBUFFERED.1)
                // Not the home of the daemon's user: a job's home is empty when it starts.
                .env("HOME", "/nonexistent")
                .env(MARK, Run::blank_mark())
                .stdin(Stdio::from(its))
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .process_group(0)
                .spawn()
        })?;
        let mut parent = Self {
            child,
            _registered: registered,
            control: Mutex::new(control),
            modules: ModuleFiles::default(),
        };
        let names = json!(preload);
        let (hero, semaphores) = (json!(HERO_MODULE), json!(SEMAPHORES));
        let cell = json!(common_restrictions(sandbox).to_string());
        let text = format!("{TEXT}\nserve(control, {names}, {hero}, {semaphores}, {cell})\n");
        let control = parent.control();
        send_with(control.as_fd(), text.as_bytes(), &[])?;
        let said = answer(control.as_fd(), Instant::now() + START_WITHIN, READY_BYTES_MAX)?;
        drop(control);
        match said {
            Some(said) if said.lines().next() == Some(READY) => {
                parent.modules = ModuleFiles::of(said.lines().skip(1));
                Ok(parent)
            }
            Some(said) if !said.is_empty() => Err(io::Error::other(said)),
            Some(_) => Err(io::Error::other("it ended as it started")),
            None => Err(io::Error::other(format!("it was not ready within {START_WITHIN:?}"))),
        }
    }

    /// Makes a fork that waits for its job, and adds it to a control group. Any error means that this parent is useless.
    pub(super) fn fork(&self, group: Option<JobGroup>) -> io::Result<WaitingFork> {
        let (own, its) = UnixStream::pair()?;
        let (pid, registered) = Registered::adopt(None, || self.ask(its.as_fd()))?;
        let waiting = WaitingFork { own, fork: Some(Fork { pid, registered, group }) };
        for group in waiting.fork.iter().flat_map(|fork| &fork.group) {
            group.add(pid.as_raw())?;
        }
        Ok(waiting)
    }

    fn control(&self) -> MutexGuard<'_, OwnedFd> {
        // Nothing panics while it is held.
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask(&self, its: BorrowedFd<'_>) -> io::Result<Pid> {
        let control = self.control();
        send_with(control.as_fd(), b"f", &[its])?;
        let said = answer(control.as_fd(), Instant::now() + FORK_WITHIN, ANSWER_BYTES_MAX)?;
        drop(control);
        let said = said
            .ok_or_else(|| io::Error::other(format!("it did not fork within {FORK_WITHIN:?}")))?;
        match said.parse() {
            Ok(pid) if pid > 0 => Ok(Pid::from_raw(pid)),
            _ if said.is_empty() => Err(io::Error::other("it has ended")),
            _ => Err(io::Error::other(said)),
        }
    }
}

impl Drop for Parent {
    fn drop(&mut self) {
        if let Ok(group) = i32::try_from(self.child.id()) {
            let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
        }
        let _ = self.child.wait();
    }
}

pub(super) struct ForkJob<'a> {
    pub(super) run: Run,
    pub(super) restrictions: &'a Restrictions,
    pub(super) spec: &'a Spec<'a>,
    pub(super) prepared: &'a Prepared,
    /// The arguments after the script.
    pub(super) args: &'a [String],
}

/// A fork that waits for its job. Dropping it ends it.
#[derive(Debug)]
pub(super) struct WaitingFork {
    own: UnixStream,
    /// `None` once its job has begun.
    pub(super) fork: Option<Fork>,
}

/// The process of a fork.
#[derive(Debug)]
pub(super) struct Fork {
    pub(super) pid: Pid,
    pub(super) registered: Registered,
    /// The control group of its job, if jobs have any.
    pub(super) group: Option<JobGroup>,
}

impl WaitingFork {
    /// Passes a job to it, and returns once the script begins in its sandbox. After an error nothing of it has run.
    pub(super) fn begin(mut self, job: &ForkJob<'_>, pipes: &Pipes) -> io::Result<Fork> {
        let mut given = vec![pipes.stdout.write_end.as_fd(), pipes.stderr.write_end.as_fd()];
        given.extend(pipes.of_channel());
        given.extend(job.restrictions.rules());
        let text = description(job, pipes.channel.is_some())?;
        if let Some(fork) = &self.fork {
            fork.registered.begins(job.run);
            set_run_number(fork.pid, job.run.number())?;
        }
        self.own.set_write_timeout(Some(FORK_WITHIN))?;
        let sent = send_with(self.own.as_fd(), text.as_bytes(), &given);
        // A fork that has died may have said why.
        let said = match answer(self.own.as_fd(), Instant::now() + FORK_WITHIN, ANSWER_BYTES_MAX)? {
            Some(said) => said,
            None => format!("its fork did not begin within {FORK_WITHIN:?}"),
        };
        sent.or_else(|error| if said.is_empty() { Err(error) } else { Ok(()) })?;
        match said.as_str() {
            BEGUN => {}
            "" => return Err(io::Error::other("its fork has ended")),
            why => return Err(io::Error::other(why)),
        }
        self.fork.take().ok_or_else(|| io::Error::other("begun twice"))
    }
}

impl Drop for WaitingFork {
    fn drop(&mut self) {
        if let Some(Fork { pid, .. }) = &self.fork {
            let _ = kill(*pid, Signal::SIGKILL);
            let _ = waitpid(*pid, None);
        }
    }
}

/// The shortest time between two looks at the files.
const LOOK_EACH: Duration = Duration::from_millis(500);

/// The files as they were after the import.
#[derive(Debug, Default)]
pub(super) struct ModuleFiles {
    files: Vec<(PathBuf, FileState)>,
    looked_at: Mutex<Option<Instant>>,
}

/// The device, inode, size and time of the last change: some of these change with the content.
type FileState = (u64, u64, u64, (i64, i64));

impl ModuleFiles {
    pub(super) fn of<'a>(paths: impl Iterator<Item = &'a str>) -> Self {
        let files = paths.map(PathBuf::from).filter_map(|path| Some((state(&path)?, path)));
        Self { files: files.map(|(state, path)| (path, state)).collect(), ..Self::default() }
    }

    /// Returns a file that has changed or is gone. Looks twice a second at most.
    pub(super) fn changed(&self) -> Option<&PathBuf> {
        {
            let mut looked_at = self.looked_at.lock().ok()?;
            if looked_at.is_some_and(|at| at.elapsed() < LOOK_EACH) {
                return None;
            }
            *looked_at = Some(Instant::now());
        }
        let is_changed = |(path, before): &&(PathBuf, FileState)| state(path) != Some(*before);
        self.files.iter().find(is_changed).map(|(path, _)| path)
    }
}

fn state(path: &PathBuf) -> Option<FileState> {
    let of = metadata(path).ok()?;
    Some((of.dev(), of.ino(), of.size(), (of.mtime(), of.mtime_nsec())))
}

/// Sends a text, with descriptors at its beginning.
fn send_with(socket: BorrowedFd<'_>, text: &[u8], given: &[BorrowedFd<'_>]) -> io::Result<()> {
    let given: Vec<_> = given.iter().map(AsRawFd::as_raw_fd).collect();
    let rights = [ControlMessage::ScmRights(&given)];
    let mut control = if given.is_empty() { &[] } else { rights.as_slice() };
    let mut rest = text;
    while !rest.is_empty() {
        let part = [IoSlice::new(rest)];
        match sendmsg::<()>(socket.as_raw_fd(), &part, control, MsgFlags::MSG_NOSIGNAL, None) {
            Ok(sent) => {
                rest = &rest[sent..];
                // The descriptors are sent only once.
                control = &[];
            }
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Returns the restrictions that all forks have.
fn common_restrictions(sandbox: &Sandbox) -> Value {
    let limits = sandbox.limit_numbers().map(|(kind, soft, hard)| json!([kind, soft, hard]));
    json!({
        "limits": limits.collect::<Vec<Value>>(),
        "confined": sandbox.is_confined(),
        "filter": sandbox.filter_hex(),
    })
}

/// Describes a job to its fork in one line.
fn description(job: &ForkJob<'_>, has_channel: bool) -> io::Result<String> {
    let text = |text: &std::ffi::OsStr| {
        let text = text.to_str().map(str::to_owned);
        text.ok_or_else(|| io::Error::other("a variable or a path is not UTF-8"))
    };
    let mut env = Map::new();
    for (name, value) in &job.spec.env {
        env.insert(text(name)?, Value::String(text(value)?));
    }
    env.insert(MARK.to_owned(), Value::String(job.run.wide_mark()));
    if has_channel {
        env.extend(CHANNEL.map(|(name, number)| (name.to_owned(), json!(number))));
    }
    let packages = job.prepared.packages.as_deref();
    let prefix = packages.map(|packages| text(packages.as_os_str())).transpose()?;
    let site = packages.map(site_of).transpose()?;
    let site = site.map(|site| text(site.as_os_str())).transpose()?;
    let description = json!({
        "script": text(job.prepared.script.as_os_str())?,
        "program": text(job.spec.program.as_os_str())?,
        "args": job.args,
        "modules": text(job.prepared.modules.as_os_str())?,
        "cwd": text(job.spec.cwd.as_os_str())?,
        "env": env,
        "prefix": prefix,
        "site": site,
        "channel": has_channel,
        "rules": job.restrictions.rules().is_some(),
    });
    Ok(format!("{description}\n"))
}

/// Returns the folder of an environment's packages: `lib/python3.11/site-packages`.
fn site_of(packages: &Path) -> io::Result<PathBuf> {
    let folders = std::fs::read_dir(packages.join("lib"))?.flatten();
    let mut sites = folders.map(|folder| folder.path().join("site-packages"));
    sites.find(|site| site.is_dir()).ok_or_else(|| io::Error::other("its packages are not there"))
}

/// Receives an answer; empty if the other end is closed, `None` if nothing comes in time.
fn answer(socket: BorrowedFd<'_>, until: Instant, bytes_max: usize) -> io::Result<Option<String>> {
    if !poll_until(&mut [PollFd::new(socket, PollFlags::POLLIN)], until)? {
        return Ok(None);
    }
    let mut buffer = vec![0_u8; bytes_max];
    loop {
        match recv(socket.as_raw_fd(), &mut buffer, MsgFlags::empty()) {
            Ok(count) => return Ok(Some(String::from_utf8_lossy(&buffer[..count]).into_owned())),
            Err(Errno::EINTR) => {}
            Err(Errno::ECONNRESET) => return Ok(Some(String::new())),
            Err(error) => return Err(error.into()),
        }
    }
}
