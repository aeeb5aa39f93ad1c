//! The texts of the table of the configuration: parsed once, written as comments, as a page and as Markdown.

use std::fmt::Write as _;

use crate::manual::{code_block, inline};

pub(crate) struct Prose {
    blocks: Vec<Block>,
    /// The number of blocks that the file has; the page has all.
    in_file: usize,
}

enum Block {
    Paragraph(String),
    Item(String),
    Example(Vec<String>),
}

/// The columns of a comment in the file, and of a line of the page.
const COLUMNS: usize = 88;

impl Prose {
    pub(crate) fn parse(lines: &[&str]) -> Self {
        let (mut blocks, mut in_file, mut goes_on) = (Vec::new(), None, false);
        for line in lines.iter().map(|line| line.strip_prefix(' ').unwrap_or(line)) {
            if line == "---" {
                in_file = Some(blocks.len());
                goes_on = false;
            } else if line.is_empty() {
                goes_on = false;
            } else if let Some(code) = line.strip_prefix("    ") {
                match blocks.last_mut().filter(|_| goes_on) {
                    Some(Block::Example(lines)) => lines.push(code.to_owned()),
                    _ => blocks.push(Block::Example(vec![code.to_owned()])),
                }
                goes_on = true;
            } else if let Some(item) = line.strip_prefix("- ") {
                blocks.push(Block::Item(item.to_owned()));
                goes_on = true;
            } else {
                match blocks.last_mut().filter(|_| goes_on) {
                    Some(Block::Paragraph(text) | Block::Item(text)) => {
                        let _ = write!(text, " {}", line.trim_start());
                    }
                    _ => blocks.push(Block::Paragraph(line.to_owned())),
                }
                goes_on = true;
            }
        }
        Self { in_file: in_file.unwrap_or(blocks.len()), blocks }
    }

    /// Adds a sentence to the last paragraph that the file has.
    pub(crate) fn append(&mut self, sentence: &str) {
        if sentence.is_empty() {
            return;
        }
        let last = self.blocks[..self.in_file].iter_mut().rev().find_map(|block| match block {
            Block::Paragraph(text) => Some(text),
            Block::Item(_) | Block::Example(_) => None,
        });
        if let Some(text) = last {
            let _ = write!(text, " {sentence}");
        }
    }

    pub(crate) fn has_example(&self) -> bool {
        self.blocks[..self.in_file].iter().any(|block| matches!(block, Block::Example(_)))
    }

    pub(crate) fn comment(&self) -> String {
        let mut parts = Vec::new();
        for block in &self.blocks[..self.in_file] {
            parts.push(match block {
                Block::Paragraph(text) | Block::Item(text) => {
                    commented("# ", &wrapped(text, COLUMNS - 2))
                }
                Block::Example(lines) => commented("#     ", lines),
            });
        }
        parts.join("#\n")
    }

    /// Returns the text as a page; `between` begins a paragraph.
    pub(crate) fn page(&self, between: &str) -> String {
        let mut page = String::new();
        for block in &self.blocks {
            match block {
                Block::Paragraph(text) => {
                    let _ =
                        writeln!(page, "{between}{}", inline(&wrapped(text, COLUMNS).join("\n")));
                }
                Block::Item(text) => {
                    let text = inline(&wrapped(text, COLUMNS).join("\n"));
                    let _ = writeln!(page, ".RS\n.IP \\(bu 2\n{text}\n.RE");
                }
                Block::Example(lines) => {
                    page.push_str(&code_block(between, lines.iter().map(String::as_str)));
                }
            }
        }
        page
    }

    pub(crate) fn markdown(&self) -> String {
        let block = |block: &Block| match block {
            Block::Paragraph(text) => text.clone(),
            Block::Item(text) => format!("- {text}"),
            Block::Example(lines) => format!("```toml\n{}\n```", lines.join("\n")),
        };
        self.blocks.iter().map(block).collect::<Vec<_>>().join("\n\n")
    }
}

fn commented(mark: &str, lines: &[String]) -> String {
    lines.iter().map(|line| [mark, line, "\n"].concat()).collect()
}

fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.len() - 1;
        let line = &mut lines[last];
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= columns {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}
