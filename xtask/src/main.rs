//! Tools for developers of Hero. `cargo xtask --help` lists them.

mod bench;
mod bench_amqp;
mod bench_api;
mod commands;
mod configuration;
mod manual;
mod pages;
mod performer;
mod prose;
mod sbom;
mod scale;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

/// Tools for developers of Hero
#[derive(Debug, Parser)]
enum Xtask {
    /// Write a man page of every command, and that on operations, into a folder
    Man {
        folder: PathBuf,
    },
    /// Write completions for bash, zsh and fish into a folder
    Completions {
        folder: PathBuf,
    },
    /// Write docs/sal.md, docs/osis.md and their definition files from the functions of scripts,
    /// docs/openrpc.json and docs/openapi.json from the methods of the API, etc/hero.toml,
    /// hero.toml(5) and docs/hero.schema.json from the table of the configuration, and hero(7) from
    /// docs/protocol.md
    Docs,
    /// Write the libraries that are linked into hero into a file, as CycloneDX
    Sbom {
        file: PathBuf,
    },
    /// Measure on the Redis of `HERO_CONFIG`; run it as `hero dev -- xtask bench ...`
    #[command(subcommand)]
    Bench(bench::Measure),
    Scale(scale::Scale),
}

fn main() -> ExitCode {
    let done = match Xtask::parse() {
        Xtask::Man { folder } => commands::man(&folder).and_then(|()| manual::operations(&folder)),
        Xtask::Completions { folder } => commands::completions(&folder),
        Xtask::Docs => pages::write(),
        Xtask::Sbom { file } => sbom::write(&file),
        Xtask::Bench(measure) => measure.run(),
        Xtask::Scale(scale) => scale.run(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(error.as_ref()),
    }
}

#[expect(clippy::print_stderr, reason = "the error of a command line program")]
fn fail(error: &dyn Error) -> ExitCode {
    eprintln!("xtask: {error}");
    ExitCode::FAILURE
}
