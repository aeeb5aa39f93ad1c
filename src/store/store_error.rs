//! The errors of the store, told apart where a caller acts on them.

use std::str::FromStr;

use redis::{ErrorKind, RedisError, ServerErrorKind};

use crate::proto::units::readable_size;

pub(crate) type Result<T, E = StoreError> = std::result::Result<T, E>;

/// The reason why an operation on the store failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The settings cannot be used: a bad URL or password file.
    #[error("redis settings: {0}")]
    Settings(String),
    /// Redis does not answer, or not in time. Worth a retry.
    #[error("redis at {address} cannot be reached: {reason}")]
    Unreachable {
        /// The address, without a password.
        address: String,
        reason: String,
        /// True if Redis may have run the command, and only its answer is missing.
        sent: bool,
    },
    /// Redis cannot serve now: loading, a read-only replica, out of memory. Worth a retry.
    #[error("redis at {address} does not serve: {reason}")]
    NotServing { address: String, reason: String },
    /// Redis denies access: a wrong password, or a command or key that the ACL forbids.
    #[error("redis at {address} refuses{}: {reason}", if is_about_login(reason) { " the login" } else { "" })]
    NotPermitted { address: String, reason: String },
    /// Redis closes the connection at a call of this size, and serves others.
    #[error(
        "{doing}: redis at {address} takes no call of {}: {BOUNDS}; raise that, or make it smaller", shown_bytes(*bytes)
    )]
    Oversized { address: String, doing: &'static str, bytes: usize },
    /// Redis returned another error, or an unexpected answer.
    #[error("{doing}: {reason}")]
    Failed { doing: &'static str, reason: String },
}

/// The settings of Redis that bound a call.
const BOUNDS: &str =
    "it is larger than proto-max-bulk-len or client-query-buffer-limit of redis allows";

/// The operation before any command is sent.
pub(super) const CONNECTING: &str = "connecting";

/// The codes of errors when Redis rejects every write for the time being.
const REJECTS_WRITES: [&str; 4] = ["MISCONF", "NOREPLICAS", "READONLY", "MASTERDOWN"];

/// The reason of an error of a Redis that has reached its maxmemory.
const MEMORY_FULL: &str = "its memory is full; raise its maxmemory, or delete jobs";

impl StoreError {
    /// Returns true if the same call can succeed later without a change here.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::NotServing { .. })
    }

    /// Returns true if no call succeeds until Redis changes: it is away, does not serve, or refuses the login.
    pub fn is_outage(&self) -> bool {
        self.is_transient() || self.is_login_refused()
    }

    pub fn is_login_refused(&self) -> bool {
        matches!(self, Self::NotPermitted { reason, .. } if is_about_login(reason))
    }

    /// Returns true if the access list of Redis refuses a command or a key.
    pub fn is_access_refused(&self) -> bool {
        match self {
            Self::NotPermitted { .. } => !self.is_login_refused(),
            // Of a script, in the words of Redis 7.0.
            Self::Failed { reason, .. } => reason.contains("The user executing the script can't"),
            _ => false,
        }
    }

    /// Returns true if Redis wants a password, and got none.
    pub fn lacks_password(&self) -> bool {
        matches!(self, Self::NotPermitted { reason, .. } if reason.contains("NOAUTH"))
    }

    /// Adds why the login could not be read again.
    pub(super) fn because(self, unreadable: &Self) -> Self {
        match (self, unreadable) {
            (Self::NotPermitted { address, reason }, Self::Settings(why)) => {
                Self::NotPermitted { address, reason: format!("{reason}; {why}") }
            }
            (refused, _) => refused,
        }
    }

    /// Replaces the reason of a lost connection by the one that Redis gives to the next. What was sent stays in doubt.
    pub(super) fn explained_by(self, cause: Self) -> Self {
        match (self, cause) {
            (
                Self::Unreachable { address, sent, .. },
                Self::NotServing { reason, .. } | Self::NotPermitted { reason, .. },
            ) => Self::Unreachable { address, reason, sent },
            (lost, _) => lost,
        }
    }

    /// Returns true if Redis has reached its maxmemory; scripts that begin with a write without memory still run.
    pub(super) fn is_memory_full(&self) -> bool {
        matches!(self, Self::NotServing { reason, .. } if reason == MEMORY_FULL)
    }

    pub(super) fn new(address: &str, doing: &'static str, error: &RedisError) -> Self {
        let address = address.to_owned();
        let reason = describe(error);
        let not_serving = |reason: &str| {
            let said = code_within(reason).or(error.code()).and_then(in_our_words);
            Self::not_serving(&address, said.unwrap_or(reason).to_owned())
        };
        if reason.contains(TOO_MANY_CLIENTS) {
            return Self::too_many_clients(&address);
        }
        if doing == CONNECTING && error.is_timeout() {
            return Self::silent(&address, false);
        }
        // So Redis answers a long command before a login.
        if reason.contains("Protocol error: unauthenticated") {
            let reason = "NOAUTH Authentication required".to_owned();
            return Self::NotPermitted { address, reason };
        }
        match error.kind() {
            ErrorKind::AuthenticationFailed | ErrorKind::Server(ServerErrorKind::NoPerm) => {
                Self::NotPermitted { address, reason }
            }
            ErrorKind::InvalidClientConfig => Self::Settings(reason),
            _ if has_not_run(error) || serves_elsewhere(error) => not_serving(&reason),
            ErrorKind::Parse if is_of_other_form(&reason) => {
                Self::failed(doing, told_form(&reason))
            }
            _ if is_connection_lost(error) => {
                Self::Unreachable { address, reason, sent: doing != CONNECTING }
            }
            _ => match code_within(&reason).or(error.code()) {
                Some("OOM") => Self::NotServing { address, reason: MEMORY_FULL.to_owned() },
                // A blocked call to a master that became a replica is "UNBLOCKED".
                Some("BUSY" | "LOADING" | "UNBLOCKED") => not_serving(&reason),
                Some(code) if REJECTS_WRITES.contains(&code) => not_serving(&reason),
                Some("WRONGPASS" | "NOAUTH" | "NOPERM") => Self::NotPermitted { address, reason },
                _ if is_about_login(&reason) => Self::NotPermitted { address, reason },
                _ => Self::Failed { doing, reason },
            },
        }
    }

    /// Returns the error in what a script answers for one of several jobs or lists, if Redis rejects
    /// every write: then it has written none of them, and the call is worth a retry.
    pub(super) fn in_answer(address: &str, answer: &str) -> Option<Self> {
        let is = |code: &str| {
            let rest = answer.strip_prefix(code);
            // Redis before 7.0 puts the place in the script before it.
            rest.is_some_and(|rest| rest.starts_with(' '))
                || answer.contains(&format!(": -{code} "))
        };
        let code = REJECTS_WRITES.into_iter().find(|code| is(code))?;
        Some(Self::not_serving(address, in_our_words(code).unwrap_or(answer).to_owned()))
    }

    /// The error of a Redis that does not answer in time. `sent` as in [`StoreError::Unreachable`].
    pub fn silent(address: &str, sent: bool) -> Self {
        Self::unreachable(address, "it does not answer".to_owned(), sent)
    }

    pub(super) fn unreachable(address: &str, reason: String, sent: bool) -> Self {
        Self::Unreachable { address: address.to_owned(), reason, sent }
    }

    pub(super) fn not_serving(address: &str, reason: String) -> Self {
        Self::NotServing { address: address.to_owned(), reason }
    }

    /// The error of a Redis that has as many connections as it takes.
    pub(super) fn too_many_clients(address: &str) -> Self {
        let reason = "it refuses connections, as it has as many as its maxclients permits; close some, or raise \
                      maxclients";
        Self::not_serving(address, reason.to_owned())
    }

    pub(super) fn oversized(address: &str, doing: &'static str, bytes: usize) -> Self {
        Self::Oversized { address: address.to_owned(), doing, bytes }
    }

    /// Adds that the call may be too large: Redis closed the connection at it, and serves others.
    pub(super) fn of_large_call(self, bytes: usize) -> Self {
        let Self::Unreachable { address, reason, sent } = self else { return self };
        let size = shown_bytes(bytes);
        let reason = format!(
            "{reason}; it closed the connection at a call of {size} and serves others: perhaps {BOUNDS}"
        );
        Self::Unreachable { address, reason, sent }
    }

    /// Parses a part of an answer of Redis.
    pub(super) fn or_parsed<T: FromStr>(doing: &'static str, answer: &str) -> Result<T, Self> {
        answer.parse().map_err(|_| Self::unexpected(doing))
    }

    pub(super) fn unexpected(doing: &'static str) -> Self {
        Self::failed(doing, "unexpected answer of redis")
    }

    pub fn failed(doing: &'static str, reason: impl Into<String>) -> Self {
        Self::Failed { doing, reason: reason.into() }
    }
}

