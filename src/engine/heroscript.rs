//! The engine of `HeroScript`: each action `!!actor.action` of a script calls the function
//! `actor_action(parameters)` of the Rhai file `actor.rhai`, in order, until one fails.

mod parse;

pub use parse::{HeroAction, HeroScriptError, parse};

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use ::rhai::{Array, Dynamic, Map};

use super::rhai::{Finding, ModuleCall, RhaiEngine, RhaiModule, dynamic};
use super::{Cancel, Engine, Failure, Log, Script, Success};
use crate::error::reason;
use crate::proto::target::ScriptType;
use crate::proto::text::{did_you_mean, nearest};

const FILES_MAX: usize = 256;
/// The constants of scripts in Rhai, where `!!params.flag` is a condition.
const CONSTANTS: [&str; 7] =
    ["JOB_ID", "CALLER_ID", "CONTEXT_ID", "ENV", "args", "params", "INPUTS"];

#[derive(Debug)]
pub struct HeroScriptEngine {
    rhai: RhaiEngine,
    folders: Vec<PathBuf>,
    /// By actor: its file, or why it cannot be used.
    modules: BTreeMap<String, Result<RhaiModule, String>>,
    unavailable: Option<String>,
    /// True if scripts in Rhai run as well, as of the types `osis` and `sal`.
    takes_rhai: bool,
}

impl HeroScriptEngine {
    /// Creates an engine and reads the files `*.rhai` of the folders from which `rhai` imports; of two files with one name,
    /// the first folder's counts. Their functions may call the functions of `rhai`.
    pub fn new(rhai: RhaiEngine, folders: &[PathBuf], takes_rhai: bool) -> Self {
        let (mut modules, mut failures) = (BTreeMap::new(), Vec::new());
        for folder in folders {
            match files_of(folder) {
                Ok(files) => {
                    for actor in files.into_iter().take(FILES_MAX) {
                        let module = rhai.module(&actor);
                        modules.entry(actor).or_insert(module);
                    }
                }
                Err(why) => failures.push(format!("{}: {why}", folder.display())),
            }
        }
        let is_without = failures.len() == folders.len();
        let unavailable = is_without.then(|| {
            format!("cannot read type.{}.modules: {}", rhai.script_type(), failures.join(", "))
        });
        Self { rhai, folders: folders.to_vec(), modules, unavailable, takes_rhai }
    }

    fn is_of_rhai(&self, source: &str) -> bool {
        self.takes_rhai && !is_of_actions(source)
    }

    /// Returns every mistake that can be found without a run, by line; `elsewhere` are functions of other script types.
    pub fn check(&self, source: &str, elsewhere: &[(&str, &str)]) -> Vec<Finding> {
        if self.is_of_rhai(source) {
            return self.rhai.check(source, elsewhere);
        }
        match parse(source) {
            Ok(actions) => actions.iter().filter_map(|action| self.finding(action)).collect(),
            Err(HeroScriptError { line, column, message }) => {
                vec![Finding { file: None, line, column, message }]
            }
        }
    }

    fn finding(&self, action: &HeroAction) -> Option<Finding> {
        let message = self.module(action).err()?;
        Some(Finding { file: None, line: action.line, column: 1, message })
    }

    fn module(&self, action: &HeroAction) -> Result<&RhaiModule, String> {
        let HeroAction { actor, name, .. } = action;
        let Some(module) = self.modules.get(actor) else {
            let folders: Vec<String> =
                self.folders.iter().map(|folder| folder.display().to_string()).collect();
            if folders.is_empty() {
                let key = format!("type.{}.modules", self.rhai.script_type());
                return Err(format!(
                    "unknown actor `{actor}`: {key} names no folder with {actor}.rhai"
                ));
            }
            let near = nearest(actor, self.modules.keys().map(String::as_str));
            return Err(format!(
                "unknown actor `{actor}`: no file {actor}.rhai in {}{}",
                folders.join(", "),
                did_you_mean(near)
            ));
        };
        let module = module.as_ref().map_err(Clone::clone)?;
        let function = function_of(action);
        if module.functions.contains(&function) {
            return Ok(module);
        }
        let prefix = format!("{actor}_");
        let actions: Vec<&str> =
            module.functions.iter().filter_map(|name| name.strip_prefix(&prefix)).collect();
        Err(format!(
            "unknown action `{name}`: {} has no function {function}(parameters){}",
            module.file.display(),
            did_you_mean(nearest(name, actions.into_iter()))
        ))
    }
}

