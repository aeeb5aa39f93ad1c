//! The command line: one file per noun, each a thin layer over the client library.

mod actor;
mod amqp;
mod answer;
mod api;
mod audit;
mod author;
mod backup;
mod bench;
mod check;
mod check_memory;
mod check_shards;
mod completions;
mod correction;
mod cron;
mod cron_edit;
mod cron_import;
mod cron_past;
mod dead;
mod dev;
mod doctor;
mod events;
mod every;
mod exec;
mod explain;
mod explain_message;
mod fleet_table;
mod graph;
mod graph_wait;
mod help;
mod hook;
mod input;
mod job;
mod job_notes;
mod job_options;
mod key;
mod limit;
mod machine;
mod mcp;
mod metrics;
mod migrate;
mod notify;
mod osis;
mod output;
mod progress;
mod published;
mod queue;
mod run_script;
mod running_settings;
mod script;
mod script_doc;
mod script_inputs;
mod scripts;
mod sent_job;
mod stage;
mod stats;
mod status;
mod submit;
mod suggestions;
mod table;
mod terminal_style;
mod time;
mod token;
mod top;
mod window_options;

pub use bench::{millis, per_second, quantile};
pub use output::print_error;
pub use script_doc::definitions;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::OnceLock;
use std::time::Duration;

use clap::error::{ContextKind, ContextValue};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::client::Client;
use crate::config::{Config, DEFAULT_FILE, RedisConfig, UserFolders, parse_duration};
use crate::daemon;
use crate::error::{Error, Exit};

/// A job daemon for scripts: Rhai, Python, V or any command, queued in Redis.
#[derive(Debug, Parser)]
#[command(
    name = "hero",
    version,
    after_help = "Start here:\n  hero dev                       \
                  run everything on a private Redis\n  \
                  hero exec -t osis -e '40 + 2'  run a script and print its output\n\n\
                  Exit codes: 0 done, 1 the job ended in error, 2 wrong usage, 65 bad data, \
                  66 no such job, file or unit, 69 Redis cannot be reached, \
                  71 a script type does not run on this machine, 73 the actor runs already, \
                  74 the output cannot be written, 75 gave up waiting, 77 not permitted, \
                  78 wrong configuration.\n\n\
                  The keys of the configuration: hero.toml(5); their values here: hero check --show."
)]
pub struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

/// Options of every command.
#[derive(Debug, Args)]
struct Global {
    /// The configuration file; by default `HERO_CONFIG`, else ~/.config/hero/hero.toml if it exists,
    /// else /etc/hero/hero.toml
    #[arg(long, global = true, value_name = "FILE", display_order = 900)]
    config: Option<OsString>,
    /// The file of the user, if it is the one to read.
    #[arg(skip)]
    of_user: Option<PathBuf>,
    /// The configuration, once it was read.
    #[arg(skip)]
    loaded: OnceLock<Config>,
    /// Speak to the API of a daemon elsewhere in place of Redis: `https://HOST:PORT`, or `unix:PATH` of its socket; by
    /// default `HERO_API`, unless --config or `HERO_CONFIG` names a file, else api in `[client]`. `HERO_TOKEN` has the token
    #[arg(long, global = true, value_name = "URL", display_order = 903)]
    api: Option<String>,
    /// Print one JSON document instead of text
    #[arg(long, global = true, display_order = 901)]
    json: bool,
    /// Colour the output: at a terminal, always or never; `NO_COLOR` has the effect of never
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", display_order = 902)]
    #[arg(hide_possible_values = true, value_enum)]
    color: terminal_style::ColorChoice,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(RunUnit),
    Dev(dev::Dev),
    Check(check::Check),
    Doctor(doctor::Doctor),
    #[command(name = "explain")]
    ExplainMessage(explain_message::ExplainMessage),
    Status(status::Status),
    Stats(stats::Stats),
    Top(top::Top),
    Metrics(metrics::MetricsCommand),
    Exec(exec::Exec),
    Submit(submit::Submit),
    RunScript(run_script::RunScript),
    #[command(subcommand)]
    Job(job::JobCommand),
    #[command(subcommand)]
    Graph(graph::GraphCommand),
    #[command(subcommand)]
    Queue(queue::QueueCommand),
    #[command(subcommand)]
    Actor(actor::ActorCommand),
    #[command(subcommand)]
    Machine(machine::MachineCommand),
    #[command(subcommand)]
    Cron(cron::CronCommand),
    #[command(subcommand)]
    Limit(limit::LimitCommand),
    #[command(subcommand)]
    Notify(notify::NotifyCommand),
    #[command(subcommand)]
    Hook(hook::HookCommand),
    Audit(audit::Audit),
    #[command(subcommand)]
    Dead(dead::DeadCommand),
    Events(events::EventsCommand),
    #[command(subcommand)]
    Token(token::TokenCommand),
    #[command(subcommand)]
    Key(key::KeyCommand),
    #[command(subcommand)]
    Osis(osis::OsisCommand),
    #[command(subcommand)]
    Amqp(amqp::AmqpCommand),
    #[command(subcommand)]
    Migrate(migrate::MigrateCommand),
    #[command(subcommand)]
    Script(scripts::ScriptCommand),
    Backup(backup::Backup),
    Restore(backup::Restore),
    Mcp(mcp::Mcp),
    Completions(completions::Completions),
    Bench(bench::Bench),
}

