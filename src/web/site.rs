//! The site: everything that all pages work with.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use ring::digest::{SHA256, digest};
use serde_json::Value;
use tokio::sync::watch;
use tracing::info;

use super::cookie::SetCookie;
use super::layout::{self, Nav, PageFrame, WebPage};
use super::links::SiteLinks;
use super::live::Feeds;
use super::parts::{Confirm, confirm};
use super::session::Sessions;
use super::snapshot::{SiteSnapshot, SnapshotReader};
use super::visitor::Visitor;
use super::web_error::PageError;
use crate::client::Client;
use crate::config::Config;
use crate::proto::job::JobFiles;
use crate::rpc::results::SubmittedId;
use crate::rpc::{CallContext, Caller, MethodResult, MethodTable, RpcError, TokenCheck, author};

/// Settings of the pages.
pub struct SiteSettings {
    /// The configuration. It may change while the pages are served.
    pub config: watch::Receiver<Arc<Config>>,
    /// The path prefix of all addresses, as `/` or `/hero`.
    pub path: String,
}

/// Everything that all pages work with. Cheap to clone.
#[derive(Clone)]
pub struct Site {
    parts: Arc<SiteParts>,
}

struct SiteParts {
    client: Client,
    address: Arc<str>,
    table: Arc<MethodTable>,
    check_token: TokenCheck,
    settings: SiteSettings,
    links: SiteLinks,
    sessions: Sessions,
    snapshots: SnapshotReader,
    feeds: Feeds,
    session_cookie: String,
    sign_in_cookie: String,
    toast_cookie: String,
}

/// A session without a request for this long is forgotten by the browser, in seconds.
pub(super) const SESSION_COOKIE_S: u64 = 12 * 3600;
const TOAST_COOKIE_S: u64 = 10;
pub(super) const THEME_COOKIE_S: u64 = 365 * 24 * 3600;

impl Site {
    /// Creates it. `address` is the address of Redis, without a password.
    pub fn new(
        client: Client,
        address: Arc<str>,
        table: Arc<MethodTable>,
        check_token: TokenCheck,
        settings: SiteSettings,
    ) -> Self {
        // Cookies do not tell ports apart: sites of one machine need names of their own.
        let namespace = settings.config.borrow().redis.namespace.clone();
        let own = short_hash(&format!("{address} {namespace}"));
        let parts = SiteParts {
            links: SiteLinks::new(&settings.path),
            sessions: Sessions::new(),
            snapshots: SnapshotReader::new(
                client.clone(),
                address.clone(),
                settings.config.clone(),
            ),
            feeds: Feeds::default(),
            session_cookie: format!("hero_{own}"),
            sign_in_cookie: format!("hero_sign_in_{own}"),
            toast_cookie: format!("hero_toast_{own}"),
            client,
            address,
            table,
            check_token,
            settings,
        };
        Self { parts: Arc::new(parts) }
    }

    /// The jobs of the namespace.
    pub(super) fn client(&self) -> &Client {
        &self.parts.client
    }

    /// The configuration in force.
    pub(super) fn config(&self) -> Arc<Config> {
        Arc::clone(&self.parts.settings.config.borrow())
    }

    pub(super) fn links(&self) -> &SiteLinks {
        &self.parts.links
    }

    pub(super) fn sessions(&self) -> &Sessions {
        &self.parts.sessions
    }

    pub(super) fn feeds(&self) -> &Feeds {
        &self.parts.feeds
    }

    pub(super) fn session_cookie(&self) -> &str {
        &self.parts.session_cookie
    }

    pub(super) fn sign_in_cookie(&self) -> &str {
        &self.parts.sign_in_cookie
    }

    pub(super) fn toast_cookie(&self) -> &str {
        &self.parts.toast_cookie
    }

    /// Checks a token; a wrong one takes time.
    ///
    /// # Errors
    /// [`PageError`] if Redis does not answer.
    pub(super) async fn check_token(&self, token: &str) -> Result<Option<Arc<Caller>>, PageError> {
        Ok((self.parts.check_token)(token.to_owned()).await?)
    }

