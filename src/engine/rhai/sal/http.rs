//! HTTP requests with the program curl: it supports TLS, proxies and redirects, and it is ended with
//! the job.

use std::time::{Duration, Instant};

use ::rhai::INT;

use super::context::{CallResult, RhaiResult, SalJob, operation};
use super::external_program::ExternalProgram;
use crate::engine::rhai::functions::Functions;

/// The timeout of one response.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
/// The pause between two requests of `http_wait`.
const RETRY_INTERVAL: Duration = Duration::from_millis(250);

pub(super) fn register(functions: &mut Functions<'_>) {
    functions.add(
        "http_check",
        ["url"],
        "Returns whether a URL responds with a status below 400 within 30 seconds.",
        r#"
if http_check("http://127.0.0.1:8080/") { "up" } else { "down" }
// → up"#,
        |url: &str| {
            operation("http_check", url, |job| Ok(status(job, url)?.is_some_and(is_success)))
        },
    );
    functions.add(
        "http_status",
        ["url"],
        "Returns the HTTP status of a URL, after redirects.",
        r#"
http_status("http://127.0.0.1:8080/missing")
// → 404"#,
        |url: &str| {
            operation("http_status", url, |job| {
                status(job, url)?.ok_or_else(|| "no response".into())
            })
        },
    );
    functions.add(
        "http_wait",
        ["url", "seconds"],
        "Waits until a URL responds with a status below 400, and returns whether it did in time.",
        r#"
http_wait("http://127.0.0.1:8080/", 10)
// → true"#,
        wait,
    );
}

/// Returns the curl command for a URL, without output options.
pub(super) fn curl(job: SalJob<'_>, url: &str) -> CallResult<ExternalProgram> {
    job.settings.check_network()?;
    if !(url.starts_with("http://") || url.starts_with("https://")) {
        return Err("a URL must start with http:// or https://".into());
    }
    // A redirect cannot switch to another protocol either, such as file.
    Ok(ExternalProgram::new("curl").args([
        "--disable",
        "--silent",
        "--show-error",
        "--globoff",
        "--location",
        "--max-redirs",
        "10",
        "--proto",
        "=http,https",
        "--url",
        url,
    ]))
}

/// Returns the status of a URL; `None` without a response.
fn status(job: SalJob<'_>, url: &str) -> CallResult<Option<INT>> {
    let asked = curl(job, url)?
        .args(["--output", "/dev/null", "--write-out", "%{http_code}", "--max-time"])
        .arg(RESPONSE_TIMEOUT.as_secs().to_string())
        .timeout(RESPONSE_TIMEOUT + Duration::from_secs(1))
        .run(job)?;
    if asked.code() == Some(3) {
        return Err("malformed URL".into());
    }
    Ok(asked.stdout().trim().parse().ok().filter(|status| asked.success() && *status > 0))
}

fn is_success(status: INT) -> bool {
    (100..400).contains(&status)
}

fn wait(url: &str, seconds: INT) -> RhaiResult<bool> {
    operation("http_wait", url, |job| {
        let time = Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
        let until = Instant::now().checked_add(time);
        loop {
            if status(job, url)?.is_some_and(is_success) {
                return Ok(true);
            }
            if until.is_some_and(|until| Instant::now() + RETRY_INTERVAL >= until) {
                return Ok(false);
            }
            job.run.sleep(RETRY_INTERVAL)?;
            job.check_stop()?;
        }
    })
}
