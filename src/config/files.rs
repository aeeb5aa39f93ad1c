//! Reads the files of the configuration, within bounds.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::config_error::{ConfigError, FilePlace, NO_PERMISSION};
use super::source::place;
use crate::proto::units::format_size;

pub const DEFAULT_FILE: &str = "/etc/hero/hero.toml";

const FILE_SIZE_MAX: u64 = 1 << 20;
const DROP_INS_MAX: usize = 1000;

/// Reads the texts to merge, each over the ones before it: the file itself, which may be missing
/// if `may_be_missing`, then its drop-ins, by name.
pub(super) fn read_all(
    file: &Path,
    may_be_missing: bool,
) -> Result<Vec<(PathBuf, String)>, ConfigError> {
    let mut texts = Vec::new();
    match read_bounded(file, FILE_SIZE_MAX) {
        Ok(bytes) => texts.push((file.to_owned(), text(file, bytes)?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound && may_be_missing => {}
        Err(error) => return Err(unreadable(WHAT, file, &error)),
    }
    for file in drop_ins(file)? {
        let text = read_text(&file)?;
        texts.push((file, text));
    }
    Ok(texts)
}

/// Returns when a file or one of its drop-ins was changed last, as far as they can be read.
pub fn changed_at(file: &Path) -> Option<Timestamp> {
    let files = [file.to_owned()].into_iter().chain(drop_ins(file).unwrap_or_default());
    let times = files.filter_map(|file| fs::metadata(file).ok()?.modified().ok()?.try_into().ok());
    times.max()
}

pub(super) fn read_text(file: &Path) -> Result<String, ConfigError> {
    let bytes =
        read_bounded(file, FILE_SIZE_MAX).map_err(|error| unreadable(WHAT, file, &error))?;
    text(file, bytes)
}

pub(super) fn read_bounded(file: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let opened = File::open(file)?;
    // Room for all of it: a vector that grows would leave parts of a secret in memory.
    let room = opened.metadata()?.len().min(bytes_max) + 1;
    let mut content = Vec::with_capacity(usize::try_from(room).unwrap_or_default());
    let read = opened.take(bytes_max + 1).read_to_end(&mut content)?;
    if read as u64 > bytes_max {
        let reason = format!("larger than the limit of {}", format_size(bytes_max));
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, reason));
    }
    Ok(content)
}

/// Returns the reason why a file cannot be read, in lower case.
pub(super) fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file".to_owned(),
        io::ErrorKind::PermissionDenied => NO_PERMISSION.to_owned(),
        io::ErrorKind::IsADirectory => "is a folder".to_owned(),
        _ => error.to_string(),
    }
}

pub(super) fn drop_ins(file: &Path) -> Result<Vec<PathBuf>, ConfigError> {
    let files = drop_in_folders(file).into_iter().map(|folder| toml_files(&folder));
    Ok(files.collect::<Result<Vec<_>, _>>()?.concat())
}

/// Returns the folders of the drop-ins of a file, the first to be read first: `FILE.d`, and of a link before it
/// the folder of the file that it leads to, so that the drop-ins of the machine are in force under each of its names.
pub(super) fn drop_in_folders(file: &Path) -> Vec<PathBuf> {
    let of = |file: &Path| {
        let mut folder = file.as_os_str().to_owned();
        folder.push(".d");
        PathBuf::from(folder)
    };
    let own = of(file);
    let real = fs::canonicalize(&own).ok();
    let target = fs::canonicalize(file).ok().map(|target| of(&target));
    target.filter(|folder| Some(folder) != real.as_ref()).into_iter().chain([own]).collect()
}

/// Lists the files `*.toml` of a folder that are not hidden, by name. A missing folder has none.
pub(super) fn toml_files(folder: &Path) -> Result<Vec<PathBuf>, ConfigError> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(unreadable(WHAT, folder, &error)),
    };
    let mut files = Vec::new();
    for entry in entries {
        let name = entry.map_err(|error| unreadable(WHAT, folder, &error))?.file_name();
        let bytes = name.as_encoded_bytes();
        if bytes.ends_with(b".toml") && !bytes.starts_with(b".") {
            files.push(folder.join(name));
        }
        if files.len() > DROP_INS_MAX {
            let reason = format!("more than {DROP_INS_MAX} files");
            return Err(ConfigError::Unreadable { what: WHAT, file: folder.to_owned(), reason });
        }
    }
    files.sort();
    Ok(files)
}

pub(super) struct TableKind {
    /// The first part of the names of its tables.
    pub(super) word: &'static str,
    pub(super) most: usize,
    /// The word for many of them.
    pub(super) many: &'static str,
}

/// Reads the tables of the files of a folder. A table that has a mistake, or the name of an earlier one, is a
/// problem. `of` tells the name of a table, and its file.
pub(super) fn read_folder<K: Ord + Display, V>(
    folder: &Path,
    TableKind { word, most, many }: TableKind,
    read: impl Fn(&Path, &str) -> Result<Vec<Result<V, ConfigError>>, ConfigError>,
    of: impl Fn(&V) -> (K, PathBuf),
) -> (Vec<V>, Vec<ConfigError>) {
    let (mut all, mut problems) = (BTreeMap::new(), Vec::new());
    let files = toml_files(folder).unwrap_or_else(|problem| {
        problems.push(problem);
        Vec::new()
    });
    for file in files {
        let tables = read_text(&file).and_then(|text| read(&file, &text));
        for table in tables.unwrap_or_else(|problem| vec![Err(problem)]) {
            let added = table.and_then(|table| {
                let (name, file) = of(&table);
                let message = match all.get(&name).map(&of) {
                    Some((_, other)) => format!("{word}.{name} is in {} already", other.display()),
                    None if all.len() >= most => format!("{word}.{name}: more than {most} {many}"),
                    None => {
                        all.insert(name, table);
                        return Ok(());
                    }
                };
                Err(ConfigError::Wrong { place: FilePlace { file, position: None }, message })
            });
            problems.extend(added.err());
        }
    }
    (all.into_values().collect(), problems)
}

fn text(file: &Path, bytes: Vec<u8>) -> Result<String, ConfigError> {
    String::from_utf8(bytes).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let start = String::from_utf8_lossy(&error.as_bytes()[..good]).into_owned();
        ConfigError::Wrong {
            place: place(file, &start, Some(good)),
            message: "not UTF-8 text".to_owned(),
        }
    })
}

const WHAT: &str = "the configuration";

pub(super) fn unreadable(what: &'static str, file: &Path, error: &io::Error) -> ConfigError {
    ConfigError::Unreadable { what, file: file.to_owned(), reason: reason(error) }
}
