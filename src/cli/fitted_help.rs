//! Fits the examples and remarks below a help into a terminal: the library would break a command in the middle, and leave
//! single words of lines that are broken already.

use std::iter::Peekable;

use clap::Command;

use super::table::wrapped;

/// The least room for the text of a line.
const ROOM_MIN: usize = 20;

/// Returns the command with the text below its help, also of its subcommands, in lines of so many columns.
pub(super) fn fitted(command: Command, columns: usize) -> Command {
    let text = command.get_after_help().map(|text| fitted_text(&text.to_string(), columns));
    let command = match text {
        Some(text) => command.after_help(text),
        None => command,
    };
    command.mut_subcommands(|of| fitted(of, columns))
}

fn fitted_text(text: &str, columns: usize) -> String {
    let mut fitted = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(first) = lines.next() {
        let (indent, at) = (indent(first), text_column(first));
        let is_example = indent > 0 && at == indent;
        let mut block = vec![first];
        if !is_example && !first.is_empty() {
            block.extend(continuation(&mut lines, at));
        }
        if block.iter().all(|line| line.chars().count() <= columns) {
            fitted.extend(block.into_iter().map(str::to_owned));
        } else if is_example {
            fitted.extend(broken(first, indent, columns));
        } else if first[at..].starts_with("# ") && at + ROOM_MIN > columns {
            // No room beside the command.
            fitted.extend(broken(first[..at].trim_end(), indent, columns));
            let comment =
                [&first[at..]].into_iter().chain(block[1..].iter().map(|line| line.trim()));
            fitted.extend(comment.map(|line| format!("{}{line}", " ".repeat(indent + 4))));
        } else {
            fitted.extend(rewrapped(&block, at, columns));
        }
    }
    fitted.join("\n")
}

/// Takes the lines that continue a paragraph, or a text in this column.
fn continuation<'t>(
    lines: &mut Peekable<impl Iterator<Item = &'t str>>,
    at: usize,
) -> Vec<&'t str> {
    let goes_on = |line: &&str| !line.is_empty() && indent(line) == at && text_column(line) == at;
    std::iter::from_fn(|| lines.next_if(goes_on)).collect()
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Returns where the text of a line begins: of one with a name, after the space behind it.
fn text_column(line: &str) -> usize {
    let indent = indent(line);
    let gap = line[indent..].find("  ").filter(|_| indent > 0);
    gap.map_or(indent, |gap| {
        let gap = indent + gap;
        gap + line[gap..].len() - line[gap..].trim_start().len()
    })
}

/// Wraps a text behind its name; each line of a comment is one.
fn rewrapped(block: &[&str], at: usize, columns: usize) -> Vec<String> {
    let (name, first) = block[0].split_at(at);
    let sign = if at > 0 && first.starts_with("# ") { "# " } else { "" };
    let lines = [first].into_iter().chain(block[1..].iter().map(|line| line.trim_start()));
    let text: Vec<&str> = lines.map(|line| line.strip_prefix(sign).unwrap_or(line)).collect();
    let room = columns.saturating_sub(name.chars().count() + sign.len()).max(ROOM_MIN);
    let space = " ".repeat(name.chars().count());
    let lines = wrapped(&text.join(" "), room, "").into_iter().enumerate();
    lines
        .map(|(place, line)| format!("{}{sign}{line}", if place == 0 { name } else { &space }))
        .collect()
}

/// Breaks a command as a shell takes it, between its words.
fn broken(line: &str, indent: usize, columns: usize) -> Vec<String> {
    let (mut lines, mut rest) = (Vec::new(), line.to_owned());
    while rest.chars().count() > columns {
        let Some(at) = last_space(&rest, columns.saturating_sub(2)) else { break };
        lines.push(format!("{} \\", &rest[..at]));
        rest = format!("{}{}", " ".repeat(indent + 4), &rest[at + 1..]);
    }
    lines.push(rest);
    lines
}

/// Returns the last space outside of quotes, within so many columns and behind the indentation.
fn last_space(line: &str, columns: usize) -> Option<usize> {
    let (mut quote, mut last) = (None, None);
    for (place, letter) in line.char_indices().take(columns + 1) {
        match (letter, quote) {
            ('\'' | '"', None) => quote = Some(letter),
            (letter, Some(of)) if letter == of => quote = None,
            (' ', None) if place > indent(line) => last = Some(place),
            _ => {}
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn text_is_wrapped_behind_its_name_and_a_command_between_its_words() {
        let text = "Examples:\n  hero exec --timeout 2h 'a b c d' file.py\n  hero show one   # a comment that goes on\n\
                    \u{20}                 # and on\n\nA paragraph that is broken at its end\nat another width.\n  name  its text in \
                    a column of its own\n        and more";
        let fitted = "Examples:\n  hero exec --timeout 2h 'a b c d' \\\n      file.py\n  hero show one   # a comment that goes\n\
                      \u{20}                 # on and on\n\nA paragraph that is broken at its end\nat another width.\n  name  its \
                      text in a column of its own\n        and more";
        assert_eq!(fitted_text(text, 40), fitted);
        assert_eq!(fitted_text(text, 60), text);
    }

    #[test]
    fn no_example_of_a_help_is_broken_within_a_word_at_80_columns() {
        fn check(command: &Command, path: &str) {
            let path = format!("{path} {}", command.get_name());
            let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let fitted = fitted_text(&text, 80);
            let joined = fitted.replace(" \\\n      ", " ");
            for line in text.lines().filter(|line| line.starts_with("  hero ")) {
                let command = line.split("   ").next().unwrap_or_default();
                assert!(joined.contains(command), "{path}: {line}\n{fitted}");
            }
            for line in fitted.lines() {
                assert!(line.chars().count() <= 80, "{path}: {line}");
            }
            command.get_subcommands().for_each(|sub| check(sub, &path));
        }
        check(&Cli::command(), "");
    }
}
