//! Inline metadata of scripts as in PEP 723: comments that declare the Python version and the
//! packages that a script requires. In JavaScript the lines begin with `//`.
//!
//! ```python
//! # /// script
//! # requires-python = ">=3.11"
//! # dependencies = ["requests<3", "rich"]
//! # ///
//! ```

use pep440_rs::VersionSpecifiers;
use regex::Regex;
use serde::Deserialize;

use crate::process::prepare::source::without_mark;

/// The first and the last line of a block, behind the sign of a comment.
const BEGIN: &str = " /// script";
const END: &str = " ///";
const PACKAGES_MAX: usize = 200;
const PACKAGE_BYTES_MAX: usize = 1000;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Metadata {
    pub(super) requires_python: VersionSpecifiers,
    /// The packages, each as an argument of an installer.
    pub(super) dependencies: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case", expecting = "a table")]
struct MetadataTable {
    requires_python: String,
    dependencies: Vec<String>,
}

/// Reads the metadata of a script in Python; `None` if it requires nothing. The error names the line of the script.
pub(super) fn read(source: &str) -> Result<Option<Metadata>, String> {
    let Some((first, table)) = table(source, "#")? else { return Ok(None) };
    let dependencies = dependencies(first, table.dependencies, is_package, "requests<3")?;
    // Python's own tools ignore a comma at the end.
    let specifiers = table.requires_python.trim().trim_end_matches(',');
    let requires_python = specifiers.parse::<VersionSpecifiers>().map_err(|_| {
        let shown: String = table.requires_python.chars().take(60).collect();
        let why = format!("requires-python = {shown:?} is not a version range, such as \">=3.11\"");
        format!("metadata: line {first}: {why}")
    })?;
    let is_empty = requires_python.is_empty() && dependencies.is_empty();
    Ok((!is_empty).then_some(Metadata { requires_python, dependencies }))
}

/// Reads the packages of a script of node, each a name with or without a version or a range. The error names the line of the
/// script.
pub(super) fn read_of_node(source: &str) -> Result<Vec<String>, String> {
    const FORM: &str =
        r"(?-u)^(@[a-z0-9][\w.~-]*/)?[a-z0-9][\w.~-]*(@[\w.^~<>=|*+][\w.^~<>=|*+ -]*)?$";
    let Some((first, table)) = table(source, "//")? else { return Ok(Vec::new()) };
    let form = Regex::new(FORM).map_err(|error| error.to_string())?;
    let is_package = |text: &str| text.len() <= PACKAGE_BYTES_MAX && form.is_match(text);
    dependencies(first, table.dependencies, is_package, "ms@2")
}

/// Reads the one block of a script, in comments with this sign; with the number of its first line.
fn table(source: &str, sign: &str) -> Result<Option<(usize, MetadataTable)>, String> {
    // Few scripts have metadata; the others are only searched once.
    if !source.contains(BEGIN) {
        return Ok(None);
    }
    let lines = without_mark(source).lines();
    let lines: Vec<&str> = lines.map(str::trim_end).collect();
    let blocks: Vec<(usize, String)> = blocks(&lines, sign)?;
    let (first, text) = match blocks.as_slice() {
        [] => return Ok(None),
        [one] => one,
        [_, (second, _), ..] => {
            return Err(format!("metadata: line {second}: a second `{sign}{BEGIN}` block"));
        }
    };
    let table: MetadataTable = toml::from_str(text).map_err(|error| {
        let before = error.span().map_or(0, |span| {
            text.as_bytes().iter().take(span.start).filter(|byte| **byte == b'\n').count()
        });
        // The text starts in the line after the opening line of the block.
        let (line, message) = (first + 1 + before, error.message());
        format!("metadata: line {line}: {message}")
    })?;
    Ok(Some((*first, table)))
}

/// Returns the packages in order, each once.
fn dependencies(
    first: usize,
    mut packages: Vec<String>,
    is_package: impl Fn(&str) -> bool,
    example: &str,
) -> Result<Vec<String>, String> {
    let wrong = |message: String| format!("metadata: line {first}: {message}");
    if packages.len() > PACKAGES_MAX {
        return Err(wrong(format!("more than {PACKAGES_MAX} dependencies")));
    }
    if let Some(bad) = packages.iter().find(|package| !is_package(package)) {
        let shown: String = bad.chars().take(60).collect();
        return Err(wrong(format!("{shown:?} is not a dependency, such as {example:?}")));
    }
    packages.sort_unstable();
    packages.dedup();
    Ok(packages)
}

/// Returns the number of the first line of each block, and its text without the sign. The error names one without an end.
fn blocks(lines: &[&str], sign: &str) -> Result<Vec<(usize, String)>, String> {
    let (begin, end, of_text) =
        (format!("{sign}{BEGIN}"), format!("{sign}{END}"), format!("{sign} "));
    let mut blocks = Vec::new();
    let mut next = 0;
    while let Some(begins) = (next..lines.len()).find(|at| lines[*at] == begin) {
        let is_comment = |line: &&&str| **line == sign || line.starts_with(&of_text);
        let run = lines[begins + 1..].iter().take_while(|line| is_comment(line)).count();
        let run = &lines[begins + 1..=begins + run];
        // The last closing line counts, as the text may contain others; a line that opens a block is none.
        let run_end = run.iter().position(|line| *line == begin).unwrap_or(run.len());
        let Some(ends) = run[..run_end].iter().rposition(|line| *line == end) else {
            let (first, after) = (begins + 1, begins + 2 + run_end);
            return Err(format!(
                "metadata: line {first}: this block is not closed: a line `{end}` must come before line \
                 {after}, and each line between them must begin with `{of_text}` or be `{sign}`"
            ));
        };
        let text = run[..ends].iter().map(|line| line.strip_prefix(&of_text).unwrap_or_default());
        blocks.push((begins + 1, text.collect::<Vec<_>>().join("\n")));
        next = begins + 1 + ends;
    }
    Ok(blocks)
}

/// Returns true for text that an installer takes as one argument and not as an option.
fn is_package(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphanumeric())
        && text.len() <= PACKAGE_BYTES_MAX
        && !text.contains(|c: char| c.is_control())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(source: &str) -> String {
        read(source).expect_err(source)
    }

    #[test]
    fn packages_and_version_range_are_read() {
        let source = "#!/usr/bin/python3\n# /// script\n# requires-python = \">=3.11\"\n#\n\
            # dependencies = [\n#   \"rich\",\n#   \"requests<3\",\n#   \"rich\",\n# ]\n\
            # [tool.x]\n# y = 1\n# ///\nprint(1)\n";
        let metadata = read(source).expect("legal").expect("metadata");
        assert_eq!(metadata.requires_python.to_string(), ">=3.11");
        assert_eq!(metadata.dependencies, ["requests<3", "rich"]);
        let crlf = source.replace('\n', "\r\n");
        assert_eq!(read(&crlf), Ok(Some(metadata.clone())));
        let (_, first) = source.split_once('\n').expect("lines");
        assert_eq!(read(&format!("\u{feff}{first}")), Ok(Some(metadata)));
    }

    #[test]
    fn packages_of_node_are_read_from_comments_of_javascript() {
        let of = |packages: &str| {
            read_of_node(&format!(
                "'use strict'\n// /// script\n// dependencies = {packages}\n// ///\n"
            ))
        };
        let packages = ["@a/b@^1.2 || 3", "left-pad", "ms@2"];
        assert_eq!(
            of("[\"ms@2\", \"left-pad\", \"@a/b@^1.2 || 3\"]"),
            Ok(packages.map(str::to_owned).to_vec())
        );
        assert_eq!(
            read_of_node("# /// script\n# dependencies = [\"ms\"]\n# ///\n"),
            Ok(Vec::new())
        );
        for wrong in [
            "--global",
            "git+https://x/y",
            "x@file:..",
            "https://x/y.tgz",
            "../x",
            "a/b",
            "x@npm:y",
        ] {
            let message = of(&format!("[{wrong:?}]")).expect_err(wrong);
            let said = format!("metadata: line 2: {wrong:?} is not a dependency, such as \"ms@2\"");
            assert_eq!(message, said);
        }
    }

    #[test]
    fn a_script_without_requirements_has_no_metadata() {
        for source in [
            "print(1)",
            "# /// script\n# ///\n",
            "# /// script\n# dependencies = []\n# ///\n",
            "x = '''\n # /// script\n# ///\n'''",
            "# /// other\n# dependencies = [\"a\"]\n# ///\n",
        ] {
            assert_eq!(read(source), Ok(None), "{source}");
        }
    }

    #[test]
    fn an_error_names_the_line_of_the_script() {
        for (source, expected) in [
            ("\n# /// script\n# dependencies = [\"a\"\n# x = 1\n# ///\n", "line 4: "),
            ("# /// script\n# dependencies = \"a\"\n# ///\n", "line 2: "),
            (
                "# /// script\n# dependencies = [\"--pre\"]\n# ///\n",
                "line 1: \"--pre\" is not a depen",
            ),
            (
                "# /// script\n# dependencies = [\"a\\nb\"]\n# ///\n",
                "line 1: \"a\\nb\" is not a depen",
            ),
            ("# /// script\n# requires-python = \"three\"\n# ///\n", "line 1: requires-python = "),
            (
                "\n# /// script\n# dependencies = [\"a\"]\n\n# [tool.uv]\n# ///\nprint(1)\n",
                "line 2: this block is not closed: a line `# ///` must come before line 4, and",
            ),
            ("# /// script\n# dependencies = [\"a\"]", "line 1: this block is not closed: "),
            (
                "# /// script\n# ///\n\n# /// script\n# ///\n",
                "line 4: a second `# /// script` block",
            ),
        ] {
            let message = message(source);
            let expected = format!("metadata: {expected}");
            assert!(message.starts_with(&expected), "{source}: {message}");
        }
    }
    #[test]
    fn version_ranges_are_compared_number_by_number() {
        let allows = |range: &str, version: &str| {
            let source = format!("# /// script\n# requires-python = {range:?}\n# ///\n");
            let metadata = read(&source).expect(range).unwrap_or_default();
            version.parse().is_ok_and(|version| metadata.requires_python.contains(&version))
        };
        for (range, allowed, rejected) in [
            ("", "3.11.2", "x"),
            (">=3.11", "3.11.0", "3.9.18"),
            (">=3.9, <3.12", "3.11.2", "3.12.0"),
            (">=3.9,", "3.11.2", "3.8.0"),
            ("==3.11.*", "3.11.9", "3.1.1"),
            ("!=3.11.*", "3.10.0", "3.11.2"),
            ("~=3.10", "3.12.1", "4.0.0"),
            ("~=3.11.1", "3.11.7", "3.12.0"),
            (">3.11", "3.11.1", "3.11.0"),
            ("<=3.11", "3.11.0", "3.11.1"),
            ("==3.11", "3.11.0", "3.11.1"),
            ("!=3.11", "3.11.1", "3.11.0"),
        ] {
            assert!(allows(range, allowed), "{range} {allowed}");
            assert!(!allows(range, rejected), "{range} {rejected}");
        }
        for range in ["3.11", ">=", ">=three", ">=3.*", "~=3", "=>3", ">=3..1"] {
            let source = format!("# /// script\n# requires-python = {range:?}\n# ///\n");
            assert!(message(&source).contains("is not a version range"), "{range}");
        }
    }
}
