//! Short jobs in processes of their own, beside a bare start of the same interpreter.

use std::ffi::OsString;
use std::fs::File;
use std::time::{Duration, Instant};

use super::load::{self, Kind};
use super::measure::{Figures, millis, quantile};
use crate::cli::dev::first_actor;
use crate::cli::exec::parsed;
use crate::cli::stage::{Stage, unavailable};
use crate::engine::process::{Scratch, Service, ServiceSpec, find_program};
use crate::error::Error;

/// How often each is done; the figure is the median.
const TIMES: usize = 200;

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
    Ok(figures)
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
