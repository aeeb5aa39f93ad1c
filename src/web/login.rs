//! Signing in and out, and the theme.

use axum::Form;
use axum::extract::{DefaultBodyLimit, Query, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use maud::html;
use serde::Deserialize;

use super::cookie::read;
use super::fields::Fields;
use super::guard::{REFUSED_LINK, signed_in_by_link, theme as chosen_theme};
use super::layout::{bare, refused};
use super::site::{SESSION_COOKIE_S, Site, THEME_COOKIE_S};
use super::visit::Visit;
use crate::rpc::has_hidden_origin;

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct SignInQuery {
    /// The page to go to, without the prefix.
    next: String,
    /// A token to sign in with, as the address has it that `hero dev` prints.
    token: String,
    /// Set if a token was refused, to `link` if it came by a link that signs nobody in.
    refused: String,
}

pub(super) async fn form(
    State(site): State<Site>,
    request: Parts,
    Query(asked): Query<SignInQuery>,
) -> Response {
    if !asked.token.is_empty() {
        return signed_in_by_link(&site, &request, &asked.token, &asked.next).await;
    }
    let refusal = match asked.refused.as_str() {
        "" => None,
        REFUSED_LINK => Some(FOREIGN_LINK),
        _ => Some(UNKNOWN_TOKEN),
    };
    sign_in_page(&site, &request.headers, &asked.next, refusal)
}

const FOREIGN_LINK: &str = "A link of another site signs nobody in, nor does a link in place of a session. Give the \
                            token here.";
const UNKNOWN_TOKEN: &str = "This token is not known, or it has expired.";
const OLD_FORM: &str = "This form is too old. Give the token again.";

/// Returns the form, with the reason why the one before was refused. It has a token against forgery that
/// belongs to a cookie of this browser.
fn sign_in_page(site: &Site, headers: &HeaderMap, next: &str, refusal: Option<&str>) -> Response {
    let known = read(headers, &site.sign_in_cookie).map(str::to_owned);
    let is_known = known.is_some();
    let secret = known.or_else(|| site.sessions.secret()).unwrap_or_default();
    let forgery = site.sessions.forgery_token(&forgery_subject(&secret));
    let invalid = refusal.map(|_| "true");
    let content = html! {
        form.form method="post" action=(site.links.to("/login")) {
            @if let Some(refusal) = refusal {
                div.note-err #refused role="alert" { p { (refusal) } }
            }
            input type="hidden" name="csrf" value=(forgery);
            input type="hidden" name="next" value=(next);
            div.f-l {
                label for="token" { "Token" }
                input #token name="token" type="password" autocomplete="off" required autofocus
                    aria-invalid=[invalid] aria-describedby=[refusal.map(|_| "refused")];
            }
            div.actions { button.main { "Sign in" } }
        }
        p.dim { "No token yet? Make one on the server:" }
        div.code { p.one { code { "hero token new NAME --scope read" } } }
    };
    let page = bare(&site.links, chosen_theme(headers), "Sign in", &content);
    let status = if refusal.is_some() { StatusCode::UNAUTHORIZED } else { StatusCode::OK };
    let mut response = (status, page).into_response();
    if !is_known {
        site.set_cookie(&mut response, &site.sign_in_cookie, &secret, SESSION_COOKIE_S);
    }
    response
}

/// Returns what the token against forgery of the form is bound to.
fn forgery_subject(secret: &str) -> String {
    format!("sign in {secret}")
}

/// Returns the limit of the form's body: who sends it is not known yet.
pub(super) fn body_limit() -> DefaultBodyLimit {
    DefaultBodyLimit::max(64 << 10)
}

#[derive(Deserialize)]
pub(super) struct SignIn {
    token: String,
    #[serde(default)]
    next: String,
    /// The token against forgery. It counts where the browser does not tell the origin of the form; elsewhere the
    /// listener has compared it.
    #[serde(default)]
    csrf: String,
}

pub(super) async fn sign_in(
    State(site): State<Site>,
    headers: HeaderMap,
    Form(given): Form<SignIn>,
) -> Response {
    let next = if site.links.safe(&given.next).is_some() { given.next.as_str() } else { "/" };
    let own = read(&headers, &site.sign_in_cookie).map(forgery_subject);
    let is_own = own.is_some_and(|subject| site.sessions.is_of(&subject, &given.csrf));
    if (has_hidden_origin(&headers) || !headers.contains_key(header::ORIGIN)) && !is_own {
        return sign_in_page(&site, &headers, next, Some(OLD_FORM));
    }
    match site.check_token(given.token.trim()).await {
        Ok(Some(caller)) => site.signed_in(caller, given.token.trim(), next),
        Ok(None) => sign_in_page(&site, &headers, next, Some(UNKNOWN_TOKEN)),
        Err(error) => refused(error.status, &error.text, &site.links),
    }
}

pub(super) async fn sign_out(visit: Visit, _: Fields) -> Response {
    if let Some(secret) = &visit.session {
        visit.site.sessions.close(secret);
    }
    let mut response = Redirect::to(&visit.links().to("/login")).into_response();
    visit.site.set_cookie(&mut response, &visit.site.session_cookie, "", 0);
    response
}

/// Changes between light and dark, and goes back to the page.
pub(super) async fn theme(visit: Visit, fields: Fields) -> Response {
    let theme = match fields.get("theme") {
        "" if visit.theme == Some("dark") => "light",
        "" | "dark" => "dark",
        _ => "light",
    };
    let to = visit.links().safe(fields.get("to")).unwrap_or_else(|| visit.links().to("/"));
    let mut response = Redirect::to(&to).into_response();
    visit.site.set_cookie(&mut response, "hero_theme", theme, THEME_COOKIE_S);
    response
}
