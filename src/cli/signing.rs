//! `--sign`: the key that signs the jobs which a command submits.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;

use super::input::read_bounded;
use super::sections::WHAT;
use crate::client::{Client, Signer};
use crate::config::parse_duration;
use crate::error::{Error, Exit, reason};
use crate::proto::job::{KeyName, SigningKey};
use crate::proto::target::IllegalName;

/// The largest file of a key.
const FILE_BYTES_MAX: u64 = 16 << 10;
/// The permissions of everybody but the owner.
const OF_OTHERS: u32 = 0o077;

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
    /// Returns whether a key is given.
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
pub(super) fn read_key(file: &Path) -> Result<SigningKey, Error> {
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
