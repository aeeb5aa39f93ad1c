//! `hero script doc`, `check`, `repl` and `redis`: documents the functions of scripts, and checks scripts without
//! running them.

mod pages;
pub(super) mod repl;

pub use pages::definitions;

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::Global;
use super::script::ScriptSource;
use super::table::TextTable;
use crate::config::Config;
use crate::engine::rhai::{Finding, Function, Group};
use crate::engine::scripts::{check_script, script_groups};
use crate::error::{Error, Exit};
use crate::proto::keys::Keys;
use crate::proto::target::ScriptType;
use crate::proto::text::{did_you_mean, nearest};
use crate::store::{LuaSource, lua_sources};

/// Print the functions of Rhai scripts: signature, description, example
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hero script doc -t osis\n  hero script doc run\n  \
                        hero script doc TextReplacer.replace --json\n  \
                        hero script doc -t osis --definitions > osis.d.rhai")]
pub(super) struct Doc {
    /// Only this function, or this group; by default all
    name: Option<String>,
    /// The engine, `sal` or `osis`; by default both
    #[arg(short = 't', long = "type", value_name = "TYPE")]
    script_type: Option<String>,
    /// Print them as a definition file for editors with Rhai support
    #[arg(long, conflicts_with = "name", requires = "script_type")]
    definitions: bool,
}

/// Report the errors of a script without running it; exit code 65 if it has any
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hero script check report.rhai\n  \
                        hero script check -t sal -e 'file_raed(\"/etc/hostname\")'\n  \
                        hero script check -t bash deploy.sh\n\n\
                        A Rhai script is parsed with the modules that it imports, and unknown functions are reported. \
                        Other scripts are checked by the `check` command of their type in the configuration.")]
pub(super) struct ScriptCheck {
    #[command(flatten)]
    source: ScriptSource,
    /// The script type; by default the type of the file's extension (.rhai is osis)
    #[arg(short = 't', long = "type", value_name = "TYPE")]
    script_type: Option<String>,
}

impl Doc {
    pub(super) fn run(&self, global: &Global) -> Result<(), Error> {
        let groups = script_groups(self.script_type.as_deref())?;
        let script_type = self.script_type.as_deref().unwrap_or_default();
        let chosen = match &self.name {
            Some(name) => chosen(&groups, name)?,
            None => groups,
        };
        let text = || match (&self.name, self.definitions) {
            (_, true) => pages::definitions(script_type, &chosen),
            (Some(_), false) => pages::in_full(&chosen),
            (None, false) => pages::overview(&chosen),
        };
        let functions = || chosen.iter().flat_map(|group| &group.functions).collect::<Vec<_>>();
        global.print(|| json!(functions()), text)
    }
}

impl ScriptCheck {
    pub(super) fn run(&self, global: &Global) -> Result<ExitCode, Error> {
        let config = global.config()?;
        let script_type = self.source.script_type(self.script_type.as_deref(), config)?;
        let source = self.source.read(config.job.script_size_max)?;
        let extension = self.source.extension(&script_type, config);
        let findings = check_script(
            &config.types,
            (&config.job, &config.osis),
            &script_type,
            &source,
            &extension,
        )?;
        let name = self.source.name();
        let line = |found: &Finding| said(&name, found) + "\n";
        global.print(|| json!(findings), || findings.iter().map(line).collect())?;
        Ok(if findings.is_empty() { ExitCode::SUCCESS } else { Exit::Data.into() })
    }
}

/// Rejects a script that has errors with [`Exit::Data`], line by line, and a type without a check with [`Exit::Usage`].
pub(super) fn refuse_faulty(
    config: &Config,
    script_type: &ScriptType,
    name: &str,
    source: &str,
    extension: &str,
) -> Result<(), Error> {
    let findings =
        check_script(&config.types, (&config.job, &config.osis), script_type, source, extension)?;
    let lines: Vec<String> = findings.iter().map(|found| said(name, found)).collect();
    if lines.is_empty() { Ok(()) } else { Err(Error::new(Exit::Data, lines.join("\n"))) }
}

/// Formats a finding. One of a command has no column: its text names the place.
fn said(name: &str, found: &Finding) -> String {
    let Finding { file, line, column, message } = found;
    let name = file.as_deref().unwrap_or(name);
    match column {
        0 => format!("{name}: {message}"),
        column => format!("{name}:{line}:{column}: {message}"),
    }
}

/// The functions with this name, alone or after their type, or the group with this name.
fn chosen(groups: &[Group], name: &str) -> Result<Vec<Group>, Error> {
    let is_named = |function: &&Function| function.name == name || function.full_name == name;
    let chosen: Vec<Group> = groups
        .iter()
        .map(|group| {
            let functions = group.functions.iter().filter(is_named).cloned().collect();
            if group.name == name { group.clone() } else { Group { functions, ..group.clone() } }
        })
        .filter(|group| !group.functions.is_empty())
        .collect();
    if !chosen.is_empty() {
        return Ok(chosen);
    }
    let known = groups.iter().flat_map(|group| &group.functions).map(|function| function.name);
    let message = format!("no such function: `{name}`{}", did_you_mean(nearest(name, known)));
    Err(Error::new(Exit::NotFound, message))
}

/// Print a Lua script as Redis gets it, with line numbers; without NAME, list the scripts
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hero script redis\n  hero script redis claim\n\n\
                        Redis numbers the lines of the whole text. Errors of Hero name the file \
                        and its line instead. A line `-- file: …` begins each file.")]
pub(super) struct LuaText {
    /// The name of the script
    name: Option<String>,
}

