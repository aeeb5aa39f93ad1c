//! The style of standard output: its width and colours, if it is a terminal.

use std::io::{self, IsTerminal};

use clap::ValueEnum;
use ratatui::crossterm::terminal::window_size;

use crate::proto::job::JobStatus;
use crate::proto::text::escape_lines;

/// The width of a terminal that does not tell its own.
const COLUMNS_UNKNOWN: usize = 80;
const GREEN: &str = "32";
const YELLOW: &str = "33";
const BLUE: &str = "34";
const RED: &str = "31";
const CYAN: &str = "36";
const BOLD: &str = "1";
const PLAIN: &str = "0";
const CODES: [&str; 7] = [GREEN, YELLOW, BLUE, RED, CYAN, BOLD, PLAIN];
/// Below this width nothing is cut further.
const COLUMNS_MIN: usize = 20;

/// The wish for colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(super) enum ColorChoice {
    /// At a terminal, unless `NO_COLOR` is set or `TERM` is `dumb`
    #[default]
    Auto,
    /// In files and pipes too
    Always,
    /// Nowhere
    Never,
}

impl ColorChoice {
    pub(super) fn is_on(self, is_terminal: bool) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => {
                is_terminal && variable("NO_COLOR").is_empty() && variable("TERM") != "dumb"
            }
        }
    }
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

/// Returns the width of a help: of the terminal, or what `COLUMNS` says, else 100 columns for a file or a pipe.
pub(super) fn help_columns() -> usize {
    const COLUMNS_OF_FILE: usize = 100;
    let columns = TerminalStyle::of_output(ColorChoice::Never).columns;
    columns.or_else(set_columns).unwrap_or(COLUMNS_OF_FILE).max(COLUMNS_MIN)
}

fn set_columns() -> Option<usize> {
    variable("COLUMNS").parse().ok().filter(|columns| *columns > 0)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TerminalStyle {
    /// The width of the terminal; `None` for files and pipes, which get everything in full.
    pub(super) columns: Option<usize>,
    pub(super) colour: bool,
}

impl TerminalStyle {
    /// For a file or a pipe.
    pub(super) const PLAIN: Self = Self { columns: None, colour: false };

    /// Reads it from standard output and the environment.
    pub(super) fn of_output(choice: ColorChoice) -> Self {
        let is_terminal = io::stdout().is_terminal();
        let told = || window_size().ok().map(|size| usize::from(size.columns));
        let columns = is_terminal.then(|| told().filter(|columns| *columns > 0));
        let columns =
            columns.map(|columns| columns.or_else(set_columns).unwrap_or(COLUMNS_UNKNOWN));
        Self {
            columns: columns.map(|columns| columns.max(COLUMNS_MIN)),
            colour: choice.is_on(is_terminal),
        }
    }

    /// Colours a word for a state by its meaning; `shown` may be a part of the word.
    pub(super) fn state(self, word: &str, shown: &str) -> String {
        match colour_of(word).filter(|_| self.colour) {
            Some(code) => format!("\u{1b}[{code}m{shown}\u{1b}[{PLAIN}m"),
            None => shown.to_owned(),
        }
    }

    pub(super) fn bold(self, shown: &str) -> String {
        if self.colour { format!("\u{1b}[{BOLD}m{shown}\u{1b}[{PLAIN}m") } else { shown.to_owned() }
    }
}

/// Escapes the control characters of a text of this program but line ends, tabs, and what [`TerminalStyle`] writes.
pub(super) fn escape_foreign(text: &str) -> String {
    let mut parts = text.split('\u{1b}');
    let mut shown = escape_lines(parts.next().unwrap_or_default());
    for part in parts {
        let code = part.strip_prefix('[').and_then(|rest| rest.split_once('m'));
        match code.filter(|(code, _)| CODES.contains(code)) {
            Some((code, rest)) => {
                shown.extend(["\u{1b}[", code, "m", &escape_lines(rest)]);
            }
            None => shown += &escape_lines(&format!("\u{1b}{part}")),
        }
    }
    shown
}

/// The colour of a state: green went well, red did not, yellow was held up by a person, cyan runs, blue
/// waits.
fn colour_of(word: &str) -> Option<&'static str> {
    // An actor's state may have its reason after it.
    let first = word.split(|c: char| !(c.is_ascii_lowercase() || c == '_')).next()?;
    if let Ok(status) = first.parse::<JobStatus>() {
        return Some(match status {
            JobStatus::Finished => GREEN,
            JobStatus::Error => RED,
            JobStatus::Started => CYAN,
            JobStatus::Created
            | JobStatus::WaitingForPrerequisites
            | JobStatus::Scheduled
            | JobStatus::Dispatched => BLUE,
        });
    }
    match first {
        "cancelled" | "replaced" | "stopped" | "paused" | "draining" | "held" | "disabled" => {
            Some(YELLOW)
        }
        "running" => Some(CYAN),
        "waiting" => Some(BLUE),
        "failed" | "lost" | "crashed" | "failing" | "expired" => Some(RED),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_but_those_of_a_style_are_escaped() {
        let look = TerminalStyle { columns: None, colour: true };
        let own = format!("{} {}\n\t", look.state("error", "error"), look.bold("TYPE"));
        assert_eq!(escape_foreign(&own), own);
        for (text, shown) in [
            ("a\u{1b}[2Jb", "a\\u{1b}[2Jb"),
            ("\u{1b}[8mb\u{1b}[31;8mm", "\\u{1b}[8mb\\u{1b}[31;8mm"),
            ("\u{1b}]0;t\u{7}\u{1b}", "\\u{1b}]0;t\\u{7}\\u{1b}"),
            ("\r\u{9b}1m\u{202e}", "\\r\\u{9b}1m\\u{202e}"),
        ] {
            assert_eq!(escape_foreign(text), shown);
        }
    }

    #[test]
    fn state_has_the_colour_of_its_meaning() {
        let look = TerminalStyle { columns: None, colour: true };
        assert_eq!(look.state("error", "error"), "\u{1b}[31merror\u{1b}[0m");
        assert_eq!(look.state("finished", "fin…"), "\u{1b}[32mfin…\u{1b}[0m");
        assert_eq!(look.state("draining, holding: load", "d…"), "\u{1b}[33md…\u{1b}[0m");
        assert_eq!(look.state("open", "open"), "open");
        assert_eq!(TerminalStyle::PLAIN.state("error", "error"), "error");
    }
}
