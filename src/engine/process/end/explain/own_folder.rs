//! Tells a script that failed because a file was missing that its job has a working directory and a `HOME` of its own:
//! by hand the file may have been in the folder of the submission, or in the home of the user.

use std::path::Path;

use super::paths::paths_in;
use crate::proto::text::shown;

const LINES_MAX: usize = 100;
/// The longest line that is read, and the longest name, in bytes.
const LINE_BYTES_MAX: usize = 8 * 1024;
const NAME_BYTES_MAX: usize = 512;

/// Returns the note about the file that a failed script missed last, if it is one below `home`, the working
/// directory of the script unless `has_other_folder`.
pub(in crate::process) fn missing_of_own_folder(
    stderr: &str,
    home: &Path,
    has_other_folder: bool,
) -> Option<String> {
    let lines = stderr.lines().rev().take(LINES_MAX);
    let mut missing = lines.filter(|line| line.len() <= LINE_BYTES_MAX && says_missing(line));
    let name = missing.find_map(|line| below_home(line, home).or_else(|| relative(line)))?;
    let is_elsewhere = has_other_folder && !name.starts_with("~/");
    let is_there = home.join(name.trim_start_matches("~/")).exists();
    if is_elsewhere || is_there || name.len() > NAME_BYTES_MAX {
        return None;
    }
    Some(format!(
        "note: a job has a HOME and a working directory of its own, with nothing but its script at first, so not \
         with {}; --input NAME=FILE gives it files, in HERO_INPUT_DIR",
        shown(&name)
    ))
}

fn says_missing(line: &str) -> bool {
    let lower = line.to_ascii_lowercase();
    lower.contains("no such file or directory") || lower.contains("enoent")
}

/// Returns the first path of a line that is below the home, as `~/NAME`.
fn below_home(line: &str, home: &Path) -> Option<String> {
    let below = |path: &&str| {
        let rest = Path::new(path).strip_prefix(home).ok()?.to_str()?;
        (!rest.is_empty()).then(|| format!("~/{rest}"))
    };
    paths_in(line).iter().flatten().find_map(below)
}

fn relative(line: &str) -> Option<String> {
    let at = line.to_ascii_lowercase().find("no such file or directory")?;
    let (before, after) = (&line[..at], &line[at..]);
    // Python and node name it after the error, programs before it, most of them in quotes.
    let name = quoted(after).or_else(|| quoted(before)).or_else(|| {
        let words = before.trim_end().strip_suffix(':')?;
        words.rsplit(": ").next().filter(|name| !name.contains(' '))
    })?;
    let is_name = !name.is_empty() && !name.starts_with(['/', '-', '~']) && !name.contains("://");
    is_name.then(|| name.trim_start_matches("./").to_owned()).filter(|name| !name.is_empty())
}

fn quoted(text: &str) -> Option<&str> {
    [('\'', '\''), ('"', '"'), ('‘', '’')].into_iter().find_map(|(open, close)| {
        let end = text.rfind(close)?;
        let begin = text[..end].rfind(open)?;
        Some(&text[begin + open.len_utf8()..end])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_of_the_folder_of_submission_or_of_home_is_named() {
        for (line, name) in [
            ("FileNotFoundError: [Errno 2] No such file or directory: 'data.csv'", "data.csv"),
            ("cat: data.csv: No such file or directory", "data.csv"),
            ("ls: cannot access 'my data': No such file or directory", "my data"),
            ("head: cannot open ‘in/x’ for reading: No such file or directory", "in/x"),
            ("script.sh: line 3: ./tool.sh: No such file or directory", "tool.sh"),
            ("Error: ENOENT: no such file or directory, open 'config.json'", "config.json"),
            ("cat: /run/job-1/home/.aws/config: No such file or directory", "~/.aws/config"),
            ("Error: ENOENT: no such file or directory, open '/run/job-1/home/x'", "~/x"),
        ] {
            let home = Path::new("/run/job-1/home");
            let said = missing_of_own_folder(line, home, false).unwrap_or_default();
            assert!(said.contains(&format!("so not with {name};")), "{line}: {said}");
        }
    }

    #[test]
    fn other_missing_files_are_not() {
        let home = tempfile::tempdir().expect("a folder");
        std::fs::write(home.path().join("there"), "").expect("written");
        for line in [
            "cat: /srv/x: No such file or directory",
            "cat: there: No such file or directory",
            "No such file or directory",
            "open failed: No such file or directory",
            "curl: (7) Failed to connect",
            "git: fatal: 'https://x/y': No such file or directory",
            "",
        ] {
            assert_eq!(missing_of_own_folder(line, home.path(), false), None, "{line}");
        }
        let line = "cat: x: No such file or directory";
        assert_eq!(missing_of_own_folder(line, home.path(), true), None, "in its own cwd");
        assert!(missing_of_own_folder(line, home.path(), false).is_some());
    }
}
