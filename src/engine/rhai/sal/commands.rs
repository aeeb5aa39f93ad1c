//! Commands, run by bash in the script's own folder and ended with the job.

use std::ffi::OsStr;
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use ::rhai::{Dynamic, FLOAT, INT, Map};

use super::context::{CallResult, RhaiResult, SalJob, excerpt, operation, or_unit, path_text};
use super::external_program::{Exited, ExternalProgram};
use super::text::dedented;
use crate::engine::Stream;
use crate::engine::process::child::ChildReport;
use crate::engine::process::{Environment, Scratch, check_variable, find_in, output_text};
use crate::engine::rhai::base::float_of;
use crate::engine::rhai::functions::Functions;

const BASH: &str = "/bin/bash";
/// A longer command is passed in a file: the kernel rejects an argument of 128 KiB.
const ARGUMENT_BYTES_MAX: usize = 64 * 1024;

pub(crate) fn is_command(value: &Dynamic) -> bool {
    value.is::<BashCommand>()
}

pub(super) fn register(functions: &mut Functions<'_>) {
    functions.group("process", "Commands, run by bash, and the processes of the machine.");
    functions.class::<BashCommand>("Command");
    register_run(functions);
    functions.add(
        "silent",
        ["command"],
        "Keeps the output of the command out of the job's log.",
        r#"
run("echo secret").silent().execute().stdout
// → secret"#,
        |run: BashCommand| BashCommand { silent: true, ..run },
    );
    functions.add(
        "ignore_error",
        ["command"],
        "Makes a failing command return its result instead of throwing an error.",
        r#"
run("exit 3").ignore_error().execute().code
// → 3"#,
        |run: BashCommand| BashCommand { ignore_error: true, ..run },
    );
    functions.add(
        "log",
        ["command"],
        "Writes the command itself to the job's log before it runs.",
        r#"run("uname -s").log().execute();"#,
        |run: BashCommand| BashCommand { log: true, ..run },
    );
    functions.add(
        "env",
        ["command", "name", "value"],
        "Sets an environment variable of the command.",
        r#"
run("echo Hello, $NAME").env("NAME", "world").execute().stdout
// → Hello, world"#,
        BashCommand::with_variable,
    );
    register_execution(functions);
}

fn register_execution(functions: &mut Functions<'_>) {
    functions
        .add(
            "timeout",
            ["command", "seconds"],
            "Stops the command, and every process it started, after a number of seconds.",
            r#"
let result = run("sleep 60").timeout(0.1).ignore_error().execute();
result.success
// → false"#,
            BashCommand::with_timeout,
        )
        .overload(["command", "seconds"], |run: BashCommand, seconds: INT| {
            run.with_timeout(float_of(seconds))
        });
    functions.add(
        "execute",
        ["command"],
        "Runs the command until it exits, and returns a map with stdout, stderr, success and code.",
        r#"
let result = run("echo out; echo err >&2").execute();
`${result.stdout} ${result.stderr} ${result.success} ${result.code}`
// → out err true 0"#,
        |run: BashCommand| run.execute(),
    );
    functions
        .act_on(
            "which",
            "name",
            "Returns the path of the program that `name` means in a command of this job, or ().",
            r#"
if which("no-such-program") == () { "not here" } else { "here" }
// → not here"#,
            |job, name| {
                let file = find_in(name, OsStr::new(job.search_path()));
                Ok(or_unit(file.as_deref().map(path_text)))
            },
        )
        .returns("string or ()");
    // The names of later versions of SAL.
    functions.add(
        "execute",
        ["command"],
        "Prepares a command for bash, as `run` does; then `run` runs it.",
        r#"
execute("echo $((40 + 2))").silent().run().stdout
// → 42"#,
        |command: &str| BashCommand::of("execute", command),
    );
    functions.add(
        "run",
        ["command"],
        "Does the same as `execute` of a command.",
        r#"
execute("exit 3").ignore_error().run().code
// → 3"#,
        |run: BashCommand| run.execute(),
    );
}

