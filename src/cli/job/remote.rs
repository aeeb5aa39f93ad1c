//! `hero --api URL job …`: the commands of jobs over the API of a daemon elsewhere.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use jiff::Timestamp;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value, json};

use super::bulk::JobChoice;
use super::errors::JobErrors;
use super::files::{self, FetchFile, ListFiles};
use super::filter::JobFilters;
use super::list::{JobList, table};
use super::tell::{self, TellJob};
use super::wait::Wait;
use super::{Clear, JobCommand, Logs, RetryJobs, StopJobs, errors, show};
use crate::cli::api::{Api, RemoteApi, RemoteEnd, RemoteLog, gave_up, job_of, read};
use crate::cli::exec::failed;
use crate::cli::no_results::NoResults;
use crate::cli::{Global, output};
use crate::client::ErrorGroupsDocument;
use crate::error::{Error, Exit, reason};
use crate::proto::job::{Job, JobAttempt, STDIN};
use crate::proto::job_filter::FilterTest;
use crate::proto::text::{counted, escape_lines};
use crate::rpc::results::ListedFiles;
use crate::store::{JobSummary, LogLine};

/// Runs a command over the API.
pub(in crate::cli) async fn run(
    command: JobCommand,
    remote: RemoteApi,
    global: &Global,
) -> Result<ExitCode, Error> {
    let api = &Api::Remote(remote);
    match command {
        JobCommand::List(list) => list_jobs(api, &list, global).await?,
        JobCommand::Errors(errors) => list_errors(api, &errors, global).await?,
        JobCommand::Show(of) => show_job(api, &of.id, of.raw, global).await?,
        JobCommand::Wait(wait) => return wait_for(api, &wait, global).await,
        JobCommand::Output { id, raw } => {
            let document = api.call("job.get", json!({ "id": id })).await?;
            let job = job_of(&document)?;
            let none = || {
                let message = format!("job {} has no output yet: hero job wait {0}", job.id);
                Error::new(Exit::Data, message)
            };
            let result = job.output.as_ref().ok_or_else(none)?;
            if global.json {
                output::json(&result.to_json())?;
            } else {
                output::stored(result, raw)?;
            }
        }
        JobCommand::Logs(logs) => print_log(api, &logs, global).await?,
        JobCommand::Files(list) => list_files(api, &list, global).await?,
        JobCommand::Fetch(fetch) => fetch_file(api, &fetch, global).await?,
        JobCommand::Stop(StopJobs { jobs, children }) => {
            let further = json!({ "children": children });
            return change(api, &jobs, ("stop", "stopped"), further, global).await;
        }
        JobCommand::Tell(TellJob { id, event, data }) => {
            let data = data.map(tell::read).transpose()?;
            let data = data.map(|text| serde_json::from_str::<Value>(&text)).transpose();
            let data = data
                .map_err(|error| Error::new(Exit::Data, format!("--data is no JSON: {error}")))?;
            let params = json!({ "id": id, "event": event, "data": data });
            let result = api.call("job.tell", params).await?;
            let text = || format!("{id} {} {event}\n", word(&result["result"]));
            global.print(|| result.clone(), text)?;
        }
        JobCommand::Retry(RetryJobs { jobs, with_dependents, correction }) => {
            let changes = correction.changes(global.config()?)?;
            let further = json!({ "with_dependents": with_dependents, "changes": changes });
            return change(api, &jobs, ("retry", "retried"), further, global).await;
        }
        JobCommand::Delete(jobs) => {
            return change(api, &jobs, ("delete", "deleted"), json!({}), global).await;
        }
        JobCommand::Clear(Clear { yes }) => {
            let result = api.call("job.clear", json!({ "yes": yes })).await?;
            let deleted = result["deleted"].as_u64().unwrap_or_default();
            let text = || format!("{} deleted\n", counted(deleted, "job", "jobs"));
            global.print(|| result.clone(), text)?;
        }
        JobCommand::Edit(edit) => return edit.run_remote(api, global).await,
        JobCommand::Clone(clone) => Box::pin(clone.run_remote(api, global)).await?,
    }
    Ok(ExitCode::SUCCESS)
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Returns the parameters of filters. Times are read here, in the zone of who asks.
fn filters(filters: &JobFilters) -> Result<Map<String, Value>, Error> {
    let mut params = Map::new();
    for (row, value) in filters.filter.values() {
        let value = match row.test {
            FilterTest::Since(_) | FilterTest::Until(_) => {
                let option = format!("--{}", row.option());
                filters.zone.read(&option, value, Timestamp::now())?.to_string().into()
            }
            _ if row.is_flag() => Value::Bool(value == "true"),
            _ => Value::from(value),
        };
        if !row.is_list() {
            params.insert(row.name.to_owned(), value);
        } else if let Some(list) =
            params.entry(row.name).or_insert_with(|| json!([])).as_array_mut()
        {
            list.push(value);
        }
    }
    Ok(params)
}

async fn list_jobs(api: &Api, list: &JobList, global: &Global) -> Result<(), Error> {
    let mut params = filters(&list.filter)?;
    params.insert("limit".to_owned(), list.limit.into());
    params.extend(list.cursor.as_ref().map(|cursor| ("cursor".to_owned(), json!(cursor))));
    let page = api.call("job.list", params.into()).await?;
    let jobs: Vec<JobSummary> = read("job.list", &page["jobs"])?;
    let next = page["next"].as_str().map(str::to_owned);
    let (searched, is_complete) = (page["searched"].as_u64(), page["complete"] == true);
    let searched = usize::try_from(searched.unwrap_or_default()).unwrap_or(usize::MAX);
    let none = list.filter.no_results().after(list.cursor.as_ref());
    let none = none.searched(searched, "", is_complete);
    let is_of_dead = list.filter.filter.is_of_dead();
    global.list(|| page.clone(), || table(&jobs, Timestamp::now(), is_of_dead), none)?;
    global.more(next.map(|next| list.command_for(&next)));
    Ok(())
}

async fn list_errors(api: &Api, of: &JobErrors, global: &Global) -> Result<(), Error> {
    let mut params = filters(&of.filter)?;
    params.insert("limit".to_owned(), of.limit.into());
    let (document, found) = api.typed::<ErrorGroupsDocument>("job.errors", params.into()).await?;
    let none = NoResults::new(&of.filter.filter.sentence("failed job"));
    let none = none.searched(found.searched, "", found.complete);
    global.list(|| document, || errors::table(&found.groups, Timestamp::now()), none)
}

async fn show_job(api: &Api, id: &str, raw: bool, global: &Global) -> Result<(), Error> {
    let document = api.call("job.get", json!({ "id": id })).await?;
    if global.json {
        return output::json(&document);
    }
    let job = job_of(&document)?;
    let attempts: Vec<JobAttempt> = match &document["attempts"] {
        Value::Null => Vec::new(),
        attempts => read("job.get", attempts)?,
    };
    let text = show::readable(&job, &[], &attempts, global.look());
    output::text(&if raw { text } else { escape_lines(&text) })
}

async fn wait_for(api: &Api, wait: &Wait, global: &Global) -> Result<ExitCode, Error> {
    let mut first = None;
    let mut documents = Vec::new();
    for id in &wait.ids {
        let ended = match api.await_end(id, false, wait.wait).await? {
            RemoteEnd::Ended(document, job) => {
                documents.push(document);
                ended(&job, (global.json, wait.raw))
            }
            RemoteEnd::GaveUp => Err(gave_up(id, wait.wait)),
            RemoteEnd::Interrupted(code) => return Ok(code),
        };
        let code = match ended {
            Ok(code) => code,
            Err(error) if wait.ids.len() == 1 => return Err(error),
            Err(error) => {
                output::print_error(&error);
                error.exit.into()
            }
        };
        first = first.or((code != ExitCode::SUCCESS).then_some(code));
    }
    if global.json {
        output::json(&match documents.as_slice() {
            [only] if wait.ids.len() == 1 => only.clone(),
            all => json!({ "jobs": all }),
        })?;
    }
    Ok(first.unwrap_or(ExitCode::SUCCESS))
}

/// Prints the output of a job that has ended, unless JSON is asked for, or why it failed.
pub(in crate::cli) fn ended(job: &Job, (json, raw): (bool, bool)) -> Result<ExitCode, Error> {
    if let Some(error) = &job.error {
        let error = Error::new(Exit::JobError, format!("job {} failed: {error}", job.id));
        return failed(error, Some(job));
    }
    match &job.output {
        Some(result) if !json => output::result(result, raw)?,
        _ => {}
    }
    Ok(ExitCode::SUCCESS)
}

async fn print_log(api: &Api, logs: &Logs, global: &Global) -> Result<(), Error> {
    let since = logs.zone.read_given("--since", logs.since.as_ref(), Timestamp::now())?;
    let job = job_of(&api.call("job.get", json!({ "id": logs.id })).await?)?;
    let mut log = RemoteLog::new(api, job.id.as_str(), since.map(LogLine::place_before));
    let (mut document, mut count) = (Vec::new(), 0);
    let follows = logs.follow && !job.status.is_terminal();
    let mut print = |lines: &[LogLine]| -> Result<(), Error> {
        count += lines.len();
        let keep = &mut |line| {
            if logs.follow {
                return output::json(&line);
            }
            document.push(line);
            Ok(())
        };
        lines.iter().try_for_each(|line| logs.print(line, global.json, keep))
    };
    if follows {
        let ended = api.await_end(job.id.as_str(), false, None);
        tokio::pin!(ended);
        loop {
            tokio::select! {
                lines = log.grown() => print(&lines?)?,
                ended = &mut ended => match ended? {
                    RemoteEnd::Ended(..) | RemoteEnd::GaveUp => break,
                    RemoteEnd::Interrupted(_) => return Ok(()),
                },
            }
        }
    }
    loop {
        let lines = log.next().await?;
        if lines.is_empty() {
            break;
        }
        print(&lines)?;
    }
    if global.json && !logs.follow {
        return output::json(&json!({ "id": job.id, "lines": document }));
    }
    if count == 0 && !global.json {
        output::note(&format!("hero: the log of job {} is empty; it is {}", job.id, job.status));
    }
    Ok(())
}

async fn list_files(api: &Api, list: &ListFiles, global: &Global) -> Result<(), Error> {
    let (document, ListedFiles { id, files }) =
        api.typed("job.files", json!({ "id": list.id })).await?;
    let none = NoResults::new("file").by("of job", Some(&id));
    global.list(|| document, || files::table(&files), none)
}

async fn fetch_file(api: &Api, fetch: &FetchFile, global: &Global) -> Result<(), Error> {
    let Api::Remote(remote) = api else { return Ok(()) };
    let id = job_of(&api.call("job.get", json!({ "id": fetch.id })).await?)?.id;
    let name = utf8_percent_encode(&fetch.name, NON_ALPHANUMERIC);
    let mut answer = remote.get(&format!("/jobs/{id}/files/{name}")).await?;
    let is_stdout = fetch.output.as_deref() == Some(Path::new("-"));
    let own = if fetch.name == STDIN { "stdin" } else { &fetch.name };
    let path = fetch.output.clone().unwrap_or_else(|| own.into());
    let unwritable = |error: &std::io::Error| {
        let why = reason(error);
        let message = format!("cannot write {}: {why}; --output names another", path.display());
        Error::new(Exit::Output, message)
    };
    let mut file = match is_stdout {
        true => None,
        false => {
            let mut options = std::fs::OpenOptions::new();
            let replaces = fetch.output.is_some();
            let options = options.write(true).create(replaces).truncate(replaces);
            let opened = options.create_new(!replaces).open(&path);
            Some(opened.map_err(|error| unwritable(&error))?)
        }
    };
    let mut size = 0;
    while let Some(part) = answer.part().await.map_err(|error| {
        let message = format!("the file {} is not whole: {error}", fetch.name);
        Error::new(Exit::Unavailable, message)
    })? {
        size += part.len();
        match &mut file {
            Some(file) => file.write_all(&part).map_err(|error| unwritable(&error))?,
            None => output::unchanged(&part)?,
        }
    }
    if global.json && !is_stdout {
        output::json(&json!({ "id": id, "name": fetch.name, "size": size, "file": path }))?;
    }
    Ok(())
}

/// Changes jobs: named ones, each by its method, or all that match filters.
pub(super) async fn change(
    api: &Api,
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
    let (mut documents, mut worst) = (Vec::new(), Exit::Ok);
    for id in &jobs.ids {
        let mut params = further.clone();
        params["id"] = json!(id);
        match api.call(&format!("job.{verb}"), params).await {
            Ok(result) => {
                let result =
                    if verb == "retry" { json!({ "id": id, "result": done }) } else { result };
                if !global.json {
                    output::line(&format!("{} {}", word(&result["id"]), word(&result["result"])))?;
                }
                documents.push(result);
            }
            Err(error) => {
                output::print_error(&error);
                documents.push(json!({ "id": id, "problem": error.message }));
                worst = if worst == Exit::Ok { error.exit } else { worst };
            }
        }
    }
    if global.json {
        output::json(&json!({ "jobs": documents }))?;
    }
    Ok(worst.into())
}

/// Changes all jobs that match filters, in calls of some seconds each.
async fn change_found(
    api: &Api,
    jobs: &JobChoice,
    (verb, done): (&str, &str),
    further: &Value,
    global: &Global,
) -> Result<ExitCode, Error> {
    let mut filter = filters(&jobs.filter)?;
    if jobs.limit < usize::MAX {
        filter.insert("limit".to_owned(), jobs.limit.into());
    }
    let (mut changed, mut left, mut why) = (0, 0, None);
    loop {
        let mut params = json!({ "change": verb, "dry_run": jobs.dry_run, "yes": jobs.yes });
        params["filter"] = json!(filter);
        if verb == "edit" {
            params["edit"] = further.clone();
        }
        for (name, value) in further.as_object().into_iter().flatten().filter(|_| verb != "edit") {
            // A tree of jobs is stopped by its root alone.
            if name != "children" {
                params[name] = value.clone();
            }
        }
        let result = if jobs.ids.is_empty() {
            api.call("job.change_many", params).await?
        } else {
            let corrects = further["changes"].as_object().is_some_and(|all| !all.is_empty());
            if corrects || further["with_dependents"] == true {
                let message = "dead letters that are named run again as they are: hero job retry corrects them";
                return Err(Error::new(Exit::Usage, message));
            }
            let params = json!({ "ids": jobs.ids, "dry_run": jobs.dry_run });
            api.call(&format!("dead.{verb}"), params).await?
        };
        let number = |name: &str| result[name].as_u64().unwrap_or_default();
        if jobs.dry_run {
            let found: Vec<JobSummary> = read("job.change_many", &result["jobs"])?;
            let total = found.len() as u64 + number("remaining");
            global.print(
                || result.clone(),
                || table(&found, Timestamp::now(), false).show(global.look()),
            )?;
            output::note(&format!("hero: {} would be {done}", counted(total, "job", "jobs")));
            return Ok(ExitCode::SUCCESS);
        }
        (changed, left) = (changed + number("done"), left + number("left"));
        why = why.or_else(|| result["reason"].as_str().map(str::to_owned));
        match result["next"].as_str().filter(|_| jobs.limit == usize::MAX) {
            Some(next) => filter.insert("cursor".to_owned(), next.into()),
            None => break,
        };
    }
    let mut text = format!("{} {done}", counted(changed, "job", "jobs"));
    if left > 0 {
        let stays = counted(left, "job stays as it is", "jobs stay as they are");
        let _ = write!(text, "; {stays}: {}", why.as_deref().unwrap_or_default());
    }
    let document = || json!({ done: changed, "left": left, "reason": why });
    global.print(document, || text + "\n")?;
    Ok(if left == 0 { ExitCode::SUCCESS } else { Exit::Data.into() })
}
