//! `hero script`: the commands about scripts.

use std::process::ExitCode;

use clap::Subcommand;

use super::input::NameArguments;
use super::{Global, block_on, published, script_doc};
use crate::error::Error;

/// Publish scripts under a name; look up functions of scripts, check a script, try one at a prompt
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:\n  hero script doc\n  hero script doc file_read\n  \
                        hero script check -t sal deploy.rhai\n  \
                        hero script repl -t osis\n  hero script redis claim\n  \
                        hero script publish deploy deploy.py\n  hero script history deploy")]
pub(super) enum ScriptCommand {
    Doc(script_doc::Doc),
    Check(script_doc::ScriptCheck),
    Repl(script_doc::repl::Repl),
    Redis(script_doc::LuaText),
    Publish(published::PublishScript),
    /// List the published scripts: the latest version of each
    #[command(after_help = "Example:\n  hero script list")]
    List,
    Show(published::ShowScript),
    History(published::ScriptHistory),
    Diff(published::ScriptDiff),
    Rollback(published::ScriptRollback),
    /// Delete published scripts with all their versions; jobs that were submitted keep their texts
    #[command(after_help = "Example:\n  hero script delete deploy")]
    Delete(NameArguments),
}

impl ScriptCommand {
    pub(super) fn run(self, global: &Global) -> Result<ExitCode, Error> {
        match self {
            Self::Doc(doc) => doc.run(global)?,
            Self::Check(check) => return check.run(global),
            Self::Repl(repl) => return block_on(repl.run(global)),
            Self::Redis(script) => script.run(global)?,
            Self::Publish(publish) => block_on(publish.run(global))?,
            Self::List => block_on(published::list_scripts(global))?,
            Self::Show(show) => block_on(show.run(global))?,
            Self::History(history) => block_on(history.run(global))?,
            Self::Diff(diff) => block_on(diff.run(global))?,
            Self::Rollback(rollback) => block_on(rollback.run(global))?,
            Self::Delete(NameArguments { names }) => {
                block_on(published::delete_scripts(&names, global))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}
