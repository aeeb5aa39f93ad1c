//! The exit codes of `hero`, from sysexits.h, and the error that carries one.

/// An exit code of the program `hero`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Done.
    Ok = 0,
    /// The job ended in `error`.
    JobError = 1,
    /// Wrong usage.
    Usage = 2,
    /// The data is bad: an illegal name, a cycle, a script too large.
    Data = 65,
    /// No such job, file or unit.
    NotFound = 66,
    /// Redis, or another server that is needed, cannot be reached.
    Unavailable = 69,
    /// This machine cannot do it: a script type does not run here, or there is no thread.
    Machine = 71,
    /// Another process has the name of an actor.
    Taken = 73,
    /// The result could not be written to standard output.
    Output = 74,
    /// Gave up waiting; the job continues.
    GaveUp = 75,
    /// Not permitted.
    NotPermitted = 77,
    /// The configuration is wrong.
    Config = 78,
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// An error that ends the program: a message for a person, an exit code for a script.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// The exit code.
    pub exit: Exit,
    /// Names the operation, its object, the reason and the remedy. May have several lines.
    pub message: String,
}

impl Error {
    /// An error with its exit code.
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into() }
    }
}

/// Returns the message of a system error without its number: `no such file or directory`.
pub fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut letters = text.chars();
    letters.next().map(|first| first.to_ascii_lowercase()).into_iter().chain(letters).collect()
}
