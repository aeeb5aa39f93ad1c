//! Jobs as parameters and results. Their schemas come from the one list of job options.

use std::borrow::Cow;
use std::sync::OnceLock;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::job_files::EncodedFiles;
use super::{CallContext, Result};
use crate::client::job_of_members;
use crate::proto::job::{
    FieldKind, JOB_FIELDS, Job, JobAttempt, JobField, JobId, JobStatus, SETTINGS, Setting,
    WAITS_FOR,
};
use crate::store::JobSummary;

#[derive(Deserialize)]
#[serde(transparent)]
pub(super) struct JobSettings(Map<String, Value>);

#[derive(Deserialize)]
pub(super) struct BatchJob {
    #[serde(flatten)]
    pub(super) settings: JobSettings,
    #[serde(default)]
    pub(super) inputs: EncodedFiles,
    #[serde(default)]
    pub(super) stdin: Option<String>,
}

#[derive(Serialize)]
#[serde(transparent)]
pub(crate) struct JobDocument(pub(crate) Value);

#[derive(Serialize)]
#[serde(transparent)]
pub(super) struct ListedJob(pub(super) JobSummary);

/// The text in place of a value that the caller may not see.
const MASKED: &str = "***";

impl JobSettings {
    /// Returns the job as one of the caller's, within its bounds.
    pub(super) async fn job(&self, context: &CallContext) -> Result<Job> {
        self.job_within(context, context).await
    }

    /// Does the same within the bounds of the same caller that `adopter` has.
    pub(super) async fn job_within(
        &self,
        context: &CallContext,
        adopter: &CallContext,
    ) -> Result<Job> {
        let mut job = job_of_members(self.0.clone())?;
        context.resolve(&mut job).await?;
        adopter.adopt(&mut job)?;
        Ok(job)
    }

    pub(super) fn members(self) -> Map<String, Value> {
        self.0
    }

    /// Settings of one name and value each.
    pub(super) fn of(members: impl IntoIterator<Item = (&'static str, Value)>) -> Self {
        Self(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }
}

impl JobDocument {
    /// Returns a document of a job as the caller may see it: environment variables of others, and of published scripts, are
    /// masked, and dependents that the caller may not see are left out, with the number of the further ones.
    pub(super) async fn of(context: &CallContext, mut document: Value) -> Result<Self> {
        let is_own = document["caller_id"] == context.caller.name.as_str();
        let is_published = !document["uses"].is_null();
        if (!is_own || is_published) && !context.caller.operates() {
            document.as_object_mut().into_iter().for_each(mask);
        }
        if context.hides_jobs() {
            hide_dependents(context, &mut document).await?;
        }
        add_blocker(context, &mut document).await;
        Ok(Self(document))
    }

    /// Returns whether a job can have a field.
    pub(crate) fn has(name: &str) -> bool {
        static FIELDS: OnceLock<Map<String, Value>> = OnceLock::new();
        FIELDS.get_or_init(|| fields(&mut SchemaGenerator::default())).contains_key(name)
    }
}

/// Adds to a job that does not start what it waits for. Without an answer it adds nothing.
async fn add_blocker(context: &CallContext, job: &mut Value) {
    let status = job["status"].as_str().and_then(|word| word.parse().ok());
    let id: Option<JobId> = job["id"].as_str().and_then(|id| id.parse().ok());
    if let (Some(JobStatus::Dispatched | JobStatus::Scheduled), Some(id)) = (status, id)
        && let Some(words) = context.waits_for(&id).await
    {
        job[WAITS_FOR] = json!(words);
    }
}

/// Leaves those dependents in a document that the caller finds.
async fn hide_dependents(context: &CallContext, document: &mut Value) -> Result<()> {
    let Some(members) = document.as_object_mut() else { return Ok(()) };
    members.remove("dependents_more");
    let Some(all) = members.remove("dependents") else { return Ok(()) };
    let ids = all.as_array().into_iter().flatten().filter_map(|id| id.as_str()?.parse().ok());
    let found = found_of(context, ids.collect()).await?;
    if !found.is_empty() {
        members.insert("dependents".to_owned(), json!(found));
    }
    Ok(())
}

/// Returns the jobs among these that the caller finds.
pub(super) async fn found_of(context: &CallContext, ids: Vec<JobId>) -> Result<Vec<JobId>> {
    let mut found = context.client.jobs().summaries(ids).await?;
    found.retain(|job| context.finds(job));
    Ok(found.into_iter().map(|job| job.id).collect())
}

/// Masks the values of a job, or of its settings, that only some may see.
pub(super) fn mask(members: &mut Map<String, Value>) {
    for secret in JOB_FIELDS.iter().filter(|field| field.is_secret) {
        let values = members.get_mut(secret.name).and_then(Value::as_object_mut);
        values.into_iter().flatten().for_each(|(_, value)| *value = MASKED.into());
    }
}

/// The names that settings have elsewhere, in files and lists, each with the field of the hash.
const OTHER_NAMES: [(&str, &str); 3] =
    [("caller", "caller_id"), ("context", "context_id"), ("after", "prerequisites")];

/// The words that a setting may have, where they are few.
fn words_of(name: &str) -> Option<&'static [&'static str]> {
    Some(match name {
        "fallback" => &["type", "group", "none"],
        "unique_by" => &["key", "script", "params"],
        "on_duplicate" => &["return", "replace", "reject"],
        "output_overflow" => &["truncate", "fail"],
        "reply_format" => &["json", "plain"],
        _ => return None,
    })
}

/// The schema of a setting, with its words.
fn setting(name: &str, doc: &str, kind: FieldKind) -> Value {
    let mut schema = field(doc, kind);
    if let Some(words) = words_of(name) {
        schema["enum"] = json!(words);
    }
    if name == "priority" {
        schema["minimum"] = json!(0);
        schema["maximum"] = json!(2);
    }
    schema
}

/// The schema of a field of the hash, as JSON has it.
fn field(doc: &str, kind: FieldKind) -> Value {
    let doc = doc.split_whitespace().collect::<Vec<_>>().join(" ");
    let doc = doc.trim_end_matches('.');
    match kind {
        FieldKind::Text => json!({ "description": doc, "type": "string" }),
        FieldKind::Number => json!({ "description": doc, "type": "integer" }),
        FieldKind::Duration => {
            json!({ "description": format!("{doc}; in seconds"), "type": "number" })
        }
        FieldKind::Flag => json!({ "description": doc, "type": "boolean" }),
        FieldKind::Time => json!({ "description": doc, "type": "string", "format": "date-time" }),
        FieldKind::Object => json!({ "description": doc, "type": "object" }),
        FieldKind::List | FieldKind::Texts => {
            json!({ "description": doc, "type": "array", "items": { "type": "string" } })
        }
        FieldKind::Map => json!({
            "description": doc, "type": "object", "additionalProperties": { "type": "string" },
        }),
    }
}

fn settings() -> Map<String, Value> {
    let schema = |set: &Setting| (set.field.to_owned(), setting(set.field, set.doc, set.kind));
    SETTINGS.iter().map(schema).collect()
}

/// The schemas of a submitter's input: the settings, and other names of some.
fn given_settings() -> Map<String, Value> {
    let mut all = settings();
    for (other, name) in OTHER_NAMES {
        let mut schema = all[name].clone();
        schema["description"] = json!(format!("Another name of {name}"));
        all.insert(other.to_owned(), schema);
    }
    let doc = "The time from its submission until it may start, such as 10m; not beside run_at";
    all.insert("delay".to_owned(), field(doc, FieldKind::Text));
    all
}

/// The schemas of all fields of a job.
fn fields(generator: &mut SchemaGenerator) -> Map<String, Value> {
    let mut all = settings();
    all.insert("status".to_owned(), generator.subschema_for::<JobStatus>().into());
    all.extend(Job::own_fields().map(|(name, doc, kind)| (name.to_owned(), field(doc, kind))));
    all.insert("attempts".to_owned(), generator.subschema_for::<Vec<JobAttempt>>().into());
    all["attempts"]["description"] = json!("The latest attempts, the running one included");
    for JobField { name, added, .. } in JOB_FIELDS {
        let Some(added) = added else { continue };
        let schema = match added.kind {
            FieldKind::List => field(added.doc, added.kind),
            _ => json!({ "description": added.doc, "type": added.json_type }),
        };
        all.insert((*name).to_owned(), schema);
    }
    all
}

impl JsonSchema for JobSettings {
    fn schema_name() -> Cow<'static, str> {
        "JobSettings".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "The settings of a job to submit, named as the fields of its hash",
            "type": "object",
            "properties": given_settings(),
            "anyOf": [{ "required": ["script", "script_type"] }, { "required": ["uses"] }],
            "additionalProperties": false,
        })
    }
}

