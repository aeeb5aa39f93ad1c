//! The constants of every script, visible in its functions as well.

use ::rhai::{Array, Dynamic, Map};

use crate::engine::rhai::runtime::run::with;

pub(super) fn value(name: &str) -> Option<Dynamic> {
    match name {
        "JOB_ID" => with(|run| run.script.job_id.into()),
        "CALLER_ID" => with(|run| run.script.caller_id.into()),
        "CONTEXT_ID" => with(|run| run.script.context_id.into()),
        "ENV" => with(|run| {
            let env = run.script.env.iter();
            env.map(|(name, value)| (name.as_str().into(), value.into())).collect::<Map>().into()
        }),
        "args" => with(|run| run.script.args.iter().map(Into::into).collect::<Array>().into()),
        "params" => with(|run| run.params().into()),
        "INPUTS" => with(|run| run.inputs().into()),
        _ => None,
    }
}
