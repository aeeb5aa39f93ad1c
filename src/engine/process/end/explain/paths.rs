//! Finds the absolute paths that a line of standard error names.

const PATHS_MAX: usize = 8;
const PATH_BYTES_MAX: usize = 512;
const QUOTES: [(char, char); 5] = [('\'', '\''), ('"', '"'), ('`', '\''), ('‘', '’'), ('“', '”')];

/// Returns each path as the line may mean it, most likely first: an unquoted one may have spaces in it.
pub(super) fn paths_in(line: &str) -> Vec<Vec<&str>> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = line[from..].find('/').map(|at| from + at) {
        if found.len() == PATHS_MAX {
            break;
        }
        let before = line[..at].chars().next_back();
        let rest = &line[at..];
        let quoted = before.and_then(|quote| QUOTES.iter().find(|(open, _)| *open == quote));
        let variants = match (quoted.and_then(|(_, close)| rest.find(*close)), before) {
            (Some(end), _) => vec![&rest[..end]],
            (None, Some(c)) if c.is_alphanumeric() || "/:._-~*}".contains(c) => {
                // A part of a relative path or an address.
                from = at + 1 + rest[1..].find([' ', '\'', '"']).unwrap_or(rest.len() - 1);
                continue;
            }
            (None, _) => unquoted(rest),
        };
        let longest = variants.iter().map(|path| path.len()).max().unwrap_or_default();
        // The shortest variant is passed; the longer may contain another path.
        let passed = variants.iter().map(|path| path.len()).min().unwrap_or_default();
        from = at + passed.max(1);
        if (2..=PATH_BYTES_MAX).contains(&longest) || longest == 1 && quoted.is_some() {
            found.push(variants);
        }
    }
    found
}

/// Returns the path at the start of a text: up to what usually follows one, or up to the first space.
fn unquoted(text: &str) -> Vec<&str> {
    const ENDS: [&str; 7] = [": ", " (", "'", "\"", ", ", " -> ", ")"];
    let to = |end: usize| text[..end].trim_end_matches(['.', ',', ':', ';', ')']);
    let marked = ENDS.iter().filter_map(|end| text.find(end)).min();
    let short =
        to(text.find(char::is_whitespace).unwrap_or(text.len()).min(marked.unwrap_or(text.len())));
    match marked.map(to) {
        Some(long) if long != short => vec![long, short],
        _ => vec![short],
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn first(line: &str) -> Vec<&str> {
        paths_in(line).into_iter().map(|variants| variants[0]).collect()
    }

    #[test]
    fn path_is_found_in_the_messages_of_interpreters_and_programs() {
        for (line, path) in [
            ("PermissionError: [Errno 13] Permission denied: '/srv/a b/x.csv'", "/srv/a b/x.csv"),
            ("cat: /srv/x.csv: Permission denied", "/srv/x.csv"),
            ("cat: '/srv/a b': Permission denied", "/srv/a b"),
            ("find: ‘/root’: Permission denied", "/root"),
            ("script.sh: line 3: /srv/my file: Permission denied", "/srv/my file"),
            ("Error: EACCES: permission denied, open '/srv/x'", "/srv/x"),
            ("Cannot open /srv/x: Permission denied at -e line 1.", "/srv/x"),
            ("in `read': Permission denied @ rb_sysopen - /srv/x (Errno::EACCES)", "/srv/x"),
            ("open /srv/x: permission denied", "/srv/x"),
            ("fopen(/srv/x): Failed to open stream: Permission denied", "/srv/x"),
            ("java.io.FileNotFoundException: /srv/x (Permission denied)", "/srv/x"),
            ("wget: Cannot read /etc/wgetrc (Permission denied).", "/etc/wgetrc"),
            ("Error: spawn /srv/x EACCES", "/srv/x"),
        ] {
            let all: Vec<&str> = paths_in(line).concat();
            assert!(all.contains(&path), "{line}: {all:?}");
        }
        assert_eq!(first("Permission denied: '/a/b' -> '/c'"), ["/a/b", "/c"]);
        for none in ["", "no path", "https://example.com/x", "a/b and ./c/d", "1 / 2"] {
            assert_eq!(paths_in(none).concat(), [] as [&str; 0], "{none}");
        }
    }

    proptest! {
        #[test]
        fn any_line_has_a_bounded_number_of_paths(line in "[/ '\"a‘’:(.)é\\x00-\\x1f]{0,400}") {
            let found = paths_in(&line);
            prop_assert!(found.len() <= PATHS_MAX);
            for path in found.concat() {
                prop_assert!(path.starts_with('/') && path.len() <= PATH_BYTES_MAX);
            }
        }
    }
}
