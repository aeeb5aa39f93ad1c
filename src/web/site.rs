//! The site: everything that all pages work with.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Instant;

use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Redirect, Response};
use ring::digest::{SHA256, digest};
use tracing::info;

use super::cookie::set_cookie;
use super::links::SiteLinks;
use super::live::Feeds;
use super::session::Sessions;
use super::snapshot::SnapshotReader;
use super::web_error::{PageError, PageResult};
use crate::client::Client;
use crate::config::Config;
use crate::proto::text::hexadecimal;
use crate::rpc::{ApiService, Caller};

#[derive(Clone)]
pub(super) struct Site(Arc<SiteParts>);

pub(super) struct SiteParts {
    pub(super) client: Client,
    pub(super) service: ApiService,
    pub(super) links: SiteLinks,
    pub(super) sessions: Sessions,
    pub(super) snapshots: SnapshotReader,
    pub(super) feeds: Feeds,
    pub(super) session_cookie: String,
    pub(super) sign_in_cookie: String,
    pub(super) toast_cookie: String,
}

impl Deref for Site {
    type Target = SiteParts;

    fn deref(&self) -> &SiteParts {
        &self.0
    }
}

/// A session without a request for this long is forgotten by the browser, in seconds.
pub(super) const SESSION_COOKIE_S: u64 = 12 * 3600;
pub(super) const TOAST_COOKIE_S: u64 = 10;
pub(super) const THEME_COOKIE_S: u64 = 365 * 24 * 3600;

impl Site {
    pub(super) fn new(service: ApiService) -> Self {
        let config = service.config();
        // Cookies do not tell ports apart: sites of one machine need names of their own.
        let named = format!("{} {}", service.address, config.redis.namespace);
        let own = hexadecimal(&digest(&SHA256, named.as_bytes()).as_ref()[..4]);
        let parts = SiteParts {
            links: SiteLinks::new(&config.api.path),
            sessions: Sessions::new(),
            snapshots: SnapshotReader::new(service.clone()),
            feeds: Feeds::default(),
            session_cookie: format!("hero_{own}"),
            sign_in_cookie: format!("hero_sign_in_{own}"),
            toast_cookie: format!("hero_toast_{own}"),
            client: service.client.clone(),
            service,
        };
        Self(Arc::new(parts))
    }

    pub(super) fn config(&self) -> Arc<Config> {
        self.service.config()
    }

    /// Checks a token; a wrong one takes time.
    pub(super) async fn check_token(&self, token: &str) -> PageResult<Option<Arc<Caller>>> {
        Ok(self.service.login.check(token).await?)
    }

    /// Returns the caller of a token that was valid before; an invalid one is no failed sign-in.
    pub(super) async fn holder(&self, token: &str) -> PageResult<Option<Arc<Caller>>> {
        Ok(self.service.login.holder(token).await?)
    }

    /// Opens a session and goes to a page.
    pub(super) fn signed_in(&self, caller: Arc<Caller>, token: &str, path: &str) -> Response {
        let name = caller.name.clone();
        let Some(secret) = self.sessions.open(caller, token, Instant::now()) else {
            return PageError::overloaded("The kernel gives no random bytes.").into_response();
        };
        info!(caller = %name, "{name} signed in to the page");
        let mut response = Redirect::to(&self.links.to(path)).into_response();
        self.set_cookie(&mut response, &self.session_cookie, &secret, SESSION_COOKIE_S);
        response
    }

    pub(super) fn set_cookie(
        &self,
        response: &mut Response,
        name: &str,
        value: &str,
        max_age_s: u64,
    ) {
        let path = self.links.to("/");
        let cookie = set_cookie(name, value, &path, max_age_s);
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }

    pub(super) fn without_toast(&self, mut response: Response) -> Response {
        // The answer may set the next sentence.
        let name = &self.toast_cookie;
        let cookies = response.headers().get_all(header::SET_COOKIE).into_iter();
        let is_set = |cookie: &HeaderValue| cookie.as_bytes().starts_with(name.as_bytes());
        if !cookies.into_iter().any(is_set) {
            self.set_cookie(&mut response, name, "", 0);
        }
        response
    }
}
