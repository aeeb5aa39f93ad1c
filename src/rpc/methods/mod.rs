//! The methods, one file per noun. Each calls the functions of the client library that the command line
//! calls.

mod access;
mod batch;
mod dead;
mod job;
mod job_types;
mod object;
mod older;
mod params;
mod system;

use super::table::Method;

/// All methods.
pub(super) fn all() -> Vec<Method> {
    let mut all = job::methods();
    all.extend(batch::methods());
    all.extend(dead::methods());
    all.extend(object::methods());
    all.extend(system::methods());
    all.extend(older::methods());
    all
}
