//! Published scripts: publishes, lists, shows, rolls back and deletes them, and gives jobs that are about to be submitted their texts.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::graph::Graph;
use super::{ClientError, Result, ScriptClient};
use crate::error::{Error, Exit};
use crate::proto::graph::GraphCallback;
use crate::proto::job::{Job, json_of_field};
use crate::proto::named_script::{
    Parameters, Provenance, PublishedScript, SCRIPTS_MAX, ScriptDefinition, ScriptName, ScriptUse,
    ScriptVersion,
};
use crate::store::{NewGraph, ScriptEdit, ScriptEdited};

/// A version of a published script.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct ScriptDocument {
    /// Its name.
    pub name: String,
    /// Its version, from 1.
    pub version: u32,
    /// The SHA-256 of its text.
    pub digest: String,
    /// Its type.
    pub script_type: String,
    /// Its description.
    pub description: String,
    /// The parameters that it declares, as a schema of JSON Schema; null if it takes any.
    pub parameters: Option<Value>,
    /// The settings of its jobs that do not say otherwise, named as the fields of a job.
    pub settings: Map<String, Value>,
    /// The person or program that published it.
    pub published_by: String,
    /// The time of that, in RFC 3339.
    pub published_at: String,
    /// The file of the configuration that declares it; null if it was published by a command.
    pub file: Option<String>,
    /// The version whose text it has again, after a rollback.
    pub rolled_back_to: Option<u32>,
}

/// A version of a published script with its text.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ScriptTextDocument {
    /// The version.
    #[serde(flatten)]
    pub of: ScriptDocument,
    /// Its text.
    pub script: String,
}

/// The end of a publication.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PublishedDocument {
    /// The name of the script.
    pub name: String,
    /// Its latest version.
    pub version: u32,
    /// False if the latest version was the same already.
    pub created: bool,
}

impl ScriptDocument {
    pub fn of(name: &ScriptName, of: &ScriptVersion) -> Self {
        let ScriptVersion { version, story, definition } = of;
        let settings = definition.settings.iter();
        Self {
            name: name.to_string(),
            version: *version,
            digest: definition.digest.to_string(),
            script_type: definition.script_type.to_string(),
            description: definition.description.clone(),
            parameters: definition.params.as_ref().map(Parameters::schema),
            settings: settings
                .map(|(field, text)| (field.clone(), json_of_field(field, text.clone())))
                .collect(),
            published_by: story.by.clone(),
            published_at: story.at.clone(),
            file: (!story.file.is_empty()).then(|| story.file.clone()),
            rolled_back_to: story.rolled_back_to,
        }
    }
}

impl ScriptTextDocument {
    pub fn of(script: PublishedScript) -> Self {
        Self { of: ScriptDocument::of(&script.name, &script.of), script: script.text }
    }
}

