//! RabbitMQ, and what brokers serve.

mod builtins;
mod logs;
mod relational;
