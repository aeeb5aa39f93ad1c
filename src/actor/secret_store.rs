//! The secrets of this machine: files, which jobs ask for by name and the configuration allows them.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::config::{SECRET_SIZE_MAX, SecretsConfig, format_size};
use crate::engine::SecretValues;
use crate::error::reason;
use crate::proto::job::{InvalidJob, JobSpec, SecretName, SecretUse};
use crate::proto::json_text::value_of_file;
use crate::proto::target::ActorId;

/// The start of the name of a systemd credential that is a secret of jobs: the unit may have others.
const CREDENTIAL: &str = "secret.";

/// The secrets that jobs of one actor may use.
#[derive(Debug, Clone)]
pub(super) struct SecretStore {
    config: SecretsConfig,
    actor: ActorId,
    /// The folder of the credentials of this unit.
    credentials: Option<PathBuf>,
}

impl SecretStore {
    pub(super) fn new(config: &SecretsConfig, actor: &ActorId) -> Self {
        let credentials = std::env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from);
        Self { config: config.clone(), actor: actor.clone(), credentials }
    }

    /// Reads the secrets that a job asks for.
    ///
    /// # Errors
    /// [`InvalidJob`] names the first that is not allowed or cannot be read, and what to do.
    pub(super) fn of(&self, job: &JobSpec) -> Result<SecretValues, InvalidJob> {
        let mut values = SecretValues::default();
        for used in &job.secrets {
            let name = used.name();
            let wrong = |why: String| InvalidJob::new("secrets", format!("`{name}`: {why}"));
            self.check_rule(used, &job.caller_id).map_err(wrong)?;
            let content = self.read(name).map_err(wrong)?;
            if let SecretUse::File(_) = used {
                if let Ok(text) = std::str::from_utf8(&content) {
                    values.by_name.insert(name.to_string(), text.to_owned());
                }
                values.files.insert(name.to_string(), content);
                continue;
            }
            let text = String::from_utf8(value_of_file(&content).to_vec())
                .ok()
                .filter(|text| !text.contains('\0'));
            let text = text.ok_or_else(|| {
                wrong(format!("is not text, as a variable needs: use file:{name}"))
            })?;
            values.by_name.insert(name.to_string(), text.clone());
            if let SecretUse::Variable { variable, .. } = used {
                values.variables.insert(variable.clone(), text);
            }
        }
        Ok(values)
    }

    fn check_rule(&self, used: &SecretUse, caller: &str) -> Result<(), String> {
        let ActorId { script_type, group, .. } = &self.actor;
        let name = used.name();
        let table = format!("[secrets.allow.{}]", quoted(name));
        match self.config.allow.get(name) {
            Some(rule) if rule.allows(script_type, group, caller) => {
                let needs_file = rule.file_only.contains(script_type);
                if needs_file && !matches!(used, SecretUse::File(_)) {
                    return Err(format!(
                        "is given to scripts of the type {script_type} as a file only ({table}): use file:{name}"
                    ));
                }
                Ok(())
            }
            Some(_) => {
                let shown: String = caller.chars().take(80).flat_map(char::escape_debug).collect();
                let caller = if shown.is_empty() {
                    "no caller".to_owned()
                } else {
                    format!("caller {shown}")
                };
                Err(format!(
                    "is not allowed for this job: type {script_type}, group {group}, {caller}: \
                     {table} in hero.toml of the actor's machine names others"
                ))
            }
            None => Err(format!(
                "is not allowed for any job: add {table} with types = [\"{script_type}\"] to \
                 hero.toml of the actor's machine, and reload the actors"
            )),
        }
    }

    /// Reads a secret: a credential of the unit, or a file of the folder.
    fn read(&self, name: &SecretName) -> Result<Vec<u8>, String> {
        if let Some(folder) = &self.credentials {
            let file = folder.join(format!("{CREDENTIAL}{name}"));
            match read_bounded(&file) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                read => return read.map_err(|error| unreadable(&file, &error)),
            }
        }
        let folder = &self.config.dir;
        let file = folder.join(name.as_str());
        if fs::metadata(folder).is_ok_and(|data| data.permissions().mode() & 0o002 != 0) {
            let folder = folder.display();
            return Err(format!("others may write in {folder}: chmod o-w {folder}"));
        }
        read_bounded(&file).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                let file = file.display();
                format!("does not exist on the actor's machine: write it to {file} (secrets.dir)")
            }
            _ => unreadable(&file, &error),
        })
    }
}

fn quoted(name: &SecretName) -> String {
    if name.as_str().contains('.') { format!("\"{name}\"") } else { name.to_string() }
}

fn unreadable(file: &Path, error: &io::Error) -> String {
    format!("cannot read {}: {}", file.display(), reason(error))
}

