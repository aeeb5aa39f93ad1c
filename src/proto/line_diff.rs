//! The lines in which two texts differ.

/// The largest table of the comparison; larger texts are compared from their first to their last difference as a whole.
const CELLS_MAX: usize = 4_000_000;
/// The lines without a change around a change.
const CONTEXT: usize = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiffLine<'t> {
    /// Both texts have it.
    Same(&'t str),
    /// The first text alone has it.
    Removed(&'t str),
    /// The second text alone has it.
    Added(&'t str),
}

pub fn line_diff<'t>(one: &'t str, other: &'t str) -> Vec<DiffLine<'t>> {
    let (one, other): (Vec<&str>, Vec<&str>) = (one.lines().collect(), other.lines().collect());
    let begin = one.iter().zip(&other).take_while(|(one, other)| one == other).count();
    let rest = one.len().min(other.len()) - begin;
    let end = one.iter().rev().zip(other.iter().rev()).take(rest);
    let end = end.take_while(|(one, other)| one == other).count();
    let (a, b) = (&one[begin..one.len() - end], &other[begin..other.len() - end]);
    let mut lines: Vec<DiffLine<'t>> =
        one[..begin].iter().map(|line| DiffLine::Same(line)).collect();
    if a.len().saturating_mul(b.len()) > CELLS_MAX {
        lines.extend(a.iter().map(|line| DiffLine::Removed(line)));
        lines.extend(b.iter().map(|line| DiffLine::Added(line)));
    } else {
        between(a, b, &mut lines);
    }
    lines.extend(one[one.len() - end..].iter().map(|line| DiffLine::Same(line)));
    lines
}

/// Compares by the longest sequence of lines that both have.
fn between<'t>(a: &[&'t str], b: &[&'t str], lines: &mut Vec<DiffLine<'t>>) {
    let width = b.len() + 1;
    let mut longest = vec![0u32; (a.len() + 1) * width];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            longest[i * width + j] = if a[i] == b[j] {
                longest[(i + 1) * width + j + 1] + 1
            } else {
                longest[(i + 1) * width + j].max(longest[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < a.len() || j < b.len() {
        if i < a.len() && j < b.len() && a[i] == b[j] {
            lines.push(DiffLine::Same(a[i]));
            (i, j) = (i + 1, j + 1);
        } else if i < a.len()
            && (j == b.len() || longest[(i + 1) * width + j] >= longest[i * width + j + 1])
        {
            lines.push(DiffLine::Removed(a[i]));
            i += 1;
        } else {
            lines.push(DiffLine::Added(b[j]));
            j += 1;
        }
    }
}

/// Returns the lines that differ with some lines around them, each with its sign; empty if none do.
pub fn shown_diff(one: &str, other: &str) -> Vec<String> {
    let lines = line_diff(one, other);
    let changed: Vec<bool> = lines.iter().map(|line| !matches!(line, DiffLine::Same(_))).collect();
    let is_near = |place: usize| {
        let (from, to) = (place.saturating_sub(CONTEXT), (place + CONTEXT + 1).min(changed.len()));
        changed[from..to].contains(&true)
    };
    let mut shown = Vec::new();
    let mut left_out = false;
    for (place, line) in lines.iter().enumerate() {
        if !is_near(place) {
            left_out = true;
            continue;
        }
        if std::mem::take(&mut left_out) {
            shown.push("…".to_owned());
        }
        shown.push(match line {
            DiffLine::Same(line) => format!(" {line}"),
            DiffLine::Removed(line) => format!("-{line}"),
            DiffLine::Added(line) => format!("+{line}"),
        });
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_differ_are_shown_with_those_around() {
        let one = "a\nb\nc\nd\ne\nf\ng\nh\n";
        assert_eq!(shown_diff(one, one), Vec::<String>::new());
        let other = one.replace("g\n", "G\nx\n");
        assert_eq!(shown_diff(one, &other), ["…", " d", " e", " f", "-g", "+G", "+x", " h"]);
        assert_eq!(shown_diff("", "a\n"), ["+a"]);
        assert_eq!(shown_diff("a\nb\na\n", "b\na\nb\n"), ["-a", " b", " a", "+b"]);
        let (large, none) = ("x\n".repeat(5_000), "y\n".repeat(5_000));
        assert_eq!(line_diff(&large, &none).len(), 10_000);
    }
}
