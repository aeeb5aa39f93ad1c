//! `hero job open`: the page of a job.

use std::ffi::CString;

use clap::Args;
use nix::unistd::execv;
use serde_json::json;

use crate::cli::api::{ApiMethods, job_of};
use crate::cli::{Global, output};
use crate::config::Config;
use crate::engine::process::find_program;
use crate::error::{Error, Exit};
use crate::proto::job::JobId;

const BROWSER: &str = "xdg-open";
/// The variables that name a display.
const DISPLAYS: [&str; 2] = ["DISPLAY", "WAYLAND_DISPLAY"];

/// Open the page of a job in the browser; without a display, print its address
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hero job open 7f9c2ba4\n\n\
                        `api.public_url` has the address of the page.")]
pub(in crate::cli) struct OpenJob {
    /// The job: its id, or the unique beginning of it, of 4 characters or more
    id: String,
}

impl OpenJob {
    pub(in crate::cli) async fn run(&self, api: &ApiMethods, global: &Global) -> Result<(), Error> {
        let job = job_of(&api.of_job("job.get", &self.id, json!({})).await?)?;
        let page = page_of(&job.id, global.config()?).ok_or_else(|| {
            let why = "api.public_url is not set: it is the address of the page, such as https://hero.example.org";
            Error::new(Exit::Config, format!("cannot open the page of job {}: {why}", job.id))
        })?;
        if global.json {
            return output::json(&json!({ "url": page }));
        }
        let why = opened(&page);
        output::line(&page)?;
        output::note(&format!("hero: not opened in a browser: {why}"));
        Ok(())
    }
}

/// Returns the address of the page of a job, if the configuration has one of pages.
pub(super) fn page_of(id: &JobId, config: &Config) -> Option<String> {
    config.api.public_url.as_ref().map(|url| format!("{url}/jobs/{id}"))
}

/// Becomes the program that opens an address. Returns why it cannot.
fn opened(page: &str) -> String {
    let is_set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    if !DISPLAYS.iter().any(is_set) {
        return format!("no display: neither {} is set", DISPLAYS.join(" nor "));
    }
    let Some(program) = find_program(BROWSER) else {
        return format!("no {BROWSER} in PATH; the package xdg-utils has it");
    };
    let words = [program.as_os_str().as_encoded_bytes(), page.as_bytes()].map(CString::new);
    let [Ok(program), Ok(page)] = words else { return "its address has a NUL".to_owned() };
    match execv(&program, &[&program, &page]) {
        Ok(never) => match never {},
        Err(error) => format!("cannot run {BROWSER}: {}", error.desc().to_lowercase()),
    }
}