/// Reads a file that is no link, that others cannot read, and that is within the bound.
fn read_bounded(file: &Path) -> io::Result<Vec<u8>> {
    // A pipe without a writer would block.
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(file);
    let opened: File = opened.map_err(|error| match error.raw_os_error() {
        Some(libc::ELOOP) => io::Error::other("it is a link: put the file itself there"),
        _ => error,
    })?;
    let data = opened.metadata()?;
    if !data.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    if data.permissions().mode() & 0o007 != 0 {
        let file = file.display();
        return Err(io::Error::other(format!("others may use it: chmod o-rwx {file}")));
    }
    let mut content = Vec::new();
    opened.take(SECRET_SIZE_MAX + 1).read_to_end(&mut content)?;
    if content.len() as u64 > SECRET_SIZE_MAX {
        let most = format_size(SECRET_SIZE_MAX);
        return Err(io::Error::other(format!("it is larger than the limit of {most}")));
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::symlink;

    use super::*;

    struct World {
        folder: tempfile::TempDir,
        store: SecretStore,
    }

    impl World {
        fn new() -> Self {
            let folder = tempfile::tempdir().expect("a folder");
            fs::set_permissions(folder.path(), Permissions::from_mode(0o750)).expect("a mode");
            let text = format!(
                "[secrets]\ndir = {:?}\n[secrets.allow.db]\ntypes = [\"python\"]\n\
                 callers = [\"me\"]\n[secrets.allow.\"tls.key\"]\ntypes = [\"python\"]\n\
                 [secrets.allow.disk]\ntypes = [\"python\"]\nfile_only = [\"python\", \"bash\"]\n",
                folder.path()
            );
            let config = crate::config::Config::from_toml("h".as_ref(), &text).expect("legal");
            let actor = "python:default:1".parse().expect("legal");
            let store = SecretStore { config: config.secrets, actor, credentials: None };
            Self { folder, store }
        }

        fn write(&self, name: &str, content: &[u8], mode: u32) {
            let file = self.folder.path().join(name);
            let _ = fs::remove_file(&file);
            fs::write(&file, content).expect("written");
            fs::set_permissions(&file, Permissions::from_mode(mode)).expect("a mode");
        }

        fn ask(&self, secret: &str, caller: &str) -> Result<SecretValues, String> {
            let secrets = vec![secret.parse().expect("legal")];
            let job = JobSpec { secrets, caller_id: caller.to_owned(), ..JobSpec::new("1") };
            self.store.of(&job).map_err(|error| error.to_string())
        }

        #[track_caller]
        fn refuses(&self, secret: &str, caller: &str, why: &str) {
            let error = self.ask(secret, caller).expect_err(secret);
            assert!(error.starts_with("invalid job: secrets `") && error.contains(why), "{error}");
        }
    }

    #[test]
    fn secret_is_given_to_the_jobs_that_may_use_it() {
        let world = World::new();
        world.write("db", b"top\nsecret\n", 0o640);
        let values = world.ask("PASSWORD=db", "me").expect("allowed");
        assert_eq!(values.variables["PASSWORD"], "top\nsecret");
        assert_eq!(values.by_name["db"], "top\nsecret");
        assert_eq!(format!("{values:?}"), "{\"db\"}");
        world.refuses("db", "you", "caller you: [secrets.allow.db] in hero.toml");
        world.refuses("other", "me", "add [secrets.allow.other] with types = [\"python\"]");
        world.refuses("file:tls.key", "", "does not exist on the actor's machine");
        world.write("tls.key", b"\xff\n", 0o600);
        assert_eq!(world.ask("file:tls.key", "").expect("allowed").files["tls.key"], b"\xff\n");
        world.refuses("KEY=tls.key", "", "use file:tls.key");
        world.write("disk", b"x", 0o600);
        world.refuses("KEY=disk", "", "as a file only ([secrets.allow.disk]): use file:disk");
        world.refuses("disk", "", "use file:disk");
        assert_eq!(world.ask("file:disk", "").expect("allowed").files["disk"], b"x");
    }

    #[test]
    fn unsafe_files_are_refused_with_what_to_do() {
        let world = World::new();
        for mode in [0o644, 0o602, 0o601] {
            world.write("db", b"x", mode);
            world.refuses("db", "me", "others may use it: chmod o-rwx ");
        }
        world.write("db", &vec![b'x'; (64 << 10) + 1], 0o600);
        world.refuses("db", "me", "larger than the limit of 64KiB");
        world.write("elsewhere", b"x", 0o600);
        let db = world.folder.path().join("db");
        fs::remove_file(&db).expect("removed");
        symlink(world.folder.path().join("elsewhere"), &db).expect("a link");
        world.refuses("db", "me", "it is a link");
        fs::remove_file(&db).expect("removed");
        fs::create_dir(&db).expect("a folder");
        world.refuses("db", "me", "it is not a file");
        fs::set_permissions(world.folder.path(), Permissions::from_mode(0o757)).expect("a mode");
        world.refuses("db", "me", "others may write in ");
    }

    #[test]
    fn credentials_of_the_unit_need_the_prefix_of_secrets() {
        let mut world = World::new();
        let credentials = tempfile::tempdir().expect("a folder");
        let write = |name: &str| {
            let file = credentials.path().join(name);
            fs::write(&file, name).expect("written");
            fs::set_permissions(&file, Permissions::from_mode(0o400)).expect("a mode");
        };
        write("secret.db");
        write("tls.key");
        world.store.credentials = Some(credentials.path().to_owned());
        assert_eq!(world.ask("db", "me").expect("a credential").by_name["db"], "secret.db");
        world.refuses("file:tls.key", "", "does not exist");
    }
}
