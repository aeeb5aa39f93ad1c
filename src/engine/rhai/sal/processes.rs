//! The processes of the machine, read from `/proc`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use ::rhai::{Array, FLOAT, INT, Map};
use nix::errno::Errno;
use nix::unistd::{SysconfVar, getpid};

use super::context::{CallResult, RhaiResult, SalJob, operation};
use crate::engine::process::ask_to_end;
use crate::engine::rhai::functions::Functions;
use crate::engine::rhai::runtime::memory::system_value;

pub(super) fn register(functions: &mut Functions<'_>) {
    functions.act_on(
        "process_list",
        "pattern",
        "Returns the processes whose name contains the text, or if there is none, those whose command \
         line does; an empty text returns all. Each has pid, name, cmd, memory in bytes, and cpu in percent since its start.",
        r#"
let all = process_list("");
all.sort(|a, b| b.memory - a.memory);
print(`${all[0].name} (${all[0].pid}) has ${all[0].memory / 1048576} MiB`);"#,
        |job, pattern| {
                let found = named(job, pattern)?;
                job.check_count(found.len(), "match")?;
                Ok(found.into_iter().map(|process| process.into_map().into()).collect::<Array>())
            },
    );
    functions.act_on(
        "process_get",
        "pattern",
        "Returns the one process whose name contains the text, or if there is none, whose command line \
         does; no match or several are an error.",
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
         message with their number. A whole number is the pid of one process. A text never matches the \
         programs of Hero on this machine, such as the daemon and `hero exec`, nor their parents.",
            r#"
kill("no-such-program-runs-here")
// → No matching processes found"#,
            kill,
        )
        .overload(["pid"], |pid: INT| kill(&pid.to_string()));
}

#[derive(Debug)]
struct Process {
    pid: i32,
    parent: i32,
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
        let parent = i32::try_from(number(4)?).ok()?;
        Some(Self { pid, parent, name, command, memory_bytes, cpu_percent })
    }

    fn matches(&self, pattern: &str) -> bool {
        self.name.contains(pattern) || self.command.contains(pattern)
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

fn process_get(job: SalJob<'_>, pattern: &str) -> CallResult<Map> {
    let mut found = named(job, pattern)?;
    match (found.pop(), found.len()) {
        (Some(one), 0) => Ok(one.into_map()),
        (Some(_), more) => Err(format!("{} processes match, not one", more + 1).into()),
        (None, _) => Err("no process matches".into()),
    }
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
            None => {
                let all = list(job)?;
                let spared = of_hero(&all);
                let is_ended =
                    |found: &&Process| found.matches(pattern) && !spared.contains(&found.pid);
                all.iter().filter(is_ended).map(|found| found.pid).collect()
            }
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
            0 => "No matching processes found".to_owned(),
            1 => "Successfully killed 1 process".to_owned(),
            more => format!("Successfully killed {more} processes"),
        })
    })
}

fn is_gone(error: &std::io::Error) -> bool {
    error.raw_os_error() == Some(Errno::ESRCH as i32)
}

/// Returns the processes that run the same program as this one, and all their parents.
fn of_hero(all: &[Process]) -> BTreeSet<i32> {
    let own = getpid().as_raw();
    let own_program = program(own);
    let parents: BTreeMap<i32, i32> = all.iter().map(|found| (found.pid, found.parent)).collect();
    let mut spared = BTreeSet::new();
    for found in all {
        let is_own = found.pid == own || own_program.is_some() && program(found.pid) == own_program;
        let mut next = is_own.then_some(found.pid);
        while let Some(pid) = next {
            next = if spared.insert(pid) { parents.get(&pid).copied() } else { None };
        }
    }
    spared
}

/// Returns the file name of a process's program; `None` if it may not be read.
fn program(pid: i32) -> Option<String> {
    let path = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    let name = path.file_name()?.to_str()?;
    // An upgrade has replaced the file.
    Some(name.strip_suffix(" (deleted)").unwrap_or(name).to_owned())
}

/// Returns the processes whose name contains the text; if there is none, those whose command line does.
fn named(job: SalJob<'_>, pattern: &str) -> CallResult<Vec<Process>> {
    let mut found = list(job)?;
    if found.iter().any(|process| process.name.contains(pattern)) {
        found.retain(|process| process.name.contains(pattern));
    } else {
        found.retain(|process| process.command.contains(pattern));
    }
    Ok(found)
}

fn list(job: SalJob<'_>) -> CallResult<Vec<Process>> {
    let uptime = fs::read_to_string("/proc/uptime")?;
    let uptime = uptime.split_ascii_whitespace().next().and_then(|text| text.parse().ok());
    let uptime_seconds = uptime.unwrap_or(0.0);
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        job.check_stop()?;
        let Some(pid) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        found.extend(Process::read(pid, uptime_seconds));
    }
    found.sort_by_key(|process| process.pid);
    Ok(found)
}

#[expect(clippy::cast_precision_loss, reason = "an approximate figure")]
fn to_float(number: u64) -> FLOAT {
    number as FLOAT
}
