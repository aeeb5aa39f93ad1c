//! The image of a process: its program, with its arguments and its environment.

use std::ffi::{CStr, CString};
use std::io;
use std::os::unix::ffi::OsStrExt;

use super::super::Program;
use super::calls::{List, execute};

/// What runs a file that is no program, as `execvp(3)` has it.
const SHELL: &CStr = c"/bin/sh";

/// What a child becomes.
#[derive(Debug)]
pub(super) struct Image {
    file: CString,
    /// The shell, the program's own name and its arguments.
    args: List,
    env: List,
}

impl Image {
    /// # Errors
    /// A text with a NUL.
    pub(super) fn new(program: &Program<'_>) -> io::Result<Self> {
        let file = CString::new(program.file.as_os_str().as_bytes())?;
        let mut args = vec![SHELL.to_owned(), file.clone()];
        for arg in program.args {
            args.push(CString::new(arg.as_bytes())?);
        }
        let mut env = Vec::with_capacity(program.env.len());
        for (name, value) in &program.env {
            env.push(CString::new([name.as_bytes(), b"=", value.as_bytes()].concat())?);
        }
        Ok(Self { file, args: List::new(args), env: List::new(env) })
    }

    /// Becomes the program; returns only if it cannot.
    pub(super) fn execute(&self) -> io::Error {
        let error = execute(&self.file, self.args.after_first(), self.env.all());
        if error.raw_os_error() == Some(libc::ENOEXEC) {
            return execute(SHELL, self.args.all(), self.env.all());
        }
        error
    }
}
