//! `/graphs/ID/correct`: the scripts of the failed jobs of a graph in a form, to run it again with corrected ones.

use axum::extract::Path;
use maud::html;
use serde_json::{Map, Value, json};

use super::super::doc::JobDoc;
use super::super::fields::Fields;
use super::super::graphs::{address, label};
use super::super::job::read;
use super::super::layout::{Nav, WebPage};
use super::super::visit::Visit;
use super::super::web_error::PageResult;
use super::change::{named, retried};
use super::id_alone;
use crate::client::{GraphDocument, JobOfGraphDocument};
use crate::proto::error_kind::FailureCause;
use crate::rpc::results::ShownGraph;

/// The most scripts of a form.
const SCRIPTS_MAX: usize = 20;
/// The prefix of a field; the id of its job follows.
const SCRIPT: &str = "script-";

/// Reads the jobs of a graph that failed by themselves, not because of others. The second value is true if these are all.
async fn failed(visit: &Visit, graph: &GraphDocument) -> PageResult<(Vec<JobDoc>, bool)> {
    let params = json!({ "id": id_alone(&graph.id), "outcome": "failed", "limit": 1000 });
    let ShownGraph { jobs: failed, next, .. } = visit.ask("graph.get", params).await?;
    let by_itself = |job: &&JobOfGraphDocument| {
        let error = job.error.as_deref();
        error.is_some_and(|error| FailureCause::of(error) != FailureCause::Prerequisite)
    };
    let mut jobs = Vec::new();
    for job in failed.iter().filter(by_itself).take(SCRIPTS_MAX) {
        jobs.push(read(visit, &job.id).await?);
    }
    let is_all = next.is_none() && failed.iter().filter(by_itself).count() == jobs.len();
    Ok((jobs, is_all))
}

/// Shows the form.
pub(in crate::web) async fn ask_correction(visit: Visit, Path(id): Path<String>) -> PageResult {
    let now = visit.snapshot().await?;
    let graph = named(&visit, &id).await?;
    let (jobs, is_all) = failed(&visit, &graph).await?;
    let links = visit.links();
    let own = links.to(&address(&graph));
    let main = html! {
        div.head {
            div {
                p.crumb {
                    a href=(links.to("/graphs")) { "Graphs" } " / "
                    a href=(own) { (label(&graph)) } " / Correct"
                }
                h1.plain-h { "Correct " (label(&graph)) }
                p.meta {
                    "Its failed jobs run again, and then those that wait for them. The script that the last attempt of a "
                    "job ran stays in the record of that attempt."
                }
            }
        }
        form method="post" action={ (own) "/correct" } {
            (visit.forgery_field())
            @if !is_all {
                p.dim { "Not all of them are shown: the others run again with their scripts as they are." }
            } @else if jobs.is_empty() { p.dim { "No job failed by itself." } }
            @for job in &jobs {
                @let name = format!("{SCRIPT}{}", job.id());
                label for=(name) { "Script of " (job.link(links)) }
                p.meta { (job.text("error")) }
                textarea id=(name) name=(name) rows="12" spellcheck="false" autocapitalize="off" required {
                    "\n" (job.text("script"))
                }
            }
            button.primary { "Run again" }
        }
    };
    let title = format!("Correct {}", label(&graph));
    Ok(visit.page(&now, &WebPage::still(title, Nav::Graphs, main)))
}

/// Runs the graph again with the scripts that differ.
pub(in crate::web) async fn correct(
    visit: Visit,
    Path(id): Path<String>,
    fields: Fields,
) -> PageResult {
    let graph = named(&visit, &id).await?;
    // A browser sends each end of a line as two characters.
    let plain = |text: &str| text.replace("\r\n", "\n");
    let mut changes = Map::new();
    for job in failed(&visit, &graph).await?.0 {
        let name = format!("{SCRIPT}{}", job.id());
        let given = fields.pairs().find(|(field, _)| *field == name);
        let Some(given) = given.map(|(_, text)| plain(text)) else { continue };
        if given != plain(job.text("script")) {
            changes.insert(job.id().to_owned(), json!({ "script": given }));
        }
    }
    retried(&visit, &graph, Value::Object(changes)).await
}
