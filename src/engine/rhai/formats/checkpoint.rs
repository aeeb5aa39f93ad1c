//! The state that a script keeps for the next attempt of its job.

use ::rhai::Dynamic;

use super::children::ask;
use super::{encode, json, limited};
use crate::engine::RequestKind;
use crate::engine::rhai::functions::Functions;
use crate::engine::rhai::runtime::context::RhaiResult;
use crate::engine::rhai::runtime::run::with;
use crate::proto::job::Checkpoint;

pub(super) fn register(functions: &mut Functions<'_>) {
    functions
        .add(
            "state",
            [],
            "Returns the state that an earlier attempt of the job has kept by `checkpoint`; `()` if there is none.",
            "let done = state() ?? 0;",
            state,
        )
        .returns("any");
    functions.add(
        "checkpoint",
        ["state"],
        "Keeps a value, of up to 64 KiB as JSON, for the next attempt of the job, and returns once it is kept. It \
         replaces the one before; `()` keeps nothing.",
        "try { checkpoint(#{row: 700}) } catch (error) { print(error) }",
        |state: Dynamic| checkpoint(&state),
    );
}

fn state() -> RhaiResult<Dynamic> {
    let kept = with(|run| run.script.state.map(str::to_owned)).flatten();
    limited("state", |limits| kept.map_or(Ok(Dynamic::UNIT), |json| json::parse(&json, limits)))
}

fn checkpoint(state: &Dynamic) -> RhaiResult<()> {
    let json = encode::text(state);
    let asked = json.and_then(|json| Checkpoint::of_json(&json)).map(RequestKind::State);
    ask(asked)?.map(drop).map_err(|reason| format!("checkpoint: {reason}").into())
}
