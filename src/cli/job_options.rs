//! The options that set a job, one for each setting that the command line takes.

use std::borrow::Cow;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Map, Value, json};

use super::help::{WHAT, WHEN, section};
use super::input::bad;
use super::script::{ScriptSource, fill_command};
use super::script_doc;
use super::script_inputs::{InputOptions, ScriptArguments};
use super::time::local_zone;
use crate::client::ClientError;
use crate::config::{Config, parse_duration, time_zone};
use crate::error::{Error, Exit};
use crate::proto::job::{
    Entrance, FieldKind, INPUT_FILES, InvalidJob, Job, JobFiles, JobSpec, SETTINGS, Setting,
    TraceParent,
};
use crate::proto::named_script::ScriptUse;
use crate::proto::spoken_time::{TimeError, parse_time};

/// The help about the files and functions of a script.
pub(super) const SCRIPT_HELP: &str = "\
A script finds, as variables:
  HERO_PARAMS      its parameters, as JSON
  HERO_INPUT_DIR   the folder of its --input files
  HERO_INPUTS      a JSON file with the outputs of its prerequisites
  HERO_OUTPUT_DIR  a folder whose files are kept, unlike its current folder's
and can call, in Python after `import hero`, in Rhai without `hero.`:
  hero.progress(0.5, \"text\")   shows its progress
  hero.output(value)           sets the output; in Rhai the last value does
  hero.params, hero.inputs     its parameters, the outputs of its prerequisites:
                               in Rhai params and INPUTS. A callback has the outputs
                               of all jobs, and as \"batch\" an object with id, jobs,
                               finished, failed, cancelled, ids and outputs
  hero.result(\"orders\")        the output of one prerequisite, as a value, by its name or id
  hero.checkpoint(value)       keeps a state for the next attempt of the job
  hero.state                   the state that was kept; in Rhai state()
  hero.submit(\"1\", name=\"a\")   submits a job, of a type that may_submit of its own
                               type names, hero.toml(5); in Rhai hero_submit
  hero.inputs(\"a\")            the output of such a job, or of one of its graph;
                               in Rhai hero_inputs
  hero.job(\"a\")               such a job with its state; in Rhai hero_job
  hero.retry_in(\"5m\", \"busy\")  ends it, and runs it again later
  hero.wait(\"approved\", \"3d\")  ends it, and runs it again once it is told this event
  hero.event                   the event that it was told; in Rhai event()
  hero.discard(\"no such id\")   ends it in an error that is not retried
Other programs write a line to the descriptor HERO_FD: {\"progress\": 0.5},
{\"output\": …}, {\"retry_in\": 300}, {\"wait\": {\"event\": \"approved\"}},
{\"state\": …}, {\"submit\": {…}} or {\"discard\": \"no such id\"}.
A Python script names its packages in a comment # /// script (PEP 723), one of node in // /// script.
See docs/scripts.md.";
/// The help of a time: people may say it in more ways than programs.
pub(super) const TIME_HELP: &str = "The earliest time to start: 09:00, tomorrow 09:00, friday 18:00 or 2026-12-24 18:00 in the \
                         local time zone, or RFC 3339 such as 2026-12-24T18:00:00+01:00";

/// The script and the settings of one job.
#[derive(Debug, Args)]
pub(super) struct JobOptions {
    #[command(flatten)]
    source: ScriptSource,
    #[command(flatten)]
    pub(super) further: FurtherOptions,
}

/// The settings of one job, without its script.
#[derive(Debug, Args)]
pub(super) struct FurtherOptions {
    #[command(flatten)]
    settings: SettingOptions,
    #[command(flatten)]
    pub(super) given: ScriptArguments,
    #[command(flatten)]
    pub(super) delay: DelayOption,
    /// The time zone of --at, such as Europe/Brussels; by default the zone of TZ, else of this machine
    #[arg(long, visible_alias = "time-zone", value_name = "ZONE", value_parser = time_zone)]
    #[arg(requires = "at", help_heading = WHEN)]
    timezone: Option<TimeZone>,
    #[command(flatten)]
    files: InputOptions,
    /// Check the script first, and submit it only if no mistake is found; of a graph, only check it
    #[arg(long, help_heading = WHAT)]
    pub(super) check: bool,
}

/// The delay of one job.
#[derive(Debug, Args)]
pub(super) struct DelayOption {
    /// The earliest time to start, this long from now by Redis's clock
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    #[arg(conflicts_with = "at", help_heading = WHEN)]
    delay: Option<String>,
}

impl DelayOption {
    pub(super) fn apply(&self, job: &mut Job) -> Result<(), Error> {
        let Some(delay) = &self.delay else { return Ok(()) };
        let delay = parse_duration(delay).map_err(|error| bad(format!("--delay: {error}")))?;
        job.set_delay(delay, Timestamp::now())
            .map_err(|error| bad(format!("--delay: {}", error.reason)))
    }
}

impl JobOptions {
    /// The ids of all options that cannot be given beside a file of jobs: all except the options of the script,
    /// and except the id, the name and the notifications, which a graph or batch has too.
    pub(super) fn ids() -> impl Iterator<Item = &'static str> {
        let words = settings().map(|setting| setting.word);
        let words = words.filter(|word| !["id", "name", "notify"].contains(word));
        words.chain(ScriptArguments::IDS).chain(InputOptions::IDS).chain(["delay", "timezone"])
    }

    pub(super) fn of_script(used: &ScriptUse, mut further: FurtherOptions) -> Self {
        further.settings.give("uses", used.to_string());
        Self { source: ScriptSource::of(None, None), further }
    }

    /// Returns true for a command in place of a script.
    pub(super) fn is_plain_command(&self) -> bool {
        self.source.is_absent()
    }

    /// Returns the module beside the script that a job without it missed.
    pub(super) fn missing_neighbour(&self, job: &Job) -> Option<PathBuf> {
        let has_files = job.extra.contains_key(INPUT_FILES);
        let error = job.error.as_deref().filter(|_| !has_files)?;
        self.source.missing_neighbour(error)
    }

    /// Returns the files that they give the job; of the job of a line, the line stands in place of each `place`.
    pub(super) fn files(
        &self,
        line: Option<(&str, &str)>,
        job: &Job,
        config: &Config,
    ) -> Result<JobFiles, Error> {
        let own = &self.further.files;
        let files = if let Some((place, line)) = line {
            // Lines may come from standard input.
            own.with_line(place, line).read(&config.job, true)?
        } else {
            let reads_script = self.further.settings.given("uses").is_none();
            own.read(&config.job, reads_script && self.source.is_standard_input())?
        };
        config.check_files(&job.spec, &files).map_err(bad)?;
        Ok(files)
    }

    /// Returns the settings that are given, without a script: of a graph or batch, its id, name and notifications.
    pub(super) fn settings_of_many(&self) -> Result<JobSpec, Error> {
        let mut spec = JobSpec::default();
        self.further.settings.apply(&mut spec, None)?;
        Ok(spec)
    }

    /// Returns the text of the script, and the time that it has: all that a task of rhailib has of them.
    pub(super) fn text_and_timeout(&self, config: &Config) -> Result<(String, Duration), Error> {
        let timeout = self.settings_of_many()?.timeout.unwrap_or(config.job.timeout);
        Ok((self.source.read(config.job.script_size_max)?, timeout))
    }

    pub(super) fn job(&self, config: &Config) -> Result<Job, Error> {
        let further = &self.further;
        let mut spec = further.given.spec()?;
        further.settings.apply(&mut spec, further.timezone.as_ref())?;
        spec.traceparent = spec.traceparent.or_else(trace_of_environment);
        if spec.uses.is_none() {
            self.read_script(&mut spec, config)?;
        } else if further.check {
            let message =
                "--check is for a script that is not published yet: hero script check FILE";
            return Err(Error::new(Exit::Usage, message));
        }
        config.check_asked(&spec).map_err(|error| of_option(error.into()))?;
        let mut job = Job::from(spec);
        further.delay.apply(&mut job)?;
        Ok(job)
    }

    fn read_script(&self, spec: &mut JobSpec, config: &Config) -> Result<(), Error> {
        if self.is_plain_command() {
            fill_command(spec, config)?;
        } else {
            self.source.fill(spec, config)?;
        }
        if spec.script.is_empty() {
            let name = self.source.name();
            return Err(bad(format!("{name}: it is empty: there is nothing to run")));
        }
        if let Some(script_type) = spec.script_type.as_ref().filter(|_| self.further.check) {
            let (name, extension) = (self.source.name(), spec.extension.as_str());
            script_doc::refuse_faulty(config, script_type, &name, &spec.script, extension)?;
        }
        if spec.name.is_none() {
            spec.name = self.source.job_name();
        }
        Ok(())
    }
}

/// Returns the place in a trace that this program was started at.
pub(super) fn trace_of_environment() -> Option<TraceParent> {
    std::env::var(TraceParent::VARIABLE).ok().and_then(|text| TraceParent::inherited(&text))
}

/// The settings that were given, each with the text of the hash; a duration still has its unit.
#[derive(Debug)]
pub(super) struct SettingOptions(Vec<(&'static Setting, String)>);

impl SettingOptions {
    /// Sets an option in place of what was given.
    fn give(&mut self, word: &str, text: String) {
        self.0.retain(|(setting, _)| setting.word != word);
        self.0.extend(SETTINGS.iter().find(|setting| setting.word == word).map(|of| (of, text)));
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (&'static Setting, &str)> {
        self.0.iter().map(|(setting, text)| (*setting, text.as_str()))
    }

    pub(super) fn given(&self, word: &str) -> Option<&str> {
        self.0.iter().find(|(setting, _)| setting.word == word).map(|(_, text)| text.as_str())
    }

    pub(super) fn apply(&self, spec: &mut JobSpec, zone: Option<&TimeZone>) -> Result<(), Error> {
        for (setting, text) in &self.0 {
            let own = in_hash(setting, text, zone)?;
            setting.set(spec, &own).map_err(|InvalidJob { field, reason }| {
                // As it was given.
                let reason = reason.replace(&format!("`{own}`"), &format!("`{text}`"));
                of_option(InvalidJob { field, reason }.into())
            })?;
        }
        Ok(())
    }
}

/// Returns the value of an option as the hash has it.
pub(super) fn in_hash<'t>(
    setting: &Setting,
    text: &'t str,
    zone: Option<&TimeZone>,
) -> Result<Cow<'t, str>, Error> {
    let wrong = |why: String| of_option(InvalidJob::new(setting.field, why).into());
    match setting.kind {
        FieldKind::Time => match spoken_time(text, zone) {
            Ok(time) => Ok(time.to_string().into()),
            Err(error) => Err(wrong(error.to_string())),
        },
        FieldKind::Duration => match parse_duration(text) {
            Ok(time) => Ok(time.as_secs_f64().to_string().into()),
            Err(error) => Err(wrong(error.to_string())),
        },
        _ => Ok(setting.spoken(text)),
    }
}

/// Names the option of a setting that is at fault, where the error names the field of the hash.
pub(super) fn of_option(error: ClientError) -> Error {
    match &error {
        ClientError::Invalid(InvalidJob { field, reason }) => {
            Error::new(error.exit(), of_field(field, reason))
        }
        _ => error.into(),
    }
}

/// Returns the message about a field of the hash, by the name of its option.
pub(super) fn of_field(field: &str, reason: &str) -> String {
    match settings().find(|setting| setting.field == field) {
        Some(setting) => format!("--{}: {reason}", long(setting)),
        None => InvalidJob::new(field, reason).to_string(),
    }
}

/// Reads a time as people say it, in a time zone or in the machine's.
pub(super) fn spoken_time(text: &str, zone: Option<&TimeZone>) -> Result<Timestamp, TimeError> {
    parse_time(text, &zone.cloned().unwrap_or_else(local_zone), Timestamp::now())
}

pub(super) fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}

impl Args for SettingOptions {
    fn augment_args(command: Command) -> Command {
        // The sections of the help come in the order of their first options.
        let mut settings: Vec<&Setting> = settings().collect();
        settings.sort_by_cached_key(|setting| section(setting));
        settings.into_iter().fold(command, |command, setting| command.arg(option(setting)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for SettingOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = settings().filter_map(|setting| Some((setting, text(setting, matches)?)));
        Ok(Self(given.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.extend(Self::from_arg_matches(matches)?.0);
        Ok(())
    }
}

fn settings() -> impl Iterator<Item = &'static Setting> {
    SETTINGS.iter().filter(|setting| setting.absent_at(Entrance::CommandLine).is_none())
}

/// Hides an option that an entrance does not take: it is understood, and refused with the reason.
pub(super) fn hidden_at(entrance: Entrance, option: Arg) -> Arg {
    let of = SETTINGS.iter().find(|setting| setting.word == option.get_id().as_str());
    let is_refused = of.is_some_and(|of| of.absent_at(entrance).is_some());
    if is_refused { option.hide(true) } else { option }
}

/// Returns whether a setting is a flag that is set by default.
fn is_negated(setting: &Setting) -> bool {
    !setting.negated.is_empty()
}

fn long(setting: &Setting) -> String {
    let no = if is_negated(setting) { "no-" } else { "" };
    format!("{no}{}", setting.word.replace('_', "-"))
}

fn option(setting: &'static Setting) -> Arg {
    let doc = setting.doc.trim_start();
    let arg = Arg::new(setting.word).long(long(setting)).value_name(setting.value_name).help(doc);
    let arg = setting.short.map_or(arg.clone(), |letter| arg.short(letter));
    let heading = section(setting).map(|(_, title)| title);
    let arg = arg.help_heading(heading);
    // It stands in place of a file.
    let arg = if setting.word == "uses" { arg.group("ScriptSource") } else { arg };
    let repeated = || format!("{doc}; may be repeated");
    match setting.kind {
        FieldKind::Flag => Arg::new(setting.word)
            .long(long(setting))
            .action(ArgAction::SetTrue)
            .help_heading(heading)
            .help(if is_negated(setting) { setting.negated } else { doc }),
        FieldKind::Time => arg.help(TIME_HELP),
        _ if setting.word == "priority" => arg.help(format!("{doc}; or one of these words")),
        FieldKind::List | FieldKind::Texts => arg.action(ArgAction::Append).help(repeated()),
        FieldKind::Map => arg.action(ArgAction::Append).value_parser(pair).help(repeated()),
        _ => arg,
    }
}

fn text(setting: &Setting, matches: &ArgMatches) -> Option<String> {
    let id = setting.word;
    match setting.kind {
        FieldKind::Flag => matches.get_flag(id).then(|| (!is_negated(setting)).to_string()),
        FieldKind::List | FieldKind::Texts => {
            Some(json!(matches.get_many::<String>(id)?.collect::<Vec<_>>()).to_string())
        }
        FieldKind::Map => {
            let entries = matches.get_many::<(String, String)>(id)?.cloned();
            let entries = entries.map(|(name, value)| (name, Value::String(value)));
            Some(Value::Object(entries.collect::<Map<_, _>>()).to_string())
        }
        _ => matches.get_one::<String>(id).cloned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: JobOptions,
    }

    fn job(args: &[&str]) -> Result<Job, Error> {
        let line = Line::try_parse_from([&["submit", "-t", "osis", "-e", "1"], args].concat());
        line.expect("good usage").options.job(&Config::default())
    }

    #[test]
    fn every_option_reaches_the_job() {
        let job = job(&[
            "--id=a-1",
            "--name=count words",
            "-g=io",
            "-i=3",
            "--priority=0",
            "--timeout=2m",
            "--retries=4",
            "--after=x",
            "--after=y",
            "--after-any=z",
            "--log-path=a/b.log",
            "--retention=7d",
            "--at=2030-01-01T00:00:00+01:00",
            "--unique-key=k",
            "--limit-key=l",
            "--env=A=b=c",
            "--caller=me",
            "--context=here",
            "--no-concurrent",
            "--no-reply",
        ])
        .expect("legal");
        let fields: Vec<(&str, String)> = job.submitted_fields();
        let expected = [
            ("id", "a-1"),
            ("script", "1"),
            ("name", "count words"),
            ("caller_id", "me"),
            ("context_id", "here"),
            ("script_type", "osis"),
            ("group", "io"),
            ("instance", "3"),
            ("priority", "0"),
            ("timeout", "120"),
            ("retries", "4"),
            ("concurrent", "false"),
            ("log_path", "a/b.log"),
            ("env_vars", r#"{"A":"b=c"}"#),
            ("prerequisites", r#"["x","y"]"#),
            ("after_any", r#"["z"]"#),
            ("run_at", "2029-12-31T23:00:00.000Z"),
            ("unique_key", "k"),
            ("limit_key", "l"),
            ("retention", "604800"),
            ("reply", "0"),
        ];
        assert_eq!(fields, expected.map(|(name, value)| (name, value.to_owned())));
    }

    #[test]
    fn error_names_the_option_and_what_was_typed() {
        for (args, said) in [
            (&["--retention=100000d"][..], "--retention: `100000d` is more than"),
            (&["--priority=7"][..], "--priority: "),
            (&["--at=2020-01-01 09:00"][..], "--at: `2020-01-01 09:00` has passed"),
        ] {
            let error = job(args).expect_err(said).message;
            assert!(error.starts_with(said), "{error}");
        }
        for (word, level) in [("high", "0"), ("urgent", "0"), ("normal", "1"), ("low", "2")] {
            let job = job(&["--priority", word]).expect("legal");
            assert_eq!(job.spec.priority.as_str(), level, "{word}");
        }
    }

    #[test]
    fn local_time_is_read_in_the_named_zone() {
        let run_at = |args: &[&str]| job(args).expect("legal").spec.run_at.expect("a time");
        let brussels = run_at(&["--at=2100-07-01 18:00", "--timezone=Europe/Brussels"]);
        assert_eq!(brussels.to_string(), "2100-07-01T16:00:00Z");
        let ahead = run_at(&["--at", "tomorrow 09:00", "--time-zone", "UTC"]);
        assert!(ahead > Timestamp::now(), "{ahead}");
        for wrong in [&["--timezone=UTC"][..], &["--at=09:00", "--timezone=Mars/Base"]] {
            let line = [&["submit", "-t", "osis", "-e", "1"], wrong].concat();
            assert!(Line::try_parse_from(line).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn what_is_illegal_is_bad_data() {
        for wrong in [
            "--id=a:b",
            "--group=a:b",
            "--instance=0",
            "--priority=3",
            "--timeout=5",
            "--timeout=soon",
            "--retries=-1",
            "--after=a b",
            "--after-any=a b",
            "--retention=7",
            "--at=tomorrow",
            "--at=2020-01-01 09:00",
            "--at=2030-01-01T00:00:00",
            "--unique-key=",
            "--limit-key=",
            "--name=",
            "--name=a\nb",
        ] {
            assert_eq!(job(&[wrong]).expect_err(wrong).exit, Exit::Data, "{wrong}");
        }
    }

    #[test]
    fn a_script_has_exactly_one_source() {
        for args in [&["-t", "osis"][..], &["-t", "osis", "-e", "1", "file.rhai"][..]] {
            assert!(Line::try_parse_from([&["submit"], args].concat()).is_err(), "{args:?}");
        }
    }

    #[test]
    fn a_variable_needs_a_name_and_may_hold_an_equals_sign() {
        assert_eq!(pair("A=b=c"), Ok(("A".to_owned(), "b=c".to_owned())));
        assert_eq!(pair("A="), Ok(("A".to_owned(), String::new())));
        assert!(pair("A").is_err() && pair("=a").is_err());
    }
}
