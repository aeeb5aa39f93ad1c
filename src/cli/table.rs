//! Tables for the terminal: aligned columns, control characters escaped.

use std::collections::BTreeSet;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::look::OutputLook;
use crate::proto::text::escape;

/// The least width of a cell that is cut.
const CUT_MIN: usize = 8;
/// Cells below this width are cut only once all optional columns are left out.
const CUT_COMFORT: usize = 32;
/// The first part of an id that is shown at a terminal, longer if it is not unique in its table.
const ID_SHOWN: usize = 8;
/// The space between columns.
const GAP: usize = 2;

/// Rows below a line of titles.
pub(super) struct TextTable {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

/// A column. All but its title and its alignment matter at a terminal only.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a mark of its own")]
struct Column {
    title: &'static str,
    /// Aligned to the right, for numbers.
    right: bool,
    /// Ids; the first part is shown.
    id: bool,
    /// Cut where the table is too wide.
    cut: bool,
    /// Left out where the table is still too wide.
    optional: bool,
    /// States, which have colours.
    state: bool,
}

impl Column {
    fn of(title: &'static str) -> Self {
        let mut column = Self { title, ..Self::default() };
        loop {
            let mark = match column.title.chars().next() {
                Some('>') => &mut column.right,
                Some('#') => &mut column.id,
                Some('~') => &mut column.cut,
                Some('?') => &mut column.optional,
                Some('*') => &mut column.state,
                _ => return column,
            };
            *mark = true;
            column.title = &column.title[1..];
        }
    }
}

impl TextTable {
    /// A table with these titles. Marks before a title: `>` aligns its column to the right; at a terminal,
    /// `#` shortens ids, `~` cuts cells where the table is too wide, `?` leaves the column out where that is
    /// not enough, `*` colours states.
    pub(super) fn new(titles: &[&'static str]) -> Self {
        Self { columns: titles.iter().map(|title| Column::of(title)).collect(), rows: Vec::new() }
    }

    /// Adds a row. Escapes control characters; shows an empty cell as `-`.
    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let cells = cells.into_iter().map(|cell| match cell.as_str() {
            "" => "-".to_owned(),
            text => escape(text),
        });
        self.rows.push(cells.collect());
    }

    /// The table as text in full, without spaces at the ends of lines.
    pub(super) fn render(&self) -> String {
        self.show(OutputLook::PLAIN)
    }

    /// The table as text for standard output with this look.
    pub(super) fn show(&self, look: OutputLook) -> String {
        let mut shown: Vec<usize> = (0..self.columns.len()).collect();
        let mut cells: Vec<Vec<String>> = self.rows.clone();
        let mut widths = self.widths(&cells);
        if let Some(columns) = look.columns {
            self.shorten_ids(&mut cells);
            widths = self.widths(&cells);
            let may_lack = |column: &Column| column.optional || column.cut;
            shown.retain(|number| !(may_lack(&self.columns[*number]) && is_empty(&cells, *number)));
            while !self.fit(&mut widths, &shown, columns, CUT_COMFORT) {
                let left_out = shown.iter().rposition(|column| self.columns[*column].optional);
                let Some(left_out) = left_out else {
                    self.fit(&mut widths, &shown, columns, CUT_MIN);
                    break;
                };
                shown.remove(left_out);
                widths = self.widths(&cells);
            }
        }
        let mut text = self.line(&shown, &widths, |column| {
            let title = cut(self.columns[column].title, widths[column]);
            (width(&title), look.bold(&title))
        });
        for row in &cells {
            text += &self.line(&shown, &widths, |column| {
                let word = row.get(column).map(String::as_str).unwrap_or_default();
                let part = cut(word, widths[column]);
                let is_state = self.columns[column].state;
                (width(&part), if is_state { look.state(word, &part) } else { part })
            });
        }
        text
    }

