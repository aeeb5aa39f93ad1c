//! The files that a claimed job is given, by its submitter and by its prerequisites.

use std::collections::BTreeMap;

use crate::config::{JobConfig, format_size};
use crate::engine::InputFiles;
use crate::proto::job::{
    FileBody, FileName, INPUT_FILES, InvalidJob, Job, JobId, NamedFiles, OUTPUT_FILES,
};
use crate::store::{FileSide, Store, StoreError};

/// Reads the files of a job. `leaving` are the prerequisites that left some.
///
/// # Errors
/// [`StoreError`]; the inner error if files are gone, or too large together.
pub(super) async fn read(
    store: &Store,
    config: &JobConfig,
    job: &Job,
    leaving: impl Iterator<Item = &JobId>,
) -> Result<Result<InputFiles, InvalidJob>, StoreError> {
    let mut files = InputFiles::default();
    let (names, has_stdin) = job.input_files();
    if has_stdin {
        files.stdin = store.files().read_stdin(&job.id).await?;
    }
    let read = store.files().read(&job.id, FileSide::Input, &names).await?;
    files.own = found(&names, read);
    if files.own.len() < names.len() || files.stdin.is_none() && has_stdin {
        return Ok(Err(InvalidJob::new(INPUT_FILES, "are gone: submit the job again")));
    }
    let mut size = 0;
    for id in leaving {
        let names = store.files().output_files(id).await?;
        let read = found(&names, store.files().read(id, FileSide::Output, &names).await?);
        if read.len() < names.len() {
            let reason = format!("of prerequisite {id} are gone: run it again");
            return Ok(Err(InvalidJob::new(OUTPUT_FILES, reason)));
        }
        size += read.values().map(FileBody::redis_bytes).sum::<u64>();
        if size > config.files_size_max {
            let max = format_size(config.files_size_max);
            let reason = format!("have left more files than job.files_size_max allows: {max}");
            return Ok(Err(InvalidJob::new("prerequisites", reason)));
        }
        let folder = folder_of(id, &job.spec.prerequisite_names, &files);
        files.of_prerequisites.insert(folder, read);
    }
    Ok(Ok(files))
}

fn found(names: &[FileName], read: Vec<Option<FileBody>>) -> NamedFiles {
    let read = names.iter().cloned().zip(read);
    read.filter_map(|(name, bytes)| Some((name, bytes?))).collect()
}

/// Returns the folder for the files of a prerequisite: its name, or its id if that is no name of a file or
/// taken.
fn folder_of(id: &JobId, names: &BTreeMap<String, JobId>, files: &InputFiles) -> String {
    let mut own = names.iter().filter(|(_, of)| *of == id).map(|(name, _)| name);
    let legal = own.find_map(|name| name.parse::<FileName>().ok());
    let is_free = |name: &FileName| {
        !files.own.contains_key(name) && !files.of_prerequisites.contains_key(name.as_str())
    };
    legal.filter(is_free).map_or_else(|| id.to_string(), |name| name.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_of_a_prerequisite_has_its_name_if_that_names_a_free_file() {
        let id: JobId = "a1".parse().expect("legal");
        let names = |name: &str| BTreeMap::from([(name.to_owned(), id.clone())]);
        let mut files = InputFiles::default();
        assert_eq!(folder_of(&id, &names("fetch it"), &files), "fetch it");
        for hostile in ["../../etc", ".", "a/b", "-x", ""] {
            assert_eq!(folder_of(&id, &names(hostile), &files), "a1", "{hostile}");
        }
        files.own.insert("fetch".parse().expect("legal"), Vec::new().into());
        assert_eq!(folder_of(&id, &names("fetch"), &files), "a1");
    }
}
