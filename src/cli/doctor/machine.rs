//! This machine: the configuration, the kernel, the script types, the disks.

use std::path::{Path, PathBuf};

use nix::sys::statvfs::{FsFlags, statvfs};

use super::super::stage::stage_of;
use super::super::{Global, check};
use super::{DoctorFinding, FindingArea};
use crate::artifacts::ContentFolder;
use crate::config::{Config, SecretFiles, format_size};
use crate::engine::process::folder_of_jobs;
use crate::sandbox::Support;
use crate::view::has_systemd;

const MACHINE: FindingArea = FindingArea::Machine;
const FREE_BYTES_MIN: u64 = 256 << 20;
const FREE_FILES_MIN: u64 = 10_000;

pub(super) fn configuration(global: &Global) -> Result<(&Config, DoctorFinding), DoctorFinding> {
    let wrong = |text: String| DoctorFinding::error(MACHINE, text, "mend it, then run hero check");
    let config = global.config().map_err(|error| wrong(error.message))?;
    if let Err(error) = check::check_access(config, global, None) {
        let remedy = "units do not start until then; hero check says the same";
        return Err(DoctorFinding::error(MACHINE, error.message, remedy));
    }
    let version = env!("CARGO_PKG_VERSION");
    let text = format!("hero {version}, and its configuration is valid");
    Ok((config, DoctorFinding::ok(MACHINE, text)))
}

/// Looks at the kernel, the script types, the periodic jobs and the disks.
pub(super) fn findings(config: &Config, global: &Global) -> Vec<DoctorFinding> {
    let (warning, error) = (DoctorFinding::warning, DoctorFinding::error);
    let crontab = config.crontab();
    let artifacts = config.job.artifacts.clone().map(ContentFolder::new);
    let mut findings = vec![sandbox()];
    findings.extend(script_types(config));
    let unknown = check::cron_notes(config, &crontab).into_iter();
    let remedy = "name one that hero notify list has, or add its table";
    findings.extend(unknown.map(|note| warning(MACHINE, note, remedy)));
    let wrong = crontab.problems.iter().map(ToString::to_string);
    let remedy = "its periodic jobs do not fire until it is mended; check it with hero check";
    findings.extend(wrong.map(|problem| error(MACHINE, problem, remedy)));
    let unfit = artifacts.as_ref().and_then(ContentFolder::problem);
    let remedy = "until it is mended, files of jobs that are too large for Redis are not kept";
    findings.extend(unfit.map(|problem| error(MACHINE, problem, remedy)));
    let mut folders: Vec<(&str, PathBuf)> = match stage_of(global.file()) {
        Some((stage, jobs)) => {
            vec![("the folders of jobs", jobs), ("redis, the units and their sockets", stage)]
        }
        None => vec![
            ("the units", "/var/lib/hero".into()),
            ("sockets and processes", "/run".into()),
            ("the file of Redis", "/var/lib/redis".into()),
            ("the file of Redis", "/var/lib/valkey".into()),
        ],
    };
    if !has_systemd() {
        // A unit of systemd has a folder of its own.
        folders.push(("the folders of jobs", folder_of_jobs()));
    }
    folders.push(("logs", config.job.log_dir.clone()));
    folders.push(("compiled scripts and packages", config.job.cache_dir.clone()));
    folders.extend(artifacts.iter().map(|folder| ("files of jobs", folder.dir().to_owned())));
    let reader = check::reader(global, None).ok().flatten();
    let unreadable = SecretFiles::of(config, reader.as_ref()).problems.into_iter();
    let remedy = "jobs cannot use it until then; hero check says the same";
    findings.extend(unreadable.map(|problem| warning(MACHINE, problem, remedy)));
    let disk_of =
        |(what, folder): &(&str, PathBuf)| disk(what, folder, &folder.display().to_string());
    findings.extend(folders.iter().filter_map(disk_of));
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

/// A folder without room is a warning, and so is one that nobody can write; a missing folder is used by no unit here. `shown`
/// is its name for people.
pub(super) fn disk(what: &str, folder: &Path, shown: &str) -> Option<DoctorFinding> {
    let disk = statvfs(folder).ok()?;
    if disk.flags().contains(FsFlags::ST_RDONLY) {
        let text = format!("{shown}: its file system is read-only, for {what}");
        let remedy = "the kernel does this after a fault of the disk: journalctl -k -p err; then repair it, or remount it";
        return Some(DoctorFinding::error(MACHINE, text, remedy));
    }
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
        return Some(DoctorFinding::ok(MACHINE, format!("{shown}: {free} free for {what}")));
    }
    let text = if lacks_files {
        format!("{shown}: {files} more files fit, for {what}")
    } else {
        format!("{shown}: only {free} free for {what}")
    };
    Some(DoctorFinding::warning(MACHINE, text, "make room, or mount a larger file system there"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::doctor::FindingState;

    #[test]
    fn folder_with_room_is_ok_and_a_missing_one_is_not_looked_at() {
        let of = |folder: &str| disk("tests", Path::new(folder), folder);
        let found = of("/dev/shm").or_else(|| of("/"));
        assert!(found.is_some_and(|found| found.text.contains("free for tests")));
        assert_eq!(of("/no/such/folder"), None);
    }

    #[test]
    fn read_only_file_system_is_an_error() {
        let found = disk("tests", Path::new("/sys"), "/sys");
        let is_read_only = statvfs("/sys").is_ok_and(|of| of.flags().contains(FsFlags::ST_RDONLY));
        let found = found.expect("a file system");
        assert_eq!(found.text.contains("its file system is read-only"), is_read_only, "{found:?}");
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
