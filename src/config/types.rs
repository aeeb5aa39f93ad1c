//! `[type.NAME]`: the script types that come with Hero, and types of the files.

mod kinds;
mod rhai_limits;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use self::kinds::{DeadLetters, EngineKind, HooksConfig, TimesConfig};
pub use self::rhai_limits::RhaiLimits;
use self::rhai_limits::usual_extension;
use super::api::{EVERYONE, is_caller_name};
use super::command::{CommandOptions, DependenciesConfig, is_python};
use super::config_error::{Fault, KeyPath, check_each};
use super::sandbox::SandboxConfig;
use super::units::FileDuration;
use crate::proto::job::{KeyName, OutputOverflow, SubmitRule};
use crate::proto::target::{Fallback, ScriptType};

/// `[type.NAME]`: one script type. `table/script_type.rs` has the texts of its keys.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(into = "TypeLayer")]
pub struct TypeConfig {
    pub engine: EngineKind,
    pub command: Vec<String>,
    pub extension: String,
    pub options: CommandOptions,
    pub modules: Vec<PathBuf>,
    pub eval: bool,
    pub limits: RhaiLimits,
    pub sandbox: SandboxConfig,
    pub fallback: Fallback,
    pub dead_letters: DeadLetters,
    pub who: Vec<String>,
    pub may_submit: Vec<String>,
    pub require_signature: Vec<KeyName>,
    pub hooks: HooksConfig,
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
#[serde(remote = "Self", default, deny_unknown_fields, expecting = "a table")]
pub struct TypeLayer {
    engine: Option<EngineKind>,
    command: Option<Vec<String>>,
    extension: Option<String>,
    more_extensions: Option<Vec<String>>,
    env: Option<BTreeMap<String, String>>,
    cwd: Option<PathBuf>,
    compile: Option<Vec<String>>,
    check: Option<Vec<String>>,
    warm: Option<bool>,
    preload: Option<Vec<String>>,
    output_overflow: Option<OutputOverflow>,
    dependencies: Option<DependenciesConfig>,
    modules: Option<Vec<PathBuf>>,
    eval: Option<bool>,
    limits: Option<RhaiLimits>,
    sandbox: Option<SandboxConfig>,
    fallback: Option<Fallback>,
    dead_letters: Option<DeadLetters>,
    who: Option<Vec<String>>,
    may_submit: Option<Vec<String>>,
    require_signature: Option<Vec<KeyName>>,
    before: Option<PathBuf>,
    after: Option<PathBuf>,
    hook_timeout: Option<FileDuration>,
    expect_within: Option<FileDuration>,
    slow_after: Option<FileDuration>,
}
crate::toml_table::only_as_table!(TypeLayer);

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
            hook_timeout: Some(FileDuration(config.hooks.timeout)),
            expect_within: Some(FileDuration(config.times.expect_within)),
            slow_after: Some(FileDuration(config.times.slow_after)),
        }
    }
}

/// Adds the tables of the files to the types that come with Hero.
pub(super) fn resolve(
    layers: BTreeMap<ScriptType, TypeLayer>,
) -> Result<BTreeMap<ScriptType, TypeConfig>, Fault> {
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
fn merge(
    name: &ScriptType,
    known: Option<&TypeConfig>,
    layer: TypeLayer,
) -> Result<TypeConfig, Fault> {
    let table = KeyPath::of(&["type", name.as_str()]);
    let may_submit = layer.may_submit.clone().unwrap_or_default();
    let message = "must be a script type, such as \"python\", or TYPE:GROUP";
    let is_rule = |rule: &str| rule.parse::<SubmitRule>().is_ok();
    check_each(&may_submit, &table.then("may_submit"), is_rule, message)?;
    let Some(engine) = layer.engine.or(known.map(|known| known.engine)) else {
        let message = "needs an engine: \"osis\", \"sal\", \"heroscript\" or \"command\"";
        return Err(Fault::new(table, message));
    };
    let known = known.filter(|known| known.engine == engine);
    let base = known.cloned().unwrap_or_else(|| plain(engine));
    let who = layer.who.clone().unwrap_or(base.who);
    let message = "must be the name of a caller of the API, or \"*\"";
    let is_caller = |name: &str| name == EVERYONE || is_caller_name(name);
    check_each(&who, &table.then("who"), is_caller, message)?;
    check_engine(&table, engine, &layer)?;
    let is_command = engine == EngineKind::Command;
    if is_command && layer.command.is_none() && base.command.is_empty() {
        let message = "needs a command, such as [\"/bin/bash\", \"{script}\"]";
        return Err(Fault::new(table, message));
    }
    let usual = if is_command && base.extension.is_empty() {
        usual_extension(name).to_owned()
    } else {
        base.extension
    };
    let command = layer.command.clone().unwrap_or(base.command);
    Ok(TypeConfig {
        engine,
        extension: layer.extension.clone().unwrap_or(usual),
        modules: layer.modules.clone().unwrap_or(base.modules),
        eval: layer.eval.unwrap_or(base.eval),
        limits: layer.limits.clone().unwrap_or(base.limits),
        sandbox: layer.sandbox.clone().unwrap_or(base.sandbox),
        fallback: layer.fallback.unwrap_or(base.fallback),
        dead_letters: layer.dead_letters.unwrap_or(base.dead_letters),
        who,
        may_submit,
        require_signature: layer.require_signature.clone().unwrap_or_default(),
        hooks: HooksConfig {
            before: layer.before.clone().unwrap_or_default(),
            after: layer.after.clone().unwrap_or_default(),
            timeout: layer.hook_timeout.map_or(base.hooks.timeout, |FileDuration(time)| time),
        },
        times: TimesConfig {
            expect_within: layer.expect_within.map_or(Duration::ZERO, |FileDuration(time)| time),
            slow_after: layer.slow_after.map_or(Duration::ZERO, |FileDuration(time)| time),
        },
        options: merge_options(base.options, layer, &command),
        command,
    })
}

fn check_engine(table: &KeyPath, engine: EngineKind, layer: &TypeLayer) -> Result<(), Fault> {
    const OF_COMMAND: &str = "command extension more_extensions env cwd compile check warm preload output_overflow \
                              dependencies sandbox";
    const OF_RHAI: &str = "limits modules";
    let is_command = engine == EngineKind::Command;
    let has_eval = matches!(engine, EngineKind::Osis | EngineKind::Sal);
    let set = toml::Table::try_from(layer).map_err(|error| Fault::new(table.clone(), error))?;
    for (keys, is_allowed, message) in [
        (OF_COMMAND, is_command, "is for engine = \"command\" only"),
        (OF_RHAI, !is_command, "is for engine = \"osis\", \"sal\" and \"heroscript\" only"),
        ("eval", has_eval, "is for engine = \"osis\" and \"sal\" only"),
    ] {
        let wrong = keys.split(' ').find(|key| !is_allowed && set.contains_key(*key));
        if let Some(key) = wrong {
            return Err(Fault::new(table.then(key), message));
        }
    }
    Ok(())
}

/// Merges the layer over the defaults that still fit the command.
fn merge_options(
    mut options: CommandOptions,
    layer: TypeLayer,
    command: &[String],
) -> CommandOptions {
    let is_python = is_python(command);
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
