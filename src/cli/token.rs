//! `hero token …`: makes, lists and revokes the tokens that programs and people call the API with.

use std::collections::BTreeSet;
use std::time::Duration;

use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde_json::json;

use super::Global;
use super::answer::NoResults;
use super::author::user;
use super::input::{NameArguments, parsed};
use super::table::TextTable;
use super::time::{age, age_of_text};
use crate::client::{NewToken, Token, host_name};
use crate::config::{Config, check_configured, parse_duration};
use crate::error::{Error, Exit};
use crate::proto::access::{Bounds, Scope, TokenName, TokenRecord};
use crate::proto::target::{Group, ScriptType};

/// Make tokens for callers of the API; list and revoke them
#[derive(Debug, Subcommand)]
#[command(after_help = "Example:\n  hero token new ci --scope read,submit --expires 90d\n\n\
                        The API takes it as `Authorization: Bearer TOKEN`, with Content-Type: application/json: POST /jobs submits \
                        a job, GET /jobs/ID/output has its output, POST /rpc calls any method, and GET /openapi.json \
                        describes them.\n\n\
                        Redis keeps the SHA-256 of a token, not the token. Every program that may write there can make \
                        tokens: use the Redis login of the supervisor, not of producers.")]
pub(super) enum TokenCommand {
    New(NewTokenCommand),
    /// List the tokens: what each may do, and until when
    #[command(after_help = "Example:\n  hero token list --json")]
    List,
    Rotate(RotateToken),
    /// Revoke tokens: they are refused within seconds, on every machine
    #[command(after_help = "Example:\n  hero token revoke ci")]
    Revoke(NameArguments),
}

/// Make a token and print it, this once
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hero token new ci --scope read,submit --expires 90d --type python\n  \
                        hero token new night --scope read,submit,operate\n  \
                        hero token new keeper --scope read,submit,fleet --type bash\n\n\
                        read looks at everything, or with --type, --group, --caller or --context at what is within them alone; \
                        submit submits jobs, gets their output with POST /jobs?wait=10 alone, and \
                        stops, retries and deletes its own; operate changes queues and actors, and with submit any job; admin does what cannot be undone for \
                        many jobs; fleet, with submit, runs scripts on every machine. No scope includes another. The name becomes caller_id of the jobs."
)]
pub(super) struct NewTokenCommand {
    /// The name of the token
    name: String,
    /// Its rights: read, submit, operate, admin, fleet; several are separated by commas
    #[arg(long, required = true, value_delimiter = ',', value_name = "SCOPE")]
    scope: Vec<String>,
    /// Refuse it after this time; by default it holds until it is revoked
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    expires: Option<Duration>,
    /// Its jobs have one of these script types only, and it sees no others
    #[arg(short = 't', long = "type", value_delimiter = ',', value_name = "TYPE")]
    types: Vec<String>,
    /// Its jobs go to one of these groups only, and it sees no others: none without a group either
    #[arg(long = "group", value_delimiter = ',', value_name = "GROUP")]
    groups: Vec<String>,
    /// Its jobs may name these callers besides its own name, and it sees no others
    #[arg(long = "caller", value_delimiter = ',', value_name = "CALLER")]
    callers: Vec<String>,
    /// Its jobs and objects have one of these contexts only, and it sees no others
    #[arg(long = "context", value_delimiter = ',', value_name = "CONTEXT")]
    contexts: Vec<String>,
}

/// Make another secret for a token and print it, this once: both are valid until --drop-old
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  hero token rotate ci\n  hero token rotate ci --drop-old   # once its callers have the new one\n\n\
                        The new secret has the scopes, bounds and name of the old one. hero token list shows both."
)]
pub(super) struct RotateToken {
    /// The name of the token
    name: String,
    /// Refuse the new secret after this time; by default it ends as the old one does
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, conflicts_with = "drop_old")]
    expires: Option<Duration>,
    /// Refuse the old secret from now on
    #[arg(long)]
    drop_old: bool,
}

impl TokenCommand {
    pub(super) async fn run(self, global: &Global) -> Result<(), Error> {
        self.run_with(global).await.map_err(|error| match error.exit {
            Exit::NotPermitted => {
                let message = format!(
                    "{}; tokens need a login of Redis that may write them, as the supervisor has: \
                     HERO_CONFIG=/etc/hero/supervisor.toml",
                    error.message
                );
                Error { message, ..error }
            }
            _ => error,
        })
    }

