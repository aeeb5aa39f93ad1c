//! Files and folders, one at a time.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::path::Path;

use ::rhai::INT;
use rustix::fs::OFlags;

use super::context::{CallError, CallResult, SalJob, operation};
use super::remove::remove;
use crate::engine::rhai::functions::Functions;

pub(super) fn register(functions: &mut Functions<'_>) {
    functions.group(
        "os",
        "Files, folders, the environment, downloads and packages. Relative paths start in the \
         script's own folder, which is gone when the script has ended.",
    );
    register_content(functions);
    register_entries(functions);
    register_links(functions);
}

fn register_content(functions: &mut Functions<'_>) {
    functions.add(
        "file_read",
        ["path"],
        "Gives the whole text of a file.",
        r#"
file_write("greeting.txt", "hello");
file_read("greeting.txt")
// → hello"#,
        |path: &str| {
            operation("file_read", path, |job| {
                read_text(&job.to_read(path)?, job.settings.bytes_max)
            })
        },
    );
    functions.add(
        "file_write",
        ["path", "text"],
        "Makes a file with this text, or replaces the text of the one that is there.",
        r#"
file_write("greeting.txt", "hello");
file_size("greeting.txt")
// → 5"#,
        |path: &str, text: &str| {
            operation("file_write", path, |job| write_text(&job.to_write(path)?, text))
        },
    );
    functions.add(
        "file_write_append",
        ["path", "text"],
        "Adds text at the end of a file; makes the file if there is none.",
        r#"
file_write_append("log.txt", "one ");
file_write_append("log.txt", "two");
file_read("log.txt")
// → one two"#,
        |path: &str, text: &str| {
            operation("file_write_append", path, |job| {
                let mut file =
                    regular(OpenOptions::new().append(true).create(true), &job.to_write(path)?)?;
                Ok(file.write_all(text.as_bytes())?)
            })
        },
    );
    functions.add(
        "file_size",
        ["path"],
        "Gives the size of a file in bytes.",
        r#"
file_write("four.txt", "1234");
file_size("four.txt")
// → 4"#,
        |path: &str| {
            operation("file_size", path, |job| {
                let size = job.to_read(path)?.metadata()?.len();
                Ok(INT::try_from(size).unwrap_or(INT::MAX))
            })
        },
    );
}

fn register_entries(functions: &mut Functions<'_>) {
    functions.add(
        "exist",
        ["path"],
        "Tells whether there is a file, a folder, or anything else at this path.",
        r#"
mkdir("here");
[exist("here"), exist("nowhere")]
// → [true,false]"#,
        |path: &str| operation("exist", path, |job| Ok(job.to_read(path)?.try_exists()?)),
    );
    functions.add(
        "mkdir",
        ["path"],
        "Makes a folder, and those above it that are missing.",
        r#"
mkdir("a/b/c");
exist("a/b/c")
// → true"#,
        |path: &str| operation("mkdir", path, |job| make_folder(job, path)),
    );
    functions.add(
        "ensure_dir",
        ["path"],
        "Makes sure that there is a folder at this path, and gives the path.",
        r#"
let logs = ensure_dir("var/logs");
exist(logs)
// → true"#,
        |path: &str| {
            operation("ensure_dir", path, |job| make_folder(job, path).map(|()| path.to_owned()))
        },
    );
    functions.add(
        "ensure_file",
        ["path"],
        "Makes sure that there is a file at this path, an empty one if need be, and gives the path.",
        r#"
file_size(ensure_file("etc/app.conf"))
// → 0"#,
        |path: &str| {
            operation("ensure_file", path, |job| {
                let file = job.to_write(path)?;
                if let Some(folder) = file.parent() {
                    fs::create_dir_all(folder)?;
                }
                regular(OpenOptions::new().append(true).create(true), &file)?;
                Ok(path.to_owned())
            })
        },
    );
    register_changes(functions);
}

