//! A proxy between a process and a server that can be told to misbehave: to delay, to hold back, to
//! swallow, to close one direction or both. It serves Redis and MariaDB on sockets, RabbitMQ over TCP.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
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
    /// A connection over which this text comes is cut, and the text is lost.
    Cut(&'static str),
    /// New connections are refused, open ones are cut.
    Refuse,
    /// The lane is removed.
    Closed,
}

/// One direction of a connection that is closed alone.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Half {
    ToServer,
    FromServer,
}

/// The way of one process to a server.
pub(crate) struct Lane {
    place: Place,
    state: Arc<State>,
    listener: Option<JoinHandle<()>>,
}

/// The address of a listener.
#[derive(Debug, Clone)]
enum Place {
    Socket(PathBuf),
    Port(SocketAddr),
}

enum Listener {
    Socket(UnixListener),
    Port(TcpListener),
}

/// One end of a connection.
enum End {
    Socket(UnixStream),
    Port(TcpStream),
}

struct State {
    upstream: Place,
    inner: Mutex<Inner>,
    changed: Condvar,
}

struct Inner {
    mode: Mode,
    next: u64,
    /// Both ends of each connection: the process's, and the server's.
    pairs: Vec<(u64, End, End)>,
}

impl Lane {
    /// A lane from a new socket at `path` to the one at `upstream`.
    pub(crate) fn open(path: &Path, upstream: &Path) -> Self {
        let listener = UnixListener::bind(path).expect("a socket of the proxy");
        let (place, upstream) =
            (Place::Socket(path.to_owned()), Place::Socket(upstream.to_owned()));
        Self::between(Listener::Socket(listener), place, upstream)
    }

    /// A lane from a new port of this machine to another one.
    pub(crate) fn to_port(upstream: u16) -> Self {
        let local = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let listener = TcpListener::bind(local(0)).expect("a port of the proxy");
        let place = Place::Port(listener.local_addr().expect("an address"));
        Self::between(Listener::Port(listener), place, Place::Port(local(upstream)))
    }

    fn between(listener: Listener, place: Place, upstream: Place) -> Self {
        let inner = Inner { mode: Mode::Pass, next: 0, pairs: Vec::new() };
        let state = Arc::new(State { upstream, inner: Mutex::new(inner), changed: Condvar::new() });
        let own = Arc::clone(&state);
        let listener = thread::spawn(move || own.serve(&listener));
        Self { place, state, listener: Some(listener) }
    }

    /// The socket where the process finds it.
    pub(crate) fn path(&self) -> &Path {
        let Place::Socket(path) = &self.place else { panic!("the lane is a port") };
        path
    }

    /// The port where the process finds it.
    pub(crate) fn port(&self) -> u16 {
        let Place::Port(address) = &self.place else { panic!("the lane is a socket") };
        address.port()
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
        for (_, process, server) in &self.state.lock().pairs {
            // A connection that has gone meanwhile is closed already.
            let _ = match half {
                Half::ToServer => server.shutdown(Shutdown::Write),
                Half::FromServer => process.shutdown(Shutdown::Write),
            };
        }
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        self.set(Mode::Closed);
        // Wakes the listener, which then sees that it is to go.
        let woken = self.place.connect().is_ok();
        if let Some(listener) = self.listener.take().filter(|_| woken) {
            let _ = listener.join();
        }
    }
}

impl Place {
    fn connect(&self) -> io::Result<End> {
        match self {
            Self::Socket(path) => UnixStream::connect(path).map(End::Socket),
            Self::Port(address) => TcpStream::connect(address).and_then(End::of_port),
        }
    }
}

impl Listener {
    fn accept(&self) -> io::Result<End> {
        match self {
            Self::Socket(listener) => listener.accept().map(|(stream, _)| End::Socket(stream)),
            Self::Port(listener) => listener.accept().and_then(|(stream, _)| End::of_port(stream)),
        }
    }
}

impl End {
    fn of_port(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self::Port(stream))
    }

    fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        match self {
            Self::Socket(stream) => stream.shutdown(how),
            Self::Port(stream) => stream.shutdown(how),
        }
    }

    fn try_clone(&self) -> io::Result<Self> {
        match self {
            Self::Socket(stream) => stream.try_clone().map(Self::Socket),
            Self::Port(stream) => stream.try_clone().map(Self::Port),
        }
    }
}

impl Read for End {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Socket(stream) => stream.read(buffer),
            Self::Port(stream) => stream.read(buffer),
        }
    }
}

impl Write for End {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        match self {
            Self::Socket(stream) => stream.write(buffer),
            Self::Port(stream) => stream.write(buffer),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Socket(stream) => stream.flush(),
            Self::Port(stream) => stream.flush(),
        }
    }
}

impl Inner {
    fn cut(&mut self) {
        for (_, process, server) in self.pairs.drain(..) {
            let _ = process.shutdown(Shutdown::Both);
            let _ = server.shutdown(Shutdown::Both);
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

    fn serve(self: &Arc<Self>, listener: &Listener) {
        loop {
            let Ok(process) = listener.accept() else { continue };
            let mut inner = self.lock();
            match inner.mode {
                Mode::Closed => return,
                Mode::Refuse => continue,
                _ => {}
            }
            // Without a server the connection just ends.
            if let Ok(server) = self.upstream.connect() {
                let id = inner.next;
                inner.next += 1;
                self.pump(id, &process, &server);
                self.pump(id, &server, &process);
                inner.pairs.push((id, process, server));
            }
        }
    }

    fn pump(self: &Arc<Self>, id: u64, from: &End, to: &End) {
        let own = Arc::clone(self);
        let from = from.try_clone().expect("a second handle");
        let to = to.try_clone().expect("a second handle");
        thread::spawn(move || own.carry(id, from, to));
    }

    /// Carries bytes one way until either end is closed or the lane cuts it.
    fn carry(&self, id: u64, mut from: End, mut to: End) {
        let mut buffer = vec![0; 64 << 10];
        while let Ok(read @ 1..) = from.read(&mut buffer) {
            if !self.lets_through(&buffer[..read]) || to.write_all(&buffer[..read]).is_err() {
                break;
            }
        }
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
        self.lock().pairs.retain(|(other, ..)| *other != id);
    }

    /// Waits for as long as the mode asks. `false` if the bytes read are lost.
    #[expect(clippy::disallowed_methods, reason = "a late answer is what is injected here")]
    fn lets_through(&self, read: &[u8]) -> bool {
        let inner = self.lock();
        match inner.mode {
            Mode::Pass | Mode::Refuse => true,
            Mode::Closed => false,
            Mode::Cut(text) => !read.windows(text.len()).any(|part| part == text.as_bytes()),
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
