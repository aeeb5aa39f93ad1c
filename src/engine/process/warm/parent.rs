//! The parent interpreter, and the words that are spoken with it: see `parent.py`.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags,
    SocketType, recv, send, sendmsg, socketpair,
};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, kill_process_group, waitpid};
use serde_json::{Map, Value, json};

use super::{Job, broken};
use crate::engine::process::deadline::timeout_until;
use crate::engine::process::orphans::{MARK, Registered, Run};
use crate::engine::process::prepare::{HERO_MODULE, LOCALE, SYSTEM_PATH};
use crate::engine::process::running::{PipeEnds, Started};
use crate::engine::process::{channel, command};
use crate::sandbox::{JobGroup, Restrictions, Sandbox};

/// What the parent runs: too long for a command line that people look at.
const TEXT: &str = include_str!("parent.py");
const BOOT: &str = "import _socket; control = _socket.socket(fileno=0); \
                    exec(compile(control.recv(1 << 20), 'hero', 'exec'))";
/// How long the imports may take.
const START_WITHIN: Duration = Duration::from_mins(1);
/// How long a fork may take on a machine that is busy.
const FORK_WITHIN: Duration = Duration::from_secs(5);
/// What a fork says before its script begins.
const BEGUN: &str = ".";
/// The longest answer.
const ANSWER_BYTES_MAX: usize = 1024;

/// The process, with the socket on which it is told. Dropping it ends it.
#[derive(Debug)]
pub(super) struct Parent {
    child: Child,
    /// Keeps it from being taken for an orphan, until it was reaped.
    _registered: Registered,
    /// A question and its answer at a time.
    control: Mutex<OwnedFd>,
}

impl Parent {
    /// Starts it and waits until it has imported everything.
    ///
    /// # Errors
    /// Those of starting it, and what it says of an import.
    pub(super) fn start(
        program: &Path,
        options: &[String],
        preload: &[String],
        sandbox: &Sandbox,
    ) -> io::Result<Self> {
        let (control, its) = pair(SocketType::SEQPACKET)?;
        // Its output is that of modules which greet whoever imports them. They are pipes, as those
        // of jobs are: the interpreter remembers what it found there.
        let (child, registered) = Registered::start(|| {
            command(program)
                .args(options)
                .args(["-c", BOOT])
                // With `-c` modules are looked for where it starts first.
                .current_dir("/")
                .env_clear()
                .env("PATH", SYSTEM_PATH)
                .env(LOCALE.0, LOCALE.1)
                // Nothing of the daemon's user: a job's own home is empty as it starts.
                .env("HOME", "/nonexistent")
                .env(MARK, Run::blank_mark())
                .stdin(Stdio::from(its))
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .process_group(0)
                .spawn()
        })?;
        let parent = Self { child, _registered: registered, control: Mutex::new(control) };
        let (names, hero) = (json!(preload), json!(HERO_MODULE));
        let cell = json!(cell(sandbox).to_string());
        let text = format!("{TEXT}\nserve(control, {names}, {hero}, {cell})\n");
        let control = parent.control();
        send(&*control, text.as_bytes(), SendFlags::NOSIGNAL)?;
        let said = answer(control.as_fd(), Instant::now() + START_WITHIN)?;
        drop(control);
        match said {
            Some(said) if said == "ready" => Ok(parent),
            Some(said) if !said.is_empty() => Err(broken(&said)),
            Some(_) => Err(broken("it ended as it started")),
            None => Err(broken(&format!("it was not ready within {START_WITHIN:?}"))),
        }
    }

    #[cfg(test)]
    pub(super) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap_or_default()
    }

    /// Makes a fork, in a control group if there is one for it, which waits to be told what it is. It
    /// is no run's yet.
    ///
    /// # Errors
    /// Whatever means that this parent is of no more use.
    pub(super) fn fork(&self, cgroup: Option<JobGroup>) -> io::Result<Waiting> {
        let (own, its) = pair(SocketType::STREAM)?;
        let mut pid = 0;
        let registered = Registered::adopt(None, || {
            pid = self.ask(its.as_fd())?;
            Ok(pid)
        })?;
        let waiting = Waiting { own, forked: Some(Fork { pid, registered, cgroup }) };
        // That takes the kernel a while, but no job waits for it yet.
        waiting.forked.iter().flat_map(|fork| &fork.cgroup).try_for_each(|it| it.add(pid))?;
        Ok(waiting)
    }

    fn control(&self) -> MutexGuard<'_, OwnedFd> {
        // Nothing panics while it is held.
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask(&self, its: BorrowedFd<'_>) -> io::Result<i32> {
        let control = self.control();
        send_with(control.as_fd(), b"f", &[its])?;
        let said = answer(control.as_fd(), Instant::now() + FORK_WITHIN)?;
        drop(control);
        let said =
            said.ok_or_else(|| broken(&format!("it made no fork within {FORK_WITHIN:?}")))?;
        match said.parse() {
            Ok(pid) if pid > 0 => Ok(pid),
            _ if said.is_empty() => Err(broken("it has ended")),
            _ => Err(broken(&said)),
        }
    }
}

