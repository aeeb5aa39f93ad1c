//! This machine: the configuration, the kernel, the script types, the disks.

use std::path::{Path, PathBuf};

use nix::sys::statvfs::statvfs;

use super::super::stage::stage_of;
use super::super::{Global, check};
use super::finding::{DoctorFinding, FindingArea};
use crate::artifacts::ContentFolder;
use crate::config::{Config, SecretFiles, format_size};
use crate::engine::process::folder_of_jobs;
use crate::sandbox::Support;

const MACHINE: FindingArea = FindingArea::Machine;
const FREE_BYTES_MIN: u64 = 256 << 20;
const FREE_FILES_MIN: u64 = 10_000;

pub(super) fn configuration(global: &Global) -> Result<(&Config, DoctorFinding), DoctorFinding> {
    let wrong = |text: String| DoctorFinding::error(MACHINE, text, "mend it, then run hero check");
    let config = global.config().map_err(|error| wrong(error.message))?;
    if let Err(error) = check::check_access(config, global, None) {
        let remedy = "give the file to the group hero: chgrp hero FILE; chmod g+r FILE";
        return Err(DoctorFinding::error(MACHINE, error.message, remedy));
    }
    let version = env!("CARGO_PKG_VERSION");
    let text = format!("hero {version}, and its configuration is valid");
    Ok((config, DoctorFinding::ok(MACHINE, text)))
}

/// Looks at the kernel, the script types, the periodic jobs and the disks.
pub(super) fn findings(config: &Config, global: &Global) -> Vec<DoctorFinding> {
    let mut findings = vec![sandbox()];
    findings.extend(script_types(config));
    let crontab = config.crontab();
    for note in check::cron_notes(config, &crontab) {
        let remedy = "name one that hero notify list has, or add its table";
        findings.push(DoctorFinding::warning(MACHINE, note, remedy));
    }
    for problem in crontab.problems {
        let remedy = "its periodic jobs do not fire until it is mended; check it with hero check";
        findings.push(DoctorFinding::error(MACHINE, problem.to_string(), remedy));
    }
    let artifacts = config.job.artifacts.clone().map(ContentFolder::new);
    if let Some(problem) = artifacts.as_ref().and_then(ContentFolder::problem) {
        let remedy = "until it is mended, files of jobs that are too large for Redis are not kept";
        findings.push(DoctorFinding::error(MACHINE, problem, remedy));
    }
    let mut folders: Vec<(&str, PathBuf)> = match stage_of(global.file()) {
        Some((stage, jobs)) => {
            vec![("the folders of jobs", jobs), ("redis, the units and their sockets", stage)]
        }
        None => vec![
            ("the folders of jobs", folder_of_jobs()),
            ("the units", "/var/lib/hero".into()),
            ("sockets and processes", "/run".into()),
            ("the file of Redis", "/var/lib/redis".into()),
            ("the file of Redis", "/var/lib/valkey".into()),
        ],
    };
    folders.push(("logs", config.job.log_dir.clone()));
    folders.push(("compiled scripts and packages", config.job.cache_dir.clone()));
    folders.extend(artifacts.iter().map(|folder| ("files of jobs", folder.dir().to_owned())));
    let reader = check::reader(global, None).ok().flatten();
    for problem in SecretFiles::of(config, reader.as_ref()).problems {
        let remedy = "jobs cannot use it until then; hero check says the same";
        findings.push(DoctorFinding::warning(MACHINE, problem, remedy));
    }
    findings.extend(folders.iter().filter_map(|(what, folder)| disk(what, folder)));
    findings
}

fn sandbox() -> DoctorFinding {
    let support = Support::of_this_kernel();
    match (support.landlock, support.seccomp) {
        (0, _) => DoctorFinding::warning(
            MACHINE,
            "the kernel has no Landlock, so scripts in processes do not run in a sandbox",
            "use Linux 5.13 or later with `landlock` among lsm= of its command line (Debian 12 has both)",
        ),
        (_, false) => DoctorFinding::warning(
            MACHINE,
            "system calls cannot be filtered (seccomp), so the sandbox of scripts is weaker",
            "use a kernel with CONFIG_SECCOMP_FILTER; a container must allow seccomp(2)",
        ),
        (version, true) => {
            let level = support.level();
            let text = format!("sandbox: {} (Landlock {version}, seccomp)", level.as_str());
            match support.reach() {
                Some(reach) => DoctorFinding::note(MACHINE, format!("{text}: {reach}")),
                None => DoctorFinding::ok(MACHINE, text),
            }
        }
    }
}

/// A type that cannot run here is worth knowing: another machine may serve it.
fn script_types(config: &Config) -> Vec<DoctorFinding> {
    let types = check::availability(config);
    let (can, cannot): (Vec<_>, Vec<_>) = types.into_iter().partition(|(_, no)| no.is_none());
    let mut findings = Vec::new();
    if !can.is_empty() {
        let names: Vec<&str> = can.iter().map(|(name, _)| name.as_str()).collect();
        findings.push(DoctorFinding::ok(MACHINE, format!("can run: {}", names.join(", "))));
    }
    for (name, unavailable) in cannot {
        findings.push(DoctorFinding::note(MACHINE, check::said(&name, unavailable.as_deref())));
    }
    findings
}

/// A folder without room is a warning; a missing folder is used by no unit here.
pub(super) fn disk(what: &str, folder: &Path) -> Option<DoctorFinding> {
    let disk = statvfs(folder).ok()?;
    #[allow(clippy::useless_conversion, reason = "their types differ between processors")]
    let (bytes, files, all_files) = (
        u64::from(disk.blocks_available()).saturating_mul(disk.fragment_size().into()),
        u64::from(disk.files_available()),
        u64::from(disk.files()),
    );
    let free = format_size(bytes >> 20 << 20);
    // Some file systems count no files.
    let lacks_files = all_files > 0 && files < FREE_FILES_MIN;
    if bytes >= FREE_BYTES_MIN && !lacks_files {
        return Some(DoctorFinding::ok(
            MACHINE,
            format!("{}: {free} free for {what}", folder.display()),
        ));
    }
    let text = if lacks_files {
        format!("{}: {files} more files fit, for {what}", folder.display())
    } else {
        format!("{}: only {free} free for {what}", folder.display())
    };
    Some(DoctorFinding::warning(MACHINE, text, "make room, or mount a larger file system there"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::doctor::finding::FindingState;

    #[test]
    fn folder_with_room_is_ok_and_a_missing_one_is_not_looked_at() {
        let found = disk("tests", Path::new("/dev/shm")).or_else(|| disk("tests", Path::new("/")));
        assert!(found.is_some_and(|found| found.text.contains("free for tests")));
        assert_eq!(disk("tests", Path::new("/no/such/folder")), None);
    }

    #[test]
    fn type_that_cannot_run_is_a_note_with_its_reason() {
        let text = "[type.qq]\nengine = \"command\"\ncommand = [\"no-such-qq\", \"{script}\"]\n";
        let config = Config::from_toml("hero.toml".as_ref(), text).expect("legal");
        let found = script_types(&config);
        assert!(found.iter().any(|of| of.state == FindingState::Note
            && of.text == "qq: not available: no no-such-qq in PATH"));
        assert!(found[0].text.contains("osis"), "{found:?}");
    }
}
