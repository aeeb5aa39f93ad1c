//! The API of a daemon elsewhere, over HTTP.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::MethodError;
use crate::cli::Global;
use crate::cli::input::read_bounded;
use crate::config::{ApiAddress, ClientConfig, format_duration};
use crate::error::{Error, Exit};
use crate::http::{HttpAnswer, HttpPoster, Method, PostError, StatusCode};
use crate::rpc::RpcError;

const CONNECT_MAX: Duration = Duration::from_secs(10);
/// The time in which a method answers, after the time that it waits.
const ANSWER_MAX: Duration = Duration::from_secs(15);
const ANSWER_BYTES_MAX: usize = 64 << 20;
const TOKEN_BYTES_MAX: u64 = 4096;
const COMMANDS: &str = "exec, submit, run-script, job, graph, dead, queue, actor, machine, limit, cron, status, stats, audit, notify list, hook list";

pub(in crate::cli) struct RemoteApi {
    /// Its address as it was given.
    pub(in crate::cli) address: String,
    /// The URL without a slash at its end, and its path.
    url: String,
    path: String,
    socket: Option<PathBuf>,
    authorities: Option<PathBuf>,
    headers: Vec<(String, String)>,
    /// The clients that have made connections before, with their certificates.
    idle: Mutex<Vec<HttpPoster>>,
}

impl Global {
    /// Returns the daemon elsewhere that commands speak to, if one is named. A configuration that is named, as in
    /// the shell of `hero dev`, counts more than `HERO_API`.
    pub(in crate::cli) fn remote(&self) -> Result<Option<RemoteApi>, Error> {
        let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let has_config = self.named_file().is_some() || variable("HERO_CONFIG").is_some();
        let named = self.api.clone().filter(|address| !address.is_empty());
        let named = named.or_else(|| variable("HERO_API").filter(|_| !has_config));
        let settings = &self.config()?.client;
        match named.or_else(|| settings.api.clone()) {
            Some(address) => RemoteApi::new(&address, settings).map(Some),
            None => Ok(None),
        }
    }

    /// Refuses a command that works on Redis or on this machine, if a daemon elsewhere is named.
    pub(in crate::cli) fn needs_no_remote(&self) -> Result<(), Error> {
        let Some(remote) = self.remote()? else { return Ok(()) };
        let message = format!(
            "this command works on Redis or on a machine itself, not over the API of {}: run it there, or without --api, \
             HERO_API and [client] api. Over the API: {COMMANDS}",
            remote.address
        );
        Err(Error::new(Exit::Usage, message))
    }
}

impl RemoteApi {
    fn new(address: &str, settings: &ClientConfig) -> Result<Self, Error> {
        // A login is not repeated.
        let is_shown = !address.contains(['@', '?', '#']);
        let shown = if is_shown { format!(" `{address}`") } else { String::new() };
        let parsed = address
            .parse()
            .map_err(|why| Error::new(Exit::Usage, format!("the address of the API{shown} {why}")));
        let ApiAddress { url, path, socket } = parsed?;
        let mut headers = Vec::new();
        if let Some(token) = token(settings.token_file.as_deref())? {
            headers.push(("authorization".to_owned(), format!("Bearer {token}")));
        }
        let authorities = settings.tls_ca_file.clone();
        let (address, idle) = (address.to_owned(), Mutex::default());
        Ok(Self { address, url, path, socket, authorities, headers, idle })
    }

    pub(super) async fn call(&self, method: &str, params: Value) -> Result<Value, MethodError> {
        let wait = params["wait"].as_f64().and_then(|s| Duration::try_from_secs_f64(s).ok());
        let within = wait.unwrap_or_default() + ANSWER_MAX;
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let path = format!("{}/rpc", self.path);
        let answered = async {
            let answer = self.exchange(Method::POST, &path, Some(&request)).await?;
            let status = answer.status;
            let body = answer.whole(ANSWER_BYTES_MAX).await;
            Ok::<_, Error>((status, body.map_err(|error| self.failed(&error))?))
        };
        let late = |_| self.failed(&format!("no answer within {}", format_duration(within)).into());
        let (status, body) = timeout(within, answered).await.map_err(late)??;
        let mut response: Value = serde_json::from_slice(&body).unwrap_or_default();
        if let Some(result) = response.get_mut("result") {
            return Ok(result.take());
        }
        Err(self.refused(status, response))
    }

    pub(super) async fn file(&self, id: &str, name: &str) -> Result<HttpAnswer, Error> {
        let name = utf8_percent_encode(name, NON_ALPHANUMERIC);
        let path = format!("{}/jobs/{id}/files/{name}", self.path);
        let answer = self.exchange(Method::GET, &path, None).await?;
        let status = answer.status;
        if status.is_success() {
            return Ok(answer);
        }
        let body = answer.whole(ANSWER_BYTES_MAX).await.unwrap_or_default();
        Err(self.refused(status, serde_json::from_slice(&body).unwrap_or_default()).error)
    }

    async fn exchange(
        &self,
        verb: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<HttpAnswer, Error> {
        let idle = self.idle.lock().ok().and_then(|mut idle| idle.pop());
        let mut poster = match idle {
            Some(poster) => poster,
            None => HttpPoster::new(&self.url, CONNECT_MAX)
                .map_err(|why| self.failed(&PostError::from(why)))?
                .trusting(self.authorities.clone())
                .through(self.socket.clone()),
        };
        let body = body.map(Value::to_string).unwrap_or_default().into();
        let answer = poster.exchange(verb, path, &self.headers, body).await;
        if let Ok(mut idle) = self.idle.lock() {
            idle.push(poster);
        }
        answer.map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &PostError) -> Error {
        let hint = if error.is_of_unknown_authority {
            "; the authority of its certificate: tls_ca_file in [client], or SSL_CERT_FILE"
        } else {
            ""
        };
        Error::new(Exit::Unavailable, format!("the API of {}: {error}{hint}", self.address))
    }

    /// Returns the error that a response has, or that it is none of Hero.
    fn refused(&self, status: StatusCode, mut response: Value) -> MethodError {
        if let Ok(error) = serde_json::from_value::<RpcError>(response["error"].take()) {
            return MethodError::of(error, Some(&self.address));
        }
        let message = format!(
            "the API of {}: the answer is no answer of Hero, {status}: is it the address of [api] listen, with its \
             [api] path?",
            self.address
        );
        Error::new(Exit::Unavailable, message).into()
    }
}

/// Returns the token: of `HERO_TOKEN`, else of the file of the configuration.
fn token(file: Option<&Path>) -> Result<Option<String>, Error> {
    let given = std::env::var("HERO_TOKEN").ok().filter(|token| !token.is_empty());
    let (Some(file), None) = (file, &given) else { return Ok(given) };
    let text = read_bounded(file, TOKEN_BYTES_MAX).map_err(|error| {
        Error::new(Exit::Config, format!("cannot read the token: {}", error.message))
    })?;
    Ok(Some(text.trim().to_owned()))
}
