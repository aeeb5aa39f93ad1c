//! The error of a call, as JSON-RPC has it.

use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::artifacts::ArtifactError;
use crate::client::ClientError;
use crate::error::{Error, Exit};
use crate::proto::job::{InvalidJob, JobId};
use crate::proto::object::ObjectError;
use crate::proto::target::{ActorId, IllegalName};
use crate::store::StoreError;

pub(super) type Result<T, E = RpcError> = std::result::Result<T, E>;

/// The codes of errors: JSON-RPC 2.0's, then Hero's own.
pub mod code {
    /// The text is no JSON.
    pub const PARSE: i32 = -32700;
    /// The JSON is no request.
    pub const INVALID_REQUEST: i32 = -32600;
    pub const METHOD_NOT_FOUND: i32 = -32601;
    pub const INVALID_PARAMS: i32 = -32602;
    /// The call failed, for example because Redis cannot be reached.
    pub const INTERNAL: i32 = -32603;
    /// The caller is not known. HTTP answers 401.
    pub const UNAUTHENTICATED: i32 = -32001;
    /// The thing of the call does not exist.
    pub const NOT_FOUND: i32 = -32002;
    /// The caller may not do this. HTTP answers 403.
    pub const NOT_PERMITTED: i32 = -32003;
    /// The state of the thing does not allow it.
    pub const CONFLICT: i32 = -32004;
    /// The job ended in `error`; the message is its error.
    pub const JOB_FAILED: i32 = -32005;
    /// The wait timed out. The job goes on.
    pub const GAVE_UP: i32 = -32006;
}

/// The error of a call.
#[derive(
    Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema, thiserror::Error,
)]
#[error("{message}")]
pub struct RpcError {
    pub code: i32,
    /// A sentence: what was being done, to what, why it failed, what to do.
    pub message: String,
    /// More about it, for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// The exit code of a command that called the method in this process.
    #[serde(skip)]
    pub exit: Option<Exit>,
    /// True if Redis wants a password, and this process has none.
    #[serde(skip)]
    pub lacks_password: bool,
    /// True if the answer of Redis was lost: the call may have changed something.
    #[serde(skip)]
    pub(super) is_in_doubt: bool,
    /// The status of HTTP, if its code does not say it.
    #[serde(skip)]
    pub(super) http: Option<StatusCode>,
}

impl RpcError {
    /// Creates an error without data.
    pub fn new(code: i32, message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            code,
            message,
            data: None,
            exit: None,
            lacks_password: false,
            is_in_doubt: false,
            http: None,
        }
    }

    /// Creates the error of a wrong parameter.
    pub(super) fn wrong(field: &str, message: impl Into<String>) -> Self {
        Self::new(code::INVALID_PARAMS, message).with("field", field)
    }

    /// Answers with another status of HTTP than its code says.
    pub(super) fn over_http(self, status: StatusCode) -> Self {
        Self { http: Some(status), ..self }
    }

    /// Returns the status of HTTP that says the same.
    pub(super) fn status(&self) -> StatusCode {
        if let Some(status) = self.http {
            return status;
        }
        match self.code {
            code::PARSE | code::INVALID_REQUEST | code::INVALID_PARAMS => StatusCode::BAD_REQUEST,
            code::UNAUTHENTICATED => StatusCode::UNAUTHORIZED,
            code::NOT_PERMITTED => StatusCode::FORBIDDEN,
            code::METHOD_NOT_FOUND | code::NOT_FOUND => StatusCode::NOT_FOUND,
            code::CONFLICT => StatusCode::CONFLICT,
            code::JOB_FAILED => StatusCode::UNPROCESSABLE_ENTITY,
            code::GAVE_UP => StatusCode::GATEWAY_TIMEOUT,
            _ if self.data.as_ref().is_some_and(|data| data["retryable"] == true) => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// Adds a member to its data.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        let data = self.data.get_or_insert_with(|| Value::Object(Map::new()));
        if let Some(data) = data.as_object_mut() {
            data.insert(name.to_owned(), value.into());
        }
        self
    }
}

impl From<StoreError> for RpcError {
    fn from(error: StoreError) -> Self {
        ClientError::from(error).into()
    }
}

impl From<ClientError> for RpcError {
    fn from(error: ClientError) -> Self {
        let exit = Some(error.exit());
        let is_in_doubt =
            matches!(error, ClientError::Store(StoreError::Unreachable { sent: true, .. }));
        let lacks_password = matches!(&error, ClientError::Store(error) if error.lacks_password());
        Self { exit, lacks_password, is_in_doubt, ..of_client(error) }
    }
}

