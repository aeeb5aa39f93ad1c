//! The jobs that a script submits.

use ::rhai::Dynamic;

use super::{encode, json};
use crate::config::RhaiLimits;
use crate::engine::RequestKind;
use crate::engine::rhai::functions::Functions;
use crate::engine::rhai::runtime::context::RhaiResult;
use crate::engine::rhai::runtime::run::{terminated, with};
use crate::proto::job::NewChildren;

/// Registers the function.
pub(super) fn register(functions: &mut Functions<'_>, limits: &RhaiLimits) {
    let of = limits.clone();
    functions
        .add(
            "hero_submit",
            ["job"],
            "Submits a job, or a list of jobs, with the settings of a line of a batch, and returns once they are kept: \
             `#{id: ...}`, or a list of those. A further attempt that submits the same `name` gets the same job. The \
             script's type needs `may_submit` in its configuration.",
            "try { hero_submit(#{type: \"osis\", name: \"page-1\", script: \"40 + 2\"}) } catch (error) { print(error) }",
            move |job: Dynamic| submit(&job, &of),
        )
        .returns("any");
}

fn submit(job: &Dynamic, limits: &RhaiLimits) -> RhaiResult<Dynamic> {
    let json = encode::text(job, false, u64::MAX);
    let asked = json.and_then(|json| NewChildren::of_json(&json)).map(RequestKind::Submit);
    let done = with(|run| run.ask(asked))
        .unwrap_or_else(|| Ok(Err("no job runs on this thread".to_owned())));
    let Ok(done) = done else { return Err(terminated().into()) };
    let result = done.and_then(|result| json::parse(&result.unwrap_or_default(), limits));
    result.map_err(|reason| format!("hero_submit: {reason}").into())
}
