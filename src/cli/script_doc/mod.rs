//! `hero script`: documents the functions of scripts, and checks scripts without running them.

mod lua;
mod pages;
mod repl;

pub use pages::definitions;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::script::ScriptSource;
use super::{Global, output};
use crate::config::{Config, EngineKind, JobConfig, OsisConfig, RhaiLimits, SalConfig};
use crate::engine::Backends;
use crate::engine::heroscript::HeroScriptEngine;
use crate::engine::process::CommandEngine;
use crate::engine::rhai::{Finding, Function, Group, RhaiEngine, nearest};
use crate::error::{Error, Exit};
use crate::proto::target::ScriptType;

/// Look up functions of scripts, check a script, try one at a prompt
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:\n  hero script doc\n  hero script doc file_read\n  \
                        hero script check -t sal deploy.rhai\n  \
                        hero script repl -t osis\n  hero script redis claim")]
pub(super) enum ScriptCommand {
    Doc(Doc),
    Check(ScriptCheck),
    Repl(repl::Repl),
    Redis(lua::LuaText),
}

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
                        A Rhai script is parsed, and unknown functions are reported. Other scripts \
                        are checked\nby the `check` command of their type in the configuration.")]
pub(super) struct ScriptCheck {
    #[command(flatten)]
    source: ScriptSource,
    /// The script type; by default that of the file's extension (.rhai is osis)
    #[arg(short = 't', long = "type", value_name = "TYPE")]
    script_type: Option<String>,
}

impl ScriptCommand {
    pub(super) fn run(&self, global: &Global) -> Result<ExitCode, Error> {
        match self {
            Self::Doc(doc) => doc.run(global),
            Self::Check(check) => check.run(global),
            Self::Repl(repl) => super::block_on(repl.run(global)),
            Self::Redis(script) => script.run(global),
        }
    }
}