    /// The state of the namespace as the visitor may see it. All visitors without bounds share it.
    ///
    /// # Errors
    /// [`PageError`] with status 503 if Redis does not answer.
    pub(super) async fn snapshot(&self, visitor: &Visitor) -> Result<Arc<SiteSnapshot>, PageError> {
        let now = self.parts.snapshots.get().await?;
        Ok(if visitor.is_bound() { Arc::new(now.within(&visitor.caller)) } else { now })
    }

    /// Makes the next page read the state again, after a change.
    pub(super) fn snapshots_are_old(&self) {
        self.parts.snapshots.forget();
    }

    /// Calls a method of the API for a visitor: this is how a page changes something. A change is noted in
    /// the journal.
    ///
    /// # Errors
    /// [`RpcError`] if the visitor may not, or the method fails.
    pub(super) async fn call(
        &self,
        visitor: &Visitor,
        method: &str,
        params: Value,
    ) -> Result<(), RpcError> {
        self.call_by(self.context(visitor), method, params).await.map(drop)
    }

    /// Calls a method as [`Site::call`] does, for its result.
    ///
    /// # Errors
    /// [`RpcError`] if the visitor may not, or the method fails.
    pub(super) async fn call_for<R: 'static>(
        &self,
        visitor: &Visitor,
        method: &str,
        params: Value,
    ) -> Result<R, RpcError> {
        self.call_by(self.context(visitor), method, params).await?.typed()
    }

    /// Submits a job with files that are kept already.
    ///
    /// # Errors
    /// [`RpcError`] if the visitor may not, or the method fails.
    pub(super) async fn submit(
        &self,
        visitor: &Visitor,
        params: Value,
        files: JobFiles,
    ) -> Result<SubmittedId, RpcError> {
        let context = CallContext { files: Arc::new(files), ..self.context(visitor) };
        self.call_by(context, "job.submit", params).await?.typed()
    }

    async fn call_by(
        &self,
        context: CallContext,
        method: &str,
        params: Value,
    ) -> Result<Box<dyn MethodResult>, RpcError> {
        let name = context.caller.name.clone();
        let about = about(&params);
        let result = self.parts.table.answer(context, method, params).await;
        match &result {
            Ok(_) => info!(caller = %name, method, "{name} called {method}{about} on the page"),
            Err(error) => {
                info!(caller = %name, method, "{name} called {method}{about} on the page: {error}");
            }
        }
        result
    }

    /// Reads by a method of the API, so that the bounds of the visitor hold. Reading is not noted in the journal.
    ///
    /// # Errors
    /// [`RpcError`] if the visitor may not, or the method fails.
    pub(super) async fn ask<R: 'static>(
        &self,
        visitor: &Visitor,
        method: &str,
        params: Value,
    ) -> Result<R, RpcError> {
        self.parts.table.answer(self.context(visitor), method, params).await?.typed()
    }

    fn context(&self, visitor: &Visitor) -> CallContext {
        CallContext {
            client: self.parts.client.clone().as_author(author(&visitor.caller, "page")),
            address: self.parts.address.clone(),
            config: self.config(),
            caller: visitor.caller.clone(),
            begun: None,
            files: Arc::default(),
        }
    }

    /// Answers with a page.
    pub(super) fn page(&self, visitor: &Visitor, now: &SiteSnapshot, page: &WebPage) -> Response {
        self.framed(StatusCode::OK, visitor, Some(now), page)
    }

    /// Answers with the question before something is destroyed.
    ///
    /// # Errors
    /// [`PageError`] with status 503 if Redis does not answer.
    pub(super) async fn question(
        &self,
        visitor: &Visitor,
        nav: Nav,
        question: &Confirm<'_>,
    ) -> Result<Response, PageError> {
        let now = self.snapshot(visitor).await?;
        let main = confirm(question, &visitor.forgery_field());
        Ok(self.page(visitor, &now, &WebPage::still(question.title.as_str(), nav, main)))
    }

    /// Answers with a page of another status: a form that was refused.
    pub(super) fn refused(
        &self,
        visitor: &Visitor,
        now: &SiteSnapshot,
        page: &WebPage,
    ) -> Response {
        self.framed(StatusCode::UNPROCESSABLE_ENTITY, visitor, Some(now), page)
    }

    /// Answers with a page that says why there is none.
    pub(super) fn error_page(&self, visitor: &Visitor, error: &PageError) -> Response {
        let last = self.parts.snapshots.last().filter(|_| !visitor.is_bound());
        let page = layout::error_page(error, self.links());
        self.framed(error.status, visitor, last.as_deref(), &page)
    }

    fn framed(
        &self,
        status: StatusCode,
        visitor: &Visitor,
        now: Option<&SiteSnapshot>,
        page: &WebPage,
    ) -> Response {
        let namespace = self.config().redis.namespace.to_string();
        let frame = PageFrame { links: self.links(), visitor, now, namespace: &namespace };
        (status, Html(layout::whole(&frame, page).into_string())).into_response()
    }

    /// Answers a form: goes to a page (`path` without the prefix), which shows a sentence about what happened.
    pub(super) fn done(&self, path: &str, toast: &str) -> Response {
        let mut response = Redirect::to(&self.links().to(path)).into_response();
        self.set_cookie(&mut response, self.toast_cookie(), toast, TOAST_COOKIE_S);
        response
    }

    /// Opens a session and goes to a page.
    pub(super) fn signed_in(&self, caller: Arc<Caller>, token: &str, path: &str) -> Response {
        let name = caller.name.clone();
        let Some(secret) = self.sessions().open(caller, token, Instant::now()) else {
            return PageError::away("The kernel gives no random bytes.").into_response();
        };
        info!(caller = %name, "{name} signed in to the page");
        let mut response = Redirect::to(&self.links().to(path)).into_response();
        self.set_cookie(&mut response, self.session_cookie(), &secret, SESSION_COOKIE_S);
        response
    }

    /// Adds a cookie to an answer.
    pub(super) fn set_cookie(
        &self,
        response: &mut Response,
        name: &str,
        value: &str,
        max_age_s: u64,
    ) {
        let path = self.links().to("/");
        let header = SetCookie { name, value, path: &path, max_age_s }.header();
        append(response, header);
    }

    /// Forgets the sentence that was shown.
    pub(super) fn without_toast(&self, mut response: Response) -> Response {
        // The answer may set the next sentence.
        let name = self.toast_cookie();
        let cookies = response.headers().get_all(header::SET_COOKIE).into_iter();
        let is_set = |cookie: &HeaderValue| cookie.as_bytes().starts_with(name.as_bytes());
        if !cookies.into_iter().any(is_set) {
            self.set_cookie(&mut response, name, "", 0);
        }
        response
    }

    /// Returns true if a form lacks the token against forgery of its visitor.
    pub(super) fn is_forged(&self, visitor: &Visitor, given: &str) -> bool {
        !self.sessions().is_of(&visitor.forgery_subject(), given)
    }
}

/// Returns the name of the thing that a call is about, for the journal; never its script or environment.
fn about(params: &Value) -> String {
    let mut names = ["id", "queue", "actor", "name", "type"].into_iter();
    let name = names.find_map(|of| params.get(of)?.as_str()).unwrap_or_default();
    let name: String = name.chars().take(80).flat_map(char::escape_debug).collect();
    if name.is_empty() { name } else { format!(" of {name}") }
}

fn append(response: &mut Response, cookie: HeaderValue) {
    response.headers_mut().append(header::SET_COOKIE, cookie);
}

fn short_hash(text: &str) -> String {
    let digest = digest(&SHA256, text.as_bytes());
    digest.as_ref().iter().take(4).fold(String::new(), |mut hash, byte| {
        let _ = write!(hash, "{byte:02x}");
        hash
    })
}
