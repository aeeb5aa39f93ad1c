//! What is made once from the text of scripts and kept on disk: compiled programs, sets of packages.
//!
//! An entry is a folder `KIND/NAME` with a file `complete` that tells its size and, by its time,
//! when it was last used. Beside it lies `NAME.lock`: held exclusively by who builds or removes the
//! entry, shared by each job that uses it. So an entry is built once however many ask at a time,
//! also by several processes, and none is removed while a job runs from it.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{FlockOperation, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, flock, futimens};
use tracing::warn;

use super::deadline::timeout_until;
use super::{failure, reason};
use crate::engine::{Cancel, Failure};

/// The last file to be written of an entry.
const COMPLETE: &str = "complete";
/// What an entry was made of. Its name is only a hash of that.
const MADE_OF: &str = "made-of";
/// How often a lock is tried that another process may hold: nothing tells when it is free.
const TRY_EVERY: Duration = Duration::from_millis(20);
/// Deeper than this no entry is measured.
const FOLDERS_DEEP_MAX: usize = 64;

/// A folder of entries, private to this user.
#[derive(Debug, Clone)]
pub(super) struct Cache {
    folder: PathBuf,
    size_max_bytes: u64,
}

/// An entry that is complete, and stays while this is held.
#[derive(Debug)]
pub(super) struct Entry {
    folder: PathBuf,
    _in_use: File,
}

impl Entry {
    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.folder
    }
}

/// How long a job waits for an entry that another builds.
#[derive(Clone, Copy)]
pub(super) struct Patience<'a> {
    /// Ends the wait when requested.
    pub(super) cancel: &'a Cancel,
    /// Ends it when passed.
    pub(super) deadline: Instant,
}

impl Patience<'_> {
    fn wait(self) -> Result<(), Failure> {
        if let Some(reason) = self.cancel.requested() {
            return Err(Failure::Stopped(reason));
        }
        let now = Instant::now();
        if now >= self.deadline {
            return Err(Failure::Timeout);
        }
        let cancelled = self.cancel.descriptor();
        let cancelled = cancelled.map_err(|error| failure(reason(&error)))?;
        let until = self.deadline.min(now + TRY_EVERY);
        let mut waits = [PollFd::from_borrowed_fd(cancelled, PollFlags::IN)];
        // A signal only makes the next try come sooner.
        let _ = poll(&mut waits, Some(&timeout_until(until)));
        Ok(())
    }
}

impl Cache {
    pub(super) fn new(folder: &Path, size_max_bytes: u64) -> Self {
        Self { folder: folder.to_owned(), size_max_bytes }
    }

