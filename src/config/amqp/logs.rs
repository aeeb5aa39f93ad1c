//! `[amqp.logs]`: the records of the template `Logger`.

use std::path::PathBuf;
use std::time::Duration;

use crate::config::config_error::{Fault, KeyPath};
use crate::config::osis::OsisConfig;
use crate::config::toml_table::toml_table;
use crate::config::units;
use crate::proto::object::{Context, ObjectType};

/// The type of the objects that are log records.
const COLLECTION: &str = "msLogs";
/// Their indexed fields.
const INDEXED: [&str; 4] = ["time", "level", "root", "chain"];

toml_table! {
    /// `[amqp.logs]`: the collection of log records.
    pub struct LogsConfig {
        /// The context of the objects.
        pub context: String = "logs".to_owned(),
        /// The maximum number of records; beyond that the oldest are deleted.
        pub records_max: u64 = 1_000_000,
        /// Records of this age are deleted; zero for never.
        #[serde(with = "units::duration")]
        pub keep: Duration = Duration::from_hours(30 * 24),
        /// The folder for log events that RabbitMQ cannot be given; each unit has one in it.
        pub spool_dir: PathBuf = PathBuf::from("/var/lib/hero/spool"),
        /// The maximum number of bytes that the folder of a unit has.
        #[serde(with = "units::size")]
        pub spool_size_max: u64 = 64 << 20,
    }
}

impl LogsConfig {
    /// Returns the type of the objects.
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
        let key = |name| KeyPath::of(&["amqp", "logs", name]);
        if self.context.parse::<Context>().is_err() {
            let message = format!("must have at most {} bytes", Context::TEXT_BYTES_MAX);
            return Err(Fault::new(key("context"), message));
        }
        Ok(())
    }
}
