//! The rule that texts are plain technical English: doc comments begin with a verb or a noun, and
//! phrases that circle around a name do not occur.

use regex::Regex;

use super::source::numbered;

/// Paths of the project whose words people read.
const READ: &[&str] =
    &["src/", "docs/", "man/", "README.md", "ARCHITECTURE.md", "etc/", "examples/", "systemd/"];

/// A phrase says less than the term that it stands for.
const PHRASES: &str = r"(?i)there (is|are) none of|none of (its|their)\b|\bshuts? (itself |themselves )?in(to)?\b|how manieth|\bsomebody\b|\bwhoever\b|\bwhatever\b|\banew\b|at the most\b|takes? leave|sign of life";
const DOC_STARTS: &str = r"^\s*//[/!] (What|Whether|How|Those|Who)\b";

/// Returns one fault for each line that breaks the rule.
pub(crate) fn faults(files: &[(String, String)]) -> Vec<String> {
    let phrases = Regex::new(PHRASES).expect("a valid expression");
    let starts = Regex::new(DOC_STARTS).expect("a valid expression");
    let mut faults = Vec::new();
    for (path, text) in files {
        if !READ.iter().any(|start| path.starts_with(start)) {
            continue;
        }
        for (number, line) in numbered(text) {
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
