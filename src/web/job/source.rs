//! The script of a job, its output and its error.

use maud::{Markup, html};
use serde_json::json;

use super::super::doc::JobDoc;
use super::super::links::SiteLinks;
use super::super::parts::{bar, first_line, things};
use super::super::relations::prerequisite;
use super::highlight::{ScriptLanguage, TokenClass, tokens};
use crate::proto::error_kind::failed_prerequisite;
use crate::proto::job::JobStatus;

/// The longest text that is shown or coloured, in bytes.
const SHOWN_MAX: usize = 256 * 1024;

pub(super) fn script(job: &JobDoc) -> Markup {
    let (text, kind) = (job.text("script"), job.text("script_type"));
    let (shown, is_cut) = cut(text);
    let failed = failed_line(job.text("error"));
    let lines = things(text.lines().count() as u64, "line");
    let small = match failed {
        Some(line) => format!("{kind}, {lines}, line {line} failed last"),
        None => format!("{kind}, {lines}"),
    };
    let language = ScriptLanguage::of(kind, job.text("extension"));
    html! {
        section {
            div.bar {
                h2 #src { "Script " small { (small) } }
                button.plain type="button" data-copy="#script" { "Copy" }
            }
            div #script { (code(shown, language, failed)) }
            @if is_cut { p.faint { "The rest is not shown. The JSON of the job has all of it." } }
        }
    }
}

fn code(text: &str, language: Option<ScriptLanguage>, failed: Option<u64>) -> Markup {
    let all = match language {
        Some(language) => tokens(language, text),
        None => vec![(TokenClass::Plain, text)],
    };
    html! {
        div.code tabindex="0" role="region" aria-label="Script" {
            pre {
                @for (number, line) in (1_u64..).zip(lines(&all)) {
                    span.ln.bad[failed == Some(number)] {
                        @for (class, text) in line {
                            @if class == TokenClass::Plain { (text) }
                            @else { span class=(class) { (text) } }
                        }
                        "\n"
                    }
                }
            }
        }
    }
}

fn lines<'a>(tokens: &[(TokenClass, &'a str)]) -> Vec<Vec<(TokenClass, &'a str)>> {
    let mut lines = vec![Vec::new()];
    for (class, text) in tokens {
        for (at, part) in text.split('\n').enumerate() {
            if at > 0 {
                lines.push(Vec::new());
            }
            if let (Some(line), false) = (lines.last_mut(), part.is_empty()) {
                line.push((*class, part));
            }
        }
    }
    if lines.len() > 1 && lines.last().is_some_and(Vec::is_empty) {
        lines.pop();
    }
    lines
}

fn failed_line(error: &str) -> Option<u64> {
    let (_, after) = error.rsplit_once("line ")?;
    let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

fn cut(text: &str) -> (&str, bool) {
    if text.len() <= SHOWN_MAX {
        return (text, false);
    }
    let end = (0..=SHOWN_MAX).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    (&text[..end], true)
}

/// Returns the error of the job, or of its last attempt.
pub(super) fn error(job: &JobDoc, links: &SiteLinks) -> Markup {
    let (text, is_cut) = cut(job.text("error"));
    let is_over = job.status() == JobStatus::Error;
    html! {
        section #error {
            @if !text.is_empty() {
                div.bar {
                    h2 {
                        @if is_over { "Error" } @else { "Last error " small { "of an attempt before; the job goes on" } }
                    }
                    button.plain type="button" data-copy="#err" { "Copy" }
                }
                div.note-err {
                    pre #err { (text) }
                    (before(job, links))
                }
                @if is_cut { p.faint { "The rest is not shown." } }
            }
        }
    }
}

/// Returns the job whose failure ended this one, with its error.
fn before(job: &JobDoc, links: &SiteLinks) -> Markup {
    let Some(id) = failed_prerequisite(job.text("error")) else { return html! {} };
    let other = prerequisite(job).unwrap_or_else(|| JobDoc::from(json!({ "id": id })));
    html! {
        p {
            "It waited for " (other.link(links))
            @if !other.text("error").is_empty() { ", which failed: " (first_line(other.text("error"))) }
            @else { "." }
        }
    }
}

pub(super) fn output(job: &JobDoc, links: &SiteLinks) -> Markup {
    let is_text = job.text("output_encoding").is_empty();
    let (text, is_cut) = cut(job.text("output"));
    let has_output = job.get("output").is_some();
    html! {
        section #output {
            @if has_output && !text.is_empty() {
                div.bar {
                    h2 #out { "Output" @if !is_text { " " small { "bytes that are not text, as Base64" } } }
                    a.plain href={ (links.job(job.id())) "/output" } { "Download" }
                    button.plain type="button" data-copy="#output-text" { "Copy" }
                }
                div.code tabindex="0" role="region" aria-label="Output" {
                    pre.one #output-text { (text) }
                }
                @if is_cut { p.faint { "The rest is not shown: download it." } }
            } @else {
                (bar("Output", "", None))
                div.code { p.empty { (no_output(job)) } }
            }
        }
    }
}

/// Returns the state that the script has kept for the next attempt.
pub(super) fn kept_state(job: &JobDoc) -> Markup {
    let (text, is_cut) = cut(job.text("kept_state"));
    html! {
        section #kept {
            @if !text.is_empty() {
                (bar("State for the next attempt", "", None))
                div.code tabindex="0" role="region" aria-label="State for the next attempt" {
                    pre.one { (text) }
                }
                @if is_cut { p.faint { "The rest is not shown. The JSON of the job has all of it." } }
            }
        }
    }
}

fn no_output(job: &JobDoc) -> &'static str {
    match job.status() {
        JobStatus::Finished => "The output is empty.",
        JobStatus::Error => "No output: the job did not finish.",
        _ => "No output yet. It is stored when an attempt finishes.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn script_has_a_span_for_each_line_and_marks_the_one_that_failed() {
        let job = JobDoc::from(json!({
            "script": "a = '''b\nc'''\nf(1)\n", "script_type": "python",
            "error": "line 1 of a module failed (line 3, in f)",
        }));
        let text = script(&job).into_string();
        assert_eq!(text.matches("class=\"ln").count(), 3, "{text}");
        assert!(text.contains("ln bad\"><span class=\"f\">f</span>"), "{text}");
        assert!(text.contains("3 lines, line 3 failed last"), "{text}");
    }

    #[test]
    fn hostile_texts_are_escaped() {
        let hostile = "</pre><script>alert(1)</script>";
        for kind in ["python", "osis", "bash", "node", "other"] {
            let job = JobDoc::from(json!({
                "script": hostile, "error": hostile, "output": hostile, "script_type": kind,
                "kept_state": hostile,
                "status": "error",
            }));
            let texts = [
                script(&job),
                error(&job, &SiteLinks::new("/")),
                output(&job, &SiteLinks::new("/")),
                kept_state(&job),
            ];
            for text in texts {
                let text = text.into_string();
                assert!(!text.contains("<script>"), "{text}");
                assert_eq!(text.matches("</pre>").count(), 1, "{text}");
            }
        }
    }

    #[test]
    fn long_text_is_cut_between_letters() {
        let text = "é".repeat(SHOWN_MAX);
        let (shown, is_cut) = cut(&text);
        assert!(is_cut && shown.len() == SHOWN_MAX);
        assert_eq!(cut(&format!("a{text}")).0.len(), SHOWN_MAX - 1);
    }
}
