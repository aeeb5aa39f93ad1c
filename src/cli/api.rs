//! The methods of the API as commands call them: in this process, or of a daemon elsewhere.

mod jobs;
mod live;
mod remote;

use std::sync::Arc;

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub(super) use self::jobs::{job_of, settings};
pub(super) use self::live::{CALL_WAIT, JobFileParts, JobLog, LOG_LINES, Unended};
pub(super) use self::remote::RemoteApi;
use super::Global;
use super::author::user;
use super::input::parsed;
use super::key::Signing;
use crate::client::{FilesByPlace, NO_PASSWORD};
use crate::error::{Error, Exit};
use crate::proto::job::JobReference;
use crate::rpc::{Bounds, CallContext, Caller, MethodTable, RpcError, Scopes, code};

pub(super) enum ApiMethods {
    /// In this process, with all rights: who reaches Redis has them.
    Local { table: MethodTable, context: Box<CallContext> },
    /// Of a daemon elsewhere, with the rights of a token.
    Remote(RemoteApi),
}

impl Global {
    /// Returns the methods: of the daemon that `--api`, `HERO_API` or the configuration names, else in this process.
    pub(super) fn methods(&self) -> Result<ApiMethods, Error> {
        if let Some(remote) = self.remote()? {
            return Ok(ApiMethods::Remote(remote));
        }
        let config = self.config()?;
        let name = user();
        let caller = Caller { name, scopes: Scopes::all(), bounds: Bounds::default() };
        let (client, address) = (self.client()?, config.redis.redacted_url().into());
        let config = Arc::new(config.clone());
        let context = CallContext::new(client, address, config, Arc::new(caller));
        let context = Box::new(context.of_command_line());
        Ok(ApiMethods::Local { table: MethodTable::new(None), context })
    }
}

/// The error of a method, with its members for programs.
pub(super) struct MethodError {
    pub(super) error: Error,
    pub(super) data: Value,
}

impl MethodError {
    pub(super) fn of(error: RpcError, server: Option<&str>) -> Self {
        let data = error.data.clone().unwrap_or_default();
        Self { error: of_rpc(error, server), data }
    }
}

impl From<Error> for MethodError {
    fn from(error: Error) -> Self {
        Self { error, data: Value::Null }
    }
}

impl ApiMethods {
    /// Calls a method. Returns its result as the API answers it.
    pub(super) async fn call(&self, method: &str, params: Value) -> Result<Value, Error> {
        let answer = self.answer(method, params, FilesByPlace::new()).await;
        answer.map_err(|failed| failed.error)
    }

    /// Calls a method that submits jobs, with the files of some of these, by their places in `jobs`: 0 for a job alone.
    pub(super) async fn answer(
        &self,
        method: &str,
        mut params: Value,
        files: FilesByPlace,
    ) -> Result<Value, MethodError> {
        match self {
            Self::Local { table, context } => {
                let context = (**context).clone().with_files(files);
                let called = table.call(context, method, params);
                Box::pin(called).await.map_err(|error| MethodError::of(error, None))
            }
            Self::Remote(remote) => {
                for (place, files) in files {
                    let is_alone = params["jobs"].is_null();
                    let job = if is_alone { &mut params } else { &mut params["jobs"][place] };
                    jobs::add_files(job, &files)?;
                }
                Box::pin(remote.call(method, params)).await
            }
        }
    }

    pub(super) fn sign(&mut self, signing: &Signing) -> Result<(), Error> {
        match self {
            Self::Local { context, .. } => {
                context.client = signing.client(context.client.clone())?;
            }
            Self::Remote(_) if signing.is_given() => {
                let message = "--sign needs the machine itself: leave out --api";
                return Err(Error::new(Exit::Usage, message));
            }
            Self::Remote(_) => {}
        }
        Ok(())
    }

    /// Calls a method for a job, which its id names, or the unique beginning of it; `further` are the other parameters.
    pub(super) async fn of_job(
        &self,
        method: &str,
        id: &str,
        mut further: Value,
    ) -> Result<Value, Error> {
        parsed::<JobReference>(id)?;
        further["id"] = id.into();
        self.call(method, further).await
    }

    /// Calls a method as [`ApiMethods::call`] does, for a result of a type.
    pub(super) async fn typed<R: DeserializeOwned>(
        &self,
        method: &str,
        params: Value,
    ) -> Result<(Value, R), Error> {
        let result = self.call(method, params).await?;
        let typed = read(method, &result)?;
        Ok((result, typed))
    }

    /// Returns the time that words such as `yesterday` are read at: of Redis, or of this machine.
    pub(super) async fn now(&self) -> Result<Timestamp, Error> {
        match self {
            Self::Local { context, .. } => Ok(context.client.system().now().await?),
            Self::Remote(_) => Ok(Timestamp::now()),
        }
    }
}

pub(super) fn read<R: DeserializeOwned>(method: &str, result: &Value) -> Result<R, Error> {
    R::deserialize(result).map_err(|error| {
        let message = format!(
            "cannot read the answer of {method}: {error}; the daemon may be of another version than this program, {}",
            env!("CARGO_PKG_VERSION")
        );
        Error::new(Exit::Unavailable, message)
    })
}

/// Returns the error of a command for the error of a method; `server` is the address of a daemon elsewhere.
fn of_rpc(error: RpcError, server: Option<&str>) -> Error {
    let by_code = match error.code {
        code::INVALID_REQUEST | code::INVALID_PARAMS | code::CONFLICT => Exit::Data,
        code::NOT_FOUND => Exit::NotFound,
        code::NOT_PERMITTED | code::UNAUTHENTICATED => Exit::NotPermitted,
        code::JOB_FAILED => Exit::JobError,
        code::GAVE_UP => Exit::GaveUp,
        _ => Exit::Unavailable,
    };
    let exit = error.exit.unwrap_or(by_code);
    let message = match (server, error.code) {
        (Some(server), code::UNAUTHENTICATED) => {
            format!(
                "{server} does not know the caller: {}; a token: HERO_TOKEN, or token_file in [client]",
                error.message
            )
        }
        (Some(server), code::METHOD_NOT_FOUND) => {
            format!("the daemon at {server} is of another version: {}", error.message)
        }
        (None, _) if error.lacks_password => error.message + NO_PASSWORD,
        _ => error.message,
    };
    Error::new(exit, message)
}
