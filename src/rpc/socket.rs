//! The calls, answers and notifications of one connection by a `WebSocket`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::Extension;
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade, close_code};
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::json;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tracing::debug;

use super::guard::{log_disconnected, refusal};
use super::json::{self, RpcAnswers, Sender};
use super::places::ConnectionPlace;
use super::rpc_error::{RpcError, code};
use super::service::ApiService;
use super::subscriptions::{SocketCall, SocketNotice, SocketSubscriptions};
use crate::proto::report::Shutdown;

/// The maximum number of calls at a time; further ones wait.
const CALLS_MAX: usize = 64;
/// The bytes of answers that may wait for the client; with more it is disconnected.
const UNREAD_BYTES_MAX: usize = 32 << 20;
/// The notifications that may wait for the client. Those who follow wait with the others.
const NOTICES: usize = 1;
/// The read buffer of each connection; it grows to the size of a message.
const BUFFER_BYTES: usize = 4 << 10;
/// The time that a client has to take the reason of the end.
const GOODBYE: Duration = Duration::from_secs(1);
/// The longest reason that a closing frame can have.
const REASON_BYTES_MAX: usize = 123;

/// The connection below a request, for a request that goes on as a WebSocket.
#[derive(Clone)]
pub(super) struct UpgradedConnection {
    /// Its place among all connections.
    pub(super) place: Arc<ConnectionPlace>,
    pub(super) shutdown: watch::Receiver<Shutdown>,
}

pub(super) async fn open(
    State(service): State<ApiService>,
    Extension(sender): Extension<Sender>,
    Extension(kept): Extension<UpgradedConnection>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    let upgrade = match upgrade {
        Ok(upgrade) => upgrade,
        Err(rejection) => {
            let message = format!(
                "cannot open a WebSocket: {rejection}; a GET of this address opens one, a POST sends requests"
            );
            let error = RpcError::new(code::INVALID_REQUEST, message);
            return refusal(&error.over_http(StatusCode::UPGRADE_REQUIRED), true);
        }
    };
    if let Err(error) = sender.known() {
        return refusal(&error, true);
    }
    let size_max = usize::try_from(service.settings().body_size_max).unwrap_or(usize::MAX);
    upgrade
        .read_buffer_size(BUFFER_BYTES)
        .write_buffer_size(0)
        .max_message_size(size_max)
        .max_frame_size(size_max)
        .on_upgrade(move |socket| serve(service, sender, kept, socket))
}

enum SocketEnd {
    /// The client has left.
    Left,
    /// The client is told.
    Told(u16, String),
}

impl SocketEnd {
    fn told(code: u16, reason: impl Into<String>) -> Self {
        Self::Told(code, reason.into())
    }
}

/// Bytes that count until they are dropped.
struct CountedBytes {
    all: Arc<AtomicUsize>,
    own: usize,
}

impl CountedBytes {
    /// Counts them, and returns their sum with all others.
    fn new(all: &Arc<AtomicUsize>, own: usize) -> (Self, usize) {
        let sum = all.fetch_add(own, Ordering::Relaxed) + own;
        (Self { all: Arc::clone(all), own }, sum)
    }
}

impl Drop for CountedBytes {
    fn drop(&mut self) {
        self.all.fetch_sub(self.own, Ordering::Relaxed);
    }
}

/// The answers to one message.
struct SocketAnswer {
    /// `None` if it needs none.
    text: Option<String>,
    call: Arc<SocketCall>,
    /// True if it was dropped, as too much waits for the client.
    is_too_much: bool,
    _unread: CountedBytes,
}

struct SocketServer {
    service: ApiService,
    sender: Sender,
    socket: WebSocket,
    subscriptions: Arc<SocketSubscriptions>,
    notices: mpsc::Receiver<SocketNotice>,
    running: JoinSet<SocketAnswer>,
    /// The bytes of messages that are being answered, and of answers that wait.
    asked: Arc<AtomicUsize>,
    unread: Arc<AtomicUsize>,
    /// The time of the last message or pong, and of the last ping.
    heard: Instant,
    asked_at: Option<Instant>,
}

async fn serve(service: ApiService, sender: Sender, kept: UpgradedConnection, socket: WebSocket) {
    let (notices, receiver) = mpsc::channel(NOTICES);
    let subscriptions = SocketSubscriptions::new(notices);
    let peer = Arc::clone(&sender.peer);
    let mut server = SocketServer {
        service,
        sender,
        socket,
        subscriptions: Arc::clone(&subscriptions),
        notices: receiver,
        running: JoinSet::new(),
        asked: Arc::default(),
        unread: Arc::default(),
        heard: Instant::now(),
        asked_at: None,
    };
    let end = server.run(kept.shutdown).await;
    subscriptions.end_all();
    server.running.shutdown().await;
    if let SocketEnd::Told(code, reason) = end {
        debug!("closed the WebSocket of {peer}: {reason}");
        let _ = tokio::time::timeout(GOODBYE, server.close(code, &reason)).await;
    }
    drop(kept.place);
}

