//! The frame of every page: head, side bar with the states and their counts, dialogs.

use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::assets;
use super::links::SiteLinks;
use super::live::LivePart;
use super::parts::{ShownState, count};
use super::snapshot::SiteSnapshot;
use super::visible::visible;
use super::visitor::Visitor;
use super::web_error::{PageError, sentence};
use crate::rpc::Scope;

/// The place of a page in the side bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Nav {
    Overview,
    /// The list of jobs, of one state or of all.
    Jobs(Option<ShownState>),
    Graphs,
    Queues,
    Machines,
    PeriodicJobs,
    Scripts,
    DeadLetters,
    Limits,
    Objects,
    Brokers,
    LogRecords,
    Notifications,
    Audit,
    Submit,
    /// None of them.
    Nowhere,
}

#[derive(Debug, Clone)]
pub(super) struct WebPage {
    /// The title of the document, before the name of the program.
    pub(super) title: String,
    pub(super) nav: Nav,
    /// The content of `main`, with one `h1`.
    pub(super) main: Markup,
    /// True if `/events` has live parts for it.
    pub(super) is_live: bool,
}

impl WebPage {
    /// Creates a page that stays as it is.
    pub(super) fn still(title: impl Into<String>, nav: Nav, main: Markup) -> Self {
        Self { title: title.into(), nav, main, is_live: false }
    }

    /// Creates a page whose parts are kept current.
    pub(super) fn live(title: impl Into<String>, nav: Nav, main: Markup) -> Self {
        Self { is_live: true, ..Self::still(title, nav, main) }
    }
}

pub(super) struct PageFrame<'a> {
    pub(super) links: &'a SiteLinks,
    pub(super) visitor: &'a Visitor,
    /// The state of the namespace; the last known one on an error page.
    pub(super) now: Option<&'a SiteSnapshot>,
    pub(super) namespace: &'a str,
}

pub(super) fn whole(frame: &PageFrame, page: &WebPage) -> Markup {
    let PageFrame { links, visitor, .. } = frame;
    document(
        links,
        visitor.theme,
        &page.title,
        &html! {
            a.skip href="#main" { "Skip to content" }
            div.app {
                (side(frame, page))
                main #main data-live=[page.is_live.then_some(&visitor.path)] { (page.main) }
            }
            (keys_dialog())
            dialog #ask aria-labelledby="question" {}
            div.toast role="status" aria-live="polite" {
                @if let Some(toast) = &visitor.toast { (toast) }
            }
        },
    )
}

fn document(links: &SiteLinks, theme: Option<&str>, title: &str, body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" data-theme=[theme] data-root=(links.to("")) {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · Hero" }
                link rel="icon" href="data:,";
                link rel="stylesheet" href=(links.to(&assets::path("hero.css")));
                script src=(links.to(&assets::path("hero.js"))) defer {}
            }
            body {
                svg width="0" height="0" aria-hidden="true" focusable="false" {
                    defs { (PreEscaped(assets::SPRITE)) }
                }
                (body)
            }
        }
    }
}

/// Returns the mark of the program.
fn mark(size: u8) -> Markup {
    html! {
        svg width=(size) height=(size) viewBox="0 0 18 18" aria-hidden="true" {
            path d="M3 2v14M15 2v14M3 9h5" fill="none" stroke="currentColor" stroke-width="3" {}
            path d="M8.5 5.5v7l5-3.5z" fill="currentColor" {}
        }
    }
}

fn side(frame: &PageFrame, page: &WebPage) -> Markup {
    let PageFrame { links, visitor, now, namespace } = frame;
    html! {
        header.side {
            div.brand {
                a.brand-a href=(links.to("/")) aria-label="Hero, overview" { (mark(18)) }
                "Hero " small title="redis.namespace" { (namespace) }
                label.menu {
                    span.live aria-hidden="true" {}
                    "Menu"
                    input.sr #menu type="checkbox";
                }
            }
            form.find action=(links.to("/jobs")) role="search" aria-label="Find" {
                label.sr for="q" { "Find jobs by id, name or error" }
                input #q name="text" type="search" placeholder="Job id, name or error" autocomplete="off";
                kbd.wide aria-hidden="true" { "/" }
            }
            (navigation(links, visitor, *now, page.nav))
            (foot(links, visitor))
        }
    }
}

