//! The layers around all pages: who visits, what browsers may do with a page, and pages for errors.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};

use super::cookie::{decoded, over_tls_only, read};
use super::layout::refused;
use super::session::FoundSession;
use super::site::Site;
use super::visit::Visit;
use super::visitor::{Visitor, forgery_subject};
use super::web_error::{PageError, PageResult};
use crate::rpc::{Arrival, Caller, ConnectionPlace, Scope};

/// The headers that bound what a browser may do with a page. With `no-referrer` browsers would hide the origin
/// of the page's own forms.
const SECURITY: [(HeaderName, &str); 4] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; \
         form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "same-origin"),
    (header::X_FRAME_OPTIONS, "DENY"),
];

/// Adds the headers that bound what a browser may do. A cookie that came over TLS never travels without it.
pub(super) async fn headers(request: Request, next: Next) -> Response {
    let is_secure = request.extensions().get::<Arrival>().is_some_and(|arrival| arrival.is_secure);
    let mut response = next.run(request).await;
    if is_secure {
        over_tls_only(response.headers_mut());
    }
    bound(&mut response);
    response
}

/// Adds the headers that bound what a browser may do with a page.
pub(super) fn bound(response: &mut Response) {
    let headers = response.headers_mut();
    for (name, value) in SECURITY {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}

/// The time that a page may take before Redis is pinged, and the time for its answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// Answers a visitor who looks at a page within 2 s if Redis is frozen; a page that only takes long is waited for.
pub(super) async fn in_time(State(site): State<Site>, request: Request, next: Next) -> Response {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return next.run(request).await;
    }
    let mut page = std::pin::pin!(next.run(request));
    if let Ok(page) = tokio::time::timeout(PATIENCE, &mut page).await {
        return page;
    }
    if tokio::time::timeout(PATIENCE, site.client.ping()).await.is_ok() {
        return page.await;
    }
    let reason = "Redis has not answered within 2 s; load the page again to try again";
    refused(StatusCode::SERVICE_UNAVAILABLE, reason, &site.links)
}

/// Finds out who visits, and writes errors as pages, for programs as JSON. A visitor who is not known signs in first.
pub(super) async fn identify(State(site): State<Site>, request: Request, next: Next) -> Response {
    let (mut head, body) = request.into_parts();
    if let Some(signed_in) = sign_in_by_address(&site, &head).await {
        return signed_in;
    }
    let (caller, session) = match caller(&site, &head).await {
        Ok(Some(found)) => found,
        Ok(None) => return refuse(&site, &head),
        Err(error) => return refused(error.status, &error.text, &site.links),
    };
    if let Some(place) = head.extensions.get::<Arc<ConnectionPlace>>().cloned() {
        place.of_known_caller(&caller.name).await;
    }
    let visit = Visit::new(site.clone(), visitor(&site, &head, caller, session));
    let is_browser = is_browser(&head.headers);
    if !visit.may(Scope::Read) {
        let mut error = PageError::forbidden(Scope::Read, "see the pages");
        if visit.may(Scope::Submit) {
            error.text += " The scope submit gets the output of a new job from POST /jobs?wait=10.";
        }
        return if is_browser { visit.error_page(&error) } else { error.as_json() };
    }
    if head.method == Method::POST && is_from_elsewhere(&head.headers) {
        return visit.error_page(&PageError::forged());
    }
    head.extensions.insert(visit.clone());
    let response = next.run(Request::from_parts(head, body)).await;
    let shown = match response.extensions().get::<PageError>() {
        Some(error) if is_browser => visit.error_page(error),
        Some(error) => error.as_json(),
        None => response,
    };
    if visit.toast.is_some() { site.without_toast(shown) } else { shown }
}

/// Returns true if the browser says that another site made this request.
fn is_from_elsewhere(headers: &HeaderMap) -> bool {
    let site = headers.get("sec-fetch-site").and_then(|value| value.to_str().ok());
    site.is_some_and(|site| !["same-origin", "none"].contains(&site))
}

/// Returns true if a browser could not have said which site made this request: it says so over TLS and to its own machine
/// alone, so over plain HTTP a page of another site looks like an address that was typed.
fn tells_no_site(headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let address: Uri = host.parse().unwrap_or_default();
    let name = address.host().unwrap_or_default();
    let bare = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
    let is_own = bare.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
    let is_own = is_own || bare.eq_ignore_ascii_case("localhost");
    !headers.contains_key("sec-fetch-site") && !is_own
}

/// Returns the caller: by the listener's word, else by the session.
async fn caller(site: &Site, request: &Parts) -> PageResult<Option<(Arc<Caller>, Option<String>)>> {
    if let Some(caller) = request.extensions.get::<Arc<Caller>>() {
        return Ok(Some((caller.clone(), None)));
    }
    let secret = read(&request.headers, &site.session_cookie).map(str::to_owned);
    let Some(secret) = secret else { return Ok(None) };
    let Some(found) = site.sessions.find(&secret, Instant::now()) else { return Ok(None) };
    let caller = match found {
        FoundSession::Live(caller) => caller,
        FoundSession::Check(token) => {
            let Some(caller) = site.check_token(&token).await? else {
                site.sessions.close(&secret);
                return Ok(None);
            };
            site.sessions.checked(&secret, caller.clone(), Instant::now());
            caller
        }
    };
    Ok(Some((caller, Some(secret))))
}

