//! The table of the fields of a job: a row for each setting and for each field that Hero writes, in the order of a job's
//! life. Lists, files, searches, the page, the command line and the schemas of the API come from it.

use super::files::{FILES_NOT_KEPT, INPUT_FILES, OUTPUT_FILES};
use super::hash::OUTPUT;
use super::value::FieldKind;

/// The place of a waiting job in its queue. Readers add it: no hash has it.
pub const QUEUE_PLACE: &str = "queue_place";
/// The member of a job document that says what the job waits for before it starts.
pub const WAITS_FOR: &str = "waits_for";
/// The member of a job document that has the prerequisites and dependents of the job as trees.
pub const TREES: &str = "trees";

/// The part of a job's picture that shows a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldGroup {
    /// Its name and the like.
    Job,
    Place,
    State,
    Times,
    Settings,
    Inputs,
    /// The resources that it used, and the results that it left.
    Results,
    Relations,
    /// Texts of any length.
    Texts,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldUnit {
    None,
    /// A time in RFC 3339.
    Time,
    Seconds,
    Bytes,
    /// A share from 0 to 1.
    Share,
}

/// A field that actors and scripts of Redis add to the hash, beside the settings and the fields of
/// [`Job`](super::Job).
#[derive(Debug, Clone, Copy)]
pub struct AddedField {
    pub kind: FieldKind,
    /// The type of its value in JSON.
    pub json_type: &'static str,
    pub doc: &'static str,
}

#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each says where the field is shown")]
pub struct JobField {
    /// Its name in the hash, in JSON and on the command line.
    pub name: &'static str,
    /// Its name on the page.
    pub label: &'static str,
    pub group: FieldGroup,
    pub unit: FieldUnit,
    /// True if lists of jobs have it.
    pub is_listed: bool,
    /// True if files of many jobs have a column for it.
    pub is_exported: bool,
    /// True if a search for a text looks into it.
    pub is_searched: bool,
    /// True if its values are masked for those who may only read.
    pub is_secret: bool,
    /// Its documentation, if it is neither a setting nor a field of [`Job`](super::Job).
    pub added: Option<AddedField>,
}

impl JobField {
    const fn unit(self, unit: FieldUnit) -> Self {
        Self { unit, ..self }
    }

    const fn listed(self) -> Self {
        Self { is_listed: true, ..self }
    }

    /// In lists and in files of many jobs.
    const fn exported(self) -> Self {
        Self { is_listed: true, is_exported: true, ..self }
    }

    const fn searched(self) -> Self {
        Self { is_searched: true, ..self }
    }

    const fn secret(self) -> Self {
        Self { is_secret: true, ..self }
    }

    const fn added(self, kind: FieldKind, json_type: &'static str, doc: &'static str) -> Self {
        Self { added: Some(AddedField { kind, json_type, doc }), ..self }
    }

    const fn text(self, doc: &'static str) -> Self {
        self.added(FieldKind::Text, "string", doc)
    }

    const fn time(self, doc: &'static str) -> Self {
        self.added(FieldKind::Time, "string", doc)
    }

    const fn list(self, doc: &'static str) -> Self {
        self.added(FieldKind::List, "array", doc)
    }

    const fn object(self, doc: &'static str) -> Self {
        self.added(FieldKind::Object, "object", doc)
    }

    const fn number(self, doc: &'static str) -> Self {
        self.added(FieldKind::Number, "number", doc)
    }

    const fn integer(self, doc: &'static str) -> Self {
        self.added(FieldKind::Number, "integer", doc)
    }

    pub fn of(name: &str) -> Option<&'static Self> {
        JOB_FIELDS.iter().find(|field| field.name == name)
    }

    /// Returns the rows of the fields that lists of jobs have, beside the id and the state.
    pub fn listed_fields() -> impl Iterator<Item = &'static Self> {
        JOB_FIELDS.iter().filter(|field| field.is_listed && !["id", "status"].contains(&field.name))
    }
}

use FieldGroup::{Inputs, Place, Relations, Results, Settings, State, Texts, Times};
use FieldUnit::{Bytes, Seconds, Share, Time};

const fn row(name: &'static str, label: &'static str, group: FieldGroup) -> JobField {
    JobField {
        name,
        label,
        group,
        unit: FieldUnit::None,
        is_listed: false,
        is_exported: false,
        is_searched: false,
        is_secret: false,
        added: None,
    }
}

