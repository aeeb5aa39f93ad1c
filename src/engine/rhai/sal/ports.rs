//! Checks of hosts and ports.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, ToSocketAddrs};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use ::rhai::INT;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags};
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrStorage, connect, getsockopt, socket, sockopt,
};

use super::context::{CallResult, RhaiResult, SalJob, operation, question};
use super::external_program::ExternalProgram;
use super::ssh::check_host;
use crate::engine::rhai::functions::Functions;

/// The timeout of a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The time between two checks for a stop while a name is resolved.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(50);

pub(super) fn register(functions: &mut Functions<'_>) {
    functions.group("net", "Ports, HTTP requests and other machines.");
    functions.add(
        "tcp_check",
        ["host", "port"],
        "Returns whether a port of a host accepts a connection within 5 seconds; false for a name that \
         is no host.",
        r#"
if !tcp_check("127.0.0.1", 9) { print("port 9 is closed") }"#,
        |host: &str, port: INT| is_open("tcp_check", host, port),
    );
    functions.add(
        "tcp_ping",
        ["host"],
        "Returns whether a host answers one ping, with the program ping; false without that program.",
        r#"
print(`this machine answers: ${tcp_ping("127.0.0.1")}`);"#,
        |host: &str| ping("tcp_ping", host),
    );
    functions.add(
        "port_check_available",
        ["port"],
        "Returns whether a port of this machine is free, so that a program can listen on it.",
        r"
print(`port 8080 is free: ${port_check_available(8080)}`);",
        |port: INT| {
            operation("port_check_available", &port.to_string(), |_| {
                let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), number(port)?);
                match TcpListener::bind(address) {
                    Ok(_) => Ok(true),
                    Err(error) if error.kind() == io::ErrorKind::AddrInUse => Ok(false),
                    Err(error) => Err(error.into()),
                }
            })
        },
    );
    register_other_names(functions);
}

/// Registers the names of later versions of SAL.
fn register_other_names(functions: &mut Functions<'_>) {
    functions.add(
        "net_tcp_check",
        ["host", "port"],
        "Does the same as tcp_check.",
        r#"
net_tcp_check("127.0.0.1", 9)
// → false"#,
        |host: &str, port: INT| is_open("net_tcp_check", host, port),
    );
    functions.add(
        "net_tcp_ping",
        ["host"],
        "Does the same as tcp_ping.",
        r#"
net_tcp_ping("127.0.0.1")
// → true"#,
        |host: &str| ping("net_tcp_ping", host),
    );
    functions.add(
        "net_ssh_ping",
        ["host", "user"],
        "Returns whether port 22 of a host accepts a connection; the user is not tried, as ssh_ping does.",
        r#"
if net_ssh_ping("127.0.0.1", "deploy") { print("sshd listens") }"#,
        |host: &str, _user: &str| is_open("net_ssh_ping", host, 22),
    );
}

fn is_open(name: &str, host: &str, port: INT) -> RhaiResult<bool> {
    question(name, &format!("{host}:{port}"), false, |job| check(job, host, port))
}

fn ping(name: &str, host: &str) -> RhaiResult<bool> {
    question(name, host, false, |job| {
        check_host(host)?;
        let args = ["-c", "1", "-W", "5", "--", host];
        Ok(ExternalProgram::new("ping").args(args).run(job)?.success())
    })
}

fn check(job: SalJob<'_>, host: &str, port: INT) -> CallResult<bool> {
    let port = number(port)?;
    if port == 0 {
        return Err("a port must be a number from 1 to 65535".into());
    }
    let until = Instant::now() + CONNECT_TIMEOUT;
    for address in addresses(job, host, port, until)? {
        if connects(job, address, until)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn number(port: INT) -> CallResult<u16> {
    u16::try_from(port).map_err(|_| "a port must be a number from 1 to 65535".into())
}

/// Returns the addresses of a host; empty if the name is unknown or not resolved in time. The system's
/// resolver cannot be interrupted, so it runs on a thread of its own, which may end later.
fn addresses(
    job: SalJob<'_>,
    host: &str,
    port: u16,
    until: Instant,
) -> CallResult<Vec<SocketAddr>> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    check_host(host)?;
    let (sender, receiver) = sync_channel(1);
    let name = host.to_owned();
    std::thread::Builder::new().name("sal-resolve".to_owned()).spawn(move || {
        let found = (name.as_str(), port).to_socket_addrs();
        let _ = sender.send(found.map(Iterator::collect).unwrap_or_default());
    })?;
    loop {
        match receiver.recv_timeout(STOP_CHECK_INTERVAL) {
            Ok(found) => return Ok(found),
            Err(RecvTimeoutError::Timeout) if Instant::now() < until => job.check_stop()?,
            Err(_) => return Ok(Vec::new()),
        }
    }
}

/// Returns whether a connection is accepted; closes it at once.
fn connects(job: SalJob<'_>, address: SocketAddr, until: Instant) -> CallResult<bool> {
    let family = if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let socket = socket(family, SockType::Stream, flags, None)?;
    match connect(socket.as_raw_fd(), &SockaddrStorage::from(address)) {
        Ok(()) => return Ok(true),
        Err(Errno::EINPROGRESS) => {}
        Err(_) => return Ok(false),
    }
    let writable = PollFd::new(socket.as_fd(), PollFlags::POLLOUT);
    let is_ready = job.run.wait(Some(writable), until)?;
    job.check_stop()?;
    Ok(is_ready && getsockopt(&socket, sockopt::SocketError)? == 0)
}
