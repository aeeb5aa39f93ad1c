//! Replacements in texts and files.

use std::sync::Arc;

use regex::{Regex, RegexBuilder};

use super::context::{CallResult, RhaiResult, SalJob, operation};
use super::files::{read_text, write_text};
use super::text::check_length;
use crate::engine::rhai::functions::Functions;

pub(super) fn register(functions: &mut Functions<'_>) {
    functions.class::<ReplacerBuilder>("TextReplacerBuilder");
    functions.class::<Replacer>("TextReplacer");
    register_builder(functions);
    functions.add(
        "replace",
        ["replacer", "text"],
        "Returns the text with all replacements made.",
        r#"
let replacer = text_replacer_new().pattern("cat").replacement("dog").build();
replacer.replace("a cat is a cat")
// → a dog is a dog"#,
        |replacer: Replacer, text: &str| {
            operation("replace", "", |job| replacer.replace(job, text))
        },
    );
    functions.add(
        "replace_file",
        ["replacer", "path"],
        "Returns the text of a file with all replacements made; the file is not changed.",
        r#"
file_write("site.conf", "port=80");
text_replacer_new().pattern("80").replacement("8080").build().replace_file("site.conf")
// → port=8080"#,
        |replacer: Replacer, path: &str| {
            operation("replace_file", path, |job| replacer.replace_file(job, path))
        },
    );
    functions.add(
        "replace_file_in_place",
        ["replacer", "path"],
        "Makes all replacements in a file.",
        r#"
file_write("site.conf", "port=80");
text_replacer_new().pattern("80").replacement("8080").build().replace_file_in_place("site.conf");
file_read("site.conf")
// → port=8080"#,
        |replacer: Replacer, path: &str| {
            operation("replace_file_in_place", path, |job| {
                let text = replacer.replace_file(job, path)?;
                write_text(&job.to_write(path)?, &text)
            })
        },
    );
    functions.add(
        "replace_file_to",
        ["replacer", "source", "destination"],
        "Writes the text of one file, with all replacements made, to another file.",
        r#"
file_write("template.conf", "host=HOST");
let replacer = text_replacer_new().pattern("HOST").replacement("example.org").build();
replacer.replace_file_to("template.conf", "site.conf");
file_read("site.conf")
// → host=example.org"#,
        |replacer: Replacer, source: &str, destination: &str| {
            operation("replace_file_to", source, |job| {
                let text = replacer.replace_file(job, source)?;
                write_text(&job.to_write(destination)?, &text)
            })
        },
    );
}

fn register_builder(functions: &mut Functions<'_>) {
    functions.add(
        "text_replacer_new",
        [],
        "Starts a builder of replacements; `build` returns the replacer.",
        r#"
let replacer = text_replacer_new()
    .pattern("colour").replacement("color")
    .and()
    .pattern("[0-9]+").replacement("<$0>").regex(true)
    .build();
replacer.replace("colour 7")
// → color <7>"#,
        ReplacerBuilder::default,
    );
    functions.add(
        "text_replacer_builder",
        [],
        "Does the same as text_replacer_new.",
        r#"
text_replacer_builder().pattern("a").replacement("b").build().replace("aa")
// → bb"#,
        ReplacerBuilder::default,
    );
    functions.add(
        "replacer_new",
        [],
        "Does the same as text_replacer_new.",
        r#"
replacer_new().pattern("a").replacement("b").build().replace("aa")
// → bb"#,
        ReplacerBuilder::default,
    );
    functions.add(
        "pattern",
        ["builder", "text"],
        "Sets the text to replace, or a regular expression with `regex(true)`.",
        r#"
text_replacer_new().pattern("a.c").replacement("-").build().replace("abc a.c")
// → abc -"#,
        |builder: ReplacerBuilder, text: &str| {
            builder.with(|rule| text.clone_into(&mut rule.pattern))
        },
    );
    functions.add(
        "replacement",
        ["builder", "text"],
        "Sets the replacement; with a regular expression $1 and ${name} stand for groups.",
        r#"
text_replacer_new().pattern("(\\w+)@(\\w+)").replacement("$2: $1").regex(true).build()
    .replace("ann@home")
// → home: ann"#,
        |builder: ReplacerBuilder, text: &str| {
            builder.with(|rule| text.clone_into(&mut rule.replacement))
        },
    );
    register_switches(functions);
}