    /// The entry that is made of `made_of`; `build` fills its folder if it is not there yet.
    ///
    /// # Errors
    /// Those of `build`, a stop or the deadline while another builds it, or a folder that cannot
    /// be written.
    pub(super) fn entry(
        &self,
        kind: &str,
        made_of: &str,
        patience: Patience<'_>,
        build: impl FnOnce(&Path) -> Result<(), Failure>,
    ) -> Result<Entry, Failure> {
        let at = |error: io::Error| {
            let (folder, why) = (self.folder.display(), reason(&error));
            failure(format!("cannot use the cache {folder}: {why}; see job.cache_dir"))
        };
        let kind_folder = self.folder.join(kind);
        make_private(&kind_folder).map_err(at)?;
        let folder = kind_folder.join(name_of(made_of));
        let lock_file = folder.with_extension("lock");
        loop {
            let lock = open_lock(&lock_file).map_err(at)?;
            if flock(&lock, FlockOperation::NonBlockingLockShared).is_ok()
                && is_still(&lock, &lock_file)
                && is_complete(&folder, made_of)
            {
                return Ok(Entry { folder, _in_use: lock });
            }
            // Others may hold it too, so it is given back before it is asked for alone.
            let _ = flock(&lock, FlockOperation::NonBlockingUnlock);
            if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
                patience.wait()?;
                continue;
            }
            if !is_still(&lock, &lock_file) || is_complete(&folder, made_of) {
                continue;
            }
            build_in(&folder, made_of, build)?;
            // Not in one step: whoever comes between finds the entry complete.
            let shared = flock(&lock, FlockOperation::NonBlockingLockShared);
            self.prune(&folder);
            if shared.is_ok() && is_complete(&folder, made_of) {
                return Ok(Entry { folder, _in_use: lock });
            }
            return self.used_again(folder, &lock_file, made_of, patience).map_err(at);
        }
    }

    /// Waits for the entry just made, that somebody else has looked at in the moment between.
    fn used_again(
        &self,
        folder: PathBuf,
        lock_file: &Path,
        made_of: &str,
        patience: Patience<'_>,
    ) -> io::Result<Entry> {
        loop {
            let lock = open_lock(lock_file)?;
            if flock(&lock, FlockOperation::NonBlockingLockShared).is_ok() {
                if is_complete(&folder, made_of) {
                    return Ok(Entry { folder, _in_use: lock });
                }
                let size_max = self.size_max_bytes;
                let message = format!("an entry does not fit into {size_max} bytes");
                return Err(io::Error::other(message));
            }
            if patience.wait().is_err() {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
    }

    /// Removes what was used least lately, until the rest is within the bound. What is in use
    /// stays, and so does `newest`.
    fn prune(&self, newest: &Path) {
        let mut entries = self.entries();
        let mut size: u64 = entries.iter().map(|entry| entry.size_bytes).sum();
        entries.sort_by_key(|entry| entry.used_at);
        for old in entries {
            if size <= self.size_max_bytes {
                return;
            }
            if old.folder != newest && remove(&old.folder) {
                size -= old.size_bytes;
            }
        }
        if size > self.size_max_bytes {
            let folder = self.folder.display();
            warn!("the cache {folder} holds {size} bytes of entries that are all in use");
        }
    }

    fn entries(&self) -> Vec<Found> {
        let kinds = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        kinds
            .flat_map(|kind| fs::read_dir(kind.path()).into_iter().flatten().flatten())
            .filter_map(|entry| {
                let (folder, complete) = (entry.path(), entry.path().join(COMPLETE));
                let used = complete.metadata().ok()?;
                let size_bytes = fs::read_to_string(&complete).ok()?.trim().parse().ok()?;
                Some(Found { folder, size_bytes, used_at: (used.mtime(), used.mtime_nsec()) })
            })
            .collect()
    }
}

/// An entry, as it lies there.
struct Found {
    folder: PathBuf,
    size_bytes: u64,
    used_at: (i64, i64),
}

fn build_in(
    folder: &Path,
    made_of: &str,
    build: impl FnOnce(&Path) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let unwritable = |error: io::Error| {
        failure(format!("cannot write to the cache {}: {}", folder.display(), reason(&error)))
    };
    // What was left half made, by a process that died.
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(unwritable)?;
    }
    make_private(folder).map_err(unwritable)?;
    let made = build(folder).and_then(|()| {
        write_private(&folder.join(MADE_OF), made_of).map_err(unwritable)?;
        let size = size_of(folder, FOLDERS_DEEP_MAX).to_string();
        write_private(&folder.join(COMPLETE), &size).map_err(unwritable)
    });
    if made.is_err() {
        let _ = fs::remove_dir_all(folder);
    }
    made
}

/// Whether it is all there, made of the same; marks it as used.
fn is_complete(folder: &Path, made_of: &str) -> bool {
    let Ok(complete) = OpenOptions::new().append(true).open(folder.join(COMPLETE)) else {
        return false;
    };
    if !fs::read_to_string(folder.join(MADE_OF)).is_ok_and(|text| text == made_of) {
        return false;
    }
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    let omitted = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
    let _ = futimens(&complete, &Timestamps { last_access: omitted, last_modification: now });
    true
}

/// Removes an entry unless somebody uses it.
fn remove(folder: &Path) -> bool {
    let lock_file = folder.with_extension("lock");
    let Ok(lock) = open_lock(&lock_file) else { return false };
    if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err()
        || !is_still(&lock, &lock_file)
    {
        return false;
    }
    // First of all it is no longer complete, should this process die in between.
    let removed = fs::remove_file(folder.join(COMPLETE)).is_ok();
    let removed = removed && fs::remove_dir_all(folder).is_ok();
    let _ = fs::remove_file(&lock_file);
    removed
}

/// Not a lock on a file that was removed meanwhile: another has made a new one.
fn is_still(lock: &File, lock_file: &Path) -> bool {
    match (lock.metadata(), lock_file.metadata()) {
        (Ok(held), Ok(there)) => held.ino() == there.ino() && held.dev() == there.dev(),
        _ => false,
    }
}

fn open_lock(lock_file: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(lock_file)
}

fn make_private(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

fn write_private(file: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)?;
    io::Write::write_all(&mut file, text.as_bytes())
}

/// Two hashes of 64 bits: that two texts have the same name is noticed, as the text lies in the
/// entry, and only costs a build.
fn name_of(made_of: &str) -> String {
    let hash = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        (salt, made_of).hash(&mut hasher);
        hasher.finish()
    };
    format!("{:016x}{:016x}", hash(1), hash(2))
}

