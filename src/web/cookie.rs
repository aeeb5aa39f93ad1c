//! Cookies of requests and answers.

use std::borrow::Cow;

use axum::http::{HeaderMap, HeaderValue, header};
use percent_encoding::percent_decode_str;

use super::links::encoded;

pub(super) fn read<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let all = headers.get_all(header::COOKIE).into_iter().filter_map(|value| value.to_str().ok());
    all.flat_map(|line| line.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find(|(of, _)| *of == name)
        .map(|(_, value)| value)
}

/// Returns a cookie of an answer. It is for this site alone, and no script reads it. After `max_age_s` it is forgotten, with 0
/// now.
pub(super) fn set_cookie(name: &str, value: &str, path: &str, max_age_s: u64) -> HeaderValue {
    let (value, path) = (encoded(value), if path.is_empty() { "/" } else { path });
    let text =
        format!("{name}={value}; Path={path}; Max-Age={max_age_s}; HttpOnly; SameSite=Strict");
    HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static(""))
}

pub(super) fn over_tls_only(headers: &mut HeaderMap) {
    let all: Vec<HeaderValue> = headers.get_all(header::SET_COOKIE).iter().cloned().collect();
    headers.remove(header::SET_COOKIE);
    for cookie in all {
        let secure = [cookie.as_bytes(), b"; Secure"].concat();
        headers.append(header::SET_COOKIE, HeaderValue::from_bytes(&secure).unwrap_or(cookie));
    }
}

/// Decodes a text that [`encoded`] made. Returns `None` if it is not UTF-8.
pub(super) fn decoded(text: &str) -> Option<String> {
    percent_decode_str(text).decode_utf8().ok().map(Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookie_is_found_among_others() {
        let mut headers = HeaderMap::new();
        headers.insert(header::COOKIE, HeaderValue::from_static("a=1; hero=two; c=3"));
        assert_eq!(read(&headers, "hero"), Some("two"));
        assert_eq!(read(&headers, "her"), None);
    }

    #[test]
    fn text_survives_a_cookie() {
        let text = "Stopped 3 jobs; 1 ran – ü";
        let cookie = set_cookie("t", text, "", 10);
        let line = cookie.to_str().expect("ASCII").to_owned();
        assert!(line.ends_with("Path=/; Max-Age=10; HttpOnly; SameSite=Strict"), "{line}");
        let value = line.split(';').next().expect("a value").trim_start_matches("t=");
        assert_eq!(decoded(value).as_deref(), Some(text));
        assert_eq!(decoded("%ff"), None);
    }

    #[test]
    fn every_cookie_of_an_answer_is_for_tls_only() {
        let mut headers = HeaderMap::new();
        for cookie in ["a=1; Path=/", "b=2; Path=/"] {
            headers.append(header::SET_COOKIE, HeaderValue::from_static(cookie));
        }
        over_tls_only(&mut headers);
        let all: Vec<&HeaderValue> = headers.get_all(header::SET_COOKIE).iter().collect();
        assert_eq!(all, ["a=1; Path=/; Secure", "b=2; Path=/; Secure"]);
    }
}