impl LuaText {
    pub(super) fn run(&self, global: &Global) -> Result<(), Error> {
        let config = global.config()?;
        let keys = Keys::new(config.redis.namespace.clone())
            .with_events(config.job.events)
            .with_replies(config.job.reply_format)
            .with_legacy_queues(config.supervisor.served_legacy_queues())
            .map_err(|name| Error::new(Exit::Config, format!("illegal legacy queue `{name}`")))?;
        let scripts = lua_sources(&keys);
        let Some(name) = &self.name else {
            return list_lua(&scripts, global);
        };
        let script = scripts.iter().find(|script| script.name == name).ok_or_else(|| {
            let message = format!("no Lua script `{name}`; `hero script redis` lists them");
            Error::new(Exit::NotFound, message)
        })?;
        let document =
            || json!({ "name": script.name, "about": script.about, "text": script.text });
        global.print(document, || numbered(&script.text))
    }
}

fn list_lua(scripts: &[LuaSource], global: &Global) -> Result<(), Error> {
    let row = |script: &LuaSource| json!({ "name": script.name, "about": script.about });
    let table = || {
        TextTable::of(scripts)
            .column("SCRIPT", &|of| of.name.to_owned())
            .column("WHAT IT DOES", &|of| of.about.clone())
    };
    global.print(|| scripts.iter().map(row).collect(), || table().render())
}

fn numbered(text: &str) -> String {
    let mut out = String::new();
    for (number, line) in (1..).zip(text.lines()) {
        let _ = writeln!(out, "{number:>4}  {line}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{OsisConfig, RhaiLimits};
    use crate::engine::scripts::{osis_engine, sal_engine};

    fn reported(script_type: &str, source: &str) -> Vec<String> {
        let config = Config::default();
        let script_type = script_type.parse().expect("legal");
        let findings =
            check_script(&config.types, (&config.job, &config.osis), &script_type, source, "")
                .expect("checked");
        let findings = findings.into_iter();
        findings
            .map(|found| format!("{}:{}: {}", found.line, found.column, found.message))
            .collect()
    }

    #[test]
    fn definition_file_has_every_signature() {
        let limits = RhaiLimits::default();
        for (name, engine) in
            [("sal", sal_engine(&limits)), ("osis", osis_engine(&limits, &OsisConfig::default()))]
        {
            let engine = engine.expect("an engine");
            let text = pages::definitions(name, engine.groups());
            let functions = engine.groups().iter().flat_map(|group| &group.functions);
            let signatures: usize = functions.map(|function| function.signatures.len()).sum();
            let definitions: Vec<&str> =
                text.lines().filter(|line| line.starts_with("fn ")).collect();
            assert_eq!(definitions.len(), signatures);
            for line in definitions {
                assert!(line.ends_with(';') && line.contains(") -> "), "{line}");
                assert!(!line.contains("string") && !line.contains(" or "), "{line}");
            }
        }
        let sal = sal_engine(&limits).expect("sal");
        let text = pages::definitions("sal", sal.groups());
        for line in [
            "fn file_read(path: String) -> String;",
            "fn file_write(path: String, text: String) -> ();",
            "fn execute(command: Command) -> Map;",
            "fn redis_get(key: String) -> String;",
        ] {
            assert!(text.contains(&format!("\n{line}\n")), "{line}\n{text}");
        }
    }

    #[test]
    fn unknown_function_is_reported_with_its_place_and_the_nearest_name() {
        assert_eq!(
            reported("sal", "let text = file_raed(\"x\");\nfn f() {\n    text.len() + zzzzzz()\n}"),
            [
                "1:12: unknown function `file_raed`; did you mean `file_read`?",
                "3:18: unknown function `zzzzzz`",
            ]
        );
        assert_eq!(
            reported("osis", "if true { run(\"ls\") }"),
            ["1:11: `run` is a function of the script type sal alone"]
        );
        assert_eq!(reported("osis", "let x = ;"), ["1:9: syntax error: unexpected ';'"]);
    }

    #[test]
    fn functions_of_the_script_itself_are_known() {
        let source = "fn own(x) { x } let m = #{f: |x| x + 1}; own(1); m.f(2); [1].map(|x| own(x)); \
                      print(type_of(m)); Fn(\"own\").call(3); `${own(4)}`";
        assert_eq!(reported("osis", source), [] as [&str; 0]);
        for group in sal_engine(&RhaiLimits::default()).expect("sal").groups() {
            for function in &group.functions {
                assert_eq!(reported("sal", function.example), [] as [&str; 0], "{}", function.name);
            }
        }
    }

    #[test]
    fn function_is_found_with_and_without_its_type() {
        let sal = sal_engine(&RhaiLimits::default()).expect("sal");
        let names = |name: &str| -> Vec<String> {
            let groups = chosen(sal.groups(), name).expect(name);
            groups
                .iter()
                .flat_map(|group| &group.functions)
                .map(|function| function.full_name.clone())
                .collect()
        };
        assert_eq!(names("run"), ["run", "Command.run"]);
        assert_eq!(names("GitTree.list"), ["GitTree.list"]);
        let both = script_groups(None).expect("both");
        let find = chosen(&both, "osis_find").expect("a function of osis alone");
        assert_eq!(find[0].functions[0].signatures.len(), 3);
        let sleep = chosen(&both, "sleep").expect("a function of both");
        assert_eq!(sleep.iter().map(|group| group.functions.len()).sum::<usize>(), 1);
        assert!(names("time").contains(&"time_now".to_owned()));
        let error = chosen(sal.groups(), "file_raed").expect_err("unknown");
        assert_eq!(error.exit, Exit::NotFound);
        assert!(error.message.ends_with("did you mean `file_read`?"), "{}", error.message);
    }
}
