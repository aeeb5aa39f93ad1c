//! `hero dead …`: lists, retries and deletes dead letters, jobs that used up their attempts.

use std::fmt::Write;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde_json::{Map, json};

use super::exec::parsed;
use super::job::{Show, apply, show};
use super::table::{TextTable, first_line, shortened};
use super::time::age;
use super::{Global, output};
use crate::client::{Client, ClientError, DeadTally, JobChange};
use crate::error::{Error, Exit};
use crate::proto::text::counted;
use crate::store::{DeadFilter, DeadLetter, Store};

/// List dead letters (jobs that used up their attempts, kept until you retry or delete them)
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:\n  hero dead list\n  \
                        hero dead retry --all --type python --error 'connection refused'\n\n\
                        They are also among the jobs of `hero job list --status failed`, where jobs that \
                        were\nstopped, or failed with a prerequisite, stand as well.")]
pub(super) enum DeadCommand {
    List(DeadList),
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
    Retry(RetryDead),
    /// Delete dead letters, with their logs
    #[command(override_usage = "hero dead delete <ID>...\n       \
                                hero dead delete --all [--type <TYPE>] [--error <TEXT>] <--yes|--dry-run>")]
    #[command(after_help = "Examples:\n  \
                            hero dead delete 7f9c2ba4\n  \
                            hero dead delete --all --error timeout --dry-run\n  \
                            hero dead delete --all --error timeout --yes")]
    Delete(DeleteDead),
}

/// List dead letters, type by type, the newest first
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hero dead list --type python --limit 20\n  \
                        hero dead list --json\n\n\
                        The command for the next page, if there is one, is on standard error.")]
pub(super) struct DeadList {
    /// Only dead letters of this script type
    #[arg(short = 't', long = "type", value_name = "TYPE")]
    script_type: Option<String>,
    /// Only dead letters whose error contains this text
    #[arg(long, value_name = "TEXT")]
    error: Option<String>,
    /// The page size, up to 500
    #[arg(long, default_value_t = 50, value_name = "NUMBER",
          value_parser = clap::value_parser!(u16).range(1..=500))]
    limit: u16,
    /// The end of the previous page, as printed with it
    #[arg(long)]
    cursor: Option<String>,
}

/// Dead letters by id, or by a filter.
#[derive(Debug, Args)]
pub(super) struct DeadChoice {
    /// The jobs
    #[arg(required_unless_present = "all", conflicts_with = "all", value_name = "ID")]
    ids: Vec<String>,
    /// All dead letters that match --type and --error
    #[arg(long)]
    all: bool,
    /// Only dead letters of this script type
    #[arg(short = 't', long = "type", value_name = "TYPE", requires = "all")]
    script_type: Option<String>,
    /// Only dead letters whose error contains this text
    #[arg(long, value_name = "TEXT", requires = "all")]
    error: Option<String>,
    /// Print the dead letters that --all chooses, and change none
    #[arg(long, requires = "all")]
    dry_run: bool,
}

#[derive(Debug, Args)]
pub(super) struct DeleteDead {
    #[command(flatten)]
    which: DeadChoice,
    /// Confirm that all that match are deleted
    #[arg(long)]
    yes: bool,
}

#[derive(Debug, Args)]
pub(super) struct RetryDead {
    #[command(flatten)]
    which: DeadChoice,
    /// Resume the failed part of a graph: retry also all their dependents that failed because of a
    /// prerequisite
    #[arg(long, conflicts_with = "all")]
    with_dependents: bool,
}

