//! `hero dead …`: the commands of `hero job` for dead letters alone, jobs that used up their attempts.

use std::process::ExitCode;

use clap::{Arg, ArgGroup, Args, Subcommand};
use serde_json::json;

use super::Global;
use super::job::{JobChoice, JobErrors, JobList, RetryJobs, Show, show};
use crate::error::Error;

/// List dead letters (jobs that used up their attempts), retry and delete them
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:\n  hero dead list\n  hero dead errors\n  \
                        hero dead retry --all --type python --error 'connection refused'\n\n\
                        These are commands of hero job with the filter --dead. A job that fails without \
                        retries is\nno dead letter, unless its type asks for it: dead_letters in hero.toml.")]
pub(super) enum DeadCommand {
    /// List dead letters, the newest first
    #[command(after_help = "Examples:\n  hero dead list --type python --limit 20\n  \
                            hero dead list --json\n\n\
                            The command for the next page, if there is one, is on standard error.")]
    #[command(mut_args(without_preset))]
    List(JobList),
    /// Group dead letters by their error, without its numbers, ids, paths and quoted texts
    #[command(after_help = "Examples:\n  hero dead errors\n  \
                            hero dead retry --all --kind 'connection to N refused'")]
    #[command(mut_args(without_preset))]
    Errors(JobErrors),
    /// Show every field of a dead letter
    #[command(after_help = "Example:\n  hero dead show 7f9c2ba4")]
    Show(Show),
    /// Run dead letters again, with all their attempts
    #[command(override_usage = "hero dead retry <ID>...\n       \
                                hero dead retry --all [--type <TYPE>] [--error <TEXT>] [--dry-run]")]
    #[command(after_help = "Examples:\n  \
                            hero dead retry 7f9c2ba4\n  \
                            hero dead retry --with-dependents 7f9c2ba4\n  \
                            hero dead retry --all --type python --error 'connection refused'")]
    Retry(OfDead<RetryJobs>),
    /// Delete dead letters, with their logs
    #[command(override_usage = "hero dead delete <ID>...\n       \
                                hero dead delete --all [--type <TYPE>] [--error <TEXT>] <--yes|--dry-run>")]
    #[command(after_help = "Examples:\n  \
                            hero dead delete 7f9c2ba4\n  \
                            hero dead delete --all --error timeout --dry-run\n  \
                            hero dead delete --all --error timeout --yes")]
    Delete(OfDead<JobChoice>),
}

/// A change of dead letters: by ids, or of all that match the filters.
#[derive(Debug, Args)]
#[command(mut_args(without_preset))]
#[command(mut_arg("limit", |arg| arg.default_value("100000")))]
#[command(group(ArgGroup::new("chosen").required(true).args(["ids", "all"])))]
pub(super) struct OfDead<T: Args> {
    #[command(flatten)]
    jobs: T,
    /// All dead letters, or all that match the filters
    #[arg(long)]
    all: bool,
}

/// Hides the filters that are set.
fn without_preset(arg: Arg) -> Arg {
    if ["dead", "status"].contains(&arg.get_id().as_str()) { arg.hide(true) } else { arg }
}

impl DeadCommand {
    pub(super) async fn run(self, global: &Global) -> Result<ExitCode, Error> {
        let api = &global.methods()?;
        match self {
            Self::List(list) => list.of_dead().run(api, global).await?,
            Self::Errors(errors) => errors.of_dead().run(api, global).await?,
            Self::Show(show) => show::run(api, &show, true, global).await?,
            Self::Retry(OfDead { jobs, .. }) => return jobs.of_dead().run(api, global).await,
            Self::Delete(OfDead { jobs, .. }) => {
                return jobs.of_dead().change(api, "delete", json!({}), global).await;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}
