//! `hero script`: the commands about scripts.

use std::process::ExitCode;

use clap::Subcommand;

use super::{Global, published, script_doc};
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
    Redis(script_doc::lua::LuaText),
    Publish(published::PublishScript),
    /// List the published scripts: the latest version of each
    #[command(after_help = "Example:\n  hero script list")]
    List,
    Show(published::ShowScript),
    History(published::ScriptHistory),
    Diff(published::ScriptDiff),
    Rollback(published::ScriptRollback),
    Delete(published::DeleteScripts),
}

impl ScriptCommand {
    pub(super) fn run(&self, global: &Global) -> Result<ExitCode, Error> {
        match self {
            Self::Doc(doc) => doc.run(global)?,
            Self::Check(check) => return check.run(global),
            Self::Repl(repl) => return super::block_on(repl.run(global)),
            Self::Redis(script) => script.run(global)?,
            Self::Publish(publish) => super::block_on(publish.run(global))?,
            Self::List => super::block_on(published::list_scripts(global))?,
            Self::Show(show) => super::block_on(show.run(global))?,
            Self::History(history) => super::block_on(history.run(global))?,
            Self::Diff(diff) => super::block_on(diff.run(global))?,
            Self::Rollback(rollback) => super::block_on(rollback.run(global))?,
            Self::Delete(delete) => super::block_on(delete.run(global))?,
        }
        Ok(ExitCode::SUCCESS)
    }
}
