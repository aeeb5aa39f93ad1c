//! A file of jobs that wait for each other by name: the graph of `hero submit --graph`, and of a periodic job.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Display;
use std::ops::Range;
use std::path::{Path, PathBuf};

use hero_error::{Error, Exit};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Deserialize;
use toml::Spanned;

use super::config_error::ConfigError;
use super::job_table::JobTable;
use super::source::Source;
use super::time_zones::{local_zone, time_zone};
use super::type_of_script::{ScriptTypes, type_of_script};
use crate::proto::graph::GraphCallback;
use crate::proto::graph_plan::{GraphPlan, PlannedJob};
use crate::proto::job::{Entrance, Job, JobId, JobName, JobSpec, notify_names};
use crate::proto::spoken_time::parse_time;
use crate::proto::target::ScriptType;
use crate::proto::units::parse_duration;

/// The keys of `[job.NAME]` that are not settings of the job itself.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
struct NodeKeys {
    file: Option<PathBuf>,
    delay: Option<String>,
    at: Option<String>,
    time_zone: Option<String>,
    after: Vec<Spanned<String>>,
    after_any: Vec<Spanned<String>>,
    inputs: BTreeMap<String, PathBuf>,
    stdin: Option<PathBuf>,
}

/// The keys of a callback that are not settings of the job itself.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
struct CallbackKeys {
    file: Option<PathBuf>,
}

/// The keys of `[defaults]` that are not settings of the jobs themselves.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
struct DefaultKeys {
    delay: Option<String>,
    at: Option<String>,
    time_zone: Option<String>,
}

/// The places of the names in a graph's file, and the files that its jobs name.
pub struct GraphFile<'s> {
    source: &'s Source<'s>,
    jobs: HashMap<String, Range<usize>>,
    prerequisites: HashMap<(String, String), Range<usize>>,
    files: Vec<GraphJobFiles<'s>>,
}

/// The files that a job of a graph's file names as inputs.
pub struct GraphJobFiles<'s> {
    pub table: JobTable<'s>,
    /// The files by their names in the folder of the job.
    pub inputs: BTreeMap<String, PathBuf>,
    pub stdin: Option<PathBuf>,
}

/// The keys at the top of a file.
const KEYS: [&str; 11] = [
    "id",
    "name",
    "notify",
    "at_a_time",
    "stop_after",
    "pause_after",
    "job",
    "defaults",
    "on_success",
    "on_failure",
    "on_end",
];

fn bad(error: impl Display) -> Error {
    Error::new(Exit::Data, error.to_string())
}

impl<'s> GraphFile<'s> {
    /// Reads the jobs of a file. Scripts of files are read within a bound, and must be of a configured type.
    ///
    /// # Errors
    /// [`Exit::Data`] with file, line and column; [`Exit::NotFound`] if a script's file does not exist.
    pub fn read(
        source: &'s Source<'s>,
        path: &Path,
        rules: (&ScriptTypes, u64),
    ) -> Result<(Self, GraphPlan<Job>), Error> {
        source.has_only(&KEYS).map_err(bad)?;
        let mut defaults = (JobSpec::default(), DefaultKeys::default());
        if let Some(table) = source.job_table("defaults", Entrance::GraphDefaults).map_err(bad)? {
            defaults.1 = table.read(&["at"], &mut defaults.0).map_err(bad)?;
            defaults.1.check(&table).map_err(bad)?;
        }
        // In the order of the file: jobs without prerequisites are dispatched in it.
        let tables = source.job_tables("job", Entrance::Graph).map_err(bad)?;
        if tables.is_empty() {
            let message = "has no job: each is a table such as [job.fetch]".to_owned();
            return Err(bad(source.wrong(None, message)));
        }
        let mut file =
            Self { source, jobs: HashMap::new(), prerequisites: HashMap::new(), files: Vec::new() };
        let mut plan = head_of(source).map_err(bad)?;
        for table in tables {
            let mut spec = defaults.0.clone();
            let keys: NodeKeys =
                table.read(&["after", "after_any", "at"], &mut spec).map_err(bad)?;
            let of_all = defaults.0.script_type.as_ref();
            read_script(&mut spec, keys.file.as_ref(), (&table, of_all), path, rules)?;
            let mut job = Job::from(spec);
            start_at(&mut job, &keys, &defaults.1, &table).map_err(bad)?;
            plan.jobs.push(file.node(table, keys, job));
        }
        for callback in GraphCallback::ALL {
            let table = source.job_table(callback.as_str(), Entrance::GraphCallback);
            let Some(table) = table.map_err(bad)? else { continue };
            let mut spec = defaults.0.clone();
            let keys: CallbackKeys = table.read(&[], &mut spec).map_err(bad)?;
            let of_all = defaults.0.script_type.as_ref();
            read_script(&mut spec, keys.file.as_ref(), (&table, of_all), path, rules)?;
            file.jobs.insert(callback.as_str().to_owned(), table.span.clone());
            *plan.callback(callback) = Some(Job::from(spec));
        }
        Ok((file, plan))
    }

