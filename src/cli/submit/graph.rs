//! `hero submit --graph`: a file of jobs that wait for each other by name.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Deserialize;
use serde_json::{Value, json};
use toml::Spanned;

use crate::cli::api::{MethodError, settings};
use crate::cli::input::{self, bad};
use crate::cli::script::ScriptSource;
use crate::cli::script_files::{folder_of, read_files};
use crate::cli::time::local_zone;
use crate::cli::window_options::WindowOptions;
use crate::client::{FilesByPlace, Graph, set_delay};
use crate::config::{Config, ConfigError, JobTable, Source, parse_duration, time_zone};
use crate::error::{Error, Exit};
use crate::proto::graph::GraphCallback;
use crate::proto::job::{Entrance, Job, JobFiles, JobId, JobName, JobSpec, notify_names};
use crate::proto::spoken_time::parse_time;
use crate::proto::target::ScriptType;
use crate::proto::window::GraphWindow;

/// The largest file that is read.
const FILE_SIZE_MAX: u64 = 32 << 20;

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

/// The places of the names in a graph's file.
pub(super) struct GraphFile<'s> {
    source: &'s Source<'s>,
    jobs: HashMap<String, Range<usize>>,
    prerequisites: HashMap<(String, String), Range<usize>>,
}

/// Reads the text of a graph's file, within its bound.
pub(super) fn read_file(path: &Path) -> Result<String, Error> {
    input::read_bounded(path, FILE_SIZE_MAX)
}

/// Parses the text of a graph's file.
///
/// # Errors
/// [`crate::error::Exit::Data`] with file, line and column.
pub(super) fn parse<'t>(path: &'t Path, text: &'t str) -> Result<Source<'t>, Error> {
    Source::parse(path, text).map_err(bad)
}

impl<'s> GraphFile<'s> {
    /// Reads the jobs of a file.
    ///
    /// # Errors
    /// [`crate::error::Exit::Data`] with file, line and column.
    pub(super) fn read(
        source: &'s Source<'s>,
        path: &Path,
        config: &Config,
    ) -> Result<(Self, Graph), Error> {
        source
            .has_only(&[
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
            ])
            .map_err(bad)?;
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
        let mut file = Self { source, jobs: HashMap::new(), prerequisites: HashMap::new() };
        let mut graph = named_graph(source)?;
        for table in tables {
            let mut spec = defaults.0.clone();
            let keys: NodeKeys =
                table.read(&["after", "after_any", "at"], &mut spec).map_err(bad)?;
            let of_all = defaults.0.script_type.as_ref();
            read_script(&mut spec, keys.file.as_ref(), (&table, of_all), path, config)?;
            let mut job = Job::from(spec);
            start_at(&mut job, &keys, &defaults.1, &table).map_err(bad)?;
            let files = read_inputs(&job, &keys, &table, path, config)?;
            file.jobs.insert(table.name.clone(), table.span.clone());
            let (after, after_any) = (keys.after.iter(), keys.after_any.iter());
            let node = graph.add(&table.name, job);
            node.files(files);
            node.waits_for(after.map(Spanned::get_ref), after_any.map(Spanned::get_ref));
            for prerequisite in keys.after.into_iter().chain(keys.after_any) {
                let span = prerequisite.span();
                let key = (table.name.clone(), prerequisite.into_inner());
                file.prerequisites.entry(key).or_insert(span);
            }
        }
        for callback in GraphCallback::ALL {
            let table = source.job_table(callback.as_str(), Entrance::GraphCallback);
            let Some(table) = table.map_err(bad)? else { continue };
            let mut spec = defaults.0.clone();
            let keys: CallbackKeys = table.read(&[], &mut spec).map_err(bad)?;
            let of_all = defaults.0.script_type.as_ref();
            read_script(&mut spec, keys.file.as_ref(), (&table, of_all), path, config)?;
            file.jobs.insert(callback.as_str().to_owned(), table.span.clone());
            graph.on(callback, Job::from(spec));
        }
        Ok((file, graph))
    }

