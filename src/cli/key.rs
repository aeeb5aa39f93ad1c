//! `hero key …`: makes and shows the keys that sign jobs.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::json;

use super::Global;
use super::input::parsed;
use super::signing::read_key;
use crate::error::{Error, Exit, reason};
use crate::proto::job::{KeyName, SigningKey};

/// Make the keys that sign jobs; show their public half
#[derive(Debug, Subcommand)]
#[command(after_help = "Example:\n  hero key new ops\n\n\
                        An actor whose configuration has `require_signature = [\"ops\"]` for a script type runs only \
                        the jobs of that type that this key has signed: hero submit --sign ops.key. So nobody who can \
                        write to Redis decides what runs.")]
pub(super) enum KeyCommand {
    New(NewKey),
    Show(ShownKey),
}

/// Make a key: write the private half to a file, and print the public half for hero.toml
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hero key new ops\n  hero key new ops --file ~/.config/hero/ops.key"
)]
pub(super) struct NewKey {
    /// The name of the key: letters, digits, _, - and .
    name: String,
    /// The file, NAME.key; by default in this folder. No file is replaced
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

/// Print the public half of a key, as lines for hero.toml
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hero key show ops.key")]
pub(super) struct ShownKey {
    /// The file of the private key
    file: PathBuf,
}

impl KeyCommand {
    pub(super) fn run(&self, global: &Global) -> Result<(), Error> {
        match self {
            Self::New(new) => {
                let name: KeyName = parsed(&new.name)?;
                let file = new.file.clone().unwrap_or_else(|| format!("{name}.key").into());
                if file.file_stem().is_none_or(|stem| stem != name.as_str()) {
                    let file = file.display();
                    let message =
                        format!("{file}: the file must be named {name}.key: it names the key");
                    return Err(Error::new(Exit::Data, message));
                }
                write_new(&file)?;
                show(&file, global)?;
                let (lines, file) = ("add these lines to hero.toml of the actors", file.display());
                global.hint(&format!("{lines}; {file} is the secret half"));
            }
            Self::Show(ShownKey { file }) => show(file, global)?,
        }
        Ok(())
    }
}

/// Writes the private half of a new key to a new file, which nobody else may read.
fn write_new(file: &Path) -> Result<(), Error> {
    let wrong = |error: &std::io::Error| {
        let exit = match error.kind() {
            ErrorKind::AlreadyExists => Exit::Data,
            _ => Exit::Output,
        };
        Error::new(exit, format!("cannot write the key {}: {}", file.display(), reason(error)))
    };
    let pem = SigningKey::new_pem().map_err(|why| Error::new(Exit::Unavailable, why))?;
    let new = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
    let mut new = new.map_err(|error| wrong(&error))?;
    new.write_all(pem.as_bytes()).and_then(|()| new.sync_all()).map_err(|error| wrong(&error))
}

fn show(file: &Path, global: &Global) -> Result<(), Error> {
    let key = read_key(file)?;
    let public = key.public().map_err(|why| Error::new(Exit::Data, why))?;
    let name = key.name();
    global.print(
        || json!({ "name": name, "public_key": public }),
        || format!("[keys.\"{name}\"]\npublic_key = \"{public}\"\n"),
    )
}
