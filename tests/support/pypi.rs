//! Packages of PyPI that tests use as clients which share no code with the program.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The packages, each with the name by which programs import it.
const PACKAGES: [(&str, &str); 5] = [
    ("mcp", "mcp"),
    ("websockets", "websockets"),
    ("redis", "redis"),
    ("opentelemetry.proto.collector.trace.v1.trace_service_pb2", "opentelemetry-proto"),
    // Later versions may have further opinions.
    ("mypy", "mypy==2.4.1"),
];

/// Returns the interpreter of an environment with the packages; `None` where they cannot be installed.
/// It is made once, and stays in the folder of the build.
pub(crate) fn pypi() -> Option<&'static Path> {
    static PYTHON: OnceLock<Option<PathBuf>> = OnceLock::new();
    PYTHON.get_or_init(made).as_deref()
}

fn made() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pypi");
    let python = folder.join("bin/python");
    let names = PACKAGES.map(|(name, _)| name).join(", ");
    if runs(&python, &["-c", &format!("import {names}")]) {
        return Some(python);
    }
    // Another run of the tests sees nothing of it, or all.
    let new = folder.with_extension(std::process::id().to_string());
    let new_python = new.join("bin/python");
    let install = ["-m", "pip", "install", "-q", "--retries", "0", "--timeout", "15"];
    let is_made = runs(Path::new("python3"), &["-m", "venv", new.to_str()?])
        && runs(&new_python, &[&install[..], &PACKAGES.map(|(_, package)| package)].concat());
    if !is_made {
        let _ = std::fs::remove_dir_all(&new);
        return None;
    }
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::rename(&new, &folder).ok()?;
    Some(python)
}

#[expect(clippy::disallowed_methods, reason = "tests start the programs they test against")]
fn runs(program: &Path, args: &[&str]) -> bool {
    let done = Command::new(program).args(args).output();
    done.is_ok_and(|done| done.status.success())
}
