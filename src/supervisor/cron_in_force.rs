//! Compares the periodic jobs that are in force with the files on disk.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::watch;

use super::duty::SupervisorSettings;
use crate::config::{CronEntry, Crontab};
use crate::proto::cron::CronInForce;
use crate::proto::notification::NotifyName;

/// The digests of the periodic jobs in force, made once for each reload.
#[derive(Default)]
pub(super) struct CronWatch(Option<(Arc<Crontab>, BTreeMap<String, String>)>);

impl CronWatch {
    /// Reads the files on disk, and returns what is in force, which files differ from it, and which periodic jobs, of
    /// Redis too, nobody hears of.
    pub(super) async fn read(
        &mut self,
        settings: &watch::Receiver<Arc<SupervisorSettings>>,
        whole: Option<Arc<Crontab>>,
    ) -> CronInForce {
        let settings = Arc::clone(&settings.borrow());
        let crontab = Arc::clone(&settings.crontab);
        let unheard = unheard(whole.as_ref().unwrap_or(&crontab), &settings);
        let known = self.0.take().filter(|(of, _)| Arc::ptr_eq(of, &crontab));
        let compare = move || {
            let on_disk = crontab.rules.read(&settings.supervisor.cron_dir);
            let digests = known.map_or_else(|| crontab.digests(), |(_, digests)| digests);
            (crontab.changed_files(&on_disk), crontab, digests)
        };
        // Without an answer it tells less, once.
        let Ok((changed, crontab, digests)) = tokio::task::spawn_blocking(compare).await else {
            return CronInForce::default();
        };
        let refused = crontab.problems.iter().map(ToString::to_string).collect();
        self.0 = Some((crontab, digests.clone()));
        CronInForce::new(digests, changed, refused, unheard)
    }
}

/// Returns the periodic jobs that name notifications which the configuration does not have.
fn unheard(crontab: &Crontab, settings: &SupervisorSettings) -> Vec<String> {
    let of_entry = |entry: &CronEntry| {
        let unknown = entry.notifications().iter().filter(|of| !settings.notify.contains_key(*of));
        let unknown: Vec<&str> = unknown.map(NotifyName::as_str).collect();
        (!unknown.is_empty()).then(|| format!("{}: {}", entry.name, unknown.join(", ")))
    };
    crontab.entries.iter().filter_map(of_entry).collect()
}
