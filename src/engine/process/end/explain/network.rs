//! Explains refused sockets, connections and lookups of names.

use regex::Regex;

use super::words::SaidError;
use super::{Explainer, has_word};
use crate::proto::job::NetworkAccess;
use crate::sandbox::Network;

const DNS: u16 = 53;

/// Words of scripts that use the network: programs and modules, then parts of texts.
const WORDS_OF_NETWORK: [&str; 13] = [
    "curl", "wget", "ssh", "scp", "sftp", "rsync", "telnet", "nslookup", "dig", "urllib",
    "urlopen", "aiohttp", "httpx",
];
const TEXTS_OF_NETWORK: [&str; 17] = [
    "http://",
    "https://",
    "ftp://",
    "/dev/tcp/",
    "import requests",
    "socket.",
    "import socket",
    "fetch(",
    "http.client",
    "smtplib",
    "nc -",
    "ping -",
    "git clone",
    "git pull",
    "git push",
    "pip install",
    "npm install",
];
/// Texts of errors in a script itself, in lower case.
const SYNTAX: [&str; 5] =
    ["syntax error", "syntaxerror", "unexpected eof", "no module named", "cannot find module"];
/// The exit code of a shell that has not found a program.
const NO_PROGRAM: i32 = 127;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NetworkUse {
    Name,
    /// A connection to a port, if the text names it.
    Connection(Option<u16>),
    Listening,
    /// A socket of another program on this machine.
    UnixSocket,
}

impl Explainer<'_> {
    /// Explains an error that may be one of the network; `lower` is its line in lower case.
    pub(super) fn of_network(
        &self,
        error: SaidError,
        lower: &str,
        frames: &[&str],
    ) -> Option<String> {
        const SOCKETS: [&str; 10] = [
            "socket",
            "connect",
            "listen",
            "bind",
            "urlopen",
            "/dev/tcp/",
            "/dev/udp/",
            "sendto",
            "getaddrinfo",
            "dial ",
        ];
        const UNIX: [&str; 11] = [
            "af_unix",
            "AF_UNIX",
            ".s.pgsql",
            "on socket \"",
            "unix socket",
            "dial unix",
            "unix://",
            " bus",
            "docker daemon",
            "docker api",
            "dockerexception",
        ];
        let about = |words: &[&str]| {
            let in_line = words.iter().any(|word| lower.contains(word));
            in_line || frames.iter().any(|frame| words.iter().any(|word| frame.contains(word)))
        };
        let wanted = match error {
            SaidError::NoName => NetworkUse::Name,
            // Of curl, which names the port of the address although it uses the socket.
            SaidError::NoConnection if self.names_unix_socket() => NetworkUse::UnixSocket,
            SaidError::NoConnection => NetworkUse::Connection(port_in(lower)),
            _ if !about(&SOCKETS) => return None,
            _ if self.names_unix_socket() && port_in(lower).is_none() => NetworkUse::UnixSocket,
            _ if about(&UNIX)
                || names_socket(lower)
                || (has_word(lower, "connect") && lower.contains(" /")) =>
            {
                NetworkUse::UnixSocket
            }
            _ if has_word(lower, "listen") || about(&["bind(", "bind ", ".listen(", "bind:"]) => {
                NetworkUse::Listening
            }
            _ => NetworkUse::Connection(port_in(lower)),
        };
        self.is_refused(wanted, error).then(|| self.told(wanted))
    }

    /// Returns the note for a failed script that uses the network and has none: some programs, such as `curl -s`, report no
    /// reason. Errors of syntax, and missing programs and modules, get no note.
    pub(in crate::process) fn of_silence(&self, code: Option<i32>, stderr: &str) -> Option<String> {
        let what = match &self.allowance.network {
            Network::Open => return None,
            Network::Ports(ports) if ports.contains(&DNS) => return None,
            Network::Ports(_) => "the job cannot look up names, nor use other ports than its own",
            Network::Closed => "the job has no network",
        };
        let stderr = stderr.to_ascii_lowercase();
        let has_other_reason =
            code == Some(NO_PROGRAM) || SYNTAX.iter().any(|said| stderr.contains(said));
        if has_other_reason || !self.source.lines().any(uses_network) {
            return None;
        }
        let what = format!("{what}, which may be why it failed");
        Some(self.with_remedy(&what, NetworkUse::Connection(None)))
    }

    /// Returns true if the script says that it uses a Unix socket, which the message of its error may not.
    fn names_unix_socket(&self) -> bool {
        const WORDS: [&str; 5] =
            ["--unix-socket", "--abstract-unix-socket", "http+unix:", "unix://", "unix-connect:"];
        let lower = self.source.to_ascii_lowercase();
        WORDS.iter().any(|word| lower.contains(word))
    }

    /// Returns true if the sandbox cannot but have refused it, with this error.
    fn is_refused(&self, wanted: NetworkUse, error: SaidError) -> bool {
        let network = &self.allowance.network;
        match wanted {
            // Sockets are refused by their family, before any mode of a file.
            NetworkUse::UnixSocket => {
                let errors = [SaidError::NotPermitted, SaidError::NoConnection];
                errors.contains(&error) && !self.allowance.unix_sockets
            }
            NetworkUse::Listening => {
                error == SaidError::NotPermitted
                    && *network != Network::Open
                    && !self.allowance.unix_sockets
            }
            NetworkUse::Name => match network {
                Network::Open => false,
                Network::Ports(ports) => !ports.contains(&DNS),
                Network::Closed => true,
            },
            NetworkUse::Connection(port) => match network {
                Network::Open => false,
                Network::Ports(ports) => {
                    let is_other = port.is_some_and(|port| !ports.contains(&port));
                    is_other || error == SaidError::Denied && port.is_none()
                }
                // Where no socket can be created, no permission of a connection can be missing.
                Network::Closed => error != SaidError::Denied,
            },
        }
    }

    fn told(&self, wanted: NetworkUse) -> String {
        let table = &self.table;
        let what = match wanted {
            NetworkUse::Name => "the lookup of a name was refused".to_owned(),
            NetworkUse::Connection(Some(port)) => {
                format!("a connection to port {port} was refused")
            }
            NetworkUse::Connection(None) => "the network was refused".to_owned(),
            NetworkUse::Listening => "listening was refused".to_owned(),
            NetworkUse::UnixSocket => {
                return format!(
                    "sandbox: a Unix socket was refused; [{table}] unix_sockets = true would allow it"
                );
            }
        };
        self.with_remedy(&what, wanted)
    }

    /// Returns what happened to a use of the network, with the keys that would allow it.
    fn with_remedy(&self, what: &str, wanted: NetworkUse) -> String {
        let table = &self.table;
        let Some((config, asked)) = self.of_type else {
            return format!("sandbox: {what}; [{table}] network = true would allow it");
        };
        if let Some(network) = &asked.network {
            let port = match wanted {
                NetworkUse::Name => Some(DNS),
                NetworkUse::Connection(port) => port,
                NetworkUse::Listening | NetworkUse::UnixSocket => None,
            };
            let more = match (network, port) {
                (_, None) => "all".to_owned(),
                (NetworkAccess::Ports(_), Some(port)) => format!("{network},{port}"),
                (_, Some(port)) => port.to_string(),
            };
            return format!(
                "sandbox: {what}; the job's own --network has no more: --network {more} adds it"
            );
        }
        let mut ports = config.ports.clone();
        match wanted {
            NetworkUse::Name => ports.push(DNS),
            NetworkUse::Connection(port) => ports.extend(port),
            NetworkUse::Listening | NetworkUse::UnixSocket => ports.clear(),
        }
        ports.sort_unstable();
        ports.dedup();
        let list: Vec<String> = ports.iter().map(u16::to_string).collect();
        let single = format!("ports = [{}] or ", list.join(", "));
        let single = if ports.is_empty() || !self.allowance.has_ports { "" } else { &single };
        let may_ask = match wanted {
            _ if config.network_max => true,
            NetworkUse::Name => config.ports_max.contains(&DNS),
            NetworkUse::Connection(Some(port)) => config.ports_max.contains(&port),
            _ => false,
        };
        let may_ask = if may_ask { ", or the job asks for it with --network" } else { "" };
        format!("sandbox: {what}; [{table}] {single}network = true would allow it{may_ask}")
    }
}

