//! Man pages from pages of the documentation, so that both have the same words.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// A man page of section 7, and the page of docs/ that has its text.
struct Page {
    source: &'static str,
    name: &'static str,
    /// What it is about, after its name.
    summary: &'static str,
    version: &'static str,
    see_also: &'static str,
}

const OPERATIONS: Page = Page {
    source: "operations.md",
    name: "hero-operations",
    summary: "running Hero day by day",
    version: concat!("Hero ", env!("CARGO_PKG_VERSION")),
    see_also: ".BR hero (1),\n.BR hero.toml (5),\n.BR hero (7),\n.BR hero-messages (7)\n",
};
const MESSAGES: Page = Page {
    source: "messages.md",
    name: "hero-messages",
    summary: "what the messages in the journal mean",
    version: concat!("Hero ", env!("CARGO_PKG_VERSION")),
    see_also: ".BR hero (1),\n.BR hero-operations (7)\n",
};
/// It is in the tree, so it has no version.
const PROTOCOL: Page = Page {
    source: "protocol.md",
    name: "hero",
    summary: "the protocol of Hero in Redis",
    version: "Hero",
    see_also: ".BR hero (1),\n.BR hero.toml (5)\n",
};

/// Writes `hero-operations.7` and `hero-messages.7` into a folder.
pub(crate) fn operations(folder: &Path) -> Result<(), Box<dyn Error>> {
    for page in [OPERATIONS, MESSAGES] {
        fs::write(folder.join(format!("{}.7", page.name)), page.text()?)?;
    }
    Ok(())
}

/// Returns `man/hero.7` with its text.
pub(crate) fn protocol() -> Result<(PathBuf, String), Box<dyn Error>> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../man/hero.7");
    Ok((file, PROTOCOL.text()?))
}

impl Page {
    fn text(&self) -> Result<String, Box<dyn Error>> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(self.source);
        let text = fs::read_to_string(&source)
            .map_err(|error| format!("cannot read {}: {error}", source.display()))?;
        let name = escaped(self.name);
        Ok(format!(
            ".\\\" Generated from docs/{}: cargo xtask docs\n.TH {} 7 \"\" \"{}\" \"Hero\"\n.SH NAME\n{name} \\- {}\n\
             .SH DESCRIPTION\n{}.SH \"SEE ALSO\"\n{}",
            self.source,
            self.name.to_uppercase(),
            self.version,
            self.summary,
            man_page(&text),
            self.see_also
        ))
    }
}

/// Returns a page of the Markdown of this project: headings, paragraphs, lists, tables, blocks of code.
fn man_page(markdown: &str) -> String {
    let mut page = String::new();
    let mut lines = markdown.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(title) = line.strip_prefix("## ") {
            let _ = writeln!(page, ".SH \"{}\"", inline(&title.to_uppercase()));
        } else if let Some(title) = line.strip_prefix("### ") {
            let _ = writeln!(page, ".SS \"{}\"", inline(title));
        } else if line.starts_with("# ") || line.is_empty() || is_rule(line) {
        } else if line.trim_start().starts_with("```") {
            let margin = line.len() - line.trim_start().len();
            let code = lines.by_ref().take_while(|line| !line.trim_start().starts_with("```"));
            page.push_str(&code_block(
                ".PP\n",
                code.map(|line| line.get(margin..).unwrap_or(line)),
            ));
        } else if let Some(code) = line.strip_prefix("    ") {
            let mut code = vec![code];
            while let Some(next) = lines.next_if(|next| next.starts_with("    ")) {
                code.push(&next[4..]);
            }
            page.push_str(&code_block(".PP\n", code.into_iter()));
        } else if line.starts_with('|') {
            // The head of a table says what the columns are, which the rows show by themselves.
            if lines.peek().is_some_and(|next| is_rule(next)) {
                continue;
            }
            page.push_str(&row(line));
        } else {
            let (begin, first) = item(line);
            page.push_str(&begin);
            let mut text = first.trim().to_owned();
            while let Some(next) = lines.peek().filter(|next| goes_on(next)) {
                text.push('\n');
                text.push_str(next.trim());
                lines.next();
            }
            let _ = writeln!(page, "{}", inline(&text));
        }
    }
    page
}

fn is_rule(line: &str) -> bool {
    line.starts_with("|--") || line.starts_with("| --")
}

