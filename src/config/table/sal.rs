//! The keys of `[sal]`, `[secrets]` and `[artifacts]`.

use super::row::{TEN_YEARS, TIB, key_table};

key_table! {
    /// The permissions of scripts of the engine `sal`, besides their own folder. By default they may do everything
    /// that the daemon's user may do. As soon as `read`, `write` or `network` is narrower, the commands of scripts
    /// are sandboxed with the same bounds; they may read the system's programs too. This needs a kernel with
    /// Landlock. An error names the key that forbids an operation.
    SAL = "sal";

    /// The folders below which files may be read and listed. Symbolic links are resolved.
    read: Folders;

    /// The folders below which files may be written, moved and deleted.
    write: Folders;

    /// Allows starting programs and ending processes: `run`, `git`, packages, systemd.
    run: Flag;

    /// Allows network access: `tcp`, `http`, `ssh`, downloads.
    network: Flag;

    /// The folders of scripts that other scripts may run with `exec(FILE)`.
    exec: Folders;

    /// Allows `exec` to run a script from a URL.
    exec_urls: Flag;

    /// The Redis of the functions `redis_get`, `redis_set` and the like, with a login if it needs one. Empty: none.
    /// Keys of Hero's own namespace are rejected.
    redis_url: Text;

    /// The largest download.
    download_size_max: Size(1, TIB);
}

key_table! {
    /// The secrets of this machine, which jobs use by name: `hero exec --secret db_password FILE`. No job may use
    /// one without a table `[secrets.allow.NAME]`.
    SECRETS = "secrets";

    /// Their folder: a file each, with the name of its secret, of at most 64KiB. A file that others may read, that
    /// is a link, or whose folder others may write in is rejected. A systemd credential `secret.NAME` of the unit
    /// comes before the file.
    dir: Folder;
}

key_table! {
    /// The jobs that may use a secret: a job has to match each list that the table has.
    ///
    ///     secrets.allow.db_password = { types = ["python"], groups = ["etl"], callers = ["nightly"] }
    ///     secrets.allow.tls_key = { types = ["python", "bash"], file_only = ["bash"] }
    ALLOW = "secrets.allow.NAME";

    /// The script types of the jobs.
    types: Texts;

    /// The groups of the actors that run the jobs.
    groups: Texts;

    /// The callers of the jobs. A caller is what the submitter says; it is verified only for jobs that come by the
    /// API.
    callers: Texts;

    /// The script types whose jobs may have the secret as a file only, not in a variable.
    file_only: Texts;
}

key_table! {
    /// Large files of jobs (`--input`, `--stdin`, `HERO_OUTPUT_DIR`).
    ARTIFACTS = "artifacts";

    /// The folder for files above 64KiB, by their SHA-256; Redis has only the hash and the size, and
    /// `job.files_size_max` bounds what is in Redis. All machines of the namespace share the folder, and no other
    /// namespace or Redis uses it. It belongs to the user hero, with mode 0700; `hero check` looks at it. Outside
    /// of `/var/lib/hero` the units need a drop-in with `ReadWritePaths=`. Supervisors delete files that are older
    /// than a day and that no job names. Empty: files are kept in Redis.
    ///
    ///     artifacts.dir = "/var/lib/hero/artifacts"
    dir: FolderOrNone;

    /// The largest file.
    max_size: Size(1, TIB);

    /// The time that files stay after the end of their job, if that is shorter than the job stays; 0 for as long as
    /// the job.
    retention: Duration(0, TEN_YEARS);
}