fn visitor(site: &Site, request: &Parts, caller: Arc<Caller>, session: Option<String>) -> Visitor {
    let headers = &request.headers;
    let forgery = site.sessions.forgery_token(&forgery_subject(session.as_deref(), &caller));
    Visitor {
        caller,
        session,
        token: request.extensions.get::<Arrival>().and_then(|arrival| arrival.token.clone()),
        forgery,
        theme: theme(headers),
        toast: read(headers, &site.toast_cookie).and_then(decoded),
        path: path_of(&request.uri),
    }
}

pub(super) fn theme(headers: &HeaderMap) -> Option<&'static str> {
    let chosen = read(headers, "hero_theme")?;
    ["light", "dark"].into_iter().find(|theme| *theme == chosen)
}

fn path_of(uri: &Uri) -> String {
    uri.path_and_query().map_or_else(|| "/".to_owned(), ToString::to_string)
}

/// Signs in by an address with `?token=`, and goes on without it, so that the token stays in no history.
async fn sign_in_by_address(site: &Site, request: &Parts) -> Option<Response> {
    let (token, path) = token_of(&request.uri)?;
    if request.method != Method::GET {
        return None;
    }
    Some(signed_in_by_link(site, request, &token, &path).await)
}

/// Returns the token of an address, and the address without it.
fn token_of(uri: &Uri) -> Option<(String, String)> {
    let token = |pair: &str| pair.strip_prefix("token=").and_then(decoded);
    let query = uri.query()?;
    let given = query.split('&').find_map(token)?;
    let rest: Vec<&str> = query.split('&').filter(|pair| token(pair).is_none()).collect();
    let query = if rest.is_empty() { String::new() } else { format!("?{}", rest.join("&")) };
    Some((given, format!("{}{query}", uri.path())))
}

/// Says to the sign-in that a link signs nobody in.
pub(super) const REFUSED_LINK: &str = "link";

/// Opens a session for the token of a link, as `hero dev` prints it, and goes on to `next`. A page of another site may
/// have such a link too, with a token of its author: that one signs nobody in, nor does another's in place of a session.
pub(super) async fn signed_in_by_link(
    site: &Site,
    request: &Parts,
    token: &str,
    next: &str,
) -> Response {
    let next = if site.links.safe(next).is_some() { next } else { "/" };
    let kept = if next == "/" { "" } else { next };
    let to_form = |refused| {
        let query = [("refused", refused), ("next", kept)];
        Redirect::to(&site.links.with("/login", &query)).into_response()
    };
    if is_from_elsewhere(&request.headers) || tells_no_site(&request.headers) {
        return to_form(REFUSED_LINK);
    }
    let failed = |error: PageError| refused(error.status, &error.text, &site.links);
    let found = match site.check_token(token.trim()).await {
        Ok(Some(found)) => found,
        Ok(None) => return to_form("1"),
        Err(error) => return failed(error),
    };
    match caller(site, request).await {
        Ok(Some((known, Some(_)))) if known.name != found.name => to_form(REFUSED_LINK),
        Ok(_) => site.signed_in(found, token.trim(), next),
        Err(error) => failed(error),
    }
}

fn is_browser(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    accept.is_some_and(|accept| accept.contains("text/html"))
}

/// Sends a browser to the sign-in; tells programs that they are not known.
fn refuse(site: &Site, request: &Parts) -> Response {
    if !is_browser(&request.headers) {
        return PageError::unknown().as_json();
    }
    let path = path_of(&request.uri);
    let next = if request.method == Method::GET && path != "/" { path.as_str() } else { "" };
    Redirect::to(&site.links.with("/login", &[("next", next)])).into_response()
}

#[cfg(test)]
mod tests {
    use super::super::links::SiteLinks;
    use super::*;

    #[test]
    fn link_over_plain_http_signs_in_only_on_the_own_machine() {
        let headers = |pairs: &[(&'static str, &'static str)]| -> HeaderMap {
            let pair = |(name, value): &(&'static str, &'static str)| {
                (HeaderName::from_static(name), HeaderValue::from_static(value))
            };
            pairs.iter().map(pair).collect()
        };
        for host in ["localhost", "localhost:8470", "127.0.0.1:8470", "[::1]:8470", "[::1]"] {
            assert!(!tells_no_site(&headers(&[("host", host)])), "{host}");
        }
        for host in ["hero.example.org", "192.0.2.7:8470", "localhost.example.org", ""] {
            assert!(tells_no_site(&headers(&[("host", host)])), "{host}");
            let told = headers(&[("host", host), ("sec-fetch-site", "none")]);
            assert!(!tells_no_site(&told), "{host}");
        }
    }

    #[test]
    fn address_goes_on_without_its_token_and_never_to_another_site() {
        let links = SiteLinks::new("/");
        for (address, rest, goes_on) in [
            ("/jobs?token=t", "/jobs", true),
            ("/jobs?state=error&token=t&q=a", "/jobs?state=error&q=a", true),
            ("//evil.example/x?token=t", "//evil.example/x", false),
            ("///evil.example?token=t", "///evil.example", false),
        ] {
            let uri: Uri = address.parse().expect("an address");
            assert_eq!(token_of(&uri), Some(("t".to_owned(), rest.to_owned())));
            assert_eq!(links.safe(rest).is_some(), goes_on, "{address}");
        }
        assert_eq!(token_of(&Uri::from_static("/jobs?tokens=t")), None);
    }
}
