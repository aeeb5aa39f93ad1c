//! Periodic jobs: `*.toml` in `supervisor.cron_dir`, each with one `[cron.NAME]` or more.
//!
//! A job with a mistake is reported and left out, as is a file that cannot be read; the others stay in force.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;

use super::config_error::ConfigError;
use super::cron_rules::{BESIDE_GRAPH, CronRules, complete};
use super::files::{self, TableKind};
use super::graph_file::GraphFile;
use super::job_table::JobTable;
use super::schema::Config;
use super::source::Source;
use super::time_zones::time_zone;
use crate::proto::cron::{Calendar, CatchUp, CronName, Overlap, Schedule};
use crate::proto::every::{CronFleet, Every};
use crate::proto::graph::GraphKind;
use crate::proto::graph_plan::GraphPlan;
use crate::proto::job::{Entrance, Job, JobSpec};
use crate::proto::notification::NotifyName;
use crate::proto::target::{IllegalName, ScriptType};
use crate::proto::text::sha256;
use crate::proto::window::{GraphWindow, PauseAfter, StopAfter};

const ENTRIES_MAX: usize = 1000;

/// The variable with the time that a firing is due at.
const DUE: &str = "HERO_CRON_DUE";

/// The length of a digest: it tells changes, and guards nothing.
const DIGEST_CHARS: usize = 16;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CronEntry {
    pub name: CronName,
    pub place: CronPlace,
    pub schedule: Schedule,
    pub catch_up: CatchUp,
    pub overlap: Overlap,
    /// The batch of every firing, if it is one.
    pub fleet: Option<CronFleet>,
    /// The graph of every firing, if it is one: its jobs without ids.
    pub graph: Option<GraphPlan<JobSpec>>,
    /// The settings of the job of every firing, without its id; of a graph, what its jobs have in common.
    pub(super) spec: JobSpec,
}

/// The place that declares a periodic job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CronPlace {
    File(PathBuf),
    Redis {
        /// The person or program that added or changed it last.
        by: String,
        /// The time of that, in RFC 3339.
        at: String,
    },
}

impl std::fmt::Display for CronPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(file) => write!(f, "{}", file.display()),
            Self::Redis { .. } => f.write_str("redis"),
        }
    }
}

/// All periodic jobs of a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Crontab {
    pub entries: Vec<CronEntry>,
    /// The mistakes of the jobs and files that are left out.
    pub problems: Vec<ConfigError>,
    pub rules: CronRules,
}

impl Crontab {
    /// Returns the digest of each periodic job of files, by its name.
    pub fn digests(&self) -> BTreeMap<String, String> {
        let of_files =
            self.entries.iter().filter(|entry| matches!(entry.place, CronPlace::File(_)));
        of_files.map(|entry| (entry.name.to_string(), entry.digest())).collect()
    }

    /// Returns the files whose periodic jobs differ from those that were read later.
    pub fn changed_files(&self, later: &Self) -> Vec<String> {
        let digests = |crontab: &Self| -> BTreeSet<(String, String)> {
            let all = crontab.entries.iter();
            all.map(|entry| (entry.place.to_string(), format!("{} {}", entry.name, entry.digest())))
                .collect()
        };
        let (before, after) = (digests(self), digests(later));
        let files: BTreeSet<&String> =
            before.symmetric_difference(&after).map(|(file, _)| file).collect();
        files.into_iter().cloned().collect()
    }
}

impl Config {
    pub fn crontab(&self) -> Crontab {
        CronRules::of(self).read(&self.supervisor.cron_dir)
    }
}

impl CronRules {
    /// Reads the periodic jobs of a folder. A missing folder has none.
    pub fn read(&self, folder: &Path) -> Crontab {
        let kind = TableKind { word: "cron", most: ENTRIES_MAX, many: "periodic jobs" };
        let read = |file: &Path, text: &str| self.cron_file(file, text);
        let of = |entry: &CronEntry| (entry.name.clone(), entry.place.to_string().into());
        let (entries, problems) = files::read_folder(folder, kind, read, of);
        Crontab { entries, problems, rules: self.clone() }
    }

    /// Returns the mistakes in the text of a file of periodic jobs.
    pub fn problems(&self, file: &Path, text: &str) -> Vec<String> {
        let read = self.cron_file(file, text).unwrap_or_else(|problem| vec![Err(problem)]);
        read.into_iter().filter_map(Result::err).map(|problem| problem.to_string()).collect()
    }

