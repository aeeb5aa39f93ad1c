//! A program that uses the client library: it submits a job, follows its log and waits for its end.
//!
//! ```sh
//! hero dev -- cargo run --example submit
//! ```
#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use hero_client::config::Config;
use hero_client::proto::job::JobFiles;
use hero_client::{Client, ClientError, JobBuilder};

const SCRIPT: &str = r"
for step in 1..=3 { print(`step ${step}`); }
6 * 7
";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    // Without HERO_CONFIG it is /etc/hero/hero.toml.
    let file = std::env::var_os("HERO_CONFIG").map(PathBuf::from);
    let client = Client::open(&Config::load(file.as_deref())?)?;
    let (log, output) = submit_and_follow(&client).await?;
    println!("{}\noutput: {output}", log.join("\n"));
    Ok(())
}

/// Runs one job. Returns the lines of its log, and its output.
///
/// # Errors
/// [`ClientError::JobFailed`] if the script fails; [`ClientError::GaveUp`] if no actor runs it in time.
pub async fn submit_and_follow(client: &Client) -> Result<(Vec<String>, String), ClientError> {
    let job = JobBuilder::new("osis", SCRIPT).name("three steps").timeout(Duration::from_secs(30));
    // Who waits says so at once: then the job replies, and its end costs no further call.
    let job = client.submit_awaited(job.build()?, &JobFiles::default()).await?;

    let mut log = Vec::new();
    let mut follower = client.logs().follow(&job.id);
    while let Some(lines) = follower.next().await? {
        log.extend(lines.into_iter().map(|line| line.line));
    }

    let output = client.await_end(&job, Some(Duration::from_mins(1))).await?;
    Ok((log, output.to_string()))
}
