//! Formats the functions of scripts for the terminal, and as definition files for editors.

use std::fmt::Write;

use crate::cli::table::TextTable;
use crate::engine::rhai::{Function, Group};

pub(super) fn overview(groups: &[Group]) -> String {
    let functions: Vec<&Function> = groups.iter().flat_map(|group| &group.functions).collect();
    let first =
        |summary: &str| summary.split_inclusive(". ").next().map(str::trim_end).map(str::to_owned);
    let table = TextTable::of(&functions)
        .column("FUNCTION", &|of| of.full_name.clone())
        .column("DOES", &|of| first(of.summary).unwrap_or_default());
    format!("{}\nhero script doc NAME documents one function.\n", table.render())
}

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
        for line in function.example.lines() {
            let _ = writeln!(text, "    {line}");
        }
    }
    text
}

/// Returns the functions of one engine as a definition file of Rhai, for editors.
pub fn definitions(script_type: &str, groups: &[Group]) -> String {
    let mut text =
        format!("// Generated: hero script doc --definitions -t {script_type}\n\nmodule static;\n");
    for function in groups.iter().flat_map(|group| &group.functions) {
        for signature in &function.signatures {
            let _ = write!(text, "\n/// {}\n///\n/// ```\n", function.summary);
            for line in function.example.lines() {
                let _ = writeln!(text, "/// {line}");
            }
            let _ = writeln!(text, "/// ```\n{}", definition(signature, function.receiver));
        }
    }
    text
}

/// Formats `fn` and a signature with Rhai's names of types. The object of a method is its first
/// parameter.
fn definition(signature: &str, receiver: Option<&str>) -> String {
    let (call, returned) = signature.split_once(" -> ").unwrap_or((signature, "()"));
    let (name, parameters) = call.split_once('(').unwrap_or((call, ""));
    let parameters = parameters.trim_end_matches(')');
    let mut typed: Vec<String> = parameters
        .split(", ")
        .filter_map(|parameter| parameter.split_once(": "))
        .map(|(name, kind)| format!("{name}: {}", rhai_type(kind)))
        .collect();
    let name = match (name.split_once('.'), receiver) {
        (Some((object, name)), Some(receiver)) => {
            typed.insert(0, format!("{object}: {receiver}"));
            name
        }
        _ => name,
    };
    format!("fn {name}({}) -> {};", typed.join(", "), rhai_type(returned))
}

fn rhai_type(kind: &str) -> &str {
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
