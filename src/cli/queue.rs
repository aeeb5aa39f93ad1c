//! `hero queue …`: lists, pauses, drains, resumes and purges queues.

mod drain;
mod list;

use clap::{ArgGroup, Args, Subcommand};
use serde_json::json;

use super::input::parsed;
use super::{Global, output};
use crate::client::Client;
use crate::error::{Error, Exit};
use crate::proto::pauses::{PauseRule, Pauses};
use crate::proto::queue::Queue;
use crate::proto::text::{counted, did_you_mean};

/// List, pause, drain, resume or purge queues
#[derive(Debug, Subcommand)]
#[command(
    after_help = "Examples:\n  hero queue list\n  hero queue pause type:python\n  hero queue drain --all"
)]
pub(super) enum QueueCommand {
    /// List the queues: waiting jobs, wait of the first, jobs ended per second
    #[command(after_help = "Example:\n  hero queue list --json\n\n\
                            URGENT, NORMAL and BACKGROUND are the jobs that wait, by priority. \
                            HELD jobs wait\nfor a slot in a limit. JOBS/S is the rate of the whole \
                            script type,\nsampled by the supervisor, at the queue of any group alone. \
                            What is paused as\na whole (--all, --type, --group) stands below.")]
    List,
    /// Stop actors from taking jobs of these queues; running jobs continue, new ones are accepted
    #[command(override_usage = "hero queue pause <QUEUE>...\n       \
                                hero queue pause <--all|--type <TYPE>|--group <GROUP>>...")]
    #[command(after_help = "Examples:\n  hero queue pause type:python\n  \
                            hero queue pause type:osis:group:io:prio:2\n  hero queue pause --all\n  \
                            hero queue pause --type python --group io\n\n\
                            --all, --type and --group hold for queues that come later as well: a new \
                            group that starts meanwhile takes no jobs.")]
    Pause(QueueChoice),
    Drain(drain::Drain),
    /// Resume paused queues
    #[command(override_usage = "hero queue resume <QUEUE>...\n       \
                                hero queue resume <--all|--type <TYPE>|--group <GROUP>>...")]
    #[command(
        after_help = "Examples:\n  hero queue resume type:python\n  hero queue resume --all\n\n\
                            --all, --type and --group also resume the queues among them that were paused \
                            by their names."
    )]
    Resume(QueueChoice),
    /// End all waiting jobs of these queues in error, as `hero job stop` does
    #[command(after_help = "Example:\n  hero queue purge --yes type:osis:group:io\n\n\
                            Their dependents fail as well. Running jobs are not affected.")]
    Purge(Purge),
}

#[derive(Debug, Args)]
pub(super) struct QueueNames {
    /// The queues: type:T, type:T:group:G, type:T:group:G:inst:I or type:T:where:DIGEST, for all priorities; with
    /// :prio:0, :prio:1 or :prio:2 at the end, for one
    #[arg(required = true, value_name = "QUEUE")]
    queues: Vec<String>,
    /// Accept queues that no configured or live actor serves and that hold no jobs
    #[arg(long)]
    force: bool,
}

/// Named queues, or all of a rule.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("chosen").required(true).multiple(true)
          .args(["queues", "all", "script_type", "group"])))]
pub(super) struct QueueChoice {
    /// The queues: type:T, type:T:group:G, type:T:group:G:inst:I or type:T:where:DIGEST, for all priorities; with
    /// :prio:0, :prio:1 or :prio:2 at the end, for one
    #[arg(value_name = "QUEUE")]
    queues: Vec<String>,
    /// Accept queues and script types that no configured or live actor serves and that hold no jobs
    #[arg(long)]
    force: bool,
    /// All queues, also those that come later
    #[arg(long, conflicts_with_all = ["queues", "force", "script_type", "group"])]
    all: bool,
    /// All queues of this script type, also those that come later
    #[arg(short = 't', long = "type", value_name = "TYPE", conflicts_with = "queues")]
    script_type: Option<String>,
    /// All queues of this group, of any script type without --type, also those that come later
    #[arg(short = 'g', long, value_name = "GROUP", conflicts_with = "queues")]
    group: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct Purge {
    #[command(flatten)]
    which: QueueNames,
    /// Confirm that all waiting jobs of these queues end in error
    #[arg(long)]
    yes: bool,
}

impl QueueCommand {
    pub(super) async fn run(self, global: &Global) -> Result<(), Error> {
        let client = global.client()?;
        match self {
            Self::List => list::run(&client, global).await,
            Self::Pause(which) => {
                let (changed, _) = which.pause(&client, global).await?;
                if global.json {
                    output::json(&json!({ "paused": changed }))?;
                }
                let drain = "running jobs go on: hero queue drain waits for their end";
                global.hint(&format!("{drain}; afterwards: {}", which.resume()));
                Ok(())
            }
            Self::Drain(drain) => drain.run(&client, global).await,
            Self::Resume(which) => {
                if let Some(rule) = which.rule()? {
                    return resume(&client, &rule, global.json).await;
                }
                let queues = checked(&which.queues, which.force, &client, global).await?;
                let resumed = client.resume_queues(&queues).await?;
                let words = ["resumed", "was not paused"];
                let changed = print_changed(global.json, words, &queues, &resumed)?;
                if global.json { output::json(&json!({ "resumed": changed })) } else { Ok(()) }
            }
            Self::Purge(purge) => purge.run(&client, global).await,
        }
    }
}

/// Returns the named queues. Rejects those that nothing knows, which are mistyped or of a later time,
/// unless `force`.
async fn checked(
    names: &[String],
    force: bool,
    client: &Client,
    global: &Global,
) -> Result<Vec<Queue>, Error> {
    let mut all = Vec::new();
    for name in names {
        let of_name = Queue::all_named(name).map_err(|error| {
            let with_type = format!("type:{name}");
            let meant = Queue::all_named(&with_type).is_ok().then_some(with_type.as_str());
            Error::new(Exit::Data, format!("{error}{}", did_you_mean(meant)))
        })?;
        all.extend(of_name);
    }
    if !force {
        client.check_known(&all, global.config()?).await?;
    }
    Ok(all)
}

impl QueueChoice {
    /// Returns the rule, if no queues are named.
    fn rule(&self) -> Result<Option<PauseRule>, Error> {
        let script_type = self.script_type.as_deref().map(parsed).transpose()?;
        let group = self.group.as_deref().map(parsed).transpose()?;
        let is_rule = self.all || script_type.is_some() || group.is_some();
        Ok(is_rule.then_some(PauseRule { script_type, group }))
    }

