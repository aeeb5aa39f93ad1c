//! Periodic jobs in Redis, checked as those in files.

use serde_json::{Map, Value};

use super::config_error::{ConfigError, FilePlace};
use super::cron_rules::{BESIDE_GRAPH, CronRules, complete, with_key};
use super::periodic_jobs::{CronEntry, CronPlace, Crontab};
use super::time_zones::time_zone;
use crate::proto::cron::{ADDED_BYTES_MAX, AddedCron, CronName, Schedule};
use crate::proto::job::{Entrance, Job, JobSpec, SETTINGS};

impl CronRules {
    pub fn entry(&self, name: &CronName, added: &AddedCron) -> Result<CronEntry, String> {
        let (spec, graph) = match added.graph.clone() {
            None if added.job.is_empty() => return Err("needs a job or a graph".to_owned()),
            None => (self.spec_of(name, &added.job)?, None),
            Some(_) if !added.job.is_empty() => return Err(format!("graph: {BESIDE_GRAPH}")),
            Some(plan) => {
                let read = |of: &str, job: Map<String, Value>| match Job::from_json(&job) {
                    Ok(job) => Ok(job.spec),
                    Err(error) => Err((of.to_owned(), error.to_string())),
                };
                let plan = plan.map(read).and_then(|plan| self.graph(name, plan));
                let plan = plan.map_err(|(of, why)| format!("graph: {of}: {why}"))?;
                (Self::spec_of_graph(name, &plan), Some(plan))
            }
        };
        let zone = time_zone(&added.time_zone).map_err(|why| format!("time_zone: {why}"))?;
        let schedule =
            Schedule::new(&added.schedule, zone).map_err(|why| format!("schedule: {why}"))?;
        let (spread, calendar) = (added.spread.as_deref(), added.calendar.as_deref());
        let mut schedule = self
            .with_rules(name, schedule, spread, calendar)
            .map_err(|(key, why)| with_key(key, why))?;
        name.job_id(jiff::Timestamp::UNIX_EPOCH).map_err(|error| error.to_string())?;
        let place = CronPlace::Redis { by: added.by.clone(), at: added.at.clone() };
        let (catch_up, overlap) = (added.catch_up, added.overlap);
        let fleet = Self::fleet((added.every, added.window), &spec, &mut schedule)
            .map_err(|(key, why)| with_key(key, why))?;
        Ok(CronEntry { name: name.clone(), place, schedule, catch_up, overlap, fleet, graph, spec })
    }

    /// Reads the settings of the one job of each firing.
    fn spec_of(&self, name: &CronName, job: &Map<String, Value>) -> Result<JobSpec, String> {
        for setting in SETTINGS {
            let is_given = job.get(setting.field).is_some_and(|value| !value.is_null());
            if let Some(reason) = setting.absent_at(Entrance::PeriodicJob).filter(|_| is_given) {
                return Err(format!("{}: {reason}", setting.field));
            }
        }
        let mut spec = Job::from_json(job).map_err(|error| error.to_string())?.spec;
        (spec.id, spec.reply) = (None, false);
        self.check_type(&spec).map_err(|(key, why)| with_key(key, why))?;
        complete(name, &mut spec, &self.bounds).map_err(|error| error.to_string())?;
        Ok(spec)
    }
}

impl Crontab {
    /// Returns it with the periodic jobs of Redis. One whose name a file has, and one with a mistake, are left
    /// out and reported.
    #[must_use]
    pub fn with_added(&self, added: &[(CronName, String)]) -> Self {
        let mut whole = self.clone();
        for (name, text) in added {
            let entry = self.added_entry(name, text);
            match entry {
                Ok(entry) => whole.entries.push(entry),
                Err(why) => {
                    let place = FilePlace { file: "redis".into(), position: None };
                    let message = format!("cron.{name}: {why}");
                    whole.problems.push(ConfigError::Wrong { place, message });
                }
            }
        }
        whole.entries.sort_by(|one, other| one.name.cmp(&other.name));
        whole
    }

