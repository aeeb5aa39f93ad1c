//! The types of the Python package, as mypy reads them.

use std::process::Command;

use super::python::PACKAGE;
use crate::support::{needs, pypi};

/// A program whose last four lines are wrong.
const TYPED: &str = "from hero_client import Client, job

client = Client('http://127.0.0.1:1')


@job(client, timeout=30)
def add(a: int, b: int = 2) -> int:
    return a + b


there: int = add.run(40, b=2)
here: int = add(1)
name: str = add.submit(1)
text: str = add.run(1)
add.run('one')
add.submit(1, c=3)
add.spec()
";

#[test]
#[expect(clippy::disallowed_methods, reason = "tests start the programs they test with")]
fn its_types_are_strict_and_a_job_keeps_those_of_its_function() {
    if !needs("mypy of PyPI", || pypi().is_some()) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("typed.py");
    std::fs::write(&program, TYPED).expect("writing the program");
    let sources = format!("{PACKAGE}/src");
    let done = Command::new(pypi().expect("found"))
        .args([
            "-m",
            "mypy",
            "--strict",
            "--no-error-summary",
            "--hide-error-context",
            "--cache-dir",
        ])
        .arg(folder.path().join("cache"))
        .arg(&sources)
        .arg(&program)
        .env("MYPYPATH", &sources)
        .current_dir(folder.path())
        .output()
        .expect("mypy runs");
    let said = String::from_utf8_lossy(&done.stdout);
    let errors = said.lines().filter(|line| line.contains(": error: "));
    let codes: Vec<(&str, &str)> = errors
        .map(|line| {
            let place = line.split_once(": error").map_or("", |(place, _)| place);
            let code = line.rsplit_once('[').map_or("", |(_, code)| code.trim_end_matches(']'));
            (place, code)
        })
        .collect();
    let expected = [
        ("typed.py:14", "assignment"),
        ("typed.py:15", "arg-type"),
        ("typed.py:16", "call-arg"),
        ("typed.py:17", "call-arg"),
    ];
    assert_eq!(codes, expected, "{said}{}", String::from_utf8_lossy(&done.stderr));
}