    async fn run_with(self, global: &Global) -> Result<(), Error> {
        let config = global.config()?;
        let client = global.client()?;
        let print = |name: String, token: &Token| {
            let document = || json!({ "name": name, "token": token.reveal() });
            global.print(document, || format!("{}\n", token.reveal()))
        };
        match self {
            Self::New(new) => {
                let name = new.name.clone();
                print(name, &client.tokens().create(new.checked(config)?).await?)?;
            }
            Self::Rotate(RotateToken { name, drop_old: true, .. }) => {
                let drop_old = async |name: &TokenName| Ok(client.tokens().drop_old(name).await?);
                global
                    .each_done(&[parsed::<TokenName>(&name)?], "has its new secret alone", drop_old)
                    .await?;
            }
            Self::Rotate(RotateToken { name, expires, .. }) => {
                let of = parsed(&name)?;
                print(name, &client.tokens().rotate(&of, expires, &creator()).await?)?;
            }
            Self::List => {
                let (tokens, now) = (client.tokens().list().await?, client.system().now().await?);
                let document = || json!({ "tokens": tokens });
                global.list(document, || table(&tokens, now), NoResults::new("token"))?;
            }
            Self::Revoke(NameArguments { names }) => {
                let names: Vec<TokenName> =
                    names.iter().map(|name| parsed(name)).collect::<Result<_, _>>()?;
                let revoke = async |name: &TokenName| Ok(client.tokens().revoke(name).await?);
                global.each_done(&names, "revoked", revoke).await?;
            }
        }
        Ok(())
    }
}

impl NewTokenCommand {
    fn checked(self, config: &Config) -> Result<NewToken, Error> {
        let scopes: Vec<Scope> =
            self.scope.iter().map(|scope| parsed(scope)).collect::<Result<_, _>>()?;
        for script_type in &self.types {
            check_configured(&parsed::<ScriptType>(script_type)?, &config.types)?;
        }
        for group in &self.groups {
            parsed::<Group>(group)?;
        }
        let bound = |names: Vec<String>| -> Option<BTreeSet<String>> {
            (!names.is_empty()).then(|| names.into_iter().collect())
        };
        Ok(NewToken {
            name: parsed(&self.name)?,
            scopes: scopes.into(),
            bounds: Bounds {
                types: bound(self.types),
                groups: bound(self.groups),
                callers: bound(self.callers),
                contexts: bound(self.contexts),
                sees: None,
            },
            lifetime: self.expires,
            created_by: creator(),
        })
    }
}

/// Returns the user and the machine of this command.
fn creator() -> String {
    format!("{}@{}", user(), host_name())
}

fn table(tokens: &[TokenRecord], now: Timestamp) -> TextTable<'_, TokenRecord> {
    let expires =
        |of: &TokenRecord| match of.expires_s.and_then(|end| Timestamp::from_second(end).ok()) {
            None => "never".to_owned(),
            Some(end) if end <= now => "expired".to_owned(),
            Some(end) => age(end, now),
        };
    TextTable::of(tokens)
        .column("!NAME", &|of| of.name.to_string())
        .column("?SECRET", &|of| if of.replaced { "replaced".to_owned() } else { String::new() })
        .column("SCOPES", &|of| of.scopes.to_string())
        .column("~BOUNDS", &|of| bounds(&of.bounds))
        .column(">AGE", &|of| age_of_text(&of.created_at, now))
        .column("EXPIRES", &expires)
        .column("?~MADE BY", &|of| of.created_by.clone())
}

fn bounds(bounds: &Bounds) -> String {
    let Bounds { types, groups, callers, contexts, .. } = bounds;
    let all = [("type", types), ("group", groups), ("caller", callers), ("context", contexts)];
    let shown = all.into_iter().filter_map(|(what, names)| {
        let names: Vec<&str> = names.as_ref()?.iter().map(String::as_str).collect();
        Some(format!("{what}={}", names.join(",")))
    });
    shown.collect::<Vec<_>>().join(" ")
}
