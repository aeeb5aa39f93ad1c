//! Short jobs in processes of their own, beside a bare start of the same interpreter.

use std::ffi::OsString;
use std::fs::File;
use std::time::{Duration, Instant};

use super::load::{self, JobKind};
use super::{Figures, millis, quantile, start};
use crate::cli::input::parsed;
use crate::cli::stage::{Stage, unavailable};
use crate::config::Config;
use crate::engine::process::{Scratch, Service, ServiceSpec, find_program};
use crate::error::Error;
use crate::proto::target::ScriptType;

/// Runs of each; the figure is their median.
const TIMES: usize = 200;

/// The type of bash without a sandbox.
const OPEN: &str = "bash_open";
/// Turns: jobs run with a sandbox, then without one.
const TURNS: usize = 4;

/// The languages: the type, the program and the script, and the names of the figures, bare and as a job.
const LANGUAGES: [([&str; 3], [&str; 2]); 2] = [
    (["python", "/usr/bin/python3", "print(1)"], ["python_bare_ms", "python_wait_ms"]),
    (["bash", "/bin/bash", ":"], ["bash_bare_ms", "bash_wait_ms"]),
];

/// Measures every language whose interpreter is installed.
pub(super) async fn measure(stage: &mut Stage) -> Result<Figures, Error> {
    let mut figures = Figures::new();
    for ([script_type, program, script], [of_bare, of_job]) in LANGUAGES {
        if find_program(program).is_none() {
            continue;
        }
        let mut times = bare(program, script)
            .map_err(|error| unavailable(format!("cannot measure {program}: {error}")))?;
        figures.insert(of_bare, millis(quantile(&mut times, 0.5)));
        start(stage, script_type).await?;
        // The warm-up jobs are enough for a warm interpreter to be ready.
        let kind = JobKind::new(script_type, script);
        let mut times = load::latency(&stage.client, &kind, TIMES).await?;
        figures.insert(of_job, millis(quantile(&mut times, 0.5)));
        stage.end_units(None).await?;
    }
    if find_program("/bin/bash").is_some() {
        figures.extend(Box::pin(sandbox(stage)).await?);
    }
    Ok(figures)
}

/// Adds the script type that [`measure`] needs beside the built-in ones.
pub(super) fn add_open_type(config: &mut Config) -> Result<(), Error> {
    if let Some(bash) = config.types.get(&parsed::<ScriptType>("bash")?) {
        let mut open = bash.clone();
        open.sandbox.enabled = false;
        config.types.insert(parsed(OPEN)?, open);
    }
    Ok(())
}

/// Measures a job with its sandbox and without, in turns, so that other load on the machine
/// affects both.
async fn sandbox(stage: &mut Stage) -> Result<Figures, Error> {
    let [sandboxed, open] = ["bash", OPEN].map(|name| JobKind::new(name, ":"));
    start(stage, "bash").await?;
    start(stage, OPEN).await?;
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        with.extend(load::latency(&stage.client, &sandboxed, TIMES / TURNS).await?);
        without.extend(load::latency(&stage.client, &open, TIMES / TURNS).await?);
    }
    stage.end_units(None).await?;
    let [with, without] = [with, without].map(|mut times| millis(quantile(&mut times, 0.5)));
    Ok(Figures::from([("bash_open_ms", without), ("bash_sandbox_ms", with - without)]))
}

/// Starts the interpreter with the script's file and waits for its end.
fn bare(program: &str, script: &str) -> std::io::Result<Vec<Duration>> {
    let scratch = Scratch::new()?;
    let file: OsString = scratch.file("script", script)?.into();
    (0..TIMES)
        .map(|_| {
            let output = File::options().write(true).open("/dev/null")?;
            let spec = ServiceSpec {
                program: program.into(),
                args: vec![file.clone()],
                output: Some(output),
                ..ServiceSpec::default()
            };
            let began = Instant::now();
            Service::start(spec)?.wait()?;
            Ok(began.elapsed())
        })
        .collect()
}