    fn added_entry(&self, name: &CronName, text: &str) -> Result<CronEntry, String> {
        if let Some(of_file) = self.entries.iter().find(|entry| entry.name == *name) {
            return Err(format!("is in {} too, which wins", of_file.place));
        }
        if text.len() > ADDED_BYTES_MAX {
            return Err(format!("is larger than {ADDED_BYTES_MAX} bytes"));
        }
        let added: AddedCron =
            serde_json::from_str(text).map_err(|error| format!("not a definition: {error}"))?;
        self.rules.entry(name, &added)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn definition(job: Value) -> AddedCron {
        let Value::Object(job) = job else { panic!("an object") };
        let schedule = "0 9 * * 1-5".to_owned();
        let time_zone = "Europe/Brussels".to_owned();
        AddedCron { schedule, time_zone, job, by: "ann".to_owned(), ..AddedCron::default() }
    }

    fn name() -> CronName {
        "report".parse().expect("legal")
    }

    #[test]
    fn definition_in_redis_is_a_periodic_job_like_one_of_a_file() {
        let job = json!({ "script": "1", "script_type": "osis", "retries": "2" });
        let text = serde_json::to_string(&definition(job)).expect("JSON");
        let crontab = Crontab::default().with_added(&[(name(), text)]);
        assert_eq!(crontab.problems, []);
        let entry = &crontab.entries[0];
        let job = entry.job("2026-11-23T08:00:00Z".parse().expect("a time"));
        assert_eq!(job.id.as_str(), "cron-report-20261123T080000Z");
        assert_eq!((job.spec.retries, job.spec.reply), (Some(2), false));
        assert_eq!(job.spec.caller_id, "cron report");
        assert_eq!(job.spec.env_vars["HERO_CRON"], "report");
        assert_eq!(entry.place.to_string(), "redis");
    }

    #[test]
    fn definition_is_checked_as_a_file_is() {
        for (job, message) in [
            (json!({ "script_type": "osis" }), "script is missing"),
            (json!({ "script": "1" }), "needs a type"),
            (json!({ "script": "1", "script_type": "ruby" }), "`ruby` is not a configured"),
            (json!({ "script": "1", "script_type": "osis", "id": "a" }), "each firing has its own"),
            (json!({ "script": "1", "script_type": "osis", "timeout": "999999" }), "timeout"),
            (json!({ "script": "1", "script_type": "osis", "file": "/etc/passwd" }), "file"),
        ] {
            let error = CronRules::default().entry(&name(), &definition(job)).expect_err(message);
            assert!(error.contains(message), "{message}: {error}");
        }
        let job = json!({ "script": "1", "script_type": "osis" });
        let never = AddedCron { schedule: "0 0 30 2 *".to_owned(), ..definition(job) };
        let error = CronRules::default().entry(&name(), &never).expect_err("never");
        assert!(error.starts_with("schedule: never fires"), "{error}");
    }

    #[test]
    fn file_wins_over_redis_and_broken_definitions_are_reported() {
        let job = json!({ "script": "1", "script_type": "osis" });
        let text = serde_json::to_string(&definition(job)).expect("JSON");
        let mut files = Crontab::default().with_added(&[(name(), text.clone())]);
        files.entries[0].place = CronPlace::File("/cron.d/a.toml".into());
        let whole =
            files.with_added(&[(name(), text), ("x".parse().expect("legal"), "{".to_owned())]);
        assert_eq!(whole.entries.len(), 1);
        let problems: Vec<String> = whole.problems.iter().map(ToString::to_string).collect();
        assert!(problems[0].contains("cron.report: is in /cron.d/a.toml too"), "{problems:?}");
        assert!(problems[1].contains("cron.x: not a definition"), "{problems:?}");
    }
}
