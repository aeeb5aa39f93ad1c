//! The cookbook: each of its tasks does what the page says, as it stands there.

use std::fmt::Write;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use regex::Regex;

use crate::support::{Hero, Redis, needs, pypi, reaches_registry};

const PAGE: &str = include_str!("../../docs/cookbook.md");
/// The most lines of a task.
const LINES_MAX: usize = 8;
/// Tasks that run at once.
const WORKERS: usize = 3;

/// A task of the page.
#[derive(Debug, Default)]
struct Recipe {
    title: String,
    /// Its part of the configuration; `{folder}` stands for its working folder.
    config: String,
    lines: String,
    /// The expected output; `…` stands for any text within a line.
    prints: Option<String>,
}

fn recipes() -> Vec<Recipe> {
    let mut recipes: Vec<Recipe> = Vec::new();
    let mut block: Option<(&str, String)> = None;
    for line in PAGE.lines() {
        if let Some((language, text)) = &mut block {
            if line != "```" {
                let _ = writeln!(text, "{line}");
                continue;
            }
            let recipe = recipes.last_mut().expect("a block stands below a title");
            match *language {
                "toml" => recipe.config.clone_from(text),
                "sh" => recipe.lines.clone_from(text),
                "text" => recipe.prints = Some(text.clone()),
                other => panic!("a block of {other}"),
            }
            block = None;
        } else if let Some(title) = line.strip_prefix("## ") {
            recipes.push(Recipe { title: title.to_owned(), ..Recipe::default() });
        } else if let Some(language) = line.strip_prefix("```") {
            block = Some((language, String::new()));
        }
    }
    recipes
}

/// Returns whether this machine has what a task needs.
fn can_run(recipe: &Recipe) -> bool {
    let has = |program: &str| Path::new(program).exists();
    match recipe.title.as_str() {
        "Python with packages" => needs("packages of PyPI", || pypi().is_some()),
        "Packages of npm" => needs("the registry of npm", reaches_registry),
        "A program in Java" => needs("java", || has("/usr/bin/java")),
        "A webhook of GitHub" => needs("openssl", || has("/usr/bin/openssl")),
        _ => true,
    }
}

/// Runs a task in a namespace of its own. Returns what is wrong.
fn fault(recipe: &Recipe) -> Option<String> {
    let redis = Redis::absent(false);
    let folder = redis.folder().join("task");
    std::fs::create_dir(&folder).expect("a folder");
    let config = recipe.config.replace("{folder}", &folder.display().to_string());
    let hero = Hero::on(&redis).add(&config);
    let script = format!("set -euo pipefail\ncd '{}'\n{}", folder.display(), recipe.lines);
    let clients = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/python/src");
    let path = format!("PYTHONPATH={}", clients.display());
    let command = ["dev", "--", "env", &path, "bash", "-c", &script];
    let done = hero.run(&command);
    let prints = recipe.prints.as_ref().map(|text| {
        let pattern: Vec<String> = text.split('…').map(regex::escape).collect();
        Regex::new(&format!("^{}$", pattern.join(".*"))).expect("a valid expression")
    });
    let is_right = done.code == 0 && prints.is_none_or(|of| of.is_match(&done.stdout));
    (!is_right).then(|| format!("## {}\n{done:#?}", recipe.title))
}

#[test]
fn every_task_of_the_cookbook_runs_as_it_stands() {
    let recipes = recipes();
    assert!(recipes.len() >= 20, "{} tasks", recipes.len());
    let only = std::env::var("RECIPE").unwrap_or_default();
    let (next, faults) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some(recipe) = recipes.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if !recipe.title.contains(&only) || !can_run(recipe) {
                        continue;
                    }
                    let fault = fault(recipe);
                    faults.lock().expect("no task panics").extend(fault);
                }
            });
        }
    });
    let faults = faults.into_inner().expect("no task panics");
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}

#[test]
fn every_task_of_the_cookbook_is_short() {
    for recipe in recipes() {
        let lines = recipe.lines.lines().count();
        assert!((1..=LINES_MAX).contains(&lines), "{} has {lines} lines", recipe.title);
    }
}
