//! The keys of jobs that were messages of RabbitMQ. A scope is a tag and a vhost.

use super::Keys;

impl Keys {
    /// Sorted set: ids of ended jobs whose messages are not answered yet, by the time in microseconds
    /// when a broker may answer.
    pub fn amqp_ended(&self, scope: &str) -> String {
        self.key(format_args!("meta:amqp:ended:{scope}"))
    }

    /// List: one entry while there is something to answer, for the brokers that wait.
    pub fn amqp_bell(&self, scope: &str) -> String {
        self.key(format_args!("meta:amqp:ended:@{scope}"))
    }

    /// Hash: when the brokers of each node, or of all (`*`), were told to end, in microseconds.
    pub fn amqp_shutdown(&self, scope: &str) -> String {
        self.key(format_args!("meta:amqp:shutdown:{scope}"))
    }

    /// Hash: the number of log events that wait in the spool of each unit, by `{unit}@{machine}`.
    pub fn amqp_spool(&self, scope: &str) -> String {
        self.key(format_args!("meta:amqp:spool:{scope}"))
    }

    /// Hash: the state of each broker, by `{unit}@{machine}`: the time in microseconds, and JSON.
    pub fn amqp_brokers(&self, scope: &str) -> String {
        self.key(format_args!("meta:amqp:brokers:{scope}"))
    }

    /// List: the repeats of a message that are answered with it, JSON. `chain` names all its attempts.
    pub fn amqp_repeats(&self, scope: &str, chain: &str) -> String {
        self.key(format_args!("meta:amqp:repeats:{scope}:{chain}"))
    }

    /// String: the digest of a message that has changed objects, and the results of its changes.
    pub fn amqp_done(&self, mark: &str) -> String {
        self.key(format_args!("meta:amqp:done:{mark}"))
    }
}