fn size_of(folder: &Path, depth_left: usize) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    entries
        .flatten()
        .filter_map(|entry| Some((entry.path(), entry.metadata().ok()?)))
        .map(|(path, data)| {
            let below = data.is_dir() && depth_left > 0;
            let below = if below { size_of(&path, depth_left - 1) } else { 0 };
            data.blocks() * 512 + below
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use crate::engine::StopReason;

    fn cache(size_max_bytes: u64) -> (tempfile::TempDir, Cache) {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = Cache::new(&folder.path().join("cache"), size_max_bytes);
        (folder, cache)
    }

    fn soon(cancel: &Cancel) -> Patience<'_> {
        Patience { cancel, deadline: Instant::now() + Duration::from_mins(1) }
    }

    fn filled(bytes: usize) -> impl FnOnce(&Path) -> Result<(), Failure> {
        move |folder| {
            fs::write(folder.join("content"), vec![b'x'; bytes]).expect("written");
            Ok(())
        }
    }

    fn never(_: &Path) -> Result<(), Failure> {
        panic!("it is there already")
    }

    #[test]
    fn an_entry_is_built_once_however_many_ask() {
        let (_folder, cache) = cache(1 << 20);
        let (builds, cancel) = (AtomicUsize::new(0), Cancel::new());
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let entry = cache.entry("kind", "text", soon(&cancel), |folder| {
                        builds.fetch_add(1, Ordering::SeqCst);
                        filled(10)(folder)
                    });
                    let content = entry.expect("an entry").path().join("content");
                    assert_eq!(fs::read(content).expect("read").len(), 10);
                });
            }
        });
        assert_eq!(builds.into_inner(), 1);
    }

    #[test]
    fn a_build_that_fails_leaves_nothing_and_is_tried_again() {
        let (folder, cache) = cache(1 << 20);
        let cancel = Cancel::new();
        let failed = cache.entry("kind", "text", soon(&cancel), |folder| {
            filled(10)(folder)?;
            Err(failure("no".to_owned()))
        });
        assert_eq!(failed.expect_err("failed"), failure("no".to_owned()));
        let left = fs::read_dir(folder.path().join("cache/kind")).expect("a folder");
        assert!(left.flatten().all(|left| left.path().extension().is_some_and(|e| e == "lock")));
        cache.entry("kind", "text", soon(&cancel), filled(1)).expect("built");
    }

    #[test]
    fn the_least_lately_used_goes_first_and_what_is_in_use_stays() {
        let (_folder, cache) = cache(140_000);
        let cancel = Cancel::new();
        let make = |text: &str| cache.entry("kind", text, soon(&cancel), filled(30_000));
        let there = |text: &str| cache.folder.join("kind").join(name_of(text)).exists();
        let in_use = make("a").expect("built");
        make("b").expect("built");
        make("c").expect("built");
        cache.entry("kind", "b", soon(&cancel), never).expect("used");
        // The clock of files is too coarse to tell what happens at once.
        for (age_s, text) in [(9, "a"), (8, "c")] {
            let complete = cache.folder.join("kind").join(name_of(text)).join(COMPLETE);
            let file = OpenOptions::new().append(true).open(complete).expect("there");
            let used = file.metadata().and_then(|data| data.modified()).expect("a time");
            file.set_modified(used - Duration::from_secs(age_s)).expect("set");
        }
        make("d").expect("built");
        assert_eq!(["a", "b", "c", "d"].map(there), [true, true, false, true]);
        drop(in_use);
        make("e").expect("built");
        assert_eq!(["a", "b", "d", "e"].map(there), [false, true, true, true]);
    }

    #[test]
    fn a_stop_and_the_deadline_end_the_wait_for_another_builder() {
        let (_folder, cache) = cache(1 << 20);
        let cancel = Cancel::new();
        let waited = cache.entry("kind", "text", soon(&cancel), |folder| {
            let passed = Patience { cancel: &cancel, deadline: Instant::now() };
            let other = cache.entry("kind", "text", passed, never);
            assert_eq!(other.expect_err("held"), Failure::Timeout);
            cancel.request(StopReason::Requested);
            let other = cache.entry("kind", "text", soon(&cancel), never);
            assert_eq!(other.expect_err("held"), Failure::Stopped(StopReason::Requested));
            filled(1)(folder)
        });
        waited.expect("built");
    }

    #[test]
    fn one_that_was_left_half_made_is_made_anew() {
        let (_folder, cache) = cache(1 << 20);
        let cancel = Cancel::new();
        let half = cache.folder.join("kind").join(name_of("text"));
        make_private(&half).expect("made");
        fs::write(half.join("rest"), "").expect("written");
        let entry = cache.entry("kind", "text", soon(&cancel), filled(1)).expect("built");
        assert!(!entry.path().join("rest").exists());
    }

    #[test]
    fn it_is_private_to_its_user() {
        let (_folder, cache) = cache(1 << 20);
        let cancel = Cancel::new();
        let entry = cache.entry("kind", "text", soon(&cancel), filled(1)).expect("built");
        for folder in [entry.path(), &cache.folder, &cache.folder.join("kind")] {
            assert_eq!(fs::metadata(folder).expect("there").mode() & 0o777, 0o700);
        }
    }
}