    /// Notes the places of a job, and returns it with its prerequisites.
    fn node(&mut self, table: JobTable<'s>, keys: NodeKeys, job: Job) -> PlannedJob<Job> {
        let name = table.name.clone();
        self.jobs.insert(name.clone(), table.span.clone());
        let mut names = |of: Vec<Spanned<String>>| -> Vec<String> {
            let of = of.into_iter().map(|prerequisite| {
                let span = prerequisite.span();
                let prerequisite = prerequisite.into_inner();
                self.prerequisites.entry((name.clone(), prerequisite.clone())).or_insert(span);
                prerequisite
            });
            of.collect()
        };
        let (after, after_any) = (names(keys.after), names(keys.after_any));
        self.files.push(GraphJobFiles { table, inputs: keys.inputs, stdin: keys.stdin });
        PlannedJob { after, after_any, ..PlannedJob::new(name, job) }
    }

    /// Refuses a graph whose jobs are given files: a periodic job keeps none.
    ///
    /// # Errors
    /// [`ConfigError::Wrong`] at the first such job.
    pub fn refuse_files(&self) -> Result<(), ConfigError> {
        let of = self.files.iter().find(|of| !of.inputs.is_empty() || of.stdin.is_some());
        let why = "inputs and stdin are not taken: a periodic job keeps no files";
        of.map_or(Ok(()), |of| Err(of.table.wrong_table(why)))
    }

    pub fn files(&self) -> &[GraphJobFiles<'s>] {
        &self.files
    }

    /// Returns the error of a job or callback, at the place where it names a prerequisite, else at its own.
    pub fn wrong(
        &self,
        job: &str,
        prerequisite: Option<&str>,
        message: impl Display,
    ) -> ConfigError {
        let named = prerequisite.map(|of| (job.to_owned(), of.to_owned()));
        let span = named.and_then(|named| self.prerequisites.get(&named));
        self.source.wrong(span.or_else(|| self.jobs.get(job)).cloned(), message.to_string())
    }
}

/// Returns the graph without jobs: the id, the name, the notifications and the window that the file gives.
fn head_of(source: &Source<'_>) -> Result<GraphPlan<Job>, ConfigError> {
    let mut plan = GraphPlan::default();
    if let Some((id, span)) = source.value::<String>("id", "a string")? {
        let id = id.parse::<JobId>();
        plan.id = Some(id.map_err(|error| source.wrong(Some(span), error.to_string()))?);
    }
    if let Some((name, span)) = source.value::<String>("name", "a string")? {
        let name = name.parse::<JobName>();
        plan.name = Some(name.map_err(|error| source.wrong(Some(span), error.to_string()))?);
    }
    if let Some((names, span)) = source.value::<Vec<String>>("notify", "a list of strings")? {
        notify_names(names.iter().map(String::as_str))
            .map_err(|error| source.wrong(Some(span), format!("notify: {error}")))?;
        plan.notify = names;
    }
    let failures = "a number of failures, or a share of all jobs such as \"5%\"";
    let pause = "jobs and the length of their pause, such as \"1 10m\", or \"1 tell\"";
    plan.at_a_time = source.value("at_a_time", "a number of jobs")?.map(|(number, _)| number);
    plan.stop_after = source.value("stop_after", failures)?.map(|(failures, _)| failures);
    plan.pause_after = source.value("pause_after", pause)?.map(|(pause, _)| pause);
    Ok(plan)
}

impl DefaultKeys {
    /// Applies the checks of a submission; reports errors at the job's line.
    fn check(&self, table: &JobTable<'_>) -> Result<(), ConfigError> {
        let zone = zone(self.time_zone.as_deref(), table)?;
        let Some(at) = &self.at else { return Ok(()) };
        let time = parse_time(at, &zone, Timestamp::now());
        time.map(drop).map_err(|error| table.wrong("at", error))
    }
}

