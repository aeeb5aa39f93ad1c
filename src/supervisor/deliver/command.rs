//! Gives a message to a program, sandboxed as a script is: it gets no secret and no variable of the supervisor.

use crate::config::NotifyConfig;
use crate::engine::process::{FedProgram, feed_program};
use crate::proto::notification::NotifyMessage;

/// Runs the program with the message on its standard input.
///
/// # Errors
/// The reason why it did not end with 0.
pub(super) async fn run(notify: &NotifyConfig, message: &NotifyMessage) -> Result<(), String> {
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
