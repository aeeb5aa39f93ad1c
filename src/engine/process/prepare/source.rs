//! The text of a script, as its file has it.

use std::borrow::Cow;

use crate::engine::Failure;
use crate::proto::job::InvalidJob;

/// Returns the text for the file of a script, with this system's line ends for a shell. Fails if it contains a NUL.
pub(super) fn to_write(source: &str, is_of_shell: bool) -> Result<Cow<'_, str>, Failure> {
    if let Some(at) = source.find('\0') {
        let line = source[..at].matches('\n').count() + 1;
        return Err(illegal(&format!("has a NUL in line {line}")));
    }
    let source = without_mark(source);
    // A shell takes the carriage return for a part of the last word.
    let converts = is_of_shell && all_lines_end_with_cr_lf(source);
    Ok(if converts { source.replace("\r\n", "\n").into() } else { source.into() })
}

/// Returns a text without the byte order mark that some editors write, and few interpreters accept.
pub(super) fn without_mark(source: &str) -> &str {
    source.strip_prefix('\u{feff}').unwrap_or(source)
}

pub(super) fn illegal(reason: &str) -> Failure {
    Failure::Invalid { message: InvalidJob::new("script", reason.to_owned()).to_string() }
}

/// Returns true for the text of an editor on Windows. Where only some lines end so, the script means it.
fn all_lines_end_with_cr_lf(source: &str) -> bool {
    let lines = source.matches('\n').count();
    lines > 0 && source.matches("\r\n").count() == lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_script_of_a_shell_whose_lines_all_end_with_cr_lf_is_converted() {
        for (source, written) in [
            ("echo a\r\necho b\r\n", "echo a\necho b\n"),
            ("echo a\r\necho b", "echo a\necho b"),
            ("cat <<E\nGET / HTTP/1.0\r\n\r\nE\n", "cat <<E\nGET / HTTP/1.0\r\n\r\nE\n"),
            ("echo a\r", "echo a\r"),
            ("\u{feff}echo a\r\n", "echo a\n"),
        ] {
            assert_eq!(to_write(source, true).expect("legal"), written);
            assert_eq!(to_write(source, false).expect("legal"), without_mark(source));
        }
    }
}