/// Returns the request that begins a paragraph or an item of a list, and the text after its mark.
fn item(line: &str) -> (String, &str) {
    if let Some(text) = line.strip_prefix("- ") {
        return (".IP \\(bu 2\n".to_owned(), text);
    }
    match line.split_once(". ") {
        Some((number, text)) if number.bytes().all(|byte| byte.is_ascii_digit()) => {
            (format!(".IP {number}. 4\n"), text)
        }
        _ => (".PP\n".to_owned(), line),
    }
}

fn goes_on(line: &str) -> bool {
    let begins = ["#", "```", "|", "- "].iter().any(|mark| line.starts_with(mark))
        || line.trim_start().starts_with("```");
    !line.is_empty() && !begins && item(line).0 == ".PP\n"
}

/// Returns a row of a table: its first cell as a tag, the others after it.
fn row(line: &str) -> String {
    let cells: Vec<String> = line
        .trim_matches('|')
        .replace("\\|", "\u{1}")
        .split('|')
        .map(|cell| inline(&cell.trim().replace('\u{1}', "|")))
        .collect();
    let rest: Vec<&str> = cells[1..].iter().map(String::as_str).filter(|c| !c.is_empty()).collect();
    format!(".TP\n{}\n{}\n", cells[0], rest.join(".\n"))
}

/// Returns lines of code after the request that begins a paragraph.
pub(crate) fn code_block<'c>(begin: &str, lines: impl Iterator<Item = &'c str>) -> String {
    let code: String = lines.map(|line| ["\\&", &escaped(line), "\n"].concat()).collect();
    format!("{begin}.RS 4\n.nf\n{code}.fi\n.RE\n")
}

/// Returns text with its code and emphasis in bold, and links by their text.
pub(crate) fn inline(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['`', '*', '[']) {
        let (before, from) = rest.split_at(at);
        out.push_str(&escaped(before));
        let found = match from.as_bytes()[0] {
            b'`' => between(from, "`", "`").map(|(code, rest)| (bold(&escaped(code)), rest)),
            b'*' => between(from, "**", "**").map(|(text, rest)| (bold(&inline(text)), rest)),
            _ => between(from, "[", "](").and_then(|(text, rest)| {
                let (_, rest) = rest.split_once(')')?;
                Some((inline(text), rest))
            }),
        };
        let (shown, after) = found.unwrap_or_else(|| (from[..1].to_owned(), &from[1..]));
        out.push_str(&shown);
        rest = after;
    }
    out.push_str(&escaped(rest));
    let guard = |line: &str| {
        let is_request = line.starts_with(['.', '\'']);
        format!("{}{line}", if is_request { "\\&" } else { "" })
    };
    out.lines().map(guard).collect::<Vec<_>>().join("\n")
}

fn between<'t>(text: &'t str, open: &str, close: &str) -> Option<(&'t str, &'t str)> {
    text.strip_prefix(open)?.split_once(close)
}

fn bold(text: &str) -> String {
    format!("\\fB{text}\\fR")
}

pub(crate) fn escaped(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_page_becomes_its_request() {
        let page = man_page(
            "# Title\n\nFirst `a-b`\n.second [link](x.md).\n\n## Some part\n\n- one\n  more\n- two\n\n\
             1. step\n\n| a | b | c |\n|---|---|---|\n| `x` | **y** \\| z | do |\n\n```sh\n.run 'it'\n```\n",
        );
        assert_eq!(
            page,
            ".PP\nFirst \\fBa\\-b\\fR\n\\&.second link.\n.SH \"SOME PART\"\n.IP \\(bu 2\none\nmore\n\
             .IP \\(bu 2\ntwo\n.IP 1. 4\nstep\n.TP\n\\fBx\\fR\n\\fBy\\fR | z.\ndo\n.PP\n.RS 4\n.nf\n\
             \\&.run \\(aqit\\(aq\n.fi\n.RE\n"
        );
    }

    #[test]
    fn page_on_operations_has_a_section_for_each_part() {
        let folder = tempfile::tempdir().expect("a folder");
        operations(folder.path()).expect("written");
        let page = fs::read_to_string(folder.path().join("hero-operations.7")).expect("readable");
        for section in ["SIZING", "BACKUP", "UPGRADES", "THE JOURNAL"] {
            assert!(page.contains(&format!(".SH \"{section}\"")), "no {section}");
        }
        let lines = || page.lines();
        assert!(!lines().any(|line| line.starts_with(['|', '#', '`'])), "{page}");
    }
}
