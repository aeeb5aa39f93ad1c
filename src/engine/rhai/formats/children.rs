//! The jobs that a script submits, and the outputs that it asks for.

use ::rhai::{Dynamic, Map};

use super::{encode, json, value_of};
use crate::config::RhaiLimits;
use crate::engine::RequestKind;
use crate::engine::rhai::functions::Functions;
use crate::engine::rhai::runtime::context::RhaiResult;
use crate::engine::rhai::runtime::run::{terminated, with};
use crate::proto::job::{AskedOutput, NewChildren};

/// Registers the functions.
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
    let of = limits.clone();
    functions.add(
        "hero_inputs",
        ["job"],
        "Returns a job of the same graph, or a child, as it is now: `#{id: ..., status: ..., output: ...}`, by its name or \
         its id. It has an output, as `result` returns it, only if the job finished; `status` is `gone` if it was deleted.",
        "try { hero_inputs(\"page-1\").status } catch (error) { print(error) }",
        move |job: &str| inputs(job, &of),
    );
}

fn submit(job: &Dynamic, limits: &RhaiLimits) -> RhaiResult<Dynamic> {
    let json = encode::text(job, false, u64::MAX);
    let asked = json.and_then(|json| NewChildren::of_json(&json)).map(RequestKind::Submit);
    let result = ask(asked)?.and_then(|result| json::parse(&result, limits));
    result.map_err(|reason| format!("hero_submit: {reason}").into())
}

fn inputs(job: &str, limits: &RhaiLimits) -> RhaiResult<Map> {
    let asked = AskedOutput::named(job.to_owned()).map(RequestKind::Inputs);
    let found = ask(asked)?.and_then(|result| {
        let mut found = json::parse(&result, limits)?.try_cast::<Map>().unwrap_or_default();
        if let Some(output) = found.get("output").and_then(|text| text.clone().into_string().ok()) {
            found.insert("output".into(), value_of(&output, limits)?);
        }
        Ok(found)
    });
    found.map_err(|reason| format!("hero_inputs: {reason}").into())
}

/// Asks Hero, and waits for the answer.
fn ask(asked: Result<RequestKind, String>) -> RhaiResult<Result<String, String>> {
    let done = with(|run| run.ask(asked))
        .unwrap_or_else(|| Ok(Err("no job runs on this thread".to_owned())));
    let Ok(done) = done else { return Err(terminated().into()) };
    Ok(done.map(Option::unwrap_or_default))
}
