//! The keys of `[amqp.logs]` and `[amqp.relational]`.

use super::row::{HOUR, KIB, MIB, TEN_YEARS, TIB, key_table};

key_table! {
    /// Log records: the messages of the key `log` and of the template `Logger`.
    LOGS = "amqp.logs";

    /// The context of the objects that they are stored as, of the type `msLogs`.
    context: Text;

    /// The most records; beyond that the oldest are deleted.
    records_max: Number(1, 1_000_000_000_000);

    /// The age at which records are deleted; `0s`: never.
    keep: Duration(0, TEN_YEARS);

    /// The folder for log events of brokers that RabbitMQ rejects or cannot be given. Each unit has a folder in it,
    /// and publishes its events once RabbitMQ takes them.
    spool_dir: Folder;

    /// The most bytes of the folder of a unit; beyond that the oldest events are lost.
    spool_size_max: Size(64 * KIB, TIB);
}

key_table! {
    /// A MariaDB for the messages `rel.*`. docs/relational.md has the operations.
    RELATIONAL = "amqp.relational";

    /// Where: `mysql://USER@HOST:PORT/DATABASE`, `mysqls` for TLS with a verified certificate, or
    /// `mysql+unix://USER@/PATH?db=DATABASE`. It has no password. Empty: no MariaDB.
    ///
    ///     amqp.relational.url = "mysql://hero@127.0.0.1:3306/beds"
    url: Text;

    /// The file with the password. Without one, the systemd credential `relational-password` if the unit has one.
    password_file: File;

    /// The certificate authority of MariaDB, in PEM; by default the authorities of the system.
    tls_ca_file: File;

    /// The most connections of one process.
    connections: Number(1, 1000);

    /// The longest time of one operation, its wait for a connection included.
    timeout: Duration(100, HOUR);

    /// The largest result of one fetch; the rest is on the next page.
    result_size_max: Size(KIB, 64 * MIB);

    /// Table of processed message ids: makes a redelivery harmless.
    ///
    ///     amqp.relational.ledger = "hero_messages"
    ledger: Text;
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
