//! Delivers one message of a notification, by each of its ways and to each of its addresses.

mod mail;
mod webhook;

use std::collections::BTreeMap;
use std::time::Duration;

use tracing::warn;

use crate::config::{NotifyConfig, Password};
use crate::engine::process::{FedProgram, feed_program};
use crate::proto::notification::{NotifyMessage, NotifyName};

/// A channel that did not take a message, or an address of it.
pub(super) struct DeliveryFailure {
    reason: String,
    /// Another attempt would end alike.
    is_permanent: bool,
}

impl From<String> for DeliveryFailure {
    fn from(reason: String) -> Self {
        Self { reason, is_permanent: false }
    }
}

/// Delivers a message by those ways of its notification, and to those addresses, that need it still. Notes in the
/// message which need it no more: they have it, or have refused it for good.
///
/// # Errors
/// The ways that failed and are tried again later, with the same id, each with its reason.
pub(super) async fn deliver(
    notify: &NotifyConfig,
    message: &mut NotifyMessage,
) -> Result<(), String> {
    let mut failures = Vec::new();
    for way in ways(notify) {
        let name = way.name();
        if message.settled.contains(&name) {
            continue;
        }
        let done = match way {
            DeliveryChannel::Webhook => in_time(notify, webhook::post(notify, message)).await,
            DeliveryChannel::Mail(address) => {
                in_time(notify, mail::send(notify, message, address)).await
            }
            DeliveryChannel::Command => {
                run_command(notify, message).await.map_err(DeliveryFailure::from)
            }
            DeliveryChannel::Journal => {
                let (title, text) = (message.title(), message.text());
                warn!(target: "hero::notify", notification = %message.to, message_id = %message.id, "{title}\n{text}");
                Ok(())
            }
        };
        match done {
            Ok(()) => message.settled.push(name),
            Err(DeliveryFailure { reason, is_permanent }) => {
                let what_to_do = trust(&reason, notify, &message.to);
                let failure = format!("{name}: {reason}{what_to_do}");
                if is_permanent {
                    message.settled.push(name);
                    message.refused.push(failure);
                } else {
                    failures.push(failure);
                }
            }
        }
    }
    if failures.is_empty() { Ok(()) } else { Err(failures.join("; ")) }
}

/// Returns why templates of notifications cannot be rendered: each is tried with an event of each kind.
pub fn template_faults(notifications: &BTreeMap<NotifyName, NotifyConfig>) -> Vec<String> {
    notifications.iter().filter_map(|(name, notify)| webhook::fault(name, notify)).collect()
}

/// A channel of a notification; each address of mail is one.
enum DeliveryChannel<'a> {
    Webhook,
    Mail(&'a str),
    Command,
    Journal,
}

impl DeliveryChannel<'_> {
    fn name(&self) -> String {
        match self {
            Self::Webhook => "webhook".to_owned(),
            Self::Mail(address) => format!("mail to {address}"),
            Self::Command => "command".to_owned(),
            Self::Journal => "journal".to_owned(),
        }
    }
}

fn ways(notify: &NotifyConfig) -> Vec<DeliveryChannel<'_>> {
    let mut ways = Vec::new();
    ways.extend(notify.webhook.is_some().then_some(DeliveryChannel::Webhook));
    ways.extend(notify.mail.iter().map(|address| DeliveryChannel::Mail(address)));
    ways.extend((!notify.command.is_empty()).then_some(DeliveryChannel::Command));
    ways.extend(notify.journal.then_some(DeliveryChannel::Journal));
    ways
}

/// Returns the longest time that a delivery takes: the ways are tried one after the other.
pub(super) fn longest(notify: &NotifyConfig) -> Duration {
    notify.timeout.saturating_mul(u32::try_from(ways(notify).len()).unwrap_or(u32::MAX))
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
    way: impl Future<Output = Result<(), DeliveryFailure>>,
) -> Result<(), DeliveryFailure> {
    let slow = || format!("no answer within {}", crate::config::format_duration(notify.timeout));
    tokio::time::timeout(notify.timeout, way).await.unwrap_or_else(|_| Err(slow().into()))
}

/// Reads the secret of a notification, beside the runtime.
async fn secret(notify: &NotifyConfig, name: &NotifyName) -> Result<Option<Password>, String> {
    let (notify, name) = (notify.clone(), name.clone());
    let read = tokio::task::spawn_blocking(move || notify.secret(&name)).await;
    read.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
}

/// Passes a message to a program on its standard input, sandboxed as a script is: it gets no secret and no variable of the
/// supervisor.
///
/// # Errors
/// The reason why it did not end with 0.
async fn run_command(notify: &NotifyConfig, message: &NotifyMessage) -> Result<(), String> {
    let (notify, input) = (notify.clone(), message.document().to_string());
    let ran = tokio::task::spawn_blocking(move || {
        feed_program(&FedProgram {
            command: &notify.command,
            input: input.as_bytes(),
            sandbox: &notify.sandbox(),
            timeout: notify.timeout,
        })
    });
    ran.await.map_err(|error| error.to_string())?
}
