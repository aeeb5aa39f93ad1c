//! The results of tools: text within a bound, once; images as images; what else is no text as a link.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use super::super::rpc_error::{Result, RpcError, code};

/// The bytes of the text of a result, unless the agent asks for more.
pub(super) const TEXT_BYTES: usize = 32 << 10;
/// Up to this size the values of a result are text and structured content, beyond it text alone.
const REPEATED_BYTES: usize = 4 << 10;
/// The longest member of values: a longer text is cut.
const MEMBER_BYTES: usize = 16 << 10;
/// The images that models can see, by how their bytes begin.
const IMAGES: [(&[u8], &str); 4] = [
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"RIFF", "image/webp"),
];

pub(super) fn result(is_error: bool, content: &[Value], structured: Option<&Value>) -> Value {
    let mut result = json!({ "content": content, "isError": is_error });
    if let Some(structured) = structured {
        result["structuredContent"] = structured.clone();
    }
    result
}

pub(super) fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

/// Returns the result of a tool that answers with values: both as text and structured if they are small, else as text.
pub(super) fn of_values(mut found: Value) -> Value {
    let whole = found.to_string();
    if whole.len() <= REPEATED_BYTES {
        return result(false, &[text(&whole)], Some(&found));
    }
    shorten(&mut found);
    fit_lines(&mut found);
    let whole = found.to_string();
    let (start, left) = cut(&whole, TEXT_BYTES);
    let mut content = vec![text(start)];
    if left > 0 {
        content.push(text(&format!(
            "{left} bytes more: ask for less, by `limit` or the other arguments"
        )));
    }
    result(false, &content, None)
}

/// Returns a value for structured content beside a text that has it; nothing if it is large.
pub(super) fn repeated(value: &str) -> Option<&str> {
    (value.len() <= REPEATED_BYTES).then_some(value)
}

/// Returns the output of a job or of `job.output` as bytes.
pub(in crate::rpc) fn output_of(found: &Value) -> Result<Vec<u8>> {
    let output = found["output"].as_str().unwrap_or_default();
    match found["output_encoding"].as_str() {
        Some("base64") => decoded(output),
        _ => Ok(output.as_bytes().to_vec()),
    }
}

/// Returns the bytes of a text in Base64, as methods of the API answer.
pub(super) fn decoded(base64: &str) -> Result<Vec<u8>> {
    let decoded = BASE64_STANDARD.decode(base64);
    decoded.map_err(|error| RpcError::new(code::INTERNAL, format!("no Base64: {error}")))
}

/// Returns the start of a text of at most this many bytes, and the number of bytes after it.
pub(super) fn cut(text: &str, most: usize) -> (&str, usize) {
    let end = text.floor_char_boundary(most);
    (&text[..end], text.len() - end)
}

/// Returns the last part of a text of at most this many bytes.
pub(super) fn tail(text: &str, most: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(most))..]
}

/// Cuts texts that are too long within values, and says how much of them is missing.
fn shorten(value: &mut Value) {
    match value {
        Value::String(whole) if whole.len() > MEMBER_BYTES => {
            let (start, left) = cut(whole, MEMBER_BYTES);
            *whole = format!("{start}… {left} bytes more");
        }
        Value::Array(values) => values.iter_mut().for_each(shorten),
        Value::Object(members) => members.values_mut().for_each(shorten),
        _ => {}
    }
}

/// Leaves out the last lines of a log that does not fit; `next` says where they begin.
fn fit_lines(found: &mut Value) {
    let Some(lines) = found.get_mut("lines").and_then(Value::as_array_mut) else { return };
    let mut left = TEXT_BYTES - MEMBER_BYTES / 8;
    let fits = |line: &Value| {
        let fits = line.to_string().len() < left;
        left = left.saturating_sub(line.to_string().len() + 1);
        fits
    };
    let number = lines.iter().map(fits).take_while(|fits| *fits).count().max(1);
    if number < lines.len() {
        lines.truncate(number);
        let next = lines.last().map(|line| line["id"].clone());
        found["next"] = next.unwrap_or_default();
    }
}

/// Bytes that a job wrote: a part of them, or all.
pub(super) struct WrittenBytes<'w> {
    /// The number of all bytes.
    pub(super) size: u64,
    /// The place of the part.
    pub(super) offset: u64,
    pub(super) part: &'w [u8],
    /// The tool with an argument `offset` that has the rest.
    pub(super) tool: &'static str,
}

