//! `[type.NAME]`: the script types that come with Hero, and types of the files.

mod kinds;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::ser::{Error as _, Serialize, Serializer};
use toml::Table;

pub use self::kinds::{DeadLetters, EngineKind, RhaiLimits};
use super::api::{EVERYONE, is_caller_name};
use super::command::{DependenciesConfig, is_node, is_python};
use super::config_error::{Fault, KeyPath, check_each};
use super::key_row::{DAY, TEN_YEARS};
use super::sandbox::SandboxConfig;
use super::toml_table::toml_table;
use super::units::duration;
use crate::proto::job::{KeyName, OutputOverflow, SubmitRule};
use crate::proto::target::{Fallback, ScriptType};

/// The tables of the files, by the types that they define or change.
pub(super) type TypeLayers = BTreeMap<ScriptType, Table>;

toml_table! {
    /// Script types. A table with the name of a type that comes with Hero changes that type; a missing key keeps
    /// its default. Any other name defines another type. Names are a letter of a-z, then at most 31 of a-z, 0-9 and
    /// `_`.
    ///
    ///     [type.perl]
    ///     engine = "command"
    ///     command = ["/usr/bin/perl", "{script}"]
    ///     extension = ".pl"
    ///     check = ["/usr/bin/perl", "-c", "{script}"]
    ///     output_overflow = "fail"
    pub struct TypeConfig in "type.NAME" {
        /// The engine that runs the scripts: `osis`, Rhai without system access; `sal`, Rhai with system access: files,
        /// processes, the network; `heroscript`, HeroScript, whose actions call functions in Rhai without system
        /// access; or `command`, a program, in a process of its own.
        engine: EngineKind = EngineKind::Osis => OneOf(&["osis", "sal", "heroscript", "command"]);
        /// The farthest that a job of the type goes from an instance or group without live actors, unless it has one of
        /// its own: `none`, `group` (from an instance to its group) or `type`.
        fallback: Fallback = Fallback::None => OneOf(&["none", "group", "type"]);
        /// The failed jobs that become dead letters: `retried` for jobs with retries that used up their attempts, `all`
        /// for jobs without retries too. A job that took down too many actors always becomes one.
        dead_letters: DeadLetters = DeadLetters::Retried => OneOf(&["retried", "all"]);
        /// For a type whose scripts are not sandboxed: the callers of the API, of the page and of the agents' door,
        /// hero-mcp(1), who may use it, by their names; `*` for all. A token that names the type needs no entry. Not
        /// sandboxed are `sal`, unless `[sal]` narrows both `read` and `write`, and a type with `sandbox.enabled =
        /// false`. The command line does not ask: it has the rights of the Redis login.
        who: Vec<String> = Vec::new() => Texts;
        /// The jobs that a running script of the type may submit: script types, such as `python`, or one group of a type,
        /// such as `bash:web`. Empty: none. Such a job has the caller and the context of the job that submits it, and
        /// everything else that its own type may use, such as secrets and the network.
        may_submit: Vec<String> = Vec::new() => Texts;
        /// The keys, `[keys.NAME]`, of which one must have signed each job of the type. The actor checks that right before
        /// the script runs, so that nobody who writes to Redis can change what runs: `hero submit --sign`. Empty: none.
        require_signature: Vec<KeyName> = Vec::new() => Texts;
        /// The file of a script of the type that runs before each attempt of its jobs, to set up what they need. It runs as
        /// the job does, with its environment and sandbox, and its lines stand in the job's log. If it fails, so does
        /// the attempt. Empty: none.
        before: PathBuf = PathBuf::new() => File;
        /// The file of a script of the type that runs after each attempt, however it ended, with the outcome as JSON in
        /// `HERO_OUTCOME`. If it fails, the log of the job and the journal say so, and nothing else changes. Empty: none.
        after: PathBuf = PathBuf::new() => File;
        /// The longest time of one such script. `before` counts towards the timeout of the job as well.
        hook_timeout: Duration as "duration" = Duration::from_secs(30) => Duration(10, DAY);
        /// The time after its submission, or after its `run_at`, within which a job of the type is expected to end, unless it
        /// has an `expect_within` of its own. One that takes longer is marked as late, told to notifications, and runs on. The
        /// supervisors' configuration counts, and gives it to each job when it is submitted or adopted. `0s`: none.
        expect_within: Duration as "duration" = Duration::ZERO => Duration(0, TEN_YEARS);
        /// The time of an attempt after which a job of the type is marked as slow and told to notifications, unless it has a
        /// `slow_after` of its own. The supervisors' configuration counts, for each job that an actor claims. `0s`: none.
        slow_after: Duration as "duration" = Duration::ZERO => Duration(0, TEN_YEARS);
        /// For `osis` and `sal`: the folders of the modules that scripts import. `import "tools" as t;` reads
        /// `tools.rhai` from the first folder that has it, again when it has changed. For `heroscript`: the folders of
        /// the functions. The action `!!person.define` calls `person_define(parameters)` of the file `person.rhai`.
        /// ---
        /// A link out of the folder is rejected. A process that is sandboxed (`actor.sandbox`) needs a restart to use
        /// other folders. The functions of `heroscript` are read at the start and at a reload.
        modules: Vec<PathBuf> = Vec::new() => Folders;
        /// For `osis` and `sal`: allows `eval("text")`, which runs a text as a part of the script.
        eval: bool = false => Flag;
        /// For `command`, as all that follows: the program and its arguments. `{script}` must be in one of them and
        /// stands for the script's file, `{binary}` for the program that `compile` builds. A program without a path is
        /// searched in PATH; so is one whose path does not exist, by its file name.
        /// ---
        /// The process gets the script's variables, the job's identity in `HERO_JOB_ID`, `HERO_CALLER_ID`,
        /// `HERO_CONTEXT_ID`, `HERO_ATTEMPT` and `HERO_ATTEMPTS_LEFT`, the outputs of its prerequisites, if any, in the
        /// JSON file that `HERO_INPUTS` names, and a private folder, which is its HOME and TMPDIR and is deleted
        /// afterwards. It can write lines of JSON to the descriptor whose number is in `HERO_FD`:
        ///
        /// - `{"progress": 0.4, "text": "reading"}`, the progress, from 0 to 1, with an optional text. A terminal that
        ///   waits for the job shows a bar, and `hero job show` prints it.
        /// - `{"log": "a line"}`, a line for the job's log.
        /// - `{"output": {"any": "value"}}`, the job's output, instead of standard output; a string is taken as plain
        ///   text, all else as JSON.
        ///
        /// Other lines are ignored, and the job's log says how many there were.
        command: Vec<String> = Vec::new() => Texts;
        /// The extension of the script's file. It also selects the type of a script that is given as a file on the
        /// command line.
        extension: String = String::new() => Text;
        /// Further extensions that select the type; the script's file keeps the one of the submitted file.
        more_extensions: Vec<String> = Vec::new() => Texts;
        /// Environment variables of every script of the type. A job's own override them.
        env: BTreeMap<String, String> = BTreeMap::new() => Map;
        /// The working directory of scripts. Empty: their own private folder.
        cwd: PathBuf = PathBuf::new() => FolderOrNone;
        /// The compiler and its arguments, which build the program `{binary}` from `{script}`; `command` then names
        /// `{binary}`. The program is kept in `job.cache_dir`, so each script is compiled once. Empty: none.
        compile: Vec<String> = Vec::new() => Texts;
        /// A program and its arguments that check `{script}` without running it, and fail if it has errors.
        /// `hero script check` and `hero submit --check` run it where they are called. Empty: none.
        check: Vec<String> = Vec::new() => Texts;
        /// The fate of an output over `job.output_size_max`. The default is `job.output_overflow`.
        output_overflow: Option<OutputOverflow> = None => OneOf(&["truncate", "fail"]);
        /// For Python, a command whose program is named `python*`: keeps a warm interpreter, and each job is a fork of
        /// it. Takes some 12 MB. The default for types of your own is false.
        warm: bool = false => Flag;
        /// The modules that the warm interpreter imports.
        preload: Vec<String> = Vec::new() => Texts;
    } with {
        /// `[type.NAME.limits]`.
        pub limits: RhaiLimits = RhaiLimits::default(),
        /// `[type.NAME.dependencies]`.
        pub dependencies: DependenciesConfig = DependenciesConfig::default(),
        /// `[type.NAME.sandbox]`.
        pub sandbox: SandboxConfig = SandboxConfig::default(),
    }
}

