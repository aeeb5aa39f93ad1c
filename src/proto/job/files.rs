//! The files of a job: those that its submitter gives it, and those that it keeps when it ends.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use super::bounds::InvalidJob;
use super::id::ContentHash;
use super::record::Job;
use crate::proto::target::{IllegalName, name};

name!(
    /// A file name valid on every file system, not starting with `-`.
    FileName,
    "file name",
    "1 to 128 bytes without /, \\ and control characters, that begin with neither . nor -",
    |name| {
        (1..=128).contains(&name.len())
            && !matches!(name[0], b'.' | b'-')
            && !name.iter().any(|byte| byte.is_ascii_control() || matches!(byte, b'/' | b'\\'))
    }
);

/// A content that is in the folder of `[artifacts]`, not in Redis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    pub hash: ContentHash,
    pub size: u64,
}

impl Artifact {
    /// Reads what [`Artifact`] writes; `None` for anything else.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let (hash, size) = str::from_utf8(text).ok()?.split_once(' ')?;
        Some(Self { hash: hash.parse().ok()?, size: size.parse().ok()? })
    }
}

impl fmt::Display for Artifact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.hash, self.size)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileBody {
    /// It is kept in Redis.
    Bytes(Vec<u8>),
    /// It is in the folder of `[artifacts]`.
    Artifact(Artifact),
}

impl FileBody {
    pub fn size(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Artifact(artifact) => artifact.size,
        }
    }

    pub fn redis_bytes(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Artifact(_) => 0,
        }
    }
}

impl From<Vec<u8>> for FileBody {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

pub type NamedFiles = BTreeMap<FileName, FileBody>;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobFiles {
    /// The files that the script finds in its folder for them.
    pub inputs: NamedFiles,
    pub stdin: Option<FileBody>,
}

/// The field of the hash that names the files of the submitter, a JSON array.
pub const INPUT_FILES: &str = "input_files";
/// The field of the hash that names the files that the script left, a JSON array.
pub const OUTPUT_FILES: &str = "output_files";
/// The field that says which files its script left that are not kept, and why.
pub const FILES_NOT_KEPT: &str = "files_not_kept";
/// The entry for standard input; no file has this name.
pub const STDIN: &str = "-";

impl JobFiles {
    /// The limit of files that one job is given, and of files that it keeps.
    pub const COUNT_MAX: usize = 64;

    pub fn is_empty(&self) -> bool {
        self.inputs.is_empty() && self.stdin.is_none()
    }

    pub fn contents(&self) -> impl Iterator<Item = &FileBody> {
        self.inputs.values().chain(&self.stdin)
    }

    /// Checks number, and size in Redis.
    pub fn check(&self, bytes_max: u64) -> Result<(), InvalidJob> {
        let size: u64 = self.contents().map(FileBody::redis_bytes).sum();
        let reason = if self.inputs.len() > Self::COUNT_MAX {
            format!("are more than {} files", Self::COUNT_MAX)
        } else if size > bytes_max {
            format!("have {size} bytes, more than the {bytes_max} of job.files_size_max")
        } else {
            return Ok(());
        };
        Err(InvalidJob::new(INPUT_FILES, reason))
    }

    pub fn listed(&self) -> String {
        let stdin = self.stdin.iter().map(|_| STDIN);
        let names: Vec<&str> = self.inputs.keys().map(FileName::as_str).chain(stdin).collect();
        serde_json::json!(names).to_string()
    }
}

impl Job {
    /// Returns the names of the submitter's files, and whether one is standard input.
    pub fn input_files(&self) -> (Vec<FileName>, bool) {
        let text = self.extra.get(INPUT_FILES).map_or("", String::as_str);
        (file_names(text), text.contains("\"-\""))
    }

    pub fn output_files(&self) -> Vec<FileName> {
        file_names(self.extra.get(OUTPUT_FILES).map_or("", String::as_str))
    }
}

/// Reads the names of a field; illegal ones are left out.
pub fn file_names(text: &str) -> Vec<FileName> {
    let names: Vec<String> = serde_json::from_str(text).unwrap_or_default();
    names.iter().filter_map(|name| name.parse().ok()).take(JobFiles::COUNT_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_name_names_one_file_of_one_folder() {
        for good in ["a", "report.csv", "Überblick 2.pdf", "a-b_c+d@e,f"] {
            assert!(good.parse::<FileName>().is_ok(), "{good}");
        }
        let long = "x".repeat(129);
        for bad in ["", ".", "..", ".bashrc", "-rf", "a/b", "/a", "a\\b", "a\nb", "a\0", &long] {
            assert!(bad.parse::<FileName>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn artifact_is_read_back_and_a_hostile_one_is_not() {
        let hash = "0123456789abcdef".repeat(4);
        let text = format!("{hash} 7");
        let artifact = Artifact::parse(text.as_bytes()).expect("legal");
        assert_eq!((artifact.to_string(), artifact.size), (text, 7));
        for bad in ["", " 7", "../../../etc/passwd 7", &hash, &format!("{hash}/ 7")] {
            assert_eq!(Artifact::parse(bad.as_bytes()), None, "{bad}");
        }
        let upper = format!("{} 7", hash.to_uppercase());
        assert_eq!(Artifact::parse(upper.as_bytes()), None);
        assert_eq!(Artifact::parse(format!("{hash} -7").as_bytes()), None);
    }

    #[test]
    fn files_are_bounded_in_number_and_size_and_listed_in_the_hash() {
        let file =
            |number: usize| (format!("f{number}").parse().expect("legal"), vec![0; 10].into());
        let of = |count| JobFiles { inputs: (0..count).map(file).collect(), stdin: None };
        assert_eq!(of(64).check(640), Ok(()));
        assert!(of(64).check(639).is_err() && of(65).check(1000).is_err());
        let files = JobFiles { stdin: Some(vec![0; 10].into()), ..of(1) };
        assert!(files.check(19).is_err() && !files.is_empty() && JobFiles::default().is_empty());
        let mut job = Job::new("j".parse().expect("legal"), "1");
        job.extra.insert(INPUT_FILES.to_owned(), files.listed());
        assert_eq!(job.input_files(), (vec!["f0".parse().expect("legal")], true));
        assert_eq!(file_names(r#"["a", "../b", "-"]"#).len(), 1);
        assert!(file_names("[[").is_empty());
    }
}