    /// Reads the periodic jobs of one file's text, each of which may be illegal.
    fn cron_file(
        &self,
        file: &Path,
        text: &str,
    ) -> Result<Vec<Result<CronEntry, ConfigError>>, ConfigError> {
        let source = Source::parse(file, text)?;
        source.has_only(&["cron"])?;
        let tables = source.job_tables("cron", Entrance::PeriodicJob)?;
        Ok(tables.iter().map(|table| self.cron_entry(file, table)).collect())
    }

    fn cron_entry(&self, file: &Path, table: &JobTable<'_>) -> Result<CronEntry, ConfigError> {
        let illegal = |error: IllegalName| table.wrong_table(error);
        let wrong = |(key, why): (&str, String)| table.wrong(key, why);
        let name: CronName = table.name.parse().map_err(illegal)?;
        let mut spec = JobSpec { reply: false, ..JobSpec::default() };
        let own: CronKeys = table.read(&[], &mut spec)?;
        let zone = time_zone(&own.time_zone).map_err(|why| table.wrong("time_zone", why))?;
        let schedule =
            Schedule::new(&own.schedule, zone).map_err(|why| table.wrong("schedule", why))?;
        let folder = file.parent().unwrap_or(Path::new(""));
        let mut graph = None;
        if let Some(file) = &own.graph {
            if own.file.is_some() || !spec.to_json().keys().all(|field| field == "reply") {
                return Err(wrong(("graph", BESIDE_GRAPH.to_owned())));
            }
            let plan = self.read_graph(table, &folder.join(file), &name)?;
            (spec, graph) = (Self::spec_of_graph(&name, &plan), Some(plan));
        } else {
            self.read_cron_script(table, folder, own.file.as_deref(), &mut spec)?;
            self.check_type(&spec).map_err(wrong)?;
            let of_type = spec.script_type.as_ref().and_then(|name| self.types.get(name));
            if let (Some(of_type), Some(file), "") = (of_type, &own.file, spec.extension.as_str()) {
                spec.extension = of_type.further_extension(file);
            }
            complete(&name, &mut spec, &self.bounds).map_err(|error| table.wrong_table(error))?;
        }
        // The id of a firing is legal at any time if it is at one.
        name.job_id(Timestamp::UNIX_EPOCH).map_err(illegal)?;
        let (spread, calendar) = (own.spread.as_deref(), own.calendar.as_deref());
        let mut schedule = self.with_rules(&name, schedule, spread, calendar).map_err(wrong)?;
        let (catch_up, overlap) = (own.catch_up, own.overlap);
        let fleet = Self::fleet(own.fleet(), &spec, &mut schedule).map_err(wrong)?;
        let place = CronPlace::File(file.to_owned());
        Ok(CronEntry { name, place, schedule, catch_up, overlap, fleet, graph, spec })
    }

    fn read_cron_script(
        &self,
        table: &JobTable<'_>,
        folder: &Path,
        file: Option<&Path>,
        spec: &mut JobSpec,
    ) -> Result<(), ConfigError> {
        let Some(file) = file else {
            let has_script = !spec.script.is_empty() || spec.uses.is_some();
            let missing = || Err(table.wrong_table("needs a script, a file, uses or a graph"));
            return if has_script { Ok(()) } else { missing() };
        };
        if !spec.script.is_empty() || spec.uses.is_some() {
            return Err(table.wrong("file", "cannot be set beside script or uses"));
        }
        // As in a graph, a relative path begins at the folder of the file that names it.
        spec.script = table.read_file("file", &folder.join(file), self.bounds.script_size_max)?;
        Ok(())
    }

    fn read_graph(
        &self,
        table: &JobTable<'_>,
        path: &Path,
        name: &CronName,
    ) -> Result<GraphPlan<JobSpec>, ConfigError> {
        let bytes_max = self.bounds.script_size_max;
        let text = table.read_file("graph", path, bytes_max)?;
        let wrong = |error: String| table.wrong("graph", error);
        let source = Source::parse(path, &text).map_err(|error| wrong(error.to_string()))?;
        let read = GraphFile::read(&source, path, (&self.types, bytes_max));
        let (file, plan) = read.map_err(|error| wrong(error.message))?;
        file.refuse_files().map_err(|error| wrong(error.to_string()))?;
        let plan = plan.map(|_, job| Ok(job.spec)).and_then(|plan| self.graph(name, plan));
        plan.map_err(|(job, why)| {
            wrong(file.wrong(&job, None, format!("{job}: {why}")).to_string())
        })
    }
}

