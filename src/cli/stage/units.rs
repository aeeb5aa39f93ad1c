//! The units of a stage: starts killed actors again, as a service manager does, and lets all reload the configuration.

use std::sync::atomic::Ordering;

use super::{Stage, StageChild, unavailable};
use crate::cli::check::availability;
use crate::cli::output;
use crate::config::Config;
use crate::error::Error;
use crate::proto::target::{ActorId, Group, Instance, ScriptType};

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

    /// Reloads if that was asked for, and reports the units that have done so since.
    pub(super) fn reload_if_asked(&mut self) -> Result<(), Error> {
        if self.reload.swap(false, Ordering::Relaxed) {
            self.units.iter_mut().for_each(StageChild::ask_to_reload);
            self.start_new_types()?;
        }
        for report in self.units.iter_mut().filter_map(StageChild::reload_report) {
            output::note(&report);
        }
        Ok(())
    }

    /// Starts an actor for each script type that has none yet. A wrong configuration is reported by the units.
    fn start_new_types(&mut self) -> Result<(), Error> {
        let Ok(config) = Config::load(Some(&self.config_file)) else { return Ok(()) };
        for (script_type, reason) in availability(&config) {
            let unit = first_actor(script_type.clone())?.unit();
            let is_new = !self.config.types.contains_key(&script_type);
            match reason {
                Some(reason) if is_new => {
                    output::note(&format!("hero: {script_type} cannot run here: {reason}"));
                }
                None if self.units.iter().all(|known| known.name() != unit) => {
                    self.start_unit(&unit, &[])?;
                    output::note(&format!("hero: {unit} is started for type {script_type}"));
                }
                _ => {}
            }
        }
        self.config.types = config.types;
        Ok(())
    }
}

/// Returns the first actor of a type: `TYPE:default:1`.
pub(in crate::cli) fn first_actor(script_type: ScriptType) -> Result<ActorId, Error> {
    let instance = Instance::try_from(1).map_err(|error| unavailable(error.to_string()))?;
    Ok(ActorId { script_type, group: Group::default(), instance })
}
