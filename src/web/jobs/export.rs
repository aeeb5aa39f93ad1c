//! Jobs as files: JSON and CSV.

use axum::body::{Body, Bytes};
use axum::http::{HeaderName, header};
use jiff::Timestamp;

use super::super::doc::JobDoc;
use super::super::visit::Visit;
use super::super::web_error::PageResult;
use super::filter::JobsQuery;
use crate::store::ListQuery;
use crate::view::job_csv;

/// The maximum number of jobs of a file of JSON, and of a limit.
pub(super) const EXPORT_MAX: usize = 10_000;

/// A file of CSV that is being sent: the rest of the list.
struct RestOfList {
    visit: Visit,
    filter: JobsQuery,
    /// The time that ages in the filter are before.
    now: Timestamp,
    /// The number of jobs that are still wanted.
    wanted: usize,
    /// The line with the names of the columns, until it is sent.
    head: String,
}

/// Returns all jobs of a list as CSV. Each step searches for at most two seconds and reads at most a page, when the one
/// before was sent.
///
/// # Errors
/// [`PageError`](super::PageError) if the first step fails.
pub(super) async fn whole_csv(visit: Visit, filter: JobsQuery) -> PageResult<Body> {
    let wanted = filter.most(EXPORT_MAX)?.unwrap_or(usize::MAX);
    let now = visit.snapshot().await?.snapshot.at;
    let (head, list) = (job_csv::header(&job_csv::columns()), visit.clone());
    let list = RestOfList { visit: list, filter, now, wanted, head };
    visit.in_steps("a list of jobs", list, RestOfList::step).await
}

impl RestOfList {
    /// Returns the next lines, which may be none, and the rest, unless there is none.
    async fn step(mut self) -> PageResult<(Bytes, Option<Self>)> {
        let most = self.wanted.min(ListQuery::LIMIT_MAX);
        let found = self.filter.find(&self.visit, self.now, most).await?;
        self.wanted -= found.jobs.len();
        let columns = job_csv::columns();
        let line = |job: &JobDoc| job_csv::line(&columns, |field| job.plain(field));
        let head = std::mem::take(&mut self.head);
        let rows: String = found.jobs.iter().map(line).collect();
        let lines = Bytes::from(head + rows.as_str());
        let Some(next) = found.next.filter(|_| self.wanted > 0) else { return Ok((lines, None)) };
        self.filter.place.cursor = next;
        Ok((lines, Some(self)))
    }
}

/// Returns the headers of a file that a browser saves.
pub(in crate::web) fn attachment(kind: &str, name: &str) -> [(HeaderName, String); 2] {
    // A name of a job is letters, digits, `-`, `_` and `.`; anything else would end the header's text.
    let name: String =
        name.chars()
            .map(|letter| {
                if letter.is_ascii_alphanumeric() || "-_.".contains(letter) { letter } else { '_' }
            })
            .collect();
    [
        (header::CONTENT_TYPE, kind.to_owned()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\"")),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_of_a_file_cannot_end_its_header() {
        let [_, (_, value)] = attachment("text/plain", "a\"; x=\r\n.txt");
        assert_eq!(value, "attachment; filename=\"a___x___.txt\"");
    }
}
