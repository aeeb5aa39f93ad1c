//! The files of jobs: one hash per job, which goes with it.

use redis::{FromRedisValue, RedisResult, ScriptInvocation};

use super::text::FieldPair;
use super::{FileStore, Result};
use crate::proto::job::{
    Artifact, BootId, ContentHash, FileBody, FileName, JobFiles, JobId, NamedFiles, OUTPUT_FILES,
    file_names,
};

/// Staged files go after this time if no job comes for them, in seconds: longer than an atomic batch is
/// staged, which a supervisor may commit after its client has gone.
const STAGED_S: u64 = 25 * 3600;
/// The longest time that files are kept without a change of their job, in seconds: 400 days.
const KEPT_S: u64 = 400 * 86_400;
const STDIN: &str = "stdin";
/// Begins the field of a content that is in the folder of `[artifacts]`; the rest is as if it were not.
const ELSEWHERE: &str = "a:";

/// The side of a job that a file is on.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum FileSide {
    /// Its submitter gave it.
    Input,
    /// Its script left it.
    Output,
    /// Its submitter gave it as standard input.
    Stdin,
}

impl FileSide {
    fn field(self, name: &str) -> String {
        match self {
            Self::Input => format!("i:{name}"),
            Self::Output => format!("o:{name}"),
            Self::Stdin => STDIN.to_owned(),
        }
    }
}

impl FileStore<'_> {
    /// Stores the files of a job to be submitted; else they go by themselves. Returns `false` if its id is taken.
    pub async fn stage(self, id: &JobId, files: &JobFiles) -> Result<bool> {
        let mut script = self.store.scripts.stage_files.prepare_invoke();
        script.arg(id.as_str()).arg(STAGED_S).arg(self.store.keys.contents());
        for (name, content) in &files.inputs {
            add_field(&mut script, FileSide::Input.field(name.as_str()), content);
        }
        if let Some(content) = &files.stdin {
            add_field(&mut script, STDIN.to_owned(), content);
        }
        let answer: String = self.store.invoke("storing the files of a job", &script).await?;
        Ok(answer == "ok")
    }

    /// Removes the files of a job that was not accepted.
    pub async fn drop(self, id: &JobId) -> Result<()> {
        self.store
            .link
            .command("removing the files of a job", "DEL", self.store.keys.files(id))
            .await
    }

    /// Replaces the files that earlier attempts of a job left by the files of this one, while the boot
    /// runs it since the claim at this time. Returns `false` if it no longer does: nothing was written.
    /// Calling again is safe.
    pub async fn keep(
        self,
        boot: &BootId,
        (id, claimed_at): (&JobId, u64),
        files: &NamedFiles,
    ) -> Result<bool> {
        let mut script = self.store.scripts.keep_files.prepare_invoke();
        script.arg(boot.as_str()).arg(id.as_str()).arg(claimed_at).arg(KEPT_S);
        script.arg(self.store.keys.contents());
        for (name, content) in files {
            add_field(&mut script, FileSide::Output.field(name.as_str()), content);
        }
        let answer: String = self.store.invoke("keeping the files of a job", &script).await?;
        Ok(answer == "ok")
    }

    /// Reads files of a job; `None` for a missing file.
    pub async fn read(
        self,
        id: &JobId,
        side: FileSide,
        names: &[FileName],
    ) -> Result<Vec<Option<FileBody>>> {
        self.read_fields(id, names.iter().map(|name| side.field(name.as_str())).collect()).await
    }

    /// Reads the standard input that a submitter gave a job.
    pub async fn read_stdin(self, id: &JobId) -> Result<Option<FileBody>> {
        Ok(self.read_fields(id, vec![STDIN.to_owned()]).await?.pop().flatten())
    }

    async fn read_fields(self, id: &JobId, fields: Vec<String>) -> Result<Vec<Option<FileBody>>> {
        if fields.is_empty() {
            return Ok(Vec::new());
        }
        let fields: Vec<(String, String)> =
            fields.into_iter().map(|field| (format!("{ELSEWHERE}{field}"), field)).collect();
        let (doing, arguments) =
            ("reading the files of a job", (self.store.keys.files(id), fields));
        let read: Vec<FieldPair> = self.store.link.command(doing, "HMGET", arguments).await?;
        let body = |(elsewhere, bytes): FieldPair| match elsewhere {
            Some(text) => Artifact::parse(&text).map(FileBody::Artifact),
            None => bytes.map(FileBody::Bytes),
        };
        Ok(read.into_iter().map(body).collect())
    }

    /// Returns the names of the files that a job left.
    pub async fn output_files(self, id: &JobId) -> Result<Vec<FileName>> {
        let arguments = (self.store.keys.job(id), OUTPUT_FILES);
        let text: Option<Vec<u8>> = self
            .store
            .link
            .command("reading the names of a job's files", "HGET", arguments)
            .await?;
        Ok(file_names(&String::from_utf8_lossy(&text.unwrap_or_default())))
    }

    /// Returns the sizes of files of a job, 0 for a missing file.
    pub async fn sizes(self, id: &JobId, files: &[(FileSide, String)]) -> Result<Vec<u64>> {
        if files.is_empty() {
            return Ok(Vec::new());
        }
        let mut pipeline = redis::pipe();
        for (side, name) in files {
            let field = side.field(name);
            pipeline.cmd("HSTRLEN").arg(self.store.keys.files(id)).arg(&field);
            pipeline.cmd("HGET").arg(self.store.keys.files(id)).arg(format!("{ELSEWHERE}{field}"));
        }
        let answers: Vec<RedisResult<redis::Value>> = self
            .store
            .link
            .pipeline("reading the sizes of a job's files", pipeline.ignore_errors())
            .await?;
        Ok(answers.chunks(2).map(size_of).collect())
    }

    /// Says which contents of the folder no job names any more. `retention_s` is the time that files stay
    /// after the end of their job; 0 for as long as the job.
    pub async fn unused_contents<'a>(
        self,
        hashes: impl Iterator<Item = &'a ContentHash>,
        retention_s: u64,
    ) -> Result<Vec<bool>> {
        let hashes: Vec<&str> = hashes.map(ContentHash::as_str).collect();
        let doing = "looking for files that no job names";
        let arguments = (self.store.keys.contents(), retention_s, hashes);
        self.store.run_script(doing, &self.store.scripts.unused_contents, arguments).await
    }
}

fn add_field(script: &mut ScriptInvocation<'_>, field: String, content: &FileBody) {
    match content {
        FileBody::Bytes(bytes) => script.arg(field).arg(bytes),
        FileBody::Artifact(artifact) => {
            script.arg(format!("{ELSEWHERE}{field}")).arg(artifact.to_string())
        }
    };
}

/// Reads the size of a file from the answers about both of its fields.
fn size_of(answers: &[RedisResult<redis::Value>]) -> u64 {
    let [Ok(in_redis), Ok(elsewhere)] = answers else { return 0 };
    let text = Option::<Vec<u8>>::from_redis_value_ref(elsewhere).ok().flatten();
    match text.and_then(|text| Artifact::parse(&text)) {
        Some(artifact) => artifact.size,
        None => u64::from_redis_value_ref(in_redis).unwrap_or_default(),
    }
}