    /// Adds the place in the file to an error about a job.
    pub(super) fn explained(&self, MethodError { error, data }: MethodError) -> Error {
        let of = |name: &str| data[name].as_str().map(str::to_owned);
        let span = match (of("name"), of("prerequisite"), data["cycle"][0].as_str()) {
            (Some(job), Some(prerequisite), _) => self.prerequisites.get(&(job, prerequisite)),
            (Some(name), None, _) => self.jobs.get(&name),
            (None, _, Some(first)) => self.jobs.get(first),
            _ => return error,
        };
        let message = self.source.wrong(span.cloned(), error.message).to_string();
        // What is missing is named by the file.
        let exit = if error.exit == Exit::NotFound { Exit::Data } else { error.exit };
        Error::new(exit, message)
    }
}

/// Returns the parameters of a graph, and the files of its jobs by their places.
pub(super) fn params(graph: &Graph) -> (Value, FilesByPlace) {
    let jobs = graph.nodes().iter().map(|node| {
        let [after, after_any] = node.prerequisites();
        let job = settings(node.job());
        json!({ "name": node.name(), "job": job, "after": after, "after_any": after_any })
    });
    let mut params = json!({
        "id": graph.has_fixed_id().then(|| graph.id()),
        "name": graph.name_of_all(),
        "notify": graph.notifications(),
        "jobs": jobs.collect::<Vec<_>>(),
    });
    WindowOptions::add_to(&mut params, graph.window());
    for (callback, job) in graph.callbacks() {
        params[callback.as_str()] = json!(settings(job));
    }
    let files = graph.nodes().iter().map(|node| node.job_files().clone()).enumerate();
    (params, files.filter(|(_, files)| !files.is_empty()).collect())
}

/// Returns an empty graph with the id, the name, the notifications and the window that the file gives.
fn named_graph(source: &Source<'_>) -> Result<Graph, Error> {
    let mut graph = Graph::new();
    if let Some((id, span)) = source.text("id").map_err(bad)? {
        let id = id.parse::<JobId>();
        graph.set_id(id.map_err(|error| bad(source.wrong(Some(span), error.to_string())))?);
    }
    if let Some((name, span)) = source.text("name").map_err(bad)? {
        let name = name.parse::<JobName>();
        graph.set_name(name.map_err(|error| bad(source.wrong(Some(span), error.to_string())))?);
    }
    if let Some((names, span)) = source.texts("notify").map_err(bad)? {
        let names = notify_names(names.iter().map(String::as_str));
        graph.notify(
            names.map_err(|error| bad(source.wrong(Some(span), format!("notify: {error}"))))?,
        );
    }
    let at_a_time = source.value("at_a_time", "a number of jobs").map_err(bad)?;
    let failures = "a number of failures, or a share of all jobs such as \"5%\"";
    let stop_after = source.value("stop_after", failures).map_err(bad)?;
    let pause = "jobs and the length of their pause, such as \"1 10m\", or \"1 tell\"";
    let pause_after = source.value("pause_after", pause).map_err(bad)?;
    graph.set_window(GraphWindow {
        at_a_time: at_a_time.map(|(number, _)| number),
        stop_after: stop_after.map(|(failures, _)| failures),
        pause_after: pause_after.map(|(pause, _)| pause),
    });
    Ok(graph)
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
    set_delay(job, delay).map_err(|error| table.wrong("delay", error.reason))
}

fn zone(named: Option<&str>, table: &JobTable<'_>) -> Result<TimeZone, ConfigError> {
    let named = named.map(|name| time_zone(name).map_err(|why| table.wrong("time_zone", why)));
    named.unwrap_or_else(|| Ok(local_zone()))
}

