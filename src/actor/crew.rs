//! The threads of all actors of one process, which its boots share.

use std::io;
use std::sync::Arc;

use parking_lot::Mutex;

use super::log_file::LogFolder;
use super::secret_store::SecretStore;
use super::settings::ActorSettings;
use super::signatures::SignatureCheck;
use super::workers::{ThreadSpec, Workers};

pub(super) struct Crew {
    /// The threads of each actor, in the order of the settings.
    pub(super) workers: Vec<Workers>,
    /// The number of shards that share them.
    pub(super) shards: usize,
    settings: Mutex<Arc<ActorSettings>>,
}

impl Crew {
    pub(super) fn start(settings: &Arc<ActorSettings>, shards: usize) -> io::Result<Self> {
        let start = |actor| Workers::start(spec(settings, actor)?, shards);
        let workers = (0..settings.actors.len()).map(start).collect::<io::Result<_>>()?;
        Ok(Self { workers, shards, settings: Mutex::new(Arc::clone(settings)) })
    }

    /// Takes over new settings, once for all boots. Running jobs keep theirs; their threads end with them.
    /// Returns whether they are new.
    pub(super) fn take_over(&self, settings: &Arc<ActorSettings>) -> io::Result<bool> {
        let mut in_force = self.settings.lock();
        if Arc::ptr_eq(&in_force, settings) {
            return Ok(false);
        }
        for (actor, workers) in self.workers.iter().enumerate() {
            workers.take_over(spec(settings, actor)?)?;
        }
        *in_force = Arc::clone(settings);
        Ok(true)
    }
}

fn spec(settings: &ActorSettings, actor: usize) -> io::Result<ThreadSpec> {
    let missing = || io::Error::from(io::ErrorKind::NotFound);
    let id = &settings.actors.get(actor).ok_or_else(missing)?.id;
    Ok(ThreadSpec {
        tasks: settings.tasks(actor),
        engine: Arc::clone(settings.engines.get(&id.script_type).ok_or_else(missing)?),
        logs: LogFolder {
            path: settings.job.log_dir.clone(),
            file_size_max: settings.job.log_file_size_max,
            files_max: settings.job.log_files_max,
        },
        secrets: SecretStore::new(&settings.secrets, id),
        signatures: SignatureCheck::new(settings, actor, id),
    })
}
