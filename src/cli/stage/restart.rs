//! Watches the children of a stage, and starts killed actors again, as a service manager does.

use super::{Stage, unavailable};
use crate::cli::output;
use crate::error::Error;

impl Stage {
    /// Starts killed actors again. Returns an error if Redis has ended, or another unit with an error.
    pub(in crate::cli) fn check(&mut self) -> Result<(), Error> {
        if self.redis.ended()?.is_some() {
            return Err(unavailable(self.redis.failure()));
        }
        self.restart_killed()?;
        for unit in &mut self.units {
            match unit.ended()? {
                // It may have been killed just now.
                Some(code) if code != 0 && !unit.is_to_restart()? => {
                    return Err(unavailable(unit.failure()));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Starts the actors that were killed again; one that ended otherwise stays, for [`Stage::check`].
    fn restart_killed(&mut self) -> Result<(), Error> {
        let mut killed = Vec::new();
        for (place, unit) in self.units.iter_mut().enumerate().rev() {
            if unit.is_to_restart()? {
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
