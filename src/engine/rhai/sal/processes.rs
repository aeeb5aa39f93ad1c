//! The processes of the machine, read from `/proc`.

use std::fs;

use ::rhai::{Array, FLOAT, INT, Map};
use nix::errno::Errno;
use nix::unistd::{SysconfVar, getpid};

use super::context::{CallResult, RhaiResult, SalJob, operation};
use crate::engine::process::ask_to_end;
use crate::engine::rhai::functions::Functions;
use crate::engine::rhai::runtime::memory::system_value;

pub(super) fn register(functions: &mut Functions<'_>) {
    functions.add(
        "process_list",
        ["pattern"],
        "Returns the processes whose name or command line contains the text; an empty text returns \
         all. Each has pid, name, cmd, memory in bytes, and cpu in percent since its start.",
        r#"
let all = process_list("");
all.sort(|a, b| b.memory - a.memory);
print(`${all[0].name} (${all[0].pid}) has ${all[0].memory / 1048576} MiB`);"#,
        |pattern: &str| {
            operation("process_list", pattern, |job| {
                let found = list(job, pattern)?;
                if found.len() > job.settings.array_len_max {
                    return Err(format!("more than {} match", job.settings.array_len_max).into());
                }
                Ok(found.into_iter().map(|process| process.into_map().into()).collect::<Array>())
            })
        },
    );
    functions.add(
        "process_get",
        ["pattern"],
        "Returns the one process whose name or command line contains the text; no match or several \
         are an error.",
        r#"
try {
    print(process_get("postgres: checkpointer").memory);
} catch (error) {
    print(error);
}"#,
        process_get,
    );
    functions
        .add(
            "kill",
            ["pattern"],
            "Terminates every process whose name or command line contains the text, and returns a \
         message with their number. A whole number is the pid of one process. The daemon itself is \
         never terminated.",
            r#"
kill("no-such-program-runs-here")
// → no process matches"#,
            kill,
        )
        .overload(["pid"], |pid: INT| kill(&pid.to_string()));
}

#[derive(Debug)]
struct Process {
    pid: i32,
    name: String,
    command: String,
    memory_bytes: u64,
    cpu_percent: FLOAT,
}

impl Process {
    /// Returns `None` if the process has exited.
    fn read(pid: i32, uptime_seconds: FLOAT) -> Option<Self> {
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        let stat = String::from_utf8_lossy(&stat);
        // The name is in parentheses and may contain some itself.
        let (before, rest) = stat.rsplit_once(')')?;
        let name = before.split_once('(')?.1.to_owned();
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        // proc(5) counts from 1, and the first of these is field 3.
        let number = |nth: usize| fields.get(nth - 3).and_then(|field| field.parse::<u64>().ok());
        let ticks_per_second = to_float(system_value(SysconfVar::CLK_TCK)?);
        let busy_seconds = to_float(number(14)? + number(15)?) / ticks_per_second;
        let age_seconds = uptime_seconds - to_float(number(22)?) / ticks_per_second;
        let cpu_percent = if age_seconds > 0.0 { 100.0 * busy_seconds / age_seconds } else { 0.0 };
        let memory_bytes = number(24)? * system_value(SysconfVar::PAGE_SIZE)?;
        let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command).replace('\0', " ").trim_end().to_owned();
        Some(Self { pid, name, command, memory_bytes, cpu_percent })
    }

    fn into_map(self) -> Map {
        Map::from([
            ("pid".into(), INT::from(self.pid).into()),
            ("name".into(), self.name.into()),
            ("cmd".into(), self.command.into()),
            ("memory".into(), INT::try_from(self.memory_bytes).unwrap_or(INT::MAX).into()),
            ("cpu".into(), self.cpu_percent.into()),
        ])
    }
}

fn process_get(pattern: &str) -> RhaiResult<Map> {
    operation("process_get", pattern, |job| {
        let mut found = list(job, pattern)?;
        match (found.pop(), found.len()) {
            (Some(one), 0) => Ok(one.into_map()),
            (Some(_), more) => Err(format!("{} processes match, not one", more + 1).into()),
            (None, _) => Err("no process matches".into()),
        }
    })
}

fn kill(pattern: &str) -> RhaiResult<String> {
    operation("kill", pattern, |job| {
        job.settings.check_run()?;
        if pattern.trim().is_empty() {
            return Err("the pattern is empty and would match every process".into());
        }
        let own = getpid().as_raw();
        let is_spared = |pid: i32| pid == own || pid <= 1;
        let named = pattern.trim().parse::<i32>().ok();
        let pids: Vec<i32> = match named {
            Some(pid) if is_spared(pid) => {
                return Err("this process cannot be ended by a script".into());
            }
            Some(pid) => vec![pid],
            None => list(job, pattern)?.into_iter().map(|found| found.pid).collect(),
        };
        let mut ended = 0;
        for pid in pids.into_iter().filter(|pid| !is_spared(*pid)) {
            match ask_to_end(pid) {
                Ok(()) => ended += 1,
                // It has exited since it was listed.
                Err(error) if named.is_none() && is_gone(&error) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(match ended {
            0 => "no process matches".to_owned(),
            1 => "ended 1 process".to_owned(),
            more => format!("ended {more} processes"),
        })
    })
}

fn is_gone(error: &std::io::Error) -> bool {
    error.raw_os_error() == Some(Errno::ESRCH as i32)
}

fn list(job: SalJob<'_>, pattern: &str) -> CallResult<Vec<Process>> {
    let uptime = fs::read_to_string("/proc/uptime")?;
    let uptime = uptime.split_ascii_whitespace().next().and_then(|text| text.parse().ok());
    let uptime_seconds = uptime.unwrap_or(0.0);
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        job.check_stop()?;
        let Some(pid) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let Some(process) = Process::read(pid, uptime_seconds) else { continue };
        if process.name.contains(pattern) || process.command.contains(pattern) {
            found.push(process);
        }
    }
    found.sort_by_key(|process| process.pid);
    Ok(found)
}

#[expect(clippy::cast_precision_loss, reason = "an approximate figure")]
fn to_float(number: u64) -> FLOAT {
    number as FLOAT
}
