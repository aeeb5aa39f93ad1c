//! `hero hook`: webhooks of other services, their latest deliveries, and a test.

use std::path::Path;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::{Map, json};

use super::Global;
use super::input::{bad, read_bounded};
use super::notify::ListDeliveries;
use super::table::TextTable;
use super::time::{local_second_text, local_zone};
use crate::config::HookName;
use crate::error::Error;
use crate::proto::audit::AuditRecord;
use crate::rpc::results::{ConfiguredWebhook, WebhookList, WebhookTest};

/// List the webhooks that submit published scripts and their latest deliveries, or test one
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:\n  hero hook list\n  hero hook test github < push.json\n\n\
                        A webhook is a table of /etc/hero/hero.toml on the machines of the supervisors:\n  \
                        [hook.github]                 # POST /hooks/github\n  \
                        verify = \"github\"             # or gitlab, stripe, slack, hmac-sha256, path\n  \
                        secret_file = \"/etc/hero/secrets/github\"\n  \
                        uses = \"deploy\"               # hero script publish deploy deploy.py\n  \
                        when = { \"/ref\" = \"refs/heads/main\" }\n  \
                        params = { commit = \"/after\" }\n\n\
                        All its keys: hero.toml(5); the jobs of one: hero job list --caller hook:github.")]
pub(super) enum HookCommand {
    /// List the webhooks of this configuration, and the latest deliveries with their verdicts
    #[command(after_help = "Examples:\n  hero hook list\n  hero hook list --limit 200 --json")]
    List(ListDeliveries),
    /// Print the job that a webhook would submit for a body on standard input, and submit nothing
    #[command(
        after_help = "Examples:\n  hero hook test github -H 'X-GitHub-Event: push' < push.json"
    )]
    Test(TestHook),
}

/// The webhook to test.
#[derive(Debug, Args)]
pub(super) struct TestHook {
    /// The name, of [hook.NAME]
    name: HookName,
    /// A header of the delivery
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    headers: Vec<String>,
}

impl HookCommand {
    pub(super) async fn run(self, global: &Global) -> Result<ExitCode, Error> {
        match self {
            Self::List(list) => show_list(list.limit, global).await.map(|()| ExitCode::SUCCESS),
            Self::Test(test) => test.run(global).await,
        }
    }
}

async fn show_list(limit: u16, global: &Global) -> Result<(), Error> {
    let params = json!({ "limit": limit });
    let (document, list) = global.methods()?.typed::<WebhookList>("hook.list", params).await?;
    let text = || {
        let mut text = if list.hooks.is_empty() {
            "this configuration has no [hook.NAME]\n".to_owned()
        } else {
            hooks(&list.hooks).show(global.look())
        };
        text.push('\n');
        if list.deliveries.is_empty() {
            text.push_str("no delivery has come yet\n");
        } else {
            text.push_str(&deliveries(&list.deliveries).show(global.look()));
        }
        text
    };
    global.print(|| document, text)
}

impl TestHook {
    async fn run(self, global: &Global) -> Result<ExitCode, Error> {
        let mut headers = Map::new();
        for header in &self.headers {
            let pair = header.split_once(':');
            let (name, value) =
                pair.ok_or_else(|| bad(format!("--header: `{header}` is not `NAME: VALUE`")))?;
            headers.insert(name.trim().to_owned(), value.trim().into());
        }
        let body = read_bounded(Path::new("-"), global.config()?.api.body_size_max)?;
        let params = json!({ "name": self.name, "body": body, "headers": headers });
        let (document, test) = global.methods()?.typed::<WebhookTest>("hook.test", params).await?;
        let is_skipped = test.skipped.is_some();
        let verdict = || match (test.skipped, test.job) {
            (Some(why), _) => format!("skipped: {why}\n"),
            (None, job) => format!("submits {}\n", json!(job)),
        };
        global.print(|| document, verdict)?;
        Ok(ExitCode::from(u8::from(is_skipped)))
    }
}

fn hooks(configured: &[ConfiguredWebhook]) -> TextTable<'_, ConfiguredWebhook> {
    TextTable::of(configured)
        .column("NAME", &|of| of.name.clone())
        .column("VERIFY", &|of| of.verify.clone())
        .column("USES", &|of| of.uses.clone())
        .column("!PATH", &|of| of.path.clone())
}

fn deliveries(records: &[AuditRecord]) -> TextTable<'_, AuditRecord> {
    let zone = local_zone();
    TextTable::of(records)
        .column("WHEN", &|of| local_second_text(&of.at, &zone))
        .column("~FROM", &|of| of.from.clone())
        .column("!DELIVERY", &|of| of.to.clone())
}
