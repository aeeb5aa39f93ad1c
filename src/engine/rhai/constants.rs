//! The constants that every script sees, also inside its functions.

use ::rhai::{Dynamic, Map};

use super::running::with;

/// The job's value for `name`, if it is one of the constants. The length and first letter sort out
/// nearly every other name.
pub(super) fn value(name: &str) -> Option<Dynamic> {
    match name {
        "JOB_ID" => with(|running| running.script.job_id.into()),
        "CALLER_ID" => with(|running| running.script.caller_id.into()),
        "CONTEXT_ID" => with(|running| running.script.context_id.into()),
        "ENV" => with(|running| {
            let env = running.script.env.iter();
            env.map(|(name, value)| (name.as_str().into(), value.into())).collect::<Map>().into()
        }),
        "INPUTS" => with(|running| running.inputs().into()),
        _ => None,
    }
}
