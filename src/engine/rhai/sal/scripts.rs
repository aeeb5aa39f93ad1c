//! Scripts that run other scripts.

use ::rhai::{Dynamic, NativeCallContext, Scope};

use super::context::{CallResult, RhaiResult, SalJob, operation};
use super::files::read_text;
use super::http::curl;
use crate::engine::rhai::functions::Functions;
use crate::engine::rhai::interpreter::compile;
use crate::engine::rhai::runtime::failure;
use crate::engine::rhai::runtime::run::with;

/// The limit of nested `exec` calls: all share one stack, which has room for one script at its deepest.
const EXEC_DEPTH_MAX: usize = 3;
/// The limit of nested function calls around an `exec` call.
const CALL_DEPTH_MAX: usize = 8;

pub(super) fn register(functions: &mut Functions<'_>) {
    functions.group("scripts", "Scripts that run other scripts.");
    functions
        .add(
            "exec",
            ["file"],
            "Runs another script, and returns its last value. The script must be inside a folder of \
             sal.exec of the configuration; a URL needs sal.exec_urls.",
            r#"
file_write("sum.rhai", "let a = 40; a + 2");
exec("sum.rhai")
// → 42"#,
            |context: NativeCallContext<'_>, file: &str| exec(&context, file),
        )
        .returns("any");
}

fn exec(context: &NativeCallContext<'_>, file: &str) -> RhaiResult<Dynamic> {
    let source = operation("exec", file, |job| {
        if job.run.exec_depth.get() >= EXEC_DEPTH_MAX {
            return Err(format!("exec calls are nested deeper than {EXEC_DEPTH_MAX}").into());
        }
        if context.call_level() > CALL_DEPTH_MAX {
            return Err(format!(
                "exec is called from functions nested deeper than {CALL_DEPTH_MAX}"
            )
            .into());
        }
        source(job, file)
    })?;
    let _ = with(|run| run.exec_depth.set(run.exec_depth.get() + 1));
    let engine = context.engine();
    let result = compile(engine, &Scope::new(), &source)
        .map_err(Into::into)
        .and_then(|compiled| engine.eval_ast::<Dynamic>(&compiled));
    let _ = with(|run| run.exec_depth.set(run.exec_depth.get() - 1));
    operation("exec", file, |job| {
        // A stop of the job is not an error of the script that was run.
        job.check_stop()?;
        result.map_err(|error| failure::message(&error).into())
    })
}

fn source(job: SalJob<'_>, file: &str) -> CallResult<String> {
    if file.starts_with("http://") || file.starts_with("https://") {
        if !job.settings.config.exec_urls {
            return Err("not allowed: sal.exec_urls is false".into());
        }
        let output = curl(job, file)?.args(["--fail", "--max-time", "30"]).output(job)?;
        return Ok(output);
    }
    let path = job.to_read(file)?;
    job.settings.check_exec(&path)?;
    read_text(job, &path)
}
