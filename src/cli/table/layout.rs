//! The layout of a table at a terminal: which columns are shown, how wide, and in how many lines a row stands.

pub(super) const GAP: usize = 2;
/// The indent of the second line of a row.
pub(super) const INDENT: usize = 2;

/// The widths to which columns are narrowed, the main one last, before optional columns are left out.
const COMFORT: [Narrowest; 2] = [Narrowest { cut: 32, main: 48 }, Narrowest { cut: 16, main: 32 }];
/// The widths to which they are narrowed once all optional columns are left out.
const TIGHT: Narrowest = Narrowest { cut: 8, main: 24 };
/// The lines of a row, unless more are needed without any optional column.
const LINES: usize = 2;

/// The least widths of the columns that are cut, and of the main one.
#[derive(Clone, Copy)]
struct Narrowest {
    cut: usize,
    main: usize,
}

/// A column. All but its title and its alignment matter at a terminal only.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a mark of its own")]
pub(super) struct Column {
    pub(super) title: &'static str,
    /// Aligned to the right, for numbers.
    pub(super) right: bool,
    /// Ids, of which the first part is shown.
    pub(super) id: bool,
    /// Cut where the table is too wide.
    pub(super) cut: bool,
    /// Left out where the table is still too wide.
    pub(super) optional: bool,
    /// States, which have colours; the word of a state is never cut.
    pub(super) state: bool,
    /// The subject of the table: cut last, and first given a line alone.
    pub(super) main: bool,
}

impl Column {
    /// Reads the marks before a title.
    pub(super) fn of(title: &'static str) -> Self {
        let mut column = Self { title, ..Self::default() };
        loop {
            let mark = match column.title.chars().next() {
                Some('>') => &mut column.right,
                Some('#') => &mut column.id,
                Some('~') => &mut column.cut,
                Some('?') => &mut column.optional,
                Some('*') => &mut column.state,
                Some('!') => &mut column.main,
                _ => return column,
            };
            *mark = true;
            column.title = &column.title[1..];
        }
    }
}

pub(super) struct Layout {
    /// The columns in each line of a row.
    pub(super) lines: Vec<Vec<usize>>,
    pub(super) widths: Vec<usize>,
}

pub(super) struct Measured<'a> {
    pub(super) columns: &'a [Column],
    /// The width of the widest cell of each column, its title included.
    pub(super) widths: &'a [usize],
    /// The width below which each column is never cut.
    pub(super) floors: &'a [usize],
}

impl Measured<'_> {
    /// Returns all columns in one line, in full.
    pub(super) fn in_full(&self) -> Layout {
        Layout { lines: vec![(0..self.columns.len()).collect()], widths: self.widths.to_vec() }
    }

    /// Returns the layout of these columns for a terminal of this width.
    pub(super) fn fitted(&self, shown: &[usize], terminal: usize) -> Layout {
        let mut kept = shown.to_vec();
        loop {
            for narrowest in COMFORT {
                if let Some(widths) = self.narrowed(&kept, terminal, narrowest) {
                    return Layout { lines: vec![kept], widths };
                }
            }
            let Some(left_out) = self.last_optional(&kept) else { break };
            kept.remove(left_out);
        }
        match self.narrowed(&kept, terminal, TIGHT) {
            Some(widths) => Layout { lines: vec![kept], widths },
            None => self.in_lines(shown.to_vec(), terminal),
        }
    }

    fn last_optional(&self, columns: &[usize]) -> Option<usize> {
        columns.iter().rposition(|column| self.columns[*column].optional)
    }

    /// Returns the width to which a column may be narrowed.
    fn least(&self, column: usize, narrowest: Narrowest) -> usize {
        let Column { cut, main, .. } = self.columns[column];
        let least = match (main, cut) {
            (true, _) => narrowest.main,
            (_, true) => narrowest.cut,
            _ => return self.widths[column],
        };
        least.max(self.floors[column]).min(self.widths[column])
    }

    /// Narrows the widest of the columns that may be cut until a line of these columns fits, and last the main
    /// one. `None` if they do not fit.
    fn narrowed(
        &self,
        line: &[usize],
        terminal: usize,
        narrowest: Narrowest,
    ) -> Option<Vec<usize>> {
        let mut widths = self.widths.to_vec();
        loop {
            let all = length(line.iter().map(|column| widths[*column]));
            let Some(over) = all.checked_sub(terminal).filter(|over| *over > 0) else {
                return Some(widths);
            };
            let may = |column: &&usize| widths[**column] > self.least(**column, narrowest);
            let is_main = |column: &usize| self.columns[*column].main;
            let widest = line.iter().filter(may).max_by_key(|of| (!is_main(of), widths[**of]));
            let widest = *widest?;
            let others = line.iter().filter(may).filter(|of| **of != widest && !is_main(of));
            let next = others.map(|column| widths[*column]).max().unwrap_or_default();
            // To the width of the next, then by one in turn.
            let next = next.min(widths[widest] - 1).max(self.least(widest, narrowest));
            widths[widest] = next.max(widths[widest].saturating_sub(over));
        }
    }

    /// Returns rows of two lines; of more if even without the optional columns two are too narrow.
    fn in_lines(&self, mut shown: Vec<usize>, terminal: usize) -> Layout {
        let mut lines = self.packed(&shown, terminal);
        while lines.len() > LINES {
            let Some(left_out) = self.last_optional(&shown) else { break };
            shown.remove(left_out);
            lines = self.packed(&shown, terminal);
        }
        let mut widths = self.widths.to_vec();
        for (number, line) in lines.iter().enumerate() {
            let room = terminal.saturating_sub(if number == 0 { 0 } else { INDENT });
            let mut steps = COMFORT.into_iter().chain([TIGHT]);
            let narrowed = steps.find_map(|narrowest| self.narrowed(line, room, narrowest));
            let Some(narrowed) = narrowed else { continue };
            for column in line {
                widths[*column] = narrowed[*column];
            }
        }
        Layout { lines, widths }
    }

    /// Fills lines with columns in turn, and then the main one: on the line before only if that is not the first and
    /// has room for it. If it is the first column, it has the first line.
    fn packed(&self, shown: &[usize], terminal: usize) -> Vec<Vec<usize>> {
        let main = shown.iter().position(|column| self.columns[*column].main);
        let mut others = shown.to_vec();
        let main = main.map(|place| (place, others.remove(place)));
        let mut lines: Vec<Vec<usize>> = match main {
            Some((0, column)) => vec![vec![column]],
            _ => Vec::new(),
        };
        let mut used = terminal;
        for column in others {
            let own = self.least(column, TIGHT);
            if let Some(line) = lines.last_mut().filter(|_| used + GAP + own <= terminal) {
                line.push(column);
                used += GAP + own;
            } else {
                used = own + if lines.is_empty() { 0 } else { INDENT };
                lines.push(vec![column]);
            }
        }
        if let Some((_, column)) = main.filter(|(place, _)| *place > 0) {
            let own = self.least(column, COMFORT[0]);
            let has_room = lines.len() > 1 && used + GAP + own <= terminal;
            match lines.last_mut().filter(|_| has_room) {
                Some(line) => line.push(column),
                None => lines.push(vec![column]),
            }
        }
        lines
    }
}

