//! Pages that say why there is no page.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::client::ClientError;
use crate::error::{Error, Exit};
use crate::rpc::{RpcError, Scope, asking_for_token, code};
use crate::store::StoreError;

/// The reason why there is no page. The layer around all pages writes it as a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PageError {
    pub(super) status: StatusCode,
    pub(super) title: &'static str,
    /// One sentence or two: why, and what to do.
    pub(super) text: String,
    /// The parameter at fault.
    field: Option<String>,
}

/// The answer of a page, or the reason why there is none.
pub(super) type PageResult<T = Response> = Result<T, PageError>;

impl PageError {
    fn new(status: StatusCode, title: &'static str, text: impl Into<String>) -> Self {
        Self { status, title, text: text.into(), field: None }
    }

    /// The page or the thing does not exist. `text` is a sentence.
    pub(super) fn not_found(text: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "Not found", text)
    }

    /// The request is wrong. `text` is a sentence.
    pub(super) fn wrong(text: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "Not understood", text)
    }

    /// The value of a parameter of the address is wrong, or there is no such parameter.
    pub(super) fn of_parameter(name: &str, text: impl Into<String>) -> Self {
        Self { field: Some(name.to_owned()), ..Self::wrong(text) }
    }

    pub(super) fn forbidden(scope: Scope, doing: &str) -> Self {
        let text = format!("You may not {doing}. Your token needs the scope {scope} for that.");
        Self::new(StatusCode::FORBIDDEN, "Not permitted", text)
    }

    pub(super) fn bound(doing: &str) -> Self {
        let text = format!("You may not {doing}. Your token is bound to a part of the jobs.");
        Self::new(StatusCode::FORBIDDEN, "Not permitted", text)
    }

    /// A form came without the token against forgery.
    pub(super) fn forged() -> Self {
        let text = "This form is too old, or it comes from another site. Nothing was changed. Go back, load the \
                    page again and repeat it.";
        Self::new(StatusCode::FORBIDDEN, "Not done", text)
    }

    pub(super) fn unknown() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "Not signed in", "Sign in with a token.")
    }

    pub(super) fn away(reason: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "Redis does not answer", reason)
    }

    /// This server cannot do it at the moment.
    pub(super) fn overloaded(reason: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "Not possible now", reason)
    }
}

impl PageError {
    /// Returns the response to a program, with the error as the API has it.
    pub(super) fn as_json(&self) -> Response {
        let code = match self.status {
            StatusCode::BAD_REQUEST => code::INVALID_PARAMS,
            StatusCode::UNAUTHORIZED => code::UNAUTHENTICATED,
            StatusCode::FORBIDDEN => code::NOT_PERMITTED,
            StatusCode::NOT_FOUND => code::NOT_FOUND,
            StatusCode::CONFLICT => code::CONFLICT,
            StatusCode::UNPROCESSABLE_ENTITY => code::JOB_FAILED,
            _ => code::INTERNAL,
        };
        let error = RpcError::new(code, self.text.clone());
        let error = match &self.field {
            Some(field) => error.with("field", field.as_str()),
            None if code == code::INTERNAL => {
                error.with("retryable", self.status == StatusCode::SERVICE_UNAVAILABLE)
            }
            None => error,
        };
        asking_for_token((self.status, Json(json!({ "error": error }))).into_response())
    }
}

pub(super) fn sentence(message: &str) -> String {
    let end = if message.ends_with(['.', '?', '!']) { "" } else { "." };
    capitalized(message) + end
}

pub(super) fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase).collect::<String>();
    first + letters.as_str()
}

impl From<ClientError> for PageError {
    fn from(error: ClientError) -> Self {
        let serves_not = matches!(error, ClientError::Store(StoreError::NotServing { .. }));
        let page = Self::from(Error::from(error));
        if serves_not { Self { title: "Redis does not serve", ..page } } else { page }
    }
}

impl From<Error> for PageError {
    fn from(error: Error) -> Self {
        let text = sentence(&error.message);
        match error.exit {
            Exit::NotFound => Self::not_found(text),
            Exit::Unavailable => Self::away(text),
            Exit::NotPermitted => Self::new(StatusCode::SERVICE_UNAVAILABLE, "Redis refuses", text),
            Exit::Data => Self::new(StatusCode::CONFLICT, "Not done", text),
            _ => Self::new(StatusCode::INTERNAL_SERVER_ERROR, "Failed", text),
        }
    }
}

impl From<RpcError> for PageError {
    fn from(error: RpcError) -> Self {
        let text = sentence(&error.message);
        match error.code {
            code::NOT_FOUND => Self::not_found(text),
            code::NOT_PERMITTED => Self::new(StatusCode::FORBIDDEN, "Not permitted", text),
            code::UNAUTHENTICATED => Self::unknown(),
            code::CONFLICT => Self::new(StatusCode::CONFLICT, "Not done", text),
            code::INVALID_PARAMS => Self::wrong(text),
            code::JOB_FAILED => Self::new(StatusCode::UNPROCESSABLE_ENTITY, "The job failed", text),
            _ => Self::new(StatusCode::SERVICE_UNAVAILABLE, "Failed", text),
        }
    }
}

impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        let mut response = (self.status, self.text.clone()).into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// Answers for an address that no page has.
pub(super) async fn no_such_page() -> PageError {
    PageError::not_found("No page has this address. GET /openapi.json has the paths of the API.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_of_a_command_becomes_a_sentence() {
        assert_eq!(sentence("no such job: a1"), "No such job: a1.");
        assert_eq!(sentence("Sign in."), "Sign in.");
        let error = PageError::from(RpcError::new(code::NOT_FOUND, "no such queue"));
        assert_eq!((error.status.as_u16(), error.text.as_str()), (404, "No such queue."));
    }

    #[test]
    fn redis_that_answers_with_a_refusal_is_not_said_to_be_silent() {
        let (address, reason) = ("here".to_owned(), "it is loading".to_owned());
        let loads = StoreError::NotServing { address: address.clone(), reason: reason.clone() };
        let silent = StoreError::Unreachable { address, reason, sent: true };
        for (error, title) in [(loads, "Redis does not serve"), (silent, "Redis does not answer")] {
            let page = PageError::from(ClientError::Store(error));
            assert_eq!((page.title, page.status.as_u16()), (title, 503));
        }
    }
}
