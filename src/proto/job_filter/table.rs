//! The table of the filters of jobs: a row for each. The options of the command line, the parameters of the API and of REST, the addresses
//! and forms of the page, the tools of agents, their schemas, the searches and the sentences of empty results come from it.

use schemars::{Schema, json_schema};

use crate::proto::error_kind::FailureCause;

/// The condition that a filter sets, by the fields of the hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilterTest {
    Status,
    ScriptType,
    Dead,
    Queue,
    /// The field is the text.
    Is(&'static str),
    /// The field is the id of a job.
    IsJob(&'static str),
    /// The field contains the text, in any case.
    Contains(&'static str),
    /// The id begins with the text, or a field that is searched contains it.
    Anywhere,
    Tag,
    ErrorKind,
    Cause,
    Cancelled,
    Has(&'static str),
    /// The time of the field is then or later.
    Since(&'static str),
    /// The time of the field is then or earlier.
    Until(&'static str),
}

#[derive(Debug, Clone, Copy)]
pub struct FilterRow {
    /// Its name in JSON and in addresses; as an option, with `-` for `_`.
    pub name: &'static str,
    /// Further names, which mean the same everywhere. The first is the option of the command line, if there is one.
    pub aliases: &'static [&'static str],
    /// Its label in a form.
    pub label: &'static str,
    /// The word for its value in a help text.
    pub value: &'static str,
    /// The words before its value in the sentence of an empty result; of a flag, with `{}` for `not`.
    pub sentence: &'static str,
    pub test: FilterTest,
    pub doc: &'static str,
}

pub const JOB_FILTERS: [FilterRow; 21] = [
    row("status", FilterTest::Status, "STATE", "State", "in state", "Only jobs in this state: waiting (not started yet), queued (in \
        a queue), held (by a limit), running, finished, failed, cancelled (stopped), replaced (by a later job with their unique key) or expired \
        (failed, as they did not start in time); or created, waiting_for_prerequisites, scheduled, dispatched, started \
        and error (the last three ends and failed together), as JSON has them. Several with commas")
        .aliases(&["status", "state"]),
    row("script_type", FilterTest::ScriptType, "TYPE", "Type", "of type", "Only jobs of this script type")
        .aliases(&["type"]),
    row("queue", FilterTest::Queue, "QUEUE", "Queue", "of queue", "Only jobs of this queue, as hero queue list prints it: \
        type:bash:group:gpu, with :prio:0 or :prio:2 at its end for urgent jobs and those in the background"),
    row("caller", FilterTest::Is("caller_id"), "TEXT", "Caller", "of caller", "Only jobs of this caller")
        .aliases(&["caller", "caller_id"]),
    row("name", FilterTest::Contains("name"), "TEXT", "Name has", "with a name that contains", "Only jobs whose name contains \
        this text"),
    row("tags", FilterTest::Tag, "TAG", "Tag", "with tag", "Only jobs with this tag; with several, those that have all")
        .aliases(&["tag"]),
    row("error", FilterTest::Contains("error"), "TEXT", "Error has", "with an error that contains", "Only jobs whose error \
        contains this text: those that failed, and those that wait to be retried; others only with their state"),
    row("kind", FilterTest::ErrorKind, "TEXT", "Error is", "with an error of the kind", "Only jobs whose error is of this kind: \
        as hero job errors prints it, without numbers, ids, paths and quoted texts, or an error of the kind"),
    row("failed_because", FilterTest::Cause, "WORD", "Failed because", "that failed because of", "Only jobs that failed because \
        of this: timeout, expired, prerequisite, crashed, invalid, signature_expired, unsigned or script; or that ended because \
        they were stopped or replaced: stopped, replaced"),
    row("cancelled", FilterTest::Cancelled, "", "Cancelled", "that was{} stopped or replaced", "Only jobs that were stopped or \
        replaced; with false, only others"),
    row("late", FilterTest::Has("late_at"), "", "Late", "that is{} late", "Only jobs that did not end within their expect_within; \
        with false, only others"),
    row("held", FilterTest::Has("held_by"), "", "Held", "that is{} held by a limit", "Only jobs that a limit holds; with false, \
        only others"),
    row("text", FilterTest::Anywhere, "TEXT", "Text", "with a text that contains", "Only jobs whose id begins with this text, or \
        whose name, tags or error contain it")
        .aliases(&["text", "q"]),
    row("actor", FilterTest::Is("actor"), "ACTOR", "Actor", "on actor", "Only jobs that ran last on this actor: TYPE:GROUP:INSTANCE or its unit"),
    row("host", FilterTest::Is("hostname"), "NAME", "Machine", "on machine", "Only jobs that ran last, and ended, on this machine"),
    row("parent", FilterTest::IsJob("parent"), "ID", "Child of", "that the script submitted of job", "Only jobs that the script of \
        this job submitted"),
    row("since", FilterTest::Since("created_at"), "DURATION|TIME", "Since", "submitted since", "Only jobs submitted since then: 24h \
        (ago), 09:00, yesterday 18:00, friday, 2026-12-24, or RFC 3339; however long ago they ran or failed. Without a zone, the \
        API and the page read UTC"),
    row("until", FilterTest::Until("created_at"), "DURATION|TIME", "Until", "submitted until", "Only jobs submitted until then: with \
        2d, two days ago or earlier"),
    row("ended_since", FilterTest::Since("finished_at"), "DURATION|TIME", "Ended since", "ended since", "Only jobs that ended \
        since then"),
    row("ended_until", FilterTest::Until("finished_at"), "DURATION|TIME", "Ended until", "ended until", "Only jobs that ended until \
        then"),
    row("dead", FilterTest::Dead, "", "Dead", "", "Only dead letters: jobs that used up their attempts, or took down too many actors"),
];

const fn row(
    name: &'static str,
    test: FilterTest,
    value: &'static str,
    label: &'static str,
    sentence: &'static str,
    doc: &'static str,
) -> FilterRow {
    FilterRow { name, aliases: &[], label, value, sentence, test, doc }
}

impl FilterRow {
    const fn aliases(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    /// Returns its option of the command line, without the `--`.
    pub fn option(&self) -> String {
        self.aliases.first().unwrap_or(&self.name).replace('_', "-")
    }

    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        [self.name].into_iter().chain(self.aliases.iter().copied().filter(|of| *of != self.name))
    }

    pub const fn is_flag(&self) -> bool {
        self.value.is_empty()
    }

    /// Returns true if it can be set several times.
    pub const fn is_list(&self) -> bool {
        matches!(self.test, FilterTest::Tag | FilterTest::Status)
    }

    /// Returns true if a sentence has its value in quotes: a part of a text.
    pub(super) const fn is_quoted(&self) -> bool {
        matches!(self.test, FilterTest::Contains(_) | FilterTest::Anywhere | FilterTest::ErrorKind)
    }

    /// Returns the schema of its value in JSON.
    pub fn schema(&self) -> Schema {
        let doc = self.doc;
        match self.test {
            FilterTest::Tag => {
                json_schema!({ "description": doc, "type": "array", "items": { "type": "string" } })
            }
            FilterTest::Cause => {
                let words = FailureCause::ALL.map(|cause| Some(cause.as_str()));
                let words: Vec<_> = words.into_iter().chain([None]).collect();
                json_schema!({ "description": doc, "type": ["string", "null"], "enum": words })
            }
            _ if self.is_flag() => {
                json_schema!({ "description": doc, "type": ["boolean", "null"] })
            }
            _ => json_schema!({ "description": doc, "type": ["string", "null"] }),
        }
    }
}