fn navigation(links: &SiteLinks, visitor: &Visitor, now: Option<&SiteSnapshot>, at: Nav) -> Markup {
    let numbers = side_numbers(now);
    let number = |name: &str| {
        html! { @for (_, number) in numbers.iter().filter(|(of, _)| *of == name) { (number) } }
    };
    // A page with a number has it under the name of its path.
    let entry = |nav: Nav, path: &str, word: &str| {
        let current = (nav == at).then_some("page");
        html! { li { a href=(links.to(path)) aria-current=[current] { (word) (number(&path[1..])) } } }
    };
    html! {
        nav aria-label="Main" {
            ul {
                (entry(Nav::Overview, "/", "Overview"))
                li {
                    a href=(links.to("/jobs")) aria-current=[(at == Nav::Jobs(None)).then_some("page")] {
                        "Jobs" (number("jobs"))
                    }
                    ul {
                        @for state in ShownState::ALL {
                            @let current = (at == Nav::Jobs(Some(state))).then_some("page");
                            li {
                                a href=(links.with("/jobs", &[("status", state.asked())])) aria-current=[current] {
                                    (state.shown()) (number(state.as_str()))
                                }
                            }
                        }
                    }
                }
                (entry(Nav::Graphs, "/graphs", "Graphs"))
                (entry(Nav::Queues, "/queues", "Queues"))
                (entry(Nav::Machines, "/machines", "Machines"))
                (entry(Nav::PeriodicJobs, "/cron", "Periodic jobs"))
                (entry(Nav::Scripts, "/scripts", "Scripts"))
                (entry(Nav::DeadLetters, "/dead", "Dead letters"))
                (entry(Nav::Limits, "/limits", "Limits"))
                (entry(Nav::Objects, "/objects", "Objects"))
                @if now.is_some_and(|now| now.has_records) && !visitor.is_bound() {
                    (entry(Nav::Brokers, "/brokers", "Brokers"))
                    (entry(Nav::LogRecords, "/records", "Log records"))
                }
            }
            @if visitor.may(Scope::Admin) && !visitor.is_bound() {
                ul {
                    (entry(Nav::Notifications, "/notifications", "Notifications"))
                    (entry(Nav::Audit, "/audit", "Audit"))
                }
            }
            @if visitor.may(Scope::Submit) {
                div.sep {}
                ul { (entry(Nav::Submit, "/submit", "Submit a job")) }
            }
        }
    }
}

/// Returns the numbers of the side bar by their names, each an element with an id of its own.
fn side_numbers(now: Option<&SiteSnapshot>) -> Vec<(&'static str, Markup)> {
    let len = |of: fn(&SiteSnapshot) -> usize| now.map(|now| of(now) as u64);
    let states =
        ShownState::ALL.map(|state| (state.as_str(), now.and_then(|now| now.count(state))));
    let others = [
        ("jobs", now.and_then(SiteSnapshot::jobs)),
        ("queues", len(|now| now.snapshot.queues.len())),
        ("machines", len(SiteSnapshot::live_machines)),
        ("cron", now.and_then(|now| now.periodic_jobs)),
        ("dead", now.and_then(SiteSnapshot::dead)),
        ("limits", now.map(|now| now.limits)),
        ("brokers", len(|now| now.snapshot.live_brokers().count())),
    ];
    let shown = |(name, number): (&'static str, Option<u64>)| {
        let text = number.map_or_else(|| "–".to_owned(), count);
        let is_bad = name == "dead" && number > Some(0);
        let element = html! { b id={ "n-" (name) } class=[is_bad.then_some("bad")] { (text) } };
        (name, element)
    };
    states.into_iter().chain(others).map(shown).collect()
}

