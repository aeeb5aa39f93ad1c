//! Man pages and completions of the commands, from the definition that parses the command line.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

use clap::{Command, CommandFactory};
use clap_complete::Shell;
use hero::cli::Cli;

use crate::manual::escaped;

/// The shells that Debian has a folder of completions for.
const SHELLS: [Shell; 3] = [Shell::Bash, Shell::Zsh, Shell::Fish];

/// Writes a man page of every command into a folder.
pub(crate) fn man(folder: &Path) -> Result<(), Box<dyn Error>> {
    in_folder(folder, |folder| {
        let mut command = Cli::command().disable_help_subcommand(true);
        command.build();
        man_of(&command, folder)
    })
}

/// Writes completions for every shell into a folder.
pub(crate) fn completions(folder: &Path) -> Result<(), Box<dyn Error>> {
    in_folder(folder, |folder| {
        let mut command = Cli::command();
        for shell in SHELLS {
            clap_complete::generate_to(shell, &mut command, "hero", folder)?;
        }
        Ok(())
    })
}

fn in_folder(
    folder: &Path,
    write: impl FnOnce(&Path) -> io::Result<()>,
) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(folder)
        .and_then(|()| write(folder))
        .map_err(|error| format!("cannot write into {}: {error}", folder.display()).into())
}

/// Writes the page of a command, such as `hero-job-list.1`, and the pages of its subcommands.
fn man_of(command: &Command, folder: &Path) -> io::Result<()> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    let page = clap_mangen::Man::new(command.clone())
        .title(name.to_uppercase())
        .source(concat!("Hero ", env!("CARGO_PKG_VERSION")))
        .manual("Hero");
    let mut text = Vec::new();
    page.render_title(&mut text)?;
    page.render_name_section(&mut text)?;
    page.render_synopsis_section(&mut text)?;
    page.render_description_section(&mut text)?;
    page.render_options_section(&mut text)?;
    if command.get_subcommands().any(|below| !below.is_hide_set()) {
        page.render_subcommands_section(&mut text)?;
    }
    if let Some(help) = command.get_after_help() {
        text.extend_from_slice(as_written("EXAMPLES", &help.to_string()).as_bytes());
    }
    text.extend_from_slice(SEE_ALSO.as_bytes());
    fs::write(folder.join(format!("{name}.1")), text)?;
    command
        .get_subcommands()
        .filter(|below| !below.is_hide_set())
        .try_for_each(|below| man_of(below, folder))
}

const SEE_ALSO: &str = ".SH \"SEE ALSO\"\n.BR hero (1),\n.BR hero.toml (5),\n.BR hero (7),\n.BR hero\\-operations (7)\n";

/// Returns a section with its lines kept as they are: command lines must not be filled.
fn as_written(title: &str, text: &str) -> String {
    let mut section = format!(".SH {title}\n.nf\n");
    for line in text.lines() {
        // `\&` keeps a dot or a quote at the start of a line from being a request.
        let _ = writeln!(section, "\\&{}", escaped(line));
    }
    section.push_str(".fi\n");
    section
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let files = fs::read_dir(folder).expect("a folder");
        let mut names: Vec<String> = files
            .map(|file| file.expect("a file").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn every_command_has_a_page_with_its_usage() {
        let folder = tempfile::tempdir().expect("a folder");
        man(folder.path()).expect("pages");
        let names = names(folder.path());
        for page in ["hero.1", "hero-run.1", "hero-exec.1", "hero-job.1", "hero-job-list.1"] {
            assert!(names.iter().any(|name| name == page), "no {page} in {names:?}");
        }
        let page = fs::read_to_string(folder.path().join("hero-job-list.1")).expect("a page");
        assert!(page.contains("hero job list"), "{page}");
    }

    #[test]
    fn examples_are_kept_as_typed() {
        let section = as_written("EXAMPLES", ".a\n  hero exec -e '1\\n'\n");
        let expected = ".SH EXAMPLES\n.nf\n\\&.a\n\\&  hero exec \\-e \\(aq1\\en\\(aq\n.fi\n";
        assert_eq!(section, expected);
    }

    #[test]
    fn every_shell_has_completions() {
        let folder = tempfile::tempdir().expect("a folder");
        completions(folder.path()).expect("completions");
        let names = names(folder.path());
        assert_eq!(names, ["_hero", "hero.bash", "hero.fish"]);
        for name in names {
            let text = fs::read_to_string(folder.path().join(&name)).expect("completions");
            assert!(text.contains("submit"), "{name}: {text}");
        }
    }
}
