//! The keys of `[trace]`.

use super::row::key_table;

key_table! {
    /// Spans of jobs, for a receiver of OpenTelemetry.
    TRACE = "trace";

    /// The URL of a receiver of OTLP over HTTP, such as `http://127.0.0.1:4318`: all daemons, and the commands that
    /// submit jobs, send their spans to its path `/v1/traces`, as JSON. Empty, the default: none are made. With `https://`
    /// the machine must trust the authority of its certificate; `SSL_CERT_FILE` in the environment names a file of others.
    endpoint: Text, restart;

    /// The share of traces that are recorded, from 0 to 1. A job with a `traceparent` is recorded if that says so.
    sample: Decimal(1), restart;

    /// A file of headers for the requests to the receiver, such as its login: one on each line, `NAME: VALUE`. Empty lines
    /// and lines that start with `#` are comments. The user of the units must be able to read it. Empty: no headers.
    headers_file: File, restart;
}