fn register_run(functions: &mut Functions<'_>) {
    functions
        .add(
            "run",
            ["command"],
            "Prepares a command for bash, which `execute` runs; with a map of options (silent, die, \
             log) it runs at once. Bash stops at the first line that fails. The common indentation \
             of several lines is removed.",
            r#"
run(`
    mkdir site
    echo hello > site/index.html
`).execute();
run("cat site/index.html", #{silent: true, die: false, log: false}).stdout
// → hello"#,
            |command: &str| BashCommand::of("run", command),
        )
        .overload(["command", "options"], |command: &str, options: Map| {
            BashCommand::of("run", command).with_options(&options)?.execute()
        });
    functions.add(
        "run_command",
        ["command"],
        "Runs a command with bash, and returns a map with stdout, stderr, success and code.",
        r#"
run_command("echo $((40 + 2))").stdout
// → 42"#,
        |command: &str| BashCommand::of("run_command", command).execute(),
    );
    functions.add(
        "run_silent",
        ["command"],
        "Does the same as run_command, but keeps the output out of the job's log.",
        r#"
run_silent("echo 'only for me'").stdout
// → only for me"#,
        |command: &str| {
            BashCommand { silent: true, ..BashCommand::of("run_silent", command) }.execute()
        },
    );
}

#[derive(Debug, Clone, Default)]
struct BashCommand {
    function: &'static str,
    command: String,
    silent: bool,
    ignore_error: bool,
    log: bool,
    env: Environment,
    timeout: Option<Duration>,
}

impl BashCommand {
    fn of(function: &'static str, command: &str) -> Self {
        Self { function, command: dedented(command), ..Self::default() }
    }

    fn with_options(mut self, options: &Map) -> RhaiResult<Self> {
        for (name, value) in options {
            let function = self.function;
            let on = value
                .as_bool()
                .map_err(|_| format!("{function}: option `{name}` must be true or false"))?;
            match name.as_str() {
                "silent" => self.silent = on,
                "die" => self.ignore_error = !on,
                "log" => self.log = on,
                other => {
                    let other = excerpt(other);
                    let reason = "use silent, die or log";
                    return Err(format!("{function}: unknown option `{other}`: {reason}").into());
                }
            }
        }
        Ok(self)
    }

    fn with_variable(mut self, name: &str, value: &str) -> RhaiResult<Self> {
        check_variable(name, value).map_err(|reason| self.failed(&reason))?;
        self.env.insert(name.into(), value.into());
        Ok(self)
    }

    fn with_timeout(mut self, seconds: FLOAT) -> RhaiResult<Self> {
        let time = Duration::try_from_secs_f64(seconds)
            .map_err(|_| self.failed(&format!("invalid timeout of {seconds} seconds")))?;
        self.timeout = Some(time);
        Ok(self)
    }

    fn execute(self) -> RhaiResult<Map> {
        operation(self.function, &format!("`{}`", excerpt(&self.command)), |job| {
            let ran = self.run(job)?;
            if ran.success() || self.ignore_error {
                return Ok(result(&ran));
            }
            Err(ran.failure().into())
        })
    }

    fn run(&self, job: SalJob<'_>) -> CallResult<Exited> {
        job.settings.check_run()?;
        if self.log {
            job.run.log_text(Stream::Stdout, &self.command);
        }
        // Kept until the command has exited.
        let file_folder;
        let bash = ExternalProgram::new(BASH).arg("-e");
        let bash = if self.command.contains('\0') {
            return Err("the command contains a NUL byte".into());
        } else if self.command.len() <= ARGUMENT_BYTES_MAX {
            bash.args(["-c", &self.command])
        } else {
            file_folder = Scratch::new()?;
            bash.arg(file_folder.file("command", &self.command)?)
        };
        bash.env(self.env.clone()).timeout(self.timeout).logged(!self.silent).run(job)
    }

    fn failed(&self, reason: &str) -> String {
        format!("{} `{}`: {reason}", self.function, excerpt(&self.command))
    }
}

/// Returns the result of an exited command for the script; a signal gives the exit code of a shell.
fn result(ran: &Exited) -> Map {
    let Exited(ChildReport { status, written, .. }) = ran;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    Map::from([
        ("stdout".into(), ran.stdout().into()),
        ("stderr".into(), output_text(&written.stderr).into()),
        ("success".into(), ran.success().into()),
        ("code".into(), INT::from(code.unwrap_or(-1)).into()),
    ])
}
