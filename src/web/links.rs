//! The addresses of the pages, with the prefix that they are served under.

use std::fmt::Write as _;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// The bytes of a part of an address that are encoded.
const ENCODED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b':');

#[derive(Debug, Clone, Default)]
pub(super) struct SiteLinks {
    /// The prefix, without a slash at its end; often empty.
    prefix: String,
}

impl SiteLinks {
    /// Takes the path of the configuration, as `/` or `/hero/`.
    pub(super) fn new(path: &str) -> Self {
        Self { prefix: path.trim_end_matches('/').to_owned() }
    }

    /// Returns the address of a page. `path` begins with a slash.
    pub(super) fn to(&self, path: &str) -> String {
        format!("{}{path}", self.prefix)
    }

    /// Returns the address of the page of a thing: of a job by `jobs` and its id.
    pub(super) fn page(&self, list: &str, name: &str) -> String {
        self.to(&page_of(list, name))
    }

    pub(super) fn job(&self, id: &str) -> String {
        self.page("jobs", id)
    }

    /// Returns the address of a page with these filters; empty values are left out.
    pub(super) fn with(&self, path: &str, query: &[(&str, &str)]) -> String {
        let mut address = self.to(path);
        for (name, value) in query.iter().filter(|(_, value)| !value.is_empty()) {
            let mark = if address.contains('?') { '&' } else { '?' };
            let _ = write!(address, "{mark}{name}={}", encoded(value));
        }
        address
    }

    /// Returns an address that a visitor asked for after signing in, if it is a page of this site.
    pub(super) fn safe(&self, asked: &str) -> Option<String> {
        let is_local = asked.starts_with('/') && !asked.starts_with("//");
        let is_plain = asked.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
        (is_local && is_plain).then(|| self.to(asked))
    }
}

/// Returns the path of the page of a thing, without the prefix: of a job by `jobs` and its id.
pub(super) fn page_of(list: &str, name: &str) -> String {
    format!("/{list}/{}", encoded(name))
}

/// Returns a text as a part of an address.
pub(super) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_the_prefix_and_encoded_parts() {
        let links = SiteLinks::new("/hero/");
        assert_eq!(links.page("queues", "type:osis"), "/hero/queues/type:osis");
        assert_eq!(
            links.with("/jobs", &[("status", "failed"), ("q", ""), ("type", "a b&c")]),
            "/hero/jobs?status=failed&type=a%20b%26c"
        );
        assert_eq!(SiteLinks::new("/").to("/jobs"), "/jobs");
    }

    #[test]
    fn only_a_page_of_this_site_is_safe_to_go_to() {
        let links = SiteLinks::new("/hero");
        assert_eq!(links.safe("/jobs?status=failed").as_deref(), Some("/hero/jobs?status=failed"));
        for foreign in ["//evil.example", "https://evil.example", "/\\evil", "", "/a\nb"] {
            assert_eq!(links.safe(foreign), None, "{foreign}");
        }
    }
}
