//! The keys of `[[amqp.route]]` and `[amqp.relational.table.TEMPLATE]`.

use crate::config::key_row::{TEN_YEARS, key_table};

key_table! {
    /// The routes of messages: who serves which. The first route that takes a message wins; without one, the key
    /// decides. A route has a type with a script or a script_file, uses, or a builtin.
    ///
    ///     amqp.route = [
    ///         { key = "rec.*", operation = "write", template = "bill", type = "python", group = "io", script_file = "/etc/hero/bill.py", timeout = "10s", ack = "end" },
    ///         { key = "adm", type = "osis", script = "INPUTS.message" },
    ///         { key = "adm", operation = "deploy", uses = "deploy@3" },
    ///         { key = "log", broker = "adminGraphBroker", builtin = "journal" },
    ///     ]
    ROUTE = "amqp.route", list;

    /// The pattern of the routing key: `*` is one word, `#` any number of words. `#` by default.
    key: Text;

    /// The operation and the template that the message must have; empty for any.
    operation: Text;
    template: Text;

    /// The broker of the matrix that the route is for; any without one.
    broker: OneOf(&[
        "adminBrokerIn", "adminBrokerOut", "adminGraphBroker", "adminLogsBroker", "adminSyslogBroker", "cBroker",
        "mBroker", "rBroker", "sBroker", "uBroker", "wBroker", "whBroker",
    ]);

    /// The part of Hero that answers, in place of a job.
    builtin: OneOf(&["ping", "objects", "logger", "journal", "relational", "tell"]);

    /// The script type, group and timeout of the job, and an expression over labels of actors in place of a group.
    type: Text;
    group: Text;
    r#where: Text;
    timeout: Duration(0, TEN_YEARS);

    /// The text of the script, or its file. The message is its input `message`.
    script: Text;
    script_file: File;

    /// The published script of the job, in place of its type and script: `NAME@3`, or `NAME` for its latest version. The data of a
    /// message are the parameters, checked as the script declares them.
    uses: Text;

    /// `handoff`, by default: a message is acknowledged once its job is stored. `end`: once it has ended; `timeout`
    /// must be below `consumer_timeout`.
    ack: OneOf(&["handoff", "end"]);
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
