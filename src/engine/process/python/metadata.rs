//! Inline metadata of scripts, as PEP 723 has it: comments that say which Python and which packages
//! a script needs.
//!
//! ```python
//! # /// script
//! # requires-python = ">=3.11"
//! # dependencies = ["requests<3", "rich"]
//! # ///
//! ```

use serde::Deserialize;

use super::version::Demand;

const BEGIN: &str = "# /// script";
const END: &str = "# ///";
const PACKAGES_MAX: usize = 200;
const PACKAGE_BYTES_MAX: usize = 1000;

/// What a script needs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Metadata {
    /// The versions of Python that it runs with, as it is written.
    pub(super) requires_python: String,
    /// The packages, each as an installer takes it.
    pub(super) dependencies: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case", expecting = "a table")]
struct Table {
    requires_python: String,
    dependencies: Vec<String>,
}

/// Reads the metadata of a script, if it has any that asks for something.
///
/// # Errors
/// A message that names the line of the script.
pub(super) fn read(source: &str) -> Result<Option<Metadata>, String> {
    // Nearly no script has any: this is all that they pay.
    if !source.contains(BEGIN) {
        return Ok(None);
    }
    let lines: Vec<&str> = source.lines().map(str::trim_end).collect();
    let blocks: Vec<(usize, String)> = blocks(&lines);
    let (first, text) = match blocks.as_slice() {
        [] => return Ok(None),
        [one] => one,
        [_, (second, _), ..] => {
            return Err(format!("metadata: line {second}: there is a second block"));
        }
    };
    let table: Table = toml::from_str(text).map_err(|error| {
        let before = error.span().map_or(0, |span| {
            text.as_bytes().iter().take(span.start).filter(|byte| **byte == b'\n').count()
        });
        // The first line of the block is the one after that which begins it.
        let (line, message) = (first + 1 + before, error.message());
        format!("metadata: line {line}: {message}")
    })?;
    let wrong = |message: String| format!("metadata: line {first}: {message}");
    if table.dependencies.len() > PACKAGES_MAX {
        return Err(wrong(format!("more than {PACKAGES_MAX} dependencies")));
    }
    if let Some(bad) = table.dependencies.iter().find(|package| !is_package(package)) {
        let shown: String = bad.chars().take(60).collect();
        return Err(wrong(format!("{shown:?} is no dependency, such as \"requests<3\"")));
    }
    if Demand::parse(&table.requires_python).is_none() {
        let shown: String = table.requires_python.chars().take(60).collect();
        return Err(wrong(format!("requires-python = {shown:?} is none, such as \">=3.11\"")));
    }
    let (requires_python, mut dependencies) = (table.requires_python, table.dependencies);
    if requires_python.is_empty() && dependencies.is_empty() {
        return Ok(None);
    }
    dependencies.sort_unstable();
    dependencies.dedup();
    Ok(Some(Metadata { requires_python, dependencies }))
}

/// The blocks that are closed: the line that begins each, from 1, and their text without its `#`.
fn blocks(lines: &[&str]) -> Vec<(usize, String)> {
    let mut blocks = Vec::new();
    let mut next = 0;
    while let Some(begins) = (next..lines.len()).find(|at| lines[*at] == BEGIN) {
        let is_comment = |line: &&&str| **line == "#" || line.starts_with("# ");
        let run = lines[begins + 1..].iter().take_while(|line| is_comment(line)).count();
        let run = &lines[begins + 1..=begins + run];
        next = begins + 1;
        // The last such line closes it, as any before may be of its text. One that begins another
        // block is no text.
        let run_end = run.iter().position(|line| *line == BEGIN).unwrap_or(run.len());
        let Some(end) = run[..run_end].iter().rposition(|line| *line == END) else { continue };
        let text: Vec<&str> =
            run[..end].iter().map(|line| line.strip_prefix("# ").unwrap_or_default()).collect();
        blocks.push((begins + 1, text.join("\n")));
        next = begins + 1 + end;
    }
    blocks
}

/// It goes to an installer as one word, which must not be an option.
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
    fn packages_and_the_version_are_read() {
        let source = "#!/usr/bin/python3\n# /// script\n# requires-python = \">=3.11\"\n#\n\
            # dependencies = [\n#   \"rich\",\n#   \"requests<3\",\n#   \"rich\",\n# ]\n\
            # [tool.x]\n# y = 1\n# ///\nprint(1)\n";
        let metadata = read(source).expect("legal").expect("there");
        assert_eq!(metadata.requires_python, ">=3.11");
        assert_eq!(metadata.dependencies, ["requests<3", "rich"]);
        let crlf = source.replace('\n', "\r\n");
        assert_eq!(read(&crlf), Ok(Some(metadata)));
    }

    #[test]
    fn a_script_without_needs_has_none() {
        for source in [
            "print(1)",
            "# /// script\n# dependencies = [\"a\"]\nprint('not closed')\n",
            "# /// script\n# ///\n",
            "# /// script\n# dependencies = []\n# ///\n",
            "x = '''\n # /// script\n# ///\n'''",
            "# /// other\n# dependencies = [\"a\"]\n# ///\n",
        ] {
            assert_eq!(read(source), Ok(None), "{source}");
        }
    }

    #[test]
    fn what_is_wrong_is_told_with_the_line_of_the_script() {
        for (source, said) in [
            ("\n# /// script\n# dependencies = [\"a\"\n# x = 1\n# ///\n", "line 4: "),
            ("# /// script\n# dependencies = \"a\"\n# ///\n", "line 2: "),
            (
                "# /// script\n# dependencies = [\"--pre\"]\n# ///\n",
                "line 1: \"--pre\" is no depen",
            ),
            (
                "# /// script\n# dependencies = [\"a\\nb\"]\n# ///\n",
                "line 1: \"a\\nb\" is no depen",
            ),
            ("# /// script\n# requires-python = \"three\"\n# ///\n", "line 1: requires-python = "),
            ("# /// script\n# ///\n\n# /// script\n# ///\n", "line 4: there is a second block"),
        ] {
            let message = message(source);
            let whole = format!("metadata: {said}");
            assert!(message.starts_with(&whole), "{source}: {message}");
        }
    }
}
