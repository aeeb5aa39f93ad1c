//! Periodic jobs: `*.toml` in `supervisor.cron_dir`, each with one `[cron.NAME]` or more.
//!
//! A file that is wrong disables its own jobs, and is told; the others go on.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Deserialize;

use super::error::{ConfigError, Fault, KeyPath};
use super::files;
use super::schema::Config;
use super::source::Source;
use super::units;
use crate::proto::cron::{CatchUp, CronName, Overlap, Schedule};
use crate::proto::job::Job;
use crate::proto::target::{Group, IllegalName, Instance, Priority, ScriptType};

/// Most periodic jobs of one folder.
const ENTRIES_MAX: usize = 1000;

/// One periodic job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CronEntry {
    /// What it is called.
    pub name: CronName,
    /// The file that it is in.
    pub file: PathBuf,
    /// When it is due.
    pub schedule: Schedule,
    /// What becomes of firings that were missed.
    pub catch_up: CatchUp,
    /// What happens while the job before is on its way.
    pub overlap: Overlap,
    /// What every firing submits, but for the id.
    template: Job,
}

/// All periodic jobs of a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Crontab {
    /// In the order of their names.
    pub entries: Vec<CronEntry>,
    /// What is wrong with the files whose jobs are not among them.
    pub problems: Vec<ConfigError>,
}

impl Config {
    /// Reads the periodic jobs. A folder that is not there has none.
    pub fn crontab(&self) -> Crontab {
        let mut entries: BTreeMap<CronName, CronEntry> = BTreeMap::new();
        let mut problems = Vec::new();
        let found = match files::toml_files(&self.supervisor.cron_dir) {
            Ok(found) => found,
            Err(problem) => return Crontab { entries: Vec::new(), problems: vec![problem] },
        };
        for file in found {
            let read = files::read_text(&file).and_then(|text| self.cron_file(&file, &text));
            match read.and_then(|of_file| unique(&entries, of_file)) {
                Ok(of_file) => entries.extend(of_file),
                Err(problem) => problems.push(problem),
            }
        }
        Crontab { entries: entries.into_values().collect(), problems }
    }

    /// The periodic jobs of one file's text.
    fn cron_file(
        &self,
        file: &Path,
        text: &str,
    ) -> Result<Vec<(CronName, CronEntry)>, ConfigError> {
        let source = Source::parse(file, text)?;
        let tables: Tables = source.read()?;
        let mut entries = Vec::with_capacity(tables.cron.len());
        for (name, table) in tables.cron {
            let path = KeyPath::of(&["cron", &name]);
            let entry = self.cron_entry(file, &path, &name, table).map_err(|fault| {
                let keys = fault.keys.iter().map(|key| source.find(key));
                // The first key that the file has, else the table.
                let place = keys.max_by_key(|(steps, _)| *steps).map(|(_, place)| place);
                let place = place.unwrap_or_else(|| source.find(&path).1);
                ConfigError::Wrong { place, message: fault.message }
            })?;
            entries.push((entry.name.clone(), entry));
        }
        Ok(entries)
    }

    fn cron_entry(
        &self,
        file: &Path,
        path: &KeyPath,
        name: &str,
        table: Table,
    ) -> Result<CronEntry, Fault> {
        let illegal = |key: &str| {
            let key = path.then(key);
            move |error: IllegalName| Fault::new(key.clone(), format!("is refused: {error}"))
        };
        let name: CronName = name
            .parse()
            .map_err(|error| Fault::new(path.clone(), format!("is refused: {error}")))?;
        let zone = time_zone(&table.time_zone)
            .map_err(|message| Fault::new(path.then("time_zone"), message))?;
        let schedule = Schedule::new(&table.schedule, zone)
            .map_err(|message| Fault::new(path.then("schedule"), message))?;
        let script = self.cron_script(path, &table)?;
        if !self.types.contains_key(&table.script_type) {
            let message = format!("is `{}`, which is not configured", table.script_type);
            return Err(Fault::new(path.then("type"), message));
        }
        let id = name.job_id(Timestamp::UNIX_EPOCH).map_err(illegal("name"))?;
        let mut template = Job::new(id, script);
        template.spec.script_type = Some(table.script_type);
        template.spec.group = table.group;
        template.spec.instance = table.instance;
        if let Some(priority) = table.priority {
            template.spec.priority =
                priority.to_string().parse::<Priority>().map_err(illegal("priority"))?;
        }
        template.spec.timeout = table.timeout;
        template.spec.retries = table.retries;
        template.spec.concurrent = table.concurrent;
        template.spec.log_path = table.log_path;
        template.spec.env_vars = table.env;
        template.spec.env_vars.insert("HERO_CRON".to_owned(), name.to_string());
        template.spec.caller_id = table.caller.unwrap_or_else(|| format!("cron {name}"));
        template.spec.context_id = table.context;
        // Nobody waits for it.
        template.spec.reply = false;
        template.spec.check(&self.job.bounds()).map_err(|error| Fault::new(path.clone(), error))?;
        let (catch_up, overlap) = (table.catch_up, table.overlap);
        let file = file.to_owned();
        Ok(CronEntry { name, file, schedule, catch_up, overlap, template })
    }

