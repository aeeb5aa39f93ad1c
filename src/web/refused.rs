//! The page for a visitor who is not known: the reason of a refusal, and the way to the page.

use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};
use maud::html;

use super::layout::{document, mark};
use super::links::SiteLinks;
use super::visible::visible;
use super::web_error::sentence;

pub(super) fn refused(status: StatusCode, reason: &str, links: &SiteLinks) -> Response {
    let is_away = status == StatusCode::SERVICE_UNAVAILABLE;
    let title = if is_away { "Not available" } else { "Not done" };
    let page = document(
        links,
        None,
        title,
        &html! {
            main.login {
                div.brand { (mark(22)) "Hero" }
                h1 { (title) }
                div.note-err role="alert" { p { (sentence(reason)) } }
                p.gap { a href=(links.to("/")) { "Open the page" } }
            }
        },
    );
    (status, Html(visible(page))).into_response()
}
