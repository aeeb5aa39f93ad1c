//! Duty: publishes the scripts of files: those that are new or changed when it starts and after a reload, and those that
//! Redis does not have.

use std::sync::Arc;

use tracing::{error, info, warn};

use super::duty::{Next, Round};
use crate::config::ScriptFile;
use crate::proto::named_script::Provenance;
use crate::store::{ScriptEdit, ScriptEdited, StoreError};

pub(super) async fn round(round: Round) -> Result<Next, StoreError> {
    let files = &round.settings.scripts;
    let published = round.counts.scripts.lock().clone();
    let is_known = published.is_some_and(|published| Arc::ptr_eq(&published, files));
    if !files.scripts.is_empty() {
        let known = round.store.published_scripts().list().await?;
        for script in &files.scripts {
            // Other machines may have another text: each publishes its own once, not in turns for ever.
            if !is_known || !known.contains_key(&script.name) {
                publish(&round, script).await?;
            }
        }
    }
    *round.counts.scripts.lock() = Some(Arc::clone(files));
    Ok(Next::After(round.long_pause()))
}

async fn publish(round: &Round, script: &ScriptFile) -> Result<(), StoreError> {
    let ScriptFile { name, file, text, definition } = script;
    let before = round.store.published_scripts().latest(name).await?;
    let provenance = Provenance {
        by: "supervisor".to_owned(),
        at: format!("{:.3}", round.store.now().await?),
        file: file.display().to_string(),
        rolled_back_to: None,
    };
    let json = |value: Result<String, serde_json::Error>| value.unwrap_or_default();
    let (definition, provenance) =
        (json(serde_json::to_string(definition)), json(serde_json::to_string(&provenance)));
    let edit = ScriptEdit::Publish {
        definition: &definition,
        text,
        provenance: &provenance,
        is_of_file: true,
    };
    match round.store.published_scripts().edit(name, edit).await? {
        ScriptEdited::Done(version) => {
            info!("published {name}@{version} of {}", file.display());
            if let Some(before) = before.filter(|before| before.story.file.is_empty()) {
                warn!(
                    "{name}@{} was published by {}: {} wins",
                    before.version,
                    before.story.by,
                    file.display()
                );
            }
        }
        ScriptEdited::Full => {
            error!(
                "cannot publish {name} of {}: redis has the limit of scripts; delete one",
                file.display()
            );
        }
        ScriptEdited::Same(_) | ScriptEdited::Missing | ScriptEdited::OfFile => {}
    }
    Ok(())
}
