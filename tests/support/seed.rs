//! Sizes of tests, and seeds of random ones. A size is a tenth, unless `FULL=1`. Seeds are fixed, so that a failure
//! repeats; `SEED=NUMBER` sets one, and `SEED=random` draws one. `make chaos` has full sizes and random seeds.

/// Returns a number from the environment.
pub(crate) fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

/// Returns the size of a test: the full one with `FULL=1`, else a tenth.
pub(crate) fn size(full: usize) -> usize {
    if number("FULL") == Some(1) { full } else { full / 10 }
}

/// Returns the seed of a test.
pub(crate) fn seed() -> u64 {
    seeds(1)[0]
}

/// Returns the seeds of a test that runs several times; only one if `SEED` is a number.
pub(crate) fn seeds(count: u64) -> Vec<u64> {
    match std::env::var("SEED").as_deref() {
        Ok("random") => (0..count).map(|_| fastrand::u64(..)).collect(),
        Ok(_) => number("SEED").into_iter().collect(),
        Err(_) => (1..=count).collect(),
    }
}