/// The folders of `modules` where none are configured.
const HEROSCRIPT_MODULES: [&str; 1] = ["/etc/hero/heroscript"];

impl TypeConfig {
    /// Returns the extension of a script's file if it is one of `more_extensions`, else empty text.
    pub fn further_extension(&self, file: &Path) -> String {
        let extension = file.extension().map(|text| format!(".{}", text.to_string_lossy()));
        let lower = extension.as_ref().map(|extension| extension.to_ascii_lowercase());
        let mut spellings = extension.into_iter().chain(lower);
        spellings.find(|extension| self.more_extensions.contains(extension)).unwrap_or_default()
    }

    /// Returns the files of its hooks.
    pub fn hook_files(&self) -> impl Iterator<Item = &Path> {
        let files = [&self.before, &self.after].into_iter().map(PathBuf::as_path);
        files.filter(|file| !file.as_os_str().is_empty())
    }

    /// Returns the keys that scripts of its engine and its command have, so that the output can be read again.
    fn written(&self) -> Result<Table, toml::ser::Error> {
        let is_python = is_python(&self.command);
        let has_packages = is_python || is_node(&self.command);
        let mut table = Table::try_from(self)?;
        table.retain(|key, _| {
            let is_of_program = match key {
                "warm" | "preload" => is_python,
                "dependencies" => has_packages,
                _ => true,
            };
            why_not_of(self.engine, key).is_none() && is_of_program
        });
        Ok(table)
    }
}

