//! Whose fault it is that a script did not begin. A job whose start failed by the fault of its machine goes back to its
//! queue with nothing charged, and its actor holds; any other failure is an end of the attempt.
//!
//! | what fails | whose fault it is |
//! |---|---|
//! | the folder of the job, the build cache, `artifacts.dir` | the machine's, for every error |
//! | the interpreter, the compiler or `cwd` of the type is gone | the machine's |
//! | files of the job: script, inputs, files, state, secrets | the machine's if [`OF_MACHINE`] has the error; else the job's: a name is too long |
//! | pipes, control group, sandbox, fork, `exec` | the machine's if [`OF_MACHINE`] has the error; else the job's: too many arguments |
//! | the content of an input file is gone from `artifacts.dir` | the job's: no machine has it |
//! | packages that cannot be installed, a program that does not compile, a secret that does not exist | the job's |

use std::fmt::Display;
use std::io;

use super::Failure;
use crate::error::reason;

/// The errors of a machine that lacks disk, memory, open files or processes, whose disk fails, or that killed the child
/// before it began.
const OF_MACHINE: [i32; 13] = [
    libc::ENOSPC,
    libc::EDQUOT,
    libc::ENOMEM,
    libc::EMFILE,
    libc::ENFILE,
    libc::EAGAIN,
    libc::EIO,
    libc::EROFS,
    libc::ESTALE,
    libc::ENODEV,
    libc::ENOTCONN,
    libc::ETXTBSY,
    libc::ECANCELED,
];

impl Failure {
    /// Returns the failure of a step before the script began: of the machine, if [`OF_MACHINE`] has the error.
    pub fn before_start(what: impl Display, error: &io::Error) -> Self {
        let mut message = format!("{what}: {}", reason(error));
        if error.raw_os_error() == Some(libc::EAGAIN) {
            message.push_str(
                "; TasksMax= of the unit and kernel.pid_max bound its processes and threads",
            );
        }
        let is_of_machine = error.raw_os_error().is_some_and(|number| OF_MACHINE.contains(&number));
        if is_of_machine { Self::Machine { message } } else { Self::script(message) }
    }

    /// Returns the failure of a step that depends on no job: of the machine, if the system refused it.
    pub(crate) fn of_machine(what: impl Display, error: &io::Error) -> Self {
        let message = format!("{what}: {}", reason(error));
        if error.raw_os_error().is_some() {
            Self::Machine { message }
        } else {
            Self::script(message)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_of_the_machine_or_of_the_job() {
        for (number, is_of_machine) in [
            (libc::ENOSPC, true),
            (libc::EIO, true),
            (libc::E2BIG, false),
            (libc::ENAMETOOLONG, false),
        ] {
            let error = io::Error::from_raw_os_error(number);
            let failure = Failure::before_start("cannot run it", &error);
            assert_eq!(matches!(failure, Failure::Machine { .. }), is_of_machine, "{error}");
        }
        // As of a script that has begun.
        let later = io::Error::other(io::Error::from_raw_os_error(libc::ENOSPC).to_string());
        assert!(matches!(Failure::before_start("cannot watch", &later), Failure::Script { .. }));
    }
}
