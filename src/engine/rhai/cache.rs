//! A bounded cache of compiled scripts by their source, shared by the threads of a script type.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use ::rhai::AST;

const SCRIPTS_MAX: usize = 512;
/// The size limit of all cached sources; compiled they are about ten times as large.
const SOURCE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Compiled scripts. A script that does not fit drops all others: the ones that still run are compiled again.
#[derive(Debug, Default)]
pub(super) struct ScriptCache {
    contents: RwLock<CacheContents>,
}

#[derive(Debug, Default)]
struct CacheContents {
    scripts: HashMap<Box<str>, Arc<AST>>,
    source_bytes: usize,
}

impl ScriptCache {
    pub(super) fn get(&self, source: &str) -> Option<Arc<AST>> {
        let contents = self.contents.read().unwrap_or_else(PoisonError::into_inner);
        contents.scripts.get(source).cloned()
    }

    /// Adds a script. A source larger than a quarter of the cache is not added.
    pub(super) fn put(&self, source: &str, compiled: &Arc<AST>) {
        if source.len() > SOURCE_BYTES_MAX / 4 {
            return;
        }
        let mut contents = self.contents.write().unwrap_or_else(PoisonError::into_inner);
        let source_bytes = contents.source_bytes + source.len();
        if contents.scripts.len() >= SCRIPTS_MAX || source_bytes > SOURCE_BYTES_MAX {
            *contents = CacheContents::default();
        }
        if contents.scripts.insert(source.into(), compiled.clone()).is_none() {
            contents.source_bytes += source.len();
        }
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
    fn number_and_total_source_size_are_bounded() {
        const WIDTH: usize = SOURCE_BYTES_MAX / 5;
        let cache = ScriptCache::default();
        for number in 0..2 * SCRIPTS_MAX {
            put(&cache, &number.to_string());
            assert!(cache.get(&number.to_string()).is_some());
            assert!(cache.contents.read().expect("a lock").scripts.len() <= SCRIPTS_MAX);
        }
        let cache = ScriptCache::default();
        for number in 0..12 {
            let source = format!("{}{number:2}", " ".repeat(WIDTH - 2));
            put(&cache, &source);
            put(&cache, &source);
            put(&cache, &" ".repeat(SOURCE_BYTES_MAX / 4 + 1));
            let contents = cache.contents.read().expect("a lock");
            assert_eq!(contents.source_bytes, contents.scripts.len() * WIDTH);
            assert!(contents.source_bytes <= SOURCE_BYTES_MAX);
        }
    }
}
