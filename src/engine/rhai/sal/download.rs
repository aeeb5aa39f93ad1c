//! Downloads with the program curl: to a file, an unpacked archive, or an installed package.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use ::rhai::INT;

use super::context::{CallResult, SalJob, operation, path_text};
use super::external_program::ExternalProgram;
use super::files::make_parents;
use super::http::curl;
use crate::engine::rhai::functions::Functions;

const TAR_ENDINGS: [&str; 7] = [".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".txz", ".tbz2"];

pub(super) fn register(functions: &mut Functions<'_>) {
    functions.add(
        "download",
        ["url", "folder", "min_kb"],
        "Downloads a file into a folder; an archive (.tar.gz, .zip and the like) is unpacked there \
         and deleted. A file smaller than `min_kb` KiB is an error. Returns the folder, or the path \
         of the file.",
        r#"
download("http://127.0.0.1:8080/site.tar.gz", "site", 0);
file_read("site/index.html")
// → hello"#,
        |url: &str, folder: &str, min_kb: INT| {
            operation("download", url, |job| download(job, url, folder, min_kb))
        },
    );
    functions.add(
        "download_file",
        ["url", "path", "min_kb"],
        "Downloads a file to a path, whose missing folders are created, and returns the path. A file \
         smaller than `min_kb` KiB is an error.",
        r#"
download_file("http://127.0.0.1:8080/", "page.html", 0);
file_read("page.html")
// → hello"#,
        |url: &str, path: &str, min_kb: INT| {
            operation("download_file", url, |job| {
                let file = job.to_write(path)?;
                make_parents(&file)?;
                fetch(job, url, &file, min_kb)?;
                Ok(path.to_owned())
            })
        },
    );
    functions.act_with(
        "download_install",
        ["url", "min_kb"],
        "Downloads a Debian package (.deb) and installs it with dpkg. A file smaller than `min_kb` \
         KiB is an error.",
        r#"
download_install("http://127.0.0.1:8080/tool.deb", 0);"#,
        |job, url, min_kb: INT| {
            let name = file_name(url)?;
            if Path::new(name).extension().is_none_or(|ending| ending != "deb") {
                return Err("not a .deb package".into());
            }
            let file = job.own_folder()?.join(name);
            fetch(job, url, &file, min_kb)?;
            let dpkg =
                ExternalProgram::new("dpkg").default_env("DEBIAN_FRONTEND", "noninteractive");
            dpkg.arg("--install").arg(&file).logged(true).output(job)?;
            Ok(fs::remove_file(&file)?)
        },
    );
}

fn download(job: SalJob<'_>, url: &str, folder: &str, min_kb: INT) -> CallResult<String> {
    let name = file_name(url)?;
    let to = job.to_write(folder)?;
    fs::create_dir_all(&to)?;
    let file = to.join(name);
    fetch(job, url, &file, min_kb)?;
    let lower = name.to_lowercase();
    let unpack = if TAR_ENDINGS.iter().any(|ending| lower.ends_with(ending)) {
        ExternalProgram::new("tar")
            .arg("--extract")
            .arg("--file")
            .arg(&file)
            .arg("--directory")
            .arg(&to)
    } else if Path::new(&lower).extension().is_some_and(|ending| ending == "zip") {
        ExternalProgram::new("unzip").args(["-q", "-o"]).arg(&file).arg("-d").arg(&to)
    } else {
        return Ok(path_text(&Path::new(folder).join(name)));
    };
    let unpacked = unpack.output(job);
    fs::remove_file(&file)?;
    unpacked.map(|_| folder.to_owned())
}

/// Downloads to a temporary name, so that the file appears complete or not at all.
fn fetch(job: SalJob<'_>, url: &str, to: &Path, min_kb: INT) -> CallResult<()> {
    let bytes_max = job.settings.config.download_size_max;
    to.file_name().ok_or("the path has no file name")?;
    let part = tempfile::Builder::new()
        .suffix(".part")
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(to.parent().unwrap_or(to))?;
    curl(job, url)?
        .args(["--fail", "--connect-timeout", "30", "--max-filesize"])
        .arg(bytes_max.to_string())
        .arg("--output")
        .arg(part.path())
        .output(job)?;
    let size = part.path().metadata()?.len();
    if size > bytes_max {
        return Err(
            format!("larger than the limit of {bytes_max} bytes (sal.download_size_max)").into()
        );
    }
    if size / 1024 < u64::try_from(min_kb).unwrap_or_default() {
        return Err(format!("too small: {size} bytes are less than {min_kb} KiB").into());
    }
    part.persist(to).map_err(|failed| failed.error)?;
    Ok(())
}

fn file_name(url: &str) -> CallResult<&str> {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let path = path.split_once("://").map_or(path, |(_, rest)| rest);
    match path.split_once('/').and_then(|(_, path)| path.rsplit('/').next()) {
        Some(name) if !name.is_empty() && name != ".." && name != "." => Ok(name),
        _ => Err("the URL has no file name".into()),
    }
}
