//! Delivers one message of a notification, by each of its ways.

mod command;
mod mail;
mod webhook;

use tracing::warn;

use crate::config::{NotifyConfig, Password};
use crate::proto::notification::{NotifyMessage, NotifyName};

/// Delivers a message by all ways of its notification. If one of them fails, all are tried again later, with the
/// same id.
///
/// # Errors
/// The ways that failed, each with its reason.
pub(super) async fn deliver(notify: &NotifyConfig, message: &NotifyMessage) -> Result<(), String> {
    let mut failures = Vec::new();
    let mut note = |way: &str, ended: Result<(), String>| {
        failures.extend(ended.err().map(|reason| {
            let what_to_do = trust(&reason, notify, &message.to);
            format!("{way}: {reason}{what_to_do}")
        }));
    };
    if notify.webhook.is_some() {
        note("webhook", in_time(notify, webhook::post(notify, message)).await);
    }
    if !notify.mail.is_empty() {
        note("mail", in_time(notify, mail::send(notify, message)).await);
    }
    if !notify.command.is_empty() {
        note("command", command::run(notify, message).await);
    }
    if failures.is_empty() && notify.journal {
        let (title, text) = (message.title(), message.text());
        warn!(target: "hero::notify", notification = %message.to, message_id = %message.id, "{title}\n{text}");
    }
    if failures.is_empty() { Ok(()) } else { Err(failures.join("; ")) }
}

/// Returns what to do if the certificate of a server is of an authority that is not trusted.
fn trust(reason: &str, notify: &NotifyConfig, name: &NotifyName) -> String {
    if !reason.contains("UnknownIssuer") {
        return String::new();
    }
    match &notify.tls_ca_file {
        Some(file) => {
            let file = file.display();
            format!("; {file}, tls_ca_file of [notify.{name}], does not have its authority")
        }
        None => format!(
            "; if its authority is one of your own, set tls_ca_file of [notify.{name}] to its certificate"
        ),
    }
}

async fn in_time(
    notify: &NotifyConfig,
    way: impl Future<Output = Result<(), String>>,
) -> Result<(), String> {
    let slow = || format!("no answer within {}", crate::config::format_duration(notify.timeout));
    tokio::time::timeout(notify.timeout, way).await.unwrap_or_else(|_| Err(slow()))
}

/// Reads the secret of a notification, beside the runtime.
async fn secret(notify: &NotifyConfig, name: &NotifyName) -> Result<Option<Password>, String> {
    let (notify, name) = (notify.clone(), name.clone());
    let read = tokio::task::spawn_blocking(move || notify.secret(&name)).await;
    read.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
}