impl WrittenBytes<'_> {
    /// Returns the type of an image, if all is there and it is one.
    pub(super) fn image(&self) -> Option<&'static str> {
        let is_whole = self.offset == 0 && self.part.len() as u64 == self.size;
        is_whole.then(|| image_type(self.part)).flatten()
    }

    /// Returns it as text, with the place after it; `None` if it is no text. A character that is cut at an end is left out.
    pub(super) fn text(&self) -> Option<(&str, u64)> {
        let begins = match self.offset {
            0 => 0,
            _ => self.part.iter().take(3).take_while(|byte| **byte & 0xc0 == 0x80).count(),
        };
        let part = &self.part[begins..];
        let found = match std::str::from_utf8(part) {
            Ok(text) => text,
            // The last character is cut.
            Err(error) if error.error_len().is_none() => {
                std::str::from_utf8(&part[..error.valid_up_to()]).ok()?
            }
            Err(_) => return None,
        };
        let is_text = !found.contains('\0') && (!found.is_empty() || part.is_empty());
        is_text.then(|| (found, self.offset + (begins + found.len()) as u64))
    }

    /// Returns it as parts of a result: an image, or text with what is left; `None` if it is neither.
    pub(super) fn content(&self) -> Option<Vec<Value>> {
        if let Some(mime) = self.image() {
            let data = BASE64_STANDARD.encode(self.part);
            return Some(vec![json!({ "type": "image", "data": data, "mimeType": mime })]);
        }
        let (found, next) = self.text()?;
        let mut content = vec![text(found)];
        if next < self.size {
            let (left, tool) = (self.size - next, self.tool);
            content.push(text(&format!("{left} bytes more: {tool} with `offset` {next}")));
        }
        Some(content)
    }
}

pub(super) fn image_type(bytes: &[u8]) -> Option<&'static str> {
    let found = IMAGES.iter().find(|(start, _)| bytes.starts_with(start))?;
    (found.1 != "image/webp" || bytes.get(8..12) == Some(b"WEBP")).then_some(found.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(size: u64, offset: u64, part: &[u8]) -> Option<Vec<Value>> {
        WrittenBytes { size, offset, part, tool: "get_file" }.content()
    }

    #[test]
    fn values_come_twice_only_if_they_are_small() {
        let small = of_values(json!({ "id": "a" }));
        assert_eq!(small["structuredContent"], json!({ "id": "a" }));
        assert_eq!(small["content"][0]["text"], "{\"id\":\"a\"}");
        let large = of_values(json!({ "id": "a", "output": "x".repeat(5 << 20) }));
        assert!(large.get("structuredContent").is_none());
        let said = large.to_string();
        assert!(said.len() < TEXT_BYTES + 1000 && said.contains("5226496 bytes more"), "{said}");
    }

    #[test]
    fn log_is_cut_between_lines_and_goes_on_after_the_last_of_them() {
        let line = |n: usize| json!({ "id": format!("{n}-0"), "line": "y".repeat(1000) });
        let lines: Vec<Value> = (0..100).map(line).collect();
        let cut = of_values(json!({ "id": "a", "lines": lines, "next": null }));
        assert_eq!(cut["content"].as_array().map(Vec::len), Some(1), "it is whole JSON");
        let text = cut["content"][0]["text"].as_str().expect("text");
        let part: Value = serde_json::from_str(text).expect("JSON");
        let lines = part["lines"].as_array().expect("lines");
        assert!(lines.len() > 20 && lines.len() < 100, "{}", lines.len());
        assert_eq!(part["next"], lines.last().expect("some")["id"]);
    }

    #[test]
    fn written_bytes_are_text_images_or_neither() {
        let whole = written(4, 0, "aé\n".as_bytes()).expect("text");
        assert_eq!(whole, [text("aé\n")]);
        // The parts of a character stand in two parts of the file, and it is in the second.
        let first = written(4, 0, &"aé\n".as_bytes()[..2]).expect("text");
        assert_eq!(first, [text("a"), text("3 bytes more: get_file with `offset` 1")]);
        let rest = written(4, 2, &"aé\n".as_bytes()[2..]).expect("text");
        assert_eq!(rest, [text("\n")]);
        let png = b"\x89PNG\r\n\x1a\n....";
        let image = written(png.len() as u64, 0, png).expect("an image");
        assert_eq!(
            (&image[0]["type"], &image[0]["mimeType"]),
            (&json!("image"), &json!("image/png"))
        );
        assert_eq!(written(1000, 0, png), None, "a part of an image is none");
        assert_eq!(written(3, 0, b"a\0b"), None);
        assert_eq!(written(4, 0, b"RIFF"), Some(vec![text("RIFF")]));
        assert_eq!(written(0, 0, b""), Some(vec![text("")]));
    }
}
