//! `hero script redis`: the server-side scripts as Redis gets them.

use std::fmt::Write as _;

use clap::Args;
use serde_json::json;

use super::super::Global;
use super::super::table::TextTable;
use crate::error::{Error, Exit};
use crate::proto::keys::Keys;
use crate::store::{LuaSource, lua_sources};

/// Print a Lua script as Redis gets it, with line numbers; without NAME, list the scripts
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hero script redis\n  hero script redis claim\n\n\
                        Redis numbers the lines of the whole text. Errors of Hero name the file \
                        and its line\ninstead. A line `-- file: …` begins each file.")]
pub(in crate::cli) struct LuaText {
    /// The name of the script
    name: Option<String>,
}

impl LuaText {
    pub(in crate::cli) fn run(&self, global: &Global) -> Result<(), Error> {
        let config = global.config()?;
        let keys = Keys::new(config.redis.namespace.clone())
            .with_events(config.job.events)
            .with_replies(config.job.reply_format)
            .beside(config.supervisor.served_legacy_queues())
            .map_err(|name| Error::new(Exit::Config, format!("illegal legacy queue `{name}`")))?;
        let scripts = lua_sources(&keys);
        let Some(name) = &self.name else {
            return list(&scripts, global);
        };
        let script = scripts.iter().find(|script| script.name == name).ok_or_else(|| {
            let message = format!("no Lua script `{name}`; `hero script redis` lists them");
            Error::new(Exit::NotFound, message)
        })?;
        let document =
            || json!({ "name": script.name, "about": script.about, "text": script.text });
        global.print(document, || numbered(&script.text))
    }
}

fn list(scripts: &[LuaSource], global: &Global) -> Result<(), Error> {
    let row = |script: &LuaSource| json!({ "name": script.name, "about": script.about });
    let table = || {
        TextTable::of(scripts)
            .column("SCRIPT", &|of| of.name.to_owned())
            .column("WHAT IT DOES", &|of| of.about.clone())
    };
    global.print(|| scripts.iter().map(row).collect(), || table().render())
}

fn numbered(text: &str) -> String {
    let mut out = String::new();
    for (number, line) in (1..).zip(text.lines()) {
        let _ = writeln!(out, "{number:>4}  {line}");
    }
    out
}
