//! Finds the line of a failed program's standard error with the reason, between context such as a stack or warnings.

use std::path::Path;

use regex::Regex;

use super::traceback::error_of;

/// Lines that say nothing of their own: notes of node and rustc, and of make about the command that failed.
const NOTES: [&str; 9] = [
    "Node.js v",
    "(Use `node --trace-",
    "note: ",
    "For more information about this error",
    "error: aborting due to ",
    "exit status ",
    "goroutine ",
    "make: ",
    "compilation terminated",
];
/// The beginnings of lines of a stack: of node and Java, of Ruby, of PHP.
const FRAMES: [&str; 3] = ["at ", "from ", "#"];
/// The maximum number of lines between an error of node and its stack.
const MESSAGE_LINES_MAX: usize = 20;

/// Returns the line with the reason why a program failed, without the space around it; `None` if there is none.
pub(super) fn reason_of(stderr_tail: &str) -> Option<String> {
    let lines: Vec<&str> = stderr_tail.lines().map(str::trim_end).collect();
    let of_form = error_of(stderr_tail, Path::new(""))
        .or_else(|| of_compiler(stderr_tail))
        .or_else(|| of_panic(&lines))
        .or_else(|| of_stack(&lines));
    of_form.or_else(|| {
        let says = |line: &&&str| {
            let text = line.trim_start();
            let is_frame =
                text.len() < line.len() && FRAMES.iter().any(|frame| text.starts_with(frame));
            text.contains(char::is_alphanumeric)
                && !is_frame
                && !NOTES.iter().any(|note| text.starts_with(note))
        };
        let last = lines.iter().rev();
        let found = last.clone().find(says).or_else(|| last.clone().find(|line| !line.is_empty()));
        found.map(|line| line.trim_start().to_owned())
    })
}

/// Returns the first error of a compiler: `FILE:LINE:COLUMN: error: TEXT`, or `error[E0425]: TEXT` of rustc.
fn of_compiler(stderr_tail: &str) -> Option<String> {
    const FORM: &str = r"(?m)^(?:.*:[0-9]+: (?:fatal )?error: |error\[E).*$";
    let error = Regex::new(FORM).ok()?.find(stderr_tail)?;
    Some(error.as_str().trim_end().to_owned())
}

fn of_panic(lines: &[&str]) -> Option<String> {
    let of_rust = lines.iter().rposition(|line| {
        line.starts_with("thread '") && line.contains(" panicked at ") && line.ends_with(':')
    });
    if let Some(message) = of_rust.and_then(|at| lines.get(at + 1)) {
        return Some(format!("panicked: {}", message.trim()));
    }
    let is_of_go = lines.iter().any(|line| line.starts_with("goroutine "));
    let begins = |line: &&&str| line.starts_with("panic: ") || line.starts_with("fatal error: ");
    lines.iter().find(begins).filter(|_| is_of_go).map(|line| (*line).to_owned())
}

/// Returns the error before the last stack whose lines begin with `at`, of node or Java.
fn of_stack(lines: &[&str]) -> Option<String> {
    let is_frame =
        |line: &str| line.starts_with([' ', '\t']) && line.trim_start().starts_with("at ");
    let last = lines.iter().rposition(|line| is_frame(line))?;
    let before = lines[..=last].iter().rposition(|line| !is_frame(line))?;
    // A message may have several lines.
    let above = lines[before.saturating_sub(MESSAGE_LINES_MAX)..=before].iter().rev();
    let error = above.clone().take_while(|line| !line.is_empty()).find(|line| {
        let name = line.split([':', ' ']).next().unwrap_or_default();
        let is_named = name.ends_with("Error") || name.ends_with("Exception");
        is_named || line.starts_with("Caused by: ") || line.starts_with("Exception in thread ")
    });
    let error = error.unwrap_or(&lines[before]).trim_start();
    (!error.is_empty()).then(|| error.strip_prefix("Caused by: ").unwrap_or(error).to_owned())
}

#[cfg(test)]
mod tests {
    use super::reason_of;

    #[test]
    fn reason_is_the_last_line_that_says_something() {
        for (tail, reason) in [
            ("warning: old\nwarning: older\ncp: disk full", "cp: disk full"),
            ("curl: (60) certificate has expired\n\n---\n", "curl: (60) certificate has expired"),
            ("E: about to fail\n  ^\n", "E: about to fail"),
            ("...", "..."),
            ("gcc: x\nmake: *** [Makefile:2: all] Error 1", "gcc: x"),
        ] {
            assert_eq!(reason_of(tail).as_deref(), Some(reason), "{tail}");
        }
        assert_eq!(reason_of(""), None);
    }

    #[test]
    fn errors_of_languages_are_found_in_their_forms() {
        for (tail, reason) in [
            (
                "/run/script.js:1\nthrow new TypeError('bad x')\n^\n\nTypeError: bad x\n    at Object.<anonymous> \
                 (/run/script.js:1:7)\n    at node:internal/main:23:47 {\n  code: 'E'\n}\n\nNode.js v18.20.4",
                "TypeError: bad x",
            ),
            (
                "Error: several\nlines of it\n    at f (/run/script.js:1:7)\n\nNode.js v18.20.4",
                "Error: several",
            ),
            (
                "node:internal/process:1\n            ^\n\nUncaught:\n'text'\n(Use `node --trace-uncaught ...` to show \
                 where the exception was thrown)\n\nNode.js v18.20.4",
                "'text'",
            ),
            (
                "Exception in thread \"main\" java.lang.RuntimeException: outer\n\tat A.main(A.java:3)\n\
                 Caused by: java.io.IOException: disk full\n\tat A.f(A.java:9)\n\t... 1 more",
                "java.io.IOException: disk full",
            ),
            (
                "panic: runtime error: index out of range [3]\n\ngoroutine 1 [running]:\nmain.main()\n\t\
                 /x/main.go:5 +0x1\nexit status 2",
                "panic: runtime error: index out of range [3]",
            ),
            (
                "thread 'main' panicked at src/main.rs:2:5:\nno such key\nnote: run with `RUST_BACKTRACE=1`",
                "panicked: no such key",
            ),
            (
                "x.c: In function 'main':\nx.c:2:3: warning: unused\nx.c:3:5: error: 'y' undeclared\n    3 | y\n      \
                 | ^\nx.c:4:1: error: more\nmake: *** [x] Error 1",
                "x.c:3:5: error: 'y' undeclared",
            ),
            (
                "error[E0425]: cannot find value `x`\n --> a.rs:1:1\n\nerror: aborting due to 1 previous error\n\n\
                 For more information about this error, try `rustc --explain E0425`.",
                "error[E0425]: cannot find value `x`",
            ),
            (
                "DeprecationWarning: old\nTraceback (most recent call last):\n  File \"a.py\", line 1, in <module>\n    \
                 1/0\nZeroDivisionError: division by zero",
                "ZeroDivisionError: division by zero",
            ),
            (
                "a.rb:1:in `f': undefined method `x' (NoMethodError)\n\tfrom a.rb:3:in `<main>'",
                "a.rb:1:in `f': undefined method `x' (NoMethodError)",
            ),
        ] {
            assert_eq!(reason_of(tail).as_deref(), Some(reason), "{tail}");
        }
    }
}
