//! Checks of hosts and ports.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use ::rhai::INT;

use super::context::{CallResult, RhaiResult, SalJob, operation, question};
use super::external_program::ExternalProgram;
use super::ssh::check_host;
use crate::engine::rhai::functions::Functions;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The time between two checks for a stop while a connection is tried.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(50);
const WRONG_PORT: &str = "a port must be a number from 1 to 65535";

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
    // The names of later versions of SAL.
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

/// Returns whether a host accepts a connection on one of its addresses, in time; false if its name is unknown.
/// Neither the system's resolver nor a connection can be interrupted, so they run on a thread of their own,
/// which may end later.
fn check(job: SalJob<'_>, host: &str, port: INT) -> CallResult<bool> {
    let port = number(port).ok().filter(|port| *port > 0).ok_or(WRONG_PORT)?;
    if host.parse::<IpAddr>().is_err() {
        check_host(host)?;
    }
    let (sender, receiver) = sync_channel(1);
    let (host, until) = (host.to_owned(), Instant::now() + CONNECT_TIMEOUT);
    std::thread::Builder::new().name("sal-connect".to_owned()).spawn(move || {
        let mut addresses = (host.as_str(), port).to_socket_addrs().into_iter().flatten();
        let accepts = |address: SocketAddr| {
            let left = until.saturating_duration_since(Instant::now());
            !left.is_zero() && TcpStream::connect_timeout(&address, left).is_ok()
        };
        // A script that has been stopped waits no more.
        let _ = sender.send(addresses.any(accepts));
    })?;
    loop {
        match receiver.recv_timeout(STOP_CHECK_INTERVAL) {
            Ok(is_open) => return Ok(is_open),
            Err(RecvTimeoutError::Timeout) if Instant::now() < until => job.check_stop()?,
            Err(_) => return Ok(false),
        }
    }
}

fn number(port: INT) -> CallResult<u16> {
    u16::try_from(port).map_err(|_| WRONG_PORT.into())
}
