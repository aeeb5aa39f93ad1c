//! The functions of scripts as text for a terminal, and as a page of Markdown.

use std::fmt::Write;

use crate::cli::table::Table;
use crate::engine::rhai::Group;

/// One line for each function.
pub(super) fn overview(groups: &[Group]) -> String {
    let mut table = Table::new(&["FUNCTION", "DOES"]);
    for function in groups.iter().flat_map(|group| &group.functions) {
        let first = function.summary.split_inclusive(". ").next().unwrap_or_default();
        table.row([function.full_name(), first.trim_end().to_owned()]);
    }
    format!("{}\nhero script doc NAME tells more of one.\n", table.render())
}

/// All that is known of each.
pub(super) fn in_full(groups: &[Group]) -> String {
    let mut text = String::new();
    for (number, function) in groups.iter().flat_map(|group| &group.functions).enumerate() {
        if number > 0 {
            text.push('\n');
        }
        for signature in &function.signatures {
            let _ = writeln!(text, "{signature}");
        }
        let _ = writeln!(text, "\n  {}\n", function.summary);
        for line in function.example.trim().lines() {
            let _ = writeln!(text, "    {line}");
        }
    }
    text
}

/// The whole as a page.
pub(super) fn markdown(script_type: &str, groups: &[Group]) -> String {
    let mut text = format!(
        "# The functions of {script_type} scripts\n\n\
         <!-- Generated: hero script doc --markdown -t {script_type} -->\n\n\
         What scripts of the engine `{script_type}` can call beside the language itself, which is \
         [Rhai](https://rhai.rs/book/). A function that fails throws an error that names the \
         operation and its object; `try` and `catch` take it. Every example here is run by the \
         tests; where its last line is `// → TEXT`, that is the script's output.\n"
    );
    if script_type == "sal" {
        text.push_str(
            "\nWhat they may touch is set in `[sal]` of the configuration: the folders `read` and \
             `write`, and whether they may `run` programs and use the `network`. Whatever takes \
             long ends with the job, and so does every program that was started.\n",
        );
    } else {
        text.push_str(
            "\nThe objects that they keep, and the language of queries that finds them, have a page \
             of their own: [objects.md](objects.md).\n",
        );
    }
    let _ = write!(
        text,
        "\nAn editor with a language server of Rhai shows them while one types. It wants \
         [{script_type}.d.rhai]({script_type}.d.rhai) beside the scripts, and a `Rhai.toml` at the \
         top of their folder that names both:\n\n\
         ```sh\n\
         cp /usr/share/hero/rhai/{script_type}.d.rhai .   # where the package is installed, or:\n\
         hero script doc --definitions -t {script_type} > {script_type}.d.rhai\n\
         printf '[source]\\ninclude = [\"**/*.rhai\"]\\n' > Rhai.toml\n\
         ```\n"
    );
    text.push_str("\n| group | functions |\n|---|---|\n");
    for group in groups {
        let names: Vec<String> =
            group.functions.iter().map(|function| format!("`{}`", function.name)).collect();
        let _ = writeln!(text, "| [{0}](#{0}) | {1} |", group.name, names.join(" "));
    }
    for group in groups {
        let _ = write!(text, "\n## {}\n\n{}\n", group.name, group.summary);
        for function in &group.functions {
            let _ = write!(text, "\n### {}\n\n```\n", function.full_name());
            for signature in &function.signatures {
                let _ = writeln!(text, "{signature}");
            }
            let _ = writeln!(text, "```\n\n{}\n", function.summary);
            let _ = write!(text, "```rust\n{}\n```\n", function.example.trim());
        }
    }
    text
}

/// The whole as a definition file of Rhai: what editors show while one types.
pub(super) fn definitions(script_type: &str, groups: &[Group]) -> String {
    let mut text =
        format!("// Generated: hero script doc --definitions -t {script_type}\n\nmodule static;\n");
    for function in groups.iter().flat_map(|group| &group.functions) {
        for signature in &function.signatures {
            let _ = write!(text, "\n/// {}\n///\n/// ```\n", function.summary);
            for line in function.example.trim().lines() {
                let _ = writeln!(text, "/// {line}");
            }
            let _ = writeln!(text, "/// ```\n{}", definition(signature, function.receiver));
        }
    }
    text
}

/// `fn` and a signature with the types as Rhai spells them; what a function is called on comes
/// first among its parameters.
fn definition(signature: &str, of: Option<&str>) -> String {
    let (call, gives) = signature.split_once(" -> ").unwrap_or((signature, "()"));
    let (name, parameters) = call.split_once('(').unwrap_or((call, ""));
    let parameters = parameters.trim_end_matches(')');
    let mut typed: Vec<String> = parameters
        .split(", ")
        .filter_map(|parameter| parameter.split_once(": "))
        .map(|(name, kind)| format!("{name}: {}", spelled(kind)))
        .collect();
    let name = match (name.split_once('.'), of) {
        (Some((object, name)), Some(of)) => {
            typed.insert(0, format!("{object}: {of}"));
            name
        }
        _ => name,
    };
    format!("fn {name}({}) -> {};", typed.join(", "), spelled(gives))
}

fn spelled(kind: &str) -> &str {
    match kind {
        "string" => "String",
        "map" => "Map",
        "array" => "Array",
        "blob" => "Blob",
        "function" => "FnPtr",
        kind if kind == "any" || kind.contains(" or ") => "?",
        kind => kind,
    }
}
