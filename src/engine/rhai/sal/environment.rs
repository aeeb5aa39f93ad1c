//! The surroundings of a script: environment variables, its folder, programs, the platform.

use std::collections::BTreeMap;
use std::ffi::OsStr;

use ::rhai::Dynamic;

use super::context::{CallResult, SalJob, or_unit, path_text};
use crate::engine::process::{environment, find_in};
use crate::engine::rhai::functions::Functions;

pub(super) fn register(functions: &mut Functions<'_>) {
    functions
        .act_on(
            "env_get",
            "name",
            "Returns an environment variable of this job's commands, or () if it is not set. The \
             daemon's own variables are not visible.",
            r#"
env_get("LC_CTYPE")
// → C.UTF-8"#,
            env_get,
        )
        .returns("string or ()");
    functions.act(
        "script_dir",
        "Returns the script's own folder, which is removed when the script has ended.",
        r"exist(script_dir())
// → true",
        |job| Ok(path_text(job.own_folder()?)),
    );
    functions.act_on(
        "chdir",
        "path",
        "Changes the working folder of this script: relative paths and commands start there. The daemon \
         and other scripts are not affected.",
        r#"
mkdir("work");
chdir("work");
file_write("here.txt", "");
run_command("ls").stdout
// → here.txt"#,
        |job, path| {
                let folder = job.to_read(path)?.canonicalize()?;
                if !folder.is_dir() {
                    return Err("not a folder".into());
                }
                job.run.folder.replace(Some(folder));
                Ok(())
            },
    );
    functions.act_on(
        "cmd_ensure_exists",
        "commands",
        "Throws an error unless every command of a list, separated by commas, is installed.",
        r#"cmd_ensure_exists("bash, ls");"#,
        |job, commands| {
            let path = OsStr::new(job.search_path());
            let names = commands.split(',').map(str::trim).filter(|name| !name.is_empty());
            let missing: Vec<&str> = names.filter(|name| find_in(name, path).is_none()).collect();
            if missing.is_empty() {
                return Ok(());
            }
            Err(format!("no {} in PATH", missing.join(", ")).into())
        },
    );
    register_platform(functions);
}

fn register_platform(functions: &mut Functions<'_>) {
    functions.add(
        "platform_is_linux",
        [],
        "Returns whether this machine runs Linux.",
        "platform_is_linux()\n// → true",
        || cfg!(target_os = "linux"),
    );
    functions.add(
        "platform_is_osx",
        [],
        "Returns whether this machine runs macOS.",
        "platform_is_osx()\n// → false",
        || cfg!(target_os = "macos"),
    );
    functions.add(
        "platform_is_x86",
        [],
        "Returns whether the processor is of the x86 family.",
        "platform_is_x86() || platform_is_arm()\n// → true",
        || cfg!(any(target_arch = "x86", target_arch = "x86_64")),
    );
    functions.add(
        "platform_is_arm",
        [],
        "Returns whether the processor is of the ARM family.",
        r#"let archive = if platform_is_arm() { "tool-arm64.tar.gz" } else { "tool-amd64.tar.gz" };"#,
        || cfg!(any(target_arch = "arm", target_arch = "aarch64")),
    );
    functions.act(
        "platform_check_linux_x86",
        "Throws an error unless this machine runs Linux on a processor of the x86 family.",
        r"
try { platform_check_linux_x86() } catch (error) { print(error) }",
        |_| is_platform(cfg!(all(target_os = "linux", target_arch = "x86_64")), "Linux on x86_64"),
    );
    functions.act(
        "platform_check_macos_arm",
        "Throws an error unless this machine runs macOS on a processor of the ARM family.",
        r"
try { platform_check_macos_arm() } catch (error) { print(error) }",
        |_| is_platform(cfg!(all(target_os = "macos", target_arch = "aarch64")), "macOS on ARM"),
    );
}

fn is_platform(fits: bool, wanted: &str) -> CallResult<()> {
    if fits { Ok(()) } else { Err(format!("this machine is not {wanted}").into()) }
}

/// Returns a variable of the job's commands. The daemon's own, which may contain secrets, stay hidden.
fn env_get(job: SalJob<'_>, name: &str) -> CallResult<Dynamic> {
    let env = environment(&BTreeMap::new(), job.run.script, job.own_folder()?)?;
    Ok(or_unit(env.get(OsStr::new(name)).map(|value| value.to_string_lossy().into_owned())))
}
