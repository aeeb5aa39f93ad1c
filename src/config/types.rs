//! `[type.NAME]`: the script types that come with Hero, and types of the files.

mod hooks;
mod kinds;
mod rhai_limits;
mod times;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use self::hooks::HookTimeout;
pub use self::hooks::HooksConfig;
pub use self::kinds::{DeadLetters, EngineKind};
pub use self::rhai_limits::RhaiLimits;
use self::rhai_limits::usual_extension;
pub use self::times::TimesConfig;
use self::times::TypeTime;
use super::command::{CommandOptions, DependenciesConfig, is_python};
use super::config_error::{Fault, KeyPath};
use super::sandbox::SandboxConfig;
use super::who::{check_callers, check_may_submit};
use crate::proto::job::{KeyName, OutputOverflow};
use crate::proto::target::{Fallback, ScriptType};

/// `[type.NAME]`: one script type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(into = "TypeLayer")]
pub struct TypeConfig {
    /// The engine.
    pub engine: EngineKind,
    /// For `command`: the program and its arguments; `{script}` stands for the script's file.
    pub command: Vec<String>,
    /// For `command`: the extension of the script's file, with its dot (`.py`).
    pub extension: String,
    /// For `command`: the options beside the program.
    pub options: CommandOptions,
    /// For `osis` and `sal`: the folders of the modules that scripts import. For `heroscript`: the folders
    /// of the files of functions.
    pub modules: Vec<PathBuf>,
    /// For `osis` and `sal`: allows the function `eval`, which runs a text as a script.
    pub eval: bool,
    /// For `osis`, `sal` and `heroscript`: the limits of one script.
    pub limits: RhaiLimits,
    /// For `command`: the sandbox of its processes.
    pub sandbox: SandboxConfig,
    /// The farthest that its jobs may go from a group or instance without live actors, unless they
    /// say.
    pub fallback: Fallback,
    /// The failed jobs that become dead letters.
    pub dead_letters: DeadLetters,
    /// The callers of the API who may use the type if its scripts are not sandboxed; `*` for all.
    pub who: Vec<String>,
    /// The types, or groups of types, of the jobs that its running scripts may submit.
    pub may_submit: Vec<String>,
    /// The keys of which one must sign each of its jobs; empty for none.
    pub require_signature: Vec<KeyName>,
    /// The scripts that run before and after each attempt of its jobs.
    pub hooks: HooksConfig,
    /// The times that its jobs have unless they say.
    pub times: TimesConfig,
}

/// The folders of `modules` where none are configured.
const HEROSCRIPT_MODULES: [&str; 1] = ["/etc/hero/heroscript"];

impl TypeConfig {
    /// Returns the extension of a script's file if it is one of `more_extensions`, else empty text.
    pub fn further_extension(&self, file: &Path) -> String {
        let extension = file.extension().map(|text| format!(".{}", text.to_string_lossy()));
        let of_type = &self.options.more_extensions;
        let lower = extension.as_ref().map(|extension| extension.to_ascii_lowercase());
        let mut spellings = extension.into_iter().chain(lower);
        spellings.find(|extension| of_type.contains(extension)).unwrap_or_default()
    }
}

/// The settings of one type in the files; the type's defaults fill the rest.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub(super) struct TypeLayer {
    #[serde(skip_serializing_if = "Option::is_none")]
    engine: Option<EngineKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extension: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    more_extensions: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    env: Option<BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cwd: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    compile: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    check: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    warm: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    preload: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_overflow: Option<OutputOverflow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dependencies: Option<DependenciesConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    modules: Option<Vec<PathBuf>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    eval: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limits: Option<RhaiLimits>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sandbox: Option<SandboxConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fallback: Option<Fallback>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dead_letters: Option<DeadLetters>,
    #[serde(skip_serializing_if = "Option::is_none")]
    who: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    may_submit: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    require_signature: Option<Vec<KeyName>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hook_timeout: Option<HookTimeout>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expect_within: Option<TypeTime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    slow_after: Option<TypeTime>,
}

