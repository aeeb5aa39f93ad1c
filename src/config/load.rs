//! Loads the configuration from its files, and writes it as text.

use std::path::{Path, PathBuf};

use toml::Table;
use toml::value::Value;

use super::check::check;
use super::config_error::{ConfigError, Fault, FilePlace, explain};
use super::connection::RedisConfig;
use super::files::{DEFAULT_FILE, read_all};
use super::schema::Config;
use super::source::Source;
use super::types::{self, TypeLayers};
use super::user::{self, UserFolders};
use crate::proto::text::sha256;

impl Config {
    /// Reads a file and its drop-ins, `FILE.d/*.toml` in the order of their names; of a link the drop-ins of its
    /// target come first. Tables are merged key by key; any other value of a later file replaces the value of an
    /// earlier one.
    ///
    /// Without an explicit file it reads [`DEFAULT_FILE`], which may be missing. Below the file of the user who
    /// runs this process, [`UserFolders::file`], are the defaults of a user.
    ///
    /// # Errors
    /// [`ConfigError::Unreadable`] if a file cannot be read, is larger than 1 MiB, or is explicit
    /// and missing; [`ConfigError::Wrong`] with file, line and column of a mistake.
    pub fn load(explicit: Option<&Path>) -> Result<Self, ConfigError> {
        Self::load_from(explicit.unwrap_or(Path::new(DEFAULT_FILE)), explicit.is_none())
    }

    pub(super) fn load_from(file: &Path, may_be_missing: bool) -> Result<Self, ConfigError> {
        let mut texts = read_all(file, may_be_missing)?;
        if let Some(user) = UserFolders::of_this_process().filter(|user| user.file() == file) {
            let defaults = user.defaults(user::own_group().as_deref());
            texts.insert(0, (PathBuf::from("the defaults of a user"), defaults));
        }
        Self::merged(file, &texts)
    }

    /// Reads a text as the content of a file, without drop-ins.
    pub fn from_toml(file: &Path, text: &str) -> Result<Self, ConfigError> {
        Self::merged(file, &[(file.to_owned(), text.to_owned())])
    }

    /// Writes the configuration in force as a file that reads back to the same. A password in the
    /// url is replaced by `***`.
    ///
    /// # Errors
    /// [`ConfigError::Unwritable`] if a program has set a value that no file can have, such as a
    /// path that is not UTF-8.
    pub fn to_toml(&self) -> Result<String, ConfigError> {
        Ok(toml::to_string(self)?)
    }

    /// Returns what [`Config::to_toml`] writes.
    pub fn to_table(&self) -> Result<Table, ConfigError> {
        Ok(Table::try_from(self)?)
    }

    /// Returns a digest of the settings, which compares a running unit with the files. The login
    /// of Redis is not in it: each unit may have its own.
    pub fn digest(&self) -> String {
        const CHARS: usize = 16;
        let of_login = RedisConfig { username: None, password_file: None, ..self.redis.clone() };
        let text = Self { redis: of_login, ..self.clone() }.to_toml().unwrap_or_default();
        sha256(text)[..CHARS].to_owned()
    }

    /// Writes what differs from the defaults, as a file that reads back to the same.
    pub fn to_toml_of_changes(&self) -> Result<String, ConfigError> {
        let changes = differences(self.to_table()?, &Self::default().to_table()?);
        let text = toml::to_string(&changes)?;
        let reads_back =
            Self::from_toml(Path::new(DEFAULT_FILE), &text).is_ok_and(|it| it == *self);
        if reads_back { Ok(text) } else { self.to_toml() }
    }

    /// Reads each text by itself first, so that a mistake has the line of its own file.
    fn merged(main: &Path, texts: &[(PathBuf, String)]) -> Result<Self, ConfigError> {
        let mut sources = Vec::with_capacity(texts.len());
        let mut table = Table::new();
        for (file, text) in texts {
            let source = Source::parse(file, text)?;
            source.read::<Self>()?;
            merge(&mut table, source.read()?);
            sources.push(source);
        }
        let whole = || FilePlace { file: main.to_owned(), position: None };
        // Cannot fail after each file was read by itself; if it does, the error has no line.
        let (read, layers) = read(table).map_err(|error| ConfigError::Wrong {
            place: whole(),
            message: explain(error.message(), None),
        })?;
        resolve(read, layers).map_err(|fault| {
            let place = blame(&fault, &sources).unwrap_or_else(whole);
            ConfigError::Wrong { place, message: fault.message }
        })
    }
}

/// Returns the configuration without the types of the files, and the tables of these.
fn read(mut table: Table) -> Result<(Config, TypeLayers), toml::de::Error> {
    let layers = table.remove("type").map_or(Ok(TypeLayers::new()), Value::try_into)?;
    Ok((table.try_into()?, layers))
}

fn resolve(mut config: Config, layers: TypeLayers) -> Result<Config, Fault> {
    config.types = types::resolve(layers)?;
    check(&config)?;
    config.job.artifacts = config.artifacts.folder(&config.redis.namespace);
    // Supervisors remove an index that they do not find declared.
    if !config.amqp.url.is_empty() {
        config.amqp.logs.declare(&mut config.osis);
    }
    Ok(config)
}

/// Finds the place of a fault: the first of its keys that a file sets, in the last file that does;
/// else the end of the path to the first key.
fn blame(fault: &Fault, sources: &[Source<'_>]) -> Option<FilePlace> {
    let deepest = |key| {
        let found = sources.iter().map(|source| source.find(key));
        // The last of equals: the file that is merged last.
        found.max_by_key(|(steps, _)| *steps)
    };
    let set = fault.keys.iter().find_map(|key| {
        deepest(key).filter(|(steps, _)| *steps == key.0.len()).map(|(_, place)| place)
    });
    set.or_else(|| fault.keys.first().and_then(deepest).map(|(_, place)| place))
}

/// Returns the keys of a table that are missing in another, or differ there.
fn differences(table: Table, from: &Table) -> Table {
    let differs = |(key, value): (String, Value)| match (from.get(&key), value) {
        (Some(Value::Table(from)), Value::Table(table)) => {
            let table = differences(table, from);
            (!table.is_empty()).then_some((key, Value::Table(table)))
        }
        (Some(from), value) if *from == value => None,
        (_, value) => Some((key, value)),
    };
    table.into_iter().filter_map(differs).collect()
}

/// Merges one table over another. The parser bounds the nesting of tables, and so this recursion.
fn merge(base: &mut Table, over: Table) {
    for (key, value) in over {
        match (base.get_mut(&key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => merge(below, above),
            (_, value) => {
                base.insert(key, value);
            }
        }
    }
}
