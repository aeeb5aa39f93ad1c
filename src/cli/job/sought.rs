//! The words of the filters of jobs, for a list without a job.

use super::filter::JobFilters;
use crate::cli::sought::Sought;

impl JobFilters {
    /// Returns the sentence that says that no job fits.
    pub(super) fn sought(&self) -> Sought {
        let states = Some(self.status.join(" or ")).filter(|states| !states.is_empty());
        let mut sought = Sought::new(if self.dead { "dead letter" } else { "job" })
            .by("in state", states)
            .by("of type", self.script_type.as_ref())
            .by("of queue", self.queue.as_ref())
            .by("of caller", self.caller.as_ref())
            .quoting("with a name that contains", self.name.as_ref());
        for tag in &self.tags {
            sought = sought.by("with tag", Some(tag));
        }
        let cancelled = self.cancelled.then_some("stopped or replaced");
        sought
            .quoting("with an error that contains", self.error.as_ref())
            .quoting("with an error of the kind", self.kind.as_ref())
            .by("that failed because of", self.failed_because.as_ref())
            .by("that was", cancelled)
            .by("that is", self.late.then_some("late"))
            .by("that is", self.held.then_some("held by a limit"))
            .quoting("with a text that contains", self.text.as_ref())
            .by("on actor", self.actor.as_ref())
            .by("on machine", self.host.as_ref())
            .by("that the script submitted of job", self.parent.as_ref())
            .by("submitted since", self.since.as_ref())
            .by(if self.since.is_some() { "until" } else { "submitted until" }, self.until.as_ref())
            .by("ended since", self.ended_since.as_ref())
            .by(
                if self.ended_since.is_some() { "until" } else { "ended until" },
                self.ended_until.as_ref(),
            )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentence_names_each_filter() {
        let some = |text: &str| Some(text.to_owned());
        let filters = JobFilters {
            status: vec!["failed".to_owned(), "cancelled".to_owned()],
            script_type: some("python"),
            tags: vec!["nightly".to_owned()],
            error: some("no space"),
            since: some("yesterday 18:00"),
            until: some("1h"),
            host: some("web-1"),
            late: true,
            ..JobFilters::default()
        };
        assert_eq!(
            filters.sought().text(),
            "no job in state failed or cancelled of type python with tag nightly with an error that contains \
             `no space` that is late on machine web-1 submitted since yesterday 18:00 until 1h"
        );
        assert_eq!(JobFilters::default().sought().text(), "no job");
    }
}
