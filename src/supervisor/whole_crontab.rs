//! The periodic jobs of files and of Redis.

use std::sync::Arc;

use parking_lot::Mutex;
use tracing::warn;

use crate::config::Crontab;
use crate::store::{Store, StoreError};

/// The periodic jobs of files and of Redis. Redis is read again when the revision changes.
#[derive(Debug, Default)]
pub(super) struct WholeCrontab(Mutex<Option<CrontabAsRead>>);

#[derive(Debug)]
struct CrontabAsRead {
    files: Arc<Crontab>,
    revision: Option<String>,
    whole: Arc<Crontab>,
}

impl CrontabAsRead {
    fn is_of(&self, files: &Arc<Crontab>, revision: Option<&str>) -> bool {
        self.revision.as_deref() == revision && Arc::ptr_eq(&self.files, files)
    }
}

impl WholeCrontab {
    /// Returns whether those that were last read are of these files and this revision.
    pub(super) fn is_of(&self, files: &Arc<Crontab>, revision: Option<&str>) -> bool {
        self.0.lock().as_ref().is_some_and(|read| read.is_of(files, revision))
    }

    /// Returns all that were last read.
    pub(super) fn latest(&self) -> Option<Arc<Crontab>> {
        self.0.lock().as_ref().map(|read| Arc::clone(&read.whole))
    }

    pub(super) async fn with(
        &self,
        files: &Arc<Crontab>,
        store: &Store,
    ) -> Result<Arc<Crontab>, StoreError> {
        let revision = store.cron().revision().await?;
        if let Some(read) = &*self.0.lock()
            && read.is_of(files, revision.as_deref())
        {
            return Ok(Arc::clone(&read.whole));
        }
        let added = store.cron().added().await?;
        let whole = Arc::new(files.with_added(&added));
        for problem in whole.problems.iter().skip(files.problems.len()) {
            warn!("{problem}: this periodic job is not in force");
        }
        let (files, whole_too) = (Arc::clone(files), Arc::clone(&whole));
        *self.0.lock() = Some(CrontabAsRead { files, revision, whole });
        Ok(whole_too)
    }
}
