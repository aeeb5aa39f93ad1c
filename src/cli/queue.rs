//! `hero queue …`: lists, pauses, drains, resumes and purges queues.

mod list;

pub(super) use list::paused;

use std::time::{Duration, Instant};

use clap::{ArgGroup, Args, Subcommand};
use serde_json::{Value, json};

use super::api::{ApiMethods, read};
use super::input::{bad, parsed};
use super::time::brief;
use super::{Global, output};
use crate::config::parse_duration;
use crate::error::{Error, Exit};
use crate::proto::pauses::PauseRule;
use crate::proto::queue::Queue;
use crate::proto::target::Priority;
use crate::proto::text::counted;
use crate::rpc::results::{Drained, Purged};

/// The maximum number of queues that are printed by their names.
const LISTED_MAX: usize = 12;
/// The words for a queue that is paused, and for one that was.
const PAUSED: [&str; 2] = ["paused", "was paused already"];
/// The time between two looks at jobs that still run.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// List, pause, drain, resume or purge queues
#[derive(Debug, Subcommand)]
#[command(
    after_help = "Examples:\n  hero queue list\n  hero queue pause type:python\n  hero queue drain --all"
)]
pub(super) enum QueueCommand {
    /// List the queues: waiting jobs, wait of the first, jobs ended per second
    #[command(after_help = "Example:\n  hero queue list --json\n\n\
                            URGENT, NORMAL and BACKGROUND are the jobs that wait, by priority. \
                            HELD jobs wait for a slot in a limit. JOBS/S is the rate of the whole \
                            script type, sampled by the supervisor, at the queue of any group alone. \
                            What is paused as a whole (--all, --type, --group) stands below.")]
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
    Drain(Drain),
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
        let methods = global.methods()?;
        match self {
            Self::List => list::run(&methods, global).await,
            Self::Pause(choice) => {
                choice.change("queue.pause", PAUSED, &methods, global).await?;
                let drain = "running jobs go on: hero queue drain waits for their end";
                global.hint(&format!("{drain}; afterwards: {}", choice.resume()));
                Ok(())
            }
            Self::Drain(drain) => drain.run(&methods, global).await,
            Self::Resume(choice) => {
                let words = ["resumed", "was not paused"];
                choice.change("queue.resume", words, &methods, global).await
            }
            Self::Purge(purge) => purge.run(&methods, global).await,
        }
    }
}

impl QueueChoice {
    /// Returns the rule, if no queues are named.
    fn rule(&self) -> Result<Option<PauseRule>, Error> {
        let script_type = self.script_type.as_deref().map(parsed).transpose()?;
        let group = self.group.as_deref().map(parsed).transpose()?;
        let is_rule = self.all || script_type.is_some() || group.is_some();
        Ok(is_rule.then_some(PauseRule { script_type, group }))
    }

    fn params(&self) -> Result<Value, Error> {
        let queue = match self.rule()? {
            Some(rule) => json!(rule.to_string()),
            None => json!(self.queues),
        };
        Ok(json!({ "queue": queue, "force": self.force }))
    }

    /// Calls a method, and prints the queues that it has changed, as [`Self::print`] does.
    async fn change(
        &self,
        method: &str,
        words: [&str; 2],
        methods: &ApiMethods,
        global: &Global,
    ) -> Result<(), Error> {
        let document = methods.call(method, self.params()?).await?;
        if global.json {
            return output::json(&document);
        }
        self.print(words, &read::<Vec<String>>(method, &document[words[0]])?)
    }

    /// Prints what was changed, with words for a changed and an unchanged queue.
    fn print(&self, [done, before]: [&str; 2], changed: &[String]) -> Result<(), Error> {
        let rule = self.rule()?;
        let named = self.queues.iter().filter_map(|name| Queue::all_named(name).ok()).flatten();
        let all: Vec<String> = match &rule {
            // What a rule has changed may be queues that were paused by their names.
            Some(rule) if changed.is_empty() && done == "resumed" => {
                output::note(&format!("hero: {}: none was paused", rule.words()));
                return Ok(());
            }
            Some(rule) if changed.is_empty() => {
                return output::line(&format!("{} were paused already", rule.words()));
            }
            Some(_) => changed.to_vec(),
            None => named.map(|queue| queue.to_string()).collect(),
        };
        let named = by_name(&all, &|name| changed.contains(name));
        if named.len() > LISTED_MAX {
            let number = counted(changed.len() as u64, "queue", "queues");
            return output::line(&format!("{number} {done}"));
        }
        for (shown, is_changed) in named {
            output::line(&format!("{shown} {}", if is_changed { done } else { before }))?;
        }
        Ok(())
    }

