//! Published scripts: their versions, and the text that a job gets at its submission.

use std::collections::{BTreeMap, HashMap};

use super::text::FieldPair;
use super::{Result, ScriptStore, StoreError};
use crate::proto::job::{InvalidJob, JobSpec};
use crate::proto::named_script::{
    PublishedScript, SCRIPTS_MAX, ScriptName, ScriptUse, ScriptVersion, VERSIONS_BYTES_MAX,
    VERSIONS_KEPT,
};
use crate::proto::text::{did_you_mean, nearest};

/// A change of the published scripts. Definitions and provenances are JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScriptEdit<'a> {
    /// Publishes a version, unless it is the same as the latest.
    Publish {
        definition: &'a str,
        text: &'a str,
        provenance: &'a str,
        /// True if it is from a file of the configuration.
        is_of_file: bool,
    },
    /// Publishes the definition and the text of a version again.
    Rollback {
        version: u32,
        /// The provenance of the new version.
        provenance: &'a str,
    },
    /// Restores a version of a backup; versions are restored in their order.
    Restore {
        version: u32,
        definition: &'a str,
        text: &'a str,
        provenance: &'a str,
    },
    Delete,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScriptEdited {
    /// The change was made; the new version.
    Done(u32),
    /// The latest version is the same.
    Same(u32),
    /// The script, or its version, does not exist.
    Missing,
    OfFile,
    /// The limit of scripts is reached.
    Full,
}

