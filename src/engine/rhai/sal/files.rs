//! Files and folders, one at a time.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::path::Path;

use ::rhai::{INT, ImmutableString};
use nix::fcntl::OFlag;

use super::context::{CallError, CallResult, SalJob, operation};
use super::remove::remove;
use crate::engine::rhai::functions::Functions;

pub(super) fn register(functions: &mut Functions<'_>) {
    functions.group(
        "os",
        "Files, folders, the environment, downloads and packages. Relative paths start in the \
         script's own folder, which is removed when the script has ended.",
    );
    register_content(functions);
    register_entries(functions);
}

fn register_content(functions: &mut Functions<'_>) {
    functions.act_on(
        "file_read",
        "path",
        "Returns the text of a file.",
        r#"
file_write("greeting.txt", "hello");
file_read("greeting.txt")
// → hello"#,
        |job, path| read_text(job, &job.to_read(path)?),
    );
    functions.act_with(
        "file_write",
        ["path", "text"],
        "Writes a text to a file; an existing file is overwritten, missing folders are created.",
        r#"
file_write("greeting.txt", "hello");
file_size("greeting.txt")
// → 5"#,
        |job, path, text: ImmutableString| {
            let file = job.to_write(path)?;
            make_parents(&file)?;
            write_text(&file, &text)
        },
    );
    functions.act_with(
        "file_write_append",
        ["path", "text"],
        "Appends a text to a file; creates the file and its folders if they do not exist.",
        r#"
file_write_append("log.txt", "one ");
file_write_append("log.txt", "two");
file_read("log.txt")
// → one two"#,
        |job, path, text: ImmutableString| Ok(to_append(job, path)?.write_all(text.as_bytes())?),
    );
    functions.act_on(
        "file_size",
        "path",
        "Returns the size of a file in bytes.",
        r#"
file_write("four.txt", "1234");
file_size("four.txt")
// → 4"#,
        |job, path| {
            let data = job.to_read(path)?.metadata()?;
            if !data.is_file() {
                return Err("not a file".into());
            }
            Ok(INT::try_from(data.len()).unwrap_or(INT::MAX))
        },
    );
}

fn register_entries(functions: &mut Functions<'_>) {
    functions.act_on(
        "exist",
        "path",
        "Returns whether a file, a folder or anything else exists at a path.",
        r#"
mkdir("here");
[exist("here"), exist("nowhere")]
// → [true,false]"#,
        |job, path| Ok(job.to_read(path)?.try_exists()?),
    );
    functions.act_on(
        "ensure",
        "path",
        "Throws an error unless something exists at a path, and returns the path.",
        r#"
file_write("site.conf", "");
ensure("site.conf")
// → site.conf"#,
        |job, path| {
            job.to_read(path)?.metadata()?;
            Ok(path.to_owned())
        },
    );
    functions.act_on(
        "mkdir",
        "path",
        "Creates a folder and its missing parents.",
        r#"
mkdir("a/b/c");
exist("a/b/c")
// → true"#,
        make_folder,
    );
    functions.act_on(
        "ensure_dir",
        "path",
        "Creates a folder unless it exists, and returns its path.",
        r#"
let logs = ensure_dir("var/logs");
exist(logs)
// → true"#,
        |job, path| make_folder(job, path).map(|()| path.to_owned()),
    );
    functions.act_on(
        "ensure_file",
        "path",
        "Creates an empty file unless it exists, and returns its path.",
        r#"
file_size(ensure_file("etc/app.conf"))
// → 0"#,
        |job, path| to_append(job, path).map(|_| path.to_owned()),
    );
    register_changes(functions);
}

fn register_changes(functions: &mut Functions<'_>) {
    functions.act_on(
        "delete",
        "path",
        "Deletes a file, a folder with its content, or a link; a missing path is not an error.",
        r#"
mkdir("old/folder");
delete("old");
exist("old")
// → false"#,
        |job, path| remove(job, &job.to_change(path)?),
    );
    functions.act_on(
        "chmod_exec",
        "path",
        "Makes a file executable for every user who may read it.",
        r##"
file_write("hello.sh", "#!/bin/sh\necho hello\n");
chmod_exec("hello.sh");
run_command("./hello.sh").stdout
// → hello"##,
        |job, path| {
            let file = job.to_write(path)?;
            let mode = file.metadata()?.permissions().mode();
            let executable = mode | ((mode & 0o444) >> 2);
            Ok(fs::set_permissions(&file, fs::Permissions::from_mode(executable))?)
        },
    );
    functions.add(
        "symlink",
        ["target", "path"],
        "Creates a symbolic link at `path` to `target`; an existing link is replaced.",
        r#"
mkdir("releases/2");
symlink("releases/2", "current");
is_symlink("current")
// → true"#,
        |target: &str, path: &str| {
            operation("symlink", path, |job| {
                let link = job.to_change(path)?;
                if target.contains('\0') {
                    return Err("the target contains a NUL byte".into());
                }
                replace_link(target, &link)
            })
        },
    );
    functions.act_on(
        "is_symlink",
        "path",
        "Returns whether a path is a symbolic link.",
        r#"
file_write("plain.txt", "");
is_symlink("plain.txt")
// → false"#,
        |job, path| {
            let folder_is_read = Path::new(path).parent().and_then(Path::to_str);
            job.to_read(folder_is_read.filter(|folder| !folder.is_empty()).unwrap_or("."))?;
            Ok(job.folder()?.join(path).is_symlink())
        },
    );
}

pub(super) fn read_text(job: SalJob<'_>, path: &Path) -> CallResult<String> {
    let bytes_max = job.run.limits.string_size_max;
    let file = regular(OpenOptions::new().read(true), path)?;
    let mut bytes = Vec::new();
    file.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return Err(format!("larger than {bytes_max} bytes").into());
    }
    String::from_utf8(bytes).map_err(|_| "not UTF-8 text".into())
}

/// Overwrites the text of a file and keeps its permissions.
pub(super) fn write_text(path: &Path, text: &str) -> CallResult<()> {
    let mut file = regular(OpenOptions::new().write(true).create(true).truncate(false), path)?;
    file.set_len(0)?;
    Ok(file.write_all(text.as_bytes())?)
}

/// Opens a regular file without waiting: a pipe or a device could block past the job's deadline, and is rejected.
pub(super) fn regular(options: &mut OpenOptions, path: &Path) -> CallResult<File> {
    let file = options.custom_flags(OFlag::O_NONBLOCK.bits()).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err("not a regular file".into()) }
}

pub(super) fn make_parents(path: &Path) -> CallResult<()> {
    let Some(parent) = path.parent() else { return Ok(()) };
    if parent.exists() && !parent.is_dir() {
        return Err(format!("{} is not a folder", parent.display()).into());
    }
    Ok(fs::create_dir_all(parent)?)
}

/// Opens a file at its end. Creates it and its folders if they do not exist.
fn to_append(job: SalJob<'_>, path: &str) -> CallResult<File> {
    let file = job.to_write(path)?;
    make_parents(&file)?;
    regular(OpenOptions::new().append(true).create(true), &file)
}

fn make_folder(job: SalJob<'_>, path: &str) -> CallResult<()> {
    Ok(fs::create_dir_all(job.to_write(path)?)?)
}

/// Creates a link, or replaces an existing one atomically.
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
