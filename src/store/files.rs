//! The files of jobs: one hash per job, which goes with it.

use redis::RedisResult;

use super::{Store, StoreError};
use crate::proto::job::{BootId, FileName, JobFiles, JobId, NamedFiles, OUTPUT_FILES, file_names};

/// The time after which staged files go if no job comes for them, in seconds.
const STAGED_S: u64 = 3600;
/// The longest time that files are kept without a change of their job, in seconds: 400 days.
const KEPT_S: u64 = 400 * 86_400;
/// The field of standard input.
const STDIN: &str = "stdin";

/// The side of a job on which a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FileSide {
    /// Its submitter gave it.
    Input,
    /// Its script left it.
    Output,
}

impl FileSide {
    fn field(self, name: &FileName) -> String {
        match self {
            Self::Input => format!("i:{name}"),
            Self::Output => format!("o:{name}"),
        }
    }
}

/// The answer to the files of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeptFiles {
    /// They are stored.
    Kept,
    /// The boot no longer owns the job; nothing was written.
    Lost,
}

impl Store {
    /// Stores the files of a job that is about to be submitted; they go by themselves if it is not.
    /// Returns `false` if its id is taken.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn stage_files(&self, id: &JobId, files: &JobFiles) -> Result<bool, StoreError> {
        let mut script = self.scripts.stage_files.prepare_invoke();
        script.arg(id.as_str()).arg(STAGED_S);
        for (name, bytes) in &files.inputs {
            script.arg(FileSide::Input.field(name)).arg(bytes);
        }
        if let Some(bytes) = &files.stdin {
            script.arg(STDIN).arg(bytes);
        }
        let answer: String = self.invoke("storing the files of a job", &script).await?;
        Ok(answer == "ok")
    }

    /// Removes the files of a job that was not accepted.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn drop_files(&self, id: &JobId) -> Result<(), StoreError> {
        let mut command = redis::cmd("DEL");
        command.arg(self.keys.files(id));
        self.link.query("removing the files of a job", &command).await
    }

    /// Replaces the files that earlier attempts of a job left by those of this one, while the boot
    /// runs it since the claim at this time.
    ///
    /// # Errors
    /// [`StoreError`]; calling again is safe.
    pub async fn keep_files(
        &self,
        boot: &BootId,
        (id, claimed_at): (&JobId, u64),
        files: &NamedFiles,
    ) -> Result<KeptFiles, StoreError> {
        let mut script = self.scripts.keep_files.prepare_invoke();
        script.arg(boot.as_str()).arg(id.as_str()).arg(claimed_at).arg(KEPT_S);
        for (name, bytes) in files {
            script.arg(FileSide::Output.field(name)).arg(bytes);
        }
        let answer: String = self.invoke("keeping the files of a job", &script).await?;
        Ok(if answer == "ok" { KeptFiles::Kept } else { KeptFiles::Lost })
    }

    /// Reads files of a job; `None` for one that is gone.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn read_files(
        &self,
        id: &JobId,
        side: FileSide,
        names: &[FileName],
    ) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        self.read_fields(id, names.iter().map(|name| side.field(name)).collect()).await
    }

    /// Reads the standard input that a submitter gave a job.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn read_stdin(&self, id: &JobId) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.read_fields(id, vec![STDIN.to_owned()]).await?.pop().flatten())
    }

    async fn read_fields(
        &self,
        id: &JobId,
        fields: Vec<String>,
    ) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        if fields.is_empty() {
            return Ok(Vec::new());
        }
        let mut command = redis::cmd("HMGET");
        command.arg(self.keys.files(id)).arg(fields);
        self.link.query("reading the files of a job", &command).await
    }

    /// Returns the names of the files that a job left.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn output_files(&self, id: &JobId) -> Result<Vec<FileName>, StoreError> {
        let mut command = redis::cmd("HGET");
        command.arg(self.keys.job(id)).arg(OUTPUT_FILES);
        let text: Option<Vec<u8>> =
            self.link.query("reading the names of a job's files", &command).await?;
        Ok(file_names(&String::from_utf8_lossy(&text.unwrap_or_default())))
    }

    /// Returns the sizes of files of a job, 0 for one that is gone.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn file_sizes(
        &self,
        id: &JobId,
        files: &[(FileSide, FileName)],
    ) -> Result<Vec<u64>, StoreError> {
        if files.is_empty() {
            return Ok(Vec::new());
        }
        let mut pipeline = redis::pipe();
        for (side, name) in files {
            pipeline.cmd("HSTRLEN").arg(self.keys.files(id)).arg(side.field(name));
        }
        let sizes: Vec<RedisResult<u64>> = self
            .link
            .pipeline("reading the sizes of a job's files", pipeline.ignore_errors())
            .await?;
        Ok(sizes.into_iter().map(Result::unwrap_or_default).collect())
    }
}