/// Returns true for a line of a script that uses the network, and is no comment.
fn uses_network(line: &str) -> bool {
    let line = line.trim_start().to_ascii_lowercase();
    !line.starts_with(['#', '/'])
        && (WORDS_OF_NETWORK.iter().any(|word| has_word(&line, word))
            || TEXTS_OF_NETWORK.iter().any(|text| line.contains(text)))
}

fn names_socket(lower: &str) -> bool {
    let mut ends = lower.match_indices(".sock").map(|(at, end)| &lower[at + end.len()..]);
    ends.any(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()))
}

/// Returns the port that a line names: `127.0.0.1:80`, `port 80`, `/dev/tcp/HOST/80`.
fn port_in(lower: &str) -> Option<u16> {
    const FORMS: [&str; 3] =
        ["/dev/tcp/[^/]*/([0-9]+)", "port ([0-9]+)", r"(?:\.[0-9]+|\blocalhost|\]):([0-9]+)"];
    let port_of = |form: &&str| {
        let port = Regex::new(form).ok()?.captures(lower)?[1].parse().ok()?;
        (port > 0).then_some(port)
    };
    FORMS.iter().find_map(port_of)
}

#[cfg(test)]
mod tests {
    use super::port_in;

    #[test]
    fn port_is_found_in_the_messages_of_programs() {
        for (line, port) in [
            ("error: connect eperm 127.0.0.1:80 - local (undefined:undefined)", Some(80)),
            ("connecting to 127.0.0.1:8080... failed: operation not permitted.", Some(8080)),
            ("connection to server at \"127.0.0.1\", port 5432 failed: could not", Some(5432)),
            ("script.sh: line 1: /dev/tcp/127.0.0.1/443: operation not permitted", Some(443)),
            ("dial tcp [::1]:6379: socket: operation not permitted", Some(6379)),
            ("error 1 connecting to localhost:6379. operation not permitted.", Some(6379)),
            ("script.py:12: 1.5:x 99999:1 127.0.0.1:0 127.0.0.1:99999", None),
            ("port é", None),
            ("", None),
        ] {
            assert_eq!(port_in(line), port, "{line}");
        }
    }
}
