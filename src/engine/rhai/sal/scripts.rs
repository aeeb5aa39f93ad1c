//! Scripts that run other scripts.

use ::rhai::{Dynamic, NativeCallContext};

use super::context::{CallResult, RhaiResult, SalJob, operation};
use super::files::read_text;
use super::http::curl;
use crate::engine::rhai::functions::Functions;
use crate::engine::rhai::runtime::failure;

/// How deep scripts may run scripts, and how deep in calls each may do so: they share the stack,
/// which is measured for one script at its deepest.
const NESTING_MAX: usize = 3;
const CALLS_DEEP_MAX: usize = 8;

pub(super) fn register(functions: &mut Functions<'_>) {
    functions.group("scripts", "Scripts that run other scripts.");
    functions
        .add(
            "exec",
            ["file"],
            "Runs another script, and gives its last value. It must be below a folder of sal.exec \
             of the configuration; a url is run only with sal.exec_urls.",
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
        if job.run.exec_depth.get() >= NESTING_MAX {
            return Err(format!("scripts run scripts more than {NESTING_MAX} deep").into());
        }
        if context.call_level() > CALLS_DEEP_MAX {
            return Err(format!("called more than {CALLS_DEEP_MAX} functions deep").into());
        }
        source(job, file)
    })?;
    let deeper = |by: fn(usize) -> usize| {
        operation("exec", file, |job| {
            job.run.exec_depth.set(by(job.run.exec_depth.get()));
            Ok(())
        })
    };
    deeper(|deep| deep + 1)?;
    let result = context.engine().eval::<Dynamic>(&source);
    deeper(|deep| deep - 1)?;
    // An end of the whole job is no failure of the script that was run.
    operation("exec", file, |job| {
        job.check_stop()?;
        Ok(())
    })?;
    result.map_err(|error| {
        let message = failure::message(&error);
        match operation::<()>("exec", file, |_| Err(message.into())) {
            Err(error) => error,
            Ok(()) => error,
        }
    })
}

fn source(job: SalJob<'_>, file: &str) -> CallResult<String> {
    if file.starts_with("http://") || file.starts_with("https://") {
        if !job.settings.exec_urls {
            return Err("not allowed: sal.exec_urls is false".into());
        }
        let output = curl(job, file)?.args(["--fail", "--max-time", "30"]).output(job)?;
        return Ok(output);
    }
    let path = job.to_read(file)?;
    job.settings.check_exec(&path)?;
    read_text(&path, job.settings.bytes_max)
}
