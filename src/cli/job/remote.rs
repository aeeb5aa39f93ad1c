//! `hero --api URL job …`: the commands of jobs over the API of a daemon elsewhere.

mod changes;

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use jiff::Timestamp;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value, json};

pub(super) use self::changes::change;
use super::errors::JobErrors;
use super::files::{self, FetchFile, ListFiles};
use super::filter::JobFilters;
use super::list::{JobList, table};
use super::tell::{self, TellJob};
use super::wait::Wait;
use super::{Clear, JobCommand, Logs, RetryJobs, StopJobs, errors, show};
use crate::cli::api::{ApiMethods, RemoteApi, RemoteEnd, RemoteLog, gave_up, job_of, read};
use crate::cli::exec::ended;
use crate::cli::input::bad;
use crate::cli::no_results::NoResults;
use crate::cli::{Global, output};
use crate::client::ErrorGroupsDocument;
use crate::error::{Error, Exit, reason};
use crate::proto::job::{FileName, JobAttempt, STDIN};
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
    let api = &ApiMethods::Remote(remote);
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
        JobCommand::Logs(logs) => Box::pin(print_log(api, &logs, global)).await?,
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
            let text = || escape_lines(&format!("{id} {} {event}\n", word(&result["result"])));
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

async fn list_jobs(api: &ApiMethods, list: &JobList, global: &Global) -> Result<(), Error> {
    let mut params = filters(&list.filter)?;
    params.insert("limit".to_owned(), list.limit.into());
    params.extend(list.cursor.as_ref().map(|cursor| ("cursor".to_owned(), json!(cursor))));
    let page = api.call("job.list", params.into()).await?;
    let jobs: Vec<JobSummary> = read("job.list", &page["jobs"])?;
    let is_plain =
        |text: &&str| text.chars().all(|c| c.is_ascii_alphanumeric() || "._-=".contains(c));
    let next = page["next"].as_str().filter(is_plain).map(str::to_owned);
    let (searched, is_complete) = (page["searched"].as_u64(), page["complete"] == true);
    let searched = usize::try_from(searched.unwrap_or_default()).unwrap_or(usize::MAX);
    let none = list.filter.no_results().after(list.cursor.as_ref());
    let none = none.searched(searched, "", is_complete);
    let is_of_dead = list.filter.filter.is_of_dead();
    global.list(|| page.clone(), || table(&jobs, Timestamp::now(), is_of_dead), none)?;
    global.more(next.map(|next| list.command_for(&next)));
    Ok(())
}

async fn list_errors(api: &ApiMethods, of: &JobErrors, global: &Global) -> Result<(), Error> {
    let mut params = filters(&of.filter)?;
    params.insert("limit".to_owned(), of.limit.into());
    let (document, found) = api.typed::<ErrorGroupsDocument>("job.errors", params.into()).await?;
    let none = NoResults::new(&of.filter.filter.sentence("failed job"));
    let none = none.searched(found.searched, "", found.complete);
    global.list(|| document, || errors::table(&found.groups, Timestamp::now()), none)
}

async fn show_job(api: &ApiMethods, id: &str, raw: bool, global: &Global) -> Result<(), Error> {
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
    if raw { output::unchanged(text.as_bytes()) } else { output::text(&escape_lines(&text)) }
}

async fn wait_for(api: &ApiMethods, wait: &Wait, global: &Global) -> Result<ExitCode, Error> {
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

async fn print_log(api: &ApiMethods, logs: &Logs, global: &Global) -> Result<(), Error> {
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

async fn list_files(api: &ApiMethods, list: &ListFiles, global: &Global) -> Result<(), Error> {
    let (document, ListedFiles { id, files }) =
        api.typed("job.files", json!({ "id": list.id })).await?;
    files::print(&id, &files, || document, global)
}

async fn fetch_file(api: &ApiMethods, fetch: &FetchFile, global: &Global) -> Result<(), Error> {
    let ApiMethods::Remote(remote) = api else { return Ok(()) };
    let id = job_of(&api.call("job.get", json!({ "id": fetch.id })).await?)?.id;
    // A name that no file of a job has could lead out of the folder.
    if fetch.name != STDIN {
        fetch.name.parse::<FileName>().map_err(bad)?;
    }
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
    let mut file = if is_stdout {
        None
    } else {
        let mut options = std::fs::OpenOptions::new();
        let replaces = fetch.output.is_some();
        let options = options.write(true).create(replaces).truncate(replaces);
        let opened = options.create_new(!replaces).open(&path);
        Some(opened.map_err(|error| unwritable(&error))?)
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
