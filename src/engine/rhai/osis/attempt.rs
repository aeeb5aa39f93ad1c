//! The functions of `osis` whose results do not follow from their arguments: the time, random numbers, a UUID. With
//! `osis.impure` they follow from the id of the job, the number of the attempt and its start, which the job keeps for each
//! attempt: a replay with these has the same results.

use ::rhai::INT;
use fastrand::Rng;
use jiff::Timestamp;
use uuid::{Builder, Uuid};

use super::context::{CallResult, OsisJob, RhaiResult, operation};
use crate::engine::rhai::functions::Functions;
use crate::proto::object::{ObjectId, time_text};

pub(crate) fn register(functions: &mut Functions<'_>) {
    functions.group(
        "attempt",
        "The time and random values, if `osis.impure` of the configuration is true; otherwise a script has the same \
         result each time. All follow from the id of the job, the attempt and its start, which `hero job show --json` \
         has: with the same three they are the same. They are no secrets.",
    );
    functions.add(
        "time_now",
        [],
        "Returns the time at which this attempt started, in whole seconds since 1970; it stands still while the script \
         runs.",
        r"
time_now() > 1700000000 && time_now() == time_now_ms() / 1000
// → true",
        || impure("time_now", |job| Ok(job.start().as_second())),
    );
    functions.add(
        "time_now_ms",
        [],
        "Returns the time at which this attempt started, in milliseconds since 1970.",
        r"
let before = time_now_ms();
time_now_ms() == before
// → true",
        || impure("time_now_ms", |job| Ok(job.start().as_millisecond())),
    );
    functions.add(
        "time_now_text",
        [],
        "Returns the time at which this attempt started, in the form of `created_at`, which fields of the form `time` take.",
        r#"
time_now_text().len() == "2026-01-31T12:00:00.000Z".len()
// → true"#,
        || impure("time_now_text", |job| Ok(time_text(job.start().as_millisecond()))),
    );
    functions.add(
        "random",
        ["least", "most"],
        "Returns a random whole number between two, each of them included.",
        r"
let dice = random(1, 6);
dice >= 1 && dice <= 6
// → true",
        |least: INT, most: INT| {
            impure("random", |job| {
                if least > most {
                    return Err("the first number is larger than the second".into());
                }
                Ok(job.random(|rng| rng.i64(least..=most)))
            })
        },
    );
    functions.add(
        "uuid",
        [],
        "Returns a random UUID.",
        r"
uuid().len()
// → 36",
        || impure("uuid", |job| Ok(job.uuid().to_string())),
    );
}

fn impure<T>(name: &str, work: impl FnOnce(OsisJob<'_>) -> CallResult<T>) -> RhaiResult<T> {
    operation(name, "", |job| {
        if !job.settings.osis.impure {
            let message = "not allowed: osis.impure is false; [osis] impure = true would allow it";
            return Err(message.into());
        }
        work(job)
    })
}

impl OsisJob<'_> {
    fn start(self) -> Timestamp {
        self.run.script.started_at.unwrap_or_else(Timestamp::now)
    }

    /// The time for new objects, in milliseconds since 1970.
    pub(super) fn now_ms(self) -> i64 {
        let now = if self.settings.osis.impure { self.start() } else { Timestamp::now() };
        now.as_millisecond()
    }

    pub(super) fn random<T>(self, work: impl FnOnce(&mut Rng) -> T) -> T {
        if self.settings.osis.impure {
            work(&mut self.run.generator().borrow_mut())
        } else {
            work(&mut Rng::new())
        }
    }

    pub(super) fn new_id(self) -> CallResult<ObjectId> {
        Ok(self.uuid().to_string().parse()?)
    }

    fn uuid(self) -> Uuid {
        if self.settings.osis.impure {
            self.random(|rng| Builder::from_random_bytes(rng.u128(..).to_be_bytes()).into_uuid())
        } else {
            Uuid::new_v4()
        }
    }
}
