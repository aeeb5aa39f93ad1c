//! A function is short enough to be read at once.

use super::source::{code_of, is_source};

const LINES_MAX: usize = 70;

/// Returns the functions that are too long.
pub(crate) fn faults(files: &[(String, String)]) -> Vec<String> {
    let sources = files.iter().filter(|(path, _)| is_source(path));
    sources.flat_map(|(path, text)| of_file(path, text)).collect()
}

fn of_file(path: &str, text: &str) -> Vec<String> {
    let code = code_of(text);
    let too_long = functions(&code).filter_map(|(number, name, body)| {
        let lines = body.matches('\n').count() + 1;
        (lines > LINES_MAX).then(|| {
            format!(
                "{path}:{number}: the function {name} has {lines} lines; the limit is {LINES_MAX}: it is two \
                 functions"
            )
        })
    });
    too_long.collect()
}

/// Returns the functions of code, each with its line, its name and its text.
pub(crate) fn functions(code: &str) -> impl Iterator<Item = (usize, &str, &str)> {
    code.match_indices("fn ").filter_map(move |(at, _)| {
        let is_word = code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let rest = &code[at + 3..];
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        let name = &rest[..end];
        let end = body_end(&code[at..]).filter(|_| !is_word && !name.is_empty())?;
        Some((code[..at].matches('\n').count() + 1, name, &code[at..at + end]))
    })
}

/// Returns the end of the body of the function that begins here; `None` if it has none.
fn body_end(code: &str) -> Option<usize> {
    let (mut braces, mut others) = (0_usize, 0_usize);
    for (at, byte) in code.bytes().enumerate() {
        match byte {
            b'(' | b'[' => others += 1,
            b')' | b']' => others = others.checked_sub(1)?,
            b';' if braces == 0 && others == 0 => return None,
            b'{' => braces += 1,
            b'}' if braces == 1 => return Some(at),
            b'}' => braces = braces.checked_sub(1)?,
            _ => {}
        }
    }
    None
}

#[test]
fn long_function_is_found_and_a_short_one_is_not() {
    let of_lines = |lines: usize| {
        let text = format!("fn f(a: [u8; 2]) {{\n{}}}\nfn g();\n", "g();\n".repeat(lines - 2));
        of_file("src/a.rs", &text)
    };
    assert_eq!(of_lines(LINES_MAX), [] as [&str; 0]);
    assert!(of_lines(LINES_MAX + 1)[0].contains("src/a.rs:1: the function f has 71 lines"));
}
