//! A small client of `WebSocket`, which sends frames byte by byte as a test wants them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::http::{Answer, Link};

/// An open WebSocket.
pub(crate) struct Socket {
    link: Link,
    last: u64,
    /// Notifications that came before an answer.
    early: Vec<Value>,
}

/// A frame of the server.
#[derive(Debug, PartialEq)]
pub(crate) enum Frame {
    Text(Value),
    Ping,
    Pong(Vec<u8>),
    /// The code and the reason.
    Close(u16, String),
    /// The connection is closed.
    Gone,
}

pub(crate) const TEXT: u8 = 1;
pub(crate) const BINARY: u8 = 2;
pub(crate) const CLOSE: u8 = 8;
pub(crate) const PING: u8 = 9;
pub(crate) const PONG: u8 = 10;

impl Socket {
    /// Opens a WebSocket at `/rpc`.
    #[track_caller]
    pub(crate) fn open(link: Link, headers: &[(&str, &str)]) -> Self {
        Self::open_at(link, "/rpc", headers)
    }

    /// Opens a WebSocket at another path.
    #[track_caller]
    pub(crate) fn open_at(link: Link, path: &str, headers: &[(&str, &str)]) -> Self {
        let (answer, link) = Self::ask_at(link, path, headers);
        assert_eq!(answer.status, 101, "{}", answer.text());
        Self { link, last: 0, early: Vec::new() }
    }

    /// Asks for a WebSocket. Returns the answer, which may be a refusal.
    #[track_caller]
    pub(crate) fn ask(link: Link, headers: &[(&str, &str)]) -> (Answer, Link) {
        Self::ask_at(link, "/rpc", headers)
    }

    #[track_caller]
    fn ask_at(mut link: Link, path: &str, headers: &[(&str, &str)]) -> (Answer, Link) {
        let key = STANDARD.encode([7; 16]);
        let mut all = vec![
            ("connection", "Upgrade"),
            ("upgrade", "websocket"),
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", key.as_str()),
            ("content-length", ""),
        ];
        all.extend(headers);
        let answer = link.get(path, &all);
        if answer.status == 101 {
            // The example of RFC 6455 has another key; this one's answer is as fixed.
            assert!(answer.header("sec-websocket-accept").is_some_and(|text| text.len() == 28));
        }
        (answer, link)
    }

    /// Sends a whole frame, masked.
    pub(crate) fn frame(&mut self, opcode: u8, payload: &[u8]) -> std::io::Result<()> {
        self.link.send(&frame(0x80 | opcode, payload))
    }

    /// Sends bytes as they are.
    pub(crate) fn raw(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.link.send(bytes)
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.frame(TEXT, text.as_bytes()).expect("the server takes it");
    }

    /// Sends a request, and returns the result of its answer. Notifications that come before are kept.
    #[track_caller]
    pub(crate) fn call(&mut self, method: &str, params: &Value) -> Value {
        let mut answer = self.answer(method, params);
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].take()
    }

    /// Sends a request, and returns its answer.
    #[track_caller]
    pub(crate) fn answer(&mut self, method: &str, params: &Value) -> Value {
        self.last += 1;
        let id = self.last;
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.text(&request.to_string());
        loop {
            match self.next() {
                Frame::Text(answer) if answer["id"] == id => return answer,
                Frame::Text(notice) => self.early.push(notice),
                Frame::Ping => drop(self.frame(PONG, b"")),
                other => panic!("no answer to {method} but {other:?}"),
            }
        }
    }

    /// Returns the id of a new subscription.
    #[track_caller]
    pub(crate) fn follow(&mut self, method: &str, params: &Value) -> String {
        let opened = self.call(method, params);
        opened["subscription"].as_str().expect("an id").to_owned()
    }

    /// Returns the parameters of the next notification.
    #[track_caller]
    pub(crate) fn notice(&mut self) -> Value {
        let early = (!self.early.is_empty()).then(|| self.early.remove(0));
        let mut notice = early.unwrap_or_else(|| self.next_text());
        assert!(notice["method"].is_string() && notice.get("id").is_none(), "{notice}");
        notice["params"].take()
    }

    fn next_text(&mut self) -> Value {
        loop {
            match self.next() {
                Frame::Text(text) => return text,
                Frame::Ping => drop(self.frame(PONG, b"")),
                other => panic!("no notification but {other:?}"),
            }
        }
    }

    /// Returns the notifications of a job that is followed, to its end.
    #[track_caller]
    pub(crate) fn rest_of_job(&mut self) -> Vec<Value> {
        let mut all = vec![self.notice()];
        while all.last().is_some_and(|notice| notice["ended"] != true) {
            all.push(self.notice());
        }
        all
    }

    /// Reads the next frame.
    pub(crate) fn next(&mut self) -> Frame {
        let mut head = [0; 2];
        if self.link.read(&mut head).is_err() {
            return Frame::Gone;
        }
        let mut length = u64::from(head[1]);
        let extended = match length {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        if extended > 0 {
            let mut bytes = [0; 8];
            if self.link.read(&mut bytes[8 - extended..]).is_err() {
                return Frame::Gone;
            }
            length = u64::from_be_bytes(bytes);
        }
        let mut payload = vec![0; usize::try_from(length).expect("a length")];
        if self.link.read(&mut payload).is_err() {
            return Frame::Gone;
        }
        match head[0] & 15 {
            TEXT => Frame::Text(serde_json::from_slice(&payload).expect("JSON")),
            PING => Frame::Ping,
            PONG => Frame::Pong(payload),
            CLOSE if payload.len() >= 2 => {
                let reason = String::from_utf8_lossy(&payload[2..]).into_owned();
                Frame::Close(u16::from_be_bytes([payload[0], payload[1]]), reason)
            }
            _ => Frame::Close(1005, String::new()),
        }
    }

    /// Reads until the server closes the connection; returns the code and the reason that it gave.
    pub(crate) fn closed(&mut self) -> (u16, String) {
        let mut told = (1006, String::new());
        loop {
            match self.next() {
                Frame::Close(code, reason) => told = (code, reason),
                Frame::Gone => return told,
                _ => {}
            }
        }
    }
}

/// Returns the bytes of a masked frame with this first byte.
pub(crate) fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    const MASK: [u8; 4] = [1, 2, 3, 4];
    let mut bytes = vec![first];
    match payload.len() {
        short @ ..=125 => bytes.push(0x80 | u8::try_from(short).expect("short")),
        middle @ ..=65_535 => {
            bytes.push(0x80 | 0x7e);
            bytes.extend(u16::try_from(middle).expect("middle").to_be_bytes());
        }
        long => {
            bytes.push(0x80 | 0x7f);
            bytes.extend((long as u64).to_be_bytes());
        }
    }
    bytes.extend(MASK);
    bytes.extend(payload.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    bytes
}
