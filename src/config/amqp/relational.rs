//! `[amqp.relational]`: the MariaDB behind `rel.*`, and the declared tables, one per template.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::config::config_error::{ConfigError, Fault, KeyPath};
use crate::config::connection::{Password, empty_is_none, password_of};
use crate::config::key_row::{HOUR, KIB, MIB, key_table};
use crate::config::secret_url::secret_url;
use crate::config::toml_table::toml_table;
use crate::config::units::{duration, size};
use crate::proto::target::{IllegalName, is_identifier, is_word, name};

const TCP_SCHEME: &str = "mysql://";
const TLS_SCHEME: &str = "mysqls://";
const UNIX_SCHEME: &str = "mysql+unix://";
const FORM: &str =
    "the form is mysql://USER@HOST:PORT/DATABASE, or mysql+unix://USER@/PATH?db=DATABASE";
const PORT: u16 = 3306;
/// The limits of declared tables, and of columns of one.
const TABLES_MAX: usize = 256;
const COLUMNS_MAX: usize = 256;
const KEY_MAX: usize = 16;

name!(
    /// The name of a table or column. It can be written between backticks as it is.
    SqlName,
    "name of a table or column",
    "a letter or _, then at most 63 of A-Z, a-z, 0-9 and _",
    |name| is_identifier(name, 64)
);

toml_table! {
    /// A MariaDB for the messages `rel.*`. docs/relational.md has the operations.
    pub struct RelationalConfig in "amqp.relational" {
        /// Where: `mysql://USER@HOST:PORT/DATABASE`, `mysqls` for TLS with a verified certificate, or
        /// `mysql+unix://USER@/PATH?db=DATABASE`. It has no password. Empty: no MariaDB.
        ///
        ///     amqp.relational.url = "mysql://hero@127.0.0.1:3306/beds"
        url: RelationalUrl = RelationalUrl::default() => Text;
        /// The file with the password. Without one, the systemd credential `relational-password` if the unit has one.
        password_file: Option<PathBuf> as "empty_is_none" = None => File;
        /// The certificate authority of MariaDB, in PEM; by default the authorities of the system.
        tls_ca_file: Option<PathBuf> as "empty_is_none" = None => File;
        /// The most connections of one process.
        connections: usize = 4 => Number(1, 1000);
        /// The longest time of one operation, its wait for a connection included.
        timeout: Duration as "duration" = Duration::from_secs(10) => Duration(100, HOUR);
        /// The largest result of one fetch; the rest is on the next page.
        result_size_max: u64 as "size" = 1 << 20 => Size(KIB, 64 * MIB);
        /// Table of processed message ids: makes a redelivery harmless.
        ///
        ///     amqp.relational.ledger = "hero_messages"
        ledger: Option<SqlName> = None => Text;
    } with {
        /// The declared tables, by template.
        #[serde(rename = "table", skip_serializing_if = "BTreeMap::is_empty")]
        pub tables: BTreeMap<String, TableConfig> = BTreeMap::new(),
    }
}

key_table! {
    /// A table, which exists in the database. A message names it by its template.
    ///
    ///     amqp.relational.table.Person = { name = "people", key = ["id"], columns = { id = "int", name = "text" } }
    RELATIONAL_TABLE = "amqp.relational.table.TEMPLATE";

    /// Its name in the database.
    name: Text;

    /// The columns of its primary key.
    key: Texts;

    /// Its columns with their types: `int`, `float`, `decimal`, `bool`, `text`, `bytes`, `time`, `date` or `json`.
    columns: Form;
}

/// `[amqp.relational.table.TEMPLATE]`: one table, which exists in the database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with `key` and `columns`")]
pub struct TableConfig {
    pub name: SqlName,
    pub key: Vec<SqlName>,
    pub columns: BTreeMap<SqlName, ColumnType>,
}

/// The type of a column: the JSON values that it takes and gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ColumnType {
    Int,
    /// A number; SQL's DOUBLE.
    Float,
    /// A number with exact decimals, as text.
    Decimal,
    /// True or false; SQL's BOOLEAN.
    Bool,
    Text,
    /// Bytes, as text in base64.
    Bytes,
    /// A time in RFC 3339; SQL's DATETIME or TIMESTAMP, in UTC.
    Time,
    /// A date, `2026-01-31`.
    Date,
    Json,
}

impl RelationalConfig {
    pub fn is_on(&self) -> bool {
        !self.url.0.is_empty()
    }

