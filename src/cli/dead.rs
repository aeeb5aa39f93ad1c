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
                        retries is no dead letter, unless its type asks for it: dead_letters in hero.toml.")]
pub(super) enum DeadCommand {
    /// List dead letters, the newest first
    #[command(after_help = "Examples:\n  hero dead list --type python --limit 20\n  \
                            hero dead list --json\n\n\
                            The command for the next page, if there is one, is on standard error.")]
    #[command(mut_args(of_dead))]
    List(JobList),
    /// Group dead letters by their error, without its numbers, ids, paths and quoted texts
    #[command(after_help = "Examples:\n  hero dead errors\n  \
                            hero dead retry --all --kind 'connection to N refused'")]
    #[command(mut_args(of_dead))]
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
#[command(mut_args(of_dead))]
#[command(mut_arg("limit", |arg| arg.default_value("100000")))]
#[command(group(ArgGroup::new("chosen").required(true).args(["ids", "all"])))]
pub(super) struct OfDead<T: Args> {
    #[command(flatten)]
    jobs: T,
    /// All dead letters, or all that match the filters
    #[arg(long)]
    all: bool,
}

/// Sets the filter of dead letters, and hides it and the one of states.
fn of_dead(arg: Arg) -> Arg {
    match arg.get_id().as_str() {
        "dead" => arg.hide(true).default_value("true").value_parser(["true"]),
        "status" => arg.hide(true),
        _ => arg,
    }
}

impl DeadCommand {
    pub(super) async fn run(self, global: &Global) -> Result<ExitCode, Error> {
        let api = &global.methods()?;
        match self {
            Self::List(list) => list.run(api, global).await?,
            Self::Errors(errors) => errors.run(api, global).await?,
            Self::Show(show) => show::run(api, &show, true, global).await?,
            Self::Retry(OfDead { jobs, .. }) => return jobs.run(api, global).await,
            Self::Delete(OfDead { jobs, .. }) => {
                return jobs.change(api, "delete", json!({}), global).await;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}
