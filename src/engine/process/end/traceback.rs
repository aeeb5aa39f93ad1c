//! Extracts the exception and its line in the script from a Python traceback; the job's log has all of it.

use std::path::Path;

/// The first line of a traceback, and of an outermost group of exceptions.
const TRACEBACK: &str = "Traceback (most recent call last):";
const GROUP: &str = "  + Exception Group Traceback (most recent call last):";
/// The exceptions of a group that its error names.
const INNER_MAX: usize = 3;

/// Returns `ZeroDivisionError: division by zero (line 3, in half)`; `None` if the text does not end in a traceback.
pub(in crate::process) fn error_of(stderr_tail: &str, script: &Path) -> Option<String> {
    let lines: Vec<&str> = stderr_tail.lines().collect();
    let group = lines.iter().rposition(|line| *line == GROUP);
    // A traceback below it is of a later exception.
    if let Some(group) = group.filter(|at| !lines[*at..].contains(&TRACEBACK)) {
        return of_group(&lines[group + 1..], script);
    }
    of_traceback(&lines, script)
}

/// Returns the error of a group of exceptions: the group's own, with those in it.
fn of_group(lines: &[&str], script: &Path) -> Option<String> {
    let end = lines.iter().position(|line| line.starts_with("  +-+"))?;
    let own: Vec<&str> =
        lines[..end].iter().map(|line| line.strip_prefix("  | ").unwrap_or_default()).collect();
    let error = of_traceback(&own, script)?;
    let is_border = |line: &&str| line.starts_with("    +--") || line.starts_with("  +-+--");
    let inner = lines[end + 1..].split(is_border).filter_map(|part| {
        let part: Vec<&str> = part.iter().filter_map(|line| line.strip_prefix("    | ")).collect();
        let last_frame = part.iter().rposition(|line| line.starts_with("  File \""));
        let mut below = part[last_frame.map_or(0, |at| at + 1)..].iter();
        below
            .find(|line| !line.starts_with([' ', '\t']) && is_exception(line))
            .map(|line| line.trim_end())
    });
    let inner: Vec<&str> = inner.take(INNER_MAX).collect();
    Some(if inner.is_empty() { error } else { format!("{error}: {}", inner.join("; ")) })
}

fn of_traceback(lines: &[&str], script: &Path) -> Option<String> {
    let last_frame = lines.iter().rposition(|line| line.starts_with("  File \""))?;
    let below = &lines[last_frame + 1..];
    let exception = below.iter().find(|line| !line.starts_with([' ', '\t']))?.trim_end();
    if !is_exception(exception) {
        return None;
    }
    let of_script = format!("  File \"{}\", line ", script.display());
    let place = lines.iter().rev().find_map(|line| line.strip_prefix(&of_script));
    Some(match place.map(|place| place.trim_end().trim_end_matches(", in <module>")) {
        Some(place) => format!("{exception} (line {place})"),
        None => exception.to_owned(),
    })
}

/// Returns true for a dotted name alone or before a colon: `ValueError: bad`, `my.Error: `.
fn is_exception(line: &str) -> bool {
    let name = line.split(':').next().unwrap_or_default();
    let is_name = |part: &str| {
        !part.is_empty()
            && !part.starts_with(|first: char| first.is_ascii_digit())
            && part.chars().all(|c| c.is_alphanumeric() || "_<>".contains(c))
    };
    name.split('.').all(is_name)
}

#[cfg(test)]
mod tests {
    fn error(text: &str) -> Option<String> {
        super::error_of(text, "/run/job-1/script.py".as_ref())
    }

    #[test]
    fn the_error_is_the_exception_with_the_line_in_the_script() {
        let text = "noise\nTraceback (most recent call last):\n  \
            File \"/run/job-1/script.py\", line 9, in <module>\n    half(0)\n  \
            File \"/run/job-1/script.py\", line 3, in half\n    return json.loads(1 / n)\n  \
            File \"/usr/lib/python3.11/json/__init__.py\", line 2, in loads\n    x\n    ^\n\
            ZeroDivisionError: division by zero\n";
        let expected = "ZeroDivisionError: division by zero (line 3, in half)";
        assert_eq!(error(text).as_deref(), Some(expected));
    }

    #[test]
    fn syntax_error_and_error_at_module_level_have_only_the_line() {
        let syntax = "  File \"/run/job-1/script.py\", line 2\n    def f(\n         ^\n\
            SyntaxError: '(' was never closed\n";
        assert_eq!(error(syntax).as_deref(), Some("SyntaxError: '(' was never closed (line 2)"));
        let top = "Traceback (most recent call last):\n  \
            File \"/run/job-1/script.py\", line 1, in <module>\n    raise KeyError('a')\n\
            KeyError: 'a'\n";
        assert_eq!(error(top).as_deref(), Some("KeyError: 'a' (line 1)"));
    }

    #[test]
    fn the_last_of_chained_exceptions_is_the_error() {
        let text = "Traceback (most recent call last):\n  \
            File \"/run/job-1/script.py\", line 2, in <module>\n    1 / 0\n\
            ZeroDivisionError: division by zero\n\n\
            During handling of the above exception, another exception occurred:\n\n\
            Traceback (most recent call last):\n  \
            File \"/run/job-1/script.py\", line 4, in <module>\n    raise ValueError(\"x: y\")\n\
            ValueError: x: y\nand more of it\n";
        assert_eq!(error(text).as_deref(), Some("ValueError: x: y (line 4)"));
    }

    #[test]
    fn group_of_exceptions_has_its_line_and_the_first_exceptions_in_it() {
        let text = "noise\n  + Exception Group Traceback (most recent call last):\n  \
            |   File \"/run/job-1/script.py\", line 7, in <module>\n  \
            |     raise ExceptionGroup(\n  | ExceptionGroup: several (2 sub-exceptions)\n  \
            +-+---------------- 1 ----------------\n    \
            | Traceback (most recent call last):\n    \
            |   File \"/run/job-1/script.py\", line 2, in raised\n    \
            |     raise OSError(\"inner\")\n    | OSError: inner\n    \
            +---------------- 2 ----------------\n    \
            | ExceptionGroup: nested (1 sub-exception)\n    \
            +-+---------------- 1 ----------------\n      | ValueError: deep\n      \
            +------------------------------------\n";
        let expected = "ExceptionGroup: several (2 sub-exceptions) (line 7): \
            OSError: inner; ExceptionGroup: nested (1 sub-exception)";
        assert_eq!(error(text).as_deref(), Some(expected));
        let later = format!(
            "{text}\nDuring handling of the above exception, another exception \
            occurred:\n\nTraceback (most recent call last):\n  \
            File \"/run/job-1/script.py\", line 9, in <module>\n    x\nKeyError: 1\n"
        );
        assert_eq!(error(&later).as_deref(), Some("KeyError: 1 (line 9)"));
    }

    #[test]
    fn text_without_a_traceback_has_no_error() {
        for text in [
            "",
            "bad luck",
            "  File \"/run/job-1/script.py\", line 1\n",
            "  File \"x\", line 1\nthis is only: text\n",
        ] {
            assert_eq!(error(text), None, "{text}");
        }
    }
}
