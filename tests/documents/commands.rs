//! The rule that the program understands every command line of `hero` which people read: in
//! the pages, the man pages, the help and the hints of messages.

use std::fs;
use std::path::Path;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use hero::cli::Cli;
use regex::Regex;

/// Returns the lines of blocks of shell in a page, with their numbers; continued lines as one.
fn shell_lines(page: &str) -> Vec<(usize, String)> {
    let (mut lines, mut is_shell, mut open) = (Vec::new(), false, None::<(usize, String)>);
    for (number, line) in (1..).zip(page.lines()) {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            is_shell = matches!(language, "sh" | "bash" | "ini");
            continue;
        }
        if !is_shell {
            continue;
        }
        let (start, mut text) = open.take().unwrap_or((number, String::new()));
        match line.strip_suffix('\\') {
            Some(part) => {
                text.push_str(part);
                open = Some((start, text));
            }
            None => lines.push((start, text + line)),
        }
    }
    lines
}

/// A word of the shell, or the place where another command begins.
#[derive(Debug, PartialEq)]
enum Token {
    Word(String),
    /// A quoted word, whose text may be a command line itself.
    Quoted(String),
    Next,
}

/// Splits a line of shell, as far as pages use it. A variable stays as it is written.
fn tokens(line: &str) -> Vec<Token> {
    let (mut tokens, mut word, mut quoted) = (Vec::new(), None::<String>, false);
    let mut chars = line.chars().peekable();
    let end = |word: &mut Option<String>, quoted: &mut bool, tokens: &mut Vec<Token>| {
        let was_quoted = std::mem::take(quoted);
        tokens.extend(
            word.take()
                .map(|word| if was_quoted { Token::Quoted(word) } else { Token::Word(word) }),
        );
    };
    while let Some(c) = chars.next() {
        match c {
            '#' if word.is_none() => break,
            ' ' | '\t' => end(&mut word, &mut quoted, &mut tokens),
            '\'' | '"' => {
                quoted = true;
                let text = word.get_or_insert_default();
                text.extend(chars.by_ref().take_while(|other| *other != c));
            }
            '|' | ';' | '&' | '(' | ')' | '<' | '>' => {
                end(&mut word, &mut quoted, &mut tokens);
                tokens.push(Token::Next);
            }
            c => word.get_or_insert_default().push(c),
        }
    }
    end(&mut word, &mut quoted, &mut tokens);
    tokens
}

/// Words before a command.
const BEFORE: [&str; 9] = ["--", "sudo", "time", "if", "while", "do", "then", "!", "exec"];

/// Returns the command lines of `hero` in a line of shell, also those that are given to another
/// command.
fn commands(line: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for command in tokens(line).split(|token| *token == Token::Next) {
        let mut begun: Vec<Vec<String>> = Vec::new();
        let mut may_begin = true;
        for token in command {
            let (Token::Word(word) | Token::Quoted(word)) = token else { continue };
            if matches!(token, Token::Quoted(_)) && word.contains(' ') {
                found.extend(commands(word));
            }
            for words in &mut begun {
                words.push(word.clone());
            }
            if may_begin && word == "hero" {
                begun.push(vec![word.clone()]);
            }
            may_begin = BEFORE.contains(&word.as_str()) || word.contains('=') && may_begin;
        }
        found.append(&mut begun);
    }
    found
}

/// Returns why the program does not understand a command line; `None` if it does.
fn fault(words: &[String]) -> Option<clap::Error> {
    let error = Cli::try_parse_from(words).err()?;
    let is_asked = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    (!is_asked).then_some(error)
}

/// Does the same for a command in running text, which may lack arguments, may name several
/// commands as `list|show`, and has placeholders as values.
fn fault_in_text(text: &str) -> Option<clap::Error> {
    let text = text.replace(['[', ']'], "").replace(" …", "").replace("...", "");
    let several = Regex::new(r"\S+\|\S+").expect("a valid expression");
    let lines = match several.find(&text) {
        None => vec![text],
        // What follows belongs to some of them.
        Some(words) => {
            let before = &text[..words.start()];
            words.as_str().split('|').map(|word| format!("{before}{word}")).collect()
        }
    };
    lines.iter().flat_map(|line| commands(line)).find_map(|words| {
        let has_placeholder = words.iter().any(|word| word.chars().all(|c| c.is_ascii_uppercase()));
        fault(&words).filter(|error| match error.kind() {
            ErrorKind::MissingRequiredArgument
            | ErrorKind::MissingSubcommand
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => false,
            // An option without its value, as in `hero job logs --since`.
            ErrorKind::InvalidValue if words.last().is_some_and(|word| word.starts_with('-')) => {
                false
            }
            ErrorKind::InvalidValue | ErrorKind::ValueValidation => !has_placeholder,
            _ => true,
        })
    })
}

