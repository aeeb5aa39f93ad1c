//! Recognizes the error in a line of standard error, and the use of a file that it was about.

use crate::sandbox::FileUse;

/// The maximum number of lines of a traceback that are read, from its end.
const FRAMES_MAX: usize = 40;

/// An error that a line reports, with the number that the kernel has for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SaidError {
    /// EACCES.
    Denied,
    /// EPERM.
    NotPermitted,
    /// ENOSYS.
    NoSuchCall,
    /// A name of a machine could not be resolved.
    NoName,
    /// A connection failed for a reason that is not said.
    NoConnection,
}

impl SaidError {
    pub(super) fn of(lower: &str) -> Option<Self> {
        const NO_NAME: [&str; 7] = [
            "name resolution",
            "resolve host",
            "unable to resolve",
            "could not translate host name",
            "name or service not known",
            "nodename nor servname",
            "failed to lookup address",
        ];
        let said = |texts: &[&str]| texts.iter().any(|text| lower.contains(text));
        if said(&["docker daemon", "docker api"]) {
            // Which says so in several ways; its socket is refused by its family.
            Some(Self::NotPermitted)
        } else if said(&NO_NAME) || has_word(lower, "eai_again") || has_word(lower, "enotfound") {
            Some(Self::NoName)
        } else if said(&["permission denied", "errno 13]"]) || has_word(lower, "eacces") {
            Some(Self::Denied)
        } else if said(&["operation not permitted", "errno 1]"]) || has_word(lower, "eperm") {
            Some(Self::NotPermitted)
        } else if said(&["function not implemented", "errno 38]"]) || has_word(lower, "enosys") {
            Some(Self::NoSuchCall)
        } else if said(&["failed to connect to", "couldn't connect to server"]) {
            Some(Self::NoConnection)
        } else {
            None
        }
    }
}

/// Returns true if a text has a word that is no part of a longer one.
pub(super) fn has_word(text: &str, word: &str) -> bool {
    let joins = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        !text[..at].chars().next_back().is_some_and(joins)
            && !text[at + word.len()..].chars().next().is_some_and(joins)
    })
}

