//! `hero job clone`: submits a copy of a job.

use clap::Args;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::super::api::{ApiMethods, job_of};
use super::super::correction::of_hash;
use super::super::job_options::{DelayOption, SettingOptions, in_hash, pair};
use super::super::script_inputs::ScriptArguments;
use super::super::{Global, output};
use crate::error::Error;
use crate::proto::job::{FieldKind, Job};
use crate::proto::text::escape_lines;

/// Submit a copy of a job, and print its id
///
/// The copy has a new id, no unique key and no earliest time. Options of hero submit replace its settings; variables
/// and parameters are added to the job's own, and replace values of the same name.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hero job clone 7f9c2ba4\n  \
                        hero job clone 7f9c2ba4 --timeout 5m --env REGION=north\n  \
                        hero job clone 7f9c2ba4 --param limit:=20 --dry-run\n  \
                        hero job clone 7f9c2ba4 --set limit_key=\n\n\
                        Fields and values of --set are given as in the job's hash, such as \
                        JSON, or durations such as 5m, where a plain number is seconds. An empty value takes the field away.")]
pub(in crate::cli) struct CloneJob {
    /// The job
    #[arg(value_name = "ID")]
    job: String,
    #[command(flatten)]
    settings: SettingOptions,
    #[command(flatten)]
    given: ScriptArguments,
    #[command(flatten)]
    delay: DelayOption,
    /// A field of the copy that differs; may be repeated
    #[arg(long, value_name = "FIELD=VALUE", value_parser = pair)]
    set: Vec<(String, String)>,
    /// Print the copy, and submit nothing
    #[arg(long)]
    dry_run: bool,
}

impl CloneJob {
    pub(super) async fn run(&self, api: &ApiMethods, global: &Global) -> Result<(), Error> {
        let job = job_of(&api.of_job("job.get", &self.job, json!({})).await?)?;
        let mut changes = self.changes(&job)?;
        changes.extend(self.set.iter().map(|(name, text)| of_hash(name, text.clone())));
        let mut delayed = Job::new(job.id.clone(), "");
        self.delay.apply(&mut delayed)?;
        if let Some(delay) = delayed.delay {
            // By Redis's clock.
            let start = api.now().await?.checked_add(delay).unwrap_or(Timestamp::MAX);
            changes.insert("run_at".to_owned(), start.to_string().into());
        }
        let params = json!({ "id": job.id, "changes": changes, "dry_run": self.dry_run });
        let document = api.call("job.clone", params).await?;
        if self.dry_run {
            return output::json(&document["job"]);
        }
        let id = escape_lines(document["id"].as_str().unwrap_or_default());
        global.print(|| document, || format!("{id}\n"))
    }

    /// Returns the fields of a copy that differ, as the hash has them. Variables and parameters are added to the job's own.
    fn changes(&self, of: &Job) -> Result<Map<String, Value>, Error> {
        let (given, mut document) = (self.given.spec()?, of.to_json());
        let mut changes = Map::new();
        let mut add =
            |field: &str, entries: Map<String, Value>, changes: &mut Map<String, Value>| {
                if entries.is_empty() {
                    return;
                }
                let mut all = document[field].take().as_object().cloned().unwrap_or_default();
                all.extend(entries);
                changes.insert(field.to_owned(), Value::String(json!(all).to_string()));
                document[field] = Value::Object(all);
            };
        let variables = given.env_vars.into_iter().map(|(name, text)| (name, text.into()));
        add("params", given.params.into_iter().collect(), &mut changes);
        add("env_vars", variables.collect(), &mut changes);
        if !given.args.is_empty() {
            changes.insert("args".to_owned(), Value::String(json!(given.args).to_string()));
        }
        for (setting, text) in self.settings.all() {
            match setting.kind {
                FieldKind::Map => {
                    let entries = serde_json::from_str(text).unwrap_or_default();
                    add(setting.field, entries, &mut changes);
                }
                _ if text.is_empty() => {
                    changes.insert(setting.field.to_owned(), Value::Null);
                }
                _ => {
                    let value = in_hash(setting, text, None)?;
                    changes.insert(setting.field.to_owned(), Value::from(value));
                }
            }
        }
        Ok(changes)
    }
}
