//! Text from outside in messages: shortened, escaped, and compared with the words that are known.

use ring::digest::{SHA256, digest};

/// Returns the start of a text from outside, escaped and short enough for a message.
pub fn shown(text: &str) -> String {
    const SHOWN_CHARS_MAX: usize = 80;
    let mut shown = String::new();
    for c in text.chars().take(SHOWN_CHARS_MAX) {
        // Messages stand it between other quotes.
        if matches!(c, '"' | '\'') { shown.push(c) } else { shown.extend(c.escape_debug()) }
    }
    if text.chars().nth(SHOWN_CHARS_MAX).is_some() {
        shown.push('…');
    }
    shown
}

/// Returns the known word that is most like the given one; `None` if none is similar.
pub fn nearest<'k>(word: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    const SIMILARITY_MIN: f64 = 0.5;
    const COMPARED_CHARS_MAX: usize = 128;
    let word: String = word.chars().take(COMPARED_CHARS_MAX).collect();
    known
        .map(|other| (strsim::normalized_damerau_levenshtein(&word, other), other))
        .filter(|(similarity, _)| *similarity >= SIMILARITY_MIN)
        .max_by(|one, other| one.0.total_cmp(&other.0))
        .map(|(_, other)| other)
}

/// Returns the known word that was meant by an unknown one: one that is the end of the other behind an underscore, such as
/// `type` of `script_type`, or the nearest.
pub fn meant<'k>(word: &str, known: impl Iterator<Item = &'k str> + Clone) -> Option<&'k str> {
    let is_end = |end: &str, of: &str| {
        !end.is_empty() && of.strip_suffix(end).is_some_and(|rest| rest.ends_with('_'))
    };
    let mut all = known.clone();
    let part = all.find(|other| is_end(other, word) || is_end(word, other));
    part.or_else(|| nearest(word, known))
}

/// Returns the end of a message about an unknown word: the nearest known one, if there is one.
pub fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map(|near| format!("; did you mean `{}`?", shown(near))).unwrap_or_default()
}

/// Returns a number with the words after it, in the singular for 1: `1 job waits`, `3 jobs wait`.
pub fn counted(number: impl Into<u64>, one: &str, more: &str) -> String {
    let number = number.into();
    format!("{number} {}", if number == 1 { one } else { more })
}

/// Returns bytes as text, with those that are not UTF-8 as `\xNN`.
pub fn text_of(bytes: &[u8]) -> String {
    bytes.utf8_chunks().fold(String::new(), |mut text, chunk| {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}")));
        text
    })
}

/// Returns the part of a line that a terminal shows at its end: a carriage return lets what follows replace what
/// stands, as progress bars do.
pub fn at_terminal(line: &str) -> &str {
    let line = line.trim_end_matches('\r');
    line.rsplit_once('\r').map_or(line, |(_, last)| last)
}

/// Escapes every control and invisible character, so the text stays on one line and texts that differ look different.
pub fn escape(text: &str) -> String {
    escape_except(&[], text, |shown, c| shown.extend(c.escape_default()))
}

/// Returns the SHA-256 of bytes in hexadecimal digits, as `sha256sum` writes it.
pub fn sha256(bytes: impl AsRef<[u8]>) -> String {
    hexadecimal(digest(&SHA256, bytes.as_ref()).as_ref())
}

/// Puts a space between the thousands of a number.
pub fn grouped(number: &str) -> String {
    let (whole, fraction) = number.split_at(number.find('.').unwrap_or(number.len()));
    let mut shown = String::new();
    for (place, digit) in whole.chars().enumerate() {
        let left = whole.len() - place;
        if left.is_multiple_of(3) && shown.ends_with(|c: char| c.is_ascii_digit()) {
            shown.push(' ');
        }
        shown.push(digit);
    }
    shown + fraction
}

