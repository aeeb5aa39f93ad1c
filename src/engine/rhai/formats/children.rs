//! The jobs that a script submits, and the outputs that it asks for.

use ::rhai::{Dynamic, Map};

use super::{NO_RUN, encode, json, limited, value_of};
use crate::engine::RequestKind;
use crate::engine::rhai::functions::Functions;
use crate::engine::rhai::runtime::context::RhaiResult;
use crate::engine::rhai::runtime::run::{terminated, with};
use crate::proto::job::{AskedOutput, NewChildren};

pub(super) fn register(functions: &mut Functions<'_>) {
    functions
        .add(
            "hero_submit",
            ["job"],
            "Submits a job, or a list of jobs, with the settings of a line of a batch, and returns once they are kept: \
             `#{id: ...}`, or a list of those. A further attempt that submits the same `name` gets the same job. The \
             script's type needs `may_submit` in its configuration.",
            "try { hero_submit(#{type: \"osis\", name: \"page-1\", script: \"40 + 2\"}) } catch (error) { print(error) }",
            |job: Dynamic| submit(&job),
        )
        .returns("any");
    functions
        .add(
            "hero_inputs",
            ["job"],
            "Returns the output of a job of the same graph, or of a child, by its name or its id, as `result` does for a \
             prerequisite: `()` if it did not finish.",
            "try { hero_inputs(\"page-1\") } catch (error) { print(error) }",
            inputs,
        )
        .returns("any");
    functions.add(
        "hero_job",
        ["job"],
        "Returns a job of the same graph, or a child, as it is now: `#{id: ..., status: ..., output: ...}`, by its name or \
         its id. It has an output, as `result` returns it, only if the job finished; `status` is `gone` if it was deleted.",
        "try { hero_job(\"page-1\").status } catch (error) { print(error) }",
        job,
    );
}

fn submit(job: &Dynamic) -> RhaiResult<Dynamic> {
    let asked = encode::text(job).and_then(|json| NewChildren::of_json(&json));
    let result = ask(asked.map(RequestKind::Submit))?;
    limited("hero_submit", |limits| json::parse(&result?, limits))
}

fn inputs(name: &str) -> RhaiResult<Dynamic> {
    Ok(job(name)?.remove("output").unwrap_or_default())
}

fn job(name: &str) -> RhaiResult<Map> {
    let result = ask(AskedOutput::named(name.to_owned()).map(RequestKind::Inputs))?;
    limited("hero_job", |limits| {
        let mut found = json::parse(&result?, limits)?.try_cast::<Map>().unwrap_or_default();
        if let Some(output) = found.get("output").and_then(|text| text.clone().into_string().ok()) {
            found.insert("output".into(), value_of(&output, limits)?);
        }
        Ok(found)
    })
}

pub(super) fn ask(asked: Result<RequestKind, String>) -> RhaiResult<Result<String, String>> {
    let done = with(|run| run.ask(asked)).unwrap_or_else(|| Ok(Err(NO_RUN.to_owned())));
    let Ok(done) = done else { return Err(terminated().into()) };
    Ok(done.map(Option::unwrap_or_default))
}