/// Writes the types as the files have them.
pub(super) fn serialize<S: Serializer>(
    types: &BTreeMap<ScriptType, TypeConfig>,
    to: S,
) -> Result<S::Ok, S::Error> {
    let tables = types.iter().map(|(name, of)| Ok((name.clone(), of.written()?)));
    let tables = tables.collect::<Result<TypeLayers, toml::ser::Error>>();
    tables.map_err(S::Error::custom)?.serialize(to)
}

/// Returns why a table of a type with this engine may not have a key.
fn why_not_of(engine: EngineKind, key: &str) -> Option<&'static str> {
    let is_command = engine == EngineKind::Command;
    let has_eval = matches!(engine, EngineKind::Osis | EngineKind::Sal);
    match key {
        "command" | "extension" | "more_extensions" | "env" | "cwd" | "compile" | "check"
        | "warm" | "preload" | "output_overflow" | "dependencies" | "sandbox" => {
            (!is_command).then_some("is for engine = \"command\" only")
        }
        "limits" | "modules" => {
            is_command.then_some("is for engine = \"osis\", \"sal\" and \"heroscript\" only")
        }
        "eval" => (!has_eval).then_some("is for engine = \"osis\" and \"sal\" only"),
        _ => None,
    }
}

/// Adds the tables of the files to the types that come with Hero.
pub(super) fn resolve(layers: TypeLayers) -> Result<BTreeMap<ScriptType, TypeConfig>, Fault> {
    let mut types = defaults();
    for (name, layer) in layers {
        let config = merge(&name, types.get(&name), layer)?;
        types.insert(name, config);
    }
    Ok(types)
}

/// Returns a type of which only the engine is set.
fn plain(engine: EngineKind) -> TypeConfig {
    let extension = if engine == EngineKind::HeroScript { ".hero" } else { "" }.to_owned();
    TypeConfig { engine, extension, ..TypeConfig::default() }
}

