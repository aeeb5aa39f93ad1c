//! The frame of every page: head, side bar with the states and their counts, dialogs.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::assets;
use super::links::SiteLinks;
use super::live::LivePart;
use super::parts::{ShownState, count};
use super::snapshot::SiteSnapshot;
use super::visitor::Visitor;
use super::web_error::{PageError, sentence, word};
use crate::rpc::Scope;

/// The place of a page in the side bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Nav {
    Overview,
    /// The list of jobs, of one state or of all.
    Jobs(Option<ShownState>),
    Graphs,
    Queues,
    Actors,
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

/// The content of a page inside of its frame.
#[derive(Debug, Clone)]
pub(super) struct WebPage {
    /// The title of the document, before the name of the program.
    pub(super) title: String,
    /// Its place in the side bar.
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

/// The values that the frame of a page shows.
pub(super) struct PageFrame<'a> {
    pub(super) links: &'a SiteLinks,
    pub(super) visitor: &'a Visitor,
    /// The state of the namespace; the last known one on an error page.
    pub(super) now: Option<&'a SiteSnapshot>,
    pub(super) namespace: &'a str,
}

/// Returns the head of a page: its `h1`, one line below it, and its buttons.
pub(super) fn head(title: &str, line: &Markup, actions: &Markup) -> Markup {
    html! {
        div.head {
            div { h1 { (title) } p #headline { (line) } }
            (actions)
        }
    }
}

/// Returns a whole page.
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

/// Returns a document with a body.
pub(super) fn document(
    links: &SiteLinks,
    theme: Option<&str>,
    title: &str,
    body: &Markup,
) -> Markup {
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
pub(super) fn mark(size: u8) -> Markup {
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
                input #q name="q" type="search" placeholder="Job id, name or error" autocomplete="off";
                kbd.wide aria-hidden="true" { "/" }
            }
            (navigation(links, visitor, *now, page.nav))
            (foot(links, visitor))
        }
    }
}

fn navigation(links: &SiteLinks, visitor: &Visitor, now: Option<&SiteSnapshot>, at: Nav) -> Markup {
    let counts = SideCounts::of(now);
    let entry = |nav: Nav, path: &str, word: &str, number: Markup| {
        let current = (nav == at).then_some("page");
        html! { li { a href=(links.to(path)) aria-current=[current] { (word) (number) } } }
    };
    html! {
        nav aria-label="Main" {
            ul {
                (entry(Nav::Overview, "/", "Overview", html! {}))
                li {
                    a href=(links.to("/jobs")) aria-current=[(at == Nav::Jobs(None)).then_some("page")] {
                        "Jobs" (counts.jobs)
                    }
                    ul {
                        @for (state, number) in &counts.states {
                            @let current = (at == Nav::Jobs(Some(*state))).then_some("page");
                            li {
                                a href=(links.with("/jobs", &[("state", state.class())])) aria-current=[current] {
                                    (state.shown()) (number)
                                }
                            }
                        }
                    }
                }
                (entry(Nav::Graphs, "/graphs", "Graphs", html! {}))
                (entry(Nav::Queues, "/queues", "Queues", counts.queues))
                (entry(Nav::Actors, "/actors", "Actors", counts.actors))
                (entry(Nav::PeriodicJobs, "/cron", "Periodic jobs", counts.periodic_jobs))
                (entry(Nav::Scripts, "/scripts", "Scripts", html! {}))
                (entry(Nav::DeadLetters, "/dead", "Dead letters", counts.dead))
                (entry(Nav::Limits, "/limits", "Limits", counts.limits))
                (entry(Nav::Objects, "/objects", "Objects", html! {}))
                @if now.is_some_and(|now| now.has_records) && !visitor.is_bound() {
                    (entry(Nav::Brokers, "/brokers", "Brokers", counts.brokers))
                    (entry(Nav::LogRecords, "/records", "Log records", html! {}))
                }
            }
            @if visitor.may(Scope::Admin) && !visitor.is_bound() {
                ul {
                    (entry(Nav::Notifications, "/notifications", "Notifications", html! {}))
                    (entry(Nav::Audit, "/audit", "Audit", html! {}))
                }
            }
            @if visitor.may(Scope::Submit) {
                div.sep {}
                ul { (entry(Nav::Submit, "/submit", "Submit a job", html! {})) }
            }
        }
    }
}

