//! `hero notify`: the notifications, their latest deliveries, and a test.

use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::json;

use super::job_notes::unknown_notifications;
use super::table::TextTable;
use super::time::{local_text, local_zone};
use super::{Global, output};
use crate::client::HeldMessage;
use crate::error::{Error, Exit};
use crate::proto::notification::{DeliveryRecord, NotifyName};
use crate::proto::text::counted;
use crate::rpc::results::{ConfiguredNotification, DeliveryList};

const TEST_PATIENCE: Duration = Duration::from_secs(30);

/// List the notifications of the configuration and their latest deliveries, or test one
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:\n  hero notify list\n  hero notify test ops\n\n\
                        A notification is a table of /etc/hero/hero.toml on the machines of the supervisors:\n  \
                        [notify.ops]\n  webhook = \"https://example.org/hook\"   # or mail, command, journal\n  \
                        on = [\"failed\", \"recovered\"]              # or dead, finished, late, slow,\n  \
                        \u{20}                                       # held, no_actor, cron_late\n  \
                        types = [\"bash\"]                         # or groups, callers, tags, crons\n  \
                        every = \"5m\"                            # at most one message in this time: what\n  \
                        \u{20}                                       # comes meanwhile comes together after it\n\n\
                        All its keys: hero.toml(5); their values here: hero check --show.")]
pub(super) enum NotifyCommand {
    /// List the notifications of this configuration, those that fail, and the latest deliveries
    #[command(after_help = "Examples:\n  hero notify list\n  hero notify list --limit 200 --json")]
    List(ListDeliveries),
    /// Send a test by a notification once, and wait for its delivery
    #[command(after_help = "Examples:\n  hero notify test ops")]
    Test(TestNotification),
}

/// The deliveries to list.
#[derive(Debug, Args)]
pub(super) struct ListDeliveries {
    /// The most deliveries, the latest
    #[arg(long, default_value_t = 20, value_name = "NUMBER",
          value_parser = clap::value_parser!(u16).range(1..=500))]
    pub(super) limit: u16,
}

/// The notification to test.
#[derive(Debug, Args)]
pub(super) struct TestNotification {
    /// The name, of [notify.NAME]
    name: NotifyName,
}

impl NotifyCommand {
    pub(super) async fn run(self, global: &Global) -> Result<ExitCode, Error> {
        match self {
            Self::List(list) => list.run(global).await.map(|()| ExitCode::SUCCESS),
            Self::Test(test) => test.run(global).await,
        }
    }
}

impl ListDeliveries {
    async fn run(self, global: &Global) -> Result<(), Error> {
        let params = json!({ "limit": self.limit });
        let (document, list) =
            global.methods()?.typed::<DeliveryList>("notify.list", params).await?;
        let DeliveryList { configured, held, deliveries: recent, failing } = list;
        let text = || {
            let mut parts = Vec::new();
            if !configured.is_empty() {
                parts.push(notifications(&configured).show(global.look()));
            }
            if !held.is_empty() {
                parts.push(held.iter().map(held_line).collect());
            }
            if !failing.is_empty() {
                parts.push(format!("Failing:\n{}", deliveries(&failing).show(global.look())));
            }
            if recent.is_empty() {
                parts.push("no notification was delivered yet\n".to_owned());
            } else {
                parts.push(deliveries(&recent).show(global.look()));
            }
            parts.join("\n")
        };
        global.print(|| document, text)
    }
}

impl TestNotification {
    async fn run(self, global: &Global) -> Result<ExitCode, Error> {
        let config = global.config()?;
        let client = global.client()?;
        client.notifications().check(&self.name, config).await?;
        // The supervisors may have another configuration than a machine that has no notification at all.
        output::notes(unknown_notifications(std::slice::from_ref(&self.name), config));
        let id = client.notifications().test(&self.name).await?;
        let delivery = client.notifications().await_delivery(&id, TEST_PATIENCE).await?;
        let Some(record) = delivery else {
            let name = &self.name;
            let message = format!(
                "no supervisor has sent the test of {name} within 30 s: is [notify.{name}] in the configuration of \
                 the supervisors, and does one run? hero status; hero check"
            );
            return Err(Error::new(Exit::GaveUp, message));
        };
        let is_delivered = record.error.is_empty();
        if !is_delivered && !global.json {
            let message = format!("the test of {} was not delivered: {}", self.name, record.error);
            return Err(Error::new(Exit::JobError, message));
        }
        let text = || format!("{} was told; message {id}\n", self.name);
        global.print(|| json!(record), text)?;
        Ok(ExitCode::from(u8::from(!is_delivered)))
    }
}

/// Says how many events wait for the `every` of a notification, and until when.
fn held_line(held: &HeldMessage) -> String {
    let (name, due) = (&held.notification, local_text(&held.due, &local_zone()));
    let events = counted(held.events, "event", "events");
    format!("{name}: held {events}, next message at {due}\n")
}

fn notifications(configured: &[ConfiguredNotification]) -> TextTable<'_, ConfiguredNotification> {
    TextTable::of(configured)
        .column("NAME", &|of| of.name.clone())
        .column("WAYS", &|of| of.ways.join(", "))
        .column("~ON", &|of| of.on.join(", "))
}

fn deliveries(records: &[DeliveryRecord]) -> TextTable<'_, DeliveryRecord> {
    let zone = local_zone();
    TextTable::of(records)
        .column("WHEN", &|of| local_text(&of.at, &zone))
        .column("NAME", &|of| of.notification.clone())
        .column("*STATE", &|of| of.state.clone())
        .column("ATTEMPTS", &|of| of.attempts.to_string())
        .column("~TOLD", &|of| of.title.clone())
        .column("!ERROR", &|of| of.error.clone())
}