impl DeadCommand {
    pub(super) async fn run(self, global: &Global) -> Result<ExitCode, Error> {
        let client = global.client()?;
        match self {
            Self::List(list) => list.run(&client, global).await,
            Self::Show(Show { id, raw }) => {
                let id = client.job_id(&id).await?;
                client.dead_letter(&id).await?;
                show::run(&client, &id, global, raw).await
            }
            Self::Retry(RetryDead { which, .. }) | Self::Delete(DeleteDead { which, .. })
                if which.dry_run =>
            {
                which.show(&client, global).await
            }
            Self::Retry(RetryDead { which, .. }) if which.all => {
                told(global, "retried", client.retry_dead(&which.filter()?).await?)
            }
            Self::Retry(RetryDead { which, with_dependents }) => {
                which
                    .each(
                        global,
                        &client,
                        &JobChange::Retry { with_dependents, changes: Map::new() },
                    )
                    .await
            }
            Self::Delete(DeleteDead { which, yes }) if which.all => {
                if !yes {
                    which.refuse_unconfirmed(&client).await?;
                }
                told(global, "deleted", client.delete_dead(&which.filter()?).await?)
            }
            Self::Delete(DeleteDead { which, .. }) => {
                which.each(global, &client, &JobChange::Delete).await
            }
        }
    }
}

impl DeadList {
    async fn run(&self, client: &Client, global: &Global) -> Result<ExitCode, Error> {
        let filter = filter(self.script_type.as_deref(), self.error.as_deref())?;
        let after = self.cursor.as_deref().map(parsed).transpose()?;
        let page = client.list_dead(&filter, self.limit.into(), after.as_ref()).await?;
        let next = page.next.map(|cursor| cursor.to_string());
        if global.json {
            output::json(&json!({ "jobs": page.items, "next": next }))?;
            return Ok(ExitCode::SUCCESS);
        }
        output::text(&table(&page.items, Timestamp::now()).show(global.look()))?;
        if let Some(next) = next {
            output::note(&format!("more: {}", self.command_for(&next)));
        }
        Ok(ExitCode::SUCCESS)
    }

    fn command_for(&self, cursor: &str) -> String {
        let mut command = "hero dead list".to_owned();
        if let Some(script_type) = &self.script_type {
            let _ = write!(command, " --type {script_type}");
        }
        if let Some(error) = &self.error {
            let _ = write!(command, " --error '{}'", error.replace('\'', r"'\''"));
        }
        let _ = write!(command, " --limit {} --cursor {cursor}", self.limit);
        command
    }
}

impl DeadChoice {
    fn filter(&self) -> Result<DeadFilter, Error> {
        filter(self.script_type.as_deref(), self.error.as_deref())
    }

    /// Returns the dead letters that match, at most so many, and true if there may be more.
    async fn matching(
        &self,
        client: &Client,
        most: usize,
    ) -> Result<(Vec<DeadLetter>, bool), Error> {
        let (filter, mut letters, mut after) = (self.filter()?, Vec::new(), None);
        loop {
            let limit = (most - letters.len()).min(Store::DEAD_PAGE_MAX);
            let page = client.list_dead(&filter, limit, after.as_ref()).await?;
            letters.extend(page.items);
            after = page.next;
            if after.is_none() || letters.len() >= most {
                return Ok((letters, after.is_some()));
            }
        }
    }

    /// Prints the dead letters that match.
    async fn show(&self, client: &Client, global: &Global) -> Result<ExitCode, Error> {
        const SHOWN_MAX: usize = 10_000;
        let (letters, more) = self.matching(client, SHOWN_MAX).await?;
        let text = || table(&letters, Timestamp::now()).show(global.look());
        output::print(global.json, || json!({ "jobs": letters, "more": more }), text)?;
        let (number, more) = (letters_of(&letters), if more { ", and more" } else { "" });
        output::note(&format!("hero: {number} would be changed{more}"));
        Ok(ExitCode::SUCCESS)
    }

    /// Refuses to delete dead letters, if any match.
    async fn refuse_unconfirmed(&self, client: &Client) -> Result<(), Error> {
        let (letters, more) = self.matching(client, Store::DEAD_PAGE_MAX).await?;
        if letters.is_empty() {
            return Ok(());
        }
        let (number, more) = (letters_of(&letters), if more { " or more" } else { "" });
        let message = format!(
            "cannot delete {number}{more} without confirmation; add --yes, or --dry-run to list them"
        );
        Err(Error::new(Exit::Usage, message))
    }