impl CronEntry {
    /// Returns the job of the firing that is due at this time.
    pub fn job(&self, due: Timestamp) -> Job {
        let mut spec = self.spec.clone();
        // The copies have ids of their own.
        spec.id = if self.fleet.is_some() { None } else { self.name.job_id(due).ok() };
        spec.env_vars.insert(DUE.to_owned(), due.to_string());
        spec.into()
    }

    /// Returns the graph of the firing that is due at this time, if it is one; its jobs have new ids.
    pub fn graph(&self, due: Timestamp) -> Option<GraphPlan<Job>> {
        let with_due = |mut spec: JobSpec| {
            spec.env_vars.insert(DUE.to_owned(), due.to_string());
            Job::from(spec)
        };
        let plan = self.graph.clone()?.map(|_, spec| Ok::<_, Infallible>(with_due(spec)));
        plan.ok()
    }

    /// Returns all jobs that a firing at this time may submit: its job, or the jobs of its graph with the callbacks.
    pub fn jobs(&self, due: Timestamp) -> Vec<Job> {
        match self.graph(due) {
            Some(plan) => plan.jobs_and_callbacks().map(|(_, job)| job.clone()).collect(),
            None => vec![self.job(due)],
        }
    }

    /// Returns a digest of all that it says.
    pub fn digest(&self) -> String {
        // The copies have random ids.
        let job = Self { fleet: None, ..self.clone() }.job(Timestamp::UNIX_EPOCH);
        let (line, zone) = (self.schedule.line(), self.schedule.zone());
        let (spread, _) = self.schedule.spread();
        let days = self.schedule.calendar().map(Calendar::days).unwrap_or_default();
        let mut said =
            vec![json!([line, zone, self.catch_up, self.overlap, job.submitted_fields()])];
        // Without them the digest is the same as in other versions.
        if !spread.is_zero() || !days.is_empty() {
            said.push(json!([spread.as_secs(), days]));
        }
        if let Some(CronFleet { every, window, spread }) = &self.fleet {
            said.push(json!([every, window, spread.as_secs()]));
        }
        if let Some(plan) = self.graph.clone() {
            said.push(json!(plan.map(|_, spec| Ok::<_, Infallible>(spec.to_json())).ok()));
        }
        let said = if said.len() == 1 { said.remove(0) } else { json!(said) };
        sha256(said.to_string())[..DIGEST_CHARS].to_owned()
    }

    /// Returns what each firing submits in place of a single job.
    pub fn kind(&self) -> Option<GraphKind> {
        let of_fleet = self.fleet.map(|_| GraphKind::Batch);
        of_fleet.or(self.graph.as_ref().map(|_| GraphKind::Graph))
    }

    pub fn notifications(&self) -> Vec<NotifyName> {
        let of_jobs = self.graph.iter().flat_map(GraphPlan::jobs_and_callbacks);
        let all = self.spec.notify.iter().chain(of_jobs.flat_map(|(_, spec)| &spec.notify));
        all.collect::<BTreeSet<_>>().into_iter().cloned().collect()
    }

    /// The script type of its jobs; none if they are of a graph.
    pub fn script_type(&self) -> Option<&ScriptType> {
        self.spec.script_type.as_ref()
    }
}

/// The keys of `[cron.NAME]` that are not settings of its jobs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
struct CronKeys {
    schedule: String,
    #[serde(default = "utc")]
    time_zone: String,
    file: Option<PathBuf>,
    graph: Option<PathBuf>,
    #[serde(default)]
    catch_up: CatchUp,
    #[serde(default)]
    overlap: Overlap,
    spread: Option<String>,
    calendar: Option<String>,
    every: Option<Every>,
    at_a_time: Option<u32>,
    stop_after: Option<StopAfter>,
    pause_after: Option<PauseAfter>,
}

impl CronKeys {
    fn fleet(&self) -> (Option<Every>, GraphWindow) {
        let Self { every, at_a_time, stop_after, pause_after, .. } = *self;
        (every, GraphWindow { at_a_time, stop_after, pause_after })
    }
}

