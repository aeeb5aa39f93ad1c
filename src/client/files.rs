//! The files of jobs: given at the submission, kept at the end.

use std::collections::BTreeMap;
use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::named_scripts::{NameOf, refused};
use super::{Client, ClientError, FileClient, Result, Submission};
use crate::artifacts::{ArtifactError, ContentReader, Contents};
use crate::proto::job::{
    FileBody, FileName, INPUT_FILES, InvalidJob, Job, JobFiles, JobId, OUTPUT_FILES, STDIN,
    file_digests,
};
use crate::store::FileSide;

/// The files of some of many jobs, by the places of these.
pub type FilesByPlace = BTreeMap<usize, JobFiles>;

/// One file of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JobFile {
    /// Its name; `-` for standard input.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
    /// Its side: `input`, `output` or `stdin`.
    pub kind: FileSide,
}

impl Client {
    /// Submits a job with files, as [`Client::submit`] does without. They are stored before any actor
    /// can claim it.
    ///
    /// # Errors
    /// As [`Client::submit`]; [`ClientError::Invalid`] if the files are too many or too large.
    pub async fn submit_with_files(&self, job: Job, files: &JobFiles) -> Result<JobId> {
        self.store_with_files(job, files, Submission::Start).await
    }

    /// Stores a job with files without starting it, as [`Client::create_job`] does without.
    pub async fn create_with_files(&self, job: Job, files: &JobFiles) -> Result<JobId> {
        self.store_with_files(job, files, Submission::Create).await
    }

    pub(super) async fn store_with_files(
        &self,
        mut job: Job,
        files: &JobFiles,
        how: Submission,
    ) -> Result<JobId> {
        self.scripts().resolve(&mut job).await?;
        self.check(&job)?;
        self.place(&mut job)?;
        let own = job.id.clone();
        if !files.is_empty() {
            self.files().give(&mut job, files).await?;
        }
        let store = match how {
            Submission::Run => self.of(&own)?.clone().awaited(),
            Submission::Create | Submission::Start => self.of(&own)?.clone(),
        };
        // A job is large: the futures of callers stay small.
        let stored = Box::pin(self.store_one(&store, job, how != Submission::Create)).await;
        let is_own = match &stored {
            Ok(id) => *id == own,
            Err(error) => may_be_accepted(error),
        };
        if !files.is_empty() && !is_own {
            self.files().take_back(std::iter::once(&own)).await;
        }
        stored
    }
}

