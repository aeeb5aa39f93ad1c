//! Debian packages, with the programs apt and dpkg.

use std::fs;

use ::rhai::Array;

use super::context::{CallResult, SalJob, is_word};
use super::external_program::ExternalProgram;
use crate::engine::rhai::functions::Functions;

pub(super) fn register(functions: &mut Functions<'_>) {
    functions.act_on(
        "package_install",
        "name",
        "Installs a package, unless it is installed.",
        r#"package_install("nginx");"#,
        |job, name| {
            if is_installed(job, name)? { Ok(()) } else { apt(job, &["install", "--", name]) }
        },
    );
    functions.act_on(
        "package_remove",
        "name",
        "Removes a package; its configuration files stay.",
        r#"package_remove("nginx");"#,
        |job, name| {
            check_name(name)?;
            apt(job, &["remove", "--", name])
        },
    );
    functions.act("package_update", "Updates the package lists.", "package_update();", |job| {
        apt(job, &["update"])
    });
    functions.act(
        "package_upgrade",
        "Upgrades every installed package that has a newer version.",
        "package_upgrade();",
        |job| apt(job, &["upgrade"]),
    );
    register_questions(functions);
}

fn register_questions(functions: &mut Functions<'_>) {
    functions.add(
        "package_platform",
        [],
        "Returns the platform whose packages these functions manage: Debian or Ubuntu, else Unknown.",
        r#"
["Debian", "Ubuntu", "Unknown"].contains(package_platform())
// → true"#,
        platform,
    );
    functions.add(
        "package_set_debug",
        ["on"],
        "Returns its argument. The output of apt is always in the job's log.",
        r"
package_set_debug(true)
// → true",
        |on: bool| on,
    );
    functions.act(
        "package_list",
        "Returns the names of all installed packages.",
        r#"
package_list().contains("bash")
// → true"#,
        |job| {
            let format = "--showformat=${db:Status-Abbrev}${Package}\\n";
            let text = ExternalProgram::new("dpkg-query").args(["--show", format]).output(job)?;
            lines(job, text.lines().filter_map(|line| line.strip_prefix("ii ")))
        },
    );
    functions.act_on(
        "package_search",
        "text",
        "Returns the names of the packages whose name or description contains the text.",
        r#"
package_search("web server").len > 0
// → true"#,
        |job, text| {
            let found =
                ExternalProgram::new("apt-cache").args(["search", "--", text]).output(job)?;
            lines(job, found.lines().filter_map(|line| line.split(" - ").next()))
        },
    );
    functions.act_on(
        "package_is_installed",
        "name",
        "Returns whether a package is installed.",
        r#"
package_is_installed("bash")
// → true"#,
        is_installed,
    );
}

fn platform() -> &'static str {
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let id = release.lines().find_map(|line| line.strip_prefix("ID="));
    match id.map(|id| id.trim_matches('"')) {
        Some("debian") => "Debian",
        Some("ubuntu") => "Ubuntu",
        _ => "Unknown",
    }
}

/// Rejects a name that Debian does not allow, and so an option as well.
fn check_name(name: &str) -> CallResult<()> {
    let is_legal =
        name.starts_with(|c: char| c.is_ascii_alphanumeric()) && is_word(name, "+-.:=~_");
    if is_legal { Ok(()) } else { Err("invalid package name".into()) }
}

fn is_installed(job: SalJob<'_>, name: &str) -> CallResult<bool> {
    check_name(name)?;
    let name = name.split('=').next().unwrap_or_default();
    let args = ["--show", "--showformat=${db:Status-Abbrev}", "--", name];
    let ran = ExternalProgram::new("dpkg-query").args(args).run(job)?;
    Ok(ran.success() && ran.stdout().starts_with("ii"))
}

/// Runs apt-get without prompts; changed configuration files are kept.
fn apt(job: SalJob<'_>, args: &[&str]) -> CallResult<()> {
    let options = ["--yes", "--quiet", "-o", "Dpkg::Options::=--force-confold"];
    ExternalProgram::new("apt-get")
        .default_env("DEBIAN_FRONTEND", "noninteractive")
        .args(options)
        .args(args.iter().copied())
        .logged(true)
        .output(job)
        .map(|_| ())
}

fn lines<'a>(job: SalJob<'_>, lines: impl Iterator<Item = &'a str>) -> CallResult<Array> {
    let found: Array = lines.map(|line| line.trim().into()).collect();
    job.check_count(found.len(), "packages").map(|()| found)
}
