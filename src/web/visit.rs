//! A visit: the site, and the visitor of one of its pages. It reads and changes by the methods of the API, and answers
//! with pages.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Instant;

use axum::body::{Body, Bytes};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, StatusCode};
use axum::response::{Html, IntoResponse, Redirect, Response};
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;
use tracing::{info, warn};

use super::layout::{self, Nav, PageFrame, WebPage};
use super::links::{SiteLinks, page_of};
use super::parts::{Confirm, confirm};
use super::site::{Site, TOAST_COOKIE_S};
use super::snapshot::SiteSnapshot;
use super::visible::visible;
use super::visitor::{Visitor, forgery_subject};
use super::web_error::{PageError, PageResult};
use crate::proto::job::JobFiles;
use crate::rpc::results::SubmittedId;
use crate::rpc::{BoundedWork, CallContext, MethodResult, PATIENCE, RpcError};

#[derive(Clone)]
pub(super) struct Visit {
    pub(super) site: Site,
    visitor: Visitor,
}

impl Deref for Visit {
    type Target = Visitor;

    fn deref(&self) -> &Visitor {
        &self.visitor
    }
}

impl<S: Sync> FromRequestParts<S> for Visit {
    type Rejection = PageError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> PageResult<Self> {
        Self::of(&parts.extensions)
    }
}

impl Visit {
    pub(super) fn new(site: Site, visitor: Visitor) -> Self {
        Self { site, visitor }
    }

    /// Returns the visit of a request: every page comes after the layer that finds out who visits.
    pub(super) fn of(request: &Extensions) -> PageResult<Self> {
        request.get::<Self>().cloned().ok_or_else(PageError::unknown)
    }

    /// Returns whether the visitor is still signed in as it was, for an answer that goes on; also if nobody knows now.
    pub(super) async fn is_still_known(&self) -> bool {
        let token = match (&self.session, &self.token) {
            (Some(secret), _) => self.site.sessions.token(secret, Instant::now()),
            (None, Some(token)) => Some(token.to_string().into()),
            // The kernel says who calls.
            (None, None) => return true,
        };
        let Some(token) = token else { return false };
        let holder = self.site.holder(&token).await;
        holder.map_or(true, |found| found.is_some_and(|found| found == self.caller))
    }

    /// Lets a body go on only while the visitor is signed in as it was. Its early end ends the connection, so that nobody
    /// takes a part for the whole.
    pub(super) fn while_known(&self, body: Body) -> Body {
        let state = Some((self.clone(), body.into_data_stream()));
        let blocks = stream::unfold(state, |state| async move {
            let (visit, mut blocks) = state?;
            let block = blocks.next().await?;
            if visit.is_still_known().await {
                return Some((block, Some((visit, blocks))));
            }
            let reason = "the token of the reader is not valid any more";
            Some((Err(axum::Error::new(reason)), None))
        });
        Body::from_stream(blocks.fuse())
    }

    /// Returns a body that is made step by step, each when the one before was sent. An error after the first step ends the
    /// connection, so that nobody takes a part for the whole.
    pub(super) async fn in_steps<S, F>(
        &self,
        what: &'static str,
        begin: S,
        step: fn(S) -> F,
    ) -> PageResult<Body>
    where
        S: Send + 'static,
        F: Future<Output = PageResult<(Bytes, Option<S>)>> + Send + 'static,
    {
        let (first, rest) = step(begin).await?;
        if rest.is_none() {
            return Ok(Body::from(first));
        }
        let further = stream::unfold(rest, move |rest| async move {
            match step(rest?).await {
                Ok((bytes, rest)) => Some((Ok(bytes), rest)),
                Err(PageError { text, .. }) => {
                    warn!("cannot send {what} to its end: {text}");
                    Some((Err(text), None))
                }
            }
        });
        let all = stream::iter([Ok(first)]).chain(further);
        Ok(self.while_known(Body::from_stream(all)))
    }

    pub(super) fn links(&self) -> &SiteLinks {
        &self.site.links
    }

    /// Returns the state of the namespace as the visitor may see it. All visitors without bounds share it.
    pub(super) async fn snapshot(&self) -> PageResult<Arc<SiteSnapshot>> {
        let now = self.site.snapshots.get().await?;
        Ok(if self.is_bound() { Arc::new(now.within(&self.caller)) } else { now })
    }

    /// Waits until the visitor may search for jobs, as long as it has the permit.
    pub(super) async fn may_search(&self) -> Result<OwnedSemaphorePermit, RpcError> {
        let work = &self.site.service.table.work;
        work.begin(&self.caller.name, BoundedWork::Search, PATIENCE).await
    }

