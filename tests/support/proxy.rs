//! A proxy between a process and Redis that can be told to misbehave: to delay, to hold back, to
//! swallow, to close one direction or both.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The effect of a lane on its traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Traffic passes.
    Pass,
    /// Each piece is late by this much.
    Delay(Duration),
    /// Nothing passes until the mode changes; then all of it does, even if its sender has gone.
    Hold,
    /// Traffic is lost. A connection that lost any is cut when the mode changes.
    Swallow,
    /// New connections are refused, open ones are cut.
    Refuse,
    /// The lane is removed.
    Closed,
}

/// One direction of a connection that is closed alone.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Half {
    ToRedis,
    FromRedis,
}

/// The way of one process to Redis.
pub(crate) struct Lane {
    path: PathBuf,
    state: Arc<State>,
    listener: Option<JoinHandle<()>>,
}

struct State {
    upstream: PathBuf,
    inner: Mutex<Inner>,
    changed: Condvar,
}

struct Inner {
    mode: Mode,
    next: u64,
    /// Both ends of each connection: the process's, and Redis's.
    pairs: Vec<(u64, UnixStream, UnixStream)>,
}

impl Lane {
    /// A lane from a new socket at `path` to the one at `upstream`.
    pub(crate) fn open(path: &Path, upstream: &Path) -> Self {
        let inner = Inner { mode: Mode::Pass, next: 0, pairs: Vec::new() };
        let state = Arc::new(State {
            upstream: upstream.to_owned(),
            inner: Mutex::new(inner),
            changed: Condvar::new(),
        });
        let listener = UnixListener::bind(path).expect("a socket of the proxy");
        let own = Arc::clone(&state);
        let listener = thread::spawn(move || own.serve(&listener));
        Self { path: path.to_owned(), state, listener: Some(listener) }
    }

    /// The socket on which the process finds it.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn set(&self, mode: Mode) {
        self.state.set(mode);
    }

    /// Cuts every connection that is there.
    pub(crate) fn cut(&self) {
        self.state.lock().cut();
    }

    /// Closes one direction of every connection that is there.
    pub(crate) fn close_half(&self, half: Half) {
        for (_, process, redis) in &self.state.lock().pairs {
            // A connection that has gone meanwhile is closed already.
            let _ = match half {
                Half::ToRedis => redis.shutdown(Shutdown::Write),
                Half::FromRedis => process.shutdown(Shutdown::Write),
            };
        }
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        self.set(Mode::Closed);
        // Wakes the listener, which then sees that it is to go.
        let woken = UnixStream::connect(&self.path).is_ok();
        if let Some(listener) = self.listener.take().filter(|_| woken) {
            let _ = listener.join();
        }
    }
}

impl Inner {
    fn cut(&mut self) {
        for (_, process, redis) in self.pairs.drain(..) {
            let _ = process.shutdown(Shutdown::Both);
            let _ = redis.shutdown(Shutdown::Both);
        }
    }
}

impl State {
    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().expect("no thread of the proxy panics")
    }

    fn set(&self, mode: Mode) {
        let mut inner = self.lock();
        if matches!(mode, Mode::Refuse | Mode::Closed) {
            inner.cut();
        }
        inner.mode = mode;
        self.changed.notify_all();
    }

    fn serve(self: &Arc<Self>, listener: &UnixListener) {
        for process in listener.incoming().flatten() {
            let mut inner = self.lock();
            match inner.mode {
                Mode::Closed => return,
                Mode::Refuse => continue,
                _ => {}
            }
            // Without Redis the connection just ends.
            if let Ok(redis) = UnixStream::connect(&self.upstream) {
                let id = inner.next;
                inner.next += 1;
                self.pump(id, &process, &redis);
                self.pump(id, &redis, &process);
                inner.pairs.push((id, process, redis));
            }
        }
    }

    fn pump(self: &Arc<Self>, id: u64, from: &UnixStream, to: &UnixStream) {
        let own = Arc::clone(self);
        let from = from.try_clone().expect("a second handle");
        let to = to.try_clone().expect("a second handle");
        thread::spawn(move || own.carry(id, from, to));
    }

    /// Carries bytes one way until either end is closed or the lane cuts it.
    fn carry(&self, id: u64, mut from: UnixStream, mut to: UnixStream) {
        let mut buffer = vec![0; 64 << 10];
        while let Ok(read @ 1..) = from.read(&mut buffer) {
            if !self.lets_through() || to.write_all(&buffer[..read]).is_err() {
                break;
            }
        }
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
        self.lock().pairs.retain(|(other, ..)| *other != id);
    }

    /// Waits for as long as the mode asks. `false` if what was read is lost.
    #[expect(clippy::disallowed_methods, reason = "a late answer is what is injected here")]
    fn lets_through(&self) -> bool {
        let inner = self.lock();
        match inner.mode {
            Mode::Pass | Mode::Refuse => true,
            Mode::Closed => false,
            Mode::Delay(by) => {
                drop(inner);
                thread::sleep(by);
                true
            }
            Mode::Hold => {
                let held = self.changed.wait_while(inner, |inner| inner.mode == Mode::Hold);
                held.expect("no thread of the proxy panics").mode != Mode::Closed
            }
            Mode::Swallow => {
                let lost = self.changed.wait_while(inner, |inner| inner.mode == Mode::Swallow);
                drop(lost);
                false
            }
        }
    }
}
