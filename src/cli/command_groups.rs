//! The help of `hero` itself: its commands in groups, by what a person wants to do.

use clap::Command;

use super::table::wrapped;

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
}
