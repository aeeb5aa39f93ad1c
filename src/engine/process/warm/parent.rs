//! The parent interpreter, and the words that are spoken with it: see `parent.py`.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags,
    SocketType, recv, send, sendmsg, socketpair,
};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, kill_process_group, waitpid};
use serde_json::{Map, Value, json};

use super::{Forked, Job, LOCALE, broken};
use crate::engine::process::child::timeout_until;
use crate::engine::process::orphans::{MARK, Registered, Run};
use crate::engine::process::sandbox::Cell;
use crate::engine::process::{SYSTEM_PATH, command, python};

/// What the parent runs: too long for a command line that people look at.
const TEXT: &str = include_str!("parent.py");
const BOOT: &str = "import _socket; control = _socket.socket(fileno=0); \
                    exec(compile(control.recv(1 << 20), 'hero', 'exec'))";
/// How long the imports may take.
const START_WITHIN: Duration = Duration::from_mins(1);
/// How long a fork may take on a machine that is busy.
const FORK_WITHIN: Duration = Duration::from_secs(5);
/// The longest answer.
const ANSWER_BYTES_MAX: usize = 1024;

/// The process, with the socket on which it is told. Dropping it ends it.
#[derive(Debug)]
pub(super) struct Parent {
    child: Child,
    /// Keeps it from being taken for an orphan, until it was reaped.
    _registered: Registered,
    control: OwnedFd,
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
    ) -> io::Result<Self> {
        let (control, its) = pair(SocketType::SEQPACKET)?;
        // Its output is that of modules which greet whoever imports them. They are pipes, as those
        // of jobs are: the interpreter remembers what it found there.
        let (child, registered) = Registered::start(None, || {
            command(program)
                .args(options)
                .args(["-c", BOOT])
                .env_clear()
                .env("PATH", SYSTEM_PATH)
                .env("LANG", LOCALE)
                .env("PYTHONNOUSERSITE", "1")
                .env(MARK, Run::blank_mark())
                .stdin(Stdio::from(its))
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .process_group(0)
                .spawn()
        })?;
        let parent = Self { child, _registered: registered, control };
        let (names, hero) = (json!(preload), json!(python::MODULE));
        let text = format!("{TEXT}\nserve(control, {names}, {hero})\n");
        send(&parent.control, text.as_bytes(), SendFlags::NOSIGNAL)?;
        match answer(parent.control.as_fd(), Instant::now() + START_WITHIN)? {
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

    /// Makes a fork, which waits to be told what it is.
    ///
    /// # Errors
    /// Whatever means that this parent is of no more use.
    pub(super) fn fork(
        &mut self,
        run: Run,
        cell: &Cell,
        channel: Option<&OwnedFd>,
    ) -> io::Result<Waiting> {
        let (own, its) = pair(SocketType::STREAM)?;
        let (stdout, its_stdout) = pipe_with(PipeFlags::CLOEXEC)?;
        let (stderr, its_stderr) = pipe_with(PipeFlags::CLOEXEC)?;
        let mut kinds = b"j".to_vec();
        let mut given = vec![its.as_fd(), its_stdout.as_fd(), its_stderr.as_fd()];
        if let Some(channel) = channel {
            kinds.push(b'c');
            given.push(channel.as_fd());
        }
        if let Some(rules) = cell.rules() {
            kinds.push(b'r');
            given.push(rules);
        }
        let mut pid = 0;
        let registered = Registered::adopt(run, || {
            pid = self.ask(&kinds, &given)?;
            Ok(pid)
        })?;
        let waiting = Waiting { own, forked: Some(Forked { pid, registered, stdout, stderr }) };
        cell.take_in(pid)?;
        Ok(waiting)
    }

    fn ask(&self, kinds: &[u8], given: &[BorrowedFd<'_>]) -> io::Result<i32> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(5))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !control.push(SendAncillaryMessage::ScmRights(given)) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        sendmsg(&self.control, &[IoSlice::new(kinds)], &mut control, SendFlags::NOSIGNAL)?;
        let said = answer(self.control.as_fd(), Instant::now() + FORK_WITHIN)?;
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
    forked: Option<Forked>,
}

impl Waiting {
    /// Tells it what it is, and waits until it is shut in and its script begins.
    ///
    /// # Errors
    /// It could not begin; nothing of the script has run.
    pub(super) fn begin(
        mut self,
        run: Run,
        cell: &Cell,
        job: &Job<'_>,
        args: &[String],
    ) -> io::Result<Forked> {
        set_socket_timeout(&self.own, Timeout::Send, Some(FORK_WITHIN))?;
        let text = description(run, cell, job, args)?;
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            match send(&self.own, rest, SendFlags::NOSIGNAL) {
                Ok(sent) => rest = &rest[sent..],
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        match answer(self.own.as_fd(), Instant::now() + FORK_WITHIN)? {
            Some(said) if said.is_empty() => {
                self.forked.take().ok_or_else(|| broken("begun twice"))
            }
            Some(said) => Err(broken(&said)),
            None => Err(broken(&format!("its fork did not begin within {FORK_WITHIN:?}"))),
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(forked) = &self.forked
            && let Some(pid) = Pid::from_raw(forked.pid)
        {
            let _ = kill_process(pid, Signal::KILL);
            let _ = waitpid(Some(pid), WaitOptions::empty());
        }
    }
}

/// All that the fork has to know, in one line.
fn description(run: Run, cell: &Cell, job: &Job<'_>, args: &[String]) -> io::Result<String> {
    let text = |text: &std::ffi::OsStr| {
        text.to_str().map(str::to_owned).ok_or_else(|| broken("a variable or a path is no text"))
    };
    let mut env = Map::new();
    for (name, value) in &job.spec.env {
        env.insert(text(name)?, Value::String(text(value)?));
    }
    env.insert(MARK.to_owned(), Value::String(run.wide_mark()));
    if job.channel.is_some() {
        env.insert("HERO_FD".to_owned(), json!("3"));
    }
    let packages = job.prepared.packages.as_deref();
    let prefix = packages.map(|packages| text(packages.as_os_str())).transpose()?;
    let site = packages.map(site_of).transpose()?;
    let site = site.map(|site| text(site.as_os_str())).transpose()?;
    let limits: Vec<Value> =
        cell.limits().map(|(kind, soft, hard)| json!([kind, soft, hard])).collect();
    let description = json!({
        "script": text(job.prepared.script.as_os_str())?,
        "program": text(job.spec.program.as_os_str())?,
        "args": args,
        "cwd": text(job.spec.cwd.as_os_str())?,
        "env": env,
        "prefix": prefix,
        "site": site,
        "limits": limits,
        "confined": cell.is_confined(),
        "filter": cell.filter_hex(),
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
