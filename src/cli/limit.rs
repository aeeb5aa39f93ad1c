//! `hero limit …`: lists limits with the jobs that run under each and that it holds.

use clap::Subcommand;
use serde_json::json;

use super::Global;
use super::answer::NoResults;
use super::table::TextTable;
use crate::client::LimitDocument;
use crate::error::Error;
use crate::rpc::results::LimitList;
use crate::view::limit_title;

/// List limits: the jobs that run under each, and the jobs that it holds
#[derive(Debug, Subcommand)]
#[command(after_help = "Example:\n  hero limit list\n\n\
                        A limit is a table of /etc/hero/hero.toml on the machines of the actors:\n  \
                        [limit.api]\n  per = \"key\"       # or key = \"api\": jobs of --limit-key api alone\n  \
                        running = 4         # at once, over all machines\n  \
                        rate = \"20/s\"       # starts per time\n\n\
                        Actors take it over at a reload: systemctl reload 'hero@*'; with hero dev, after kill -HUP of it. \
                        All its keys: hero.toml(5); their values here: hero check --show.")]
pub(super) enum LimitCommand {
    /// List the limits of the configuration, and those that have running or held jobs
    #[command(after_help = "Example:\n  hero limit list --json\n\n\
                            A limit that counts separately has a row for each value with running or held \
                            jobs; a fair one shares its slots among the callers, keys, contexts or groups. STARTED counts the starts \
                            within the time of its rate. @TYPE/GROUP/INSTANCE \
                            is the serial lane of an actor, `window of ID` the window of a graph or batch, `pause of ID` its pause.\n\n\
                            MOST and RATE are of the configuration file that this command reads. Actors have what it said \
                            when they started or were reloaded last: systemctl reload 'hero@*'.")]
    List,
}

impl LimitCommand {
    pub(super) async fn run(self, global: &Global) -> Result<(), Error> {
        let Self::List = self;
        let methods = global.methods()?;
        let (document, list) = methods.typed::<LimitList>("limit.list", json!({})).await?;
        let none = NoResults::new("limit is configured, and none holds jobs");
        global.list(|| document, || table(&list.limits), none)
    }
}

fn table(limits: &[LimitDocument]) -> TextTable<'_, LimitDocument> {
    let number = |number: Option<u64>| number.map(|number| number.to_string()).unwrap_or_default();
    let of = |limit: &LimitDocument| {
        let of = limit.per.as_deref().zip(limit.value.as_deref());
        let of = of.map(|(per, value)| format!("{per} {value}"));
        of.or_else(|| limit.fair.as_ref().map(|by| format!("each {by}"))).unwrap_or_default()
    };
    let shard = |limit: &LimitDocument| limit.shard.map(|of| of.to_string()).unwrap_or_default();
    let table = TextTable::of(limits)
        .column("!LIMIT", &|limit| limit_title(&limit.name))
        .column("~OF", &of)
        .column(">RUNNING", &|limit| limit.running.to_string())
        .column(">MOST", &|limit| number(limit.running_max.map(u64::from)))
        .column(">STARTED", &|limit| number(limit.started))
        .column("RATE", &|limit| limit.rate.clone().unwrap_or_default())
        .column(">HELD", &|limit| limit.held.to_string());
    let has_shards = limits.iter().any(|limit| limit.shard.is_some());
    if has_shards { table.column(">SHARD", &shard) } else { table }
}
