//! The methods, one file per noun. Each calls the functions of the client library that the command line
//! calls.

mod system;

use super::table::Method;

/// All methods.
pub(super) fn all() -> Vec<Method> {
    system::methods().into()
}
