//! The text of a page as browsers get it: characters that a person does not see are spelled as at a terminal.

use maud::Markup;

use crate::proto::text::{escape_in_page, is_invisible};

/// Returns the text of a document, or of a part of one, with invisible characters spelled. What a form sends back stays as
/// it is: values, and the contents of text areas.
pub(super) fn visible(markup: Markup) -> String {
    const VALUE: &str = " value=\"";
    let text = markup.into_string();
    if !text.chars().any(|c| is_invisible(c) && !c.is_ascii_whitespace()) {
        return text;
    }
    let mut shown = String::with_capacity(text.len());
    // Texts have no `<` and no quote of their own: they are escaped.
    for (place, piece) in text.split('<').enumerate() {
        if place > 0 {
            shown.push('<');
        }
        if piece.starts_with("textarea") {
            shown.push_str(piece);
            continue;
        }
        let (before, value, behind) = match piece.split_once(VALUE) {
            Some((before, rest)) => {
                let (value, behind) = rest.split_at(rest.find('"').unwrap_or(rest.len()));
                (before, Some(value), behind)
            }
            None => (piece, None, ""),
        };
        shown.push_str(&escape_in_page(before));
        if let Some(value) = value {
            shown.push_str(VALUE);
            shown.push_str(value);
        }
        shown.push_str(&escape_in_page(behind));
    }
    shown
}

#[cfg(test)]
mod tests {
    use maud::html;

    use super::*;

    #[test]
    fn invisible_characters_are_spelled_but_in_what_a_form_sends_back() {
        let hidden = "a\u{202e}b\u{200b}";
        let page = html! {
            p title=(hidden) { (hidden) "\r\n" b { "é\u{feff}\u{1b}" } }
            input name="x" value=(hidden) placeholder=(hidden);
            textarea name="y" { (hidden) }
            option value=(hidden) { (hidden) }
        };
        let spelled = "a\\u{202e}b\\u{200b}";
        assert_eq!(
            visible(page),
            format!(
                "<p title=\"{spelled}\">{spelled}\r\n<b>é\\u{{feff}}\\u{{1b}}</b></p>\
                 <input name=\"x\" value=\"{hidden}\" placeholder=\"{spelled}\">\
                 <textarea name=\"y\">{hidden}</textarea>\
                 <option value=\"{hidden}\">{spelled}</option>"
            )
        );
        let plain = html! { p { "naïve 👩\u{200d}🚀 \t\r\n" } };
        assert_eq!(visible(plain.clone()), plain.into_string());
    }
}
