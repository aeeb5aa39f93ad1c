//! Compiled scripts by their content, shared by the threads of a script type and bounded.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use ::rhai::AST;

/// The most scripts kept.
const SCRIPTS_MAX: usize = 512;
/// The most source text kept; what is compiled from it is some ten times as large.
const SOURCE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Keeps what was used lately: a queue in which a script that was used since it was last at the
/// front gets another turn. A hit changes nothing but that mark, so threads only share a lock.
#[derive(Debug)]
pub(super) struct Cache {
    kept: RwLock<Kept>,
    scripts_max: usize,
    source_bytes_max: usize,
}

#[derive(Debug, Default)]
struct Kept {
    scripts: HashMap<Arc<str>, Entry>,
    turns: VecDeque<Arc<str>>,
    source_bytes: usize,
}

#[derive(Debug)]
struct Entry {
    compiled: Arc<AST>,
    used: AtomicBool,
}

impl Default for Cache {
    fn default() -> Self {
        Self::bounded(SCRIPTS_MAX, SOURCE_BYTES_MAX)
    }
}

impl Cache {
    fn bounded(scripts_max: usize, source_bytes_max: usize) -> Self {
        Self { kept: RwLock::default(), scripts_max, source_bytes_max }
    }

    /// What was compiled from this very text, if it is still here.
    pub(super) fn get(&self, source: &str) -> Option<Arc<AST>> {
        let kept = self.kept.read().unwrap_or_else(PoisonError::into_inner);
        let entry = kept.scripts.get(source)?;
        // Threads that run the same script would else write to one cache line in turn.
        if !entry.used.load(Ordering::Relaxed) {
            entry.used.store(true, Ordering::Relaxed);
        }
        Some(entry.compiled.clone())
    }

    /// Keeps `compiled`, at the cost of what was not used lately. One script never takes more
    /// than a quarter of the room.
    pub(super) fn put(&self, source: &str, compiled: &Arc<AST>) {
        if source.len() > self.source_bytes_max / 4 {
            return;
        }
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        if kept.scripts.contains_key(source) {
            return;
        }
        while kept.scripts.len() >= self.scripts_max
            || kept.source_bytes + source.len() > self.source_bytes_max
        {
            if !kept.evict() {
                return;
            }
        }
        let key: Arc<str> = source.into();
        kept.source_bytes += source.len();
        kept.turns.push_back(key.clone());
        let entry = Entry { compiled: compiled.clone(), used: AtomicBool::new(false) };
        kept.scripts.insert(key, entry);
    }
}

impl Kept {
    /// Drops the first script in turn that was not used; false if there is none at all. It ends,
    /// as every script it passes over loses its mark.
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

    fn put(cache: &Cache, source: &str) {
        cache.put(source, &Arc::new(AST::empty()));
    }

    #[test]
    fn the_same_text_is_the_same_compiled_script() {
        let cache = Cache::default();
        assert!(cache.get("1").is_none());
        let compiled = Arc::new(AST::empty());
        cache.put("1", &compiled);
        assert!(cache.get("1").is_some_and(|hit| Arc::ptr_eq(&hit, &compiled)));
        assert!(cache.get("2").is_none());
    }

    #[test]
    fn the_count_is_bounded_and_what_is_used_stays() {
        let cache = Cache::bounded(4, 1_000_000);
        put(&cache, "used");
        for number in 0..100 {
            assert!(cache.get("used").is_some(), "evicted before {number}");
            put(&cache, &number.to_string());
        }
        assert!(cache.get("0").is_none());
        assert_eq!(cache.kept.read().expect("a lock").scripts.len(), 4);
    }

    #[test]
    fn the_source_text_is_bounded_however_few_the_scripts() {
        let cache = Cache::bounded(1000, 400);
        for number in 0..50 {
            put(&cache, &format!("{number:90}"));
            put(&cache, &format!("{number:101}"));
        }
        let kept = cache.kept.read().expect("a lock");
        assert_eq!((kept.scripts.len(), kept.source_bytes), (4, 360));
        assert_eq!(kept.turns.len(), 4);
    }
}
