//! Units of systemd, with the programs systemctl and journalctl.

use ::rhai::{Array, Dynamic, INT, Map};

use super::context::{CallResult, SalJob, is_word};
use super::external_program::ExternalProgram;
use crate::engine::rhai::functions::Functions;

const LINES_MAX: INT = 100_000;

pub(super) fn register(functions: &mut Functions<'_>) {
    functions.group("systemd", "Units of systemd: services, timers, sockets ...");
    functions.act(
        "systemd_list",
        "Returns all loaded units, each with name, load, active, sub and description.",
        r#"
for unit in systemd_list().filter(|unit| unit.active == "failed") {
    print(`${unit.name}: ${unit.description}`);
}"#,
        list,
    );
    functions.act_on(
        "systemd_status",
        "unit",
        "Returns the state of a unit: active, sub, enabled, pid, description and memory, which is () \
         without memory accounting.",
        r#"
systemd_status("nginx").active
// → active"#,
        status,
    );
    changes_and_logs(functions);
}

fn changes_and_logs(functions: &mut Functions<'_>) {
    functions.act_on(
        "systemd_start",
        "unit",
        "Starts a unit, and waits until it has started.",
        r#"systemd_start("nginx");"#,
        |job, unit| act(job, "start", unit),
    );
    functions.act_on(
        "systemd_stop",
        "unit",
        "Stops a unit, and waits until it has stopped.",
        r#"systemd_stop("nginx");"#,
        |job, unit| act(job, "stop", unit),
    );
    functions.act_on(
        "systemd_restart",
        "unit",
        "Stops a unit and starts it again.",
        r#"systemd_restart("nginx");"#,
        |job, unit| act(job, "restart", unit),
    );
    functions.act_on(
        "systemd_enable",
        "unit",
        "Makes a unit start at boot; does not start it now.",
        r#"systemd_enable("nginx");"#,
        |job, unit| act(job, "enable", unit),
    );
    functions.act_on(
        "systemd_disable",
        "unit",
        "Makes a unit no longer start at boot; does not stop it now.",
        r#"systemd_disable("nginx");"#,
        |job, unit| act(job, "disable", unit),
    );
    functions.act_with(
        "systemd_logs",
        ["unit", "lines"],
        "Returns the last lines of a unit in the journal.",
        r#"
for line in systemd_logs("nginx", 20).split("\n") { print(line) }"#,
        |job, unit, lines: INT| {
            check_name(unit)?;
            if !(1..=LINES_MAX).contains(&lines) {
                return Err(format!("the number of lines must be from 1 to {LINES_MAX}").into());
            }
            ExternalProgram::new("journalctl")
                .args(["--no-pager", "--quiet", "--unit", unit, "--lines"])
                .arg(lines.to_string())
                .output(job)
        },
    );
}

fn act(job: SalJob<'_>, verb: &str, unit: &str) -> CallResult<()> {
    check_name(unit)?;
    systemctl(job, &["--quiet", verb, "--", unit]).map(drop)
}

fn list(job: SalJob<'_>) -> CallResult<Array> {
    let text = systemctl(job, &["list-units", "--all", "--plain", "--no-legend", "--full"])?;
    let mut units = Array::new();
    for line in text.lines().take(job.run.limits.array_len_max) {
        let mut rest = line.trim_start();
        let mut unit = Map::new();
        for name in ["name", "load", "active", "sub"] {
            let (word, after) = rest.split_once(' ').unwrap_or((rest, ""));
            unit.insert(name.into(), word.into());
            rest = after.trim_start();
        }
        unit.insert("description".into(), rest.trim_end().into());
        units.push(unit.into());
    }
    Ok(units)
}

fn status(job: SalJob<'_>, unit: &str) -> CallResult<Map> {
    check_name(unit)?;
    let properties =
        "LoadState,ActiveState,SubState,UnitFileState,MainPID,Description,MemoryCurrent";
    let text = systemctl(job, &["show", "--property", properties, "--", unit])?;
    let value = |name: &str| {
        let mut pairs = text.lines().filter_map(|line| line.split_once('='));
        pairs.find(|(known, _)| *known == name).map_or("", |(_, value)| value)
    };
    if value("LoadState") == "not-found" {
        return Err("no such unit".into());
    }
    let number = |name: &str| value(name).parse::<INT>().ok();
    Ok(Map::from([
        ("active".into(), value("ActiveState").into()),
        ("sub".into(), value("SubState").into()),
        ("enabled".into(), (value("UnitFileState") == "enabled").into()),
        ("pid".into(), number("MainPID").unwrap_or_default().into()),
        ("description".into(), value("Description").into()),
        ("memory".into(), number("MemoryCurrent").map_or(Dynamic::UNIT, Into::into)),
    ]))
}

/// Rejects a name with other characters, or with a dash at the start, which would be an option.
fn check_name(unit: &str) -> CallResult<()> {
    let is_legal = unit.len() <= 255 && is_word(unit, "-_.:@\\");
    if is_legal { Ok(()) } else { Err("invalid unit name".into()) }
}

fn systemctl(job: SalJob<'_>, args: &[&str]) -> CallResult<String> {
    let options = ["--no-pager", "--no-ask-password"];
    ExternalProgram::new("systemctl").args(options).args(args.iter().copied()).output(job)
}
