//! Compares the space that jobs may fill with the space for their folders.

use nix::sys::statvfs::statvfs;
use tracing::warn;

use crate::config::{Config, EngineKind, Unit, format_size};
use crate::engine::process::folder_of_jobs;

/// The unit of a file system's size.
const MIB: u64 = 1 << 20;

/// Warns if the jobs of a unit may fill more than the file system of their folders has free.
pub(super) fn warn_if_small(config: &Config, unit: &Unit) {
    let (wanted, folder) = (wanted_bytes(config, unit), folder_of_jobs());
    let Ok(disk) = statvfs(&folder) else { return };
    #[allow(clippy::useless_conversion, reason = "their types differ between processors")]
    let free = u64::from(disk.blocks_available()).saturating_mul(disk.fragment_size().into());
    if wanted > free {
        warn!(
            "the jobs of this process may fill {} of {}, by `disk` of their sandbox for each task, but {} are \
             free; without space jobs go back to their queue: lower `disk` or `tasks`, or enlarge the file system",
            format_size(wanted),
            folder.display(),
            format_size(free / MIB * MIB),
        );
    }
}

/// Returns the space that the jobs of a unit may fill at once; types without a bound are left out.
fn wanted_bytes(config: &Config, unit: &Unit) -> u64 {
    let Unit::Actors(actors) = unit else { return 0 };
    let of_actor = |actor: &crate::config::ActorUnit| {
        let of_type = config.types.get(&actor.id.script_type)?;
        let tasks = u64::try_from(actor.tasks).unwrap_or(u64::MAX);
        (of_type.engine == EngineKind::Command).then(|| of_type.sandbox.disk.saturating_mul(tasks))
    };
    actors.iter().filter_map(of_actor).fold(0, u64::saturating_add)
}
