//! `hero job list --log TEXT`: the jobs whose kept log has a text, the latest change first.

use serde_json::{Value, json};

use super::list::{JobList, find};
use crate::cli::api::{ApiMethods, read};
use crate::cli::table::{TextTable, shortened};
use crate::cli::{Global, output};
use crate::error::{Error, Exit};
use crate::proto::text::counted;
use crate::store::{JobSummary, LogLine};

const JOBS_PER_CALL: usize = 100;

/// A job with the first line of its log that has the text.
struct LogMatch {
    job: JobSummary,
    document: Value,
    line: String,
}

impl JobList {
    /// Searches the logs of the jobs that match, and prints the first page of those that have the text. At a terminal it shows how
    /// far it is.
    pub(super) async fn print_of_log(
        &self,
        text: &str,
        api: &ApiMethods,
        global: &Global,
    ) -> Result<(), Error> {
        let (mut found, mut searched) = (Vec::new(), 0_u64);
        let mut params = self.filter.params(api).await?;
        'pages: loop {
            let (page, jobs) = find(api, params.clone(), JOBS_PER_CALL).await?;
            let documents = page["jobs"].as_array().cloned().unwrap_or_default();
            for (job, document) in jobs.items.into_iter().zip(documents) {
                searched += 1;
                let counted = counted(searched, "log", "logs");
                output::passing_note(&format!("hero: searched {counted}, {} found", found.len()));
                if let Some(line) = line_with(text, job.id.as_str(), api).await? {
                    found.push(LogMatch { job, document, line });
                }
                if found.len() == usize::from(self.limit) {
                    break 'pages;
                }
            }
            let Some(next) = jobs.next else { break };
            params.insert("cursor".to_owned(), json!(next.to_string()));
        }
        output::passing_note("");
        let page = || {
            let jobs = found.iter().map(|of| {
                let mut document = of.document.clone();
                document["line"] = of.line.as_str().into();
                document
            });
            json!({ "jobs": jobs.collect::<Vec<_>>(), "searched": searched })
        };
        let none = self.filter.no_results().by("with a log that has", Some(text));
        global.list(page, || table(&found), none)
    }
}

/// Returns the first line of a job's log that has a text; `None` for a job that was deleted meanwhile too.
async fn line_with(text: &str, id: &str, api: &ApiMethods) -> Result<Option<String>, Error> {
    let mut params = json!({ "id": id });
    loop {
        let mut part = match api.call("job.log", params.clone()).await {
            Ok(part) => part,
            Err(error) if error.exit == Exit::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let lines: Vec<LogLine> = read("job.log", &part["lines"])?;
        if let Some(found) = lines.into_iter().find(|line| line.line.contains(text)) {
            return Ok(Some(found.line));
        }
        if part["next"].is_null() {
            return Ok(None);
        }
        params["after"] = part["next"].take();
    }
}

fn table(found: &[LogMatch]) -> TextTable<'_, LogMatch> {
    TextTable::of(found)
        .column("#ID", &|of| of.job.id.to_string())
        .column("~NAME", &|of| shortened(of.job.text("name")))
        .column("*STATUS", &|of| of.job.status.as_str().to_owned())
        .column("!LINE", &|of| of.line.clone())
}