    fn cron_script(&self, path: &KeyPath, table: &Table) -> Result<String, Fault> {
        let fault = |key, message: String| Err(Fault::new(path.then(key), message));
        match (&table.script, &table.file) {
            (Some(script), None) => Ok(script.clone()),
            (None, Some(file)) if !file.is_absolute() => {
                fault("file", "must be an absolute path".to_owned())
            }
            (None, Some(file)) => {
                let read = files::read_bounded(file, self.job.script_size_max);
                let text = read.map_err(|error| files::reason(&error)).and_then(|bytes| {
                    String::from_utf8(bytes).map_err(|_| "not UTF-8 text".to_owned())
                });
                text.or_else(|why| {
                    fault("file", format!("cannot be read: {}: {why}", file.display()))
                })
            }
            (None, None) => Err(Fault::new(path.clone(), "needs a script or a file")),
            (Some(_), Some(_)) => fault("file", "must not be there beside script".to_owned()),
        }
    }
}

impl CronEntry {
    /// The job of the firing that is due at this time.
    pub fn job(&self, due: Timestamp) -> Job {
        let mut job = self.template.clone();
        // A legal name and a time make a legal id, which the template has shown.
        if let Ok(id) = self.name.job_id(due) {
            job.id = id;
        }
        job.spec.env_vars.insert("HERO_CRON_DUE".to_owned(), due.to_string());
        job
    }

    /// What it runs.
    pub fn script_type(&self) -> Option<&ScriptType> {
        self.template.spec.script_type.as_ref()
    }
}

fn time_zone(name: &str) -> Result<TimeZone, String> {
    if name == "UTC" {
        return Ok(TimeZone::UTC);
    }
    TimeZone::get(name).map_err(|_| {
        "is no time zone of this machine: expected a name such as \"Europe/Brussels\" or \"UTC\", \
         of those in /usr/share/zoneinfo"
            .to_owned()
    })
}

/// Refuses a file that has a name of another file, or one too many.
fn unique(
    known: &BTreeMap<CronName, CronEntry>,
    of_file: Vec<(CronName, CronEntry)>,
) -> Result<Vec<(CronName, CronEntry)>, ConfigError> {
    let wrong = |entry: &CronEntry, message: String| {
        let place = super::error::Place { file: entry.file.clone(), position: None };
        ConfigError::Wrong { place, message }
    };
    for (name, entry) in &of_file {
        if let Some(other) = known.get(name) {
            let message = format!("cron.{name} is in {} already", other.file.display());
            return Err(wrong(entry, message));
        }
        if known.len() + of_file.len() > ENTRIES_MAX {
            return Err(wrong(entry, format!("more than {ENTRIES_MAX} periodic jobs")));
        }
    }
    Ok(of_file)
}

/// One file.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
struct Tables {
    cron: BTreeMap<String, Table>,
}

/// `[cron.NAME]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
struct Table {
    schedule: String,
    #[serde(default = "utc")]
    time_zone: String,
    #[serde(rename = "type")]
    script_type: ScriptType,
    script: Option<String>,
    file: Option<PathBuf>,
    group: Option<Group>,
    instance: Option<Instance>,
    priority: Option<u8>,
    #[serde(default, deserialize_with = "some_duration")]
    timeout: Option<Duration>,
    retries: Option<u32>,
    #[serde(default = "yes")]
    concurrent: bool,
    log_path: Option<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    caller: Option<String>,
    #[serde(default)]
    context: String,
    #[serde(default)]
    catch_up: CatchUp,
    #[serde(default)]
    overlap: Overlap,
}

