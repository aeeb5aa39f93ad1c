//! The keys of jobs that were messages of RabbitMQ. A scope is a tag and a vhost.

use super::spell;

spell! {
    /// List: one entry while there is something to answer, for the brokers that wait.
    amqp_bell(scope: &str) = "meta:amqp:ended:@{scope}";

    /// Hash: when the brokers of each node, or of all (`*`), were asked to end, in microseconds.
    amqp_shutdown(scope: &str) = "meta:amqp:shutdown:{scope}";

    /// Hash: the number of log events that wait in the spool of each unit, by `{unit}@{machine}`.
    amqp_spool(scope: &str) = "meta:amqp:spool:{scope}";

    /// Hash: the state of each broker, by `{unit}@{machine}`: the time in microseconds, and JSON.
    amqp_brokers(scope: &str) = "meta:amqp:brokers:{scope}";

    /// List: the repeats of a message that are answered with it, JSON. `chain` names all its attempts.
    amqp_repeats(scope: &str, chain: &str) = "meta:amqp:repeats:{scope}:{chain}";

    /// String: the digest of a message that has changed objects, and the results of its changes.
    amqp_done(mark: &str) = "meta:amqp:done:{mark}";
}
