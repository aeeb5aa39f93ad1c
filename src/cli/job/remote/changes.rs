//! Changes of jobs over the API: of named ones, or of all that match filters.

use std::fmt::Write as _;
use std::process::ExitCode;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{filters, word};
use crate::cli::api::{ApiMethods, read};
use crate::cli::job::bulk::JobChoice;
use crate::cli::job::each::ChangeResults;
use crate::cli::job::list::table;
use crate::cli::{Global, output};
use crate::error::{Error, Exit};
use crate::proto::text::{counted, escape_lines};
use crate::store::JobSummary;

/// Changes jobs: named ones, each by its method, or all that match filters.
pub(in crate::cli::job) async fn change(
    api: &ApiMethods,
    jobs: &JobChoice,
    (verb, done): (&str, &str),
    further: Value,
    global: &Global,
) -> Result<ExitCode, Error> {
    if jobs.filter.is_given() != jobs.ids.is_empty() {
        let message = format!(
            "cannot {verb} jobs: name them by their ids, or find them with filters, not both"
        );
        return Err(Error::new(Exit::Usage, message));
    }
    if jobs.ids.is_empty() || jobs.only_dead {
        return change_found(api, jobs, (verb, done), &further, global).await;
    }
    let mut results = ChangeResults::new(global);
    for id in &jobs.ids {
        let mut params = further.clone();
        params["id"] = json!(id);
        let result = match api.call(&format!("job.{verb}"), params).await {
            Ok(result) => result,
            Err(error) => {
                results.add(id, Err(error))?;
                continue;
            }
        };
        // A retry returns the dependents that run again as well.
        let one = std::slice::from_ref(&result);
        let with_dependents = further["with_dependents"] == true;
        for of in result["jobs"].as_array().map_or(one, Vec::as_slice) {
            let refused = of["problem"].as_str().map(|why| Error::new(Exit::Data, why));
            let by_word = verb == "retry" && !with_dependents;
            let done = if by_word { done } else { word(&of["result"]) };
            results.add(word(&of["id"]), refused.map_or(Ok(done.to_owned()), Err))?;
        }
    }
    results.end()
}

/// Changes all jobs that match filters, in calls of some seconds each.
async fn change_found(
    api: &ApiMethods,
    jobs: &JobChoice,
    (verb, done): (&str, &str),
    further: &Value,
    global: &Global,
) -> Result<ExitCode, Error> {
    let mut filter = filters(&jobs.filter)?;
    if jobs.limit < usize::MAX {
        filter.insert("limit".to_owned(), jobs.limit.into());
    }
    let mut params = json!({ "change": verb, "yes": jobs.yes });
    if verb == "edit" {
        params["edit"] = further.clone();
    }
    for (name, value) in further.as_object().into_iter().flatten().filter(|_| verb != "edit") {
        // A tree of jobs is stopped by its root alone.
        if name != "children" {
            params[name] = value.clone();
        }
    }
    let method = if jobs.ids.is_empty() {
        "job.change_many".to_owned()
    } else {
        let corrects = further["changes"].as_object().is_some_and(|all| !all.is_empty());
        if corrects || further["with_dependents"] == true {
            let message =
                "dead letters that are named run again as they are: hero job retry corrects them";
            return Err(Error::new(Exit::Usage, message));
        }
        params = json!({ "ids": jobs.ids });
        format!("dead.{verb}")
    };
    let asks = jobs.ids.is_empty() && !jobs.yes && ["stop", "delete"].contains(&verb);
    params["dry_run"] = (jobs.dry_run || asks).into();
    let (mut changed, mut left, mut why) = (0, 0, None);
    loop {
        if jobs.ids.is_empty() {
            params["filter"] = json!(filter);
        }
        let result = api.call(&method, params.clone()).await?;
        let number = |name: &str| result[name].as_u64().unwrap_or_default();
        if jobs.dry_run || asks {
            return would_change(jobs, (verb, done), &result, global);
        }
        (changed, left) = (changed + number("done"), left + number("left"));
        why = why.or_else(|| result["reason"].as_str().map(str::to_owned));
        match result["next"].as_str().filter(|_| jobs.limit == usize::MAX) {
            Some(next) => filter.insert("cursor".to_owned(), next.into()),
            None => break,
        };
    }
    has_changed(jobs, done, (changed, left, why), global)
}

/// Prints the jobs that would be changed, or refuses to change them without a confirmation.
fn would_change(
    jobs: &JobChoice,
    (verb, done): (&str, &str),
    result: &Value,
    global: &Global,
) -> Result<ExitCode, Error> {
    let found: Vec<JobSummary> = read("job.change_many", &result["jobs"])?;
    let total = found.len() as u64 + result["remaining"].as_u64().unwrap_or_default();
    let least = if result["remaining_complete"] == false { "at least " } else { "" };
    let number =
        format!("{least}{}", jobs.filter.counted(usize::try_from(total).unwrap_or(usize::MAX)));
    if jobs.dry_run {
        global.print(
            || result.clone(),
            || table(&found, Timestamp::now(), false).show(global.look()),
        )?;
        output::note(&format!("hero: {number} would be {done}"));
        return Ok(ExitCode::SUCCESS);
    }
    if total == 0 {
        return has_changed(jobs, done, (0, 0, None), global);
    }
    let message = format!(
        "cannot {verb} {number} without confirmation; add --yes, or --dry-run to list them"
    );
    Err(Error::new(Exit::Usage, message))
}

/// Prints how many jobs were changed, and how many stay as they are.
fn has_changed(
    jobs: &JobChoice,
    done: &str,
    (changed, left, why): (u64, u64, Option<String>),
    global: &Global,
) -> Result<ExitCode, Error> {
    let number = jobs.filter.counted(usize::try_from(changed).unwrap_or(usize::MAX));
    let mut text = format!("{number} {done}");
    if left > 0 {
        let stays = counted(left, "job stays as it is", "jobs stay as they are");
        let _ = write!(text, "; {stays}: {}", why.as_deref().unwrap_or_default());
    }
    let document = || json!({ done: changed, "left": left, "reason": why });
    global.print(document, || escape_lines(&text) + "\n")?;
    Ok(if left == 0 { ExitCode::SUCCESS } else { Exit::Data.into() })
}
