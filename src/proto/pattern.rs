//! Patterns of names; each `*` stands for any text.

pub fn matches(pattern: &str, text: &str) -> bool {
    let Some((first, others)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = others.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// Returns whether the name of a variable matches one of the patterns, in capitals or not. This alone decides
/// which variables of a job hold secrets.
pub fn matches_name(patterns: &[String], name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    patterns.iter().any(|pattern| matches(&pattern.to_ascii_uppercase(), &name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, text) in [
            ("*", ""),
            ("*", "a"),
            ("*_TOKEN", "API_TOKEN"),
            ("a*b*c", "a--b--b--c"),
            ("a*b*c", "abc"),
            ("hero:work_queue:*", "hero:work_queue:a@b:1"),
            ("a**b", "ab"),
        ] {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [
            ("", "a"),
            ("*_TOKEN", "TOKEN"),
            ("*_TOKEN", "API_TOKENS"),
            ("a*b*c", "acb"),
            ("ab*ba", "aba"),
            ("hero:work_queue:*", "hero:work"),
        ] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }
}
