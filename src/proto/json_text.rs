//! Texts in JSON that must not change on their way: numbers keep their digits, and members their order.

use std::borrow::Cow;

use super::text::shown;

/// A byte order mark, which some editors write before a text.
const MARK: &[u8] = b"\xef\xbb\xbf";

pub fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(MARK).unwrap_or(text)
}

/// Returns the content of a file with one value, such as a password, as a person or an editor writes it: without a byte
/// order mark before it and the line end after it.
pub fn value_of_file(content: &[u8]) -> &[u8] {
    let line = without_mark(content);
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Returns a text with U+FFFD in place of what JSON cannot have: bytes that are not UTF-8, and halves of surrogate pairs
/// (`"\ud83d"`), as a text has that was cut within an emoji, or a file name that is not UTF-8.
pub fn readable(text: &[u8]) -> Cow<'_, str> {
    let text = String::from_utf8_lossy(text);
    if !text.contains("\\ud") && !text.contains("\\uD") {
        return text;
    }
    let (mut whole, mut rest) = (String::with_capacity(text.len()), &*text);
    while let Some(at) = rest.find('\\') {
        whole.push_str(&rest[..at]);
        rest = &rest[at..];
        let unit = unit_of(rest);
        let is_pair = unit.is_some_and(|unit| (0xd800..0xdc00).contains(&unit))
            && unit_of(&rest[6..]).is_some_and(|unit| (0xdc00..0xe000).contains(&unit));
        let is_half = !is_pair && unit.is_some_and(|unit| (0xd800..0xe000).contains(&unit));
        let length = match (is_pair, unit) {
            (true, _) => 12,
            (false, Some(_)) => 6,
            (false, None) => rest.chars().take(2).map(char::len_utf8).sum(),
        };
        whole.push_str(if is_half { "\\ufffd" } else { &rest[..length] });
        rest = &rest[length..];
    }
    whole.push_str(rest);
    whole.into()
}

/// Returns the number of an escape at the start of a text, such as `\ud83d`.
fn unit_of(escape: &str) -> Option<u16> {
    let digits = escape.strip_prefix("\\u")?.get(..4)?;
    u16::from_str_radix(digits, 16).ok()
}

/// Refuses a number without a fraction that does not fit into 64 bits: a parser would make an inexact one of
/// it. A text that is not JSON passes.
///
/// # Errors
/// The number and what to do, for a person.
pub fn refuse_wide_integers(text: &[u8]) -> Result<(), String> {
    for token in tokens(text) {
        if token.first().is_none_or(|first| !matches!(first, b'-' | b'0'..=b'9')) {
            continue;
        }
        let Ok(number) = std::str::from_utf8(token) else { continue };
        let is_integer = number.bytes().all(|byte| matches!(byte, b'-' | b'0'..=b'9'));
        if is_integer && number.parse::<i64>().is_err() && number.parse::<u64>().is_err() {
            let number = shown(number);
            return Err(format!(
                "the number {number} does not fit into 64 bits and would lose digits; give it as a text, \
                 \"{number}\""
            ));
        }
    }
    Ok(())
}

/// Returns a value in one line without space between its parts. Numbers and the order of members stay.
///
/// # Errors
/// A text in it is no Unicode.
pub fn compact(value: &str) -> Result<String, serde_json::Error> {
    let mut compact = String::with_capacity(value.len());
    for token in tokens(value.as_bytes()) {
        let token = String::from_utf8_lossy(token);
        if token.starts_with('"') {
            let text: String = serde_json::from_str(&token)?;
            compact.push_str(&serde_json::to_string(&text)?);
        } else {
            compact.push_str(&token);
        }
    }
    Ok(compact)
}

/// Splits a text into its strings, its words and numbers, and single marks; space is left out.
fn tokens(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_ascii_start();
        let length = match rest.first()? {
            b'"' => string_bytes(rest),
            first if is_of_word(*first) => {
                rest.iter().take_while(|byte| is_of_word(**byte)).count()
            }
            _ => 1,
        };
        let (token, after) = rest.split_at(length);
        rest = after;
        Some(token)
    })
}

fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.' | b'_') || !byte.is_ascii()
}

/// Returns the length of a string with its quotes; all of the text if it does not end.
fn string_bytes(text: &[u8]) -> usize {
    let mut escaped = false;
    let end = text.iter().skip(1).position(|byte| {
        let ends = *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        ends
    });
    end.map_or(text.len(), |end| end + 2)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    #[test]
    fn only_integers_beyond_64_bits_are_refused() {
        for legal in [
            "",
            "[1,-1,1.5,1e300,100000000000000000000.0]",
            "{\"a\":18446744073709551615,\"b\":-9223372036854775808}",
            "{\"a\":\"100000000000000000000\",\"\\\"100000000000000000000\":1}",
            "not json 1x00000000000000000000",
        ] {
            assert_eq!(refuse_wide_integers(legal.as_bytes()), Ok(()), "{legal}");
        }
        for wide in
            ["100000000000000000000", "{\"a\":[18446744073709551616]}", "[-9223372036854775809]"]
        {
            let why = refuse_wide_integers(wide.as_bytes()).expect_err(wide);
            assert!(why.starts_with("the number ") && why.contains("64 bits"), "{why}");
        }
    }

    #[test]
    fn compact_value_keeps_digits_and_order() {
        let value = "{ \"z\" : 100000000000000000000,\n \"a\":[ 1.0, -0, 1E400, null ], \"\\u00e9 \\\"\": \" b \" }";
        let expected = "{\"z\":100000000000000000000,\"a\":[1.0,-0,1E400,null],\"é \\\"\":\" b \"}";
        assert_eq!(compact(value).expect("legal"), expected);
        assert!(compact("\"\\ud800\"").is_err());
    }

    #[test]
    fn byte_order_mark_is_left_out_once() {
        assert_eq!(without_mark("\u{feff}{}".as_bytes()), b"{}");
        assert_eq!(without_mark(b"{}"), b"{}");
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[-0-9eE.\"\\\\{}\\[\\],: aé]{0,40}") {
            let _ = refuse_wide_integers(text.as_bytes());
            if let Ok(value) = serde_json::from_str::<Value>(&text) {
                let again: Value = serde_json::from_str(&compact(&text).expect("legal")).expect("JSON");
                prop_assert_eq!(again, value);
            }
        }
    }

    #[test]
    fn halves_of_pairs_and_other_bytes_become_replacement_characters() {
        for (text, expected) in [
            (&br#"{"a":"x\ud83d"}"#[..], r#"{"a":"x\ufffd"}"#),
            (br#"["\uDC00\ud83d\ud83d\ude00 \ud83dx"]"#, r#"["\ufffd\ufffd\ud83d\ude00 \ufffdx"]"#),
            (br#"["\\ud83d","\\\ud83d","\"\ud8"]"#, r#"["\\ud83d","\\\ufffd","\"\ud8"]"#),
            (b"[\"caf\xe9\"]", "[\"caf\u{fffd}\"]"),
            (b"\\", "\\"),
            ("[\"\\\u{e4}\\ud800\"]".as_bytes(), "[\"\\\u{e4}\\ufffd\"]"),
        ] {
            assert_eq!(readable(text), expected);
        }
    }

    #[test]
    fn value_of_a_file_is_without_what_an_editor_adds() {
        for text in ["a b", "a b\n", "a b\r\n", "\u{feff}a b\r\n"] {
            assert_eq!(value_of_file(text.as_bytes()), b"a b", "{text:?}");
        }
        assert_eq!(value_of_file(b"a\n\n"), b"a\n");
    }
}
