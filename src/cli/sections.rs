//! The sections of the help of commands that submit a job.

use crate::proto::job::Setting;

pub(super) const WHAT: &str = "What";
pub(super) const WHEN: &str = "When";
pub(super) const WHERE: &str = "Where";
pub(super) const LIMITS: &str = "Limits";
pub(super) const FILES: &str = "Files and output";
pub(super) const MANY: &str = "Many jobs";

const SECTIONS: [(&str, &str); 5] = [
    (WHAT, "uses script_digest type extension name id tag caller context env secret"),
    (
        WHEN,
        "at after after_any priority retries backoff retry_if discard_if expires expect_within unique_key unique_for \
         unique_by on_duplicate debounce debounce_max",
    ),
    (WHERE, "group instance where fallback concurrent shard_key"),
    (LIMITS, "timeout slow_after memory job_memory cpu_time network limit_key"),
    (FILES, "log_path output_overflow retention durable reply reply_format notify traceparent"),
];

/// Returns the section of a setting; `None` if it has none.
pub(super) fn section(setting: &Setting) -> Option<&'static str> {
    let has = |words: &str| words.split(' ').any(|word| word == setting.word);
    SECTIONS.iter().find(|(_, words)| has(words)).map(|(title, _)| *title)
}

pub(super) fn place(setting: &Setting) -> Option<usize> {
    let title = section(setting)?;
    SECTIONS.iter().position(|(of, _)| *of == title)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::job::{Entrance, SETTINGS};

    #[test]
    fn every_setting_of_the_command_line_has_a_section() {
        let all = SETTINGS.iter();
        let shown = all.filter(|setting| setting.absent_at(Entrance::CommandLine).is_none());
        let without: Vec<&str> =
            shown.filter(|of| section(of).is_none()).map(|of| of.word).collect();
        assert_eq!(without, [] as [&str; 0], "name them in SECTIONS");
    }
}
