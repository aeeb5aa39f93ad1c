//! The options of a type whose scripts are commands.

use super::{CommandOptions, ScriptType, TypeConfig, TypeLayer, is_python};

/// Merges the layer over the defaults that still fit the command.
pub(super) fn merge_options(
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

/// Returns the extension of a well-known language.
pub(super) fn usual_extension(name: &ScriptType) -> &'static str {
    match name.as_str() {
        "sh" => ".sh",
        _ => "",
    }
}
