//! The visitor of a page, and what the page needs to know of the request.

use std::sync::Arc;

use maud::{Markup, html};

use super::web_error::{PageError, PageResult};
use crate::rpc::{Bounds, Caller, Scope};
use crate::store::JobSummary;

#[derive(Debug, Clone)]
pub(super) struct Visitor {
    pub(super) caller: Arc<Caller>,
    /// The secret of its session; none over the socket, where the kernel says who calls.
    pub(super) session: Option<String>,
    /// The token in the head of its request, if there is one.
    pub(super) token: Option<Arc<str>>,
    /// The token against forgery for its forms.
    pub(super) forgery: String,
    /// `light` or `dark`, if the visitor chose one.
    pub(super) theme: Option<&'static str>,
    /// The sentence about what the request before did.
    pub(super) toast: Option<String>,
    /// The path and query of this page, without the prefix.
    pub(super) path: String,
}

impl Visitor {
    pub(super) fn may(&self, scope: Scope) -> bool {
        self.caller.scopes.has(scope)
    }

    /// Returns true if the visitor sees a part of all jobs only.
    pub(super) fn is_bound(&self) -> bool {
        self.caller.bounds != Bounds::default()
    }

    /// Returns true if the visitor may see a job, as the API decides it.
    pub(super) fn sees(&self, job: &JobSummary) -> bool {
        self.caller.sees(job)
    }

    /// Refuses a visitor without a scope. `doing` is a verb: "retry", "purge a queue".
    pub(super) fn needs(&self, scope: Scope, doing: &str) -> PageResult<()> {
        if self.may(scope) { Ok(()) } else { Err(PageError::forbidden(scope, doing)) }
    }

    /// Refuses a visitor who sees a part of all jobs only. `doing` is a verb.
    pub(super) fn needs_no_bounds(&self, doing: &str) -> PageResult<()> {
        if self.is_bound() { Err(PageError::bound(doing)) } else { Ok(()) }
    }

    /// Returns true if the visitor may change a job, or the jobs of a graph, of a caller.
    pub(super) fn may_change(&self, caller_id: &str) -> bool {
        let is_own = caller_id == self.caller.name;
        self.may(Scope::Operate) || (self.may(Scope::Submit) && is_own)
    }

    /// Returns a form that is posted to an address.
    pub(super) fn form(&self, action: &str, content: &Markup) -> Markup {
        html! { form method="post" action=(action) { (self.forgery_field()) (content) } }
    }

    /// Returns the hidden field that each form needs.
    pub(super) fn forgery_field(&self) -> Markup {
        html! { input type="hidden" name="csrf" value=(self.forgery); }
    }
}

/// Returns what the token against forgery of a visitor is bound to.
pub(super) fn forgery_subject(session: Option<&str>, caller: &Caller) -> String {
    match session {
        Some(secret) => format!("session {secret}"),
        None => format!("caller {}", caller.name),
    }
}
