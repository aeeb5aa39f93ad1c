//! Watches the children of a stage, and starts killed actors again, as a service manager does.

use super::{Stage, StageChild, unavailable};
use crate::cli::output;
use crate::error::Error;

impl Stage {
    /// Starts killed actors again. Returns an error if Redis has ended, or another unit with an error.
    pub(in crate::cli) fn check(&mut self) -> Result<(), Error> {
        match self.take_failed()? {
            Some(unit) => Err(unavailable(unit.failure())),
            None => Ok(()),
        }
    }

    /// The same once all units have started: an actor that ends with an error, such as by a mistake in a
    /// configuration that was reloaded, is reported, and the others go on.
    pub(super) fn tend(&mut self) -> Result<(), Error> {
        while let Some(unit) = self.take_failed()? {
            if !unit.is_actor() {
                return Err(unavailable(unit.failure()));
            }
            output::note(&format!("hero: {}", unit.failure()));
        }
        Ok(())
    }

    /// Starts killed actors again, and returns a unit that ended with an error, which is no longer one of the stage.
    fn take_failed(&mut self) -> Result<Option<StageChild>, Error> {
        if self.redis.ended()?.is_some() {
            return Err(unavailable(self.redis.failure()));
        }
        self.restart_killed()?;
        for place in 0..self.units.len() {
            let unit = &mut self.units[place];
            // It may have been killed just now.
            if unit.ended()?.is_some_and(|code| code != 0) && !unit.is_to_restart()? {
                return Ok(Some(self.units.remove(place)));
            }
        }
        Ok(None)
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
