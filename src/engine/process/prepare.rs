//! What becomes of a script before it runs: its file, the packages it asks for, its program if it
//! has to be compiled; and the check that never runs it.

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::cache::{Entry, Patience};
use super::tool::Tool;
use super::{CommandEngine, Scratch, failure, find_program, python, reason};
use crate::engine::{Cancel, Failure, Log};
use crate::proto::job::InvalidJob;

/// What stands for the script's file in a configured command.
const SCRIPT: &str = "{script}";
/// What stands for the program that a script was compiled to.
const BINARY: &str = "{binary}";
const KIND: &str = "programs";
/// How long a check may take: it looks at one script and runs nothing.
const CHECK_TIMEOUT: Duration = Duration::from_secs(30);

/// A script that is ready to be run.
#[derive(Debug)]
pub(super) struct Prepared {
    /// The program.
    pub(super) program: PathBuf,
    /// Its arguments.
    pub(super) args: Vec<OsString>,
    /// The file of the script.
    pub(super) script: PathBuf,
    /// The environment with its packages, in one of the entries.
    pub(super) packages: Option<PathBuf>,
    /// What has to stay in the cache while it runs.
    pub(super) entries: Vec<Entry>,
}

impl CommandEngine {
    /// Writes the script's file and gets what it needs.
    ///
    /// # Errors
    /// [`Failure`] of the script's text, its packages or its compiler.
    pub(super) fn prepare(
        &self,
        source: &str,
        scratch: &Scratch,
        patience: Patience<'_>,
        log: &dyn Log,
    ) -> Result<Prepared, Failure> {
        let script = self.write(source, scratch)?;
        let mut entries = Vec::new();
        let mut binary = None;
        if !self.options.compile.is_empty() {
            let entry = self.compiled(source, patience, log)?;
            binary = Some(entry.path().join("program"));
            entries.push(entry);
        }
        let filled = self.command.iter().map(|word| fill(word, &script, binary.as_deref()));
        let mut args: Vec<OsString> = filled.collect();
        let program = match self.command.first() {
            Some(word) if word.contains(BINARY) => PathBuf::from(args.remove(0)),
            _ => {
                args.drain(..args.len().min(1));
                self.program().map_err(failure)?
            }
        };
        let mut prepared = Prepared { program, args, script, packages: None, entries };
        if let Some(packages) = &self.packages {
            python::provide_module(source, scratch).map_err(|error| cannot_write(&error))?;
            if let Some(entry) = packages.of(source, &prepared.program, patience, log)? {
                prepared.program = python::interpreter(entry.path());
                prepared.packages = Some(python::environment(entry.path()));
                prepared.entries.push(entry);
            }
        }
        Ok(prepared)
    }

    /// Tells what is wrong with a script, without running it; `None` if nothing is.
    ///
    /// # Errors
    /// A check that cannot be made here.
    pub fn check(&self, source: &str) -> Result<Option<String>, Failure> {
        let Some(program) = self.options.check.first() else {
            return Err(failure(format!("type.{}.check is not configured", self.script_type)));
        };
        let program = resolve(program).map_err(failure)?;
        let scratch = scratch()?;
        let script = match self.write(source, &scratch) {
            Err(Failure::Invalid { message }) => return Ok(Some(message)),
            written => written?,
        };
        let words = self.options.check.iter().skip(1);
        let args = words.map(|word| fill(word, &script, None)).collect();
        let cancel = Cancel::new();
        let patience = Patience { cancel: &cancel, deadline: Instant::now() + CHECK_TIMEOUT };
        Ok(self.tool(program, args, &scratch).run(patience, None)?.err())
    }

    /// Whether scripts of this type can be checked.
    pub fn has_check(&self) -> bool {
        !self.options.check.is_empty()
    }

    fn write(&self, source: &str, scratch: &Scratch) -> Result<PathBuf, Failure> {
        if let Some(at) = source.find('\0') {
            let line = source[..at].matches('\n').count() + 1;
            let reason = format!("has a NUL in line {line}");
            let message = InvalidJob::new("script", reason).to_string();
            return Err(Failure::Invalid { message });
        }
        // What editors put there for themselves: few interpreters know it.
        let source = source.strip_prefix('\u{feff}').unwrap_or(source);
        let name = format!("script{}", self.extension);
        let file = if self.is_shell() && source.contains("\r\n") {
            // A shell takes the carriage return for a part of the last word.
            scratch.file(&name, &source.replace("\r\n", "\n"))
        } else {
            scratch.file(&name, source)
        };
        file.map_err(|error| cannot_write(&error))
    }