    /// Pauses the chosen queues, and prints them unless JSON is asked for. Returns the names that were not paused
    /// before, and everything that is chosen.
    async fn pause(
        &self,
        client: &Client,
        global: &Global,
    ) -> Result<(Vec<String>, Pauses), Error> {
        let Some(rule) = self.rule()? else {
            let queues = checked(&self.queues, self.force, client, global).await?;
            let paused = client.pause_queues(&queues).await?;
            let words = ["paused", "was paused already"];
            let changed = print_changed(global.json, words, &queues, &paused)?;
            let queues = queues.into_iter().collect();
            return Ok((changed, Pauses { queues, ..Pauses::default() }));
        };
        if let Some(script_type) = rule.script_type.as_ref().filter(|_| !self.force) {
            checked(&[format!("type:{script_type}")], false, client, global).await?;
        }
        let is_new = client.pause_by_rule(&rule).await?;
        if !global.json {
            let done = if is_new { "paused" } else { "were paused already" };
            output::line(&format!("{} {done}", rule.words()))?;
        }
        let changed = is_new.then(|| rule.to_string()).into_iter().collect();
        Ok((changed, Pauses { rules: [rule].into(), ..Pauses::default() }))
    }

    /// Returns the command that resumes the chosen queues.
    fn resume(&self) -> String {
        match self.rule() {
            Ok(Some(rule)) => rule.resume(),
            _ => format!("hero queue resume {}", self.queues.join(" ")),
        }
    }
}

/// Resumes all queues of a rule, and prints them.
async fn resume(client: &Client, rule: &PauseRule, json: bool) -> Result<(), Error> {
    let ended = client.resume_by_rule(rule).await?;
    if json {
        return output::json(&json!({ "resumed": ended.names() }));
    }
    if ended == Pauses::default() {
        output::note(&format!("hero: {}: none was paused", rule.words()));
    }
    for rule in &ended.rules {
        output::line(&format!("{} resumed", rule.words()))?;
    }
    match ended.queues.len() {
        0 => {}
        1..=LISTED_MAX => {
            for queue in &ended.queues {
                output::line(&format!("{queue} resumed"))?;
            }
        }
        many => output::line(&format!("{} resumed", counted(many as u64, "queue", "queues")))?,
    }
    Ok(())
}

/// The maximum number of queues that are printed by their names.
const LISTED_MAX: usize = 12;

/// Prints queues, with words for a changed and an unchanged one. Returns the names of those that were changed.
fn print_changed(
    json: bool,
    [done, before]: [&str; 2],
    queues: &[Queue],
    changed: &[Queue],
) -> Result<Vec<String>, Error> {
    if !json && queues.len() <= LISTED_MAX {
        for queue in queues {
            let word = if changed.contains(queue) { done } else { before };
            output::line(&format!("{queue} {word}"))?;
        }
    } else if !json {
        let number = counted(changed.len() as u64, "queue", "queues");
        output::line(&format!("{number} {done}"))?;
    }
    Ok(changed.iter().map(ToString::to_string).collect())
}

impl Purge {
    async fn run(&self, client: &Client, global: &Global) -> Result<(), Error> {
        let QueueNames { queues, force } = &self.which;
        let queues = checked(queues, *force, client, global).await?;
        if !self.yes {
            let message = "cannot purge without confirmation: every waiting job of these queues ends \
                           in error; add --yes to purge them, or hero queue list to count them";
            return Err(Error::new(Exit::Usage, message));
        }
        let mut purged = 0;
        for queue in &queues {
            purged += client.purge_queue(queue).await?;
        }
        global.print(
            || json!({ "purged": purged }),
            || format!("{} purged\n", counted(purged, "job", "jobs")),
        )
    }
}
