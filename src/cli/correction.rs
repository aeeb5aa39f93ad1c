//! Corrections of jobs on the command line: another script, other settings.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Map, Value};

use super::input::read_bounded;
use super::job_options::pair;
use crate::client::GraphRetry;
use crate::config::Config;
use crate::error::Error;
use crate::proto::job::Setting;

/// New values of jobs.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct Correction {
    /// Replace the script by this file; the old script stays in the record of the last attempt
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Replace a setting, named as an option of hero submit or as a field of the hash, such as timeout=5m, where
    /// a plain number is seconds; an empty value takes it away; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    set: Vec<(String, String)>,
}

/// New values of the jobs of a graph.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct GraphCorrection {
    /// Run this job, by its name, and all jobs that depend on it again, also those that finished
    #[arg(long, value_name = "JOB")]
    from: Option<String>,
    /// Replace the script of a job by this file; the old script stays in the record of its last attempt; may be repeated
    #[arg(long, value_name = "JOB=FILE", value_parser = pair)]
    file: Vec<(String, String)>,
    /// Replace a setting of a job, such as transform.timeout=5m, where a plain number is seconds; an empty value
    /// takes it away; may be repeated
    #[arg(long, value_name = "JOB.NAME=VALUE", value_parser = of_job)]
    set: Vec<((String, String), String)>,
}

fn of_job(text: &str) -> Result<((String, String), String), String> {
    let (name, value) = pair(text)?;
    match name.rsplit_once('.') {
        Some((job, name)) if !job.is_empty() && !name.is_empty() => {
            Ok(((job.to_owned(), name.to_owned()), value))
        }
        _ => Err("expected JOB.NAME=VALUE".to_owned()),
    }
}

/// Returns the field of the hash and its value; a field may be written as the option of hero submit.
pub(super) fn of_hash(name: &str, text: String) -> (String, Value) {
    let setting = Setting::named(name);
    let name = setting.map_or(name, |setting| setting.field).to_owned();
    if text.is_empty() {
        return (name, Value::Null);
    }
    let value = match setting {
        Some(setting) => setting.spoken(&text).into_owned(),
        None => text,
    };
    (name, Value::String(value))
}

fn script(file: &Path, config: &Config) -> Result<(String, Value), Error> {
    let text = read_bounded(file, config.job.script_size_max)?;
    Ok(("script".to_owned(), Value::String(text)))
}

impl Correction {
    /// Returns the changes, the file read.
    pub(super) fn changes(&self, config: &Config) -> Result<Map<String, Value>, Error> {
        let mut changes: Map<String, Value> =
            self.set.iter().map(|(name, text)| of_hash(name, text.clone())).collect();
        changes.extend(self.file.as_deref().map(|file| script(file, config)).transpose()?);
        Ok(changes)
    }
}

impl GraphCorrection {
    /// Returns how a graph is resumed, the files read.
    pub(super) fn retry(&self, config: &Config) -> Result<GraphRetry, Error> {
        let mut changes: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
        for ((job, name), text) in &self.set {
            changes.entry(job.clone()).or_default().extend([of_hash(name, text.clone())]);
        }
        for (job, file) in &self.file {
            changes.entry(job.clone()).or_default().extend([script(Path::new(file), config)?]);
        }
        Ok(GraphRetry { from: self.from.clone(), changes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn settings_may_be_durations_and_words_of_the_command_line() {
        for (name, text, field, value) in [
            ("timeout", "5m", "timeout", json!("300")),
            ("timeout", "60", "timeout", json!("60")),
            ("priority", "high", "priority", json!("0")),
            ("name", "5m", "name", json!("5m")),
            ("env", "{}", "env_vars", json!("{}")),
            ("limit_key", "", "limit_key", Value::Null),
        ] {
            assert_eq!(of_hash(name, text.to_owned()), (field.to_owned(), value));
        }
    }

    #[test]
    fn setting_of_a_job_of_a_graph_is_named_after_the_last_point() {
        let read = of_job("a.b.timeout=1=2").expect("legal");
        assert_eq!(read, (("a.b".to_owned(), "timeout".to_owned()), "1=2".to_owned()));
        for wrong in ["timeout=1", ".timeout=1", "a.=1", "a.b"] {
            assert!(of_job(wrong).is_err(), "{wrong}");
        }
    }
}