/// Returns the files of a folder of the tree with this ending, with their texts.
fn files(folder: &str, ending: &str) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut found, mut folders) = (Vec::new(), vec![root.join(folder)]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder of the tree") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(ending) {
                let text = fs::read_to_string(&path).expect("text");
                let name = path.strip_prefix(root).expect("in the tree").display().to_string();
                found.push((name, text));
            }
        }
    }
    found
}

/// The pages that people read.
fn pages() -> Vec<(String, String)> {
    let mut pages = files("docs", ".md");
    for name in ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "clients/python/README.md"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
        pages.push((name.to_owned(), fs::read_to_string(path).expect("a page")));
    }
    pages
}

#[track_caller]
fn none(faults: &[String], checked: usize, least: usize) {
    assert!(faults.is_empty(), "hero does not understand:\n{}", faults.join("\n"));
    assert!(checked >= least, "only {checked} command lines were found");
}

#[test]
fn command_lines_in_the_blocks_of_pages_are_understood() {
    let (mut faults, mut checked) = (Vec::new(), 0);
    let examples = files("examples", ".sh")
        .into_iter()
        .map(|(name, text)| (name, format!("```sh\n{text}\n```\n")));
    for (page, text) in pages().into_iter().chain(examples) {
        for (number, line) in shell_lines(&text) {
            for words in commands(&line) {
                checked += 1;
                faults
                    .extend(fault(&words).map(|error| format!("{page}:{number}: {line}: {error}")));
            }
        }
    }
    none(&faults, checked, 60);
}

#[test]
fn commands_that_running_text_names_are_understood() {
    let span = Regex::new(r"`(hero\s[^`]*)`").expect("a valid expression");
    let bold = Regex::new(r"(?m)^\.B (hero .*)$").expect("a valid expression");
    let (mut faults, mut checked) = (Vec::new(), 0);
    let manual = files("man", "").into_iter().map(|(name, text)| {
        (name, bold.replace_all(&text.replace("\\-", "-"), "`$1`").into_owned())
    });
    let others = ["src", "etc", "systemd", "packaging"].map(|folder| files(folder, "")).concat();
    for (page, text) in pages().into_iter().chain(manual).chain(others) {
        for found in span.captures_iter(&text) {
            checked += 1;
            let text = found[1].replace('\n', " ");
            faults.extend(fault_in_text(&text).map(|error| format!("{page}: `{text}`: {error}")));
        }
    }
    none(&faults, checked, 100);
}

#[test]
fn examples_of_the_help_are_understood() {
    fn check(
        command: &clap::Command,
        two_lines: &Regex,
        faults: &mut Vec<String>,
        checked: &mut usize,
    ) {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        // A long command stands in two lines, as a shell takes it.
        let help = two_lines.replace_all(&help, " ");
        let lines = help.lines().filter_map(|line| line.strip_prefix("  "));
        // Its description may stand in a second column.
        let lines = lines.filter_map(|line| line.trim_start().split("  ").next());
        for words in lines.flat_map(commands) {
            *checked += 1;
            let words: Vec<String> = words
                .into_iter()
                .map(|word| if word == "N" { "1".to_owned() } else { word })
                .collect();
            faults.extend(
                fault(&words).map(|error| format!("{}: {words:?}: {error}", command.get_name())),
            );
        }
        command.get_subcommands().for_each(|sub| check(sub, two_lines, faults, checked));
    }
    let (mut faults, mut checked) = (Vec::new(), 0);
    let two_lines = Regex::new(r" \\\n +").expect("a valid expression");
    check(&Cli::command(), &two_lines, &mut faults, &mut checked);
    none(&faults, checked, 60);
}

#[test]
fn command_that_does_not_exist_is_found() {
    let found = |line: &str| commands(line).iter().any(|words| fault(words).is_some());
    for wrong in [
        "hero jobs list",
        "id=$(hero submit --typo osis -e 1) # a comment",
        "hero dev -- hero exec --no-such 1",
        "sh -c 'hero metric > file'",
        "A=1 hero queue pause",
    ] {
        assert!(found(wrong), "{wrong}");
    }
    assert!(!found("adduser alice hero"));
    assert!(fault_in_text("hero job list|shown ID").is_some());
    assert!(fault_in_text("hero job list|show ID").is_none());
}