/// Run one unit, as systemd does: an actor, the supervisor or a broker
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hero run supervisor\n  hero run osis-default-1 --wait 30s")]
struct RunUnit {
    /// `supervisor`, `broker` or `broker-NODE`, an actor as TYPE-GROUP-INSTANCE, or a `[unit.NAME]` of the configuration
    unit: String,
    /// Give up if Redis does not answer within this time; by default, keep trying
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    wait: Option<Duration>,
}

impl Cli {
    /// Parses arguments; the first is the program.
    ///
    /// # Errors
    /// The help or the version, if they are asked for; the fault of the arguments. A word that other
    /// programs have is answered with the command of Hero.
    pub fn of_args(args: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let args: Vec<OsString> = args.into_iter().collect();
        let columns = terminal_style::help_columns();
        let mut command = help::grouped(Self::command(), columns).term_width(columns);
        let parsed = command.try_get_matches_from_mut(&args);
        let parsed = parsed.and_then(|matches| Self::from_arg_matches(&matches));
        parsed.map_err(|error| {
            let mut error = error.format(&mut command);
            suggestions::suggest_command(&mut error, &args);
            suggestions::suggest_option(&mut error, &args);
            without_globals(&mut error);
            error
        })
    }

    /// Runs the command. Blocks; creates its own runtime.
    ///
    /// # Errors
    /// [`Error`] with a message and an exit code. The message is empty if standard output was
    /// closed by its reader.
    pub fn run(mut self) -> Result<ExitCode, Error> {
        // Not by clap: it would show --config as a required option in messages on usage.
        let of_user = UserFolders::of_this_process().and_then(|user| user.own_file());
        let variable = std::env::var_os("HERO_CONFIG");
        let variable = match &self.command {
            Command::Dev(of) => variable.filter(|file| !of.is_of_stage(Path::new(file))),
            _ => variable,
        };
        self.global.choose_file(variable, of_user);
        if self.global.api.is_some() && self.command.is_of_machine() {
            self.global.needs_no_remote()?;
        }
        let ended = self.command.run(&self.global);
        ended.map_err(|error| self.global.explained(error))
    }
}

impl Command {
    /// Returns whether it works on this machine, also where the environment names a daemon elsewhere.
    fn is_of_machine(&self) -> bool {
        matches!(
            self,
            Self::Run(_)
                | Self::Dev(_)
                | Self::Check(_)
                | Self::Doctor(_)
                | Self::ExplainMessage(_)
                | Self::Key(_)
                | Self::Bench(_)
                | Self::Restore(_)
        )
    }

