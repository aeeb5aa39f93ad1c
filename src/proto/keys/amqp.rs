//! The keys of jobs that were messages of RabbitMQ. A scope is a tag and a vhost.

use super::Keys;

impl Keys {
    /// Sorted set: ids of ended jobs whose messages are not answered yet, by the time in microseconds
    /// from which a broker may answer.
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

    /// String: why a message became a dead letter.
    pub fn amqp_reason(&self, scope: &str, message_id: &str) -> String {
        self.key(format_args!("meta:amqp:reason:{scope}:{message_id}"))
    }
}