    fn is_shell(&self) -> bool {
        let program = self.command.first().map(Path::new).and_then(Path::file_name);
        program.is_some_and(|name| ["sh", "bash", "dash", "zsh", "ksh"].iter().any(|s| name == *s))
    }

    /// The program that a script is compiled to, compiled if it is not there yet.
    fn compiled(
        &self,
        source: &str,
        patience: Patience<'_>,
        log: &dyn Log,
    ) -> Result<Entry, Failure> {
        let compile = &self.options.compile;
        let compiler = resolve(compile.first().map_or("", String::as_str)).map_err(failure)?;
        let data = compiler.metadata().map_err(|error| {
            failure(format!("cannot read {}: {}", compiler.display(), reason(&error)))
        })?;
        let made_of = format!(
            "{} {} {}\n{compile:?} {:?} {:?}\n{source}",
            compiler.display(),
            data.size(),
            data.mtime(),
            self.extension,
            self.options.env
        );
        self.cache.entry(KIND, &made_of, patience, |folder| {
            // The compiler sees a folder of its own, and nothing of the cache.
            let scratch = scratch()?;
            let script = self.write(source, &scratch)?;
            let made = scratch.path().join("program");
            let words = compile.iter().skip(1);
            let args = words.map(|word| fill(word, &script, Some(&made))).collect();
            let ran = self.tool(compiler.clone(), args, &scratch).run(patience, Some(log))?;
            ran.map_err(|said| failure(format!("does not compile: {said}")))?;
            let is_file = fs::symlink_metadata(&made).is_ok_and(|data| data.is_file());
            if !is_file {
                let message = "the compiler ended well, but made no program";
                return Err(failure(message.to_owned()));
            }
            let kept = folder.join("program");
            let copied = fs::copy(&made, &kept)
                .and_then(|_| fs::set_permissions(&kept, Permissions::from_mode(0o500)));
            copied.map_err(|error| {
                failure(format!("cannot keep the compiled program: {}", reason(&error)))
            })
        })
    }

    fn tool<'a>(&'a self, program: PathBuf, args: Vec<OsString>, scratch: &'a Scratch) -> Tool<'a> {
        let env = self.options.env.iter().map(|(name, value)| (name.into(), value.into()));
        let (env, folder) = (env.collect(), scratch.path());
        Tool { program, args, env, folder, sandbox: &self.sandbox, kill_grace: self.job.kill_grace }
    }

    /// The program's file, or that of the compiler where scripts are compiled.
    pub(super) fn program(&self) -> Result<PathBuf, String> {
        let command = match self.command.first() {
            Some(first) if first.contains(BINARY) => &self.options.compile,
            _ => &self.command,
        };
        match command.first() {
            Some(program) if !program.is_empty() => resolve(program),
            _ => Err("no command is configured".to_owned()),
        }
    }
}

/// A configured file that is missing may be elsewhere under its own name.
fn resolve(program: &str) -> Result<PathBuf, String> {
    if let Some(file) = find_program(program) {
        return Ok(file);
    }
    if Path::new(program).exists() {
        return Err(format!("{program} is not executable"));
    }
    let name = Path::new(program).file_name().and_then(|name| name.to_str());
    let name = name.unwrap_or(program);
    find_program(name).ok_or_else(|| format!("no {name} in PATH"))
}

pub(super) fn scratch() -> Result<Scratch, Failure> {
    Scratch::new()
        .map_err(|error| failure(format!("cannot make the script's folder: {}", reason(&error))))
}

fn cannot_write(error: &std::io::Error) -> Failure {
    failure(format!("cannot write the script's file: {}", reason(error)))
}

/// A word of a command with the files in the places of the placeholders.
fn fill(word: &str, script: &Path, binary: Option<&Path>) -> OsString {
    let mut filled = OsString::new();
    let mut rest = word;
    while let Some(at) = rest.find('{') {
        filled.push(&rest[..at]);
        rest = &rest[at..];
        if let Some(after) = rest.strip_prefix(SCRIPT) {
            filled.push(script);
            rest = after;
        } else if let (Some(after), Some(binary)) = (rest.strip_prefix(BINARY), binary) {
            filled.push(binary);
            rest = after;
        } else {
            filled.push("{");
            rest = &rest[1..];
        }
    }
    filled.push(rest);
    filled
}

#[cfg(test)]
pub(super) mod tests;
