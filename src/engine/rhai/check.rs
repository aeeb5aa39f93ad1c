//! Checks a script and the modules that it imports without running them: their syntax, and that functions exist.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use ::rhai::{AST, ASTNode, Engine, EvalAltResult, Expr, FnCallExpr, Map, Position, Scope, Stmt};
use schemars::JsonSchema;
use serde::Serialize;

use super::RhaiEngine;
use super::interpreter::{MODULES_MAX, compile};
use super::modules::ModuleError;
use super::runtime::failure;
use crate::proto::text::{did_you_mean, nearest};

/// Functions of the language that no package lists. Captures of closures call `curry`, which scripts cannot.
const LANGUAGE_FUNCTIONS: [&str; 10] = [
    "Fn",
    "call",
    "curry",
    "debug",
    "eval",
    "is_def_fn",
    "is_def_var",
    "is_shared",
    "print",
    "type_of",
];

/// Functions of `HeroModels`, which scripts of rhailib begin with.
const OF_HEROMODELS: [&str; 6] =
    ["new_calendar", "new_circle", "new_event", "new_user", "save_circle", "save_user"];

/// A mistake in a script.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[schemars(rename = "FindingDocument")]
pub struct Finding {
    /// The file of an imported module that has it; absent for the script itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line, from 1; 0 if the program that checks the script names none.
    pub line: usize,
    /// The column, from 1; 0 if it is not known, and then the message has the place too.
    pub column: usize,
    /// The mistake.
    pub message: String,
}

struct Call {
    name: String,
    is_method: bool,
    position: Position,
}

/// The parts of a script that can be wrong without a run.
#[derive(Default)]
struct ScriptParts {
    calls: Vec<Call>,
    /// The names of properties, which may hold functions.
    properties: BTreeSet<String>,
    /// The modules that it imports by a text, with the places.
    imports: Vec<(String, Position)>,
}

impl RhaiEngine {
    /// Returns every mistake that can be found without running the script; mistakes of the modules that it
    /// imports come after its own, ordered by line. `elsewhere` lists functions with the script type that has
    /// them, for a better hint.
    pub fn check(&self, source: &str, elsewhere: &[(&str, &str)]) -> Vec<Finding> {
        let engine = &self.interpreter;
        let compiled = match compile(engine, &Scope::new(), source) {
            Ok(compiled) => Arc::new(compiled),
            Err(error) => return vec![mistake(None, &error.into())],
        };
        let (mut findings, mut seen) = (Vec::new(), BTreeSet::new());
        let mut to_check = vec![(None, compiled)];
        while let Some((file, code)) = to_check.pop() {
            let parts = ScriptParts::of(&code);
            let known = known(engine, &code);
            let unknown = parts.unknown_calls(&known).map(|call| {
                finding(file.as_deref(), call.position, unknown(&call.name, &known, elsewhere))
            });
            findings.extend(unknown);
            for (name, position) in parts.imports {
                match self.modules.load(engine, &name) {
                    Ok(module) => {
                        if seen.len() < MODULES_MAX && seen.insert(module.file.clone()) {
                            to_check.push((Some(module.file), module.code));
                        }
                    }
                    Err(ModuleError::Unreadable(why)) => {
                        let why = format!("import {name}: {why}");
                        findings.push(finding(file.as_deref(), position, why));
                    }
                    Err(ModuleError::Invalid { file, error }) => {
                        findings.push(mistake(Some(&file), &error));
                    }
                }
            }
        }
        findings.sort();
        findings.dedup();
        findings
    }
}

fn mistake(file: Option<&Path>, error: &EvalAltResult) -> Finding {
    let text = failure::message(error);
    // The caller prints the position in front of the message.
    let text = text.rsplit_once(" (line ").map_or(text.as_str(), |(text, _)| text);
    finding(file, error.position(), text.to_owned())
}

fn known(engine: &Engine, compiled: &AST) -> BTreeSet<String> {
    let native =
        engine.collect_fn_metadata(None, |info| Some(info.metadata.name.to_string()), true);
    let own = compiled.iter_functions().map(|function| function.name.to_owned());
    native.into_iter().chain(own).chain(LANGUAGE_FUNCTIONS.map(ToOwned::to_owned)).collect()
}

impl ScriptParts {
    fn of(compiled: &AST) -> Self {
        let mut parts = Self::default();
        compiled.walk(&mut |path: &[ASTNode<'_>]| {
            path.last().into_iter().for_each(|node| parts.add(node));
            true
        });
        parts
    }

    fn add(&mut self, node: &ASTNode<'_>) {
        let mut call = |of: &FnCallExpr, is_method: bool, position: Position| {
            if of.op_token.is_none() && of.namespace.is_empty() {
                self.calls.push(Call { name: of.name.to_string(), is_method, position });
            }
        };
        match node {
            ASTNode::Expr(Expr::FnCall(of, position))
            | ASTNode::Stmt(Stmt::FnCall(of, position)) => {
                call(of, false, *position);
            }
            ASTNode::Expr(Expr::MethodCall(of, position)) => call(of, true, *position),
            ASTNode::Expr(Expr::Map(map, _)) => {
                self.properties.extend(map.0.iter().map(|(name, _)| name.name.to_string()));
            }
            // The compiler has already evaluated a map of constants.
            ASTNode::Expr(Expr::DynamicConstant(value, _)) => {
                if let Some(map) = value.read_lock::<Map>() {
                    self.properties.extend(map.keys().map(ToString::to_string));
                }
            }
            ASTNode::Expr(Expr::Property(property, _)) => {
                self.properties.insert(property.2.to_string());
            }
            ASTNode::Stmt(Stmt::Import(import, _)) => {
                if let Expr::StringConstant(name, position) = &import.0 {
                    self.imports.push((name.to_string(), *position));
                }
            }
            _ => {}
        }
    }

    fn unknown_calls(&self, known: &BTreeSet<String>) -> impl Iterator<Item = &Call> {
        let calls = self.calls.iter().filter(|call| !known.contains(call.name.as_str()));
        // A map may hold a function under that name.
        calls.filter(|call| !(call.is_method && self.properties.contains(&call.name)))
    }
}

fn finding(file: Option<&Path>, position: Position, message: String) -> Finding {
    Finding {
        file: file.map(|file| file.display().to_string()),
        line: position.line().unwrap_or_default(),
        column: position.position().unwrap_or_default(),
        message,
    }
}

fn unknown(name: &str, known: &BTreeSet<String>, elsewhere: &[(&str, &str)]) -> String {
    if let Some((_, script_type)) = elsewhere.iter().find(|(known, _)| *known == name) {
        return format!("`{name}` is a function of the script type {script_type} alone");
    }
    if OF_HEROMODELS.contains(&name) {
        return format!(
            "unknown function `{name}`: it is of HeroModels; osis has objects in its place, docs/objects.md#scripts-of-heromodels"
        );
    }
    let is_word = |known: &&String| known.starts_with(|c: char| c.is_ascii_alphabetic());
    let near = nearest(name, known.iter().filter(is_word).map(String::as_str));
    format!("unknown function `{name}`{}", did_you_mean(near))
}