fn utc() -> String {
    "UTC".to_owned()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const NIGHTLY: &str =
        "[cron.nightly]\nschedule = \"30 3 * * *\"\ntype = \"osis\"\nscript = \"1\"\n";

    fn with_files(files: &[(&str, &str)]) -> (tempfile::TempDir, Crontab) {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).expect("writing a file");
        }
        let mut config = Config::default();
        config.supervisor.cron_dir = folder.path().to_owned();
        let crontab = config.crontab();
        (folder, crontab)
    }

    fn problem(text: &str) -> String {
        let (folder, crontab) = with_files(&[("a.toml", text)]);
        assert!(crontab.entries.is_empty(), "{text}");
        let problem = crontab.problems.first().expect(text).to_string();
        problem.replace(&folder.path().display().to_string(), "")
    }

    #[test]
    fn a_periodic_job_is_submitted_as_its_table_says() {
        let text = "[cron.report]\nschedule = \"@daily\"\ntime_zone = \"Europe/Brussels\"\n\
                    type = \"python\"\nscript = \"print(1)\"\ngroup = \"io\"\npriority = 2\n\
                    timeout = \"5m\"\nretries = 3\nenv = { A = \"b\" }\ncatch_up = \"once\"\n\
                    overlap = \"replace\"\nlimit_key = \"l\"\nunique_key = \"u\"\n\
                    retention = \"7d\"\nlog_path = \"a.log\"\n";
        let (_folder, crontab) = with_files(&[("a.toml", text)]);
        assert_eq!(crontab.problems, []);
        let entry = &crontab.entries[0];
        assert_eq!((entry.catch_up, entry.overlap), (CatchUp::Once, Overlap::Replace));
        let job = entry.job("2026-01-01T23:00:00Z".parse().expect("a time"));
        assert_eq!(job.id.as_str(), "cron-report-20260101T230000Z");
        assert_eq!(job.spec.queue().expect("typed").to_string(), "type:python:group:io:prio:2");
        assert_eq!((job.spec.timeout, job.spec.retries), (Some(Duration::from_mins(5)), Some(3)));
        let keys = (job.spec.limit_key.as_ref(), job.spec.unique_key.as_ref());
        assert_eq!(keys, ("l".parse().ok().as_ref(), "u".parse().ok().as_ref()));
        assert_eq!(job.spec.retention, Some(Duration::from_hours(7 * 24)));
        assert_eq!(job.spec.log_path.as_deref(), Some("a.log"));
        let env: Vec<(&str, &str)> =
            job.spec.env_vars.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let expected =
            [("A", "b"), ("HERO_CRON", "report"), ("HERO_CRON_DUE", "2026-01-01T23:00:00Z")];
        assert_eq!(env, expected);
        assert_eq!((job.spec.caller_id.as_str(), job.spec.reply), ("cron report", false));
    }

    #[test]
    fn broken_job_disables_itself_alone() {
        let broken = "[cron.a]\nschedule = \"@daily\"\ntype = \"osis\"\nscript = \"1\"\n\
                      [cron.b]\nschedule = \"0 0 30 2 *\"\ntype = \"osis\"\nscript = \"1\"\n";
        let (_folder, crontab) = with_files(&[
            ("broken.toml", broken),
            ("good.toml", NIGHTLY),
            ("twice.toml", NIGHTLY),
            ("README", "not read"),
        ]);
        let names: Vec<&str> = crontab.entries.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["a", "nightly"], "the other of its file is in force");
        let problems: Vec<String> = crontab.problems.iter().map(ToString::to_string).collect();
        assert!(
            problems[0].contains("broken.toml:6:12: cron.b.schedule: never fires"),
            "{problems:?}"
        );
        assert!(problems[1].contains("twice.toml: cron.nightly is in "), "{problems:?}");
    }

    #[test]
    fn files_that_changed_are_named() {
        let other = NIGHTLY.replace("nightly", "other") + "\nevery = \"machine\"\n";
        let (folder, before) = with_files(&[("a.toml", NIGHTLY), ("b.toml", &other)]);
        assert_eq!(before.changed_files(&before.rules.read(folder.path())), [""; 0]);
        std::fs::write(folder.path().join("b.toml"), other.replace('1', "2")).expect("a file");
        let after = before.rules.read(folder.path());
        let b = folder.path().join("b.toml").display().to_string();
        assert_eq!(before.changed_files(&after), [b]);
        let (old, new) = (before.digests(), after.digests());
        assert_eq!((old["nightly"] == new["nightly"], old["other"] == new["other"]), (true, false));
    }

    #[test]
    fn mistakes_are_reported_with_their_place() {
        for (text, message) in [
            ("cron = 1", "/a.toml:1:8: cron: expected a table"),
            ("[cron.\"a:b\"]\nschedule = \"@daily\"\ntype = \"osis\"\nscript = \"1\"", "a:b"),
            ("[cron.a]\ntype = \"osis\"\nscript = \"1\"", "missing key `schedule`"),
            (
                &NIGHTLY.replace("30 3", "99 3"),
                "/a.toml:2:12: cron.nightly.schedule: not a cron line",
            ),
            (&NIGHTLY.replace("osis", "nope"), "/a.toml:3:8: cron.nightly.type: `nope` is not"),
            (
                &format!("{NIGHTLY}priority = 7"),
                "/a.toml:5:12: cron.nightly.priority: `7` is not legal",
            ),
            (
                &format!("{NIGHTLY}time_zone = \"Mars/Base\""),
                "cron.nightly.time_zone: not a time zone",
            ),
            (&format!("{NIGHTLY}time_zone = \"../../etc/passwd\""), "not a time zone"),
            (
                &format!("{NIGHTLY}overlap = \"maybe\""),
                "/a.toml:5:11: cron.nightly.overlap: expected",
            ),
            (&format!("{NIGHTLY}timeout = \"25h\""), "cron.nightly: invalid job: timeout"),
            (
                &format!("{NIGHTLY}env = {{ \"A B\" = \"\" }}"),
                "/a.toml:5:7: cron.nightly.env: has `A B`",
            ),
            (&format!("{NIGHTLY}file = \"/x\""), "cannot be set beside script"),
            (&format!("{NIGHTLY}at_a_time = 2"), "is for the batch of a periodic job with every"),
            (&format!("{NIGHTLY}every = \"rack\""), "/a.toml:5:9: cron.nightly.every: expected"),
            (&format!("{NIGHTLY}every = \"machine\"\ngroup = \"io\""), "where = 'group = \"io\"'"),
            (&format!("{NIGHTLY}colour = 1"), "/a.toml:5:1: unknown key `colour`"),
            (
                &format!("{NIGHTLY}retires = 1"),
                "unknown key `retires` in [cron.nightly]; did you mean `retries`?",
            ),
            (
                &format!("{NIGHTLY}id = \"x\""),
                "/a.toml:5:6: cron.nightly.id: each firing has its own",
            ),
            (
                &NIGHTLY.replace("script = \"1\"", "file = \"x\""),
                "/a.toml:4:8: cron.nightly.file: cannot be read: /x: no such file",
            ),
            (&NIGHTLY.replace("script = \"1\"", "file = \"/no/such\""), "/no/such: no such file"),
            (
                &NIGHTLY.replace("script = \"1\"", ""),
                "cron.nightly: needs a script, a file, uses or a graph",
            ),
        ] {
            let said = problem(text);
            assert!(said.contains(message), "{text}\nsaid {said}");
        }
    }

    #[test]
    fn a_script_may_be_in_a_file_and_a_missing_folder_has_no_jobs() {
        let folder = tempfile::tempdir().expect("a folder");
        let script = folder.path().join("a.rhai");
        std::fs::write(&script, "40 + 2").expect("writing a script");
        let file = format!("file = {:?}", script.display().to_string());
        let text = NIGHTLY.replace("script = \"1\"", &file);
        let (_folder, crontab) = with_files(&[("a.toml", &text)]);
        assert_eq!(crontab.entries[0].job(Timestamp::UNIX_EPOCH).spec.script, "40 + 2");
        let text = NIGHTLY.replace("script = \"1\"", "file = \"a.rhai\"");
        let (_folder, crontab) = with_files(&[("a.toml", &text), ("a.rhai", "6 * 7")]);
        let script = |crontab: &Crontab| crontab.entries[0].job(Timestamp::UNIX_EPOCH).spec.script;
        assert_eq!(script(&crontab), "6 * 7", "a relative file is beside the file that names it");
        let mut config = Config::default();
        config.supervisor.cron_dir = folder.path().join("none");
        assert_eq!(config.crontab(), Crontab::default());
    }
}
