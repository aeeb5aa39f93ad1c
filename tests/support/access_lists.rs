//! The access lists that the package ships, as the logins of the tests: each process of the program has that of its role.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const EXAMPLE: &str = include_str!("../../packaging/redis/hero-acl.conf");
const PASSWORD: &str = "secret";

/// Writes the users of the example into a configuration of Redis. Returns its file.
///
/// A server that `REDIS_SERVER` names may be too old for them.
pub(super) fn write(folder: &Path) -> Option<PathBuf> {
    if std::env::var_os("REDIS_SERVER").is_some() {
        return None;
    }
    let users = EXAMPLE.lines().filter(|line| line.starts_with("user "));
    let password = format!(">{PASSWORD}");
    let text: String =
        users.map(|line| line.replace("#SHA256-OF-ITS-PASSWORD", &password) + "\n").collect();
    let file = folder.join("users.conf");
    std::fs::write(&file, text).expect("writing the users");
    std::fs::write(password_file(folder), PASSWORD).expect("writing the password");
    Some(file)
}

fn password_file(folder: &Path) -> PathBuf {
    folder.join("password-of-users")
}

/// Returns the settings of the login for the arguments of a command, if the lists are for what it does: they have the
/// keys of one namespace without older names, and no command that waits for the disk.
pub(super) fn login(
    folder: &Path,
    settings: &BTreeMap<String, String>,
    args: &[&str],
) -> Vec<(String, String)> {
    const OTHERWISE: [&str; 6] = [
        "redis.ack",
        "redis.namespace",
        "redis.shards",
        "redis.username",
        "supervisor.migration",
        "supervisor.rhailib_circles",
    ];
    let file = password_file(folder);
    let is_otherwise = OTHERWISE.iter().any(|key| settings.contains_key(*key));
    if !file.exists() || is_otherwise || args.contains(&"--into") {
        return Vec::new();
    }
    let words: Vec<&str> = args.iter().copied().skip_while(|word| word.starts_with('-')).collect();
    let user = match words.as_slice() {
        ["run", unit, ..] if is_supervisor(settings, unit) => "hero-supervisor",
        ["run", unit, ..] if unit.starts_with("broker") => "hero-client",
        // Tokens are of the API, which a supervisor serves.
        ["token", ..] => "hero-supervisor",
        ["run", ..] => "hero-actor",
        ["backup" | "restore", ..] => "hero-backup",
        ["dev", ..] => return Vec::new(),
        _ => "hero-client",
    };
    vec![
        ("redis.username".to_owned(), format!("{user:?}")),
        ("redis.password_file".to_owned(), format!("{:?}", file.display().to_string())),
    ]
}

fn is_supervisor(settings: &BTreeMap<String, String>, unit: &str) -> bool {
    let role = settings.get(&format!("unit.{unit}.role"));
    unit.starts_with("supervisor") || role.is_some_and(|role| role == "\"supervisor\"")
}