/// Returns true for a script whose first statement is an action: `!!actor.name`. In Rhai a variable cannot stand
/// there before it has a value, unless it is a constant of every script.
fn is_of_actions(source: &str) -> bool {
    let lines = source.strip_prefix('\u{feff}').unwrap_or(source).lines().map(str::trim_start);
    let is_code =
        |line: &&str| !(line.is_empty() || line.starts_with("//") || line.starts_with("#!"));
    let action = lines.clone().find(is_code).and_then(|line| line.strip_prefix("!!"));
    let Some((actor, rest)) = action.and_then(|action| action.split_once('.')) else {
        return false;
    };
    let is_name = |text: &str| {
        text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let name = rest.split_ascii_whitespace().next().unwrap_or_default();
    is_name(actor) && is_name(name) && !CONSTANTS.contains(&actor)
}

fn function_of(action: &HeroAction) -> String {
    format!("{}_{}", action.actor, action.name)
}

/// Returns the names of the Rhai files of a folder without the extension, sorted.
fn files_of(folder: &Path) -> Result<Vec<String>, String> {
    let entries = fs::read_dir(folder).map_err(|error| reason(&error))?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| reason(&error))?.path();
        let name = path.file_stem().and_then(|name| name.to_str()).map(str::to_owned);
        let is_rhai = path.extension().is_some_and(|extension| extension == "rhai");
        if let Some(name) = name.filter(|_| is_rhai) {
            files.push(name);
        }
    }
    files.sort();
    Ok(files)
}

fn parameters_of(action: &HeroAction) -> Map {
    let mut map: Map = Map::new();
    if !action.arguments.is_empty() {
        let arguments: Array = action.arguments.iter().cloned().map(Dynamic::from).collect();
        map.insert("args".into(), arguments.into());
    }
    for (name, value) in &action.parameters {
        map.insert(name.as_str().into(), dynamic(value));
    }
    map
}

impl Engine for HeroScriptEngine {
    fn run(&self, script: &Script<'_>, cancel: &Cancel, log: &dyn Log) -> Result<Success, Failure> {
        if self.is_of_rhai(script.source) {
            return self.rhai.run(script, cancel, log);
        }
        if let Some(failure) = Failure::of_bounds(script, self.script_type()) {
            return Err(failure);
        }
        let actions = parse(script.source).map_err(|error| Failure::script(error.to_string()))?;
        // Nothing runs if one action is unknown.
        let mut calls = Vec::with_capacity(actions.len());
        for action in &actions {
            let place = format!("line {}, !!{}.{}", action.line, action.actor, action.name);
            let module =
                self.module(action).map_err(|why| Failure::script(format!("{place}: {why}")))?;
            let (function, parameters) = (function_of(action), parameters_of(action));
            calls.push(ModuleCall { module, place, function, parameters });
        }
        self.rhai.call_in_order(calls, script, cancel, log)
    }

    fn stack_bytes(&self) -> usize {
        self.rhai.stack_bytes()
    }

    fn warm_up(&self) {
        self.rhai.warm_up();
    }

    fn unavailable(&self) -> Option<String> {
        self.unavailable.clone().filter(|_| !self.takes_rhai)
    }

    fn capabilities(&self) -> Vec<String> {
        let own = (!self.takes_rhai).then(|| "heroscript".to_owned());
        own.into_iter().chain(self.rhai.capabilities()).collect()
    }

    fn script_type(&self) -> &ScriptType {
        self.rhai.script_type()
    }
}

#[cfg(test)]
mod tests;