/// Sets the time of a job's start: its own, or the default.
fn start_at(
    job: &mut Job,
    own: &NodeKeys,
    defaults: &DefaultKeys,
    table: &JobTable<'_>,
) -> Result<(), ConfigError> {
    let at = own.at.as_deref().or(defaults.at.as_deref());
    if own.time_zone.is_some() && at.is_none() {
        return Err(table.wrong("time_zone", "needs `at`"));
    }
    if let Some(at) = at {
        let zone = zone(own.time_zone.as_deref().or(defaults.time_zone.as_deref()), table)?;
        let time = parse_time(at, &zone, Timestamp::now());
        job.spec.run_at = Some(time.map_err(|error| table.wrong("at", error))?);
    }
    let Some(delay) = own.delay.as_ref().or(defaults.delay.as_ref()) else { return Ok(()) };
    if job.spec.run_at.is_some() {
        return Err(table.wrong("delay", "cannot be set beside `at`"));
    }
    let delay = parse_duration(delay).map_err(|error| table.wrong("delay", error))?;
    job.set_delay(delay, Timestamp::now()).map_err(|error| table.wrong("delay", error.reason))
}

fn zone(named: Option<&str>, table: &JobTable<'_>) -> Result<TimeZone, ConfigError> {
    let named = named.map(|name| time_zone(name).map_err(|why| table.wrong("time_zone", why)));
    named.unwrap_or_else(|| Ok(local_zone()))
}