/// Keeps only the keys of the engine, so that the output can be read again.
impl From<TypeConfig> for TypeLayer {
    fn from(config: TypeConfig) -> Self {
        let is_command = config.engine == EngineKind::Command;
        let is_python = is_command && is_python(&config.command);
        let options = config.options;
        Self {
            engine: Some(config.engine),
            command: is_command.then_some(config.command),
            extension: is_command.then_some(config.extension),
            more_extensions: is_command.then_some(options.more_extensions),
            env: is_command.then_some(options.env),
            cwd: is_command.then_some(options.cwd),
            compile: is_command.then_some(options.compile),
            check: is_command.then_some(options.check),
            warm: is_python.then_some(options.warm),
            preload: is_python.then_some(options.preload),
            output_overflow: options.output_overflow.filter(|_| is_command),
            dependencies: is_python.then_some(options.dependencies),
            modules: (!is_command).then_some(config.modules),
            eval: matches!(config.engine, EngineKind::Osis | EngineKind::Sal)
                .then_some(config.eval),
            limits: (!is_command).then_some(config.limits),
            sandbox: is_command.then_some(config.sandbox),
            fallback: Some(config.fallback),
            dead_letters: Some(config.dead_letters),
            who: Some(config.who),
            may_submit: Some(config.may_submit),
            require_signature: Some(config.require_signature),
            before: Some(config.hooks.before),
            after: Some(config.hooks.after),
            hook_timeout: Some(HookTimeout(config.hooks.timeout)),
            expect_within: Some(TypeTime(config.times.expect_within)),
            slow_after: Some(TypeTime(config.times.slow_after)),
        }
    }
}

/// Returns all script types: those that come with Hero, as changed by the files, and those that
/// the files add.
///
/// # Errors
/// A [`Fault`] if a key is missing, or is for another engine.
pub(super) fn resolve(
    layers: BTreeMap<ScriptType, TypeLayer>,
) -> Result<BTreeMap<ScriptType, TypeConfig>, Fault> {
    let mut types = defaults();
    for (name, layer) in layers {
        let dead_letters = layer.dead_letters.unwrap_or_default();
        let may_submit = layer.may_submit.clone().unwrap_or_default();
        check_may_submit(&may_submit, &KeyPath::of(&["type", name.as_str(), "may_submit"]))?;
        let require_signature = layer.require_signature.clone().unwrap_or_default();
        let hooks = HooksConfig::of(&layer.before, &layer.after, layer.hook_timeout);
        let times = TimesConfig::of(layer.expect_within, layer.slow_after);
        let merged = merge(&name, types.get(&name), layer)?;
        let config =
            TypeConfig { dead_letters, may_submit, require_signature, hooks, times, ..merged };
        types.insert(name, config);
    }
    Ok(types)
}

/// Returns a type of which only the engine is set.
fn plain(engine: EngineKind) -> TypeConfig {
    TypeConfig {
        engine,
        command: Vec::new(),
        extension: String::new(),
        options: CommandOptions::default(),
        modules: Vec::new(),
        eval: false,
        limits: RhaiLimits::default(),
        sandbox: SandboxConfig::default(),
        fallback: Fallback::None,
        dead_letters: DeadLetters::Retried,
        who: Vec::new(),
        may_submit: Vec::new(),
        require_signature: Vec::new(),
        hooks: HooksConfig::default(),
        times: TimesConfig::default(),
    }
}

fn heroscript(modules: Vec<PathBuf>) -> TypeConfig {
    TypeConfig { extension: ".hero".to_owned(), modules, ..plain(EngineKind::HeroScript) }
}

/// Returns the script types that come with Hero.
pub(super) fn defaults() -> BTreeMap<ScriptType, TypeConfig> {
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let command = |command: &str, extension: &str, check: &str| TypeConfig {
        command: words(command),
        extension: extension.to_owned(),
        options: CommandOptions { check: words(check), ..CommandOptions::default() },
        ..plain(EngineKind::Command)
    };
    let python = "/usr/bin/python3";
    let mut of_python = command(
        &format!("{python} {{script}}"),
        ".py",
        &format!("{python} -m py_compile {{script}}"),
    );
    of_python.options.warm = true;
    let mut v = command("{binary}", ".v", "/usr/bin/v -check {script}");
    v.options.more_extensions = words(".vsh");
    v.options.compile = words("/usr/bin/v -o {binary} {script}");
    let mut node = command("/usr/bin/node {script}", ".js", "/usr/bin/node --check {script}");
    node.options.more_extensions = words(".mjs .cjs .ts");
    [
        ("osis", plain(EngineKind::Osis)),
        ("sal", plain(EngineKind::Sal)),
        ("heroscript", heroscript(HEROSCRIPT_MODULES.iter().map(PathBuf::from).collect())),
        ("python", of_python),
        ("v", v),
        ("bash", command("/bin/bash {script}", ".sh", "/bin/bash -n {script}")),
        ("node", node),
    ]
    .into_iter()
    .filter_map(|(name, config)| Some((name.parse().ok()?, config)))
    .collect()
}