impl SocketServer {
    async fn run(&mut self, mut shutdown: watch::Receiver<Shutdown>) -> SocketEnd {
        let within = self.service.settings().client_timeout;
        let mut ticks = tokio::time::interval(within / 2);
        let (service, token) = (self.service.clone(), self.sender.token.clone());
        let mut refused = std::pin::pin!(async move { service.token_ends(token.as_deref()).await });
        let size_max = usize::try_from(self.service.settings().body_size_max).unwrap_or(usize::MAX);
        loop {
            let is_busy =
                self.running.len() >= CALLS_MAX || self.asked.load(Ordering::Relaxed) >= size_max;
            let next = tokio::select! {
                message = self.socket.recv(), if !is_busy => match message {
                    None => Err(SocketEnd::Left),
                    Some(Err(error)) => Err(unreadable(&error)),
                    Some(Ok(message)) => self.take(message),
                },
                Some(answer) = self.running.join_next() => match answer {
                    Ok(answer) => self.answer(answer).await,
                    Err(_) => Ok(()),
                },
                Some(notice) = self.notices.recv() => self.notify(notice).await,
                _ = ticks.tick() => self.tick(within, is_busy).await,
                () = &mut refused => {
                    Err(SocketEnd::told(close_code::POLICY, "the token has expired or was revoked"))
                }
                () = requested(&mut shutdown) => {
                    Err(SocketEnd::told(close_code::AWAY, "the supervisor shuts down; connect again"))
                }
            };
            if let Err(end) = next {
                return end;
            }
        }
    }

    fn take(&mut self, message: Message) -> Result<(), SocketEnd> {
        self.heard = Instant::now();
        match message {
            Message::Text(text) => self.begin(text),
            Message::Binary(_) => {
                let reason = "a request is a text, not a binary message";
                return Err(SocketEnd::told(close_code::UNSUPPORTED, reason));
            }
            Message::Ping(_) | Message::Pong(_) => {}
            Message::Close(_) => return Err(SocketEnd::Left),
        }
        Ok(())
    }

    fn begin(&mut self, text: Utf8Bytes) {
        let (asked, _) = CountedBytes::new(&self.asked, text.len());
        let call = self.subscriptions.call();
        let sender = Sender { socket: Some(Arc::clone(&call)), trace: None, ..self.sender.clone() };
        let (service, unread) = (self.service.clone(), Arc::clone(&self.unread));
        self.running.spawn(async move {
            let RpcAnswers { text, .. } = json::answer(&service, &sender, text.into()).await;
            drop(asked);
            let (own, sum) = CountedBytes::new(&unread, text.as_ref().map_or(0, String::len));
            let is_too_much = sum > own.own && sum > UNREAD_BYTES_MAX;
            let text = text.filter(|_| !is_too_much);
            SocketAnswer { text, call, is_too_much, _unread: own }
        });
    }

    async fn answer(&mut self, answer: SocketAnswer) -> Result<(), SocketEnd> {
        if answer.is_too_much {
            let reason = "too many answers wait: read them while you send requests";
            log_disconnected(&self.sender.peer, reason);
            return Err(SocketEnd::told(close_code::POLICY, reason));
        }
        if let Some(text) = answer.text {
            self.send(Message::text(text)).await?;
        }
        answer.call.answered();
        Ok(())
    }

    async fn notify(&mut self, notice: SocketNotice) -> Result<(), SocketEnd> {
        let SocketNotice { method, params } = notice;
        let text = json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string();
        self.send(Message::text(text)).await
    }

    /// Pings a silent client, and ends its connection if it gave no sign.
    async fn tick(&mut self, within: Duration, is_busy: bool) -> Result<(), SocketEnd> {
        if is_busy {
            // Nothing is read meanwhile.
            self.heard = Instant::now();
        }
        let unanswered = self.asked_at.filter(|asked_at| *asked_at > self.heard);
        if unanswered.is_some_and(|asked_at| asked_at.elapsed() >= within) {
            let reason = "it answers no ping (api.client_timeout)";
            log_disconnected(&self.sender.peer, reason);
            return Err(SocketEnd::told(close_code::POLICY, reason));
        }
        if unanswered.is_some() || self.heard.elapsed() < within / 3 {
            return Ok(());
        }
        self.asked_at = Some(Instant::now());
        self.send(Message::Ping(Bytes::new())).await
    }

    async fn send(&mut self, message: Message) -> Result<(), SocketEnd> {
        self.socket.send(message).await.map_err(|error| {
            if io_error_of(&error).is_some_and(|of| of.kind() == std::io::ErrorKind::TimedOut) {
                let reason = "it does not read its messages (api.client_timeout)";
                log_disconnected(&self.sender.peer, reason);
            }
            SocketEnd::Left
        })
    }

    /// Notifies the client of the reason, and waits until it is closed.
    async fn close(&mut self, code: u16, reason: &str) {
        let reason = &reason[..reason.floor_char_boundary(REASON_BYTES_MAX)];
        let frame = CloseFrame { code, reason: reason.into() };
        if self.socket.send(Message::Close(Some(frame))).await.is_ok() {
            while let Some(Ok(_)) = self.socket.recv().await {}
        }
    }
}

/// Waits until the end is requested, or nobody can request it any more.
pub(super) async fn requested(shutdown: &mut watch::Receiver<Shutdown>) {
    let _ = shutdown.wait_for(|asked| *asked > Shutdown::No).await;
}

/// Returns the end of a connection whose client sends what cannot be read.
fn unreadable(error: &axum::Error) -> SocketEnd {
    let text = error.to_string();
    if io_error_of(error).is_some() || text.contains("closed connection") {
        return SocketEnd::Left;
    }
    if text.starts_with("Space limit exceeded") {
        return SocketEnd::told(close_code::SIZE, "the message is larger than api.body_size_max");
    }
    SocketEnd::told(close_code::PROTOCOL, format!("the message cannot be read: {text}"))
}

fn io_error_of(error: &axum::Error) -> Option<&std::io::Error> {
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        source = error.source();
    }
    None
}
