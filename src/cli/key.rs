//! `hero key …`: makes and shows the keys that sign jobs; `--sign`, the key that signs the jobs which a command submits.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::json;

use super::Global;
use super::help::WHAT;
use super::input::{bad, parsed, read_bounded};
use crate::client::{Client, Signer};
use crate::config::parse_duration;
use crate::error::{Error, Exit, reason};
use crate::proto::job::{KeyName, SigningKey};
use crate::proto::target::IllegalName;

const FILE_BYTES_MAX: u64 = 16 << 10;
/// The permissions of everybody but the owner.
const OF_OTHERS: u32 = 0o077;

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
                    return Err(bad(format!(
                        "{file}: the file must be named {name}.key: it names the key"
                    )));
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
    let public = key.public().map_err(bad)?;
    let name = key.name();
    global.print(
        || json!({ "name": name, "public_key": public }),
        || format!("[keys.\"{name}\"]\npublic_key = \"{public}\"\n"),
    )
}

/// The key of a submission.
#[derive(Debug, Clone, Args)]
pub(super) struct Signing {
    /// Sign the jobs with the private key of this file, NAME.key, as `hero key new NAME` makes it
    #[arg(long, value_name = "FILE", help_heading = WHAT)]
    sign: Option<PathBuf>,
    /// The time within which the signed jobs may start, retries included
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "1d")]
    #[arg(requires = "sign", help_heading = WHAT)]
    signed_for: Duration,
}

impl Signing {
    pub(super) fn is_given(&self) -> bool {
        self.sign.is_some()
    }

    /// Returns a client that signs what it submits, if a key is given.
    pub(super) fn client(&self, client: Client) -> Result<Client, Error> {
        match &self.sign {
            Some(file) => Ok(client.signing(Signer::new(read_key(file)?, self.signed_for))),
            None => Ok(client),
        }
    }
}

/// Reads the file of a private key, whose name is the name of the key.
fn read_key(file: &Path) -> Result<SigningKey, Error> {
    let wrong = |exit, why: &dyn std::fmt::Display| {
        Error::new(exit, format!("cannot use the key {}: {why}", file.display()))
    };
    let about = fs::metadata(file).map_err(|error| wrong(Exit::NotFound, &reason(&error)))?;
    if about.permissions().mode() & OF_OTHERS != 0 {
        let why = "others may read it; make another key, or chmod 600 if nobody else has";
        return Err(wrong(Exit::NotPermitted, &why));
    }
    let stem = file.file_stem().map(|stem| stem.to_string_lossy()).unwrap_or_default();
    let name: KeyName = stem.parse().map_err(|error: IllegalName| wrong(Exit::Data, &error))?;
    let text = read_bounded(file, FILE_BYTES_MAX)?;
    SigningKey::of_pem(name, &text).map_err(|why| wrong(Exit::Data, &why))
}
