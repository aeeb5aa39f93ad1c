//! Stops, retries and deletes jobs: named ones, or all that match filters.

use std::process::ExitCode;

use clap::Args;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::filter::JobFilters;
use super::list::table;
use crate::cli::api::{ApiMethods, read};
use crate::cli::input::parsed;
use crate::cli::{Global, output};
use crate::error::{Error, Exit};
use crate::proto::job::JobReference;
use crate::proto::text::{counted, escape_lines};
use crate::store::{FoundJobs, JobSummary};

/// Jobs by their ids, or by filters.
#[derive(Debug, Args)]
pub(in crate::cli) struct JobChoice {
    /// The jobs: ids, or their unique beginnings
    #[arg(value_name = "ID")]
    pub(super) ids: Vec<String>,
    #[command(flatten)]
    pub(super) filter: JobFilters,
    /// The maximum number of jobs that filters choose, the latest; without it, all
    #[arg(long, value_name = "NUMBER", default_value_t = u64::MAX, hide_default_value = true,
          value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) limit: u64,
    /// Print the jobs that the filters choose, and change none
    #[arg(long, conflicts_with = "ids")]
    pub(super) dry_run: bool,
    /// Confirm that all jobs that match are stopped or deleted
    #[arg(long)]
    pub(super) yes: bool,
}

impl JobChoice {
    /// Returns the id if one job is named and nothing else.
    pub(super) fn only_id(&self) -> Option<&str> {
        match self.ids.as_slice() {
            [id] if !self.filter.is_given() => Some(id),
            _ => None,
        }
    }

    /// Makes a change of jobs, also after failures: `further` are the parameters of the change of one job. The exit code
    /// comes from the first failure.
    pub(in crate::cli) async fn change(
        &self,
        api: &ApiMethods,
        verb: &str,
        further: Value,
        global: &Global,
    ) -> Result<ExitCode, Error> {
        let what = match (self.ids.is_empty(), self.filter.is_given()) {
            // Named jobs may have to be dead letters.
            (false, _) if self.filter.chooses_none() => {
                return self.change_named(api, verb, &further, global).await;
            }
            (true, true) => return self.change_found(api, verb, further, global).await,
            (true, false) => "neither ids nor filters are given",
            (false, _) => "both ids and filters are given",
        };
        let message = format!(
            "cannot {verb} jobs: {what}; hero job {verb} ID, or \
             hero job {verb} with filters such as --type and --since"
        );
        Err(Error::new(Exit::Usage, message))
    }

    async fn change_named(
        &self,
        api: &ApiMethods,
        verb: &str,
        further: &Value,
        global: &Global,
    ) -> Result<ExitCode, Error> {
        self.ids.iter().try_for_each(|id| parsed::<JobReference>(id).map(drop))?;
        // A job that runs again is reported by the change, not by its new state.
        let by_word = verb == "retry" && further["with_dependents"] == false;
        let (mut documents, mut exit) = (Vec::new(), Exit::Ok);
        let mut failed = |id: &str, error: Error, documents: &mut Vec<Value>| {
            output::print_error(&error);
            documents.push(json!({ "id": id, "problem": error.message }));
            exit = if exit == Exit::Ok { error.exit } else { exit };
        };
        for id in &self.ids {
            let change = async {
                if self.filter.filter.is_of_dead() {
                    api.of_job("job.get", id, json!({ "dead": true })).await?;
                }
                api.of_job(&format!("job.{verb}"), id, further.clone()).await
            };
            let result = match change.await {
                Ok(result) => result,
                Err(error) => {
                    failed(id, error, &mut documents);
                    continue;
                }
            };
            // Other jobs may have changed with it.
            let all = result["jobs"].as_array();
            for of in all.map_or(std::slice::from_ref(&result), Vec::as_slice) {
                let id = of["id"].as_str().unwrap_or_default();
                let word =
                    of["result"].as_str().map(|word| if by_word { done(verb) } else { word });
                match word {
                    Some(word) if global.json => {
                        documents.push(json!({ "id": id, "result": word }));
                    }
                    Some(word) => output::line(&escape_lines(&format!("{id} {word}")))?,
                    None => {
                        let why = of["problem"].as_str().unwrap_or_default();
                        failed(id, Error::new(Exit::Data, why), &mut documents);
                    }
                }
            }
        }
        if global.json {
            output::json(&json!({ "jobs": documents }))?;
        }
        Ok(exit.into())
    }

