//! `[job]`: defaults and bounds of every job.

use std::path::PathBuf;
use std::time::Duration;

use super::artifacts::ArtifactFolder;
use super::key_row::{HOUR, MIB, PIB, REDIS_STRING, SECOND, TEN_YEARS, TIB};
use super::toml_table::toml_table;
use super::units::{duration, size};
use crate::proto::job::{JobBounds, OutputOverflow, ReplyFormat, Retention};

toml_table! {
    /// Defaults and limits of every job.
    pub struct JobConfig in "job" {
        /// The time limit of one attempt, for a job that does not set one.
        timeout: Duration as "duration" = Duration::from_mins(1) => Duration(1, TEN_YEARS);
        /// The longest timeout a job may ask for.
        timeout_max: Duration as "duration" = Duration::from_hours(24) => Duration(1, TEN_YEARS);
        /// Attempts after the first, for a job that does not set them.
        retries: u32 = 0 => Number(0, 1000);
        /// The wait before the first retry. It doubles with each further retry, and varies by a fifth at random, so
        /// that jobs that failed together are not retried together.
        retry_backoff: Duration as "duration" = Duration::from_secs(1) => Duration(0, TEN_YEARS);
        /// The longest wait before a retry.
        retry_backoff_max: Duration as "duration" = Duration::from_mins(15) => Duration(0, TEN_YEARS);
        /// The time after the start of its first attempt for which a script may postpone its job, by `retry_in` or by
        /// exit code 75 where the job names that code in `--retry-if`. The job fails if its script postpones it later.
        /// With `0s` none is postponed.
        postponed_max: Duration as "duration" = Duration::from_hours(24) => Duration(0, TEN_YEARS);
        /// The longest wait that a script may ask for by `wait`, and the length of one that names no time.
        wait_max: Duration as "duration" = Duration::from_hours(30 * 24) => Duration(SECOND, TEN_YEARS);
        /// The number of waits that one job may ask for. The job fails if its script asks for one more.
        waits_max: u32 = 1000 => Number(0, 1_000_000);
        /// A job that crashed its actor this many times ends in `error`.
        crash_limit: u32 = 3 => Number(1, 1000);
        /// Runs an ended job again when a program pushes its id onto the job's own queue, as the older dispatcher did.
        /// If false, such an id is skipped. `hero job retry` needs neither.
        requeue_by_push: bool = true => Flag;
        /// The id of a job that ended less than this ago is skipped when a program pushes it: clients of Redis repeat a
        /// push whose answer was lost, and the job may have ended meanwhile. `0s`: no such pause.
        requeue_after: Duration as "duration" = Duration::from_secs(5) => Duration(0, HOUR);
        /// The time that an ended job is kept with its output and log, if it does not set one. Each is kept for longer,
        /// by up to a twentieth and an hour at most, so that jobs that ended together do not expire together.
        retention: Duration as "duration" = Duration::from_hours(24) => Duration(SECOND, TEN_YEARS);
        /// The time that a job that ended in `error` is kept with its log, if it does not set one: no less than
        /// `retention`, and no more than `retention_max`.
        retention_failed: Duration as "duration" = Duration::from_hours(7 * 24) => Duration(SECOND, TEN_YEARS);
        /// The longest retention a job may ask for.
        retention_max: Duration as "duration" = Duration::from_hours(365 * 24) => Duration(SECOND, TEN_YEARS);
        /// The format of the reply to a job that does not set one: `json`, or `plain`, the bare output or error, for
        /// programs that print what they pop. It must be the same for actors, supervisors and clients.
        reply_format: ReplyFormat = ReplyFormat::Json => OneOf(&["json", "plain"]);
        /// The largest script.
        script_size_max: u64 as "size" = 1 << 20 => Size(1, REDIS_STRING);
        /// The largest output of a job.
        output_size_max: u64 as "size" = 1 << 20 => Size(1, REDIS_STRING);
        /// The fate of a larger one: `truncate` keeps its end, after a line that says so, and `fail` fails the job.
        /// A job may have its own, and so may a script type.
        output_overflow: OutputOverflow = OutputOverflow::Truncate => OneOf(&["truncate", "fail"]);
        /// The largest output in the hash of its job. A larger one has a key of its own, which the field `output_key`
        /// names. Raise it to `output_size_max` for other programs that read only the field `output`.
        /// ---
        /// So no script of Redis carries a large output, which would stop Redis for milliseconds. Scripts do carry it
        /// for a backup and a restore, and while the memory of Redis is full: then it stays in the hash. Every command,
        /// the API and the clients find it there. Replies do not change. While older programs are served, every output
        /// stays in the hash.
        output_inline_max: u64 as "size" = 64 << 10 => Size(0, REDIS_STRING);
        /// The largest total output of a job's prerequisites. A job with more ends in `error`.
        inputs_size_max: u64 as "size" = 8 << 20 => Size(1, REDIS_STRING);
        /// The most bytes of the files that a job is given (`--input`, `--stdin`, files of its prerequisites), and of
        /// the files that its script leaves in `HERO_OUTPUT_DIR`. They are kept in Redis. 0 for none.
        files_size_max: u64 as "size" = 8 << 20 => Size(0, 64 * MIB);
        /// The most jobs that the script of one job may submit, in all attempts together. `may_submit` of its type allows
        /// it to submit jobs at all.
        children_max: u64 = 1000 => Number(1, 2000);
        /// The most sessions that one caller may have at a time, 0 for none. Each holds a task of its actor until it ends.
        sessions_max: u64 = 4 => Number(0, 64);
        /// The longest time that a session may take, from its start to its end.
        session_timeout_max: Duration as "duration" = Duration::from_hours(1) => Duration(SECOND, TEN_YEARS);
        /// The largest log of an attempt. A larger one keeps its start and its last quarter.
        log_size_max: u64 as "size" = 4 << 20 => Size(1, TIB);
        /// Writes the standard output of a job that runs for more than a second to its log as it comes, up to half of
        /// `log_size_max`. Shorter jobs cost nothing.
        live_output: bool = true => Flag;
        /// The folder in which jobs may have log files. The shipped unit may write there; another folder needs a
        /// drop-in with `ReadWritePaths=`.
        /// ---
        /// If its disk is full or hangs, jobs run on: a warning and the job's log say that the file lacks lines.
        log_dir: PathBuf = PathBuf::from("/var/log/hero/jobs") => Folder;
        /// The size at which such a file gets no further lines. Rotate the files before, as `logrotate` does.
        /// ---
        /// Jobs run on without: a warning and the job's log say that the file lacks lines.
        log_file_size_max: u64 as "size" = 1 << 30 => Size(1, TIB);
        /// The most files and folders in that folder. With as many no new file is made; jobs run on without.
        log_files_max: u64 = 10_000 => Number(1, 1_000_000);
        /// Copies the lines of a job's log to the daemon's own log.
        log_to_journal: bool = false => Flag;
        /// Records every state transition of every job for `hero events`, about the latest 100000. Off, it costs
        /// nothing. Each process records its own transitions, so it must be the same for actors, supervisors and
        /// clients.
        events: bool = false => Flag, restart;
        /// The time between SIGTERM and SIGKILL for a child process.
        kill_grace: Duration as "duration" = Duration::from_secs(2) => Duration(0, HOUR);
        /// The cache of compiled scripts and of the packages that scripts declare. The shipped unit creates it; another
        /// folder needs a drop-in with `ReadWritePaths=`.
        cache_dir: PathBuf = PathBuf::from("/var/cache/hero") => Folder;
        /// The size of the cache. The least recently used entry is evicted first.
        cache_size_max: u64 as "size" = 2 << 30 => Size(1, PIB);
    } with {
        /// The folder of `[artifacts]`, for all who handle files of jobs.
        #[serde(skip)]
        pub artifacts: Option<ArtifactFolder> = None,
    }
}

impl JobConfig {
    pub fn bounds(&self) -> JobBounds {
        JobBounds {
            script_size_max: self.script_size_max,
            timeout_max: self.timeout_max,
            retention_max: self.retention_max,
        }
    }

    pub fn kept(&self) -> Retention {
        let failed = self.retention_failed.min(self.retention_max).max(self.retention);
        Retention { default: self.retention, failed, max: self.retention_max }
    }
}