impl Drop for Parent {
    fn drop(&mut self) {
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

/// A fork that waits. Dropping it ends it.
#[derive(Debug)]
pub(super) struct Waiting {
    own: OwnedFd,
    /// None once it has begun.
    forked: Option<Fork>,
}

/// The process of a fork.
#[derive(Debug)]
struct Fork {
    pid: i32,
    registered: Registered,
    /// The control group that it is in, if there is one.
    cgroup: Option<JobGroup>,
}

impl Waiting {
    /// Its process id.
    #[cfg(test)]
    pub(super) fn pid(&self) -> Option<i32> {
        self.forked.as_ref().map(|fork| fork.pid)
    }

    /// Tells it what it is, and waits until it is shut in and its script begins.
    ///
    /// # Errors
    /// It could not begin; nothing of the script has run.
    pub(super) fn begin(
        mut self,
        run: Run,
        cell: &Restrictions,
        job: &Job<'_>,
        args: &[String],
    ) -> io::Result<Started> {
        let (stdout, stderr) = (PipeEnds::open()?, PipeEnds::open()?);
        let mut given = vec![stdout.write_end.as_fd(), stderr.write_end.as_fd()];
        given.extend(job.channel);
        given.extend(cell.rules());
        let text = description(run, cell, job, args)?;
        if let Some(fork) = &self.forked {
            fork.registered.begins(run);
        }
        set_socket_timeout(&self.own, Timeout::Send, Some(FORK_WITHIN))?;
        let sent = send_with(self.own.as_fd(), text.as_bytes(), &given);
        // One that has died may have said why.
        let said = match answer(self.own.as_fd(), Instant::now() + FORK_WITHIN)? {
            Some(said) => said,
            None => format!("its fork did not begin within {FORK_WITHIN:?}"),
        };
        sent.or_else(|error| if said.is_empty() { Err(error) } else { Ok(()) })?;
        match said.as_str() {
            BEGUN => {}
            "" => return Err(broken("its fork has ended")),
            why => return Err(broken(why)),
        }
        let fork = self.forked.take().ok_or_else(|| broken("begun twice"))?;
        let Fork { pid, registered, cgroup } = fork;
        Ok(Started { pid, registered, cgroup, stdout, stderr, channel: None })
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(Fork { pid, .. }) = &self.forked
            && let Some(pid) = Pid::from_raw(*pid)
        {
            let _ = kill_process(pid, Signal::KILL);
            let _ = waitpid(Some(pid), WaitOptions::empty());
        }
    }
}

/// Sends all of a text, with descriptors at its beginning.
fn send_with(socket: BorrowedFd<'_>, text: &[u8], given: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(given)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut rest = text;
    while !rest.is_empty() {
        match sendmsg(socket, &[IoSlice::new(rest)], &mut control, SendFlags::NOSIGNAL) {
            Ok(sent) => {
                rest = &rest[sent..];
                // They are on their way, and not to be sent again.
                control.clear();
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// What every fork shuts itself into, whatever its job.
fn cell(sandbox: &Sandbox) -> Value {
    let limits = sandbox.limit_numbers().map(|(kind, soft, hard)| json!([kind, soft, hard]));
    json!({
        "limits": limits.collect::<Vec<Value>>(),
        "confined": sandbox.is_confined(),
        "filter": sandbox.filter_hex(),
    })
}

/// All that the fork has to know, in one line.
fn description(
    run: Run,
    cell: &Restrictions,
    job: &Job<'_>,
    args: &[String],
) -> io::Result<String> {
    let text = |text: &std::ffi::OsStr| {
        text.to_str().map(str::to_owned).ok_or_else(|| broken("a variable or a path is no text"))
    };
    let mut env = Map::new();
    for (name, value) in &job.spec.env {
        env.insert(text(name)?, Value::String(text(value)?));
    }
    env.insert(MARK.to_owned(), Value::String(run.wide_mark()));
    if job.channel.is_some() {
        env.insert(channel::VARIABLE.to_owned(), json!(channel::NUMBER));
    }
    let packages = job.prepared.packages.as_deref();
    let prefix = packages.map(|packages| text(packages.as_os_str())).transpose()?;
    let site = packages.map(site_of).transpose()?;
    let site = site.map(|site| text(site.as_os_str())).transpose()?;
    let description = json!({
        "script": text(job.prepared.script.as_os_str())?,
        "program": text(job.spec.program.as_os_str())?,
        "args": args,
        "cwd": text(job.spec.cwd.as_os_str())?,
        "env": env,
        "prefix": prefix,
        "site": site,
        "channel": job.channel.is_some(),
        "rules": cell.rules().is_some(),
    });
    Ok(format!("{description}\n"))
}

/// The folder of an environment's packages: `lib/python3.11/site-packages`.
fn site_of(packages: &Path) -> io::Result<std::path::PathBuf> {
    let folders = std::fs::read_dir(packages.join("lib"))?.flatten();
    let mut sites = folders.map(|folder| folder.path().join("site-packages"));
    sites.find(|site| site.is_dir()).ok_or_else(|| broken("its packages are not there"))
}

fn pair(kind: SocketType) -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)?)
}

/// What comes on a socket; empty if its other end is closed, `None` if nothing comes in time.
fn answer(socket: BorrowedFd<'_>, until: Instant) -> io::Result<Option<String>> {
    loop {
        let mut waits = [PollFd::from_borrowed_fd(socket, PollFlags::IN)];
        match poll(&mut waits, Some(&timeout_until(until))) {
            Ok(0) => return Ok(None),
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        let mut buffer = [0_u8; ANSWER_BYTES_MAX];
        match recv(socket, &mut buffer[..], RecvFlags::empty()) {
            Ok((count, _)) => {
                return Ok(Some(String::from_utf8_lossy(&buffer[..count]).into_owned()));
            }
            Err(Errno::INTR) => {}
            Err(Errno::CONNRESET) => return Ok(Some(String::new())),
            Err(error) => return Err(error.into()),
        }
    }
}
