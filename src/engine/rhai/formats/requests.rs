//! Requests of a script to Hero: to keep its state, to submit jobs and read their outputs, and to wait.

use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};

use ::rhai::{Dynamic, Map};

use super::{NO_RUN, json, json_of, limited, parsed, value_of};
use crate::engine::rhai::base::give_up;
use crate::engine::rhai::functions::Functions;
use crate::engine::rhai::runtime::context::RhaiResult;
use crate::engine::rhai::runtime::run::{terminated, with};
use crate::engine::{Answers, Failure, RequestKind, ScriptRequest};
use crate::proto::job::{AskedOutput, AskedWait, Checkpoint, NewChildren};

#[derive(Debug)]
struct OneAnswer(SyncSender<Result<String, String>>);

impl Answers for OneAnswer {
    fn answer(&self, done: &Result<(), String>) {
        // A script that has been stopped waits no more.
        let _ = self.0.try_send(done.clone().map(|()| String::new()));
    }

    fn answer_with(&self, result: &str) {
        let _ = self.0.try_send(Ok(result.to_owned()));
    }

    fn close(&self) {}
}

pub(super) fn register(functions: &mut Functions<'_>) {
    register_state(functions);
    register_children(functions);
    register_waits(functions);
}

fn register_state(functions: &mut Functions<'_>) {
    functions
        .add(
            "state",
            [],
            "Returns the state that an earlier attempt of the job has kept by `checkpoint`; `()` if there is none.",
            "let done = state() ?? 0;",
            || parsed("state", |script| script.state.map(str::to_owned)),
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

fn register_children(functions: &mut Functions<'_>) {
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

fn register_waits(functions: &mut Functions<'_>) {
    functions
        .add(
            "event",
            [],
            "Returns the event that ended the last wait of the job, such as `#{event: \"approved\", data: (), who: \"ann\"}`, \
             or `#{timeout: true}`; `()` before the first wait.",
            "let came = event();",
            || parsed("event", |script| script.event.map(str::to_owned)),
        )
        .returns("any");
    functions
        .add(
            "wait",
            ["asked"],
            "Ends the script, and lets the job run again once what it waits for has come; no task is held meanwhile. \
             That is an `event` that it is told, from one of `who`, or the ends of `jobs`, or with `children: true` of all jobs that it submitted, or the time `for` alone.",
            "if event() == () { wait(#{event: \"approved\", \"for\": \"3d\"}); }",
            |asked: Map| wait(asked),
        )
        .overload(["event", "length"], |event: &str, length: &str| {
            let text = |text: &str| Dynamic::from(text.to_owned());
            wait(Map::from([("event".into(), text(event)), ("for".into(), text(length))]))
        });
}

fn checkpoint(state: &Dynamic) -> RhaiResult<()> {
    let json = json_of(state);
    let asked = json.and_then(|json| Checkpoint::of_json(&json)).map(RequestKind::State);
    ask(asked)?.map(drop).map_err(|reason| format!("checkpoint: {reason}").into())
}

fn submit(job: &Dynamic) -> RhaiResult<Dynamic> {
    let asked = json_of(job).and_then(|json| NewChildren::of_json(&json));
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

/// Asks Hero for something, and waits until it is done or refused. Returns its result as JSON; empty if it has none.
fn ask(asked: Result<RequestKind, String>) -> RhaiResult<Result<String, String>> {
    let done = with(|run| {
        let (sender, done) = sync_channel(1);
        run.log.request(ScriptRequest { asked, answers: Arc::new(OneAnswer(sender)) });
        run.receive(&done)
    });
    match done {
        None => Ok(Err(NO_RUN.to_owned())),
        Some(Err(_)) => Err(terminated().into()),
        Some(Ok(done)) => Ok(done.unwrap_or_else(|| Err("the actor has lost its jobs".to_owned()))),
    }
}

fn wait(asked: Map) -> RhaiResult<()> {
    let json = json_of(&Dynamic::from_map(asked))?;
    let wait = AskedWait::of_json(&json)?;
    give_up(Failure::Waits { wait: Box::new(wait), exit_code: None })
}