/// The numbers of the side bar, each an element with an id of its own.
struct SideCounts {
    jobs: Markup,
    states: Vec<(ShownState, Markup)>,
    queues: Markup,
    actors: Markup,
    periodic_jobs: Markup,
    dead: Markup,
    limits: Markup,
    brokers: Markup,
}

impl SideCounts {
    fn of(now: Option<&SiteSnapshot>) -> Self {
        let dead = now.and_then(SiteSnapshot::dead);
        let states = ShownState::ALL.map(|state| {
            let number = now.and_then(|now| now.count(state));
            let among = now.and_then(SiteSnapshot::cancelled_among);
            let shown = match (state, among, number) {
                (ShownState::Cancelled, Some(among), Some(number)) => at_least(number, among),
                _ => number_of(state.class(), number, false),
            };
            (state, shown)
        });
        let len = |of: fn(&SiteSnapshot) -> usize| now.map(|now| of(now) as u64);
        Self {
            jobs: number_of("jobs", now.and_then(SiteSnapshot::jobs), false),
            states: states.into(),
            queues: number_of("queues", len(|now| now.moment.queues.len()), false),
            actors: number_of("actors", len(|now| now.moment.actors.len()), false),
            periodic_jobs: number_of("cron", now.and_then(|now| now.periodic_jobs), false),
            dead: number_of("dead", dead, dead.is_some_and(|dead| dead > 0)),
            limits: number_of("limits", now.map(|now| now.limits), false),
            brokers: number_of("brokers", len(|now| now.moment.live_brokers().count()), false),
        }
    }
}

fn number_of(name: &str, number: Option<u64>, is_bad: bool) -> Markup {
    let text = number.map_or_else(|| "–".to_owned(), count);
    html! { b id={ "n-" (name) } class=[is_bad.then_some("bad")] { (text) } }
}

/// Returns the number of cancelled jobs, which were counted among the latest failed ones.
fn at_least(number: u64, among: u64) -> Markup {
    let title = format!("of the latest {} that ended in error", count(among));
    html! { b #n-cancelled title=(title) { (count(number)) "+" } }
}

/// Returns the live parts of the side bar.
pub(super) fn live_parts(now: &SiteSnapshot) -> Vec<LivePart> {
    let counts = SideCounts::of(Some(now));
    let states = counts.states.into_iter().map(|(state, number)| (state.class(), number));
    let others = [
        ("jobs", counts.jobs),
        ("queues", counts.queues),
        ("actors", counts.actors),
        ("cron", counts.periodic_jobs),
        ("dead", counts.dead),
        ("limits", counts.limits),
        ("brokers", counts.brokers),
    ];
    states
        .chain(others)
        .map(|(name, number)| LivePart::whole(&format!("n-{name}"), number))
        .collect()
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
                    span title=(scopes(visitor)) { (visitor.caller.name) }
                    @if visitor.session.is_some() { button.plain { "Sign out" } }
                }
            }
        }
    }
}

fn scopes(visitor: &Visitor) -> String {
    let all = [Scope::Read, Scope::Submit, Scope::Operate, Scope::Admin];
    let own: Vec<&str> = all.into_iter().filter(|scope| visitor.may(*scope)).map(word).collect();
    format!("scopes: {}", own.join(", "))
}

const KEYS: [(&[&str], &str); 15] = [
    (&["/"], "Find a job"),
    (&["g", "o"], "Overview"),
    (&["g", "j"], "Jobs"),
    (&["g", "q"], "Queues"),
    (&["g", "a"], "Actors"),
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

/// Returns the page that says why there is none.
pub(super) fn error_page(error: &PageError, links: &SiteLinks) -> WebPage {
    let main = html! {
        div.head { div { h1 { (error.title) } } }
        div.note-err { p { (sentence(&error.text)) } }
        p.gap { a href=(links.to("/")) { "Overview" } }
        @if error.status.as_u16() == 503 { p #away .sr { "Hero tries again." } }
    };
    WebPage::still(error.title, Nav::Nowhere, main)
}

/// Returns a heading of a section, with a link at its right.
pub(super) fn bar(title: &str, small: &str, link: Option<(&str, &str)>) -> Markup {
    html! {
        div.bar {
            h2 { (title) @if !small.is_empty() { " " small { (small) } } }
            @if let Some((text, href)) = link { a href=(href) { (text) } }
        }
    }
}
