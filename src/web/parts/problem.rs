//! The list of problems: a sign, one bold sentence, the remedy, one link.

use maud::{Markup, html};

use super::super::web_error::sentence;
use super::state::glyph;
use crate::view::Severity;

/// One thing that is wrong now, with the page that shows more of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::web) struct PageProblem {
    pub(in crate::web) severity: Severity,
    /// The bold sentence, lower case, without a full stop.
    pub(in crate::web) text: String,
    /// The remedy, a line or more; empty without one.
    pub(in crate::web) remedy: String,
    /// The text of the link and its address.
    pub(in crate::web) link: Option<(&'static str, String)>,
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
            @for PageProblem { severity, text, remedy, link } in all {
                li data-severity=(severity.as_str()) {
                    @match severity {
                        Severity::Critical => span.st.error { (glyph("error")) },
                        Severity::Warning | Severity::Note => span.st.warn { (glyph("warn")) },
                    }
                    p {
                        strong { (sentence(text)) }
                        @for line in remedy.lines() { " " span { (sentence(line)) } }
                    }
                    @if let Some((name, href)) = link { a href=(href) { (name) } }
                }
            }
        }
    }
}