    fn resume(&self) -> String {
        match self.rule() {
            Ok(Some(rule)) => rule.resume(),
            _ => format!("hero queue resume {}", self.queues.join(" ")),
        }
    }
}

/// Returns queues and rules as people name them, and whether each was changed: the queues of all priorities of a target,
/// if they are alike, by its name alone.
fn by_name(names: &[String], is_changed: &dyn Fn(&String) -> bool) -> Vec<(String, bool)> {
    let mut shown_names: Vec<(String, bool)> = Vec::new();
    for name in names {
        let is_new = is_changed(name);
        let shown = match (name.parse::<PauseRule>(), name.parse::<Queue>()) {
            (Ok(rule), _) => rule.words(),
            (_, Ok(Queue { target, priority })) => {
                let all = Queue { target: target.clone(), priority: Priority::Normal };
                let mut all = all.all_of_its_name().into_iter().map(|queue| queue.to_string());
                if all.all(|other| names.contains(&other) && is_changed(&other) == is_new) {
                    target.to_string()
                } else {
                    format!("{target}:prio:{priority}")
                }
            }
            _ => name.clone(),
        };
        if !shown_names.contains(&(shown.clone(), is_new)) {
            shown_names.push((shown, is_new));
        }
    }
    shown_names
}

impl Purge {
    async fn run(&self, methods: &ApiMethods, global: &Global) -> Result<(), Error> {
        for name in &self.which.queues {
            Queue::all_with_suggestion(name).map_err(bad)?;
        }
        if !self.yes {
            let message = "cannot purge without confirmation: every waiting job of these queues ends \
                           in error; add --yes to purge them, or hero queue list to count them";
            return Err(Error::new(Exit::Usage, message));
        }
        let QueueNames { queues, force } = &self.which;
        let params = json!({ "queue": queues, "force": force });
        let (document, Purged { purged }) = methods.typed("queue.purge", params).await?;
        global.print(|| document, || format!("{} purged\n", counted(purged, "job", "jobs")))
    }
}

/// Pause queues, and wait until their running jobs have ended: before a deployment
///
/// The queues stay paused, and jobs may be submitted to them, until `hero queue resume`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hero queue drain --all --wait 10m\n  \
                        hero queue drain type:python\n  hero queue resume --all\n\n\
                        Exit code 75: jobs still ran after the time of --wait.")]
pub(super) struct Drain {
    #[command(flatten)]
    which: QueueChoice,
    /// Give up after this time; the queues stay paused, and the jobs go on
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    wait: Option<Duration>,
}

impl Drain {
    async fn run(self, methods: &ApiMethods, global: &Global) -> Result<(), Error> {
        let (began, mut told) = (Instant::now(), None);
        let mut changed = None;
        loop {
            // A queue that is resumed meanwhile is paused again.
            let (_, Drained { paused, running }) =
                methods.typed("queue.drain", self.which.params()?).await?;
            let changed = changed.get_or_insert(paused);
            if told.is_none() && !global.json {
                self.which.print(PAUSED, changed)?;
            }
            if running == 0 {
                global.print(
                    || json!({ "paused": changed, "running": 0 }),
                    || "drained: no job of these queues runs\n".to_owned(),
                )?;
                global.hint(&format!("afterwards: {}", self.which.resume()));
                return Ok(());
            }
            let jobs = counted(running, "job still runs", "jobs still run");
            if let Some(patience) = self.wait.filter(|patience| began.elapsed() >= *patience) {
                let message = format!(
                    "gave up waiting after {}: {jobs}: hero job list --status started; the queues \
                     stay paused: {}",
                    brief(patience),
                    self.which.resume()
                );
                return Err(Error::new(Exit::GaveUp, message));
            }
            if told != Some(running) {
                output::note(&format!("hero: {jobs}"));
                told = Some(running);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}