    /// Reads by a method of the API, so that the bounds of the visitor hold. Reading is not noted in the journal.
    pub(super) async fn ask<R: 'static>(&self, method: &str, params: Value) -> Result<R, RpcError> {
        self.site.service.table.answer(self.context(), method, params).await?.typed()
    }

    /// Answers with a file of a job, as [`MethodTable::file`](crate::rpc::MethodTable::file) does.
    pub(super) async fn file(
        &self,
        id: &str,
        name: &str,
        headers: &HeaderMap,
    ) -> Result<Response, RpcError> {
        let found = self.site.service.table.file(self.context(), (id, name), headers).await?;
        Ok(found.map(|body| self.while_known(body)))
    }

    /// Answers with the output of a job, as [`MethodTable::output`](crate::rpc::MethodTable::output) does.
    pub(super) async fn output(&self, id: &str, headers: &HeaderMap) -> Result<Response, RpcError> {
        let found = self.site.service.table.output(self.context(), id, headers).await?;
        Ok(found.map(|body| self.while_known(body)))
    }

    /// Calls a method of the API: this is how a page changes something. A change is noted in the journal.
    pub(super) async fn call(&self, method: &str, params: Value) -> Result<(), RpcError> {
        self.call_in(self.context(), method, params).await.map(drop)
    }

    /// Calls a method as [`Visit::call`] does, for its result.
    pub(super) async fn call_for<R: 'static>(
        &self,
        method: &str,
        params: Value,
    ) -> Result<R, RpcError> {
        self.call_in(self.context(), method, params).await?.typed()
    }

    /// Submits a job with files that are kept already, and goes to its page.
    pub(super) async fn submit(&self, job: Value, files: JobFiles) -> Result<Response, RpcError> {
        let context = self.context().with_files([(0, files)].into());
        let answer = self.call_in(context, "job.submit", json!({ "job": job })).await?;
        let SubmittedId { id, .. } = answer.typed()?;
        Ok(self.done(&page_of("jobs", &id), "Submitted."))
    }

    async fn call_in(
        &self,
        context: CallContext,
        method: &str,
        params: Value,
    ) -> Result<Box<dyn MethodResult>, RpcError> {
        let (name, about) = (&self.caller.name, about(&params));
        let result = self.site.service.table.answer(context, method, params).await;
        match &result {
            Ok(_) => info!(caller = %name, method, "{name} called {method}{about} on the page"),
            Err(error) => {
                info!(caller = %name, method, "{name} called {method}{about} on the page: {error}");
            }
        }
        result
    }

    fn context(&self) -> CallContext {
        self.site.service.context_through(self.caller.clone(), "page")
    }

    pub(super) fn page(&self, now: &SiteSnapshot, page: &WebPage) -> Response {
        self.framed(StatusCode::OK, Some(now), page)
    }

    /// Answers with a page of another status: a form that was refused.
    pub(super) fn refused(&self, now: &SiteSnapshot, page: &WebPage) -> Response {
        self.framed(StatusCode::UNPROCESSABLE_ENTITY, Some(now), page)
    }

    /// Answers with the question before something is destroyed.
    pub(super) async fn question(&self, nav: Nav, question: &Confirm<'_>) -> PageResult {
        let now = self.snapshot().await?;
        let main = confirm(question, &self.forgery_field());
        Ok(self.page(&now, &WebPage::still(question.title.as_str(), nav, main)))
    }

    /// Asks before something is done to one thing, whose page has this address. `doing` is the value of `do`.
    pub(super) async fn ask_before(
        &self,
        nav: Nav,
        address: String,
        (doing, verb): (&str, &str),
        (title, text): (String, &str),
    ) -> PageResult {
        let (back, action, fields) = (address.clone(), address, vec![("do", doing)]);
        let question = Confirm { title, text: text.to_owned(), back, action, fields, verb };
        self.question(nav, &question).await
    }

    pub(super) fn error_page(&self, error: &PageError) -> Response {
        let last = self.site.snapshots.last().filter(|_| !self.is_bound());
        let page = layout::error_page(error, self.links());
        self.framed(error.status, last.as_deref(), &page)
    }

    fn framed(&self, status: StatusCode, now: Option<&SiteSnapshot>, page: &WebPage) -> Response {
        let namespace = self.site.config().redis.namespace.to_string();
        let frame = PageFrame { links: self.links(), visitor: self, now, namespace: &namespace };
        (status, Html(visible(layout::whole(&frame, page)))).into_response()
    }

    /// Answers a form that changed something: goes to a page (`path` without the prefix), which reads the state again
    /// and shows a sentence about what happened.
    pub(super) fn done(&self, path: &str, toast: &str) -> Response {
        self.site.snapshots.forget();
        let mut response = Redirect::to(&self.links().to(path)).into_response();
        self.site.set_cookie(&mut response, &self.site.toast_cookie, toast, TOAST_COOKIE_S);
        response
    }

    pub(super) fn is_forged(&self, given: &str) -> bool {
        !self.site.sessions.is_of(&forgery_subject(self.session.as_deref(), &self.caller), given)
    }
}

/// Returns the name of the thing that a call is about, for the journal; never its script or environment.
fn about(params: &Value) -> String {
    let mut names = ["id", "queue", "actor", "machine", "name", "type"].into_iter();
    let name = names.find_map(|of| params.get(of)?.as_str()).unwrap_or_default();
    let name: String = name.chars().take(80).flat_map(char::escape_debug).collect();
    if name.is_empty() { name } else { format!(" of {name}") }
}