pub(super) fn live_parts(now: &SiteSnapshot) -> Vec<LivePart> {
    let numbers = side_numbers(Some(now)).into_iter();
    numbers.map(|(name, number)| LivePart::whole(&format!("n-{name}"), number)).collect()
}

fn foot(links: &SiteLinks, visitor: &Visitor) -> Markup {
    html! {
        div.foot {
            form #theme method="post" action=(links.to("/theme")) {
                (visitor.forgery_field())
                input type="hidden" name="to" value=(visitor.path);
                div {
                    span.live #live aria-hidden="true" {}
                    span #live-text { "Hero " (env!("CARGO_PKG_VERSION")) }
                    button.plain title="Light or dark" { "Theme" }
                }
            }
            form method="post" action=(links.to("/logout")) {
                (visitor.forgery_field())
                div {
                    span title={ "scopes: " (visitor.caller.scopes.to_string().replace(',', ", ")) } { (visitor.caller.name) }
                    @if visitor.session.is_some() { button.plain { "Sign out" } }
                }
            }
        }
    }
}

const KEYS: [(&[&str], &str); 15] = [
    (&["/"], "Find a job"),
    (&["g", "o"], "Overview"),
    (&["g", "j"], "Jobs"),
    (&["g", "q"], "Queues"),
    (&["g", "m"], "Machines"),
    (&["g", "c"], "Periodic jobs"),
    (&["g", "d"], "Dead letters"),
    (&["g", "l"], "Limits"),
    (&["g", "s"], "Submit a job"),
    (&["j", "k"], "Next row, row before"),
    (&["Enter"], "Open the row"),
    (&["x"], "Select the row"),
    (&["f"], "Follow the log"),
    (&["t"], "Light or dark"),
    (&["?"], "These keys"),
];

fn keys_dialog() -> Markup {
    html! {
        dialog #keys aria-labelledby="keys-title" {
            form method="dialog" {
                h2 #keys-title { "Keys" }
                dl.keys {
                    @for (keys, what) in KEYS {
                        dt { @for key in keys { kbd { (key) } " " } }
                        dd { (what) }
                    }
                }
                p { label { input #keys-off type="checkbox"; " No keys on this browser" } }
                menu { button autofocus { "Close" } }
            }
        }
    }
}

pub(super) fn error_page(error: &PageError, links: &SiteLinks) -> WebPage {
    let main = html! {
        div.head { div { h1 { (error.title) } } }
        div.note-err { p { (sentence(&error.text)) } }
        p.gap { a href=(links.to("/")) { "Overview" } }
        @if error.status.as_u16() == 503 { p #away .sr { "Hero tries again." } }
    };
    WebPage::still(error.title, Nav::Nowhere, main)
}

/// Returns a page without the frame, for a visitor who is not known.
pub(super) fn bare(
    links: &SiteLinks,
    theme: Option<&str>,
    title: &str,
    content: &Markup,
) -> Html<String> {
    let body = html! {
        main.login { div.brand { (mark(22)) "Hero" } h1 { (title) } (content) }
    };
    Html(visible(document(links, theme, title, &body)))
}

/// Answers a visitor who is not known with the reason of a refusal, and the way to the page.
pub(super) fn refused(status: StatusCode, reason: &str, links: &SiteLinks) -> Response {
    let is_away = status == StatusCode::SERVICE_UNAVAILABLE;
    let title = if is_away { "Not available" } else { "Not done" };
    let content = html! {
        div.note-err role="alert" { p { (sentence(reason)) } }
        p.gap { a href=(links.to("/")) { "Open the page" } }
    };
    (status, bare(links, None, title, &content)).into_response()
}
