//! Duty: deletes contents of the folder of `[artifacts]` that no job of any shard names any more. A supervisor
//! without that folder does nothing.

use std::io;

use tracing::info;

use super::duty::{Next, Round};
use crate::artifacts::{AgedContents, ContentFolder, SetAside};
use crate::config::format_duration;
use crate::error::reason;
use crate::proto::job::ContentHash;
use crate::proto::text::counted;
use crate::store::{Shards, StoreError};

/// The pause between two rounds, as a multiple of the sweep interval.
const PAUSE_FACTOR: u32 = 60;
/// A round ends after the part of the folder that completes this number of old contents.
const CONTENTS_MAX: usize = 2000;
/// The contents per call of the store.
const BATCH_LEN_MAX: usize = 32;

pub(super) async fn round(round: Round) -> Result<Next, StoreError> {
    let pause = round.pause(PAUSE_FACTOR);
    let Some(place) = round.settings.job.artifacts.clone() else {
        return Ok(Next::After(pause));
    };
    let folder = ContentFolder::new(place);
    let now = on_disk(&folder, ContentFolder::begin_round).await?;
    // Another part is the first of each round, so all have their turn.
    let first = fastrand::u8(..);
    let (mut looked, mut deleted) = (0, 0);
    for step in 0..=u8::MAX {
        let part = first.wrapping_add(step);
        let aged = on_disk(&folder, move |folder| folder.aged(part, now)).await?;
        looked += aged.contents.len();
        deleted += tend(&round.system, &folder, aged, now).await?;
        if looked >= CONTENTS_MAX {
            break;
        }
    }
    if deleted > 0 {
        info!(
            "deleted {} of {} that no job names; the next round is in {}",
            counted(deleted, "file", "files"),
            folder.dir().display(),
            format_duration(pause)
        );
    }
    Ok(Next::After(pause))
}

/// Deletes the contents that no job names. Returns their number.
async fn tend(
    system: &Shards,
    folder: &ContentFolder,
    aged: AgedContents,
    now: i64,
) -> Result<u64, StoreError> {
    let mut aside = aged.aside;
    for hashes in aged.contents.chunks(BATCH_LEN_MAX) {
        let unused = unused(system, folder, hashes.iter()).await?;
        for (hash, _) in hashes.iter().zip(unused).filter(|(_, unused)| *unused) {
            let hash = hash.clone();
            let set_aside = move |folder: &ContentFolder| folder.set_aside(&hash, now);
            aside.extend(on_disk(folder, set_aside).await?);
        }
    }
    let mut deleted = 0;
    while !aside.is_empty() {
        let batch: Vec<SetAside> = aside.drain(..aside.len().min(BATCH_LEN_MAX)).collect();
        // A job may have come to name it before it was set aside. A job that comes later finds no file, and
        // writes one.
        let unused = unused(system, folder, batch.iter().map(|one| &one.hash)).await?;
        for (one, unused) in batch.into_iter().zip(unused) {
            deleted += u64::from(unused);
            on_disk(folder, move |_| if unused { one.delete() } else { one.put_back() }).await?;
        }
    }
    Ok(deleted)
}

/// Returns which of the contents no job of any shard names.
async fn unused<'a>(
    system: &Shards,
    folder: &ContentFolder,
    hashes: impl Iterator<Item = &'a ContentHash> + Clone,
) -> Result<Vec<bool>, StoreError> {
    let retention_s = folder.retention().as_secs();
    let mut unused: Vec<bool> = hashes.clone().map(|_| true).collect();
    for store in system.all() {
        let of_shard = store.files().unused_contents(hashes.clone(), retention_s).await?;
        for (unused, of_shard) in unused.iter_mut().zip(of_shard) {
            *unused &= of_shard;
        }
    }
    Ok(unused)
}

/// Works with the folder, which may be slow.
async fn on_disk<T: Send + 'static>(
    folder: &ContentFolder,
    work: impl FnOnce(&ContentFolder) -> io::Result<T> + Send + 'static,
) -> Result<T, StoreError> {
    let own = folder.clone();
    let done = tokio::task::spawn_blocking(move || work(&own)).await;
    done.unwrap_or_else(|error| Err(io::Error::other(error))).map_err(|error| StoreError::Failed {
        doing: "tending artifacts.dir",
        reason: format!("{}: {}", folder.dir().display(), reason(&error)),
    })
}
