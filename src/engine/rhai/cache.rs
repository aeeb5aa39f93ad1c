//! A bounded cache of compiled scripts by their source, shared by the threads of a script type.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use ::rhai::AST;

/// The limit of cached scripts.
const SCRIPTS_MAX: usize = 512;
/// The size limit of all cached sources; compiled they are about ten times as large.
const SOURCE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A second-chance cache: a script that was used since it was last at the front of the queue goes
/// to its end. A hit only sets that mark, so a shared lock is enough.
#[derive(Debug)]
pub(super) struct ScriptCache {
    contents: RwLock<CacheContents>,
    scripts_max: usize,
    source_bytes_max: usize,
}

#[derive(Debug, Default)]
struct CacheContents {
    scripts: HashMap<Arc<str>, CachedScript>,
    turns: VecDeque<Arc<str>>,
    source_bytes: usize,
}

#[derive(Debug)]
struct CachedScript {
    compiled: Arc<AST>,
    used: AtomicBool,
}

impl Default for ScriptCache {
    fn default() -> Self {
        Self::bounded(SCRIPTS_MAX, SOURCE_BYTES_MAX)
    }
}

impl ScriptCache {
    fn bounded(scripts_max: usize, source_bytes_max: usize) -> Self {
        Self { contents: RwLock::default(), scripts_max, source_bytes_max }
    }

    /// Returns the script compiled from exactly this source.
    pub(super) fn get(&self, source: &str) -> Option<Arc<AST>> {
        let contents = self.contents.read().unwrap_or_else(PoisonError::into_inner);
        let entry = contents.scripts.get(source)?;
        // Without the check, threads that run the same script would contend for one cache line.
        if !entry.used.load(Ordering::Relaxed) {
            entry.used.store(true, Ordering::Relaxed);
        }
        Some(entry.compiled.clone())
    }

    /// Adds a script and evicts others as needed. A source larger than a quarter of the cache is not
    /// added.
    pub(super) fn put(&self, source: &str, compiled: &Arc<AST>) {
        if source.len() > self.source_bytes_max / 4 {
            return;
        }
        let mut contents = self.contents.write().unwrap_or_else(PoisonError::into_inner);
        if contents.scripts.contains_key(source) {
            return;
        }
        while contents.scripts.len() >= self.scripts_max
            || contents.source_bytes + source.len() > self.source_bytes_max
        {
            if !contents.evict() {
                return;
            }
        }
        let key: Arc<str> = source.into();
        contents.source_bytes += source.len();
        contents.turns.push_back(key.clone());
        let entry = CachedScript { compiled: compiled.clone(), used: AtomicBool::new(false) };
        contents.scripts.insert(key, entry);
    }
}

impl CacheContents {
    /// Removes the first script in the queue without a mark; false if the cache is empty. Every
    /// script that it skips loses its mark, so the loop ends.
    fn evict(&mut self) -> bool {
        while let Some(source) = self.turns.pop_front() {
            if self
                .scripts
                .get(&source)
                .is_some_and(|entry| entry.used.swap(false, Ordering::Relaxed))
            {
                self.turns.push_back(source);
                continue;
            }
            self.source_bytes -= source.len();
            self.scripts.remove(&source);
            return true;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(cache: &ScriptCache, source: &str) {
        cache.put(source, &Arc::new(AST::empty()));
    }

    #[test]
    fn same_source_returns_the_same_compiled_script() {
        let cache = ScriptCache::default();
        assert!(cache.get("1").is_none());
        let compiled = Arc::new(AST::empty());
        cache.put("1", &compiled);
        assert!(cache.get("1").is_some_and(|hit| Arc::ptr_eq(&hit, &compiled)));
        assert!(cache.get("2").is_none());
    }

    #[test]
    fn count_is_bounded_and_used_scripts_stay() {
        let cache = ScriptCache::bounded(4, 1_000_000);
        put(&cache, "used");
        for number in 0..100 {
            assert!(cache.get("used").is_some(), "evicted before {number}");
            put(&cache, &number.to_string());
        }
        assert!(cache.get("0").is_none());
        assert_eq!(cache.contents.read().expect("a lock").scripts.len(), 4);
    }

    #[test]
    fn total_source_size_is_bounded() {
        let cache = ScriptCache::bounded(1000, 400);
        for number in 0..50 {
            put(&cache, &format!("{number:90}"));
            put(&cache, &format!("{number:101}"));
        }
        let contents = cache.contents.read().expect("a lock");
        assert_eq!((contents.scripts.len(), contents.source_bytes), (4, 360));
        assert_eq!(contents.turns.len(), 4);
    }
}
