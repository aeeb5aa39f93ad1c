//! The list of problems: a sign, a bold subject, one sentence with numbers, one link.

use maud::{Markup, html};

use super::state::glyph;

/// The severity of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::web) enum Severity {
    Error,
    Warning,
}

/// One thing that is wrong now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::web) struct PageProblem {
    pub(in crate::web) severity: Severity,
    /// The bold subject. It comes in three pieces, of which the middle one is a link.
    pub(in crate::web) subject: (String, Option<(String, String)>, &'static str),
    /// One sentence with numbers.
    pub(in crate::web) text: String,
    /// The text of the link and its address.
    pub(in crate::web) link: Option<(String, String)>,
}

/// Returns the list, the worst first. Without problems it is one line.
pub(in crate::web) fn problems(all: &[PageProblem]) -> Markup {
    if all.is_empty() {
        return html! {
            ul #problems .wrong { li { span.st.finished { (glyph("finished")) } p { "Nothing needs you." } } }
        };
    }
    html! {
        ul #problems .wrong {
            @for PageProblem { severity, subject: (before, linked, after), text, link } in all {
                li {
                    @match severity {
                        Severity::Error => span.st.error { (glyph("error")) },
                        Severity::Warning => span.st.warn { (glyph("warn")) },
                    }
                    p {
                        strong {
                            (before)
                            @if let Some((name, href)) = linked { a href=(href) { (name) } }
                            (after)
                        }
                        " " span { (text) }
                    }
                    @if let Some((name, href)) = link { a href=(href) { (name) } }
                }
            }
        }
    }
}