fn register_changes(functions: &mut Functions<'_>) {
    functions.add(
        "delete",
        ["path"],
        "Deletes a file, a folder with all that is in it, or a link; nothing there is no error.",
        r#"
mkdir("old/folder");
delete("old");
exist("old")
// → false"#,
        |path: &str| operation("delete", path, |job| remove(job, &job.to_change(path)?)),
    );
    functions.add(
        "chmod_exec",
        ["path"],
        "Makes a file executable for everybody who may read it.",
        r##"
file_write("hello.sh", "#!/bin/sh\necho hello\n");
chmod_exec("hello.sh");
run_command("./hello.sh").stdout
// → hello"##,
        |path: &str| {
            operation("chmod_exec", path, |job| {
                let file = job.to_write(path)?;
                let mode = file.metadata()?.permissions().mode();
                let executable = mode | ((mode & 0o444) >> 2);
                Ok(fs::set_permissions(&file, fs::Permissions::from_mode(executable))?)
            })
        },
    );
}

fn register_links(functions: &mut Functions<'_>) {
    functions.add(
        "symlink",
        ["target", "path"],
        "Makes a symbolic link at `path` that leads to `target`; a link that is there is replaced.",
        r#"
mkdir("releases/2");
symlink("releases/2", "current");
is_symlink("current")
// → true"#,
        |target: &str, path: &str| {
            operation("symlink", path, |job| {
                let link = job.to_change(path)?;
                if target.contains('\0') {
                    return Err("the target holds a NUL".into());
                }
                replace_link(target, &link)
            })
        },
    );
    functions.add(
        "is_symlink",
        ["path"],
        "Tells whether there is a symbolic link at this path.",
        r#"
file_write("plain.txt", "");
is_symlink("plain.txt")
// → false"#,
        |path: &str| {
            operation("is_symlink", path, |job| {
                let folder_is_read = Path::new(path).parent().and_then(Path::to_str);
                job.to_read(folder_is_read.filter(|folder| !folder.is_empty()).unwrap_or("."))?;
                Ok(job.folder()?.join(path).is_symlink())
            })
        },
    );
}

/// The whole text of a file, at most as long as a string may be.
pub(super) fn read_text(path: &Path, bytes_max: u64) -> CallResult<String> {
    let file = regular(OpenOptions::new().read(true), path)?;
    let mut bytes = Vec::new();
    file.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return Err(format!("larger than {bytes_max} bytes").into());
    }
    String::from_utf8(bytes).map_err(|_| "not UTF-8 text".into())
}

/// Replaces the text of a file, which keeps its permissions.
pub(super) fn write_text(path: &Path, text: &str) -> CallResult<()> {
    let mut file = regular(OpenOptions::new().write(true).create(true).truncate(false), path)?;
    file.set_len(0)?;
    Ok(file.write_all(text.as_bytes())?)
}

/// Opens a regular file. A pipe or a device could block past the job's deadline, so neither is
/// waited for, read or written.
pub(super) fn regular(options: &mut OpenOptions, path: &Path) -> CallResult<File> {
    let not_waiting = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    let file = options.custom_flags(not_waiting).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err("not a regular file".into()) }
}

fn make_folder(job: SalJob<'_>, path: &str) -> CallResult<()> {
    Ok(fs::create_dir_all(job.to_write(path)?)?)
}

/// The new link takes the place of the old one in one step: a reader finds either.
fn replace_link(target: &str, link: &Path) -> CallResult<()> {
    match symlink(target, link) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && link.is_symlink() => {
            let mut name = link.file_name().map(ToOwned::to_owned).unwrap_or_default();
            name.push(format!(".{:016x}", fastrand::u64(..)));
            let beside = link.with_file_name(name);
            symlink(target, &beside)?;
            fs::rename(&beside, link).map_err(|error| {
                let _ = fs::remove_file(&beside);
                CallError::from(error)
            })
        }
        other => Ok(other?),
    }
}