pub static JOB_FIELDS: &[JobField] = &[
    row("id", "Id", FieldGroup::Job).exported().searched(),
    row("name", "Name", FieldGroup::Job).exported().searched(),
    row("tags", "Tags", FieldGroup::Job).exported().searched(),
    row("status", "State", State).exported(),
    row("graph_id", "Graph", FieldGroup::Job).exported(),
    row("cron", "Periodic job", FieldGroup::Job)
        .exported()
        .text("The periodic job whose firing it is"),
    row("uses", "Script", FieldGroup::Job).exported().searched(),
    row("script_digest", "Digest of the script", FieldGroup::Job),
    row("script_type", "Type", Place).exported(),
    row("group", "Group", Place).exported(),
    row("instance", "Instance", Place).exported(),
    row("where", "Where", Place).exported(),
    row("priority", "Priority", Place).exported(),
    row("fallback", "Fallback", Place),
    row("fell_back_from", "Fell back from", Place).text("The queue that it was sent to first"),
    row("caller_id", "Caller", FieldGroup::Job).exported(),
    row("context_id", "Context", FieldGroup::Job).exported(),
    row("attempt", "Attempt", State).exported(),
    row("durable", "Durable", Settings),
    row("may_fail", "May fail", Settings),
    row("retries", "Retries", Settings),
    row("backoff", "Backoff", Settings),
    row("retry_if", "Retried after exit codes", Settings),
    row("discard_if", "Never retried after exit codes", Settings),
    row("postponed", "Postponed", State),
    row("wait", "Waits for", State).listed(),
    row("waits", "Waits so far", State),
    row("session", "Ends without a call", Settings).unit(Seconds).listed(),
    row("session_calls", "Calls", State).listed(),
    row("crashes", "Crashes", State).listed(),
    row("actor", "Actor", Place).exported(),
    row("boot_id", "Boot", Place),
    row("hostname", "Machine", Place).listed(),
    row("held_by", "Held by", State).exported().text("The limit that holds it"),
    row("stopped_by", "Stopped by", State)
        .exported()
        .text("The person or program that stopped it, and its machine or address"),
    row("created_at", "Created", Times).unit(Time).exported(),
    row("prerequisites_at", "Prerequisites from before", Times).unit(Time),
    row("run_at", "Due", Times).unit(Time).exported(),
    row("started_at", "Started", Times).unit(Time).exported(),
    row("first_started_at", "First started", Times).unit(Time),
    row("finished_at", "Ended", Times).unit(Time).exported(),
    row("updated_at", "Updated", Times).unit(Time),
    row("kept_state_at", "State kept", Times).unit(Time),
    row("wait_ended_at", "Wait ended", Times).unit(Time),
    row("timeout", "Timeout", Settings).unit(Seconds),
    row("memory", "Memory", Settings),
    row("job_memory", "Memory of the job", Settings),
    row("cpu", "Processor time", Settings),
    row("network", "Network", Settings),
    row("retention", "Kept after its end", Settings).unit(Seconds),
    row("output_overflow", "Output over the limit", Settings),
    row("concurrent", "Concurrent", Settings),
    row("expires", "Expires", Settings).unit(Seconds),
    row("notify", "Notifications", Settings),
    row("expect_within", "Late after", Settings).unit(Seconds),
    row("slow_after", "Slow after", Settings).unit(Seconds),
    row("late_at", "Late since", Times)
        .unit(Time)
        .exported()
        .time("When it had not ended within its expect_within"),
    row("slow_at", "Slow since", Times)
        .unit(Time)
        .exported()
        .time("When its latest slow attempt had run for longer than its slow_after"),
    row("unique_key", "Unique key", Settings),
    row("unique_scope", "Unique within", Settings),
    row("bounds", "Bounds", Settings),
    row("unique_for", "Unique for", Settings).unit(Seconds),
    row("unique_by", "Unique by", Settings),
    row("on_duplicate", "On a duplicate", Settings),
    row("debounce", "Debounce", Settings).unit(Seconds),
    row("debounce_max", "Longest debounce", Settings).unit(Seconds),
    row("debounced_since", "Debounced since", Times)
        .unit(Time)
        .time("The submission of the first of the jobs that replaced each other, by debounce"),
    row("delayed_since", "Delayed since", Times)
        .unit(Time)
        .time("The time from which its delay is counted"),
    row("graph_callback", "Callback", Settings)
        .text("The callback of its graph or batch that it is: on_success, on_failure or on_end"),
    row("limit_key", "Limit key", Settings),
    row("shard_key", "Shard key", Settings),
    row("traceparent", "Trace", Settings),
    row("signature", "Signature", Settings),
    row("reply", "Reply", Settings),
    row("reply_format", "Format of the reply", Settings),
    row("extension", "Extension", Inputs),
    row("args", "Arguments", Inputs),
    row("params", "Parameters", Inputs),
    row("secrets", "Secrets", Inputs),
    row("env_vars", "Environment", Inputs).secret(),
    row("log_path", "Log file", Results),
    row("progress", "Progress", State)
        .unit(Share)
        .listed()
        .number("The progress that the script reported, from 0 to 1"),
    row("progress_text", "Step", State).listed().text("The step that the script reported"),
    row("unfinished_line", "Unfinished line", State)
        .text("The text after the last line of its log, while it runs, that has no line end yet"),
    row("exit_code", "Exit code", Results).listed(),
    row("signal", "Signal", Results).integer("The signal that ended its process"),
    row("limit", "Ended by", Results).text("The limit of resources that ended it"),
    row("cpu_time", "CPU time", Results)
        .unit(Seconds)
        .number("The processor time of its last attempt, in seconds")
        .listed(),
    row("memory_peak", "Memory peak", Results)
        .unit(Bytes)
        .integer("The peak memory of its last attempt, in bytes")
        .listed(),
    row("log_missing", "Lines missing in its log", Results)
        .integer("The lines of its log that Redis refused"),
    row("output_truncated", "Output cut by", Results)
        .unit(Bytes)
        .integer("The bytes that were cut off at the start of its output"),
    row(INPUT_FILES, "Input files", Relations)
        .list("The names of the files that it is given; `-` is its standard input"),
    row(OUTPUT_FILES, "Output files", Relations)
        .list("The names of the files that its script left"),
    row(FILES_NOT_KEPT, "Files not kept", Results)
        .text("The files that its script left and that are not kept, and why"),
    row(QUEUE_PLACE, "Place in the queue", State)
        .text("The place in its queue while it waits there, such as 12 of 340 in type:bash, behind 3 more urgent"),
    row(WAITS_FOR, "Does not start for", State)
        .text("What it waits for before an actor starts it, and what to do about it"),
    row("attempts", "Attempts", State),
    row("prerequisites", "Waits for", Relations),
    row("after_any", "Waits for the end of", Relations),
    row("prerequisite_names", "Names of prerequisites", Relations),
    row("dependents", "Dependents", Relations),
    row("dependents_more", "Further dependents", Relations),
    row(TREES, "Trees", Relations)
        .object("Its prerequisites and its dependents, each with theirs, in `branches`; `more` counts those left out"),
    row("parent", "Submitted by the script of", Relations).exported(),
    row("generation", "Generation", Relations),
    row("children", "Jobs that its script submitted", Relations),
    row("output_encoding", "Encoding of the output", Texts)
        .text("base64, if the output is not UTF-8 and is given as Base64"),
    row(OUTPUT, "Output", Texts).text("The output, once it finished"),
    row("kept_state", "State for the next attempt", Texts),
    row("event", "Event", Texts),
    row("told_events", "Events not read", Texts),
    row("session_call", "Call", Texts),
    row("error", "Error", Texts).exported().searched(),
    row("script", "Script", Texts),
];

