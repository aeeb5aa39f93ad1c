//! Packages of npm that tests use as clients which share no code with the program.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The SDK of agents; the generator of clients from the document of the API, what its clients need, and the compiler.
const PACKAGES: [&str; 10] = [
    "@modelcontextprotocol/sdk@1.32.2",
    "@open-rpc/generator@1.22.3",
    "@open-rpc/client-js@1.7.1",
    "@open-rpc/meta-schema@1.14.9",
    "@open-rpc/schema-utils-js@2.2.1",
    "lodash@4.17.21",
    "@types/lodash@4.17.20",
    "@types/json-schema@7.0.15",
    "@types/node@20.19.0",
    "typescript@5.9.3",
];

/// Returns a folder whose scripts find the packages; `None` where they cannot be installed. It is made once,
/// and stays in the folder of the build.
pub(crate) fn npm() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    FOLDER.get_or_init(made).as_deref()
}

fn made() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("npm");
    let list = PACKAGES.join(" ");
    let is_made = |folder: &Path| {
        std::fs::read_to_string(folder.join("packages")).is_ok_and(|made| made == list)
    };
    if is_made(&folder) {
        return Some(folder);
    }
    // Another run of the tests sees nothing of it, or all.
    let new = folder.with_extension(std::process::id().to_string());
    std::fs::create_dir_all(&new).ok()?;
    if !install(&new) || std::fs::write(new.join("packages"), list).is_err() {
        let _ = std::fs::remove_dir_all(&new);
        return None;
    }
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::rename(&new, &folder).ok()?;
    Some(folder)
}

/// Returns whether npm reaches its registry with the authorities of the system alone.
#[expect(clippy::disallowed_methods, reason = "tests start the programs they test against")]
pub(crate) fn reaches_registry() -> bool {
    let mut npm = Command::new("/usr/bin/npm");
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("npm-cache");
    npm.args(["view", "ms", "version", "--fetch-retries=0", "--cache"]).arg(cache).env_clear();
    npm.env("PATH", "/usr/bin:/bin");
    npm.env("NODE_EXTRA_CA_CERTS", "/etc/ssl/certs/ca-certificates.crt");
    npm.output().is_ok_and(|done| done.status.success())
}

#[expect(clippy::disallowed_methods, reason = "tests start the programs they test against")]
fn install(folder: &Path) -> bool {
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=0"]);
    let done = npm.args(PACKAGES).current_dir(folder).output();
    done.is_ok_and(|done| done.status.success())
}
