//! Starts killed actors of a stage again, as a service manager does.

use super::Stage;
use crate::cli::output;
use crate::error::Error;

impl Stage {
    /// Starts the actors that were killed again; one that ended otherwise stays, for [`Stage::check`].
    ///
    /// # Errors
    /// As [`Stage::start_unit`].
    pub(super) fn restart_killed(&mut self) -> Result<(), Error> {
        let mut killed = Vec::new();
        for (place, unit) in self.units.iter_mut().enumerate().rev() {
            if unit.is_killed()? && unit.name() != "supervisor" {
                killed.push(place);
            }
        }
        for place in killed {
            let name = self.units.remove(place).name().to_owned();
            output::note(&format!("hero: {name} was killed; it is started again"));
            self.start_unit(&name, &[])?;
        }
        Ok(())
    }
}