pub(super) fn frames_before<'l>(lines: &'l [&'l str], at: usize) -> &'l [&'l str] {
    let above = &lines[at.saturating_sub(FRAMES_MAX)..at];
    let begin = above.iter().rposition(|line| !line.starts_with("  ")).map_or(0, |at| at + 1);
    &above[begin..]
}

/// Returns the use of a file that failed, if a line or its traceback says so.
pub(super) fn use_said(lower: &str, frames: &[&str]) -> Option<FileUse> {
    const PROGRAMS: [&str; 12] =
        ["cat", "head", "tail", "grep", "ls", "find", "wc", "sort", "diff", "less", "awk", "du"];
    const WORDS: [(FileUse, &[&str]); 4] = [
        (FileUse::Execute, &["exec", "execve", "spawn", "execute"]),
        (
            FileUse::Change,
            &[
                "remove", "unlink", "mkdir", "rmdir", "rename", "move", "create", "symlink",
                "link", "delete", "mkstemp",
            ],
        ),
        (FileUse::Write, &["write", "writing", "touch", "append", "truncate", "output"]),
        (FileUse::Read, &["reading", "read", "scandir", "opendir", "directory"]),
    ];
    if let Some((program, _)) = lower.split_once(": ")
        && PROGRAMS.contains(&program)
    {
        return Some(FileUse::Read);
    }
    let words = without_paths(lower);
    let said = WORDS.iter().find(|(_, said)| said.iter().any(|word| has_word(&words, word)));
    said.map(|(wanted, _)| *wanted).or_else(|| frames.iter().rev().find_map(|frame| of_code(frame)))
}

/// Returns true for the code in a traceback, false for the line with its place.
pub(super) fn is_code(frame: &str) -> bool {
    !frame.trim_start().starts_with("File \"")
}

/// Returns a line without the words that have a slash: the name of a file says nothing of its use.
fn without_paths(line: &str) -> String {
    line.split(' ').filter(|word| !word.contains('/')).collect::<Vec<_>>().join(" ")
}

/// Returns the use of a file in a line of Python's code.
fn of_code(code: &str) -> Option<FileUse> {
    const CALLS: [(FileUse, &[&str]); 4] = [
        (FileUse::Execute, &["_execute_child", "os.execv"]),
        (
            FileUse::Change,
            &[
                "mkdir", "makedirs", "unlink", "remove", "rename", "replace", "rmdir", "rmtree",
                "symlink",
            ],
        ),
        (FileUse::Write, &["write_text", "write_bytes", "touch", "to_csv"]),
        (FileUse::Read, &["listdir", "scandir", "read_text", "read_bytes", "read_csv"]),
    ];
    if !is_code(code) {
        return None;
    }
    let calls = |name: &&str| has_word(code, name);
    if let Some((wanted, _)) = CALLS.iter().find(|(_, names)| names.iter().any(calls)) {
        return Some(*wanted);
    }
    let (before, call) = code.rsplit_once("open(")?;
    // `os.open` has flags.
    let arguments = call.split(')').next().filter(|_| !before.ends_with("os."))?;
    let Some((_, rest)) = arguments.split_once(',') else { return Some(FileUse::Read) };
    let mode = rest.trim_start().trim_start_matches("mode=");
    let mode = mode.strip_prefix(['\'', '"'])?.split(['\'', '"']).next()?;
    Some(if mode.contains(['w', 'a', 'x', '+']) { FileUse::Write } else { FileUse::Read })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_of_a_line_is_known_by_its_usual_words() {
        for (line, error) in [
            ("permissionerror: [errno 13] permission denied: '/x'", Some(SaidError::Denied)),
            ("error: eacces: permission denied, open '/x'", Some(SaidError::Denied)),
            ("bash: socket: operation not permitted", Some(SaidError::NotPermitted)),
            ("error: connect eperm 127.0.0.1:80", Some(SaidError::NotPermitted)),
            ("tail: inotify cannot be used: function not implemented", Some(SaidError::NoSuchCall)),
            ("curl: (6) could not resolve host: a", Some(SaidError::NoName)),
            ("curl: (7) failed to connect to 127.0.0.1 port 80", Some(SaidError::NoConnection)),
            ("filenotfounderror: [errno 2] no such file or directory: '/x'", None),
            ("a supermarket", None),
            ("", None),
        ] {
            assert_eq!(SaidError::of(line), error, "{line}");
        }
    }

    #[test]
    fn use_of_a_file_is_known_by_the_program_or_the_code() {
        let of = |line: &str, code: &str| use_said(line, &["  File \"x.py\", line 1", code]);
        for (line, code, wanted) in [
            ("cat: /srv/x: permission denied", "", Some(FileUse::Read)),
            ("ls: cannot open directory '/srv': permission denied", "", Some(FileUse::Read)),
            (
                "mkdir: cannot create directory '/srv/x': permission denied",
                "",
                Some(FileUse::Change),
            ),
            ("/usr/bin/ld: cannot open output file /srv/write", "", Some(FileUse::Write)),
            ("error: spawn /srv/x eacces", "", Some(FileUse::Execute)),
            ("error: eacces: permission denied, open '/srv/write/x'", "", None),
            ("denied: '/srv/x'", "    open('/srv/x')", Some(FileUse::Read)),
            ("denied: '/srv/x'", "    open('/srv/x', 'w')", Some(FileUse::Write)),
            ("denied: '/srv/x'", "    with open(path, \"r+b\") as f:", Some(FileUse::Write)),
            ("denied: '/srv/x'", "    open('/srv/x', 'rb')", Some(FileUse::Read)),
            ("denied: '/srv/x'", "    open(path, mode)", None),
            ("denied: '/srv/x'", "    fd = _os.open(file, flags, 0o600)", None),
            ("denied: '/srv/x'", "    os.unlink(path)", Some(FileUse::Change)),
        ] {
            assert_eq!(of(line, code), wanted, "{line} {code}");
        }
    }

    #[test]
    fn traceback_is_what_is_indented_above() {
        let lines = ["  old", "Traceback:", "  File \"a\"", "    code", "Error: x"];
        assert_eq!(frames_before(&lines, 4), ["  File \"a\"", "    code"]);
        assert_eq!(frames_before(&lines, 1), ["  old"]);
        assert!(frames_before(&lines, 0).is_empty());
    }
}
