//! Splits a byte stream into lines of bounded length, and keeps its end for an error message.

use crate::proto::text::{at_terminal, text_of};

/// The longest line; a longer one is split.
pub(super) const LINE_BYTES_MAX: usize = 16 * 1024;
const TAIL_BYTES_MAX: usize = 4 * 1024;

/// Returns true for a warning of the Boehm collector, as in programs of V, that it cannot read about its
/// own process in `/proc`, which is closed in the sandbox. It does without, and by hand there is none.
pub(super) fn is_noise(line: &str) -> bool {
    let warning = line.strip_prefix("GC Warning: ");
    warning.is_some_and(|text| text.contains("pthread_getattr_np") || text.contains("/proc/"))
}

pub(in crate::process) fn without_noise(text: &str) -> String {
    if !text.lines().any(is_noise) {
        return text.to_owned();
    }
    text.lines().filter(|line| !is_noise(line)).collect::<Vec<_>>().join("\n")
}

#[derive(Debug, Default)]
pub(in crate::process) struct LineSplitter {
    partial: Vec<u8>,
}

impl LineSplitter {
    /// Takes the next bytes and passes each complete line to `emit`.
    pub(in crate::process) fn push(&mut self, mut bytes: &[u8], emit: &mut dyn FnMut(&str)) {
        while !bytes.is_empty() {
            let room = LINE_BYTES_MAX - self.partial.len();
            let window = &bytes[..bytes.len().min(room)];
            if let Some(end) = window.iter().position(|byte| *byte == b'\n') {
                self.partial.extend_from_slice(&window[..end]);
                self.flush(emit);
                bytes = &bytes[end + 1..];
                continue;
            }
            self.partial.extend_from_slice(window);
            bytes = &bytes[window.len()..];
            if self.partial.len() == LINE_BYTES_MAX {
                self.split(emit);
            }
        }
    }

    /// Passes on a last line without a line end.
    pub(in crate::process) fn finish(&mut self, emit: &mut dyn FnMut(&str)) {
        if !self.partial.is_empty() {
            self.flush(emit);
        }
    }

    /// Returns the text after the last line end that a terminal would show: what stands before a carriage
    /// return is replaced by what follows it. Empty after a line end.
    pub(super) fn unfinished(&self) -> String {
        let mut bytes = &self.partial[..];
        if let Err(error) = std::str::from_utf8(bytes)
            && error.error_len().is_none()
        {
            bytes = &bytes[..error.valid_up_to()];
        }
        let text = text_of(bytes);
        if is_noise(&text) { String::new() } else { at_terminal(&text).to_owned() }
    }

    pub(super) fn ends_with(&self, bytes: &[u8]) -> bool {
        bytes.contains(&b'\n') || self.partial.len() + bytes.len() >= LINE_BYTES_MAX
    }

    fn flush(&mut self, emit: &mut dyn FnMut(&str)) {
        let line = self.partial.strip_suffix(b"\r").unwrap_or(&self.partial);
        emit(&text_of(line));
        self.partial.clear();
    }

    /// Passes on a full buffer, except for an incomplete character at its end.
    fn split(&mut self, emit: &mut dyn FnMut(&str)) {
        let cut = match std::str::from_utf8(&self.partial) {
            Err(error) if error.error_len().is_none() && error.valid_up_to() > 0 => {
                error.valid_up_to()
            }
            _ => self.partial.len(),
        };
        emit(&text_of(&self.partial[..cut]));
        self.partial.drain(..cut);
    }
}

#[derive(Debug, Default)]
pub(super) struct Tail {
    bytes: Vec<u8>,
    cut: bool,
}

impl Tail {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let end = &bytes[bytes.len().saturating_sub(TAIL_BYTES_MAX)..];
        let excess = (self.bytes.len() + end.len()).saturating_sub(TAIL_BYTES_MAX);
        self.cut |= excess > 0 || end.len() < bytes.len();
        self.bytes.drain(..excess);
        self.bytes.extend_from_slice(end);
    }

    /// Returns the kept end as text, from the start of a line if possible.
    pub(super) fn text(&self) -> String {
        let kept = text_of(&self.bytes);
        let kept = kept.trim_end();
        let complete = match kept.split_once('\n') {
            Some((_, complete)) if self.cut => complete,
            _ => kept,
        };
        without_noise(complete)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lines(chunks: &[&[u8]]) -> Vec<String> {
        let mut seen = Vec::new();
        let mut lines = LineSplitter::default();
        for chunk in chunks {
            lines.push(chunk, &mut |line| seen.push(line.to_owned()));
        }
        lines.finish(&mut |line| seen.push(line.to_owned()));
        seen
    }

    #[test]
    fn lines_are_complete_however_the_bytes_arrive() {
        assert_eq!(lines(&[b"a\nb", b"c\r\n", b"\nd"]), ["a", "bc", "", "d"]);
    }

    #[test]
    fn bytes_that_are_not_utf8_are_escaped() {
        assert_eq!(lines(&[b"a\xffb\n"]), ["a\\xffb"]);
    }

    #[test]
    fn endless_line_is_split_between_characters() {
        let text = "é".repeat(LINE_BYTES_MAX) + "x";
        let pieces = lines(&[b"x", text.as_bytes()]);
        assert!(pieces.len() > 1 && pieces.iter().all(|piece| piece.len() <= LINE_BYTES_MAX));
        assert_eq!(pieces.concat(), format!("x{text}"));
    }

    #[test]
    fn tail_starts_at_a_line_and_stays_small() {
        let mut tail = Tail::default();
        for number in 0..10_000 {
            tail.push(format!("line {number}\n").as_bytes());
        }
        let text = tail.text();
        assert!(text.len() <= TAIL_BYTES_MAX && text.starts_with("line "), "{text}");
        assert!(text.ends_with("line 9999"));
    }

    #[test]
    fn tail_has_no_warning_of_the_collector() {
        let mut tail = Tail::default();
        tail.push(b"GC Warning: pthread_getattr_np or pthread_attr_getstack failed\nbad\n");
        tail.push(b"GC Warning: Out of Memory!\n");
        assert_eq!(tail.text(), "bad\nGC Warning: Out of Memory!");
    }

    proptest! {
        #[test]
        fn any_bytes_are_split_within_bounded_memory(
            chunks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40_000), 0..4)
        ) {
            let mut splitter = LineSplitter::default();
            let mut tail = Tail::default();
            for chunk in &chunks {
                splitter.push(chunk, &mut |_| {});
                tail.push(chunk);
                prop_assert!(splitter.partial.len() < LINE_BYTES_MAX);
                prop_assert!(tail.bytes.len() <= TAIL_BYTES_MAX);
            }
        }
    }
}
