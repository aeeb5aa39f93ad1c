//! Sessions: the scripts that serve the calls of one, by the program of its type.

use std::path::Path;

use super::command::is_python;
use super::types::TypeConfig;

/// The scripts that serve calls, by the start of the name of their program.
const DRIVERS: [(&str, &str); 2] =
    [("bash", include_str!("session/driver.sh")), ("node", include_str!("session/driver.js"))];
/// The same for Python.
const PYTHON: &str = include_str!("session/driver.py");

impl TypeConfig {
    /// Returns the script that serves the calls of a session; `None` if the type has no sessions. Its argument is the
    /// number of seconds without a call after which it ends.
    pub fn session_driver(&self) -> Option<&'static str> {
        let command = &self.command;
        if is_python(command) {
            return Some(PYTHON);
        }
        let program = Path::new(command.first()?).file_name()?.to_str()?;
        DRIVERS.iter().find(|(name, _)| *name == program).map(|(_, driver)| *driver)
    }
}
