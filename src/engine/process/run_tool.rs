//! Runs the tools that prepare a script: compilers, checks, installers.

use std::path::Path;

use regex::Regex;

use super::child::{self, ChildReport, Ended, Spec, Watch};
use super::end::describe;
use super::prepare::{Tool, ToolResult, Until, basic_environment};
use super::watch::without_noise;
use crate::engine::{Failure, Log};

const OUTPUT_BYTES_MAX: u64 = 64 * 1024;
const ERROR_CHARS_MAX: usize = 2 * 1024;

pub(super) fn run_tool(
    tool: Tool<'_>,
    until: Until<'_>,
    log: Option<&dyn Log>,
) -> Result<ToolResult, Failure> {
    let mut env = basic_environment(tool.folder);
    env.extend(tool.env);
    let spec = Spec {
        program: tool.program,
        args: tool.args,
        env,
        cwd: tool.folder,
        home: tool.folder,
        sandbox: tool.sandbox,
        stdin: None,
        read: &tool.read,
    };
    let limits = (until.deadline, tool.kill_grace);
    let watch = Watch::of_tool(until.cancel, limits, OUTPUT_BYTES_MAX, log);
    let report = child::run(&spec, &watch, None).map_err(|error| {
        Failure::before_start(format!("cannot run {}", spec.program.display()), &error)
    })?;
    match report.ended {
        Ended::Timeout => Err(Failure::Timeout),
        Ended::Stopped(reason) => Err(Failure::Stopped(reason)),
        Ended::Itself if report.status.success() => {
            Ok(Ok(String::from_utf8_lossy(&report.written.stdout).into_owned()))
        }
        Ended::Itself | Ended::Exceeded(_) => Ok(Err(messages(&report, tool.folder))),
    }
}

/// Returns the messages of a failed tool, with the files in its folder by their names alone.
fn messages(report: &ChildReport, folder: &Path) -> String {
    let of = |bytes: &[u8]| without_noise(String::from_utf8_lossy(bytes).trim());
    let text = match (of(&report.written.stderr), of(&report.written.stdout)) {
        (stderr, stdout) if stderr.is_empty() => stdout,
        (stderr, _) => stderr,
    };
    let text = text.replace(&format!("{}/", folder.display()), "");
    let text = errors_first(&text);
    if text.is_empty() {
        return describe(report.status);
    }
    match text.char_indices().nth(ERROR_CHARS_MAX) {
        Some((end, _)) => format!("{} …", &text[..end]),
        None => text,
    }
}

/// Puts the errors of a compiler before its warnings, so that these do not hide them. A message is a line
/// `FILE:LINE:COLUMN: error: TEXT`, with the lines before it that name its function, and those after it.
fn errors_first(text: &str) -> String {
    const FORM: &str = r"^[^:]*:[0-9]+:[^:]*:\s*(?:((?:fatal )?error)|warning|notice):";
    let Ok(form) = Regex::new(FORM) else { return text.to_owned() };
    let mut messages: Vec<(bool, Vec<&str>)> = Vec::new();
    let mut function = Vec::new();
    for line in text.lines() {
        if let Some(found) = form.captures(line) {
            function.push(line);
            messages.push((found.get(1).is_some(), std::mem::take(&mut function)));
        } else if line.ends_with(':') && !line.starts_with(' ') {
            function.push(line);
        } else if let Some((_, message)) = messages.last_mut() {
            message.append(&mut function);
            message.push(line);
        } else {
            function.push(line);
        }
    }
    // Before the first message, or after the last.
    let (errors, others): (Vec<_>, Vec<_>) = messages.into_iter().partition(|(is, _)| *is);
    let messages = errors.into_iter().chain(others).flat_map(|(_, lines)| lines);
    messages.chain(function).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::errors_first;

    #[test]
    fn errors_of_a_compiler_come_before_its_warnings() {
        let text = "script.v:1:8: warning: module 'os' is imported but never used\n    \
            1 | import os\n      |        ~~\nscript.v:3:2: error: undefined ident: `x`\n    \
            3 |     x\n      |     ^";
        let (warning, error) = text.split_at(text.find("script.v:3").expect("there"));
        assert_eq!(errors_first(text), format!("{error}\n{}", warning.trim_end()));
        let of_c = "script.c: In function 'f':\nscript.c:1:5: warning: a\n    1 | a\n\
            script.c: In function 'main':\nscript.c:2:5: error: b\n    2 | b\n\
            script.c:2:5: note: each\n";
        assert_eq!(
            errors_first(of_c),
            "script.c: In function 'main':\nscript.c:2:5: error: b\n    2 | b\n\
             script.c:2:5: note: each\nscript.c: In function 'f':\nscript.c:1:5: warning: a\n    1 | a"
        );
    }

    #[test]
    fn messages_in_another_form_stay_as_they_are() {
        for text in ["", "no such thing", "Error: 12:00: bad\nmore:\n", "a\n\nb:1: c"] {
            assert_eq!(errors_first(text), text.trim_end_matches('\n'), "{text}");
        }
    }
}
