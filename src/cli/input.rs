//! Reads what commands are given: names, and files within their bounds.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::str::FromStr;

use clap::Args;

use crate::config::format_size;
pub(super) use crate::config::unreadable;
use crate::error::{Error, Exit};
use crate::proto::selector::Selector;
use crate::proto::text::shown;

/// The names of what a command changes.
#[derive(Debug, Args)]
pub(super) struct NameArguments {
    /// The names
    #[arg(required = true, value_name = "NAME")]
    pub(super) names: Vec<String>,
}

/// Parses a name. An illegal one is bad data, not wrong usage.
pub(super) fn parsed<T: FromStr<Err: Display>>(text: &str) -> Result<T, Error> {
    text.parse().map_err(bad)
}

/// Reads an expression as `--where` of a job does.
pub(super) fn selector(text: &str) -> Result<Selector, Error> {
    text.parse::<Selector>()
        .map_err(|error| bad(format!("--where: `{}` is not an expression: {error}", shown(text))))
}

/// Returns the error of bad data, in its own words.
pub(super) fn bad(error: impl Display) -> Error {
    Error::new(Exit::Data, error.to_string())
}

/// Returns a word as a shell takes it, in quotes if it needs them.
pub(super) fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"%+,-./:@_".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Opens the file, or standard input for `-`.
pub(super) fn open(path: &Path) -> Result<Box<dyn BufRead>, Error> {
    if path == Path::new("-") {
        return Ok(Box::new(BufReader::new(io::stdin())));
    }
    let file = File::open(path).map_err(|error| unreadable(path, &error))?;
    Ok(Box::new(BufReader::new(file)))
}

/// Reads a file as text, or standard input for `-`. A larger one is rejected before it is read.
pub(super) fn read_bounded(path: &Path, bytes_max: u64) -> Result<String, Error> {
    let too_large =
        || bad(format!("{}: larger than the limit of {}", path.display(), format_size(bytes_max)));
    if std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() > bytes_max) {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    let read = open(path)?.take(bytes_max + 1).read_to_end(&mut bytes);
    if read.map_err(|error| unreadable(path, &error))? as u64 > bytes_max {
        return Err(too_large());
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        bad(format!("{}: not UTF-8 text: byte {at} is not", path.display()))
    })
}
