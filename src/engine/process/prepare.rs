//! Turns a script into a program with its files: writes the script into a private folder, compiles it
//! or installs its packages, and composes the command and its environment. Checks a script as well,
//! without running it.

mod build_cache;
mod environment;
mod files;
mod metadata;
mod node;
mod packages;
mod programs;
mod python;
mod scratch;
mod source;
mod tool;

pub(super) use build_cache::Until;
pub use environment::variable_names;
pub(crate) use environment::{Environment, check_variable, environment};
pub(super) use environment::{LOCALE, MODULES, UNBUFFERED, basic_environment};
pub(super) use files::{INPUT, WAY_TO_OUTPUT};
pub use programs::{SYSTEM_PATH, find_in, find_program, program_of};
pub(super) use python::{HERO_MODULE, SEMAPHORES};
pub(super) use scratch::OF_PROCESS as FOLDERS_OF_JOBS;
pub use scratch::folders_left;
pub(crate) use scratch::remove_leftovers;
pub use scratch::{Scratch, folder_of_jobs};
pub(super) use tool::{RunTool, Tool, ToolResult};

use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use crate::artifacts::Contents;
use crate::config::{JobConfig, TypeConfig, file_name, is_node, is_python};
use crate::engine::{Cancel, Failure, Log, Script};
use crate::proto::job::InvalidJob;
use crate::proto::text::shown;
use crate::sandbox::Sandbox;
use build_cache::{BuildCache, CacheEntry};
use environment::take_variables;
use packages::Packages;
use programs::{BINARY, V_ONLY_COMPILES, V_RAN_INSTEAD, folder_of_v, resolve, version_of};
use scratch::{HOME, ProcessFolder};

pub(super) const SCRIPT: &str = "{script}";
const KIND: &str = "programs";
/// The time limit of a check, which reads one script and runs nothing.
const CHECK_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(super) struct Preparer {
    pub(super) config: TypeConfig,
    kill_grace: Duration,
    cache: BuildCache,
    /// For Python and node only.
    packages: Option<Packages>,
    pub(super) sandbox: Sandbox,
    run_tool: RunTool,
    pub(super) contents: Contents,
    /// Keeps the folder of this process from the first job on.
    of_process: OnceLock<Arc<ProcessFolder>>,
}

/// A script as it is started.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) program: PathBuf,
    pub(super) args: Vec<OsString>,
    pub(super) env: Environment,
    /// The options of the interpreter that the script asks for, among `args`.
    pub(super) options: Vec<OsString>,
    /// The arguments that the job gives, the last of `args`.
    pub(super) given_args: Vec<String>,
    pub(super) scratch: Scratch,
    pub(super) home: PathBuf,
    pub(super) modules: PathBuf,
    pub(super) script: PathBuf,
    pub(super) stdin: Option<File>,
    /// The virtual environment with the script's packages, in one of the entries.
    pub(super) packages: Option<PathBuf>,
    /// The folder of the compiler, if the program is one: `v run`.
    pub(super) compiler: Option<PathBuf>,
    /// The cache entries that the script uses; they are kept until it has ended.
    pub(super) entries: Vec<CacheEntry>,
}

impl Preparer {
    /// Takes the way to run tools from the caller, as nothing here starts a process.
    pub(super) fn new(config: &TypeConfig, job: &JobConfig, run_tool: RunTool) -> Self {
        Self {
            config: config.clone(),
            kill_grace: job.kill_grace,
            cache: BuildCache::new(&job.cache_dir, job.cache_size_max),
            packages: (is_python(&config.command) || is_node(&config.command))
                .then(|| Packages::new(config, job, run_tool)),
            sandbox: Sandbox::of_type(&config.sandbox),
            run_tool,
            contents: Contents::of(job),
            of_process: OnceLock::new(),
        }
    }

    pub(super) fn is_python(&self) -> bool {
        is_python(&self.config.command)
    }

    /// Returns the configured working directory of scripts, if it is not their own folder.
    pub(super) fn cwd(&self) -> Option<&Path> {
        Some(self.config.cwd.as_path()).filter(|cwd| !cwd.as_os_str().is_empty())
    }

