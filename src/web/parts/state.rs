//! The state of a job as people see it: a glyph and a word, both in the colour of the state.

use maud::{Markup, html};

use super::super::web_error::capitalized;
use crate::proto::job::JobStatus;
use crate::proto::word_table::words;

words! {
    /// The state of a job as people see it: held and cancelled are states of their own here. Its word is a class of the
    /// style sheet.
    ShownState;
    Created = "created",
    Waiting = "waiting",
    Scheduled = "scheduled",
    Queued = "queued",
    Held = "held",
    Running = "running",
    Finished = "finished",
    Error = "error",
    Cancelled = "cancelled",
}

impl ShownState {
    /// Returns the state that people see of a job. `is_held` is true if a limit holds it,
    /// `is_cancelled` if it was stopped or replaced.
    pub(in crate::web) fn of(status: JobStatus, is_held: bool, is_cancelled: bool) -> Self {
        match status {
            JobStatus::Created => Self::Created,
            JobStatus::WaitingForPrerequisites => Self::Waiting,
            JobStatus::Scheduled => Self::Scheduled,
            JobStatus::Dispatched if is_held => Self::Held,
            JobStatus::Dispatched => Self::Queued,
            JobStatus::Started => Self::Running,
            JobStatus::Finished => Self::Finished,
            JobStatus::Error if is_cancelled => Self::Cancelled,
            JobStatus::Error => Self::Error,
        }
    }

    /// Returns the state of a status that the API names, of a job of which nothing else is known.
    pub(in crate::web) fn of_status(status: Option<&str>) -> Option<Self> {
        Some(Self::of(status?.parse().ok()?, false, false))
    }

    /// Returns the value of the filter of states that finds the jobs in it.
    pub(in crate::web) fn asked(self) -> &'static str {
        match self {
            Self::Waiting => "waiting_for_prerequisites",
            Self::Error => "failed",
            Self::Cancelled => "cancelled,replaced",
            other => other.as_str(),
        }
    }

    /// Returns the state whose jobs a value of the filter of states finds.
    pub(in crate::web) fn asked_by(value: &str) -> Option<Self> {
        let value = if value.eq_ignore_ascii_case("started") { "running" } else { value };
        Self::ALL.into_iter().find(|state| state.asked().eq_ignore_ascii_case(value))
    }

    pub(in crate::web) fn word(self) -> String {
        capitalized(self.as_str())
    }

    /// Returns the state that the hash of the job stores.
    pub(in crate::web) fn stored(self) -> JobStatus {
        match self {
            Self::Created => JobStatus::Created,
            Self::Waiting => JobStatus::WaitingForPrerequisites,
            Self::Scheduled => JobStatus::Scheduled,
            Self::Queued | Self::Held => JobStatus::Dispatched,
            Self::Running => JobStatus::Started,
            Self::Finished => JobStatus::Finished,
            Self::Error | Self::Cancelled => JobStatus::Error,
        }
    }

    /// Returns the glyph and the word in the colour of the state, with a text behind it.
    pub(in crate::web) fn shown_with(self, class: &str, behind: &str) -> Markup {
        html! {
            span class={ (class) " " (self) } title=(self.stored()) {
                (glyph(self.as_str())) (self.word()) (behind)
            }
        }
    }

    pub(in crate::web) fn shown(self) -> Markup {
        self.shown_with("st", "")
    }

    /// Returns the same with a background, for the head of a page.
    pub(in crate::web) fn pill(self) -> Markup {
        self.shown_with("st pill", "")
    }
}

/// Returns a glyph of the sprite: of a state, `warn` or `pause`.
pub(in crate::web) fn glyph(name: &str) -> Markup {
    html! { svg aria-hidden="true" { use href={ "#s-" (name) } {} } }
}

/// Returns a word with a glyph in a colour: of a state, `warn`, or `still` for none.
pub(in crate::web) fn sign(class: &str, name: &str, word: &str) -> Markup {
    html! { span class={ "st " (class) } { (glyph(name)) (word) } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn held_and_cancelled_jobs_have_states_of_their_own() {
        let of = ShownState::of;
        assert_eq!(of(JobStatus::Dispatched, true, false), ShownState::Held);
        assert_eq!(of(JobStatus::Error, false, true), ShownState::Cancelled);
        for (word, state) in [
            ("Failed", Some(ShownState::Error)),
            ("started", Some(ShownState::Running)),
            ("waiting", None),
            ("error", None),
            ("", None),
        ] {
            assert_eq!(ShownState::asked_by(word), state, "{word}");
        }
    }

    #[test]
    fn title_has_the_stored_state() {
        let shown = ShownState::Queued.shown().into_string();
        assert!(shown.contains("title=\"dispatched\"") && shown.contains("Queued"), "{shown}");
    }
}
