//! The meaning of a job's error: its kind, and if the job was stopped.

use std::sync::OnceLock;

use regex::Regex;

/// The longest kind, in characters.
const CHARS_MAX: usize = 200;
/// Patterns of parts that differ, and the text that stands for each, in the order in which they are replaced.
const VARYING: [(&str, &str); 4] = [
    (r#""[^"]*"|`[^`]*`|\B'[^']*'"#, "“…”"),
    (
        r"(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b|\b(0x)?[0-9a-f]{12,}\b",
        "ID",
    ),
    (r"(^|[\s=(:,])(~|\.{1,2})?/[^\s:,;)]+", "${1}PATH"),
    (r"[0-9]+([.:][0-9]+)*", "N"),
];

/// The errors of jobs that were stopped.
pub const STOP_ERRORS: [&str; 2] = ["stopped", "stopped_by_request"];

/// Returns the kind of an error: its first line, with numbers, ids, paths and quoted texts replaced.
pub fn error_kind(error: &str) -> String {
    static PATTERNS: OnceLock<Vec<(Regex, &str)>> = OnceLock::new();
    let patterns = PATTERNS.get_or_init(|| {
        let compiled = VARYING.iter().map(|(text, with)| Some((Regex::new(text).ok()?, *with)));
        compiled.flatten().collect()
    });
    let line = error.trim_start().lines().next().unwrap_or_default().trim_end();
    let mut kind: String = line.chars().take(CHARS_MAX).collect();
    for (pattern, with) in patterns {
        kind = pattern.replace_all(&kind, *with).into_owned();
    }
    kind
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_that_differ_in_numbers_ids_paths_and_quoted_texts_are_of_one_kind() {
        for (error, kind) in [
            ("timeout", "timeout"),
            ("exit code 3\ntrace", "exit code N"),
            ("no such file: /var/x/a.txt: 2", "no such file: PATH: N"),
            ("cannot open 'a b' for \"c\"", "cannot open “…” for “…”"),
            ("job 7f9c2ba4-e88f-4cc3-a4b0-55d1c0e2a9f7 failed", "job ID failed"),
            ("connect 10.0.0.7:6379 refused after 1.5 s", "connect N refused after N s"),
            ("can't read, won't try", "can't read, won't try"),
            ("crashed: 3 actors died running it", "crashed: N actors died running it"),
        ] {
            assert_eq!(error_kind(error), kind, "{error}");
        }
        assert_eq!(VARYING.iter().filter(|(text, _)| Regex::new(text).is_err()).count(), 0);
    }
}