    /// Creates the folder of a script, writes its files, and compiles it or installs its packages.
    pub(super) fn prepare(
        &self,
        script: &Script<'_>,
        until: Until<'_>,
        log: &dyn Log,
    ) -> Result<Prepared, Failure> {
        let (source, scratch) = (source::without_mark(script.source), new_scratch()?);
        let extension = self.extension(script.extension)?;
        self.of_process.get_or_init(|| scratch.of_process());
        let home = scratch.split().map_err(|error| cannot_write(&error))?;
        let env = environment(&self.config.env, script, &home);
        let mut env = env.map_err(Failure::script)?;
        if self.is_python() {
            env.entry(UNBUFFERED.0.into()).or_insert_with(|| UNBUFFERED.1.into());
        }
        let asked = source::asked(source, &self.config.command)
            .map_err(|reason| source::illegal(&reason))?;
        take_variables(&mut env, asked.variables)?;
        files::provide_job_data(&mut env, script, &scratch)?;
        let stdin = files::provide(&mut env, script.files, (&self.contents, &scratch))?;
        let variables = script.env.keys().chain(self.config.env.keys());
        let asks_node = node::is_in_question(&self.config.command, extension, variables);
        let given_args = script.args.to_vec();
        let modules = python::provide_modules(&mut env, self.is_python(), &scratch);
        let modules = modules.map_err(|error| cannot_write(&error))?;
        let script = self.write(source, extension, (&scratch, HOME))?;
        let mut entries = Vec::new();
        let mut binary = None;
        if !self.config.compile.is_empty() {
            let entry = self.compiled(source, extension, until, log)?;
            binary = Some(entry.path.join("program"));
            entries.push(entry);
        }
        let (program, mut args) = self.command_of(&script, binary.as_deref(), &asked.options)?;
        if asks_node {
            let option = self.option_of_node(program.clone(), until)?.map_err(Failure::script)?;
            args.splice(0..0, option);
        }
        args.extend(given_args.iter().map(OsString::from));
        let (packages, compiler) = (None, folder_of_v(&program));
        let mut prepared = Prepared {
            program,
            args,
            env,
            options: asked.options,
            given_args,
            scratch,
            home,
            modules,
            script,
            stdin,
            packages,
            compiler,
            entries,
        };
        self.install(source, &mut prepared, until, log)?;
        Ok(prepared)
    }

    /// Installs the packages that a script declares, and lets it find them.
    fn install(
        &self,
        source: &str,
        prepared: &mut Prepared,
        until: Until<'_>,
        log: &dyn Log,
    ) -> Result<(), Failure> {
        let Some(packages) = &self.packages else { return Ok(()) };
        let entry = if self.is_python() {
            let Some(entry) = packages.of(source, &prepared.program, until, log)? else {
                return Ok(());
            };
            prepared.program = packages::interpreter(&entry.path);
            prepared.packages = Some(packages::environment(&entry.path));
            entry
        } else {
            let Some(entry) = packages.of_node(source, &prepared.program, until, log)? else {
                return Ok(());
            };
            // Both `require` and `import` search the folders above the script, and there no script finds a file of its own.
            let link = prepared.scratch.path().join(packages::NODE_MODULES);
            symlink(entry.path.join(packages::NODE_MODULES), link)
                .map_err(|error| cannot_write(&error))?;
            entry
        };
        prepared.entries.push(entry);
        Ok(())
    }

    /// Returns the program with its arguments, without the job's; the options of the script stand before its file.
    fn command_of(
        &self,
        script: &Path,
        binary: Option<&Path>,
        options: &[OsString],
    ) -> Result<(PathBuf, Vec<OsString>), Failure> {
        let filled = self.config.command.iter().map(|word| fill(word, script, binary));
        let mut args: Vec<OsString> = filled.collect();
        if self.config.command.first().is_some_and(|word| word.contains(BINARY)) {
            return Ok((PathBuf::from(args.remove(0)), args));
        }
        args.drain(..args.len().min(1));
        let at =
            self.config.command.iter().skip(1).position(|word| word == SCRIPT).unwrap_or_default();
        args.splice(at..at, options.iter().cloned());
        let program = self.program().map_err(|message| Failure::Machine { message })?;
        Ok((program, args))
    }

    /// Checks a script without running it. Returns the error in it; fails if the check cannot be made on this machine.
    pub(super) fn check(&self, source: &str, extension: &str) -> Result<Option<String>, Failure> {
        // As a run does before the script begins.
        let declared = if self.is_python() {
            metadata::read(source).map(drop)
        } else if self.packages.is_some() {
            metadata::read_of_node(source).map(drop)
        } else {
            Ok(())
        };
        if let Err(reason) = declared {
            return Ok(Some(source::illegal(&reason).to_string()));
        }
        let program = self.config.check.first().map_or("", String::as_str);
        let program = resolve(program).map_err(Failure::script)?;
        let scratch = new_scratch()?;
        let written = self
            .extension(extension)
            .and_then(|extension| Ok((extension, self.write(source, extension, (&scratch, ""))?)));
        let (extension, script) = match written {
            Err(Failure::Invalid { message }) => return Ok(Some(message)),
            written => written?,
        };
        let words = self.config.check.iter().skip(1);
        let mut args: Vec<OsString> = words.map(|word| fill(word, &script, None)).collect();
        let cancel = Cancel::new();
        let until = Until { cancel: &cancel, deadline: Instant::now() + CHECK_TIMEOUT };
        if node::is_in_question(&self.config.command, extension, self.config.env.keys()) {
            match self.option_of_node(program.clone(), until)? {
                Ok(option) => args.splice(0..0, option),
                Err(message) => return Ok(Some(message)),
            };
        }
        Ok((self.run_tool)(self.tool(program, args, &scratch), until, None)?.err())
    }

