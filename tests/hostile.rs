//! Attacks on the doors of the API and of the page: each try is refused, and the same request without what makes it
//! hostile is served, so that the refusal is the protection's.

mod forms;
mod rest;
mod uploads;

use crate::support::Served;
use crate::support::http::Answer;

/// A request.
#[derive(Debug, Clone)]
struct Asked {
    method: &'static str,
    path: String,
    headers: Vec<(&'static str, String)>,
    body: String,
}

impl Asked {
    fn new(method: &'static str, path: &str, body: &str) -> Self {
        Self { method, path: path.to_owned(), headers: Vec::new(), body: body.to_owned() }
    }

    /// Adds a header; an empty one is left out, and the last of one name counts.
    fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.retain(|(known, _)| *known != name);
        self.headers.push((name, value.to_owned()));
        self
    }

    fn to(mut self, path: &str) -> Self {
        path.clone_into(&mut self.path);
        self
    }

    fn saying(mut self, body: &str) -> Self {
        body.clone_into(&mut self.body);
        self
    }

    #[track_caller]
    fn answer(&self, site: &Served) -> Answer {
        let headers: Vec<(&str, &str)> =
            self.headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        site.tcp().ask(self.method, &self.path, &headers, self.body.as_bytes())
    }
}

/// A hostile request, and the one without what makes it hostile.
struct Try {
    what: &'static str,
    hostile: Asked,
    control: Asked,
}

impl Try {
    fn new(what: &'static str, hostile: Asked, control: &Asked) -> Self {
        Self { what, hostile, control: control.clone() }
    }
}

/// Tells of each try that is not refused, and of each control that is not served.
fn failures(site: &Served, tries: &[Try]) -> Vec<String> {
    let mut failures = Vec::new();
    for Try { what, hostile, control } in tries {
        let refused = hostile.answer(site);
        // A visitor who is not signed in is sent to the sign-in.
        let to_login = refused.header("location").is_some_and(|to| to.starts_with("/login"));
        if refused.status < 400 && !to_login {
            failures.push(format!("{what}: answered {}", refused.status));
        }
        let served = control.answer(site);
        let to_login = served.header("location").is_some_and(|to| to.starts_with("/login"));
        if served.status >= 400 || to_login {
            failures.push(format!("control of {what}: {}", served.status));
        }
    }
    failures
}
