//! The pages of the functions of scripts, docs/sal.md and docs/osis.md, with their definition files.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use hero::cli::definitions;
use hero::config::{JobConfig, RhaiLimits, SalConfig};
use hero::engine::rhai::{Group, RhaiEngine};
use hero::rpc::MethodTable;

use crate::{configuration, manual};

/// Writes all pages and definition files, the documents of the API, and the files of the configuration.
pub(crate) fn write() -> Result<(), Box<dyn Error>> {
    let (table, docs) =
        (MethodTable::new(None), PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs"));
    let documents = [
        ("openrpc.json", serde_json::to_string_pretty(table.document())?),
        ("openapi.json", serde_json::to_string_pretty(table.paths_document())?),
    ];
    let documents = documents.map(|(name, text)| (docs.join(name), format!("{text}\n")));
    for (file, text) in files()?.into_iter().chain(documents) {
        fs::write(&file, text)
            .map_err(|error| format!("cannot write {}: {error}", file.display()))?;
    }
    Ok(())
}

/// Returns the generated files, without the documents of the API, with their text.
fn files() -> Result<Vec<(PathBuf, String)>, Box<dyn Error>> {
    let (limits, job) = (RhaiLimits::default(), JobConfig::default());
    let sal = RhaiEngine::sal("sal".parse()?, &limits, &job, &SalConfig::default());
    let osis = RhaiEngine::osis("osis".parse()?, &limits, &job);
    let docs = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let files = [("sal", sal.groups()), ("osis", osis.groups())].into_iter().flat_map(
        |(script_type, groups)| {
            [
                (docs.join(format!("{script_type}.md")), markdown(script_type, groups)),
                (docs.join(format!("{script_type}.d.rhai")), definitions(script_type, groups)),
            ]
        },
    );
    Ok(files.chain(configuration::files()?).chain([manual::protocol()?]).collect())
}

/// Returns the page of the functions of one engine.
fn markdown(script_type: &str, groups: &[Group]) -> String {
    let mut text = format!(
        "# The functions of {script_type} scripts\n\n\
         <!-- Generated: cargo xtask docs -->\n\n\
         The functions that scripts of the engine `{script_type}` can call, beside the functions of the \
         language, which is [Rhai](https://rhai.rs/book/). A function that fails throws an error \
         that names the operation and its object; `try` and `catch` handle it. The tests run every \
         example; a last line `// → TEXT` is the output of the script.\n"
    );
    if script_type == "sal" {
        text.push_str(
            "\nThe section `[sal]` of the configuration sets their permissions: the folders `read` and \
             `write`, and whether they may `run` programs and use the `network`. A call that takes \
             long ends with the job, and so does every program that it started.\n",
        );
    } else {
        text.push_str(
            "\nThe objects that they store, and the query language, are described in \
             [objects.md](objects.md). It also has the functions of declared types, such as \
             `osis_project_task_set(task)` for `[osis.schema.project.task]`: they store the objects \
             that `osis_set(\"project_task\", task)` does, check their fields, and call their id \
             `sid`, as the published herolib does. [Scripts of HeroModels](objects.md#scripts-of-heromodels) \
             are ported to them by hand.\n",
        );
    }
    let _ = write!(
        text,
        "\nAn editor with a language server for Rhai completes them. It needs \
         [{script_type}.d.rhai]({script_type}.d.rhai) beside the scripts, and a `Rhai.toml` at the \
         top of their folder:\n\n\
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
            let _ = write!(text, "\n### {}\n\n```\n", &function.full_name);
            for signature in &function.signatures {
                let _ = writeln!(text, "{signature}");
            }
            let _ = writeln!(text, "```\n\n{}\n", function.summary);
            let _ = write!(text, "```rust\n{}\n```\n", function.example);
        }
    }
    if script_type == "sal" {
        text.push_str(PUBLISHED);
    }
    text
}

/// The differences from the crates whose functions these are; `make test-sal-original` finds others.
const PUBLISHED: &str = "
## The published crates

Scripts for the crates `sal-os`, `sal-text`, `sal-net`, `sal-redisclient`, `sal-git` and `sal-process` run here: each \
function exists, and has the same answers except for these. `make test-sal-original` builds the crates, runs their \
own scripts on both, and compares the answers.

| subject | published crates | here |
|---|---|---|
| a function that only does something, such as `mkdir` or `copy` | returns a sentence | returns `()`, or the path where the page says so |
| `execute().code` | 1 for most failures | the exit code of the command; 128 and the number of a signal |
| packages | Ubuntu and macOS | Debian and its derivatives; `package_platform` says Debian |
| `redis_lrange` | a value without functions | an array |
| `http_check`, `http_status` | ask with HEAD, for 10 s | ask with GET, for 30 s |
| `find_dir` | only folders directly below | if there is none, deeper ones |
| `find_files`, `find_dirs` | follow links, `[ab]` matches one of several characters | follow no links; only `*` and `?` |
| `case_insensitive` without `regex` | the replacement is dropped | works |
| `git_clone` | below the system's temporary folder, the newest commit | into the script's folder, all commits |
| `pull` | fails if there are local changes | fails if they conflict with the new commits |
| `process_list`, `process_get` | by name | by name, or if there is none, by command line |
| `kill` | may end the submitter and the daemon | a text never matches the programs of Hero and their parents |
| templates | Tera | Jinja with Tera's filters, functions and tests; not `set_global`, `macro` with `self::`, `{% for key, value in map %}` (use `map|items`) |
| errors | texts of their own | name the operation and its object; errors of git contain \"Git error\" |

Of later versions (herolib) there are `execute(command).run()`, `replacer_new`, `template_open`, `ensure`, `repeat`, \
`pad_left`, `pad_right`, `name_fix_kubernetes`, `http_ping` and the `net_` functions. Virtual machines (`RuntimeBuilder`), \
containers and Kubernetes are not managed.
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_docs_are_up_to_date() {
        for (file, text) in files().expect("pages") {
            let committed = fs::read_to_string(&file).expect("a page");
            let file = file.display();
            assert!(committed == text, "{file} is not up to date: cargo xtask docs");
        }
    }
}
