//! Patterns of routing keys, as topic exchanges compare them: words joined by dots, where `*` stands for
//! exactly one word and `#` for any number of them, none included.

/// The maximum number of words of a key: a key has at most 255 bytes.
const WORDS_MAX: usize = 256;

/// Returns true if a pattern takes a routing key.
pub fn takes(pattern: &str, key: &str) -> bool {
    // The empty key has no words at all, not one empty word.
    let words: Vec<&str> = key.split('.').take(WORDS_MAX).filter(|_| !key.is_empty()).collect();
    // Entry N: the pattern so far takes the first N words.
    let mut taken = vec![false; words.len() + 1];
    taken[0] = true;
    for part in pattern.split('.') {
        taken = match part {
            "#" => {
                let mut before = false;
                let any = taken.iter().map(|one| {
                    before |= one;
                    before
                });
                any.collect()
            }
            part => {
                let next = |(at, word): (usize, &&str)| taken[at] && (part == "*" || part == *word);
                std::iter::once(false).chain(words.iter().enumerate().map(next)).collect()
            }
        };
    }
    pattern == key || taken.last().copied().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_one_word_and_a_hash_any_number() {
        for (pattern, key) in [
            ("rec.read", "rec.read"),
            ("rec.*", "rec.read"),
            ("*.read", "rel.read"),
            ("#", "a"),
            ("#", "a.b.c"),
            ("#", ""),
            ("#.#", ""),
            ("rec.#", "rec"),
            ("rec.#", "rec.a.b"),
            ("#.read", "read"),
            ("#.read", "a.b.read"),
            ("a.#.b", "a.b"),
            ("a.#.b", "a.x.y.b"),
            ("a.#.b.#", "a.b.b.c"),
            ("*.#", "a"),
            ("#.*", "a.b"),
        ] {
            assert!(takes(pattern, key), "{pattern} {key}");
        }
        for (pattern, key) in [
            ("rec.*", "rec"),
            ("rec.*", "rec.a.b"),
            ("rec.read", "rec.read.retry"),
            ("*", "a.b"),
            ("*.#", ""),
            ("a.#.b", "a.c"),
            ("rec", "Rec"),
            ("#.a", "a.b"),
        ] {
            assert!(!takes(pattern, key), "{pattern} {key}");
        }
    }

    #[test]
    fn a_long_pattern_takes_no_long_time() {
        let pattern = vec!["#"; 100].join(".") + ".x";
        let key = vec!["a"; 120].join(".");
        assert!(!takes(&pattern, &key));
    }
}
