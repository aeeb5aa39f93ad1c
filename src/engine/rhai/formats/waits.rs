//! The waits of a script, and the event that ended the last one.

use ::rhai::{Dynamic, Map};

use super::{encode, json, limited};
use crate::engine::Failure;
use crate::engine::rhai::functions::Functions;
use crate::engine::rhai::runtime::context::RhaiResult;
use crate::engine::rhai::runtime::run::{terminated, with};
use crate::proto::job::AskedWait;

pub(super) fn register(functions: &mut Functions<'_>) {
    functions
        .add(
            "event",
            [],
            "Returns the event that ended the last wait of the job, such as `#{event: \"approved\", data: (), who: \"ann\"}`, \
             or `#{timeout: true}`; `()` before the first wait.",
            "let came = event();",
            event,
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

fn event() -> RhaiResult<Dynamic> {
    let event = with(|run| run.script.event.map(str::to_owned)).flatten();
    limited("event", |limits| event.map_or(Ok(Dynamic::UNIT), |json| json::parse(&json, limits)))
}

/// Ends the script; no `catch` of it sees that.
fn wait(asked: Map) -> RhaiResult<()> {
    let json = encode::text(&Dynamic::from_map(asked))?;
    let wait = AskedWait::of_json(&json)?;
    let _ = with(|run| run.give_up(Failure::Waits { wait: Box::new(wait), exit_code: None }));
    Err(terminated().into())
}