fn register_switches(functions: &mut Functions<'_>) {
    functions.add(
        "regex",
        ["builder", "on"],
        "Sets whether the pattern is a regular expression.",
        r#"
text_replacer_new().pattern("\\s+").replacement(" ").regex(true).build().replace("a   b")
// → a b"#,
        |builder: ReplacerBuilder, on: bool| builder.with(|rule| rule.regex = on),
    );
    functions.add(
        "case_insensitive",
        ["builder", "on"],
        "Sets whether the case of letters is ignored.",
        r#"
text_replacer_new().pattern("draft").replacement("done").case_insensitive(true).build()
    .replace("DRAFT")
// → done"#,
        |builder: ReplacerBuilder, on: bool| builder.with(|rule| rule.case_insensitive = on),
    );
    functions.add(
        "and",
        ["builder"],
        "Starts the next replacement, which works on the result of the one before.",
        r#"
text_replacer_new().pattern("a").replacement("b").and().pattern("b").replacement("c").build()
    .replace("ab")
// → cc"#,
        |mut builder: ReplacerBuilder| {
            builder.done.push(std::mem::take(&mut builder.current));
            builder
        },
    );
    functions.add(
        "build",
        ["builder"],
        "Returns the replacer; an invalid regular expression is an error.",
        r#"
try {
    text_replacer_new().pattern("(").regex(true).build();
} catch (error) {
    print(error);
}"#,
        ReplacerBuilder::build,
    );
}

#[derive(Debug, Clone, Default, PartialEq)]
struct Rule {
    pattern: String,
    replacement: String,
    regex: bool,
    case_insensitive: bool,
}

#[derive(Debug, Clone, Default)]
struct ReplacerBuilder {
    done: Vec<Rule>,
    current: Rule,
}

/// The steps of a replacer: expression, replacement, and whether `$1` stands for a group.
#[derive(Debug, Clone)]
struct Replacer {
    steps: Arc<[(Regex, String, bool)]>,
}

impl ReplacerBuilder {
    fn with(mut self, change: impl FnOnce(&mut Rule)) -> Self {
        change(&mut self.current);
        self
    }

    fn build(self) -> RhaiResult<Replacer> {
        operation("text_replacer build", "", |_| {
            let mut steps = Vec::new();
            let rules = self.done.into_iter().chain([self.current]);
            // Nothing needs to follow the last `and`.
            for rule in rules.filter(|rule| *rule != Rule::default()) {
                if rule.pattern.is_empty() {
                    return Err("a pattern is empty".into());
                }
                let pattern = if rule.regex { rule.pattern } else { regex::escape(&rule.pattern) };
                let regex = RegexBuilder::new(&pattern)
                    .case_insensitive(rule.case_insensitive)
                    .build()
                    .map_err(|error| one_line(&error))?;
                steps.push((regex, rule.replacement, rule.regex));
            }
            if steps.is_empty() {
                return Err("no pattern is set".into());
            }
            Ok(Replacer { steps: steps.into() })
        })
    }
}

impl Replacer {
    fn replace(&self, job: SalJob<'_>, text: &str) -> CallResult<String> {
        let mut text = text.to_owned();
        for (regex, replacement, has_groups) in self.steps.iter() {
            text = replace_all(job, regex, &text, replacement, *has_groups)?;
        }
        Ok(text)
    }

    fn replace_file(&self, job: SalJob<'_>, path: &str) -> CallResult<String> {
        let text = read_text(job, &job.to_read(path)?)?;
        self.replace(job, &text)
    }
}

/// Replaces every match; fails at the size limit of a string, and when the job must end.
fn replace_all(
    job: SalJob<'_>,
    regex: &Regex,
    text: &str,
    replacement: &str,
    has_groups: bool,
) -> CallResult<String> {
    const MATCHES_PER_CHECK: usize = 1024;
    let mut replaced = String::with_capacity(text.len());
    let mut copied = 0;
    for (number, groups) in regex.captures_iter(text).enumerate() {
        if number % MATCHES_PER_CHECK == 0 {
            job.check_stop()?;
        }
        let Some(whole) = groups.get(0) else { continue };
        replaced.push_str(&text[copied..whole.start()]);
        copied = whole.end();
        for part in parts(replacement, has_groups) {
            if has_groups {
                groups.expand(part, &mut replaced);
            } else {
                replaced.push_str(part);
            }
            check_length(job, replaced.len())?;
        }
    }
    replaced.push_str(&text[copied..]);
    Ok(replaced)
}

/// Cuts a replacement before each `$`: the result is measured after each group, which may be as long as the text.
fn parts(replacement: &str, has_groups: bool) -> impl Iterator<Item = &str> {
    let mut rest = replacement;
    std::iter::from_fn(move || {
        let first = if rest.starts_with("$$") { 2 } else { rest.chars().next()?.len_utf8() };
        let next = rest[first..].find('$').filter(|_| has_groups);
        let (part, others) = rest.split_at(next.map_or(rest.len(), |next| first + next));
        rest = others;
        Some(part)
    })
}

/// Returns the last line of an error, which has the reason; the lines before draw an arrow.
fn one_line(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default().trim();
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}
