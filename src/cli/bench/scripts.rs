//! Short jobs in processes of their own, beside a bare start of the same interpreter.

use std::ffi::OsString;
use std::fs::File;
use std::time::{Duration, Instant};

use super::load::{self, Kind};
use super::measure::{Figures, millis, quantile};
use crate::cli::dev::first_actor;
use crate::cli::exec::parsed;
use crate::cli::stage::{Stage, unavailable};
use crate::config::Config;
use crate::engine::process::{Scratch, Service, ServiceSpec, find_program};
use crate::error::Error;
use crate::proto::target::ScriptType;

/// How often each is done; the figure is the median.
const TIMES: usize = 200;

/// The type of bash without a sandbox.
const OPEN: &str = "bash_open";
/// How often what the sandbox costs is measured with and without one in turn.
const TURNS: usize = 4;

/// A language, and the names of its figures.
struct Case {
    script_type: &'static str,
    program: &'static str,
    script: &'static str,
    bare: &'static str,
    job: &'static str,
}

const CASES: [Case; 2] = [
    Case {
        script_type: "python",
        program: "/usr/bin/python3",
        script: "print(1)",
        bare: "python_bare_ms",
        job: "python_wait_ms",
    },
    Case {
        script_type: "bash",
        program: "/bin/bash",
        script: ":",
        bare: "bash_bare_ms",
        job: "bash_wait_ms",
    },
];

/// Measures every language that is here.
pub(super) async fn measure(stage: &mut Stage) -> Result<Figures, Error> {
    let mut figures = Figures::new();
    for case in CASES {
        if find_program(case.program).is_none() {
            continue;
        }
        let mut times = bare(&case)
            .map_err(|error| unavailable(format!("cannot measure {}: {error}", case.program)))?;
        figures.insert(case.bare, millis(quantile(&mut times, 0.5)));
        let actor = first_actor(parsed(case.script_type)?)?;
        stage.start_unit(&actor.unit(), &[("HERO_LOG", "warn")])?;
        stage.until_present(std::slice::from_ref(&actor)).await?;
        // The jobs that do not count are more than enough for a warm interpreter to be there.
        let kind = Kind::new(case.script_type, case.script);
        let mut times = load::latency(&stage.client, &kind, TIMES).await?;
        figures.insert(case.job, millis(quantile(&mut times, 0.5)));
        stage.end_units(None).await?;
    }
    if find_program("/bin/bash").is_some() {
        figures.extend(sandbox(stage).await?);
    }
    Ok(figures)
}

/// Adds what [`measure`] needs beside the types that come with Hero.
pub(super) fn add_open_type(config: &mut Config) -> Result<(), Error> {
    if let Some(bash) = config.types.get(&parsed::<ScriptType>("bash")?) {
        let mut open = bash.clone();
        open.sandbox.enabled = false;
        config.types.insert(parsed(OPEN)?, open);
    }
    Ok(())
}

/// The same job with its sandbox and without, in turns, so that whatever else the machine does
/// weighs on both.
async fn sandbox(stage: &mut Stage) -> Result<Figures, Error> {
    let [shut, open] = ["bash", OPEN].map(|name| Kind::new(name, ":"));
    let actors = [first_actor(parsed("bash")?)?, first_actor(parsed(OPEN)?)?];
    for actor in &actors {
        stage.start_unit(&actor.unit(), &[("HERO_LOG", "warn")])?;
    }
    stage.until_present(&actors).await?;
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        with.extend(load::latency(&stage.client, &shut, TIMES / TURNS).await?);
        without.extend(load::latency(&stage.client, &open, TIMES / TURNS).await?);
    }
    stage.end_units(None).await?;
    let [with, without] = [with, without].map(|mut times| millis(quantile(&mut times, 0.5)));
    Ok(Figures::from([("bash_open_ms", without), ("bash_sandbox_ms", with - without)]))
}

/// The interpreter with the script's file, started and waited for, and nothing else.
fn bare(case: &Case) -> std::io::Result<Vec<Duration>> {
    let scratch = Scratch::new()?;
    let file: OsString = scratch.file("script", case.script)?.into();
    (0..TIMES)
        .map(|_| {
            let output = File::options().write(true).open("/dev/null")?;
            let spec = ServiceSpec {
                program: case.program.into(),
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