fn of_client(error: ClientError) -> RpcError {
    let message = error.to_string();
    let new = |code| RpcError::new(code, message.clone());
    let of_id = |code, id: &JobId| new(code).with("id", id.as_str());
    let of_actor = |code, actor: ActorId| new(code).with("actor", actor.to_string());
    let of_stored = |word, id: &JobId| {
        new(code::INTERNAL).with("retryable", false).with(word, true).with("id", id.as_str())
    };
    let of_prerequisite =
        |id: String| new(code::INVALID_PARAMS).with("field", "prerequisites").with("id", id);
    match error {
        ClientError::Store(error) => new(code::INTERNAL).with("retryable", error.is_transient()),
        ClientError::BrokenQueue(_) => new(code::INTERNAL).with("retryable", false),
        ClientError::Unsure { id, .. } => of_stored("unsure", &id),
        ClientError::Unconfirmed { id, .. } => of_stored("unconfirmed", &id),
        ClientError::Object(error) => error.into(),
        ClientError::Invalid(error) => error.into(),
        ClientError::File(error) => new(code_of_file(&error)),
        ClientError::Name(error) => error.into(),
        ClientError::NoSuchJob(id)
        | ClientError::IsGraph(id)
        | ClientError::NoSuchGraph(id)
        | ClientError::ShortIdNotFound { part: id, .. } => of_id(code::NOT_FOUND, &id),
        ClientError::AmbiguousId { of, part, first, .. } => {
            let found: Vec<String> = first.iter().map(ToString::to_string).collect();
            of_id(code::INVALID_PARAMS, &part).with(&format!("{of}s"), found)
        }
        ClientError::NoMachine(_) | ClientError::NoLiveMachine(_) => new(code::NOT_FOUND),
        ClientError::NoSuchActor(actor) => of_actor(code::NOT_FOUND, actor),
        ClientError::NoPong { actor, .. } => of_actor(code::GAVE_UP, actor),
        ClientError::IdTaken(id) | ClientError::KeyHeld(Some(id)) | ClientError::GraphTaken(id) => {
            of_id(code::CONFLICT, &id)
        }
        ClientError::KeyHeld(None) => new(code::CONFLICT).with("field", "unique_key"),
        ClientError::UnknownPrerequisite(id) => of_prerequisite(id),
        ClientError::NoSuchShard(error) => new(code::INVALID_PARAMS).with("id", error.id()),
        ClientError::PrerequisitesApart { second: id, .. } | ClientError::OtherShard { id, .. } => {
            of_prerequisite(id.to_string())
        }
        ClientError::Refused { place, name, error } => {
            let inner = RpcError::from(*error);
            RpcError { message, ..inner }.with("place", place).with("name", name)
        }
        ClientError::AmbiguousGraphName { .. } => new(code::INVALID_PARAMS),
        ClientError::Cycle(names) => new(code::INVALID_PARAMS).with("cycle", names),
        ClientError::UnknownInGraph { job, prerequisite, .. } => {
            new(code::INVALID_PARAMS).with("name", job).with("prerequisite", prerequisite)
        }
        ClientError::TooMany { most, .. } | ClientError::TooManyOthers { most, .. } => {
            new(code::INVALID_PARAMS).with("most", most)
        }
        ClientError::PausedByRule { .. } | ClientError::Step { .. } => new(code::CONFLICT),
        ClientError::WrongState { id, status, .. } => {
            of_id(code::CONFLICT, &id).with("status", status)
        }
        ClientError::GraphRuns { id, job } => of_id(code::CONFLICT, &id).with("job", job.as_str()),
        ClientError::FailedPrerequisite { id, cause: other }
        | ClientError::LostPrerequisite { id, lost: other } => {
            of_id(code::CONFLICT, &id).with("prerequisite", other.as_str())
        }
        ClientError::NoDeadLetter { id, status } => {
            of_id(code::CONFLICT, &id).with("status", status.as_str())
        }
        ClientError::JobFailed { id, .. } => of_id(code::JOB_FAILED, &id),
        ClientError::GaveUp { id, .. } => of_id(code::GAVE_UP, &id),
    }
}

fn code_of_file(error: &ArtifactError) -> i32 {
    match error {
        ArtifactError::TooLarge { .. } => code::INVALID_PARAMS,
        ArtifactError::Missing { .. } => code::NOT_FOUND,
        _ => code::INTERNAL,
    }
}

impl From<InvalidJob> for RpcError {
    fn from(error: InvalidJob) -> Self {
        // An unknown name stands in the sentence as in code.
        Self::wrong(error.field.trim_matches('`'), error.to_string())
    }
}

impl From<IllegalName> for RpcError {
    fn from(error: IllegalName) -> Self {
        Self::wrong(error.what, error.to_string())
    }
}

impl From<ObjectError> for RpcError {
    fn from(error: ObjectError) -> Self {
        let code = match &error {
            ObjectError::Stale { .. } | ObjectError::Full { .. } | ObjectError::OtherMessage => {
                code::CONFLICT
            }
            ObjectError::TooLarge { .. }
            | ObjectError::TooMuch(_)
            | ObjectError::NotIndexed { .. } => code::INVALID_PARAMS,
            ObjectError::NotPermitted(_) => code::NOT_PERMITTED,
            ObjectError::Building { .. } | ObjectError::Unavailable(_) => {
                return Self::new(code::INTERNAL, error.to_string()).with("retryable", true);
            }
        };
        Self::new(code, error.to_string())
    }
}

/// The error of a function that the command line calls too, by its exit code.
impl From<Error> for RpcError {
    fn from(error: Error) -> Self {
        let exit = Some(error.exit);
        Self { exit, ..of_exit(error) }
    }
}

fn of_exit(error: Error) -> RpcError {
    let code = match error.exit {
        Exit::Usage | Exit::Data => code::INVALID_PARAMS,
        Exit::NotFound => code::NOT_FOUND,
        Exit::NotPermitted => code::NOT_PERMITTED,
        Exit::JobError => code::JOB_FAILED,
        Exit::GaveUp => code::GAVE_UP,
        _ => {
            let retryable = error.exit == Exit::Unavailable;
            return RpcError::new(code::INTERNAL, error.message).with("retryable", retryable);
        }
    };
    RpcError::new(code, error.message)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::proto::job::Job;

    #[test]
    fn field_of_an_unknown_name_is_the_name_alone() {
        let given = Map::from_iter([("scrpt".to_owned(), json!("1"))]);
        let error = RpcError::from(Job::from_json(&given).expect_err("an unknown name"));
        assert_eq!(error.data, Some(json!({ "field": "scrpt" })));
        assert!(error.message.contains("`scrpt` is an unknown name"), "{error}");
    }
}
