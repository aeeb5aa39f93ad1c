//! Requirements of tests that not every machine fulfils: a test without one is skipped and counted.

use std::fs::OpenOptions;
use std::io::Write;

/// Names, separated by commas, of requirements whose absence fails a test instead of skipping it.
const REQUIRED: &str = "HERO_REQUIRE";
/// The file that collects one line per skipped test, if set.
const SKIPPED_LOG: &str = "HERO_SKIPPED_LOG";

/// Returns `found()`. If it is false, the running test has to return: it is reported as skipped,
/// in the line `skipped: TEST: no REQUIREMENT`, on standard error and in `HERO_SKIPPED_LOG`.
///
/// # Panics
/// If the requirement is absent and `HERO_REQUIRE` contains its name.
pub(crate) fn needs(requirement: &str, found: impl FnOnce() -> bool) -> bool {
    if found() {
        return true;
    }
    let required = std::env::var(REQUIRED).unwrap_or_default();
    let is_required = required.split(',').any(|name| name.trim() == requirement);
    assert!(!is_required, "{requirement} is missing, and {REQUIRED}={required} demands it");
    let thread = std::thread::current();
    let line = format!("skipped: {}: no {requirement}\n", thread.name().unwrap_or("unnamed test"));
    // The macros would write to the captured output of the test.
    let _ = std::io::stderr().write_all(line.as_bytes());
    if let Some(file) = std::env::var_os(SKIPPED_LOG) {
        let file = OpenOptions::new().create(true).append(true).open(file);
        let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
        written.expect("the file in HERO_SKIPPED_LOG is writable");
    }
    false
}
