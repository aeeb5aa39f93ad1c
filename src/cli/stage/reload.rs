//! Lets the units of a stage reload the configuration, and reports what each of them did.

use std::sync::atomic::Ordering;

use super::{Stage, StageChild, unavailable};
use crate::cli::check::availability;
use crate::cli::output;
use crate::config::Config;
use crate::error::Error;
use crate::proto::target::{ActorId, Group, Instance, ScriptType};

impl Stage {
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