impl JsonSchema for BatchJob {
    fn schema_name() -> Cow<'static, str> {
        "BatchJob".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = Value::from(JobSettings::json_schema(generator));
        schema["description"] = json!("The settings of a job, and its files");
        let doc = "Files for its script, in Base64, by their names";
        schema["properties"]["inputs"] = field(doc, FieldKind::Map);
        let doc = "The standard input of its script, in Base64";
        schema["properties"]["stdin"] = field(doc, FieldKind::Text);
        Schema::try_from(schema).unwrap_or_default()
    }
}

impl JsonSchema for JobDocument {
    fn schema_name() -> Cow<'static, str> {
        "Job".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A job. A field that it does not have is left out",
            "type": "object",
            "properties": fields(generator),
            "required": ["id", "script", "status", "priority"],
        })
    }
}

impl JsonSchema for ListedJob {
    fn schema_name() -> Cow<'static, str> {
        "ListedJob".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let all = fields(generator);
        let names = JobField::listed_fields().map(|field| field.name).chain(["id", "status"]);
        let with_schema = |name: &str| {
            let field = all.get(name).cloned().unwrap_or_else(|| json!({ "type": "string" }));
            (name.to_owned(), field)
        };
        json_schema!({
            "description": "A job in a list",
            "type": "object",
            "properties": names.map(with_schema).collect::<Map<String, Value>>(),
            "required": ["id"],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_settings_are_those_that_are_read() {
        let read = |name: &str, word: &str| {
            let params = json!({ "script": "1", "unique_key": "k", name: word });
            Job::from_json(params.as_object().expect("an object")).is_ok()
        };
        for set in SETTINGS {
            for word in words_of(set.field).unwrap_or_default() {
                assert!(read(set.field, word), "{} {word}", set.field);
            }
            assert!(words_of(set.field).is_none() || !read(set.field, "other"), "{}", set.field);
        }
    }

    #[test]
    fn setting_has_one_of_its_names() {
        for (other, field) in OTHER_NAMES {
            assert_eq!(Setting::named(other).map(|setting| setting.field), Some(field));
        }
        let params = json!({ "script": "1", "caller": "ann", "caller_id": "bob" });
        assert!(job_of_members(params.as_object().expect("an object").clone()).is_err());
    }
}