pub(super) fn defaults() -> BTreeMap<ScriptType, TypeConfig> {
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let command = |command: &str, extension: &str, check: &str| TypeConfig {
        command: words(command),
        extension: extension.to_owned(),
        check: words(check),
        ..plain(EngineKind::Command)
    };
    let python = "/usr/bin/python3";
    let mut of_python = command(
        &format!("{python} {{script}}"),
        ".py",
        &format!("{python} -m py_compile {{script}}"),
    );
    of_python.warm = true;
    let mut v = command("{binary}", ".v", "/usr/bin/v -check {script}");
    v.more_extensions = words(".vsh");
    v.compile = words("/usr/bin/v -o {binary} {script}");
    let mut node = command("/usr/bin/node {script}", ".js", "/usr/bin/node --check {script}");
    node.more_extensions = words(".mjs .cjs .ts");
    let modules = HEROSCRIPT_MODULES.iter().map(PathBuf::from).collect();
    let heroscript = TypeConfig { modules, ..plain(EngineKind::HeroScript) };
    [
        ("osis", plain(EngineKind::Osis)),
        ("sal", plain(EngineKind::Sal)),
        ("heroscript", heroscript),
        ("python", of_python),
        ("v", v),
        ("bash", command("/bin/bash {script}", ".sh", "/bin/bash -n {script}")),
        ("node", node),
    ]
    .into_iter()
    .filter_map(|(name, config)| Some((name.parse().ok()?, config)))
    .collect()
}

/// Puts a table of the files over the type of its name, if that has the same engine.
fn merge(name: &ScriptType, known: Option<&TypeConfig>, layer: Table) -> Result<TypeConfig, Fault> {
    let table = KeyPath::of(&["type", name.as_str()]);
    // Cannot fail after each file was read by itself.
    let given: TypeConfig =
        layer.clone().try_into().map_err(|error| Fault::new(table.clone(), error))?;
    let message = "must be a script type, such as \"python\", or TYPE:GROUP";
    let is_rule = |rule: &str| rule.parse::<SubmitRule>().is_ok();
    check_each(&given.may_submit, &table.then("may_submit"), is_rule, message)?;
    let engine = layer.contains_key("engine").then_some(given.engine);
    let Some(engine) = engine.or(known.map(|known| known.engine)) else {
        let message = "needs an engine: \"osis\", \"sal\", \"heroscript\" or \"command\"";
        return Err(Fault::new(table, message));
    };
    let known = known.filter(|known| known.engine == engine);
    let mut base = known.cloned().unwrap_or_else(|| plain(engine));
    let message = "must be the name of a caller of the API, or \"*\"";
    let is_caller = |name: &str| name == EVERYONE || is_caller_name(name);
    check_each(&given.who, &table.then("who"), is_caller, message)?;
    let wrong = layer.keys().find_map(|key| Some((key, why_not_of(engine, key)?)));
    if let Some((key, message)) = wrong {
        return Err(Fault::new(table.then(key.as_str()), message));
    }
    if layer.contains_key("command") {
        base.command = given.command;
    } else if engine == EngineKind::Command && base.command.is_empty() {
        let message = "needs a command, such as [\"/bin/bash\", \"{script}\"]";
        return Err(Fault::new(table, message));
    }
    if engine == EngineKind::Command && name.as_str() == "sh" {
        ".sh".clone_into(&mut base.extension);
    }
    if !base.command.iter().any(|word| word.contains("{binary}")) {
        // A compiled type that now runs from source: `v run {script}`.
        base.compile = Vec::new();
    }
    if !is_python(&base.command) {
        (base.warm, base.preload) = (false, Vec::new());
    }
    if !is_python(&base.command) && !is_node(&base.command) {
        base.dependencies = DependenciesConfig::default();
    }
    let merged = Table::try_from(&base).map_err(|error| Fault::new(table.clone(), error));
    let merged: Table = merged?.into_iter().chain(layer).collect();
    merged.try_into().map_err(|error| Fault::new(table, error))
}
