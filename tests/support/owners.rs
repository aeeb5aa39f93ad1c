//! The owners of jobs in tests of rights, and what the rights of a caller allow with them, as docs/security.md says it.

use std::collections::BTreeSet;

use hero::proto::access::Bounds;

/// The owner of a job: caller, script type, group, context.
pub(crate) type Owner = [&'static str; 4];

/// The caller itself, and those that differ from it in one part.
pub(crate) const OWN: Owner = ["ann", "osis", "io", "work"];
pub(crate) const OWNERS: [Owner; 5] = [
    OWN,
    ["bob", "osis", "io", "work"],
    ["ann", "other", "io", "work"],
    ["ann", "osis", "far", "work"],
    ["ann", "osis", "io", "home"],
];

/// Returns whether a caller reaches a job; `reaches_all` if its scopes reach the jobs of others.
pub(crate) fn reaches(
    name: &str,
    reaches_all: bool,
    bounds: &Bounds,
    [of, script_type, group, context]: Owner,
) -> bool {
    let is_own = of == name;
    let is_among = |bound: &Option<BTreeSet<String>>, name: &str| {
        bound.as_ref().is_none_or(|names| names.contains(name))
    };
    (is_own || reaches_all)
        && is_among(&bounds.types, script_type)
        && is_among(&bounds.groups, group)
        && (is_own || is_among(&bounds.callers, of))
        && is_among(&bounds.contexts, context)
}
