//! The files of the secrets as the actors of this machine will find them.

use std::fs::{self, DirEntry};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use toml::Value;

use super::files::reason;
use super::readable::FileReader;
use super::schema::Config;
use super::secrets::{SECRET_SIZE_MAX, SecretsConfig};
use crate::proto::job::SecretName;
use crate::proto::units::format_size;

const FILES_MAX: usize = 1000;

/// The secrets of this machine, and what is wrong with them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SecretFiles {
    pub names: Vec<String>,
    /// The reasons why jobs cannot use others, each with its remedy.
    pub problems: Vec<String>,
}

impl SecretFiles {
    /// Looks at the folder of the secrets; no value is read. `reader` is the user of the actors, if it is not
    /// the one who calls. A file that a key of the configuration names, such as `notify.NAME.secret_file`, is no secret of jobs.
    pub fn of(config: &Config, reader: Option<&FileReader>) -> Self {
        let table = config.to_table().unwrap_or_default();
        let (named, config) = (named_files("", &Value::Table(table)), &config.secrets);
        let (folder, mut found) = (config.dir.as_path(), Self::default());
        match fs::read_dir(folder) {
            Ok(entries) => {
                found.problems.extend(fault_of_folder(folder, reader));
                let mut owners = vec![nix::unistd::geteuid().as_raw()];
                owners.extend(reader.map(FileReader::uid));
                let is_of_jobs = |entry: &DirEntry| {
                    let is_named = named.contains(&canonical(&entry.path()));
                    !is_named || config.allow.keys().any(|name| entry.file_name() == name.as_str())
                };
                for entry in entries.take(FILES_MAX).flatten().filter(is_of_jobs) {
                    found.add(&entry, config, reader, &owners);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                let (folder, why) = (folder.display(), reason(&error));
                found.problems.push(format!("cannot list the secrets in {folder}: {why}"));
                return found;
            }
        }
        for name in config.allow.keys() {
            let file = folder.join(name.as_str());
            if fs::symlink_metadata(&file).is_err() {
                found.problems.push(format!(
                    "secret {name}: {} does not exist: write it, unless it is a systemd credential of \
                     the units",
                    file.display()
                ));
            }
        }
        found.names.sort();
        found.problems.sort();
        found
    }

    fn add(
        &mut self,
        entry: &DirEntry,
        config: &SecretsConfig,
        reader: Option<&FileReader>,
        owners: &[u32],
    ) {
        let name = entry.file_name().to_string_lossy().into_owned();
        let shown = format!("secret {}", name.escape_debug());
        let fault = match name.parse::<SecretName>() {
            Err(error) => Some(format!("its name is not legal: {error}")),
            Ok(name) if !config.allow.contains_key(&name) => {
                Some(format!("no job may use it: add [secrets.allow.\"{name}\"] to hero.toml"))
            }
            Ok(_) => fault_of_file(&entry.path(), reader, owners),
        };
        match fault {
            None => self.names.push(name),
            Some(fault) => self.problems.push(format!("{shown}: {fault}")),
        }
    }
}

/// Returns the files that the keys `…_file` of the configuration name, of a value with its key.
fn named_files(key: &str, value: &Value) -> Vec<PathBuf> {
    match value {
        Value::String(path) if key.ends_with("_file") => vec![canonical(Path::new(path))],
        Value::Table(members) => {
            members.iter().flat_map(|(key, value)| named_files(key, value)).collect()
        }
        Value::Array(values) => values.iter().flat_map(|value| named_files(key, value)).collect(),
        _ => Vec::new(),
    }
}

/// Returns a path without links, as far as it exists.
fn canonical(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

fn fault_of_folder(folder: &Path, reader: Option<&FileReader>) -> Option<String> {
    let mode = fs::metadata(folder).ok()?.mode();
    let shown = folder.display();
    if mode & 0o002 != 0 {
        return Some(format!("others may write in {shown}: chmod o-w {shown}"));
    }
    reader?.obstacle(folder)
}

/// Returns why an actor refuses a file, or why it is no secret.
fn fault_of_file(file: &Path, reader: Option<&FileReader>, owners: &[u32]) -> Option<String> {
    let shown = file.display();
    let data = fs::symlink_metadata(file).ok()?;
    if data.is_symlink() {
        return Some("it is a link: put the file itself there".to_owned());
    }
    if !data.is_file() {
        return Some("it is not a file".to_owned());
    }
    if data.mode() & 0o007 != 0 {
        return Some(format!("others may use it: chmod o-rwx {shown}"));
    }
    if data.len() > SECRET_SIZE_MAX {
        let most = format_size(SECRET_SIZE_MAX);
        return Some(format!("it is larger than the limit of {most}"));
    }
    if data.uid() != 0 && !owners.contains(&data.uid()) {
        return Some(format!("user {} owns it, and may change it: chown root {shown}", data.uid()));
    }
    reader?.obstacle(file)
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn each_secret_that_an_actor_would_refuse_is_named_with_its_remedy() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        for (name, mode, bytes) in [
            ("db", 0o640, 3),
            ("open", 0o644, 3),
            ("unused", 0o600, 3),
            ("hook", 0o600, 3),
            ("broker", 0o600, 3),
            ("large", 0o600, 70_000),
            (".hidden~", 0o600, 3),
            ("sender", 0o600, 3),
        ] {
            fs::write(path(name), "x".repeat(bytes)).expect("written");
            fs::set_permissions(path(name), Permissions::from_mode(mode)).expect("a mode");
        }
        symlink(path("db"), path("link")).expect("linked");
        let allow = ["db", "open", "large", "link", "gone"];
        let allow = allow.map(|name| format!("[secrets.allow.{name}]\ntypes = [\"osis\"]\n"));
        // The secrets of a notification, a webhook and a broker are no secrets of jobs.
        let named = format!(
            "[notify.ops]\njournal = true\nsecret_file = {:?}\n[amqp]\npassword_file = {:?}\n\
             [hook.a]\nverify = \"path\"\nuses = \"a\"\nsecret_file = {:?}\n",
            path("hook"),
            path("broker"),
            path("sender")
        );
        let text = format!("{named}[secrets]\ndir = {:?}\n{}", folder.path(), allow.concat());
        let config = Config::from_toml("h".as_ref(), &text).expect("legal");
        let found = SecretFiles::of(&config, None);
        assert_eq!(found.names, ["db"]);
        for said in [
            "secret open: others may use it: chmod o-rwx ",
            "secret unused: no job may use it: add [secrets.allow.\"unused\"]",
            "secret large: it is larger than the limit of 64KiB",
            "secret .hidden~: its name is not legal",
            "secret link: it is a link",
            "gone does not exist: write it",
        ] {
            assert!(found.problems.iter().any(|of| of.contains(said)), "{said}: {found:?}");
        }
        assert_eq!(found.problems.len(), 6, "{found:?}");
        fs::set_permissions(folder.path(), Permissions::from_mode(0o777)).expect("a mode");
        let found = SecretFiles::of(&config, None);
        assert!(found.problems.iter().any(|of| of.contains("chmod o-w")), "{found:?}");
    }

    #[test]
    fn secret_that_the_user_of_the_actors_cannot_read_is_a_problem() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("db");
        fs::write(&file, "x").expect("written");
        fs::set_permissions(&file, Permissions::from_mode(0o600)).expect("a mode");
        let nobody = FileReader::of("nobody").expect("every system has one");
        let text = format!(
            "[secrets]\ndir = {:?}\n[secrets.allow.db]\ntypes = [\"osis\"]\n",
            folder.path()
        );
        let config = Config::from_toml("h".as_ref(), &text).expect("legal");
        let found = SecretFiles::of(&config, Some(&nobody));
        let said = "secret db: user nobody cannot ";
        assert!(found.problems.iter().any(|of| of.starts_with(said)), "{found:?}");
        let mut missing = Config::default();
        missing.secrets.dir = folder.path().join("none");
        assert_eq!(SecretFiles::of(&missing, None), SecretFiles::default());
    }
}