fn merge(
    name: &ScriptType,
    default: Option<&TypeConfig>,
    layer: TypeLayer,
) -> Result<TypeConfig, Fault> {
    let key = |key| KeyPath::of(&["type", name.as_str(), key]);
    let table = KeyPath::of(&["type", name.as_str()]);
    let Some(engine) = layer.engine.or(default.map(|default| default.engine)) else {
        let message = "needs an engine: \"osis\", \"sal\", \"heroscript\" or \"command\"";
        return Err(Fault::new(table, message));
    };
    // The default of another engine does not apply.
    let default = default.filter(|default| default.engine == engine);
    let fallback = layer.fallback.or(default.map(|default| default.fallback)).unwrap_or_default();
    let known = || default.map(|default| default.who.clone());
    let who = layer.who.clone().or_else(known).unwrap_or_default();
    check_callers(&who, &key("who"))?;
    if engine != EngineKind::Command {
        return merge_rhai(name, engine, default, layer, who);
    }
    let of_all = "is for engine = \"osis\", \"sal\" and \"heroscript\" only";
    for (set, key, message) in [
        (layer.limits.is_some(), key("limits"), of_all),
        (layer.modules.is_some(), key("modules"), of_all),
        (layer.eval.is_some(), key("eval"), "is for engine = \"osis\" and \"sal\" only"),
    ] {
        if set {
            return Err(Fault::new(key, message));
        }
    }
    let Some(command) = layer.command.clone().or(default.map(|default| default.command.clone()))
    else {
        let message = "needs a command, such as [\"/bin/bash\", \"{script}\"]";
        return Err(Fault::new(table, message));
    };
    let extension = layer
        .extension
        .clone()
        .or(default.map(|default| default.extension.clone()))
        .unwrap_or_else(|| usual_extension(name).to_owned());
    let sandbox = layer.sandbox.clone().unwrap_or_default();
    let options = merge_options(default, layer, &command);
    Ok(TypeConfig { command, extension, options, sandbox, fallback, who, ..plain(engine) })
}

/// Merges a type whose scripts run inside the actor.
fn merge_rhai(
    name: &ScriptType,
    engine: EngineKind,
    default: Option<&TypeConfig>,
    layer: TypeLayer,
    who: Vec<String>,
) -> Result<TypeConfig, Fault> {
    let key = |key| KeyPath::of(&["type", name.as_str(), key]);
    let fallback = layer.fallback.or(default.map(|default| default.fallback)).unwrap_or_default();
    for (set, key) in [
        (layer.command.is_some(), key("command")),
        (layer.extension.is_some(), key("extension")),
        (layer.more_extensions.is_some(), key("more_extensions")),
        (layer.env.is_some(), key("env")),
        (layer.cwd.is_some(), key("cwd")),
        (layer.compile.is_some(), key("compile")),
        (layer.check.is_some(), key("check")),
        (layer.warm.is_some(), key("warm")),
        (layer.preload.is_some(), key("preload")),
        (layer.output_overflow.is_some(), key("output_overflow")),
        (layer.dependencies.is_some(), key("dependencies")),
        (layer.sandbox.is_some(), key("sandbox")),
    ] {
        if set {
            return Err(Fault::new(key, "is for engine = \"command\" only"));
        }
    }
    let limits = layer.limits.unwrap_or_default();
    if engine == EngineKind::HeroScript {
        let known = default.map(|default| default.modules.clone());
        let modules = layer.modules.or(known).unwrap_or_default();
        if layer.eval.is_some() {
            return Err(Fault::new(key("eval"), "is for engine = \"osis\" and \"sal\" only"));
        }
        return Ok(TypeConfig { limits, fallback, who, ..heroscript(modules) });
    }
    Ok(TypeConfig {
        modules: layer.modules.unwrap_or_default(),
        eval: layer.eval.unwrap_or_default(),
        limits,
        fallback,
        who,
        ..plain(engine)
    })
}

/// Merges the layer over the defaults that still fit the command.
fn merge_options(
    default: Option<&TypeConfig>,
    layer: TypeLayer,
    command: &[String],
) -> CommandOptions {
    let is_python = is_python(command);
    let mut options = default.map(|default| default.options.clone()).unwrap_or_default();
    if !command.iter().any(|word| word.contains("{binary}")) {
        // A compiled type that now runs from source: `v run {script}`.
        options.compile = Vec::new();
    }
    if !is_python {
        let plain = CommandOptions::default();
        (options.warm, options.preload) = (plain.warm, plain.preload);
        options.dependencies = plain.dependencies;
    }
    CommandOptions {
        more_extensions: layer.more_extensions.unwrap_or(options.more_extensions),
        env: layer.env.unwrap_or(options.env),
        cwd: layer.cwd.unwrap_or(options.cwd),
        compile: layer.compile.unwrap_or(options.compile),
        check: layer.check.unwrap_or(options.check),
        warm: layer.warm.unwrap_or(options.warm),
        preload: layer.preload.unwrap_or(options.preload),
        output_overflow: layer.output_overflow.or(options.output_overflow),
        dependencies: layer.dependencies.unwrap_or(options.dependencies),
    }
}