/// Reads the script, and finds its type by the file's extension where none is named.
fn read_script(
    spec: &mut JobSpec,
    file: Option<&PathBuf>,
    (table, of_all): (&JobTable<'_>, Option<&ScriptType>),
    path: &Path,
    (types, bytes_max): (&ScriptTypes, u64),
) -> Result<(), Error> {
    if spec.uses.is_some() {
        // The script has a type; the default is for the others.
        spec.script_type.take_if(|own| Some(&*own) == of_all);
        return match (spec.script.is_empty(), file) {
            (true, None) => Ok(()),
            _ => Err(bad(table.wrong("uses", "cannot be set beside script or file"))),
        };
    }
    let file = file.map(|file| path.parent().unwrap_or(Path::new("")).join(file));
    let key = match (spec.script.is_empty(), &file) {
        (false, None) => "script",
        (true, Some(_)) => "file",
        _ => return Err(bad(table.wrong_table("needs one of script, file and uses"))),
    };
    let named = spec.script_type.as_ref().map(ScriptType::as_str);
    let at_type = if named.is_some() { "type" } else { key };
    let script_type = type_of_script(named, file.as_deref(), types).map_err(|error| {
        let message = table.wrong(at_type, error.message.replace("--type", "`type`"));
        Error::new(
            if error.exit == Exit::Usage { Exit::Data } else { error.exit },
            message.to_string(),
        )
    })?;
    let of_type = types.get(&script_type);
    if let (Some(of_type), Some(file), "") = (of_type, &file, spec.extension.as_str()) {
        spec.extension = of_type.further_extension(file);
    }
    let checked = of_type.map_or(Ok(()), |of| of.check_asked(&script_type, &spec.asked_bounds()));
    spec.script_type = Some(script_type);
    checked.map_err(|error| bad(table.wrong_table(error)))?;
    if let Some(file) = file {
        spec.script = table.read_file("file", &file, bytes_max).map_err(|error| {
            let exit = if file.exists() { Exit::Data } else { Exit::NotFound };
            Error::new(exit, error.to_string())
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    fn parse(text: &str) -> Result<GraphPlan<Job>, Error> {
        let path = Path::new("g.toml");
        let source = Source::parse(path, text).map_err(bad)?;
        let read = GraphFile::read(&source, path, (&Config::default().types, 1 << 20));
        read.map(|(_, plan)| plan)
    }

    #[test]
    fn mistakes_are_reported_with_line_and_column() {
        for (text, message) in [
            ("", "g.toml: has no job: each is a table such as [job.fetch]"),
            ("[job.a]\nscript = 1", "g.toml:2:10: job.a.script: expected a string"),
            ("[jobs.a]", "g.toml:1:2: unknown key `jobs`; did you mean `job`?"),
            ("job = 1", "g.toml:1:7: job: expected a table"),
            (
                "[job.a]\nscrip = \"1\"",
                "g.toml:2:1: unknown key `scrip` in [job.a]; did you mean `script`?",
            ),
            ("[job.a]\ntype = \"osis\"", "g.toml:1:6: job.a: needs one of script, file and uses"),
            ("[job.a]\nscript = \"1\"", "g.toml:2:10: job.a.script: cannot find the script type"),
            (
                "[job.a]\nscript = \"1\"\ntype = \"ruby\"",
                "g.toml:3:8: job.a.type: the script type `ruby` is",
            ),
            (
                "[job.a]\nfile = \"/no/such.py\"",
                "g.toml:2:8: job.a.file: cannot be read: /no/such.py: no such file",
            ),
            (
                "[defaults]\ntype = \"osis\"\nafter = [\"a\"]\n[job.a]\nscript = \"1\"",
                "g.toml:3:9: defaults.after: each job has its own",
            ),
            ("[job.a]\nscript = \"1\"\ntype = \"osis\"\ntimeout = \"soon\"", "g.toml:4:11: "),
            ("[job.a]\nscript = \"1\"\ntype = \"osis\"\ninstance = 0", "g.toml:4:12: "),
            (
                "[job.a]\nscript = \"1\"\ntype = \"osis\"\nat = \"soon\"",
                "g.toml:4:6: job.a.at: `soon` is not a time: expected 09:00",
            ),
            ("[defaults]\nat = \"soon\"\n[job.a]\nscript = \"1\"", "g.toml:2:6: defaults.at: "),
            (
                "[job.a]\nscript = \"1\"\ntype = \"osis\"\ntime_zone = \"UTC\"",
                "g.toml:4:13: job.a.time_zone: needs `at`",
            ),
            (
                "[defaults]\ntime_zone = \"Mars/Base\"\n[job.a]\nscript = \"1\"",
                "g.toml:2:13: defaults.time_zone: not a time zone",
            ),
            ("[job.a\n", "g.toml:1:7: "),
            (
                "at_a_time = \"4\"\n[job.a]\nscript = \"1\"\ntype = \"osis\"",
                "g.toml:1:13: at_a_time: expected a number of jobs",
            ),
            (
                "stop_after = \"0%\"\n[job.a]\nscript = \"1\"\ntype = \"osis\"",
                "g.toml:1:14: stop_after: expected a number of failures, or",
            ),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.message.starts_with(message), "{text:?}: {}", error.message);
            assert!(matches!(error.exit, Exit::Data | Exit::NotFound), "{text:?}");
        }
    }

    #[test]
    fn jobs_start_at_local_times_of_their_zone_or_that_of_the_defaults() {
        let graph = parse(
            "[defaults]\ntype = \"osis\"\ntime_zone = \"Europe/Brussels\"\nat = \"2100-07-01 18:00\"\n\
             [job.a]\nscript = \"1\"\n[job.b]\nscript = \"1\"\ntime_zone = \"UTC\"\n\
             [job.c]\nscript = \"1\"\nat = \"2100-01-01 09:00\"\n",
        );
        let jobs = graph.expect("a graph").jobs;
        let times: Vec<String> =
            jobs.iter().filter_map(|of| Some(of.job.spec.run_at?.to_string())).collect();
        assert_eq!(times, ["2100-07-01T16:00:00Z", "2100-07-01T18:00:00Z", "2100-01-01T08:00:00Z"]);
    }

    #[test]
    fn jobs_come_in_the_order_of_the_file_with_their_defaults() {
        let text = "[defaults]\ntype = \"osis\"\nenv = { A = \"1\", B = \"1\" }\nretries = 2\n\
                    [job.z]\nscript = \"1\"\n[job.\"a b\"]\nscript = \"2\"\nenv = { B = \"2\" }\n\
                    retries = 0\nafter = [\"z\"]\n";
        let path = Path::new("g.toml");
        let source = Source::parse(path, text).expect("TOML");
        let types = Config::default().types;
        let (file, plan) = GraphFile::read(&source, path, (&types, 1 << 20)).expect("a graph");
        assert_eq!(plan.jobs.len(), 2);
        assert_eq!(file.jobs["a b"].start, text.find("\"a b\"").expect("it is there"));
        let told = file.wrong("a b", Some("z"), "it waits for `z`").to_string();
        assert!(told.starts_with("g.toml:11:10: it waits for `z`"), "{told}");
    }
}
