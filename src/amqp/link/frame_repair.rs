//! Repairs frames of RabbitMQ that the client library would end the connection for: RabbitMQ passes on
//! short strings that are not UTF-8, and header tables that nobody can read, as their publishers sent
//! them. One such message would come back at each new connection, for ever.
//!
//! Each byte of such a string that is not ASCII becomes the control character SUBSTITUTE, and a table that
//! cannot be read becomes one with a header of this name. Everything else passes as it is.

use std::ops::Range;

use crate::amqp::message::SUBSTITUTE;

/// [`SUBSTITUTE`], the character in the place of bytes that are not UTF-8.
const SUBSTITUTE_BYTE: u8 = SUBSTITUTE as u8;
/// Type, channel and size of a frame.
const HEAD: usize = 7;
/// The byte after a frame.
const FRAME_END: u8 = 0xce;
const METHOD: u8 = 1;
const HEADER: u8 = 2;
/// A larger frame passes as it is: RabbitMQ sends none.
const FRAME_BYTES_MAX: usize = 4 << 20;
/// The deepest table in a table.
const DEPTH_MAX: u32 = 32;
/// A table with one header, named SUBSTITUTE, without a value.
const UNREADABLE: [u8; 7] = [0, 0, 0, 3, 1, SUBSTITUTE_BYTE, b'V'];

/// A part of a frame: a short string, a table, or bytes that pass as they are.
#[derive(Clone, Copy)]
enum FramePart {
    Short,
    Table,
    Skip(usize),
}

/// Returns the arguments of a method with short strings of others, up to the last of them.
fn parts(class: u16, method: u16) -> &'static [FramePart] {
    use FramePart::{Short, Skip};
    match (class, method) {
        // connection.close, channel.close
        (10, 50) | (20, 40) => &[Skip(2), Short],
        // queue.declare-ok, basic.consume-ok, basic.cancel, basic.cancel-ok
        (50, 11) | (60, 21 | 30 | 31) => &[Short],
        // basic.return
        (60, 50) => &[Skip(2), Short, Short, Short],
        // basic.deliver
        (60, 60) => &[Short, Skip(9), Short, Short],
        // basic.get-ok
        (60, 71) => &[Skip(9), Short, Short],
        _ => &[],
    }
}

/// The forms of the properties of a message, from the highest flag on.
const PROPERTIES: [FramePart; 14] = {
    use FramePart::{Short, Skip, Table};
    // content_type, content_encoding, headers, delivery_mode, priority, correlation_id, reply_to,
    // expiration, message_id, timestamp, type, user_id, app_id, cluster_id
    [
        Short,
        Short,
        Table,
        Skip(1),
        Skip(1),
        Short,
        Short,
        Short,
        Short,
        Skip(8),
        Short,
        Short,
        Short,
        Short,
    ]
};

#[derive(Debug, Default)]
pub(super) struct FrameRepair {
    /// The beginning of a frame whose end has not come.
    pending: Vec<u8>,
    /// The bytes of a frame that still pass as they are.
    passing: usize,
}

impl FrameRepair {
    /// Takes bytes of RabbitMQ, and adds those that the library may see to `ready`.
    pub(super) fn take(&mut self, mut bytes: &[u8], ready: &mut Vec<u8>) {
        while !bytes.is_empty() {
            if self.passing > 0 {
                let (now, rest) = bytes.split_at(self.passing.min(bytes.len()));
                ready.extend_from_slice(now);
                self.passing -= now.len();
                bytes = rest;
                continue;
            }
            let wanted = self.frame_len().unwrap_or(HEAD);
            let (now, rest) = bytes.split_at((wanted - self.pending.len()).min(bytes.len()));
            self.pending.extend_from_slice(now);
            bytes = rest;
            self.pass(ready);
        }
    }

    /// Returns the received part of a frame that has no end.
    pub(super) fn rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.pending)
    }

    /// The length of the frame that has begun, once its head is here.
    fn frame_len(&self) -> Option<usize> {
        let size = self.pending.get(3..HEAD)?;
        let size = u32::from_be_bytes(size.try_into().ok()?);
        Some(HEAD + usize::try_from(size).ok()? + 1)
    }

    /// Gives on a frame that is complete, or whose kind is never mended.
    fn pass(&mut self, ready: &mut Vec<u8>) {
        let Some(len) = self.frame_len() else { return };
        if !matches!(self.pending[0], METHOD | HEADER) || len > FRAME_BYTES_MAX {
            self.passing = len - self.pending.len();
            ready.append(&mut self.pending);
        } else if self.pending.len() == len {
            mend_frame(&mut self.pending);
            ready.append(&mut self.pending);
        }
    }
}