#[cfg(test)]
mod tests {
    use super::super::{Job, SETTINGS};
    use super::*;

    #[test]
    fn every_field_of_a_job_has_one_row() {
        let settings = SETTINGS.iter().map(|setting| setting.field);
        let own = Job::own_fields().map(|(name, ..)| name);
        let known: Vec<&str> = settings.chain(own).chain(["status"]).collect();
        for name in &known {
            assert!(JobField::of(name).is_some(), "{name}: give it a row in the table of fields");
        }
        for field in JOB_FIELDS {
            let rows = JOB_FIELDS.iter().filter(|other| other.name == field.name).count();
            assert_eq!(rows, 1, "{}", field.name);
            assert_eq!(
                known.contains(&field.name),
                field.added.is_none(),
                "{}: a row has documentation if nothing else has it",
                field.name
            );
        }
    }

    #[test]
    fn searched_and_exported_fields_are_in_lists() {
        for field in JOB_FIELDS {
            let needs = field.is_searched || field.is_exported;
            assert!(field.is_listed || !needs, "{}", field.name);
        }
        let texts = JOB_FIELDS.iter().filter(|field| field.group == Texts && field.is_listed);
        let texts: Vec<&str> = texts.map(|field| field.name).collect();
        assert_eq!(texts, ["error"], "script and output may be large");
    }
}