    /// Reads the password from `password_file`, else from the systemd credential
    /// `relational-password`; `None` without either.
    pub fn password(&self) -> Result<Option<Password>, ConfigError> {
        let what = "the password of MariaDB from";
        password_of(what, self.password_file.as_deref(), "relational-password")
    }

    pub(crate) fn check(&self) -> Result<(), Fault> {
        let own = KeyPath::of(&["amqp", "relational"]);
        if !self.is_on() {
            let is_alone = self.tables.is_empty();
            return if is_alone { Ok(()) } else { own.wrong("table", "needs amqp.relational.url") };
        }
        let server = self.url.server().map_err(|reason| Fault::new(own.then("url"), reason))?;
        if self.tls_ca_file.is_some() && !server.tls {
            let message = "is for TLS, but amqp.relational.url does not begin with mysqls";
            return own.wrong("tls_ca_file", message);
        }
        if self.tables.len() > TABLES_MAX {
            return own.wrong("table", format!("must have at most {TABLES_MAX} tables"));
        }
        let mut tables = self.tables.iter();
        tables.try_for_each(|(template, table)| {
            table.check(&own.then("table").then(template.as_str()))
        })
    }
}

impl TableConfig {
    fn check(&self, table: &KeyPath) -> Result<(), Fault> {
        if !(1..=COLUMNS_MAX).contains(&self.columns.len()) {
            return table.wrong("columns", format!("must have from 1 to {COLUMNS_MAX} columns"));
        }
        if !(1..=KEY_MAX).contains(&self.key.len()) {
            return table.wrong("key", format!("must have from 1 to {KEY_MAX} columns"));
        }
        match self.key.iter().find(|column| !self.columns.contains_key(*column)) {
            Some(column) => table.wrong("key", format!("has {column}, which is not in `columns`")),
            None => Ok(()),
        }
    }
}

