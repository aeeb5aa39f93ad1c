//! A script as it is started.

use std::ffi::OsString;
use std::fs::File;
use std::path::PathBuf;

use super::build_cache::CacheEntry;
use super::scratch::Scratch;

#[derive(Debug)]
pub(in crate::process) struct Prepared {
    pub(in crate::process) program: PathBuf,
    pub(in crate::process) args: Vec<OsString>,
    pub(in crate::process) env: Vec<(OsString, OsString)>,
    /// The options of the interpreter that the script asks for, among `args`.
    pub(in crate::process) options: Vec<OsString>,
    /// The arguments that the job gives, the last of `args`.
    pub(in crate::process) given_args: Vec<String>,
    pub(in crate::process) scratch: Scratch,
    pub(in crate::process) home: PathBuf,
    pub(in crate::process) modules: PathBuf,
    pub(in crate::process) script: PathBuf,
    pub(in crate::process) stdin: Option<File>,
    /// The virtual environment with the script's packages, in one of the entries.
    pub(in crate::process) packages: Option<PathBuf>,
    /// The folder of the compiler, if the program is one: `v run`.
    pub(in crate::process) compiler: Option<PathBuf>,
    /// The cache entries that the script uses; they are kept until it has ended.
    pub(in crate::process) entries: Vec<CacheEntry>,
}
