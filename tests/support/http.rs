//! A small client of HTTP/1.1.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

/// A test that waits for an answer fails after this time.
const PATIENCE: Duration = Duration::from_secs(30);

enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

/// A connection.
pub(crate) struct Link {
    stream: BufReader<Stream>,
}

/// A response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Link {
    pub(crate) fn unix(path: &Path) -> Self {
        let stream = UnixStream::connect(path).expect("the socket answers");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        Self { stream: BufReader::new(Stream::Unix(stream)) }
    }

    pub(crate) fn tcp(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("the port answers");
        // Else the body waits for the confirmation of the head, for 40 ms.
        stream.set_nodelay(true).expect("no delay");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        Self { stream: BufReader::new(Stream::Tcp(stream)) }
    }

    /// Sends bytes as they are.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    /// Sends a request with a body of JSON, and reads the response.
    #[track_caller]
    pub(crate) fn post(&mut self, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut all = vec![("content-type", "application/json")];
        all.extend(headers);
        self.ask("POST", path, &all, body.as_bytes())
    }

    #[track_caller]
    pub(crate) fn get(&mut self, path: &str, headers: &[(&str, &str)]) -> Answer {
        self.ask("GET", path, headers, b"")
    }

    /// Sends a request, and reads the response. The last of two headers of one name is sent; an
    /// empty one is left out.
    #[track_caller]
    pub(crate) fn ask(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        let length = body.len().to_string();
        let mut all = vec![("host", "127.0.0.1"), ("content-length", length.as_str())];
        for header in headers {
            all.retain(|(name, _)| *name != header.0);
            all.push(*header);
        }
        let mut text = format!("{method} {path} HTTP/1.1\r\n");
        for (name, value) in all.into_iter().filter(|(_, value)| !value.is_empty()) {
            text += name;
            text += ": ";
            text += value;
            text += "\r\n";
        }
        text.push_str("\r\n");
        self.send(text.as_bytes()).expect("the head is taken");
        // The server may refuse a body before it has all of it.
        let _ = self.send(body);
        self.answer().expect("a response")
    }

    /// Reads a response; `None` if the server closed the connection.
    pub(crate) fn answer(&mut self) -> Option<Answer> {
        let mut line = String::new();
        if self.stream.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let status = line.split(' ').nth(1)?.parse().ok()?;
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line).ok()?;
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            headers.push((name.to_lowercase(), value.trim().to_owned()));
        }
        let mut answer = Answer { status, headers, body: Vec::new() };
        let length = answer.header("content-length").and_then(|text| text.parse().ok());
        answer.body = vec![0; length.unwrap_or(0)];
        self.stream.read_exact(&mut answer.body).ok()?;
        Some(answer)
    }

    /// Reads as many bytes as there is room for.
    pub(crate) fn read(&mut self, room: &mut [u8]) -> std::io::Result<()> {
        self.stream.read_exact(room)
    }

    /// Returns all that comes until the server closes the connection.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        // A connection that is reset ends what was sent.
        let _ = self.stream.read_to_end(&mut rest);
        rest
    }

    /// Returns true if the server closes the connection without a word.
    pub(crate) fn is_closed(&mut self) -> bool {
        self.stream.read(&mut [0]).map_or(true, |length| length == 0)
    }
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.text()))
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.read(buffer),
            Self::Tcp(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.write(bytes),
            Self::Tcp(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