/// The address of MariaDB. A password in it is rejected, and never printed.
#[derive(Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(transparent)]
pub struct RelationalUrl(String);
secret_url!(RelationalUrl);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelationalServer {
    pub user: String,
    pub address: RelationalAddress,
    pub database: String,
    /// Set for TLS with a verified certificate.
    pub tls: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RelationalAddress {
    /// Host and port.
    Tcp(String, u16),
    /// The path of a Unix socket.
    Unix(PathBuf),
}

impl RelationalUrl {
    /// Parses the url.
    ///
    /// # Errors
    /// The mistake, which follows the key in a message and does not repeat the value.
    pub fn server(&self) -> Result<RelationalServer, String> {
        let wrong = |what: &str| format!("{what}: {FORM}");
        let schemes = [(TCP_SCHEME, false), (TLS_SCHEME, true), (UNIX_SCHEME, false)];
        let found = schemes
            .iter()
            .find_map(|(scheme, tls)| Some((*scheme, *tls, self.0.strip_prefix(scheme)?)));
        let (scheme, tls, rest) = found.ok_or_else(|| wrong("has an unknown scheme"))?;
        let (user, rest) = rest.rsplit_once('@').ok_or_else(|| wrong("has no user"))?;
        if user.contains(':') {
            let instead = "put it into the file of amqp.relational.password_file";
            return Err(format!("must have no password: {instead}"));
        }
        let is_plain = |text: &str| is_word(text.as_bytes(), usize::MAX, b"_-.");
        if !is_plain(user) {
            return Err(wrong("has an illegal user"));
        }
        let (address, database) = if scheme == UNIX_SCHEME {
            let parts = rest.split_once("?db=").ok_or_else(|| wrong("has no database"))?;
            let is_path = parts.0.starts_with('/') && !parts.0.contains(['?', '#', '\0']);
            let path = is_path.then(|| RelationalAddress::Unix(parts.0.into()));
            (path, parts.1)
        } else {
            let (host, database) = rest.split_once('/').ok_or_else(|| wrong("has no database"))?;
            let host = crate::config::redis_url::host_and_port(host, PORT);
            (host.map(|(host, port)| RelationalAddress::Tcp(host, port)), database)
        };
        let address = address.ok_or_else(|| wrong("has an illegal address"))?;
        if !is_plain(database) {
            return Err(wrong("has an illegal database"));
        }
        Ok(RelationalServer { user: user.to_owned(), address, database: database.to_owned(), tls })
    }

    /// Returns the url if it is legal, as it has no password then, else `***`.
    pub fn redacted(&self) -> &str {
        if self.0.is_empty() || self.server().is_ok() { &self.0 } else { "***" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn server(url: &str) -> Result<RelationalServer, String> {
        RelationalUrl::from(url).server()
    }

    #[test]
    fn urls_of_mariadb_are_parsed() {
        let of = |address, tls| RelationalServer {
            user: "hero".to_owned(),
            address,
            database: "beds".to_owned(),
            tls,
        };
        let tcp = |host: &str, port| RelationalAddress::Tcp(host.to_owned(), port);
        for (url, expected) in [
            ("mysql://hero@db/beds", of(tcp("db", 3306), false)),
            ("mysqls://hero@[::1]:3307/beds", of(tcp("::1", 3307), true)),
            (
                "mysql+unix://hero@/run/mysqld/mysqld.sock?db=beds",
                of(RelationalAddress::Unix("/run/mysqld/mysqld.sock".into()), false),
            ),
        ] {
            assert_eq!(server(url), Ok(expected), "{url}");
        }
    }

    #[test]
    fn an_illegal_url_is_rejected_and_not_printed() {
        for (url, expected) in [
            ("mysql://hero:hunter2@db/beds", "must have no password"),
            ("mysql://hero@hunter2:x@db/beds", "must have no password"),
            ("postgres://hunter2@db/beds", "unknown scheme"),
            ("mysql://db/hunter2", "has no user"),
            ("mysql://hero@db", "has no database"),
            ("mysql://hero@db:0/beds", "illegal address"),
            ("mysql://hero@db/a`b", "illegal database"),
            ("mysql://he ro@db/beds", "illegal user"),
            ("mysql+unix://hero@run/x?db=beds", "illegal address"),
            ("mysql+unix://hero@/run/x", "has no database"),
        ] {
            let error = server(url).expect_err(url);
            let url = RelationalUrl::from(url);
            assert!(error.contains(expected), "{error}");
            assert!(!format!("{error} {url} {url:?}").contains("hunter2"), "{url}");
        }
    }

    #[test]
    fn a_mistake_in_the_tables_is_rejected_with_its_place() {
        let url = "[amqp.relational]\nurl = \"mysql://hero@db/beds\"\n";
        let table = "[amqp.relational.table.P]\nname = \"p\"\n";
        for (text, expected) in [
            (
                format!("{table}key = [\"id\"]\ncolumns = {{ id = \"int\" }}"),
                "needs amqp.relational.url",
            ),
            (
                format!("{url}{table}key = [\"id\"]\ncolumns = {{ a = \"int\" }}"),
                "5:7: amqp.relational.table.P.key has id, which is not in `columns`",
            ),
            (
                format!("{url}{table}key = []\ncolumns = {{ a = \"int\" }}"),
                "must have from 1 to 16",
            ),
            (format!("{url}{table}key = [\"a\"]\ncolumns = {{}}"), "must have from 1 to 256"),
            (
                format!("{url}{table}key = [\"a\"]\ncolumns = {{ a = \"blob\" }}"),
                "expected one of `int`",
            ),
            (format!("{url}{table}key = [\"a`\"]\ncolumns = {{}}"), "`a`` is not legal"),
            (format!("{url}connections = 0"), "amqp.relational.connections must be"),
            (format!("{url}tls_ca_file = \"/ca.pem\""), "does not begin with mysqls"),
            (format!("{url}password_file = \"secret\""), "must be an absolute path"),
            (
                "amqp.relational.url = \"mysql://hero:x@db/beds\"".to_owned(),
                "1:23: amqp.relational.url",
            ),
        ] {
            let error =
                Config::from_toml("hero.toml".as_ref(), &text).expect_err(&text).to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn supervisors_know_the_indexes_of_log_records_where_there_is_a_rabbitmq() {
        let indexes = |text: &str| {
            let config = Config::from_toml("hero.toml".as_ref(), text).expect("legal");
            let again = Config::from_toml("hero.toml".as_ref(), &config.to_toml().expect("text"));
            assert_eq!(again.as_ref(), Ok(&config));
            let collection = crate::config::LogsConfig::collection().expect("legal");
            config.osis.indexes(&collection).map(ToString::to_string).collect::<Vec<_>>()
        };
        assert!(indexes("").is_empty());
        let declared = indexes("amqp.url = \"amqp://hero@localhost\"");
        assert_eq!(declared, ["chain", "level", "root", "time"]);
    }
}