/// Mends a frame that is complete.
fn mend_frame(frame: &mut Vec<u8>) {
    let mend = if frame[0] == HEADER { mend_header } else { mend_method };
    let end = frame.len() - 1;
    // A cut frame is an error of RabbitMQ, which the library names.
    if let Some(table) = mend(&mut frame[HEAD..end]) {
        let table = table.start + HEAD..table.end + HEAD;
        frame.splice(table, UNREADABLE);
        let size = frame.len() - HEAD - 1;
        // It is shorter than the frame was, or by a few bytes longer.
        let size = u32::try_from(size).unwrap_or(u32::MAX).to_be_bytes();
        frame[3..HEAD].copy_from_slice(&size);
        debug_assert_eq!(frame.last(), Some(&FRAME_END));
    }
}

/// Mends the arguments of a method, which have no table.
fn mend_method(payload: &mut [u8]) -> Option<Range<usize>> {
    let number = |at: usize| Some(u16::from_be_bytes(payload.get(at..at + 2)?.try_into().ok()?));
    let (class, method) = (number(0)?, number(2)?);
    mend_parts(payload, 4, parts(class, method).iter().copied())
}

/// Mends the properties of a message.
fn mend_header(payload: &mut [u8]) -> Option<Range<usize>> {
    // Class, weight and the size of the body come before the flags.
    let flags = u16::from_be_bytes(payload.get(12..14)?.try_into().ok()?);
    let present = PROPERTIES.into_iter().enumerate();
    let present = present.filter(|(place, _)| flags & (1 << (15 - place)) != 0);
    mend_parts(payload, 14, present.map(|(_, part)| part))
}

/// Mends parts from a place on, as far as they can be read. Returns the place of a table that cannot be.
fn mend_parts(
    payload: &mut [u8],
    mut at: usize,
    parts: impl Iterator<Item = FramePart>,
) -> Option<Range<usize>> {
    let mut unreadable = None;
    for part in parts {
        at = match part {
            FramePart::Short => mend_short(payload, at)?,
            FramePart::Skip(bytes) => at + bytes,
            FramePart::Table => {
                let end = end_of(payload, at)?;
                if mend_table(payload, at, 0).is_none() {
                    unreadable = Some(at..end);
                }
                end
            }
        };
    }
    unreadable
}

/// Mends a short string, and returns where it ends.
fn mend_short(bytes: &mut [u8], at: usize) -> Option<usize> {
    let end = at + 1 + usize::from(*bytes.get(at)?);
    let text = bytes.get_mut(at + 1..end)?;
    if std::str::from_utf8(text).is_err() {
        text.iter_mut().filter(|byte| !byte.is_ascii()).for_each(|byte| *byte = SUBSTITUTE_BYTE);
    }
    Some(end)
}

/// Returns where something ends that begins with its length in four bytes.
fn end_of(bytes: &[u8], at: usize) -> Option<usize> {
    let size = u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?);
    let end = at + 4 + usize::try_from(size).ok()?;
    (end <= bytes.len()).then_some(end)
}

/// Mends the names of a table; `None` if it cannot be read.
fn mend_table(bytes: &mut [u8], at: usize, depth: u32) -> Option<usize> {
    let end = end_of(bytes, at)?;
    let mut at = at + 4;
    while at < end {
        at = mend_short(bytes, at)?;
        at = mend_value(bytes, at, depth)?;
    }
    (at == end).then_some(end)
}