    /// Returns the extension of a script's file: the job's choice, if its type has it.
    fn extension<'a>(&'a self, asked: &'a str) -> Result<&'a str, Failure> {
        let of_type = [&self.config.extension].into_iter().chain(&self.config.more_extensions);
        if asked.is_empty() {
            return Ok(&self.config.extension);
        }
        if of_type.clone().any(|extension| extension == asked) {
            return Ok(asked);
        }
        let known: Vec<&str> = of_type.map(String::as_str).filter(|e| !e.is_empty()).collect();
        let reason =
            format!("`{}` is not an extension of its type: {}", shown(asked), known.join(", "));
        let message = InvalidJob::new("extension", reason).to_string();
        Err(Failure::Invalid { message })
    }

    /// Asks node for its option to run TypeScript, or why it cannot.
    fn option_of_node(
        &self,
        node: PathBuf,
        until: Until<'_>,
    ) -> Result<Result<Option<OsString>, String>, Failure> {
        let scratch = new_scratch()?;
        let answer = (self.run_tool)(self.tool(node, node::question(), &scratch), until, None)?;
        Ok(answer.and_then(|answer| node::option_of(&answer)))
    }

    fn write(
        &self,
        source: &str,
        extension: &str,
        (scratch, folder): (&Scratch, &str),
    ) -> Result<PathBuf, Failure> {
        let text = source::to_write(source, self.is_shell())?;
        let name = Path::new(folder).join(format!("script{extension}"));
        let file = scratch.file(name, text.as_bytes());
        file.map_err(|error| cannot_write(&error))
    }

    fn is_shell(&self) -> bool {
        let program = self.config.command.first().map(|program| file_name(program));
        program.is_some_and(|name| ["sh", "bash", "dash", "zsh", "ksh"].contains(&name))
    }

    fn compiled(
        &self,
        source: &str,
        extension: &str,
        until: Until<'_>,
        log: &dyn Log,
    ) -> Result<CacheEntry, Failure> {
        let compile = &self.config.compile;
        let compiler = resolve(compile.first().map_or("", String::as_str));
        let compiler = compiler.map_err(|message| Failure::Machine { message })?;
        let (version, env) = (version_of(&compiler)?, &self.config.env);
        let made_of = format!("{version}\n{compile:?} {extension:?} {env:?}\n{source}");
        self.cache.entry(KIND, &made_of, until, |folder| {
            // The compiler works in a folder of its own, without access to the cache.
            let scratch = new_scratch()?;
            let script = self.write(source, extension, (&scratch, ""))?;
            let built = scratch.path().join("program");
            let words = compile.iter().skip(1);
            let args = words.map(|word| fill(word, &script, Some(&built))).collect();
            let mut tool = self.tool(compiler.clone(), args, &scratch);
            let (name, value) = V_ONLY_COMPILES;
            tool.env.insert(name.into(), value.into());
            let ran = (self.run_tool)(tool, until, Some(log))?;
            ran.map_err(|messages| Failure::script(format!("does not compile: {messages}")))?;
            if !fs::symlink_metadata(&built).is_ok_and(|data| data.is_file()) {
                let hint = if extension == ".vsh" { V_RAN_INSTEAD } else { "" };
                let message = format!("the compiler succeeded, but wrote no program{hint}");
                return Err(Failure::script(message));
            }
            let kept = folder.join("program");
            let copied = fs::copy(&built, &kept)
                .and_then(|_| fs::set_permissions(&kept, Permissions::from_mode(0o500)));
            copied
                .map_err(|error| Failure::before_start("cannot store the compiled program", &error))
        })
    }

    fn tool<'a>(&'a self, program: PathBuf, args: Vec<OsString>, scratch: &'a Scratch) -> Tool<'a> {
        let env = self.config.env.iter().map(|(name, value)| (name.into(), value.into()));
        let (env, folder) = (env.collect(), scratch.path());
        let (sandbox, kill_grace) = (&self.sandbox, self.kill_grace);
        let read = folder_of_v(&program).into_iter().collect();
        Tool { program, args, env, folder, sandbox, read, kill_grace }
    }

    /// Returns the file of the program, or of the compiler if scripts are compiled; or why it cannot run.
    pub(super) fn program(&self) -> Result<PathBuf, String> {
        program_of(&self.config)
    }
}

fn new_scratch() -> Result<Scratch, Failure> {
    Scratch::new().map_err(|error| {
        let parent = folder_of_jobs();
        let what = format!("cannot create the script's folder below {}", parent.display());
        Failure::of_machine(what, &error)
    })
}

fn cannot_write(error: &std::io::Error) -> Failure {
    Failure::before_start("cannot write the script's file", error)
}

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
pub(in crate::process) mod tests;
