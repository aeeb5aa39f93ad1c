//! The keys of `[amqp]`.

use super::row::{DAY, KIB, MIB, SECOND, TEN_YEARS, key_table};

key_table! {
    /// RabbitMQ, for units with the role `broker`. docs/amqp.md has the topology and examples.
    AMQP = "amqp", restart;

    /// Where: `amqp://USER@HOST:PORT/VHOST`, or `amqps` for TLS. Without a vhost it is `/`. Empty: no RabbitMQ.
    ///
    ///     amqp.url = "amqp://hero@127.0.0.1:5672/prod"
    url: Text;

    /// The file with the password. Without one, the systemd credential `amqp-password` if the unit has one, else
    /// the password of the url.
    password_file: File;

    /// The certificate authority of RabbitMQ, in PEM; by default the authorities of the system.
    tls_ca_file: File;

    /// The management API, `http://HOST:PORT`, for `hero amqp check`: it lists bindings, and all arguments of a
    /// queue. The login is in the url; its user needs the tag `management`. Empty: none.
    ///
    ///     amqp.management_url = "http://127.0.0.1:15672"
    management_url: Text;

    /// The beginning of the name of every queue. A vhost has one tag: environments that share a RabbitMQ need a
    /// vhost each.
    queue_tag: Text;

    /// `unified`: one queue for all keys. `matrix`: one queue per key, consumed by the brokers of the nodes.
    mode: OneOf(&["unified", "matrix"]);

    /// The node of this machine, in the matrix. The unit `broker-NODE` is of NODE without this key.
    ///
    ///     amqp.node = "admin"
    node: OneOf(&["appServer", "admin", "segundo", "tercero"]);

    /// The consumers of the unified queue.
    dispatchers: Number(1, 64);

    /// In the matrix, the consumers of each queue of a broker, 1 unless given; with 0 the broker does not start.
    /// `adminGraphBroker` needs a route that names it.
    ///
    ///     amqp.brokers = { rBroker = 4, wBroker = 2, cBroker = 0 }
    brokers: Form;

    /// The most messages that one consumer holds. It begins with 16, and takes more while it has free slots for
    /// them.
    prefetch: Number(1, 10_000);

    /// The queues: `classic`, durable on one node of RabbitMQ, or `quorum`, replicated.
    queue_type: OneOf(&["classic", "quorum"]);

    /// The number of redeliveries of a message with a temporary failure.
    max_retries: Number(0, 1000);

    /// The delay before each redelivery; the last one is also the delay of all further ones.
    retry_delays: Durations(10, DAY);

    /// The largest body of a message.
    message_size_max: Size(KIB, 64 * MIB);

    /// The most messages in the queue of log events; RabbitMQ rejects more. 0: no bound.
    log_length_max: Number(0, (1 << 32) - 1);

    /// The longest time that RabbitMQ waits for an acknowledgement, as it is configured there.
    consumer_timeout: Duration(SECOND, DAY);

    /// The time between two looks at the queues and bindings; removed ones are declared again.
    topology_interval: Duration(SECOND, TEN_YEARS);

    /// The routing keys that accept the operation `shutdown`.
    shutdown_keys: Texts;

    /// The context of the objects that messages read and write.
    context: Text;

    /// Publishes a log event for each message that is served.
    trace_on: Flag;

    /// Deletes the messages of its queues when a broker starts, and the log records when one starts that stores
    /// them, for tags that begin with `dev_`.
    purge_on_start: Flag;
}

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

    /// The script type, group and timeout of the job.
    type: Text;
    group: Text;
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
