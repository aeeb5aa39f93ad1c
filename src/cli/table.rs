//! Tables for the terminal: aligned columns, control characters escaped.

use crate::proto::text::escape;

/// Rows below a line of titles.
pub(super) struct TextTable {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

struct Column {
    title: &'static str,
    /// Aligned to the right, for numbers.
    right: bool,
}

impl TextTable {
    /// A table with these titles; `>` before a title aligns its column to the right.
    pub(super) fn new(titles: &[&'static str]) -> Self {
        let columns = titles
            .iter()
            .map(|title| match title.strip_prefix('>') {
                Some(title) => Column { title, right: true },
                None => Column { title, right: false },
            })
            .collect();
        Self { columns, rows: Vec::new() }
    }

    /// Adds a row. Escapes control characters; shows an empty cell as `-`.
    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let cells = cells.into_iter().map(|cell| match cell.as_str() {
            "" => "-".to_owned(),
            text => escape(text),
        });
        self.rows.push(cells.collect());
    }

    /// The table as text, without spaces at the ends of lines.
    pub(super) fn render(&self) -> String {
        let titles: Vec<String> = self.columns.iter().map(|c| c.title.to_owned()).collect();
        let lines = || std::iter::once(&titles).chain(&self.rows);
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|column| lines().filter_map(|row| row.get(column)).map(|c| width(c)).max())
            .map(Option::unwrap_or_default)
            .collect();
        let mut text = String::new();
        for row in lines() {
            let mut line = String::new();
            for ((cell, column), most) in row.iter().zip(&self.columns).zip(&widths) {
                let space = " ".repeat(most - width(cell));
                let (before, after) =
                    if column.right { (&space[..], "") } else { ("", &space[..]) };
                for part in [before, cell, after, "  "] {
                    line.push_str(part);
                }
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

fn width(text: &str) -> usize {
    text.chars().count()
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
}
