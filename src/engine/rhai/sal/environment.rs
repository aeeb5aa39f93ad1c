//! Where the script is and what it finds there: variables, its folder, programs, the platform.

use std::ffi::OsStr;

use ::rhai::Dynamic;

use super::context::{RhaiResult, operation, or_unit, path_text};
use crate::engine::process::{environment, find_in};
use crate::engine::rhai::functions::Functions;

pub(super) fn register(functions: &mut Functions<'_>) {
    functions
        .add(
            "env_get",
            ["name"],
            "Gives an environment variable as this job's commands see it, or () if there is none. \
             The daemon's own variables are not among them.",
            r#"
env_get("LC_CTYPE")
// → C.UTF-8"#,
            env_get,
        )
        .returns("string or ()");
    functions.add(
        "script_dir",
        [],
        "Gives the script's own folder, which is gone when the script has ended.",
        r"exist(script_dir())
// → true",
        || operation("script_dir", "", |job| Ok(path_text(job.own_folder()?))),
    );
    functions.add(
        "chdir",
        ["path"],
        "Makes this the folder in which the script's relative paths and commands start; the \
         daemon and other scripts stay where they are.",
        r#"
mkdir("work");
chdir("work");
file_write("here.txt", "");
run_command("ls").stdout
// → here.txt"#,
        |path: &str| {
            operation("chdir", path, |job| {
                let folder = job.to_read(path)?.canonicalize()?;
                if !folder.is_dir() {
                    return Err("not a folder".into());
                }
                job.run.set_folder(folder);
                Ok(())
            })
        },
    );
    functions.add(
        "cmd_ensure_exists",
        ["commands"],
        "Fails unless every command of a list, separated by commas, can be run.",
        r#"cmd_ensure_exists("bash, ls");"#,
        |commands: &str| {
            operation("cmd_ensure_exists", commands, |job| {
                let path = OsStr::new(job.search_path());
                let names = commands.split(',').map(str::trim).filter(|name| !name.is_empty());
                let missing: Vec<&str> =
                    names.filter(|name| find_in(name, path).is_none()).collect();
                if missing.is_empty() {
                    return Ok(());
                }
                Err(format!("no {} in PATH", missing.join(", ")).into())
            })
        },
    );
    register_platform(functions);
}

fn register_platform(functions: &mut Functions<'_>) {
    functions.add(
        "platform_is_linux",
        [],
        "Tells whether this machine runs Linux.",
        "platform_is_linux()\n// → true",
        || cfg!(target_os = "linux"),
    );
    functions.add(
        "platform_is_osx",
        [],
        "Tells whether this machine runs macOS.",
        "platform_is_osx()\n// → false",
        || cfg!(target_os = "macos"),
    );
    functions.add(
        "platform_is_x86",
        [],
        "Tells whether the processor is of the x86 family.",
        "platform_is_x86() || platform_is_arm()\n// → true",
        || cfg!(any(target_arch = "x86", target_arch = "x86_64")),
    );
    functions.add(
        "platform_is_arm",
        [],
        "Tells whether the processor is of the ARM family.",
        r#"let archive = if platform_is_arm() { "tool-arm64.tar.gz" } else { "tool-amd64.tar.gz" };"#,
        || cfg!(any(target_arch = "arm", target_arch = "aarch64")),
    );
}

/// The job's own variable, else `PATH`, `HOME`, `TMPDIR`, `SHELL` or `LC_CTYPE`. The daemon's environment,
/// which may hold secrets, stays its own.
fn env_get(name: &str) -> RhaiResult<Dynamic> {
    operation("env_get", name, |job| {
        let env = environment(job.run.script, job.own_folder()?)?;
        let value = env.into_iter().find(|(known, _)| known == OsStr::new(name));
        Ok(or_unit(value.map(|(_, value)| value.to_string_lossy().into_owned())))
    })
}
