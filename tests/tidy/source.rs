//! Rust sources as the rules read them: without comments, literals and tests.

use std::ops::Range;
use std::path::Path;

/// Returns the code of a file with the same lines and columns: comments, the text of literals and
/// items under `#[cfg(test)]` become spaces.
pub(crate) fn code_of(text: &str) -> String {
    without_tests(blanked(text))
}

/// Returns the numbered lines of a file outside of the items under `#[cfg(test)]`, with literals. Lines that are comments
/// are empty.
pub(crate) fn lines_outside_tests(text: &str) -> Vec<(usize, &str)> {
    let line_of = |at: usize| text[..at].matches('\n').count() + 1;
    let spans = test_items(blanked(text)).1.into_iter();
    let tests: Vec<Range<usize>> =
        spans.map(|span| line_of(span.start)..line_of(span.end) + 1).collect();
    numbered(text)
        .filter(|(number, _)| !tests.iter().any(|lines| lines.contains(number)))
        .map(|(number, line)| (number, if line.trim_start().starts_with("//") { "" } else { line }))
        .collect()
}

/// Returns the literals of a file with the numbers of their first lines.
pub(crate) fn literals(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let line_of = |at: usize| text[..at].matches('\n').count() + 1;
    let spans = comments_and_literals(text).into_iter();
    let literals = spans.filter(|span| !text[span.clone()].starts_with('/'));
    literals.map(move |span| (line_of(span.start), &text[span]))
}

/// Replaces comments and the text of literals by spaces.
fn blanked(text: &str) -> Vec<u8> {
    let mut out = text.as_bytes().to_vec();
    for span in comments_and_literals(text) {
        for byte in &mut out[span] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
    }
    out
}

/// Returns the bytes of each comment and of each literal.
fn comments_and_literals(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut spans = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let after_word = at > 0 && is_word(bytes[at - 1]);
        let end = match rest[0] {
            b'/' if rest.starts_with(b"//") => line_end(rest),
            b'/' if rest.starts_with(b"/*") => find(rest, b"*/").map_or(rest.len(), |end| end + 2),
            b'"' => string_end(rest),
            b'r' if !after_word => raw_string_end(rest, 1).unwrap_or(0),
            b'b' if !after_word && rest.starts_with(b"br") => raw_string_end(rest, 2).unwrap_or(0),
            b'\'' => char_end(rest).unwrap_or(0),
            _ => 0,
        };
        if end > 0 {
            spans.push(at..at + end);
        }
        at += end.max(1);
    }
    spans
}

fn line_end(rest: &[u8]) -> usize {
    rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len())
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

fn string_end(rest: &[u8]) -> usize {
    let mut at = 1;
    while at < rest.len() && rest[at] != b'"' {
        at += if rest[at] == b'\\' { 2 } else { 1 };
    }
    rest.len().min(at + 1)
}

/// Returns the end of a raw string whose `#` or quote is at `open`.
fn raw_string_end(rest: &[u8], open: usize) -> Option<usize> {
    let hashes = rest[open..].iter().take_while(|byte| **byte == b'#').count();
    let quote = open + hashes;
    if rest.get(quote) != Some(&b'"') {
        return None;
    }
    let mut close = vec![b'"'];
    close.resize(hashes + 1, b'#');
    Some(find(&rest[quote + 1..], &close).map_or(rest.len(), |end| quote + 1 + end + close.len()))
}

/// Returns the end of a character literal, and `None` for a lifetime.
fn char_end(rest: &[u8]) -> Option<usize> {
    let first = *rest.get(1)?;
    let from = if first == b'\\' { 3 } else { 2 };
    let close = (from..rest.len().min(from + 10)).find(|at| rest[*at] == b'\'')?;
    (first == b'\\' || first >= 0x80 || close == 2).then_some(close + 1)
}

/// Replaces every item under `#[cfg(test)]` by spaces.
fn without_tests(code: Vec<u8>) -> String {
    String::from_utf8_lossy(&test_items(code).0).into_owned()
}

/// Returns the code with every item under `#[cfg(test)]` replaced by spaces, and the bytes of each.
fn test_items(mut code: Vec<u8>) -> (Vec<u8>, Vec<Range<usize>>) {
    const MARK: &[u8] = b"#[cfg(test)]";
    let mut items = Vec::new();
    while let Some(start) = find(&code, MARK) {
        let end = start + MARK.len() + item_end(&code[start + MARK.len()..]);
        for byte in &mut code[start..end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        items.push(start..end);
    }
    (code, items)
}

/// Returns the end of the item that begins here: its `;` or `,` outside of braces, or the brace
/// that closes it.
fn item_end(rest: &[u8]) -> usize {
    let mut depth = 0_usize;
    for (at, byte) in rest.iter().enumerate() {
        match byte {
            b'{' | b'(' | b'[' => depth += 1,
            b'}' | b')' | b']' if depth == 0 => return at,
            b'}' if depth == 1 => return at + 1,
            b'}' | b')' | b']' => depth -= 1,
            b';' | b',' if depth == 0 => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Returns the lines with their numbers, from 1.
pub(crate) fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(index, line)| (index + 1, line))
}

/// Returns the words of a text: runs of letters, digits and `_`.
pub(crate) fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

pub(crate) fn is_test(path: &str) -> bool {
    path.starts_with("tests/") || path.ends_with("/tests.rs") || path.contains("/tests/")
}

/// Returns whether this is Rust of the program, not of its tests.
pub(crate) fn is_source(path: &str) -> bool {
    let is_rust = Path::new(path).extension().is_some_and(|extension| extension == "rs");
    is_rust && path.starts_with("src/") && !is_test(path)
}

#[test]
fn comments_literals_and_tests_become_spaces() {
    let text = "let a = \"x::y\"; // z::w\nlet b = r#\"q\"u\"#; let c = '\"'; let d: &'a str;\n\
                #[cfg(test)]\nmod tests {\n    fn f() { g(); }\n}\n#[cfg(test)]\nmod more;\nfn h() {}";
    let code = code_of(text);
    let words: Vec<&str> = identifiers(&code).collect();
    assert_eq!(words, ["let", "a", "let", "b", "let", "c", "let", "d", "a", "str", "fn", "h"]);
    assert_eq!(code.lines().count(), text.lines().count());
    let outside: Vec<usize> = lines_outside_tests(text).iter().map(|(number, _)| *number).collect();
    assert_eq!(outside, [1, 2, 9]);
    let literals: Vec<(usize, &str)> = literals(text).collect();
    assert_eq!(literals, [(1, "\"x::y\""), (2, "r#\"q\"u\"#"), (2, "'\"'")]);
}
