//! `[amqp.logs]`: the records of the template `Logger`.

use std::path::PathBuf;
use std::time::Duration;

use crate::config::config_error::{Fault, KeyPath};
use crate::config::key_row::{KIB, TEN_YEARS, TIB};
use crate::config::osis::OsisConfig;
use crate::config::toml_table::toml_table;
use crate::config::units::{duration, size};
use crate::proto::object::{Context, ObjectType};

/// The type of the objects that are log records.
const COLLECTION: &str = "msLogs";
const INDEXED: [&str; 4] = ["time", "level", "root", "chain"];

toml_table! {
    /// Log records: the messages of the key `log` and of the template `Logger`.
    pub struct LogsConfig in "amqp.logs" {
        /// The context of the objects that they are stored as, of the type `msLogs`.
        context: String = "logs".to_owned() => Text;
        /// The most records; beyond that the oldest are deleted.
        records_max: u64 = 1_000_000 => Number(1, 1_000_000_000_000);
        /// The age at which records are deleted; `0s`: never.
        keep: Duration as "duration" = Duration::from_hours(30 * 24) => Duration(0, TEN_YEARS);
        /// The folder for log events of brokers that RabbitMQ rejects or cannot be given. Each unit has a folder in it,
        /// and publishes its events once RabbitMQ takes them.
        spool_dir: PathBuf = PathBuf::from("/var/lib/hero/spool") => Folder;
        /// The most bytes of the folder of a unit; beyond that the oldest events are lost.
        spool_size_max: u64 as "size" = 64 << 20 => Size(64 * KIB, TIB);
    }
}

impl LogsConfig {
    pub fn collection() -> Option<ObjectType> {
        COLLECTION.parse().ok()
    }

    /// Declares the indexes of the collection. Supervisors remove those that no configuration declares.
    pub fn declare(&self, osis: &mut OsisConfig) {
        if let Some(collection) = Self::collection() {
            let fields = INDEXED.iter().filter_map(|field| field.parse().ok());
            osis.index.entry(collection).or_default().extend(fields);
        }
    }

    /// Returns the bounds and indexes of the collection.
    pub fn objects(&self, osis: &OsisConfig) -> OsisConfig {
        let mut objects = OsisConfig {
            object_size_max: osis.object_size_max,
            objects_max: self.records_max,
            ..OsisConfig::default()
        };
        self.declare(&mut objects);
        objects
    }

    pub(crate) fn check(&self) -> Result<(), Fault> {
        if self.context.parse::<Context>().is_err() {
            let message = format!("must have at most {} bytes", Context::TEXT_BYTES_MAX);
            return KeyPath::of(&["amqp", "logs"]).wrong("context", message);
        }
        Ok(())
    }
}