/// The words of Redis to one connection too many, before it closes it.
pub(super) const TOO_MANY_CLIENTS: &str = "max number of clients reached";

/// The words of Redis to a password while it wants none.
const WANTS_NONE: &str = "without any password configured";

/// Returns true if the reason is a refused login.
pub fn is_about_login(reason: &str) -> bool {
    // The last are the words of the client library.
    let refusals = ["NOAUTH", "WRONGPASS", WANTS_NONE, "authentication failed"];
    refusals.iter().any(|words| reason.contains(words))
}

/// Returns what an error code of a Redis that does not serve means. Redis's own words end with the id of a script.
fn in_our_words(code: &str) -> Option<&'static str> {
    Some(match code {
        "READONLY" => "it is a replica and refuses writes (READONLY)",
        "UNBLOCKED" => "it became a replica while a call waited (UNBLOCKED)",
        "LOADING" => "it is loading its data (LOADING)",
        "MISCONF" => {
            "it cannot write its data to disk and refuses writes (MISCONF); see its log and its disk"
        }
        "NOREPLICAS" => "it has too few replicas and refuses writes (NOREPLICAS)",
        "MASTERDOWN" => "it is a replica without its primary (MASTERDOWN)",
        "BUSY" => "it runs a script that takes long (BUSY)",
        "CLUSTERDOWN" => "its cluster has slots without a node (CLUSTERDOWN)",
        _ => return None,
    })
}