pub fn hexadecimal(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |value: u8| char::from(DIGITS[usize::from(value)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// Escapes control and invisible characters except line ends and tabs.
pub fn escape_lines(text: &str) -> String {
    escape_except(&['\n', '\t'], text, |shown, c| shown.extend(c.escape_default()))
}

/// Escapes control and invisible characters of a page except line ends and tabs.
pub fn escape_in_page(text: &str) -> String {
    escape_except(&['\n', '\t', '\r'], text, |shown, c| shown.extend(c.escape_default()))
}

/// Spells the control and invisible characters of a JSON text as JSON does.
pub fn escape_in_json(text: &str) -> String {
    escape_except(&[], text, |shown, c| {
        for unit in c.encode_utf16(&mut [0; 2]) {
            shown.extend(format!("\\u{unit:04x}").chars());
        }
    })
}

/// Escapes control and invisible characters except these. Joiners and selectors that belong to the letters or the pictures
/// beside them stay.
fn escape_except(kept: &[char], text: &str, write: impl Fn(&mut String, char)) -> String {
    let (mut shown, mut before) = (String::with_capacity(text.len()), ' ');
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let after = rest.clone().next().unwrap_or(' ');
        if kept.contains(&c) || !is_invisible(c) || is_of_neighbours(c, before, after) {
            shown.push(c);
        } else {
            write(&mut shown, c);
        }
        before = c;
    }
    shown
}

/// Returns whether a person does not see a character: a control character, one that changes the direction of writing, or one
/// that Unicode lets programs ignore.
pub fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Returns whether an invisible character is part of what is seen beside it: a joiner of letters of a script that has them or
/// of pictures, or the style of a picture.
fn is_of_neighbours(c: char, before: char, after: char) -> bool {
    let is_seen = |c: char| !c.is_ascii() && !is_invisible(c);
    match c {
        '\u{fe0e}' | '\u{fe0f}' => is_seen(before),
        '\u{200c}' | '\u{200d}' => (is_seen(before) || before == '\u{fe0f}') && is_seen(after),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_numbers_are_grouped() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1 000"), (18_231, "18 231")] {
            assert_eq!(grouped(&number.to_string()), text);
        }
        let texts = ["1234567", "-1234.5", "0.042"].map(grouped);
        assert_eq!(texts, ["1 234 567", "-1 234.5", "0.042"]);
    }

    #[test]
    fn control_characters_of_a_document_are_spelled_as_json() {
        let text = "{\"a\":\"\u{9b}2J\u{202e}é\"}";
        let escaped = escape_in_json(text);
        assert_eq!(escaped, "{\"a\":\"\\u009b2J\\u202eé\"}");
        let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("JSON");
        assert_eq!(read(&escaped), read(text));
    }

    #[test]
    fn only_a_similar_word_is_suggested() {
        let known = || ["tasks", "heartbeat", "lease"].into_iter();
        assert_eq!(nearest("tasksy", known()), Some("tasks"));
        assert_eq!(nearest("hartbeat", known()), Some("heartbeat"));
        assert_eq!(nearest("zzz", known()), None);
        assert_eq!(nearest("", known()), None);
        let names = || ["script", "script_type", "wait", "backoff"].into_iter();
        assert_eq!(meant("type", names()), Some("script_type"));
        assert_eq!(meant("retry_backoff", names()), Some("backoff"));
        assert_eq!(meant("scrpt", names()), Some("script"));
        assert_eq!((meant("zzz", names()), meant("", names())), (None, None));
    }

    #[test]
    fn words_after_a_number_are_singular_for_one_only() {
        let jobs = |number: u64| counted(number, "job waits", "jobs wait");
        assert_eq!([jobs(0), jobs(1), jobs(2)], ["0 jobs wait", "1 job waits", "2 jobs wait"]);
    }

    #[test]
    fn hostile_text_is_shortened_and_escaped() {
        let text = shown(&"\u{1b}[2J".repeat(10_000));
        assert!(text.len() < 500 && !text.contains('\u{1b}') && text.ends_with('…'), "{text}");
    }

    #[test]
    fn carriage_return_replaces_what_stands() {
        for (line, shown) in
            [("", ""), ("a", "a"), ("\r 5%\r10%", "10%"), ("a\r\r", "a"), ("5%\r10%\r", "10%")]
        {
            assert_eq!(at_terminal(line), shown, "{line:?}");
        }
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(escape("a\u{1b}[2J\nb\u{202e}"), "a\\u{1b}[2J\\nb\\u{202e}");
        assert_eq!(escape_lines("a\n\tb\r\u{7}"), "a\n\tb\\r\\u{7}");
    }

    #[test]
    fn invisible_characters_are_spelled_unless_they_are_part_of_what_is_seen() {
        let spelled = [
            ("a\u{200b}b", "a\\u{200b}b"),
            ("\u{feff}host", "\\u{feff}host"),
            ("root\u{202e}", "root\\u{202e}"),
            ("\u{2066}x\u{2069}", "\\u{2066}x\\u{2069}"),
            ("host\u{200d}", "host\\u{200d}"),
            ("é\u{200d}\u{200d}é", "é\\u{200d}\\u{200d}é"),
            ("a\u{fe0f}", "a\\u{fe0f}"),
            ("a\u{e0041}", "a\\u{e0041}"),
            ("soft\u{ad}hyphen", "soft\\u{ad}hyphen"),
        ];
        for (text, expected) in spelled {
            assert_eq!((escape(text), escape_lines(text)), (expected.into(), expected.into()));
            let read: String =
                serde_json::from_str(&format!("\"{}\"", escape_in_json(text))).expect("JSON");
            assert_eq!(read, text);
        }
        for seen in
            ["👩\u{200d}🚀", "❤\u{fe0f}\u{200d}🔥", "می\u{200c}خواهم", "naïve ✓", "\u{301}e"]
        {
            assert_eq!(escape(seen), seen);
        }
    }
}
