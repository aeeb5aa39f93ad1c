//! `hero generate`: man pages and completions, from the same definition that parses the command
//! line. Packages call it when they are built; people have no need to, so it is not in the help.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Command, CommandFactory, Subcommand};
use clap_complete::Shell;

use super::Cli;
use crate::error::{Error, Exit};

/// Write man pages or completions into a folder
#[derive(Debug, Subcommand)]
#[command(after_help = "Example:\n  hero generate man target/man")]
pub(super) enum Generate {
    /// Write a man page of every command
    #[command(after_help = "Example:\n  hero generate man target/man")]
    Man {
        /// The folder; made if it is missing
        folder: PathBuf,
    },
    /// Write completions for bash, zsh and fish
    #[command(after_help = "Example:\n  hero generate completions target/completions")]
    Completions {
        /// The folder; made if it is missing
        folder: PathBuf,
    },
}

/// The shells that Debian has a folder of completions for.
const SHELLS: [Shell; 3] = [Shell::Bash, Shell::Zsh, Shell::Fish];

impl Generate {
    pub(super) fn run(&self) -> Result<ExitCode, Error> {
        match self {
            Self::Man { folder } => in_folder(folder, man)?,
            Self::Completions { folder } => in_folder(folder, completions)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn in_folder(folder: &Path, write: fn(&Path) -> std::io::Result<()>) -> Result<(), Error> {
    fs::create_dir_all(folder).and_then(|()| write(folder)).map_err(|error| {
        Error::new(Exit::Unavailable, format!("writing into {}: {error}", folder.display()))
    })
}

fn man(folder: &Path) -> std::io::Result<()> {
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    man_of(&command, folder)
}

/// The page of a command, such as `hero-job-list.1`, and those of the commands below it.
fn man_of(command: &Command, folder: &Path) -> std::io::Result<()> {
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

const SEE_ALSO: &str = ".SH \"SEE ALSO\"\n.BR hero (1),\n.BR hero.toml (5),\n.BR hero (7)\n";

/// A section whose lines stay as they are: command lines must not be filled.
fn as_written(title: &str, text: &str) -> String {
    let mut section = format!(".SH {title}\n.nf\n");
    for line in text.lines() {
        // `\&` keeps a dot or a quote at the start of a line from being a request.
        let line = line.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq");
        let _ = writeln!(section, "\\&{line}");
    }
    section.push_str(".fi\n");
    section
}

fn completions(folder: &Path) -> std::io::Result<()> {
    // Hidden commands would be offered as well.
    let all = Cli::command();
    let shown = all.get_subcommands().filter(|below| !below.is_hide_set()).cloned();
    let mut command =
        Command::default().name("hero").args(all.get_arguments().cloned()).subcommands(shown);
    for shell in SHELLS {
        clap_complete::generate_to(shell, &mut command, "hero", folder)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: fn(&Path) -> std::io::Result<()>) -> (Vec<String>, tempfile::TempDir) {
        let folder = tempfile::tempdir().expect("a folder");
        in_folder(folder.path(), write).expect("written");
        let files = fs::read_dir(folder.path()).expect("a folder");
        let mut names: Vec<String> = files
            .map(|file| file.expect("a file").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        (names, folder)
    }

    #[test]
    fn every_command_has_a_page_but_this_one() {
        let (names, _folder) = written(man);
        for page in ["hero.1", "hero-run.1", "hero-exec.1", "hero-job.1", "hero-job-list.1"] {
            assert!(names.iter().any(|name| name == page), "no {page} in {names:?}");
        }
        assert!(!names.iter().any(|name| name.contains("generate")), "{names:?}");
    }

    #[test]
    fn a_page_says_how_the_command_is_typed() {
        let (_, folder) = written(man);
        let page = fs::read_to_string(folder.path().join("hero-job-list.1")).expect("a page");
        assert!(page.contains("hero job list"), "{page}");
    }

    #[test]
    fn an_example_stays_as_it_is_typed() {
        let section = as_written("EXAMPLES", ".a\n  hero exec -e '1\\n'\n");
        let expected = ".SH EXAMPLES\n.nf\n\\&.a\n\\&  hero exec \\-e \\(aq1\\en\\(aq\n.fi\n";
        assert_eq!(section, expected);
    }

    #[test]
    fn every_shell_of_debian_is_completed() {
        let (names, folder) = written(completions);
        assert_eq!(names, ["_hero", "hero.bash", "hero.fish"]);
        for name in names {
            let text = fs::read_to_string(folder.path().join(&name)).expect("completions");
            assert!(text.contains("submit"), "{name}: {text}");
            assert!(!text.contains("generate"), "{name} offers a hidden command");
        }
    }
}