/// Returns true if the connection must be replaced: it is lost, has no login that Redis wants, or leads to a replica or a Redis that
/// is not ready, while another may serve at the same address or be named by a sentinel or a cluster.
pub(super) fn is_connection_useless(error: &RedisError) -> bool {
    serves_elsewhere(error)
        || is_oversized(error)
        || has_not_run(error)
        || is_connection_lost(error)
        || is_without_login(error)
}

fn serves_elsewhere(error: &RedisError) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Server(
            ServerErrorKind::ReadOnly | ServerErrorKind::BusyLoading | ServerErrorKind::MasterDown
        )
    )
}

/// Returns true if Redis wants a login that the connection has not made: it began before Redis wanted one.
fn is_without_login(error: &RedisError) -> bool {
    error.code() == Some("NOAUTH") || describe(error).contains("Protocol error: unauthenticated")
}

/// Returns true if Redis refused a call as too large; mostly it closes the connection before its answer is read.
pub(super) fn is_oversized(error: &RedisError) -> bool {
    describe(error).contains("Protocol error: invalid bulk length")
}

/// Returns true if the connection was closed, and not merely silent.
pub(super) fn has_closed_connection(error: &RedisError) -> bool {
    is_connection_lost(error) && !error.is_timeout()
}

/// Returns true if a cluster refused a call before it began: the slot is elsewhere, moves, or has no owner.
pub(super) fn has_not_run(error: &RedisError) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Server(
            ServerErrorKind::Moved
                | ServerErrorKind::Ask
                | ServerErrorKind::TryAgain
                | ServerErrorKind::ClusterDown
        )
    )
}

fn is_connection_lost(error: &RedisError) -> bool {
    if error.kind() == ErrorKind::Parse && describe(error).starts_with(NO_TEXT) {
        return false;
    }
    error.is_io_error()
        || error.is_timeout()
        || error.is_connection_dropped()
        || error.is_unrecoverable_error()
}

/// The words of the client library for an answer that is not UTF-8.
const NO_TEXT: &str = "Cannot convert from UTF-8";

/// Returns true if Redis answered, with another value than Hero writes there: another program wrote it. A mistake in
/// the protocol itself has none of these words.
fn is_of_other_form(reason: &str) -> bool {
    reason.starts_with(NO_TEXT) || reason.contains("(value was ")
}

/// Returns the reason of an answer of another form, as a person understands it.
fn told_form(reason: &str) -> String {
    let what = if reason.starts_with(NO_TEXT) { "is not UTF-8" } else { "has another form" };
    format!("a value in redis {what}: {reason}")
}

/// The code of an error within a script, in the text before Redis 7.0, or that discarded a transaction.
fn code_within(reason: &str) -> Option<&str> {
    let in_script = || Some(reason.split_once("Error running script")?.1.split_once(": -")?.1);
    let in_transaction = || Some(reason.split_once("discarded because of: ")?.1);
    in_script().or_else(in_transaction)?.split(' ').next()
}

/// The message of Redis, with its code, in one line of bounded length.
pub(super) fn describe(error: &RedisError) -> String {
    if error.is_timeout() {
        return "no answer in time, though what was asked may be done".to_owned();
    }
    let text = match (error.code(), error.detail()) {
        (Some(code), Some(detail)) if !detail.starts_with(code) => format!("{code} {detail}"),
        (_, Some(detail)) => detail.to_owned(),
        _ => error.to_string(),
    };
    let text: String =
        text.chars().take(500).map(|c| if c.is_control() { ' ' } else { c }).collect();
    match tls_hint(&text) {
        Some(hint) => format!("{text}: {hint}"),
        None => text,
    }
}

