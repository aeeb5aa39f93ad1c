//! `hero explain`: what a line of the journal means, and what to do.

use clap::Args;
use serde_json::json;

use super::Global;
use super::table::wrapped;
use super::terminal_style::help_columns;
use crate::error::{Error, Exit};
use crate::proto::text::shown;

/// The page of all messages. A test compares it with the source.
const PAGE: &str = include_str!("../../docs/messages.md");
/// A message is recognized by as many characters of its own.
const OWN_LEN_MIN: usize = 6;
/// A text that ends within a message has as many of it.
const START_LEN_MIN: usize = 16;
/// A part of a message has as many.
const PART_LEN_MIN: usize = 4;

/// Say what a warning or an error of the journal means, and what to do
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hero explain 'lost the lease'\n  \
                        hero explain \"$(journalctl -u hero@supervisor -p warning -n 1 -o cat)\"\n\n\
                        TEXT is a line of the journal, or a part of one. Why one job failed: hero job show ID.")]
pub(super) struct ExplainMessage {
    /// The line, or a part of it
    #[arg(required = true, value_name = "TEXT")]
    text: Vec<String>,
}

/// A row of the page.
struct Explanation {
    section: &'static str,
    /// With `…` for names, numbers and reasons.
    message: &'static str,
    meaning: &'static str,
}

impl ExplainMessage {
    pub(super) fn run(self, global: &Global) -> Result<(), Error> {
        let text = self.text.join(" ");
        let found = explanations(&text);
        if found.is_empty() {
            let message = format!(
                "no warning or error of this version has the text `{}`: give at least {PART_LEN_MIN} characters, of the words \
                 between names and numbers, or see docs/messages.md; journalctl shows which program logged a line",
                shown(&text)
            );
            return Err(Error::new(Exit::NotFound, message));
        }
        let document = || {
            let of = |row: &Explanation| json!({ "section": row.section, "message": row.message, "meaning": row.meaning });
            json!({ "messages": found.iter().map(of).collect::<Vec<_>>() })
        };
        global
            .print(document, || found.iter().map(Explanation::text).collect::<Vec<_>>().join("\n"))
    }
}

impl Explanation {
    fn text(&self) -> String {
        let lines = wrapped(self.meaning, help_columns().saturating_sub(2), "");
        let lines: String = lines.iter().flat_map(|line| ["  ", line, "\n"]).collect();
        format!("{}\n{lines}", self.message)
    }

    /// Returns how many characters of the message the text has in order, if it has all or enough of its start, or how many
    /// the message has of it.
    /// `text` is in small letters.
    fn match_len(&self, text: &str) -> Option<usize> {
        let message = self.message.to_lowercase();
        let (mut rest, mut len) = (text, 0);
        for part in message.split('…').map(str::trim) {
            let Some(at) = rest.find(part) else {
                let is_part = text.len() >= PART_LEN_MIN && message.contains(text);
                return if is_part {
                    Some(text.len())
                } else {
                    Some(len).filter(|len| *len >= START_LEN_MIN)
                };
            };
            rest = &rest[at + part.len()..];
            len += part.len();
        }
        Some(len).filter(|len| *len >= OWN_LEN_MIN)
    }
}

/// Returns the rows whose message the text is, those that have most of it.
fn explanations(text: &str) -> Vec<Explanation> {
    let text = text.trim().to_lowercase();
    let mut found: Vec<(usize, Explanation)> =
        rows().filter_map(|row| Some((row.match_len(&text)?, row))).collect();
    let most = found.iter().map(|(len, _)| *len).max();
    found.retain(|(len, _)| Some(*len) == most);
    found.into_iter().map(|(_, row)| row).collect()
}

fn rows() -> impl Iterator<Item = Explanation> {
    let mut section = "";
    let cells = PAGE.lines().filter_map(move |line| {
        section = line.strip_prefix("## ").unwrap_or(section);
        let (messages, meaning) = line.strip_prefix("| `")?.split_once("` | ")?;
        Some((section, messages, meaning.trim_end_matches(" |")))
    });
    cells.flat_map(|(section, messages, meaning)| {
        messages.split("`, `").map(move |message| Explanation { section, message, meaning })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages_of(text: &str) -> Vec<&'static str> {
        explanations(text).into_iter().map(|row| row.message).collect()
    }

    #[test]
    fn line_with_names_and_numbers_is_its_message() {
        let line = "Dec 24 03:12:01 db1 hero[812]: redis at redis://db:6379 cannot be reached: refused; trying again";
        assert_eq!(messages_of(line), ["redis at … cannot be reached"]);
        let all = explanations("actor bash:default:1 is already running on db1 with pid 7");
        assert_eq!(all.len(), 1);
        assert_eq!((all[0].section, all[0].message), ("Actors", "actor … is already running on"));
        assert!(all[0].meaning.contains("another instance number"), "{}", all[0].meaning);
    }

    #[test]
    fn part_of_a_message_is_enough_and_a_stray_word_is_not() {
        assert_eq!(messages_of("Lost the lease"), ["lost the lease: stopping its jobs"]);
        assert!(messages_of("lease").contains(&"lost the lease: stopping its jobs"));
        assert_eq!(messages_of("of"), [""; 0]);
        assert_eq!(messages_of("redis has not served for 10s").len(), 1, "a line that is cut");
        assert_eq!(messages_of("kernel: oops, a fault of another program"), [""; 0]);
    }

    #[test]
    fn every_row_with_words_of_its_own_explains_its_message() {
        let has_words =
            |row: &Explanation| row.message.replace(['…', ' '], "").len() >= OWN_LEN_MIN;
        for row in rows().filter(has_words) {
            let line = row.message.replace('…', "x");
            let found = messages_of(&line);
            assert!(found.contains(&row.message), "{}: {found:?}", row.message);
            assert!(!row.meaning.is_empty(), "{}", row.message);
        }
    }
}