    fn run(self, global: &Global) -> Result<ExitCode, Error> {
        match self {
            Self::Run(RunUnit { unit, wait }) => {
                daemon::run(global.config()?.clone(), global.file(), &unit, wait)?;
            }
            Self::Dev(dev) => return block_on(dev.run(global)),
            Self::Check(check) => check.run(global)?,
            Self::Doctor(doctor) => return doctor.run(global),
            Self::ExplainMessage(explain) => explain.run(global)?,
            Self::Status(status) => return block_on(status.run(global)),
            Self::Stats(stats) => block_on(stats.run(global))?,
            Self::Top(top) => return block_on(top.run(global)),
            Self::Metrics(metrics) => block_on(metrics.run(global))?,
            Self::Exec(exec) => return block_on(exec.run(global)),
            Self::Submit(submit) => block_on(submit.run(global))?,
            Self::RunScript(script) => return block_on(script.run(global)),
            Self::Job(job) => return block_on(job.run(global)),
            Self::Graph(graph) => return block_on(graph.run(global)),
            Self::Queue(queue) => block_on(queue.run(global))?,
            Self::Actor(actor) => block_on(actor.run(global))?,
            Self::Machine(machine) => return block_on(machine.run(global)),
            Self::Cron(cron) => return block_on(cron.run(global)),
            Self::Notify(notify) => return block_on(notify.run(global)),
            Self::Hook(hook) => return block_on(hook.run(global)),
            Self::Audit(audit) => block_on(audit.run(global))?,
            Self::Limit(limit) => block_on(limit.run(global))?,
            Self::Dead(dead) => return block_on(dead.run(global)),
            Self::Events(events) => block_on(events.run(global))?,
            Self::Token(token) => block_on(token.run(global))?,
            Self::Key(key) => key.run(global)?,
            Self::Osis(osis) => return block_on(osis.run(global)),
            Self::Amqp(amqp) => return block_on(amqp.run(global)),
            Self::Migrate(migrate) => block_on(migrate.run(global))?,
            Self::Script(script) => return script.run(global),
            Self::Backup(backup) => block_on(backup.run(global))?,
            Self::Restore(restore) => block_on(restore.run(global))?,
            Self::Mcp(mcp) => block_on(mcp.run(global))?,
            Self::Completions(completions) => block_on(completions.run(global))?,
            Self::Bench(bench) => return block_on(bench.run(global)),
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Global {
    /// Reads the configuration, once.
    fn config(&self) -> Result<&Config, Error> {
        if let Some(config) = self.loaded.get() {
            return Ok(config);
        }
        let mut config = Config::load(self.file())?;
        if self.named_file().is_none() && self.of_user.is_none() {
            config.redis.read_store();
        }
        Ok(self.loaded.get_or_init(|| config))
    }

    /// Adds to the error of a Redis that does not answer that no configuration names another.
    fn explained(&self, error: Error) -> Error {
        let default = RedisConfig::default().redacted_url();
        let is_without_file = self.file().is_none() && !Path::new(DEFAULT_FILE).exists();
        if !is_without_file
            || !error.message.starts_with(&format!("redis at {default} cannot be reached"))
        {
            return error;
        }
        let message = format!(
            "{}; no configuration was found that names another Redis: start one with `hero dev`, or name its file \
             with --config or HERO_CONFIG",
            error.message
        );
        Error { message, ..error }
    }

    /// Chooses the file: the named one, else the variable's, else the user's if it exists, else the default one.
    /// An empty variable counts as unset; a variable with the default file does not demand that it exists.
    fn choose_file(&mut self, variable: Option<OsString>, of_user: Option<PathBuf>) {
        if self.config.as_ref().is_some_and(|named| !named.is_empty()) {
            return;
        }
        self.config = variable.filter(|file| !file.is_empty());
        if self.config.is_none() {
            self.of_user = of_user;
        } else if self.config.as_deref() == Some(OsStr::new(DEFAULT_FILE)) {
            self.config = None;
        }
    }

    /// The configuration file, if it is not the default one.
    fn file(&self) -> Option<&Path> {
        self.named_file().or(self.of_user.as_deref())
    }

    /// The configuration file that the caller names.
    fn named_file(&self) -> Option<&Path> {
        self.config.as_deref().map(Path::new)
    }

    /// The look of standard output.
    fn look(&self) -> terminal_style::TerminalStyle {
        terminal_style::TerminalStyle::of_output(self.color)
    }

    fn client(&self) -> Result<Client, Error> {
        self.needs_no_remote()?;
        Ok(author::open_client(self.config()?)?)
    }
}

/// Takes the options of every command out of a line of usage: clap lists those that were given as if the
/// command needed them.
fn without_globals(error: &mut clap::Error) {
    const GIVEN: [&str; 3] = [" --config <FILE>", " --color <WHEN>", " --api <URL>"];
    let Some(ContextValue::StyledStr(usage)) = error.get(ContextKind::Usage) else { return };
    let usage = GIVEN.iter().fold(usage.to_string(), |usage, given| usage.replace(given, ""));
    error.insert(ContextKind::Usage, ContextValue::StyledStr(usage.into()));
}

/// Runs a command to its end on a runtime of its own. The command is behind a pointer, as the compiler copies a
/// future into each function of the runtime that takes it: the program would be larger by megabytes.
fn block_on<'a, T>(command: impl Future<Output = Result<T, Error>> + 'a) -> Result<T, Error> {
    let command: Pin<Box<dyn Future<Output = Result<T, Error>> + 'a>> = Box::pin(command);
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| {
            Error::new(Exit::Unavailable, format!("cannot start the async runtime: {error}"))
        })?
        .block_on(command)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn command_line_has_no_conflicting_options() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_has_an_example_in_its_help() {
        fn check(command: &clap::Command, path: &str) {
            let path = format!("{path} {}", command.get_name());
            let example = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(example.contains("hero "), "{path} has no example");
            command.get_subcommands().for_each(|sub| check(sub, &path));
        }
        check(&Cli::command(), "");
    }

    #[test]
    fn command_of_jobs_without_its_noun_is_named() {
        let fault = |line: &str| {
            let args = line.split(' ').map(OsString::from);
            Cli::of_args(args).expect_err(line).to_string()
        };
        let wrong = fault("hero logs 7f9c2ba4");
        assert!(wrong.contains("a similar subcommand exists: 'job logs'"), "{wrong}");
        let wrong = fault("hero --json list");
        assert!(wrong.contains("'job list'") && !wrong.contains("'limit'"), "{wrong}");
        let wrong = fault("hero queue retry");
        assert!(!wrong.contains("job"), "{wrong}");
    }

    #[test]
    fn usage_of_an_error_does_not_demand_the_options_of_every_command() {
        let words = ["hero", "--color", "never", "queue", "pause", "--config", "a.toml", "--typo"];
        let wrong =
            Cli::of_args(words.map(OsString::from)).expect_err("no such option").to_string();
        assert!(wrong.contains("Usage: hero queue pause"), "{wrong}");
        assert!(!wrong.contains("--config") && !wrong.contains("WHEN"), "{wrong}");
    }

    #[test]
    fn file_is_the_named_one_then_that_of_the_variable_the_user_and_the_machine() {
        let chosen = |named: &str, variable: &str, of_user: Option<&str>| {
            let words = ["hero", "--config", named, "status"].map(OsString::from);
            let mut global = Cli::of_args(words).expect("good usage").global;
            global.choose_file(Some(variable.into()), of_user.map(PathBuf::from));
            let is_named = global.named_file().is_some();
            (global.file().map(|file| file.display().to_string()).unwrap_or_default(), is_named)
        };
        let is = |file: &str, is_named| (file.to_owned(), is_named);
        assert_eq!(chosen("a.toml", "b.toml", Some("own")), is("a.toml", true));
        assert_eq!(chosen("", "b.toml", Some("own")), is("b.toml", true));
        assert_eq!(chosen("", "", Some("own")), is("own", false));
        assert_eq!(chosen("", "", None), is("", false));
        assert_eq!(chosen("", DEFAULT_FILE, Some("own")), is("", false));
    }

    #[test]
    fn unknown_unit_and_wrong_configuration_have_different_exit_codes() {
        let config = Config::default();
        let missing = config.unit("nobody").expect_err("no such unit");
        let wrong = config.unit("ruby-default-1").expect_err("no such type");
        assert_eq!(Error::from(missing).exit, Exit::NotFound);
        assert_eq!(Error::from(wrong).exit, Exit::Config);
    }
}
