//! A client of RabbitMQ in Python with pika, that does what a test says.

use std::process::{Command, Output};

use serde_json::Value;

use crate::support::needs;

const PYTHON: &str = "/usr/bin/python3";
const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/amqp/programs/steps.py");

#[expect(clippy::disallowed_methods, reason = "tests start the programs they test against")]
pub(crate) fn python(args: &[&str]) -> Output {
    Command::new(PYTHON).args(args).output().expect("python3 is installed")
}

/// Returns true if the machine has pika; else the test is skipped and counted.
pub(crate) fn has_pika() -> bool {
    needs("python3-pika", || python(&["-c", "import pika"]).status.success())
}

/// Does steps, and returns their results.
#[track_caller]
pub(super) fn steps(url: &str, steps: &Value) -> Value {
    let ran = python(&[PROGRAM, url, &steps.to_string()]);
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    serde_json::from_str(&out).unwrap_or_else(|_| panic!("{steps}: {out} {err}"))
}

/// The folder of amqplib, which `make deps-test` installs.
pub(super) const AMQPLIB: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/target/tools/amqplib/node_modules/amqplib");

/// Returns true if the machine has amqplib; else the test is skipped and counted.
pub(super) fn has_amqplib() -> bool {
    needs("amqplib", || std::path::Path::new(AMQPLIB).exists())
}

/// Runs a program of JavaScript, and returns what it prints.
#[expect(clippy::disallowed_methods, reason = "tests start the programs they test against")]
#[track_caller]
pub(super) fn node(program: &str, args: &[&str]) -> String {
    let file = format!("{}/tests/amqp/programs/{program}", env!("CARGO_MANIFEST_DIR"));
    let ran = Command::new("node").arg(file).args(args).output().expect("node is installed");
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{out} {err}");
    out.into_owned()
}
