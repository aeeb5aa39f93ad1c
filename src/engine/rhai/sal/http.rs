//! Pages of the web, asked for with the program curl: it knows TLS, proxies and redirections, and
//! it is ended with the job.

use std::time::{Duration, Instant};

use ::rhai::INT;

use super::context::{CallResult, RhaiResult, SalJob, operation};
use super::external_program::ExternalProgram;
use crate::engine::rhai::functions::Functions;

/// How long one answer may take.
const ANSWER_MAX: Duration = Duration::from_secs(30);
/// How long to wait between two tries.
const BETWEEN_TRIES: Duration = Duration::from_millis(250);

pub(super) fn register(functions: &mut Functions<'_>) {
    functions.add(
        "http_check",
        ["url"],
        "Tells whether a page answers with a status below 400, within 30 seconds.",
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
        "Gives the status with which a page answers, after redirections.",
        r#"
http_status("http://127.0.0.1:8080/missing")
// → 404"#,
        |url: &str| {
            operation("http_status", url, |job| {
                status(job, url)?.ok_or_else(|| "it does not answer".into())
            })
        },
    );
    functions.add(
        "http_wait",
        ["url", "seconds"],
        "Waits until a page answers with a status below 400, and tells whether it did in time.",
        r#"
http_wait("http://127.0.0.1:8080/", 10)
// → true"#,
        wait,
    );
}

/// The command that asks for a page, without its url.
pub(super) fn curl(job: SalJob<'_>, url: &str) -> CallResult<ExternalProgram> {
    job.settings.check_network()?;
    if !(url.starts_with("http://") || url.starts_with("https://")) {
        return Err("a url starts with http:// or https://".into());
    }
    // A protocol that is not named, such as file, is not to be reached by a redirection either.
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

/// The status of a page; none if it does not answer.
fn status(job: SalJob<'_>, url: &str) -> CallResult<Option<INT>> {
    let asked = curl(job, url)?
        .args(["--output", "/dev/null", "--write-out", "%{http_code}", "--max-time"])
        .arg(ANSWER_MAX.as_secs().to_string())
        .timeout(ANSWER_MAX + Duration::from_secs(1))
        .run(job)?;
    if asked.code() == Some(3) {
        return Err("the url is not well formed".into());
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
            if until.is_some_and(|until| Instant::now() + BETWEEN_TRIES >= until) {
                return Ok(false);
            }
            job.run.sleep(BETWEEN_TRIES)?;
            job.check_stop()?;
        }
    })
}