/// Reads the files that a job is given, which lie beside the graph's file.
fn read_inputs(
    job: &Job,
    keys: &NodeKeys,
    table: &JobTable<'_>,
    path: &Path,
    config: &Config,
) -> Result<JobFiles, Error> {
    let folder = folder_of(path);
    let inputs = keys.inputs.iter().map(|(name, file)| (name.as_str(), folder.join(file)));
    let stdin = keys.stdin.as_ref().map(|file| folder.join(file));
    let key = if keys.inputs.is_empty() { "stdin" } else { "inputs" };
    let files = read_files(&config.job, inputs, stdin.as_deref()).map_err(|error| {
        let message =
            error.message.replace("--input: ", "").replace("--input and --stdin ", "the job ");
        Error::new(error.exit, table.wrong(key, message).to_string())
    })?;
    let checked = config.check_files(&job.spec, &files);
    checked.map_err(|error| bad(table.wrong(key, error)))?;
    Ok(files)
}

/// Reads the script, and finds its type by the file's extension where none is named.
fn read_script(
    spec: &mut JobSpec,
    file: Option<&PathBuf>,
    (table, of_all): (&JobTable<'_>, Option<&ScriptType>),
    path: &Path,
    config: &Config,
) -> Result<(), Error> {
    if spec.uses.is_some() {
        // The script has a type; the default is for the others.
        spec.script_type.take_if(|own| Some(&*own) == of_all);
        return match (spec.script.is_empty(), file) {
            (true, None) => Ok(()),
            _ => Err(bad(table.wrong("uses", "cannot be set beside script or file"))),
        };
    }
    let folder = path.parent().unwrap_or(Path::new(""));
    let script = (!spec.script.is_empty()).then(|| std::mem::take(&mut spec.script));
    let (key, from) = match (script, file) {
        (Some(script), None) => ("script", ScriptSource::of(None, Some(script))),
        (None, Some(file)) => ("file", ScriptSource::of(Some(folder.join(file)), None)),
        _ => return Err(bad(table.wrong_table("needs one of script, file and uses"))),
    };
    let named = spec.script_type.as_ref().map(ScriptType::as_str);
    let at_type = if named.is_some() { "type" } else { key };
    let script_type = from
        .script_type(named, config)
        .map_err(|error| bad(table.wrong(at_type, error.message.replace("--type", "`type`"))))?;
    if spec.extension.is_empty() {
        spec.extension = from.extension(&script_type, config);
    }
    spec.script_type = Some(script_type);
    config.check_asked(spec).map_err(|error| bad(table.wrong_table(error)))?;
    spec.script = from
        .read(config.job.script_size_max)
        .map_err(|error| Error::new(error.exit, table.wrong(key, error.message).to_string()))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::ClientError;

    fn parse(text: &str) -> Result<Graph, Error> {
        let path = Path::new("g.toml");
        let source = super::parse(path, text)?;
        let read = GraphFile::read(&source, path, &Config::default());
        read.map(|(_, graph)| graph)
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
                "g.toml:2:8: job.a.file: no such file: /no/such.py",
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
        let jobs = graph.expect("a graph").jobs().expect("jobs");
        let times: Vec<String> =
            jobs.iter().filter_map(|job| Some(job.spec.run_at?.to_string())).collect();
        assert_eq!(times, ["2100-07-01T16:00:00Z", "2100-07-01T18:00:00Z", "2100-01-01T08:00:00Z"]);
    }

    #[test]
    fn jobs_come_in_the_order_of_the_file_with_their_defaults() {
        let text = "[defaults]\ntype = \"osis\"\nenv = { A = \"1\", B = \"1\" }\nretries = 2\n\
                    [job.z]\nscript = \"1\"\n[job.\"a b\"]\nscript = \"2\"\nenv = { B = \"2\" }\n\
                    retries = 0\nafter = [\"z\"]\n";
        let path = Path::new("g.toml");
        let source = super::parse(path, text).expect("TOML");
        let (file, graph) = GraphFile::read(&source, path, &Config::default()).expect("a graph");
        assert_eq!(graph.len(), 2);
        assert_eq!(file.jobs["a b"].start, text.find("\"a b\"").expect("it is there"));
        let unknown = ClientError::UnknownInGraph {
            job: "a b".to_owned(),
            prerequisite: "z".to_owned(),
            nearest: None,
        };
        let told = file.explained(MethodError::of(unknown.into(), None));
        assert!(told.message.starts_with("g.toml:11:10: job `a b` waits for `z`"), "{told}");
    }
}