    /// Applies an operation to each dead letter, also after failures. The exit code comes from the
    /// first failure.
    async fn each(
        &self,
        global: &Global,
        client: &Client,
        change: &JobChange,
    ) -> Result<ExitCode, Error> {
        apply(client, &self.ids, global, async |id| {
            client.dead_letter(id).await?;
            let told = client.change_job(id, change).await?;
            if matches!(change, JobChange::Retry { with_dependents: true, .. }) {
                return Ok(told);
            }
            let done = |of: Result<String, ClientError>| of.map(|_| change.done().to_owned());
            Ok(told.into_iter().map(|(id, of)| (id, done(of))).collect())
        })
        .await
    }
}

fn letters_of(letters: &[DeadLetter]) -> String {
    counted(letters.len() as u64, "dead letter", "dead letters")
}

fn filter(script_type: Option<&str>, error: Option<&str>) -> Result<DeadFilter, Error> {
    Ok(DeadFilter {
        script_type: script_type.map(parsed).transpose()?,
        error: error.filter(|text| !text.is_empty()).map(str::to_owned),
    })
}

/// Reports a bulk operation. Letters that could not be changed give the exit code of bad data.
fn told(global: &Global, done: &str, tally: DeadTally) -> Result<ExitCode, Error> {
    let DeadTally { done: number, left } = tally;
    output::print(
        global.json,
        || json!({ done: number, "left": left }),
        || format!("{} {done}\n", counted(number, "dead letter", "dead letters")),
    )?;
    if left == 0 {
        return Ok(ExitCode::SUCCESS);
    }
    let letters = counted(left, "dead letter is", "dead letters are");
    output::note(&format!(
        "hero: {letters} not {done}: another job holds the unique key, or the target is illegal; \
         `hero dead retry ID` gives the reason for one"
    ));
    Ok(Exit::Data.into())
}

fn table(letters: &[DeadLetter], now: Timestamp) -> TextTable {
    let mut table = TextTable::new(&["#ID", "?~NAME", "TYPE", "?>ATTEMPT", ">DIED", "~ERROR"]);
    for letter in letters {
        let field = |name: &str| letter.fields.get(name).cloned().unwrap_or_default();
        let died: Option<Timestamp> = field("finished_at").parse().ok();
        table.row([
            letter.id.to_string(),
            shortened(&field("name")),
            letter.script_type.to_string(),
            field("attempt"),
            died.map(|time| age(time, now)).unwrap_or_default(),
            first_line(&letter.error),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn dead_letter_shows_its_age_and_the_first_line_of_its_error() {
        let letter = |error: &str, fields: &[(&'static str, &str)]| DeadLetter {
            id: "j1".parse().expect("legal"),
            script_type: "osis".parse().expect("legal"),
            error: error.to_owned(),
            fields: fields.iter().map(|(k, v)| (*k, (*v).to_owned())).collect::<BTreeMap<_, _>>(),
        };
        let letters = [
            letter("no\nluck", &[("attempt", "3"), ("finished_at", "2026-01-01T00:00:00Z")]),
            letter("\u{1b}[2J", &[]),
        ];
        let now: Timestamp = "2026-01-01T00:00:30Z".parse().expect("a time");
        assert_eq!(
            table(&letters, now).render(),
            "ID  NAME  TYPE  ATTEMPT  DIED  ERROR\n\
             j1  -     osis        3   30s  no…\n\
             j1  -     osis        -     -  \\u{1b}[2J\n"
        );
    }

    #[test]
    fn next_page_of_dead_letters_keeps_the_filters() {
        let list = DeadList {
            script_type: Some("osis".to_owned()),
            error: Some("can't".to_owned()),
            limit: 2,
            cursor: None,
        };
        assert_eq!(
            list.command_for("osis.1.j1"),
            r"hero dead list --type osis --error 'can'\''t' --limit 2 --cursor osis.1.j1"
        );
    }
}