/// A hint on a TLS failure; the library has no error kinds for it.
fn tls_hint(text: &str) -> Option<&'static str> {
    if text.contains("invalid peer certificate") {
        Some("check redis.tls_ca_file, and that the certificate names the host of redis.url")
    } else if text.contains("CertificateRequired") || text.contains("alert: UnknownCA") {
        Some("redis requires a client certificate; set redis.tls_cert_file and redis.tls_key_file")
    } else {
        None
    }
}

fn shown_bytes(bytes: usize) -> String {
    readable_size(u64::try_from(bytes).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_memory_within_a_script_is_transient_in_old_redis_too() {
        let text = "Error running script (call to f_1): @user_script:7: @user_script: 7: -OOM \
                    command not allowed when used memory > 'maxmemory'.";
        let error = redis::make_extension_error("ERR".to_owned(), Some(text.to_owned()));
        let error = StoreError::new("here", "claiming jobs", &error);
        assert!(matches!(&error, StoreError::NotServing { .. }), "{error:?}");
        assert_eq!(code_within("ERR Error running script (call to f_1): no table"), None);
    }

    #[test]
    fn value_of_another_program_is_no_outage() {
        let bytes = redis::Value::BulkString(vec![0xff, 0xfe]);
        let no_text = redis::from_redis_value::<String>(bytes).expect_err("no text");
        let no_text = RedisError::from(no_text);
        assert!(!is_connection_useless(&no_text));
        let no_number = redis::from_redis_value::<u64>(redis::Value::Array(Vec::new()));
        let no_number = RedisError::from(no_number.expect_err("no number"));
        for (error, what) in [(no_text, "is not UTF-8"), (no_number, "has another form")] {
            let error = StoreError::new("here", "listing limits", &error);
            assert!(matches!(&error, StoreError::Failed { .. }) && !error.is_outage(), "{error:?}");
            let told = format!("listing limits: a value in redis {what}: ");
            assert!(error.to_string().starts_with(&told), "{error}");
        }
    }

    #[test]
    fn full_memory_at_the_end_of_a_transaction_is_transient() {
        let error = |why: &str| {
            let text = format!("Transaction discarded because of: {why}");
            let error = redis::make_extension_error("EXECABORT".to_owned(), Some(text));
            StoreError::new("here", "storing", &error)
        };
        let full = error("OOM command not allowed when used memory > 'maxmemory'.");
        assert!(full.is_transient() && full.is_memory_full(), "{full:?}");
        let replica = error("READONLY You can't write against a read only replica.");
        assert!(replica.is_transient() && !replica.is_memory_full(), "{replica:?}");
        assert!(!error("previous errors.").is_transient());
    }

    #[test]
    fn redis_that_does_not_serve_is_reported_without_the_id_of_a_script() {
        let told = |code: &str, text: &str| {
            let error = redis::make_extension_error(code.to_owned(), Some(text.to_owned()));
            StoreError::new("here", "claiming jobs", &error).to_string()
        };
        let script = "script: f3cd3c3a1fd0f46a9c0df9e2ea0ec4c0ad0e9b0f, on @user_script:9.";
        for (code, words) in [
            ("READONLY", "it is a replica and refuses writes"),
            ("MISCONF", "it cannot write its data to disk"),
            ("UNBLOCKED", "it became a replica while a call waited"),
            ("LOADING", "it is loading its data"),
        ] {
            let said = told(code, &format!("{code} Redis says this {script}"));
            assert!(said.contains(words) && said.contains(&format!("({code})")), "{said}");
            assert!(!said.contains("script"), "{said}");
        }
        let refused = redis::make_extension_error("NOAUTH".to_owned(), Some("needed".to_owned()));
        let refused = StoreError::new("here", "claiming jobs", &refused);
        assert!(refused.is_outage() && !refused.is_transient(), "{refused:?}");
    }

    #[test]
    fn job_that_redis_could_not_write_is_distinguished_from_one_that_is_wrong() {
        for text in ["READONLY You can't write", "user_script:9: -MISCONF Redis is configured to"] {
            let error = StoreError::in_answer("here", text).expect("redis does not serve");
            assert!(error.is_transient(), "{error:?}");
        }
        for text in ["ok", "lost", "READONLYNESS x", "ERR index out of range"] {
            assert_eq!(StoreError::in_answer("here", text), None);
        }
    }
}
