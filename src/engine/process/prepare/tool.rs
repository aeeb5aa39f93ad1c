//! A program that runs before a script on its behalf: a compiler, a check, an installer.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::build_cache::Until;
use super::environment::Environment;
use crate::engine::{Failure, Log};
use crate::sandbox::Sandbox;

pub(in crate::process) struct Tool<'a> {
    pub(in crate::process) program: PathBuf,
    pub(in crate::process) args: Vec<OsString>,
    /// The variables in addition to those that any program needs.
    pub(in crate::process) env: Environment,
    /// The working directory, which is `HOME` as well.
    pub(in crate::process) folder: &'a Path,
    /// The sandbox; the folder is writable in addition.
    pub(in crate::process) sandbox: &'a Sandbox,
    pub(in crate::process) read: Vec<PathBuf>,
    /// The time to end after a request, before the tool is killed.
    pub(in crate::process) kill_grace: Duration,
}

/// The result of a tool that ran to its end: its standard output, or its messages if it failed.
pub(in crate::process) type ToolResult = Result<String, String>;

/// Runs a tool to its end, and logs its output. The caller passes it in, as nothing here starts a
/// process. Fails with a stop, at the deadline, or if the program cannot be started.
pub(in crate::process) type RunTool =
    fn(Tool<'_>, Until<'_>, Option<&dyn Log>) -> Result<ToolResult, Failure>;