impl ScriptClient<'_> {
    /// Lists the latest version of each published script, by name.
    pub async fn list(self) -> Result<Vec<(ScriptName, ScriptVersion)>> {
        Ok(self.client.store.published_scripts().list().await?.into_iter().collect())
    }

    /// Reads a version of a published script, the latest if the reference has none.
    ///
    /// # Errors
    /// [`Exit::NotFound`] if it does not exist; the code of [`ClientError::Store`].
    pub async fn get(self, used: &ScriptUse) -> Result<PublishedScript, Error> {
        let found =
            self.client.store.published_scripts().get(used).await.map_err(ClientError::from)?;
        match found {
            Some(script) => Ok(script),
            None => Err(self.missing_script(used).await?),
        }
    }

    async fn missing_script(self, used: &ScriptUse) -> Result<Error> {
        let why = self.client.store.published_scripts().missing(used).await?;
        Ok(Error::new(Exit::NotFound, format!("no such script: {}", why.reason)))
    }

    /// Lists the versions of a script that are kept, the newest first.
    pub async fn history(self, name: &ScriptName) -> Result<Vec<ScriptVersion>, Error> {
        let versions = self
            .client
            .store
            .published_scripts()
            .versions(name)
            .await
            .map_err(ClientError::from)?;
        if versions.is_empty() {
            let used = ScriptUse { name: name.clone(), version: None };
            return Err(self.missing_script(&used).await?);
        }
        Ok(versions)
    }

    /// Publishes a version of a script, unless its latest version is the same; `by` is who asks.
    ///
    /// # Errors
    /// [`Exit::Data`] if a file of the configuration has its name, or there are too many; the code of
    /// [`ClientError::Store`].
    pub async fn publish(
        self,
        name: &ScriptName,
        text: &str,
        definition: &ScriptDefinition,
        by: &str,
    ) -> Result<PublishedDocument, Error> {
        let definition = json_text(definition)?;
        let provenance = json_text(&self.provenance(by, None).await?)?;
        let edit = ScriptEdit::Publish {
            definition: &definition,
            text,
            provenance: &provenance,
            is_of_file: false,
        };
        self.edit("publish", name, None, edit).await
    }

    /// Publishes the text and the definition of a version again; `by` is who asks.
    ///
    /// # Errors
    /// [`Exit::NotFound`] if the version is not kept; as [`ScriptClient::publish`].
    pub async fn rollback(
        self,
        name: &ScriptName,
        version: u32,
        by: &str,
    ) -> Result<PublishedDocument, Error> {
        let provenance = json_text(&self.provenance(by, Some(version)).await?)?;
        let edit = ScriptEdit::Rollback { version, provenance: &provenance };
        self.edit("roll back", name, Some(version), edit).await
    }

    /// Deletes a script with all its versions. Its jobs keep their texts.
    ///
    /// # Errors
    /// [`Exit::NotFound`] if it does not exist; the code of [`ClientError::Store`].
    pub async fn delete(self, name: &ScriptName) -> Result<(), Error> {
        self.edit("delete", name, None, ScriptEdit::Delete).await.map(drop)
    }

    async fn provenance(self, by: &str, rolled_back_to: Option<u32>) -> Result<Provenance, Error> {
        let (by, at) = self.client.by_now(by).await?;
        Ok(Provenance { by, at, file: String::new(), rolled_back_to })
    }

    async fn edit(
        self,
        doing: &'static str,
        name: &ScriptName,
        version: Option<u32>,
        edit: ScriptEdit<'_>,
    ) -> Result<PublishedDocument, Error> {
        let answer = self
            .client
            .store
            .published_scripts()
            .edit(name, edit)
            .await
            .map_err(ClientError::from)?;
        let refused =
            |why: String| Err(Error::new(Exit::Data, format!("cannot {doing} {name}: {why}")));
        let (version, created) = match answer {
            ScriptEdited::Done(version) => (version, true),
            ScriptEdited::Same(version) => (version, false),
            ScriptEdited::Missing => {
                let used = ScriptUse { name: name.clone(), version };
                return Err(self.missing_script(&used).await?);
            }
            ScriptEdited::OfFile => {
                let latest = self
                    .client
                    .store
                    .published_scripts()
                    .latest(name)
                    .await
                    .map_err(ClientError::from)?;
                let file = latest.map(|latest| latest.story.file).unwrap_or_default();
                return refused(format!(
                    "it is in {file}: change that file and reload the supervisor; if the file is gone, \
                     hero script delete {name}"
                ));
            }
            ScriptEdited::Full => {
                return refused(format!(
                    "redis has {SCRIPTS_MAX} scripts, which is the limit; delete one"
                ));
            }
        };
        if created {
            let what = match edit {
                ScriptEdit::Delete => "script.delete",
                ScriptEdit::Rollback { .. } => "script.rollback",
                ScriptEdit::Publish { .. } | ScriptEdit::Restore { .. } => "script.publish",
            };
            self.client.audit().note(what, format!("{name}@{version}")).await;
        }
        Ok(PublishedDocument { name: name.to_string(), version, created })
    }

    /// Gives a job that names a published script its text and settings, and checks its parameters. Submitting it does
    /// this as well.
    ///
    /// # Errors
    /// [`ClientError::Invalid`] if the script does not exist, or the job does not fit it; [`ClientError::Store`].
    pub async fn resolve(self, job: &mut Job) -> Result<()> {
        if job.spec.uses.is_none() && job.spec.script_digest.is_none() {
            return Ok(());
        }
        // Few jobs name a script: the futures of callers stay small.
        Ok(Box::pin(self.client.store.published_scripts().resolve(&mut job.spec)).await??)
    }

    /// Resolves the published scripts of jobs, each script read once. The error has the place of its job; the jobs before
    /// it have theirs.
    pub(super) async fn resolve_all(
        self,
        jobs: impl Iterator<Item = &mut Job>,
    ) -> Result<(), (usize, ClientError)> {
        let resolved = Box::pin(
            self.client.store.published_scripts().resolve_all(jobs.map(|job| &mut job.spec)),
        )
        .await;
        resolved.map_err(|error| (0, error.into()))?.map_err(|(place, error)| (place, error.into()))
    }

    /// Returns each job with its published script, or why it cannot be submitted.
    pub(super) async fn each_checked(self, jobs: &[Job]) -> Result<Vec<Result<Job>>> {
        let (mut jobs, mut refused, mut from) = (jobs.to_vec(), BTreeMap::new(), 0);
        while let Err((place, error)) = self.resolve_all(jobs[from..].iter_mut()).await {
            if matches!(error, ClientError::Store(_)) {
                return Err(error);
            }
            refused.insert(from + place, error);
            from += place + 1;
        }
        let each = jobs.into_iter().enumerate().map(|(place, job)| match refused.remove(&place) {
            Some(error) => Err(error),
            None => self.client.check(&job).map(|()| job).map_err(ClientError::from),
        });
        Ok(each.collect())
    }

    /// Resolves the published scripts of jobs. An error gets the place and the name of its job, unless Redis could not be asked.
    pub(super) async fn resolve_named(
        self,
        jobs: impl Iterator<Item = &mut Job>,
        named: impl Fn(usize) -> (usize, String),
    ) -> Result<()> {
        self.resolve_all(jobs).await.map_err(|(at, error)| {
            if matches!(error, ClientError::Store(_)) {
                return error;
            }
            let (place, name) = named(at);
            refused(place, name, error)
        })
    }

    /// Resolves the published scripts of the jobs and callbacks of a graph. Submitting it does this as well.
    ///
    /// # Errors
    /// [`ClientError::Refused`] names the job; [`ClientError::Store`].
    pub async fn resolve_graph(self, graph: &mut Graph) -> Result<()> {
        let names: Vec<String> =
            graph.jobs_and_callbacks().map(|(name, _)| name.to_owned()).collect();
        self.resolve_named(graph.all_jobs_mut(), |place| (place, names[place].clone())).await
    }

    /// Resolves the published scripts of the callbacks of a batch that has so many jobs.
    pub(super) async fn resolve_callbacks(self, jobs: usize, batch: &mut NewGraph) -> Result<()> {
        let names: Vec<GraphCallback> = batch.callbacks.keys().copied().collect();
        let of_place = |at: usize| (jobs, names[at].as_str().to_owned());
        self.resolve_named(batch.callbacks.values_mut(), of_place).await
    }
}

fn json_text(value: &impl Serialize) -> Result<String, Error> {
    serde_json::to_string(value).map_err(|error| Error::new(Exit::Data, error.to_string()))
}

/// Returns the name of the job at a place, for its refusal.
pub(super) type NameOf<'a> = dyn Fn(usize) -> String + Sync + 'a;

pub(super) fn refused(place: usize, name: String, error: ClientError) -> ClientError {
    ClientError::Refused { place, name, error: Box::new(error) }
}
