//! The help: of `hero` itself its commands in groups, by what a person wants to do; of commands that submit a job the sections
//! of their options.

use clap::Command;

use super::table::wrapped;
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

const NAME_CHARS: usize = 11;

const GROUPS: [(&str, &[&str]); 5] = [
    ("Run scripts", &["exec", "submit", "run-script", "cron", "hook"]),
    ("Jobs", &["job", "graph", "queue", "dead", "limit"]),
    ("Watch", &["status", "top", "events", "stats", "metrics", "notify", "audit"]),
    (
        "Operate",
        &[
            "run", "dev", "check", "doctor", "explain", "actor", "machine", "token", "key",
            "backup", "restore", "amqp", "migrate", "bench",
        ],
    ),
    ("Scripts and tools", &["script", "osis", "mcp", "completions"]),
];

/// Returns the place and the title of the section of a setting; `None` if it has none.
pub(super) fn section(setting: &Setting) -> Option<(usize, &'static str)> {
    let has = |words: &str| words.split(' ').any(|word| word == setting.word);
    let place = SECTIONS.iter().position(|(_, words)| has(words))?;
    Some((place, SECTIONS[place].0))
}

/// Returns the command with a help that has its commands in groups, in lines of so many columns.
pub(super) fn grouped(command: Command, columns: usize) -> Command {
    let mut list = String::new();
    for (title, names) in GROUPS {
        list.push_str(title);
        list.push_str(":\n");
        for command in names.iter().filter_map(|name| command.find_subcommand(name)) {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            let width = columns.saturating_sub(NAME_CHARS + 4).max(20);
            let mut name = command.get_name();
            for line in wrapped(&about, width, "") {
                list.extend([&*format!("  {name:NAME_CHARS$}  "), line.as_str(), "\n"]);
                name = "";
            }
        }
        list.push('\n');
    }
    command.help_template(format!(
        "{{before-help}}{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{list}Options:\n{{options}}{{after-help}}"
    ))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;
    use crate::proto::job::{Entrance, SETTINGS};

    #[test]
    fn every_command_is_in_one_group() {
        let command = Cli::command();
        let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
        let mut all: Vec<&str> = shown.map(Command::get_name).collect();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        all.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(all, grouped);
        assert!(all.iter().all(|name| name.len() <= NAME_CHARS), "{all:?}");
    }

    #[test]
    fn examples_fit_a_terminal_of_80_columns() {
        fn check(command: &Command) {
            let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let is_long = |line: &&str| line.starts_with("  hero ") && line.chars().count() > 80;
            assert_eq!(text.lines().find(is_long), None, "{}", command.get_name());
            command.get_subcommands().for_each(check);
        }
        check(&Cli::command());
    }

    #[test]
    fn help_has_the_groups_with_the_purpose_of_each_command_within_its_columns() {
        for columns in [80, 100] {
            let help = super::grouped(Cli::command(), columns).term_width(columns).render_help();
            let help = help.to_string();
            assert!(help.contains("\nRun scripts:\n  exec         Run a script"), "{help}");
            assert!(help.contains("\nOptions:\n      --config <FILE>"), "{help}");
            let long: Vec<&str> = help.lines().filter(|line| line.len() > columns).collect();
            assert_eq!(long, [] as [&str; 0]);
        }
    }

    #[test]
    fn every_setting_of_the_command_line_has_a_section() {
        let all = SETTINGS.iter();
        let shown = all.filter(|setting| setting.absent_at(Entrance::CommandLine).is_none());
        let without: Vec<&str> =
            shown.filter(|of| section(of).is_none()).map(|of| of.word).collect();
        assert_eq!(without, [] as [&str; 0], "name them in SECTIONS");
    }
}
