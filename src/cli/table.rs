//! Tables for the terminal: aligned columns, control characters escaped.

mod layout;

use std::collections::BTreeSet;
use std::fmt::Write;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use self::layout::{Column, GAP, INDENT, Layout, Measured};
use super::terminal_style::TerminalStyle;
use crate::proto::job::JobId;
use crate::proto::text::escape;

const NOTHING: &str = "-";
/// Stands for what is cut off.
const MARK: &str = "…";

/// A table with a row for each item.
pub(super) struct TextTable<'i, T> {
    items: &'i [T],
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

impl<'i, T> TextTable<'i, T> {
    /// A table of these items, whose columns come one by one.
    pub(super) fn of(items: &'i [T]) -> Self {
        Self { items, columns: Vec::new(), rows: vec![Vec::new(); items.len()] }
    }

    /// Adds a column: its title, and what it shows of an item, with control characters escaped, and `-` for nothing. Marks
    /// before the title: `>` aligns the column to the right; at a terminal, `#` shortens ids, `~` cuts cells where the
    /// table is too wide, `!` cuts the main column last, `?` leaves the column out where that is not enough, `*` colours
    /// states. A table that is still too wide has two lines for each row.
    pub(super) fn column(mut self, title: &'static str, cell: &dyn Fn(&T) -> String) -> Self {
        self.columns.push(Column::of(title));
        for (row, item) in self.rows.iter_mut().zip(self.items) {
            let cell = cell(item);
            row.push(if cell.is_empty() { NOTHING.to_owned() } else { escape(&cell) });
        }
        self
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table as text in full, without spaces at the ends of lines.
    pub(super) fn render(&self) -> String {
        self.show(TerminalStyle::PLAIN)
    }

    /// The table as text for standard output with this look. A terminal shows no titles without a row.
    pub(super) fn show(&self, look: TerminalStyle) -> String {
        if self.rows.is_empty() && look.columns.is_some() {
            return String::new();
        }
        let mut cells: Vec<Vec<String>> = self.rows.clone();
        if look.columns.is_some() {
            self.shorten_ids(&mut cells);
        }
        let widths = self.widest(&cells, |_, cell| cell.width());
        // Never cut are titles, and the word of a state without its reason.
        let floors = self.widest(&cells, |column, cell| match cell.split_once([',', ':']) {
            _ if !column.state => 0,
            Some((word, _)) => word.width() + 1,
            None => cell.width(),
        });
        let measured = Measured { columns: &self.columns, widths: &widths, floors: &floors };
        let layout = match look.columns {
            Some(terminal) => measured.fitted(&self.not_empty(&cells), terminal),
            None => measured.in_full(),
        };
        let mut text = String::new();
        for number in 0..layout.lines.len() {
            text += &self.line(&layout, number, |column| {
                let title = cut(self.columns[column].title, layout.widths[column], MARK);
                (title.width(), look.bold(&title))
            });
        }
        for row in &cells {
            let word = |column: usize| row.get(column).map_or("", String::as_str);
            for (number, line) in layout.lines.iter().enumerate() {
                if number > 0 && line.iter().all(|column| word(*column) == NOTHING) {
                    continue;
                }
                text += &self.line(&layout, number, |column| {
                    let part = cut(word(column), layout.widths[column], MARK);
                    let is_state = self.columns[column].state;
                    (part.width(), if is_state { look.state(word(column), &part) } else { part })
                });
            }
        }
        text
    }

    /// The same, indented as a part of a page.
    pub(super) fn indented(&self, look: TerminalStyle) -> String {
        let columns = look.columns.map(|columns| columns.saturating_sub(2));
        self.show(TerminalStyle { columns, ..look })
            .lines()
            .flat_map(|line| ["  ", line, "\n"])
            .collect()
    }

    /// The columns that a terminal shows: not those that a narrow one may lack, if they are empty.
    fn not_empty(&self, rows: &[Vec<String>]) -> Vec<usize> {
        let may_lack = |column: &Column| column.optional || column.cut || column.main;
        let is_shown =
            |number: &usize| !(may_lack(&self.columns[*number]) && is_empty(rows, *number));
        (0..self.columns.len()).filter(is_shown).collect()
    }

    /// One line of cells, each with its width on the screen.
    fn line(
        &self,
        layout: &Layout,
        number: usize,
        cell: impl Fn(usize) -> (usize, String),
    ) -> String {
        let mut line = if number == 0 { String::new() } else { " ".repeat(INDENT) };
        for column in &layout.lines[number] {
            let (own, text) = cell(*column);
            let space = " ".repeat(layout.widths[*column].saturating_sub(own));
            let (before, after) =
                if self.columns[*column].right { (&space[..], "") } else { ("", &space[..]) };
            for part in [before, &text, after, &" ".repeat(GAP)] {
                line.push_str(part);
            }
        }
        line.truncate(line.trim_end().len());
        line.push('\n');
        line
    }

    /// The width of each column: of its title, or the most that a cell takes.
    fn widest(&self, rows: &[Vec<String>], taken: impl Fn(&Column, &str) -> usize) -> Vec<usize> {
        let widest = |(number, column): (usize, &Column)| {
            let cells = rows.iter().filter_map(|row| row.get(number));
            let cells = cells.map(|cell| taken(column, cell));
            cells.chain([column.title.width()]).max().unwrap_or_default()
        };
        self.columns.iter().enumerate().map(widest).collect()
    }

    /// Leaves of each UUID the first part that is unique in its column.
    fn shorten_ids(&self, rows: &mut [Vec<String>]) {
        for (number, _) in self.columns.iter().enumerate().filter(|(_, column)| column.id) {
            let ids = rows.iter().filter_map(|row| row.get(number)).filter(|id| JobId::is_uuid(id));
            let ids: BTreeSet<String> = ids.cloned().collect();
            let unique = |length: &usize| {
                let parts = ids.iter().map(|id| &id[..*length]);
                parts.collect::<BTreeSet<_>>().len() == ids.len()
            };
            let lengths = JobId::SHORT_CHARS..JobId::UUID_CHARS;
            let length = lengths.into_iter().find(unique).unwrap_or(JobId::UUID_CHARS);
            let cells = rows.iter_mut().filter_map(|row| row.get_mut(number));
            cells.filter(|id| JobId::is_uuid(id)).for_each(|id| id.truncate(length));
        }
    }
}

fn is_empty(rows: &[Vec<String>], column: usize) -> bool {
    rows.iter().all(|row| row.get(column).is_none_or(|cell| cell == NOTHING))
}

/// Returns a text of at most this width; the end of a longer one is replaced by a mark of one column.
pub(super) fn cut(text: &str, most: usize, mark: &str) -> String {
    if text.width() <= most {
        return text.to_owned();
    }
    let mut room = most.saturating_sub(1);
    let fits = |c: &char| {
        let own = c.width().unwrap_or_default();
        let is_in = own <= room;
        room = if is_in { room - own } else { 0 };
        is_in
    };
    text.chars().take_while(fits).chain(mark.chars()).collect()
}

/// Returns a text of at most this width: a mark stands for what is missing after its first `head` letters.
pub(super) fn without_middle(text: &str, width: usize, head: usize, mark: &str) -> String {
    let letters: Vec<char> = text.chars().collect();
    if letters.len() <= width {
        return text.to_owned();
    }
    let tail = letters.len() - width.saturating_sub(head + 1);
    letters[..head]
        .iter()
        .copied()
        .chain(mark.chars())
        .chain(letters[tail..].iter().copied())
        .collect()
}

/// Returns a text in lines of at most so many characters, unless a word is longer; `indent` begins all but the first.
pub(super) fn wrapped(text: &str, width: usize, indent: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_) => lines.push(format!("{indent}{word}")),
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Returns facts as lines, with their names in a column of this width; one without a value is left out.
pub(super) fn facts<'f>(
    width: usize,
    facts: impl IntoIterator<Item = (&'f str, String)>,
) -> String {
    let mut text = String::new();
    for (name, value) in facts.into_iter().filter(|(_, value)| !value.is_empty()) {
        let _ = writeln!(text, "{name:width$} {}", escape(&value));
    }
    text
}

/// A name, cut to the width of a table cell.
pub(super) fn shortened(name: &str) -> String {
    begin(name, 32)
}

/// The start of a text, with a mark if more follows.
pub(super) fn begin(text: &str, chars_max: usize) -> String {
    let mut shown: String = text.chars().take(chars_max).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

/// The first line of an error, cut to the width of a table cell.
pub(super) fn first_line(error: &str) -> String {
    let line = error.lines().next().unwrap_or_default();
    begin(error.trim_end(), line.chars().count().min(80))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_lines_end_without_spaces() {
        let table = TextTable::of(&[("osis", 7, ""), ("größer", 1_234_567, "x")])
            .column("NAME", &|of| of.0.to_owned())
            .column(">COUNT", &|of| of.1.to_string())
            .column("NOTE", &|of| of.2.to_owned());
        assert_eq!(
            table.render(),
            "NAME      COUNT  NOTE\n\
             osis          7  -\n\
             größer  1234567  x\n"
        );
    }

    const TERMINAL: TerminalStyle = TerminalStyle { columns: Some(40), colour: false };

    const IDS: [&str; 2] =
        ["7f9c2ba4-e88f-4cc3-a4b0-55d1c0e2a9f7", "7f9c2ba4-a88f-4cc3-a4b0-55d1c0e2a9f7"];

    fn of_jobs(error: &str) -> TextTable<'static, &'static str> {
        TextTable::of(&IDS)
            .column("#ID", &|id| (*id).to_owned())
            .column("*STATUS", &|_| "error".to_owned())
            .column("?TYPE", &|_| "python".to_owned())
            .column("~ERROR", &|_| error.to_owned())
    }

    #[test]
    fn terminal_gets_unique_short_ids_and_cut_cells() {
        let shown = of_jobs("a rather long sentence that does not fit").show(TERMINAL);
        assert_eq!(
            shown,
            "ID          STATUS  ERROR\n\
             7f9c2ba4-e  error   a rather long sente…\n\
             7f9c2ba4-a  error   a rather long sente…\n"
        );
        let wide = of_jobs("short").show(TERMINAL);
        assert!(wide.contains("python"), "{wide}");
        let narrow = TerminalStyle { columns: Some(30), ..TERMINAL };
        let shown = of_jobs("a rather long sentence").show(narrow);
        assert!(shown.lines().all(|line| line.width() <= 30), "{shown}");
        assert!(!shown.contains("python"), "{shown}");
        let full = of_jobs("a rather long sentence that does not fit").render();
        assert!(
            full.contains("55d1c0e2a9f7  error   python  a rather long sentence that does not fit")
        );
    }

    #[test]
    fn wide_characters_take_two_columns() {
        let table = TextTable::of(&[("日本語", 7), ("abc", 70)])
            .column("~NAME", &|of| of.0.to_owned())
            .column(">COUNT", &|of| of.1.to_string());
        assert_eq!(table.render(), "NAME    COUNT\n日本語      7\nabc        70\n");
        let parts = [6, 5, 4].map(|most| cut("日本語", most, MARK));
        assert_eq!(parts, ["日本語", "日本…", "日…"]);
    }

    #[test]
    fn colours_do_not_move_the_columns() {
        let look = TerminalStyle { columns: None, colour: true };
        let shown = of_jobs("no").show(look);
        let plain = without_colours(&shown);
        assert_eq!(plain, of_jobs("no").render());
        assert!(shown.contains("\u{1b}[31merror\u{1b}[0m"), "{shown}");
    }

    fn without_colours(text: &str) -> String {
        let mut parts = text.split('\u{1b}');
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |text, part| text + part.split_once('m').map_or("", |(_, rest)| rest))
    }
}
