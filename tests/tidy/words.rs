//! The rule that texts are plain technical English: doc comments begin with a verb or a noun, and
//! phrases that circle around a name do not occur.

use regex::Regex;

use super::source::numbered;

/// Paths of the project whose words people read.
const READ: &[&str] =
    &["src/", "docs/", "man/", "README.md", "ARCHITECTURE.md", "etc/", "examples/", "systemd/"];

/// A phrase says less than the term that it stands for.
const PHRASES: &str = r"(?i-u)there (is|are) none of|none of (its|their)\b|\bshuts? (itself |themselves )?in(to)?\b|how manieth|\bsomebody\b|\bwhoever\b|\bwhatever\b|\banew\b|at the most\b|takes? leave|sign of life";
/// A pronoun stands for the noun that it should repeat, or a word of another language for the term.
const RIDDLES: &str = r"(?-u)\b[Tt](hat|hose) of\b|\bfor want of\b|\b(its|their|the|at) begin\b|\b(way|order) in which\b";
/// The starts of files that are made from texts in `src/`, whose lines break elsewhere.
const MADE: &[&str] = &["man/hero."];
const DOC_STARTS: &str = r"^\s*//[/!] (What|Whether|How|Those|Who)(?-u:\b)";

/// Returns one fault for each start of made files that have no riddle.
pub(super) fn unneeded_entries(files: &[(String, String)]) -> Vec<String> {
    let riddles = Regex::new(RIDDLES).expect("a valid expression");
    let has_one = |start: &str| {
        files.iter().any(|(path, text)| path.starts_with(start) && riddles.is_match(text))
    };
    let unneeded = MADE.iter().filter(|start| !has_one(start));
    unneeded.map(|start| super::unneeded(start, "a text repeats its nouns")).collect()
}

/// Returns one fault for each line that breaks the rule.
pub(crate) fn faults(files: &[(String, String)]) -> Vec<String> {
    let phrases = Regex::new(PHRASES).expect("a valid expression");
    let riddles = Regex::new(RIDDLES).expect("a valid expression");
    let starts = Regex::new(DOC_STARTS).expect("a valid expression");
    let mut faults = Vec::new();
    for (path, text) in files {
        if !READ.iter().any(|start| path.starts_with(start)) {
            continue;
        }
        let is_made = MADE.iter().any(|start| path.starts_with(start));
        for (number, line) in numbered(text) {
            if let Some(riddle) = riddles.find(line).filter(|_| !is_made) {
                let riddle = riddle.as_str();
                faults.push(format!(
                    "{path}:{number}: says `{riddle}`: repeat the noun, or say it shorter"
                ));
            }
            if let Some(phrase) = phrases.find(line) {
                let phrase = phrase.as_str();
                faults.push(format!(
                    "{path}:{number}: says `{phrase}`: name the thing, by the term of the field"
                ));
            }
            if starts.is_match(line) {
                faults.push(format!(
                    "{path}:{number}: a doc comment begins with a verb or a noun: \"Returns …\", \
                     \"The queue that …\""
                ));
            }
        }
    }
    faults
}