    /// One line of cells, each with its width on the screen.
    fn line(
        &self,
        shown: &[usize],
        widths: &[usize],
        cell: impl Fn(usize) -> (usize, String),
    ) -> String {
        let mut line = String::new();
        for column in shown {
            let (own, text) = cell(*column);
            let space = " ".repeat(widths[*column].saturating_sub(own));
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

    fn widths(&self, rows: &[Vec<String>]) -> Vec<usize> {
        let widest = |(number, column): (usize, &Column)| {
            let cells = rows.iter().filter_map(|row| row.get(number)).map(|cell| width(cell));
            cells.chain([width(column.title)]).max().unwrap_or_default()
        };
        self.columns.iter().enumerate().map(widest).collect()
    }

    /// Narrows the widest of the columns that may be cut until the table fits, none to less than `min`.
    /// Returns whether it fits.
    fn fit(&self, widths: &mut [usize], shown: &[usize], columns: usize, min: usize) -> bool {
        loop {
            let all: usize = shown.iter().map(|column| widths[*column] + GAP).sum();
            let Some(over) = all.checked_sub(columns + GAP).filter(|over| *over > 0) else {
                return true;
            };
            let may = |column: &&usize| self.columns[**column].cut && widths[**column] > min;
            let widest = shown.iter().filter(may).max_by_key(|column| widths[**column]);
            let Some(widest) = widest.copied() else { return false };
            let others = shown.iter().filter(|column| **column != widest).filter(may);
            let next = others.map(|column| widths[*column]).max().unwrap_or(min);
            // To the width of the next, then by one in turn.
            let least = next.clamp(min, widths[widest] - 1);
            widths[widest] = least.max(widths[widest].saturating_sub(over));
        }
    }

    /// Leaves of each UUID the first part that is unique in its column.
    fn shorten_ids(&self, rows: &mut [Vec<String>]) {
        for (number, _) in self.columns.iter().enumerate().filter(|(_, column)| column.id) {
            let ids = rows.iter().filter_map(|row| row.get(number)).filter(|id| is_uuid(id));
            let ids: BTreeSet<String> = ids.cloned().collect();
            let unique = |length: &usize| {
                let parts = ids.iter().map(|id| &id[..*length]);
                parts.collect::<BTreeSet<_>>().len() == ids.len()
            };
            let length = (ID_SHOWN..UUID_LENGTH).find(unique).unwrap_or(UUID_LENGTH);
            let cells = rows.iter_mut().filter_map(|row| row.get_mut(number));
            cells.filter(|id| is_uuid(id)).for_each(|id| id.truncate(length));
        }
    }
}

const UUID_LENGTH: usize = 36;

fn is_uuid(text: &str) -> bool {
    text.len() == UUID_LENGTH
        && text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
        && text.bytes().filter(|byte| *byte == b'-').count() == 4
}

fn is_empty(rows: &[Vec<String>], column: usize) -> bool {
    rows.iter().all(|row| row.get(column).is_none_or(|cell| cell == "-"))
}

/// The columns of a terminal that a text takes.
pub(super) fn width(text: &str) -> usize {
    text.width()
}

/// Returns a text of at most this width; the end of a longer one is replaced by `…`.
pub(super) fn cut(text: &str, most: usize) -> String {
    if width(text) <= most {
        return text.to_owned();
    }
    let mut room = most.saturating_sub(1);
    let fits = |c: &char| {
        let own = c.width().unwrap_or_default();
        let is_in = own <= room;
        room = if is_in { room - own } else { 0 };
        is_in
    };
    let mut part: String = text.chars().take_while(fits).collect();
    part.push('…');
    part
}

/// A name, cut to the width of a table cell.
pub(super) fn shortened(name: &str) -> String {
    const SHOWN_CHARS: usize = 32;
    let mut shown: String = name.chars().take(SHOWN_CHARS).collect();
    if shown.len() < name.len() {
        shown.push('…');
    }
    shown
}

/// The first line of an error, cut to the width of a table cell.
pub(super) fn first_line(error: &str) -> String {
    const SHOWN_CHARS: usize = 80;
    let line = error.lines().next().unwrap_or_default();
    let mut shown: String = line.chars().take(SHOWN_CHARS).collect();
    if shown.len() < error.trim_end().len() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_lines_end_without_spaces() {
        let mut table = TextTable::new(&["NAME", ">COUNT", "NOTE"]);
        table.row(["osis".to_owned(), "7".to_owned(), String::new()]);
        table.row(["größer".to_owned(), "1234567".to_owned(), "x".to_owned()]);
        assert_eq!(
            table.render(),
            "NAME      COUNT  NOTE\n\
             osis          7  -\n\
             größer  1234567  x\n"
        );
    }

    const TERMINAL: OutputLook = OutputLook { columns: Some(40), colour: false };

    fn of_jobs(error: &str) -> TextTable {
        let mut table = TextTable::new(&["#ID", "*STATUS", "?TYPE", "~ERROR"]);
        for id in ["7f9c2ba4-e88f-4cc3-a4b0-55d1c0e2a9f7", "7f9c2ba4-a88f-4cc3-a4b0-55d1c0e2a9f7"] {
            table.row([id, "error", "python", error].map(str::to_owned));
        }
        table
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
        let narrow = OutputLook { columns: Some(30), ..TERMINAL };
        let shown = of_jobs("a rather long sentence").show(narrow);
        assert!(shown.lines().all(|line| width(line) <= 30), "{shown}");
        assert!(!shown.contains("python"), "{shown}");
        let full = of_jobs("a rather long sentence that does not fit").render();
        assert!(
            full.contains("55d1c0e2a9f7  error   python  a rather long sentence that does not fit")
        );
    }

    #[test]
    fn wide_characters_take_two_columns() {
        let mut table = TextTable::new(&["~NAME", ">COUNT"]);
        table.row(["日本語".to_owned(), "7".to_owned()]);
        table.row(["abc".to_owned(), "70".to_owned()]);
        assert_eq!(table.render(), "NAME    COUNT\n日本語      7\nabc        70\n");
        assert_eq!((cut("日本語", 5), cut("日本語", 6)), ("日本…".to_owned(), "日本語".to_owned()));
        assert_eq!(cut("日本語", 4), "日…");
    }

    #[test]
    fn colours_do_not_move_the_columns() {
        let look = OutputLook { columns: None, colour: true };
        let shown = of_jobs("no").show(look);
        let plain = without_colours(&shown);
        assert_eq!(plain, of_jobs("no").render());
        assert!(shown.contains("\u{1b}[31merror\u{1b}[0m"), "{shown}");
    }

    /// The text without its colours.
    fn without_colours(text: &str) -> String {
        let mut parts = text.split('\u{1b}');
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |text, part| text + part.split_once('m').map_or("", |(_, rest)| rest))
    }
}
