//! Copies, moves and mirrors files and folders.

use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use ::rhai::ImmutableString;

use super::context::{CallResult, SalJob, path_text};
use super::external_program::ExternalProgram;
use super::files::{make_parents, regular};
use super::find::{names_like, sorted_entries};
use super::remove::remove;
use crate::engine::rhai::functions::Functions;

const BIN: &str = "/usr/local/bin";
/// The size of the chunks between two checks for a stop.
const CHUNK_BYTES: u64 = 16 * 1024 * 1024;
const FOLDER_DEPTH_MAX: usize = 200;

pub(super) fn register(functions: &mut Functions<'_>) {
    functions.act_with(
        "copy",
        ["source", "destination"],
        "Copies a file, a folder with its content, or everything that matches `*` and `?` in the \
         last part of the source. The destination is a folder to copy into, or the new name, whose \
         missing folders are created.",
        r#"
mkdir("site"); mkdir("backup");
file_write("site/a.html", "A");
file_write("site/b.css", "B");
copy("site/*.html", "backup");
copy("site", "copy of site");
[exist("backup/a.html"), exist("backup/b.css"), exist("copy of site/b.css")]
// → [true,false,true]"#,
        |job, source, destination: ImmutableString| copy(job, source, &destination),
    );
    functions.act_on(
        "copy_bin",
        "source",
        "Copies a program to /usr/local/bin, executable for every user, and returns the new path.",
        r##"
file_write("hello", "#!/bin/sh\necho hello\n");
// Needs permission to write there:
try { copy_bin("hello") } catch (error) { print(error) }"##,
        |job, source| {
            let from = job.to_read(source)?;
            let name = from.file_name().ok_or("the path has no file name")?;
            let to = job.to_write(&path_text(&Path::new(BIN).join(name)))?;
            copy_file(job, &from, &to)?;
            fs::set_permissions(&to, fs::Permissions::from_mode(0o755))?;
            Ok(path_text(&to))
        },
    );
    functions.act_with(
        "mv",
        ["source", "destination"],
        "Moves a file or a folder. The destination is a folder to move into, or the new name.",
        r#"
file_write("draft.txt", "text");
mv("draft.txt", "final.txt");
[exist("draft.txt"), file_read("final.txt")]
// → [false,"text"]"#,
        |job, source, destination: ImmutableString| move_to(job, source, &destination),
    );
    functions.act_with(
        "rsync",
        ["source", "destination"],
        "Makes the destination equal to the source with the program rsync, and deletes files that \
         are not in the source. Either may be on another machine, as `host:path`.",
        r#"
mkdir("source"); mkdir("mirror");
file_write("source/a.txt", "A");
rsync("source/", "mirror/");
file_read("mirror/a.txt")
// → A"#,
        |job, source, destination: ImmutableString| {
            let source = mirror_end(job, source, || job.to_read(source))?;
            let destination = mirror_end(job, &destination, || job.to_write(&destination))?;
            ExternalProgram::new("rsync")
                .args(["--archive", "--delete", "--", &source, &destination])
                .output(job)
                .map(|_| ())
        },
    );
}

fn copy(job: SalJob<'_>, source: &str, destination: &str) -> CallResult<()> {
    let to = job.to_write(destination)?;
    let name = Path::new(source).file_name().and_then(OsStr::to_str).unwrap_or_default();
    if !name.contains(['*', '?']) {
        let from = job.to_read(source)?;
        from.symlink_metadata()?;
        make_parents(&to)?;
        return copy_any(job, &from, &into(&from, to), FOLDER_DEPTH_MAX);
    }
    let folder = Path::new(source).parent().and_then(Path::to_str).unwrap_or_default();
    let folder = job.to_read(if folder.is_empty() { "." } else { folder })?;
    let (names, mut found) = (names_like(name)?, false);
    for from in sorted_entries(&folder)? {
        let matching =
            from.file_name().is_some_and(|entry| names.is_match(&entry.to_string_lossy()));
        if matching {
            found = true;
            fs::create_dir_all(&to)?;
            copy_any(job, &from, &into(&from, to.clone()), FOLDER_DEPTH_MAX)?;
        }
    }
    if found { Ok(()) } else { Err("nothing matches".into()) }
}

fn move_to(job: SalJob<'_>, source: &str, destination: &str) -> CallResult<()> {
    // At the destination it may become readable, so it must be readable here.
    job.to_read(source)?;
    let from = job.to_change(source)?;
    let to = into(&from, job.to_write(destination)?);
    match fs::rename(&from, &to) {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            copy_any(job, &from, &to, FOLDER_DEPTH_MAX)?;
            remove(job, &from)
        }
        other => Ok(other?),
    }
}

fn into(from: &Path, to: PathBuf) -> PathBuf {
    match from.file_name() {
        Some(name) if to.is_dir() => to.join(name),
        _ => to,
    }
}

fn copy_any(job: SalJob<'_>, from: &Path, to: &Path, depth_left: usize) -> CallResult<()> {
    job.check_stop()?;
    if depth_left == 0 {
        return Err(format!("folders are nested deeper than {FOLDER_DEPTH_MAX}").into());
    }
    let data = from.symlink_metadata()?;
    // A link in the destination must not lead out of it.
    if depth_left < FOLDER_DEPTH_MAX && to.is_symlink() {
        fs::remove_file(to)?;
    }
    if data.is_dir() {
        let inside = to.parent().and_then(|parent| parent.canonicalize().ok());
        if inside.is_some_and(|inside| inside.starts_with(from.canonicalize().unwrap_or_default()))
        {
            return Err("a folder cannot be copied into itself".into());
        }
        fs::create_dir_all(to)?;
        for entry in sorted_entries(from)? {
            let name = entry.file_name().unwrap_or_default();
            copy_any(job, &entry, &to.join(name), depth_left - 1)?;
        }
        return Ok(fs::set_permissions(to, data.permissions())?);
    }
    if data.is_symlink() && depth_left < FOLDER_DEPTH_MAX {
        return Ok(symlink(from.read_link()?, to)?);
    }
    copy_file(job, from, to)
}

/// Copies content and permissions; stops between chunks if the job must end.
fn copy_file(job: SalJob<'_>, from: &Path, to: &Path) -> CallResult<()> {
    let source = regular(OpenOptions::new().read(true), from)?;
    let mut destination = regular(OpenOptions::new().write(true).create(true).truncate(false), to)?;
    let (read, written) = (source.metadata()?, destination.metadata()?);
    let same = |a: &fs::Metadata, b: &fs::Metadata| {
        use std::os::unix::fs::MetadataExt;
        (a.dev(), a.ino()) == (b.dev(), b.ino())
    };
    if same(&read, &written) {
        return Err("a file cannot be copied onto itself".into());
    }
    destination.set_len(0)?;
    while io::copy(&mut (&source).take(CHUNK_BYTES), &mut destination)? > 0 {
        job.check_stop()?;
    }
    Ok(destination.set_permissions(read.permissions())?)
}

/// Returns one end of a mirror: an allowed path of this machine, or one of another machine.
fn mirror_end(
    job: SalJob<'_>,
    end: &str,
    allowed: impl FnOnce() -> CallResult<PathBuf>,
) -> CallResult<String> {
    let is_remote = end.split('/').next().is_some_and(|start| start.contains(':'));
    if is_remote {
        job.settings.check_network()?;
        return Ok(end.to_owned());
    }
    let path = path_text(&allowed()?);
    // To rsync, a slash at the end means the content of the folder.
    Ok(if end.ends_with('/') && !path.ends_with('/') { format!("{path}/") } else { path })
}