impl Doc {
    fn run(&self, global: &Global) -> Result<ExitCode, Error> {
        let groups = groups(self.script_type.as_deref())?;
        let script_type = self.script_type.as_deref().unwrap_or_default();
        let chosen = match &self.name {
            Some(name) => chosen(&groups, name)?,
            None => groups,
        };
        if global.json {
            output::json(&document(&chosen))?;
        } else if self.definitions {
            output::text(&pages::definitions(script_type, &chosen))?;
        } else if self.name.is_some() {
            output::text(&pages::in_full(&chosen))?;
        } else {
            output::text(&pages::overview(&chosen))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl ScriptCheck {
    fn run(&self, global: &Global) -> Result<ExitCode, Error> {
        let config = global.config()?;
        let script_type = self.source.script_type(self.script_type.as_deref(), &config)?;
        let source = self.source.read(config.job.script_size_max)?;
        let extension = self.source.extension(&script_type, &config);
        let findings = findings(&config, &script_type, &source, &extension)?;
        if global.json {
            let findings = findings.iter();
            let findings = findings.map(|found| {
                json!({ "line": found.line, "column": found.column, "message": found.message })
            });
            output::json(&Value::Array(findings.collect()))?;
        } else {
            for found in &findings {
                output::line(&said(&self.source.name(), found))?;
            }
        }
        Ok(if findings.is_empty() { ExitCode::SUCCESS } else { Exit::Data.into() })
    }
}

/// Rejects a script that has errors.
///
/// # Errors
/// [`Exit::Data`] with the errors, line by line; [`Exit::Usage`] for a type without a check.
pub(super) fn refuse_faulty(
    config: &Config,
    script_type: &ScriptType,
    name: &str,
    source: &str,
    extension: &str,
) -> Result<(), Error> {
    let findings = findings(config, script_type, source, extension)?;
    let lines: Vec<String> = findings.iter().map(|found| said(name, found)).collect();
    if lines.is_empty() { Ok(()) } else { Err(Error::new(Exit::Data, lines.join("\n"))) }
}

/// Formats a finding. One of a command has no line of its own: its text names the lines.
fn said(name: &str, found: &Finding) -> String {
    let Finding { line, column, message } = found;
    match line {
        0 => format!("{name}: {message}"),
        line => format!("{name}:{line}:{column}: {message}"),
    }
}

fn findings(
    config: &Config,
    script_type: &ScriptType,
    source: &str,
    extension: &str,
) -> Result<Vec<Finding>, Error> {
    let Some(of_type) = config.types.get(script_type) else {
        return Err(Error::new(
            Exit::Data,
            format!("the script type `{script_type}` is not configured"),
        ));
    };
    let limits = &of_type.limits;
    match of_type.engine {
        EngineKind::Sal => Ok(sal(limits)?.check(source, &[])),
        EngineKind::Osis => {
            let other = sal(&RhaiLimits::default())?;
            let functions = other.groups().iter().flat_map(|group| &group.functions);
            let elsewhere: Vec<(&str, &str)> =
                functions.map(|function| (function.name, "sal")).collect();
            Ok(osis(limits, &config.osis)?.check(source, &elsewhere))
        }
        EngineKind::HeroScript => {
            let backends = Backends { osis: config.osis.clone(), ..Backends::default() };
            let (script_type, modules) = (script_type.clone(), &of_type.modules);
            let engine =
                HeroScriptEngine::new(script_type, modules, limits, &config.job, &backends);
            Ok(engine.check(source))
        }
        EngineKind::Command => {
            let engine = CommandEngine::new(script_type.clone(), of_type, &config.job);
            if !engine.has_check() {
                let message = format!(
                    "cannot check a {script_type} script: type.{script_type}.check is not configured"
                );
                return Err(Error::new(Exit::Usage, message));
            }
            let found = engine.check(source, extension).map_err(|failure| {
                let message = format!("cannot check the script: {failure}");
                Error::new(Exit::Unavailable, message)
            })?;
            let found = found.map(|message| Finding { line: 0, column: 0, message });
            Ok(found.into_iter().collect())
        }
    }
}

fn osis(limits: &RhaiLimits, osis: &OsisConfig) -> Result<RhaiEngine, Error> {
    let backends = Backends { osis: osis.clone(), ..Backends::default() };
    let engine = RhaiEngine::osis(named("osis")?, limits, &JobConfig::default());
    Ok(engine.with_backends(&backends))
}

fn sal(limits: &RhaiLimits) -> Result<RhaiEngine, Error> {
    Ok(RhaiEngine::sal(named("sal")?, limits, &JobConfig::default(), &SalConfig::default()))
}

fn named(name: &str) -> Result<ScriptType, Error> {
    name.parse().map_err(|error| Error::new(Exit::Usage, format!("{error}")))
}

/// The functions of one engine, or of both without duplicates.
fn groups(script_type: Option<&str>) -> Result<Vec<Group>, Error> {
    let limits = RhaiLimits::default();
    match script_type {
        Some("osis") => Ok(osis(&limits, &OsisConfig::default())?.groups().to_vec()),
        Some("sal") => Ok(sal(&limits)?.groups().to_vec()),
        None => {
            let mut groups = sal(&limits)?.groups().to_vec();
            let osis = osis(&limits, &OsisConfig::default())?;
            let others =
                osis.groups().iter().filter(|own| groups.iter().all(|g| g.name != own.name));
            let others: Vec<Group> = others.cloned().collect();
            groups.extend(others);
            Ok(groups)
        }
        Some(_) => {
            let message =
                "only `osis` and `sal` have functions of their own; use -t osis or -t sal";
            Err(Error::new(Exit::Usage, message))
        }
    }
}

/// The functions with this name, alone or after their type, or the group with this name.
fn chosen(groups: &[Group], name: &str) -> Result<Vec<Group>, Error> {
    let is_named = |function: &&Function| function.name == name || function.full_name() == name;
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
    let hint = nearest(name, known).map(|known| format!("; did you mean `{known}`?"));
    let message = format!("no such function: `{name}`{}", hint.unwrap_or_default());
    Err(Error::new(Exit::NotFound, message))
}

fn document(groups: &[Group]) -> Value {
    let functions = groups.iter().flat_map(|group| {
        group.functions.iter().map(|function| {
            json!({
                "name": function.full_name(),
                "group": group.name,
                "signatures": function.signatures,
                "says": function.summary,
                "example": function.example.trim(),
            })
        })
    });
    Value::Array(functions.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(script_type: &str, source: &str) -> Vec<String> {
        let config = Config::default();
        let script_type = script_type.parse().expect("legal");
        let findings = findings(&config, &script_type, source, "").expect("checked");
        let findings = findings.into_iter();
        findings
            .map(|found| format!("{}:{}: {}", found.line, found.column, found.message))
            .collect()
    }

    #[test]
    fn definition_file_has_every_signature() {
        let limits = RhaiLimits::default();
        for (name, engine) in
            [("sal", sal(&limits)), ("osis", osis(&limits, &OsisConfig::default()))]
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
        let sal = sal(&limits).expect("sal");
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
        for group in sal(&RhaiLimits::default()).expect("sal").groups() {
            for function in &group.functions {
                assert_eq!(reported("sal", function.example), [] as [&str; 0], "{}", function.name);
            }
        }
    }

    #[test]
    fn function_is_found_with_and_without_its_type() {
        let sal = sal(&RhaiLimits::default()).expect("sal");
        let names = |name: &str| -> Vec<String> {
            let groups = chosen(sal.groups(), name).expect(name);
            groups.iter().flat_map(|group| &group.functions).map(Function::full_name).collect()
        };
        assert_eq!(names("run"), ["run", "Command.run"]);
        assert_eq!(names("GitTree.list"), ["GitTree.list"]);
        let both = groups(None).expect("both");
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
