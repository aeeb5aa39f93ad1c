//! A headless Chromium, driven over `WebDriver`: JSON over HTTP to `chromedriver` on a port of its own.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::support::wait_until;

/// A browser with one page. It ends with the test.
pub(crate) struct Browser {
    driver: Child,
    port: u16,
    session: String,
    /// Its standard output, which stays open while it runs.
    _output: Box<dyn Iterator<Item = String>>,
}

/// The key of an element in `WebDriver`.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// The most tries to start the driver.
const STARTS_MAX: usize = 5;

/// The driver, its port and the rest of its output.
type Started = (Child, u16, Box<dyn Iterator<Item = String> + Send>);

/// Starts the driver. `None` if it ended without a port.
#[expect(clippy::disallowed_methods, reason = "tests start other programs")]
fn start_driver(folder: &Path) -> Option<Started> {
    let mut driver = Command::new("chromedriver")
        .arg("--port=0")
        .env("HOME", folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("starting chromedriver");
    let output = driver.stdout.take().expect("a pipe");
    let mut lines = BufReader::new(output).lines().map_while(Result::ok);
    let port_of =
        |line: &str| line.split("successfully on port ").nth(1)?.trim_end_matches('.').parse().ok();
    let Some(port) = lines.find_map(|line| port_of(&line)) else {
        driver.wait().expect("the driver has ended");
        return None;
    };
    Some((driver, port, Box::new(lines)))
}

impl Browser {
    /// Returns true if this machine has Chromium and its driver.
    #[expect(clippy::disallowed_methods, reason = "tests start other programs")]
    pub(crate) fn is_here() -> bool {
        let runs = |program| Command::new(program).arg("--version").output().is_ok();
        runs("chromium") && runs("chromedriver")
    }

    /// Starts it with a profile below a folder.
    pub(crate) fn start(folder: &Path) -> Self {
        // The driver takes the same free port of IPv4 and of IPv6, and ends where another program has one of the two.
        let (driver, port, output) = (0..STARTS_MAX)
            .find_map(|_| start_driver(folder))
            .expect("chromedriver names its port");
        let profile = folder.join("profile");
        let mut browser = Self { driver, port, session: String::new(), _output: output };
        let answer = browser.call(
            "POST",
            "/session",
            &json!({ "capabilities": { "alwaysMatch": {
            "goog:loggingPrefs": { "browser": "ALL" },
            "goog:chromeOptions": { "args": [
                "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                "--hide-scrollbars", "--no-first-run", "--disable-background-networking",
                format!("--user-data-dir={}", profile.display()),
            ] },
        } } }),
        );
        answer["sessionId"].as_str().expect("a session").clone_into(&mut browser.session);
        browser
    }

    /// Opens an address.
    pub(crate) fn open(&self, address: &str) {
        self.session("POST", "/url", &json!({ "url": address }));
    }

    /// Returns the address of the page.
    pub(crate) fn address(&self) -> String {
        self.session("GET", "/url", &Value::Null).as_str().unwrap_or_default().to_owned()
    }

    /// Sets the size of the window.
    pub(crate) fn size(&self, width: u32, height: u32) {
        self.devtools(
            "Emulation.setDeviceMetricsOverride",
            &json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false }),
        );
    }

    /// Prefers `light` or `dark`, as the system of a visitor does.
    pub(crate) fn prefer(&self, theme: &str) {
        let features = json!([{ "name": "prefers-color-scheme", "value": theme }]);
        self.devtools("Emulation.setEmulatedMedia", &json!({ "features": features }));
    }

    /// Runs pages without their scripts, or with them again.
    pub(crate) fn run_scripts(&self, with: bool) {
        self.devtools("Emulation.setScriptExecutionDisabled", &json!({ "value": !with }));
    }

    /// Makes the line slow: 400 ms to the server, 30 kB/s.
    pub(crate) fn slow_down(&self) {
        self.devtools("Network.enable", &json!({}));
        let line = json!({
            "offline": false, "latency": 400, "downloadThroughput": 30_000, "uploadThroughput": 30_000,
        });
        self.devtools("Network.emulateNetworkConditions", &line);
    }

    /// Presses keys one after the other, wherever the focus is.
    pub(crate) fn press(&self, keys: &str) {
        let keys: Vec<Value> = keys
            .chars()
            .flat_map(|key| ["keyDown", "keyUp"].map(|kind| json!({ "type": kind, "value": key })))
            .collect();
        let keyboard = json!({ "type": "key", "id": "keyboard", "actions": keys });
        self.session("POST", "/actions", &json!({ "actions": [keyboard] }));
    }

    /// Moves the focus with the tabulator until an element has it.
    #[track_caller]
    pub(crate) fn tab_to(&self, selector: &str) {
        const STEPS_MAX: usize = 200;
        let script = format!("return document.activeElement.matches({selector:?})");
        for _ in 0..STEPS_MAX {
            if self.run(&script) == true {
                return;
            }
            self.press("\u{E004}");
        }
        panic!("the tabulator does not reach {selector}");
    }

    fn devtools(&self, command: &str, params: &Value) {
        let body = json!({ "cmd": command, "params": params });
        self.session("POST", "/goog/cdp/execute", &body);
    }

    /// Runs a function's body in the page, and returns its result.
    pub(crate) fn run(&self, script: &str) -> Value {
        self.session("POST", "/execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// Runs a script that returns a promise, and returns its value.
    pub(crate) fn run_async(&self, script: &str) -> Value {
        let script = format!(
            "const done = arguments[0]; (async () => {{ {script} }})().then(done, (e) => done(String(e)));"
        );
        self.session("POST", "/execute/async", &json!({ "script": script, "args": [] }))
    }

    /// Returns the text of the first element, empty without one.
    pub(crate) fn text(&self, selector: &str) -> String {
        let script = format!("return document.querySelector({selector:?})?.textContent ?? ''");
        self.run(&script).as_str().unwrap_or_default().trim().to_owned()
    }

    /// Waits for the text of an element.
    #[track_caller]
    pub(crate) fn waits_for(&self, selector: &str, text: &str) {
        wait_until(&format!("{selector} says {text}"), || self.text(selector).contains(text));
    }

    /// Clicks an element.
    pub(crate) fn click(&self, selector: &str) {
        let element = self.element(selector);
        self.session("POST", &format!("/element/{element}/click"), &json!({}));
    }

    /// Types into an element.
    pub(crate) fn write(&self, selector: &str, text: &str) {
        let element = self.element(selector);
        self.session("POST", &format!("/element/{element}/value"), &json!({ "text": text }));
    }

    fn element(&self, selector: &str) -> String {
        let using = json!({ "using": "css selector", "value": selector });
        let found = self.session("POST", "/element", &using);
        found[ELEMENT].as_str().unwrap_or_else(|| panic!("no element {selector}")).to_owned()
    }

    /// Returns the page's errors and warnings on the console since the last call.
    pub(crate) fn console(&self) -> Vec<String> {
        let log = self.session("POST", "/se/log", &json!({ "type": "browser" }));
        let entries = log.as_array().cloned().unwrap_or_default();
        let is_bad =
            |entry: &&Value| ["SEVERE", "WARNING"].contains(&entry["level"].as_str().unwrap_or(""));
        let bad = entries.iter().filter(is_bad);
        bad.map(|entry| entry["message"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// Writes a picture of the whole page.
    pub(crate) fn picture(&self, file: &Path) {
        let body =
            json!({ "cmd": "Page.captureScreenshot", "params": { "captureBeyondViewport": true } });
        let answer = self.session("POST", "/goog/cdp/execute", &body);
        let bytes = STANDARD.decode(answer["data"].as_str().unwrap_or_default()).expect("base64");
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("creating a folder");
        std::fs::write(file, bytes).expect("writing a picture");
    }

    fn session(&self, method: &str, path: &str, body: &Value) -> Value {
        self.call(method, &format!("/session/{}{path}", self.session), body)
    }

    /// Sends one request, and returns its `value`.
    #[track_caller]
    fn call(&self, method: &str, path: &str, body: &Value) -> Value {
        let answer = self.try_call(method, path, body).expect("chromedriver answers");
        let error = answer["value"]["error"].as_str().unwrap_or_default();
        assert!(error.is_empty(), "{method} {path}: {error}: {}", answer["value"]["message"]);
        answer["value"].clone()
    }

    fn try_call(&self, method: &str, path: &str, body: &Value) -> std::io::Result<Value> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(Duration::from_mins(2)))?;
        let body = if body.is_null() { String::new() } else { body.to_string() };
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.port,
            body.len()
        )?;
        let mut reader = BufReader::new(stream);
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            if line.trim().is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().unwrap_or_default();
            }
        }
        let mut bytes = vec![0; length];
        reader.read_exact(&mut bytes)?;
        Ok(serde_json::from_slice(&bytes)?)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !self.session.is_empty() {
            let _ = self.try_call("DELETE", &format!("/session/{}", self.session), &Value::Null);
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}
