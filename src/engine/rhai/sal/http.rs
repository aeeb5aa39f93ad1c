//! HTTP requests with the program curl: it supports TLS, proxies and redirects, and ends with the job.

use std::time::{Duration, Instant};

use ::rhai::INT;

use super::context::{CallError, CallResult, RhaiResult, SalJob, question};
use super::external_program::ExternalProgram;
use crate::engine::rhai::functions::Functions;

const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
const RETRY_INTERVAL: Duration = Duration::from_millis(250);

pub(super) fn register(functions: &mut Functions<'_>) {
    functions.add(
        "http_check",
        ["url"],
        "Returns whether a URL responds with a status from 200 to 299, after redirects, within 30 \
         seconds. The log has the reason if nothing responds.",
        r#"
if http_check("http://127.0.0.1:8080/") { "up" } else { "down" }
// → up"#,
        |url: &str| check("http_check", url),
    );
    functions.add(
        "http_status",
        ["url"],
        "Returns the HTTP status of a URL, after redirects; -1 if nothing responds, with the reason in \
         the log.",
        r#"
http_status("http://127.0.0.1:8080/missing")
// → 404"#,
        |url: &str| question("http_status", url, -1, |job| status(job, url)),
    );
    functions.act_with(
        "http_wait",
        ["url", "seconds"],
        "Waits until a URL responds with a status from 200 to 299, and returns whether it did in time.",
        r#"
http_wait("http://127.0.0.1:8080/", 10)
// → true"#,
        wait,
    );
    // The names of later versions of SAL.
    for (name, example) in [
        ("http_ping", "\nhttp_ping(\"http://127.0.0.1:8080/\")\n// → true"),
        ("net_http_check", "\nnet_http_check(\"http://127.0.0.1:8080/\")\n// → true"),
    ] {
        functions.add(name, ["url"], "Does the same as http_check.", example, move |url: &str| {
            check(name, url)
        });
    }
    functions.add(
        "net_http_status",
        ["url"],
        "Does the same as http_status.",
        r#"
net_http_status("http://127.0.0.1:8080/missing")
// → 404"#,
        |url: &str| question("net_http_status", url, -1, |job| status(job, url)),
    );
}

fn check(name: &str, url: &str) -> RhaiResult<bool> {
    question(name, url, false, |job| Ok(is_success(status(job, url)?)))
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

fn status(job: SalJob<'_>, url: &str) -> CallResult<INT> {
    let asked = curl(job, url)?
        .args(["--output", "/dev/null", "--write-out", "%{http_code}", "--max-time"])
        .arg(RESPONSE_TIMEOUT.as_secs().to_string())
        .timeout(Some(RESPONSE_TIMEOUT + Duration::from_secs(1)))
        .run(job)?;
    let status = asked.stdout().trim().parse().ok();
    let status = status.filter(|status| asked.success() && *status > 0);
    Ok(status.ok_or_else(|| format!("curl: {}", asked.failure()))?)
}

fn is_success(status: INT) -> bool {
    (200..300).contains(&status)
}

fn wait(job: SalJob<'_>, url: &str, seconds: INT) -> CallResult<bool> {
    let time = Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
    let until = Instant::now().checked_add(time);
    curl(job, url)?;
    job.settings.check_run()?;
    loop {
        match status(job, url) {
            Ok(status) if is_success(status) => return Ok(true),
            Err(CallError::JobEnded) => return Err(CallError::JobEnded),
            Ok(_) | Err(CallError::Failed(_)) => {}
        }
        if until.is_some_and(|until| Instant::now() + RETRY_INTERVAL >= until) {
            return Ok(false);
        }
        job.run.sleep(RETRY_INTERVAL)?;
        job.check_stop()?;
    }
}