/// Mends a value of a table, and returns where it ends.
fn mend_value(bytes: &mut [u8], at: usize, depth: u32) -> Option<usize> {
    if depth > DEPTH_MAX {
        return None;
    }
    let kind = *bytes.get(at)?;
    let at = at + 1;
    let end = match kind {
        b't' | b'b' | b'B' => at + 1,
        b's' | b'u' | b'U' => at + 2,
        b'I' | b'i' | b'f' => at + 4,
        b'D' => at + 5,
        b'L' | b'l' | b'd' | b'T' => at + 8,
        b'V' => at,
        b'S' | b'x' => end_of(bytes, at)?,
        b'F' => mend_table(bytes, at, depth + 1)?,
        b'A' => {
            let end = end_of(bytes, at)?;
            let mut next = at + 4;
            while next < end {
                next = mend_value(bytes, next, depth + 1)?;
            }
            (next == end).then_some(end)?
        }
        _ => return None,
    };
    (end <= bytes.len()).then_some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
        let size = u32::try_from(payload.len()).expect("small").to_be_bytes();
        [&[kind, 0, 1], &size[..], payload, &[FRAME_END]].concat()
    }

    fn short(text: &[u8]) -> Vec<u8> {
        [&[u8::try_from(text.len()).expect("short")], text].concat()
    }

    fn table(entries: &[u8]) -> Vec<u8> {
        [&u32::try_from(entries.len()).expect("small").to_be_bytes(), entries].concat()
    }

    fn header(flags: u16, properties: &[u8]) -> Vec<u8> {
        let start = [0, 60, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5];
        frame(HEADER, &[&start[..], &flags.to_be_bytes(), properties].concat())
    }

    /// Takes bytes in portions of this size.
    fn mended(bytes: &[u8], portion: usize) -> Vec<u8> {
        let (mut mender, mut ready) = (FrameRepair::default(), Vec::new());
        bytes.chunks(portion).for_each(|portion| mender.take(portion, &mut ready));
        assert!(mender.rest().is_empty(), "each frame has its end");
        ready
    }

    fn deliver(key: &[u8]) -> Vec<u8> {
        let parts = [&[0, 60, 0, 60][..], &short(b"tag"), &[0; 9], &short(b"beds"), &short(key)];
        frame(METHOD, &parts.concat())
    }

    #[test]
    fn frames_of_utf_8_pass_byte_by_byte_as_they_are() {
        let body = frame(3, b"\xff\xfe any bytes");
        let headers = table(
            &[&short("ä".as_bytes())[..], b"S", &table(b"\xff"), &short(b"b"), b"V"].concat(),
        );
        let known = header(0xa000, &[short("ü".as_bytes()), headers].concat());
        let all = [deliver(b"rec.read"), known, body, frame(8, b"")].concat();
        for portion in 1..all.len() {
            assert_eq!(mended(&all, portion), all);
        }
    }

    #[test]
    fn bytes_that_are_no_utf_8_are_substituted_in_every_short_string() {
        let expected = deliver(b"rec.\x1a\x1aread");
        for portion in [1, 3, 1000] {
            assert_eq!(mended(&deliver(b"rec.\xff\xferead"), portion), expected);
        }
        let kinds = PROPERTIES.iter().enumerate();
        for (place, _) in kinds.filter(|(_, kind)| matches!(kind, FramePart::Short)) {
            let flags = 1 << (15 - place);
            let wanted = header(flags, &short(b"M\x1aller"));
            assert_eq!(mended(&header(flags, &short(b"M\xfcller")), 1000), wanted);
        }
        let nested = |name: &[u8]| {
            let inner = [short(name), b"V".to_vec()].concat();
            let list = table(&[b"F".to_vec(), table(&inner)].concat());
            let all = [short(name), b"F".to_vec(), table(&inner), short(b"l"), b"A".to_vec(), list];
            header(0x2000, &table(&all.concat()))
        };
        assert_eq!(mended(&nested(b"\xe9"), 1000), nested(b"\x1a"));
    }

    #[test]
    fn a_table_that_cannot_be_read_is_replaced_and_what_follows_is_kept() {
        let deep = (0..100).fold(vec![], |inner, _| {
            table(
                &[short(b"a"), b"F".to_vec(), if inner.is_empty() { table(&[]) } else { inner }]
                    .concat(),
            )
        });
        let unknown = table(&[&short(b"a")[..], b"?"].concat());
        let cut = table(&[&short(b"a")[..], b"l\0"].concat());
        for broken in [unknown, cut, deep, table(&[9, 1])] {
            let given = header(0x2080, &[broken, short(b"m1")].concat());
            let wanted = header(0x2080, &[UNREADABLE.to_vec(), short(b"m1")].concat());
            assert_eq!(mended(&given, 7), wanted);
        }
    }

    #[test]
    fn frames_that_are_cut_are_left_to_the_library() {
        for bytes in [header(0x8000, &[9, 1]), frame(METHOD, &[0]), header(0x2000, &[0, 0, 0, 9])] {
            assert_eq!(mended(&bytes, 5), bytes);
        }
    }
}