fn length(widths: impl Iterator<Item = usize>) -> usize {
    widths.map(|width| width + GAP).sum::<usize>().saturating_sub(GAP)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(titles: &[&'static str], widths: &[usize], terminal: usize) -> Layout {
        let columns: Vec<Column> = titles.iter().map(|title| Column::of(title)).collect();
        let floors: Vec<usize> = columns.iter().map(|column| column.title.len()).collect();
        let measured = Measured { columns: &columns, widths, floors: &floors };
        measured.fitted(&(0..columns.len()).collect::<Vec<_>>(), terminal)
    }

    #[test]
    fn main_column_is_narrowed_last() {
        let titles = [">JOBS", "!ERROR", "LAST", "~TYPES"];
        let shown = layout(&titles, &[4, 80, 6, 40], 100);
        assert_eq!((shown.lines, shown.widths), (vec![vec![0, 1, 2, 3]], vec![4, 52, 6, 32]));
        let shown = layout(&titles, &[4, 80, 6, 40], 60);
        assert_eq!(shown.widths, [4, 36, 6, 8]);
    }

    #[test]
    fn optional_columns_are_left_out_from_the_right() {
        let shown = layout(&["~NAME", "?TYPE", "?HOST", "!ERROR"], &[10, 6, 10, 40], 64);
        assert_eq!(shown.lines, [vec![0, 1, 2, 3]]);
        let shown = layout(&["~NAME", "?TYPE", "?HOST", "!ERROR"], &[10, 6, 10, 40], 63);
        assert_eq!(shown.lines, [vec![0, 1, 3]]);
    }

    #[test]
    fn row_that_does_not_fit_has_two_lines_with_all_of_its_columns() {
        let titles = ["#ID", "~NAME", "*STATUS", "?TYPE", "STARTS", "!ERROR"];
        let shown = layout(&titles, &[8, 20, 23, 6, 19, 70], 80);
        assert_eq!(shown.lines, [vec![0, 1, 2, 3, 4], vec![5]]);
        // Beside the others the name is cut, never the state; the error has a line for itself.
        assert_eq!(shown.widths, [8, 16, 23, 6, 19, 70]);
        // The queue itself stands first.
        let titles = ["!QUEUE", ">URGENT", ">NORMAL", ">BACKGROUND", ">HELD", "*STATE"];
        let shown = layout(&titles, &[50, 6, 6, 10, 4, 14], 60);
        assert_eq!(shown.lines, [vec![0], vec![1, 2, 3, 4, 5]]);
        assert_eq!(shown.widths[0], 50);
    }

    #[test]
    fn columns_without_a_main_one_are_filled_into_lines_in_turn() {
        let shown = layout(&["A", "B", "?C", "D"], &[20, 20, 20, 20], 50);
        assert_eq!(shown.lines, [vec![0, 1], vec![2, 3]]);
        let shown = layout(&["A", "B", "?C", "D"], &[20, 20, 20, 20], 30);
        assert_eq!(shown.lines, [vec![0], vec![1], vec![3]]);
    }
}