    /// Changes all jobs that match the filters, in calls of some seconds each.
    async fn change_found(
        &self,
        api: &ApiMethods,
        verb: &str,
        further: Value,
        global: &Global,
    ) -> Result<ExitCode, Error> {
        let mut filter = self.filter.params(api).await?;
        let asks = ["stop", "delete"].contains(&verb) && !self.yes && !self.dry_run;
        let dry_run = self.dry_run || asks;
        let mut params = json!({ "change": verb, "yes": self.yes, "uncounted": true });
        params["dry_run"] = dry_run.into();
        match further {
            edit if verb == "edit" => params["edit"] = edit,
            Value::Object(members) => {
                members.into_iter().for_each(|(name, value)| params[name] = value);
            }
            _ => {}
        }
        let mut all = ManyJobs::default();
        loop {
            filter.insert("limit".to_owned(), (self.limit - all.found).into());
            params["filter"] = json!(filter);
            let result = api.call("job.change_many", params.clone()).await;
            let next = all.add(&result.map_err(|error| all.interrupted(error))?)?;
            if asks || next.is_none() || all.found >= self.limit {
                break;
            }
            output::passing_note(&format!("hero: {} {}", all.done, done(verb)));
            filter.extend(next.map(|next| ("cursor".to_owned(), next.into())));
        }
        output::passing_note("");
        let jobs = self.filter.counted(all.found);
        if asks && all.found > 0 {
            let least = if all.more { "at least " } else { "" };
            let message = format!(
                "cannot {verb} {least}{jobs} without confirmation; add --yes, or --dry-run to list them"
            );
            return Err(Error::new(Exit::Usage, message));
        }
        let searched = FoundJobs { complete: all.complete || all.more, ..FoundJobs::default() };
        let none = self.filter.no_results().by("that can be", Some(done(verb)));
        none.among(&searched).report(global, all.found == 0);
        if all.more {
            output::note(&format!("hero: more may match; these are the latest {jobs} (--limit)"));
        }
        if self.dry_run {
            let is_of_dead = self.filter.filter.is_of_dead();
            let text = || table(&all.jobs, Timestamp::now(), is_of_dead).show(global.look());
            global.print(|| json!({ "jobs": all.jobs, "more": all.more }), text)?;
            output::note(&format!("hero: {jobs} would be {}", done(verb)));
            return Ok(ExitCode::SUCCESS);
        }
        let changed = self.filter.counted(all.done - all.told);
        global.print(|| all.document(verb), || all.sentence(&changed, done(verb)))?;
        Ok(if all.left == 0 { ExitCode::SUCCESS } else { Exit::Data.into() })
    }
}

fn done(verb: &str) -> &'static str {
    match verb {
        "retry" => "retried",
        "stop" => "stopped",
        "delete" => "deleted",
        _ => "edited",
    }
}

#[derive(Default)]
struct ManyJobs {
    found: u64,
    done: u64,
    told: u64,
    left: u64,
    reason: Option<String>,
    jobs: Vec<JobSummary>,
    more: bool,
    complete: bool,
}

impl ManyJobs {
    /// Adds the result of a call. Returns the place where the next one goes on.
    fn add(&mut self, result: &Value) -> Result<Option<String>, Error> {
        let sums = [&mut self.found, &mut self.done, &mut self.told, &mut self.left];
        for (sum, name) in sums.into_iter().zip(["found", "done", "told", "left"]) {
            *sum += read::<u64>("job.change_many", &result[name])?;
        }
        self.reason = self.reason.take().or_else(|| result["reason"].as_str().map(str::to_owned));
        if !result["jobs"].is_null() {
            self.jobs.extend(read::<Vec<JobSummary>>("job.change_many", &result["jobs"])?);
        }
        (self.more, self.complete) = (result["more"] == true, result["remaining_complete"] == true);
        Ok(result["next"].as_str().map(str::to_owned))
    }

    /// Adds to the error of a call what was done before it.
    fn interrupted(&self, error: Error) -> Error {
        if self.done == 0 {
            return error;
        }
        let before = counted(self.done, "job was changed", "jobs were changed");
        Error::new(error.exit, format!("{}; {before} by the calls before it", error.message))
    }

    fn document(&self, verb: &str) -> Value {
        let mut document = json!({ done(verb): self.done });
        if verb == "stop" {
            document["told"] = self.told.into();
        }
        document["left"] = self.left.into();
        document["reason"] = self.reason.clone().into();
        document
    }

    /// Counts the changed jobs, and says why the rest stays.
    fn sentence(&self, changed: &str, done: &str) -> String {
        let told = match self.told {
            0 => String::new(),
            told => format!(", {told} told to stop"),
        };
        match &self.reason {
            Some(reason) => {
                let left = counted(self.left, "job stays as it is", "jobs stay as they are");
                escape_lines(&format!("{changed} {done}{told}; {left}: {reason}")) + "\n"
            }
            None => format!("{changed} {done}{told}\n"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentence_counts_what_was_done_and_says_why_the_rest_stays() {
        let mut all = ManyJobs { done: 2, ..ManyJobs::default() };
        assert_eq!(all.sentence("2 jobs", "retried"), "2 jobs retried\n");
        all.told = 1;
        assert_eq!(all.sentence("1 job", "stopped"), "1 job stopped, 1 told to stop\n");
        let call = json!({ "found": 1, "done": 0, "told": 0, "left": 1, "reason": "it runs",
            "more": false, "remaining_complete": true });
        all.told = 0;
        assert_eq!(all.add(&call).expect("read"), None);
        let said = "2 jobs deleted; 1 job stays as it is: it runs\n";
        assert_eq!(all.sentence("2 jobs", "deleted"), said);
        assert_eq!(all.found, 1);
    }
}
