//! Visitors in Firefox, which is driven over `WebDriver BiDi`: a WebSocket that it opens by itself.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::visitors::OPERATOR;
use super::world::PageWorld;
use crate::support::http::Link;
use crate::support::websocket::Socket;
use crate::support::{keys, needs, until_exists, wait_until};

/// A headless Firefox with one page. It ends with the test.
struct Firefox {
    program: Child,
    socket: Socket,
    page: String,
}

impl Firefox {
    #[expect(clippy::disallowed_methods, reason = "tests start other programs")]
    fn is_here() -> bool {
        Command::new("firefox-esr").arg("--version").output().is_ok()
    }

    /// Starts it with a profile below a folder.
    #[expect(clippy::disallowed_methods, reason = "tests start other programs")]
    fn start(folder: &Path) -> Self {
        let (profile, said) = (folder.join("firefox"), folder.join("firefox.log"));
        std::fs::create_dir(&profile).expect("a folder");
        let log = File::create(&said).expect("a file");
        let program = Command::new("firefox-esr")
            .args(["--headless", "--no-remote", "--remote-debugging-port", "0", "--profile"])
            .arg(&profile)
            .arg("about:blank")
            .env("HOME", folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("starting Firefox");
        let port = || -> Option<u16> {
            let text = std::fs::read_to_string(&said).ok()?;
            let after = text.split("BiDi listening on ws://127.0.0.1:").nth(1)?.to_owned();
            after.split_once('\n')?.0.parse().ok()
        };
        let mut found = None;
        wait_until("Firefox listens", || {
            found = port();
            found.is_some()
        });
        let port = found.expect("waited for it");
        let host = format!("127.0.0.1:{port}");
        let mut socket = Socket::open_at(Link::tcp(port), "/session", &[("host", &host)]);
        socket.call("session.new", &json!({ "capabilities": {} }));
        let tree = socket.call("browsingContext.getTree", &json!({}));
        let page = tree["contexts"][0]["context"].as_str().expect("a page").to_owned();
        Self { program, socket, page }
    }

    fn open(&mut self, address: &str) {
        let params = json!({ "context": self.page, "url": address, "wait": "complete" });
        self.socket.call("browsingContext.navigate", &params);
    }

    /// Evaluates an expression; `None` while the page is being replaced.
    fn evaluate(&mut self, expression: &str) -> Option<Value> {
        let params = json!({
            "expression": expression, "target": { "context": self.page }, "awaitPromise": true,
        });
        let answer = self.socket.answer("script.evaluate", &params);
        Some(answer.get("result")?.get("result")?.clone())
    }

    /// Returns the text of the first element, empty without one.
    fn text(&mut self, selector: &str) -> String {
        let expression = format!("document.querySelector({selector:?})?.textContent ?? ''");
        let found = self.evaluate(&expression).unwrap_or_default();
        found["value"].as_str().unwrap_or_default().trim().to_owned()
    }

    #[track_caller]
    fn waits_for(&mut self, selector: &str, text: &str) {
        wait_until(&format!("{selector} says {text}"), || self.text(selector).contains(text));
    }

    /// Performs actions of an input device on an element that is in view and has the focus. It does so again if what
    /// the page shows has moved the element out of view meanwhile.
    #[track_caller]
    fn act(&mut self, selector: &str, actions: impl Fn(&Value) -> Value) {
        // Focusing alone may scroll too, and what is above may still grow: it is in its place once two pictures agree.
        let expression = format!(
            "(async () => {{ const found = document.querySelector({selector:?}); \
             found.focus({{ preventScroll: true }}); let place; do {{ \
             found.scrollIntoView({{ block: 'center', behavior: 'instant' }}); \
             place = found.getBoundingClientRect().top; \
             await new Promise((seen) => requestAnimationFrame(() => requestAnimationFrame(seen))); \
             }} while (found.getBoundingClientRect().top !== place); return found; }})()"
        );
        wait_until(&format!("{selector} is in view"), || {
            let found = self.evaluate(&expression).unwrap_or_default();
            let element = json!({ "sharedId": found["sharedId"] });
            assert!(element["sharedId"].is_string(), "no element {selector}: {found}");
            let params = json!({ "context": self.page, "actions": [actions(&element)] });
            let answer = self.socket.answer("input.performActions", &params);
            let error = answer.get("error").map(Value::to_string);
            let has_moved = error.as_deref() == Some("\"move target out of bounds\"");
            assert!(error.is_none() || has_moved, "{selector}: {answer}");
            !has_moved
        });
    }

    #[track_caller]
    fn click(&mut self, selector: &str) {
        self.act(selector, |element| {
            let origin = json!({ "type": "element", "element": element });
            json!({ "type": "pointer", "id": "mouse", "actions": [
                { "type": "pointerMove", "x": 0, "y": 0, "origin": origin },
                { "type": "pointerDown", "button": 0 },
                { "type": "pointerUp", "button": 0 },
            ] })
        });
    }

    #[track_caller]
    fn write(&mut self, selector: &str, text: &str) {
        self.act(selector, |_| {
            let keys: Vec<Value> = text
                .chars()
                .flat_map(|letter| {
                    ["keyDown", "keyUp"].map(|kind| json!({ "type": kind, "value": letter }))
                })
                .collect();
            json!({ "type": "key", "id": "keyboard", "actions": keys })
        });
    }
}

impl Drop for Firefox {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

#[test]
fn visitor_signs_in_and_uses_each_verb_of_jobs_in_firefox() {
    if !needs("firefox", Firefox::is_here) {
        return;
    }
    let world = PageWorld::start();
    let site = &world.site;
    let mut browser = Firefox::start(world.redis.folder());
    browser.open(&site.at("/jobs/running"));
    browser.waits_for("h1", "Sign in");
    browser.write("#token", &site.token(OPERATOR));
    browser.click("main button");
    browser.waits_for("#state", "Running");
    browser.open(&site.at("/submit"));
    let end = world.redis.folder().join("end-of-watched");
    browser.evaluate("document.querySelector('#f-script_type').value = 'bash'");
    browser.write("#f-script", &format!("echo begun >&2; {}; echo done", until_exists(&end)));
    browser.evaluate("document.querySelector('main details').open = true");
    browser.write("#f-id", "watched");
    browser.click("button.main");
    browser.waits_for(".toast", "Submitted.");
    browser.waits_for("#state", "Running");
    browser.waits_for("#log-lines", "begun");
    browser.click("[data-key=stop]");
    browser.waits_for(".toast", "told to stop");
    browser.waits_for("#state", "Cancelled");
    std::fs::write(&end, "").expect("writing a file");
    browser.waits_for("#job-actions", "Retry");
    browser.click("[data-key=retry]");
    browser.waits_for(".toast", "The job runs again.");
    browser.waits_for("#state", "Finished");
    browser.open(&site.at("/jobs/watched/delete"));
    browser.click("main .danger");
    browser.waits_for(".toast", "Deleted job watched.");
    assert_eq!(world.redis.field(&keys::job("watched"), "status"), None);
    browser.open(&site.at("/jobs?type=bash&status=failed"));
    browser.click("tbody .pick");
    browser.waits_for("[data-picked]", "1");
    browser.click(".bulk [value=retry]");
    browser.waits_for(".toast", "1 job.");
    browser.open(&site.at("/cron/nightly"));
    browser.click("main button[value=run]");
    browser.waits_for(".toast", "nightly runs now.");
    browser.open(&site.at("/"));
    browser.click("form[action$=logout] button");
    browser.waits_for("h1", "Sign in");
}