impl ScriptStore<'_> {
    pub async fn edit(self, name: &ScriptName, edit: ScriptEdit<'_>) -> Result<ScriptEdited> {
        const DOING: &str = "changing the published scripts";
        let (action, definition, text, provenance, version, file) = match edit {
            ScriptEdit::Publish { definition, text, provenance, is_of_file } => {
                ("publish", definition, text, provenance, 0, if is_of_file { "1" } else { "" })
            }
            ScriptEdit::Rollback { version, provenance } => {
                ("rollback", "", "", provenance, version, "")
            }
            ScriptEdit::Restore { version, definition, text, provenance } => {
                ("restore", definition, text, provenance, version, "")
            }
            ScriptEdit::Delete => ("delete", "", "", "", 0, ""),
        };
        let bounds = (SCRIPTS_MAX, VERSIONS_KEPT, VERSIONS_BYTES_MAX);
        let arguments =
            (action, name.as_str(), definition, text, provenance, version, bounds, file);
        let (answer, version): (String, u32) =
            self.store.run_script(DOING, &self.store.scripts.publish_script, arguments).await?;
        match answer.as_str() {
            "ok" => Ok(ScriptEdited::Done(version)),
            "same" => Ok(ScriptEdited::Same(version)),
            "missing" => Ok(ScriptEdited::Missing),
            "file" => Ok(ScriptEdited::OfFile),
            "full" => Ok(ScriptEdited::Full),
            _ => Err(StoreError::unexpected(DOING)),
        }
    }

    /// Lists the latest version of each published script, by name, without those that this version cannot read.
    pub async fn list(self) -> Result<BTreeMap<ScriptName, ScriptVersion>> {
        let (doing, key) = ("reading the published scripts", self.store.keys.scripts());
        let all: Vec<(String, Vec<u8>)> = self.store.link.command(doing, "HGETALL", key).await?;
        let read =
            |(name, head): (String, Vec<u8>)| Some((name.parse().ok()?, version_of_json(&head)?));
        Ok(all.into_iter().take(SCRIPTS_MAX).filter_map(read).collect())
    }

    /// Reads the latest version of a script without its text; `None` if it does not exist.
    pub async fn latest(self, name: &ScriptName) -> Result<Option<ScriptVersion>> {
        let (doing, arguments) =
            ("reading a published script", (self.store.keys.scripts(), name.as_str()));
        let head: Option<Vec<u8>> = self.store.link.command(doing, "HGET", arguments).await?;
        Ok(head.and_then(|head| version_of_json(&head)))
    }

    /// Reads a version of a published script, without a number the latest; `None` if it is not kept or not there.
    pub async fn get(self, used: &ScriptUse) -> Result<Option<PublishedScript>> {
        const DOING: &str = "reading a published script";
        let Some(latest) = self.latest(&used.name).await? else { return Ok(None) };
        let version = used.version.unwrap_or(latest.version);
        let fields = ["definition", "story", "text"].map(|part| format!("{part}:{version}"));
        let arguments = (self.store.keys.script(&used.name), &fields);
        let parts: [Option<Vec<u8>>; 3] =
            self.store.link.command(DOING, "HMGET", arguments).await?;
        let [Some(definition), Some(provenance), Some(text)] = parts else { return Ok(None) };
        let (Some(of), Ok(text)) =
            (version_of_parts(version, &definition, &provenance), String::from_utf8(text))
        else {
            let reason = format!("{}@{version} cannot be read: publish it again", used.name);
            return Err(StoreError::failed(DOING, reason));
        };
        Ok(Some(PublishedScript { name: used.name.clone(), of, text }))
    }

    /// Lists the versions of a script that are kept, the newest first.
    pub async fn versions(self, name: &ScriptName) -> Result<Vec<ScriptVersion>> {
        const DOING: &str = "reading the versions of a script";
        let Some(latest) = self.latest(name).await? else { return Ok(Vec::new()) };
        let oldest = latest.version.saturating_sub(2 * VERSIONS_KEPT).max(1);
        let numbers: Vec<u32> = (oldest..=latest.version).rev().collect();
        let of_number = |number| [format!("definition:{number}"), format!("story:{number}")];
        let fields: Vec<String> = numbers.iter().flat_map(of_number).collect();
        let parts: Vec<FieldPair> =
            self.store.link.command(DOING, "HMGET", (self.store.keys.script(name), fields)).await?;
        let versions = numbers
            .into_iter()
            .zip(parts)
            .filter_map(|(number, parts)| version_of_parts(number, &parts.0?, &parts.1?));
        Ok(versions.collect())
    }

    /// Gives a job that names a published script its text and settings; a job that has the text is checked against
    /// the script.
    ///
    /// # Errors
    /// [`StoreError`]; within, [`InvalidJob`] if the script does not exist or the job does not fit it.
    pub async fn resolve(self, spec: &mut JobSpec) -> Result<Result<(), InvalidJob>> {
        let resolved = self.resolve_all(std::iter::once(spec)).await?;
        Ok(resolved.map_err(|(_, error)| error))
    }

    /// Gives jobs the published scripts that they name, each script read once. The error has the place of its job.
    pub async fn resolve_all(
        self,
        specs: impl Iterator<Item = &mut JobSpec>,
    ) -> Result<Result<(), (usize, InvalidJob)>> {
        let mut read: HashMap<String, PublishedScript> = HashMap::new();
        for (place, spec) in specs.enumerate() {
            let Some(used) = spec.uses.clone() else {
                if spec.script_digest.is_some() {
                    let why = "needs `uses`: it is of a published script";
                    return Ok(Err((place, InvalidJob::new("script_digest", why))));
                }
                continue;
            };
            let key = used.to_string();
            let known = match read.remove(&key) {
                Some(script) => Some(script),
                None => self.get(&used).await?,
            };
            let Some(script) = known else {
                return Ok(Err((place, self.missing(&used).await?)));
            };
            let given = script.give_to(spec);
            read.insert(key, script);
            if let Err(error) = given {
                return Ok(Err((place, error)));
            }
        }
        Ok(Ok(()))
    }

    /// Returns the error of a job that names a script, or a version of one, that does not exist.
    pub async fn missing(self, used: &ScriptUse) -> Result<InvalidJob> {
        let versions = self.versions(&used.name).await?;
        let why = if let (Some(newest), Some(oldest)) = (versions.first(), versions.last()) {
            format!(
                "`{used}` is not kept: {} has the versions {} to {}; hero script history {0}",
                used.name, oldest.version, newest.version
            )
        } else {
            let all = self.list().await?;
            let hint =
                did_you_mean(nearest(used.name.as_str(), all.keys().map(ScriptName::as_str)));
            format!("`{}` is not a published script{hint}; hero script list shows all", used.name)
        };
        Ok(InvalidJob::new("uses", why))
    }
}

fn version_of_json(head: &[u8]) -> Option<ScriptVersion> {
    let of: ScriptVersion = serde_json::from_slice(head).ok()?;
    of.definition.check().is_ok().then_some(of)
}

fn version_of_parts(version: u32, definition: &[u8], provenance: &[u8]) -> Option<ScriptVersion> {
    let definition = serde_json::from_slice(definition).ok()?;
    let provenance = serde_json::from_slice(provenance).ok()?;
    Some(ScriptVersion { version, story: provenance, definition })
}