fn utc() -> String {
    "UTC".to_owned()
}

fn yes() -> bool {
    true
}

fn some_duration<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    units::duration::deserialize(from).map(Some)
}

#[cfg(test)]
mod tests {
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
                    overlap = \"replace\"\n";
        let (_folder, crontab) = with_files(&[("a.toml", text)]);
        assert_eq!(crontab.problems, []);
        let entry = &crontab.entries[0];
        assert_eq!((entry.catch_up, entry.overlap), (CatchUp::Once, Overlap::Replace));
        let job = entry.job("2026-01-01T23:00:00Z".parse().expect("a time"));
        assert_eq!(job.id.as_str(), "cron-report-20260101T230000Z");
        assert_eq!(job.spec.queue().expect("typed").to_string(), "type:python:group:io:prio:2");
        assert_eq!((job.spec.timeout, job.spec.retries), (Some(Duration::from_mins(5)), Some(3)));
        let env: Vec<(&str, &str)> =
            job.spec.env_vars.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let expected =
            [("A", "b"), ("HERO_CRON", "report"), ("HERO_CRON_DUE", "2026-01-01T23:00:00Z")];
        assert_eq!(env, expected);
        assert_eq!((job.spec.caller_id.as_str(), job.spec.reply), ("cron report", false));
    }

    #[test]
    fn a_broken_file_disables_its_own_jobs_alone() {
        let broken = "[cron.a]\nschedule = \"@daily\"\ntype = \"osis\"\nscript = \"1\"\n\
                      [cron.b]\nschedule = \"0 0 30 2 *\"\ntype = \"osis\"\nscript = \"1\"\n";
        let (_folder, crontab) = with_files(&[
            ("broken.toml", broken),
            ("good.toml", NIGHTLY),
            ("twice.toml", NIGHTLY),
            ("README", "not read"),
        ]);
        let names: Vec<&str> = crontab.entries.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["nightly"]);
        let problems: Vec<String> = crontab.problems.iter().map(ToString::to_string).collect();
        assert!(
            problems[0].contains("broken.toml:6:12: cron.b.schedule never fires"),
            "{problems:?}"
        );
        assert!(problems[1].contains("twice.toml: cron.nightly is in "), "{problems:?}");
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        for (text, message) in [
            ("cron = 1", "/a.toml:1:8: cron: expected a table"),
            ("[cron.\"a:b\"]\nschedule = \"@daily\"\ntype = \"osis\"\nscript = \"1\"", "a:b"),
            ("[cron.a]\ntype = \"osis\"\nscript = \"1\"", "missing key `schedule`"),
            (
                &NIGHTLY.replace("30 3", "99 3"),
                "/a.toml:2:12: cron.nightly.schedule is no line of cron",
            ),
            (&NIGHTLY.replace("osis", "nope"), "/a.toml:3:8: cron.nightly.type is `nope`"),
            (&format!("{NIGHTLY}priority = 7"), "/a.toml:5:12: cron.nightly.priority is refused"),
            (
                &format!("{NIGHTLY}time_zone = \"Mars/Base\""),
                "cron.nightly.time_zone is no time zone",
            ),
            (&format!("{NIGHTLY}time_zone = \"../../etc/passwd\""), "is no time zone"),
            (
                &format!("{NIGHTLY}overlap = \"maybe\""),
                "/a.toml:5:11: cron.nightly.overlap: expected",
            ),
            (&format!("{NIGHTLY}timeout = \"25h\""), "cron.nightly invalid job: timeout"),
            (&format!("{NIGHTLY}env = {{ \"A B\" = \"\" }}"), "cron.nightly invalid job: env_vars"),
            (&format!("{NIGHTLY}file = \"/x\""), "must not be there beside script"),
            (&format!("{NIGHTLY}colour = 1"), "/a.toml:5:1: unknown key `colour`"),
            (&NIGHTLY.replace("script = \"1\"", "file = \"x\""), "must be an absolute path"),
            (&NIGHTLY.replace("script = \"1\"", "file = \"/no/such\""), "/no/such: no such file"),
            (&NIGHTLY.replace("script = \"1\"", ""), "cron.nightly needs a script or a file"),
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
        let mut config = Config::default();
        config.supervisor.cron_dir = folder.path().join("none");
        assert_eq!(config.crontab(), Crontab::default());
    }
}