impl FileClient<'_> {
    /// Stores the files of a job that is about to be submitted, and names them in the job. They go by
    /// themselves if it is not, or by [`FileClient::take_back`]. The id of the job stays from now on.
    ///
    /// # Errors
    /// [`ClientError::IdTaken`]; [`ClientError::Invalid`] and [`ClientError::File`] of the files.
    pub async fn give(self, job: &mut Job, files: &JobFiles) -> Result<()> {
        self.client.place(job)?;
        let files = &self.settled(files).await?;
        files.check(self.client.job.files_size_max)?;
        if !self.client.of(&job.id)?.files().stage(&job.id, files).await? {
            return Err(ClientError::IdTaken(job.id.clone()));
        }
        job.extra.insert(INPUT_FILES.to_owned(), files.listed());
        if self.client.signer.is_some() {
            job.file_digests = file_digests(&files.inputs, files.stdin.as_ref());
        }
        Ok(())
    }

    /// Removes the files of jobs that were not accepted.
    pub async fn take_back(self, jobs: impl Iterator<Item = &JobId>) {
        for id in jobs {
            // Else they go by themselves.
            if let Ok(store) = self.client.of(id) {
                let _ = store.files().drop(id).await;
            }
        }
    }

    /// Gives jobs of an atomic batch their files, by their places, all or none. Returns the jobs that have some.
    pub(super) async fn give_all(
        self,
        files: impl Iterator<Item = (usize, &JobFiles)>,
        jobs: &mut [Job],
        name: &NameOf<'_>,
    ) -> Result<Vec<JobId>> {
        let mut given = Vec::new();
        for (place, files) in files {
            let Some(job) = jobs.get_mut(place) else { continue };
            if let Err(error) = self.give(job, files).await {
                self.take_back(given.iter()).await;
                return Err(refused(place, name(place), error));
            }
            given.push(job.id.clone());
        }
        Ok(given)
    }

    /// Gives jobs of a batch, or of none, their files, by their places: one whose files cannot be given is refused. Returns the
    /// jobs that have some.
    pub(super) async fn give_each(
        self,
        files: &FilesByPlace,
        jobs: &mut [Result<Job>],
        batch: Option<&JobId>,
    ) -> Vec<(usize, JobId)> {
        let mut given = Vec::new();
        for (place, files) in files {
            let Some(Ok(job)) = jobs.get_mut(*place) else { continue };
            let mut gave = batch.map_or(Ok(()), |batch| self.client.place_on_shard_of(batch, job));
            if gave.is_ok() {
                gave = self.give(job, files).await;
            }
            match gave {
                Ok(()) => given.push((*place, job.id.clone())),
                Err(error) => jobs[*place] = Err(error),
            }
        }
        given
    }

    /// Moves large contents into the folder, if there is one, and keeps those that are there already.
    async fn settled(self, files: &JobFiles) -> Result<JobFiles> {
        let (contents, mut files) = (Contents::of(&self.client.job), files.clone());
        if !contents.has_folder() {
            return Ok(files);
        }
        let room = self.client.job.files_size_max;
        let settle = move || {
            for content in files.inputs.values_mut().chain(&mut files.stdin) {
                match content {
                    FileBody::Bytes(bytes) => {
                        *content = contents.take(&mut bytes.as_slice(), room)?;
                    }
                    FileBody::Artifact(artifact) => contents.touch(artifact)?,
                }
            }
            Ok(files)
        };
        Ok(blocking(settle).await?)
    }

    /// Returns the files that the submitter of a job gave it.
    ///
    /// # Errors
    /// [`ClientError::NoSuchJob`]; [`ClientError::Invalid`] if they are gone.
    pub async fn inputs(self, id: &JobId) -> Result<JobFiles> {
        let (names, has_stdin) = self.client.get_job(id).await?.input_files();
        let gone = || InvalidJob::new(INPUT_FILES, "are gone");
        let read = self.client.of(id)?.files().read(id, FileSide::Input, &names).await?;
        let mut files = JobFiles::default();
        for (name, bytes) in names.into_iter().zip(read) {
            files.inputs.insert(name, bytes.ok_or_else(gone)?);
        }
        if has_stdin {
            files.stdin = Some(self.client.of(id)?.files().read_stdin(id).await?.ok_or_else(gone)?);
        }
        Ok(files)
    }

    /// Lists the files of a job: those that its script left, those that it was given, its standard input.
    ///
    /// # Errors
    /// [`ClientError::NoSuchJob`].
    pub async fn list(self, id: &JobId) -> Result<Vec<JobFile>> {
        let job = self.client.get_job(id).await?;
        let (inputs, has_stdin) = job.input_files();
        let named = |side| move |name: FileName| (side, name.to_string());
        let outputs = job.output_files().into_iter().map(named(FileSide::Output));
        let inputs = inputs.into_iter().map(named(FileSide::Input));
        let stdin = has_stdin.then(|| (FileSide::Stdin, STDIN.to_owned()));
        let files: Vec<(FileSide, String)> = outputs.chain(inputs).chain(stdin).collect();
        let sizes = self.client.of(id)?.files().sizes(id, &files).await?;
        let files = files.into_iter().zip(sizes);
        Ok(files.map(|((kind, name), size)| JobFile { name, size, kind }).collect())
    }

    /// Finds a file of a job: left by its script, or else given to it. `None` if it
    /// has no file of this name. [`FileClient::bytes`] and [`Contents::give`] read it.
    ///
    /// # Errors
    /// [`ClientError::NoSuchJob`]; [`ClientError::Invalid`] if the file is gone.
    pub async fn get(self, id: &JobId, name: &FileName) -> Result<Option<FileBody>> {
        let job = self.client.get_job(id).await?;
        for (side, names, field) in [
            (FileSide::Output, job.output_files(), OUTPUT_FILES),
            (FileSide::Input, job.input_files().0, INPUT_FILES),
        ] {
            if names.contains(name) {
                let read =
                    self.client.of(id)?.files().read(id, side, std::slice::from_ref(name)).await?;
                let gone = || InvalidJob::new(field, format!("of job {id}: `{name}` is gone"));
                return Ok(Some(read.into_iter().next().flatten().ok_or_else(gone)?));
            }
        }
        Ok(None)
    }

    /// Finds the standard input that a job was given. `None` if it has none. It is read as a file is.
    ///
    /// # Errors
    /// [`ClientError::NoSuchJob`]; [`ClientError::Invalid`] if it is gone.
    pub async fn stdin(self, id: &JobId) -> Result<Option<FileBody>> {
        if !self.client.get_job(id).await?.input_files().1 {
            return Ok(None);
        }
        let gone =
            || InvalidJob::new(INPUT_FILES, format!("of job {id}: its standard input is gone"));
        Ok(Some(self.client.of(id)?.files().read_stdin(id).await?.ok_or_else(gone)?))
    }

    /// Returns the reader of these bytes of a file that was found. It opens nothing yet; each block may be slow.
    ///
    /// # Errors
    /// [`ClientError::File`] if its content is in a folder, and this machine has none.
    pub fn reader(self, content: FileBody, range: Range<u64>) -> Result<ContentReader> {
        Ok(Contents::of(&self.client.job).reader(content, range)?)
    }

    /// Returns the bytes of a file that was found, at most this many.
    pub async fn bytes(self, content: FileBody, bytes_max: u64) -> Result<Vec<u8>> {
        let contents = Contents::of(&self.client.job);
        Ok(blocking(move || contents.bytes(content, bytes_max)).await?)
    }
}

/// Returns true if jobs may have been accepted though their submission failed: then their files stay, or go by
/// themselves.
pub(super) fn may_be_accepted(error: &ClientError) -> bool {
    matches!(
        error,
        ClientError::Unsure { .. } | ClientError::Unconfirmed { .. } | ClientError::Store(_)
    )
}

/// Works with the folder of contents, which may be slow.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ArtifactError> + Send + 'static,
) -> Result<T, ArtifactError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(ArtifactError::Source(std::io::Error::other(error))))
}
