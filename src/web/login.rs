//! Signing in and out, and the theme.

use axum::Form;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{Html, IntoResponse, Redirect, Response};
use maud::html;
use serde::Deserialize;

use super::fields::Fields;
use super::guard::theme as chosen_theme;
use super::layout::{document, mark};
use super::site::{Site, THEME_COOKIE_S};
use super::visitor::Visitor;

#[derive(Deserialize)]
pub(super) struct SignInQuery {
    /// The page to go to, without the prefix.
    #[serde(default)]
    next: String,
    /// A token to sign in with, as the address has it that `hero dev` prints.
    #[serde(default)]
    token: String,
    /// Set if a token was refused.
    #[serde(default)]
    refused: String,
}

/// Shows the form.
pub(super) async fn form(
    State(site): State<Site>,
    headers: HeaderMap,
    Query(asked): Query<SignInQuery>,
) -> Response {
    if !asked.token.is_empty() {
        let SignInQuery { token, next, .. } = asked;
        return sign_in(State(site), headers, Form(SignIn { token, next })).await;
    }
    let status = if asked.refused.is_empty() { StatusCode::OK } else { StatusCode::UNAUTHORIZED };
    sign_in_page(&site, &headers, &asked.next, status)
}

fn sign_in_page(site: &Site, headers: &HeaderMap, next: &str, status: StatusCode) -> Response {
    let is_refused = status == StatusCode::UNAUTHORIZED;
    let invalid = is_refused.then_some("true");
    let page = document(
        site.links(),
        chosen_theme(headers),
        "Sign in",
        &html! {
            main.login {
                div.brand { (mark(22)) "Hero" }
                h1 { "Sign in" }
                form.form method="post" action=(site.links().to("/login")) {
                    @if is_refused {
                        div.note-err #refused role="alert" {
                            p { "This token is not known, or it has expired." }
                        }
                    }
                    input type="hidden" name="next" value=(next);
                    div.f-l {
                        label for="token" { "Token" }
                        input #token name="token" type="password" autocomplete="off" required autofocus
                            aria-invalid=[invalid] aria-describedby=[is_refused.then_some("refused")];
                    }
                    div.actions { button.main { "Sign in" } }
                }
                p.dim { "No token yet? Make one on the server:" }
                div.code { p.one { code { "hero token new NAME --scope read" } } }
            }
        },
    );
    (status, Html(page.into_string())).into_response()
}

#[derive(Deserialize)]
pub(super) struct SignIn {
    token: String,
    #[serde(default)]
    next: String,
}

/// Opens a session for a token.
pub(super) async fn sign_in(
    State(site): State<Site>,
    headers: HeaderMap,
    Form(given): Form<SignIn>,
) -> Response {
    let next = if site.links().safe(&given.next).is_some() { given.next.as_str() } else { "/" };
    match site.check_token(given.token.trim()).await {
        Ok(Some(caller)) => site.signed_in(caller, given.token.trim(), next),
        Ok(None) => sign_in_page(&site, &headers, next, StatusCode::UNAUTHORIZED),
        Err(error) => error.into_response(),
    }
}

/// Ends the session.
pub(super) async fn sign_out(State(site): State<Site>, visitor: Visitor, _: Fields) -> Response {
    if let Some(secret) = &visitor.session {
        site.sessions().close(secret);
    }
    let mut response = Redirect::to(&site.links().to("/login")).into_response();
    site.set_cookie(&mut response, site.session_cookie(), "", 0);
    response
}

/// Changes between light and dark, and goes back to the page.
pub(super) async fn theme(State(site): State<Site>, visitor: Visitor, fields: Fields) -> Response {
    let theme = match fields.get("theme") {
        "" if visitor.theme == Some("dark") => "light",
        "" | "dark" => "dark",
        _ => "light",
    };
    let to = site.links().safe(fields.get("to")).unwrap_or_else(|| site.links().to("/"));
    let mut response = Redirect::to(&to).into_response();
    site.set_cookie(&mut response, "hero_theme", theme, THEME_COOKIE_S);
    response
}
