//! `hero job list`: prints one page of jobs as a table.

use std::fmt::Write;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::filter::JobFilters;
use crate::cli::api::{ApiMethods, read};
use crate::cli::input::parsed;
use crate::cli::table::{TextTable, first_line, shortened};
use crate::cli::time::{age, between, brief, local_second, local_zone};
use crate::cli::{Global, output};
use crate::error::{Error, Exit};
use crate::proto::job::JobStatus;
use crate::proto::text::counted;
use crate::proto::units::readable_size;
use crate::store::{FoundJobs, JobSummary, ListQuery};
use crate::view::job_csv;

/// List jobs, the latest change first: those that ended by when they ended, those that run by their start
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hero job list --status failed --since 24h\n  \
                        hero job list --status waiting --tag nightly\n  \
                        hero job list --type python --json\n  \
                        hero job list --log 'disk full' --since 2d\n  \
                        hero job list --ended-since 2026-03-01 --csv > march.csv\n  \
                        hero job list --status failed --csv --fields id,name,error\n  \
                        hero job list --since 24h --sort memory --limit 10\n  \
                        hero job list --ended-since 'yesterday 18:00' --ended-until 'today 06:00'\n\n\
                        Without a filter, the latest submitted jobs of each state. With one, and as JSON, the latest change \
                        of all states together: a scheduled job stands at the time when it is due. \
                        A search goes on until the page is full or all jobs were searched. Filters of times and ends read \
                        no other jobs. The command for the next page, if there is one, is on standard error.")]
pub(in crate::cli) struct JobList {
    #[command(flatten)]
    pub(super) filter: JobFilters,
    /// The page size, up to 1000
    #[arg(long, default_value_t = 50, value_name = "NUMBER",
          value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(super) limit: u16,
    /// Print all jobs that match as CSV, with the columns of the page's export. Jobs that start or end meanwhile may be
    /// missing: --ended-until has those that ended before. Text that a spreadsheet would take for a formula begins with '
    #[arg(long, conflicts_with_all = ["limit", "cursor"])]
    pub(super) csv: bool,
    /// The columns of the CSV, separated by commas
    #[arg(long, requires = "csv", value_name = "NAMES", value_delimiter = ',', hide_possible_values = true,
          value_parser = PossibleValuesParser::new(job_csv::columns()))]
    pub(super) fields: Vec<String>,
    /// Only jobs whose kept log has a line with this text, with that line; reads the log of each job that matches, the latest
    /// change first, until the page is full
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["csv", "cursor"])]
    pub(super) log: Option<String>,
    /// Print those jobs, of all that match, whose last attempts took the most memory or processor time
    #[arg(long, value_name = "USE", value_enum, conflicts_with_all = ["csv", "cursor", "log"])]
    pub(super) sort: Option<SortedUse>,
    /// The end of the previous page, as printed with it
    #[arg(long)]
    pub(super) cursor: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum SortedUse {
    Memory,
    Cpu,
}

impl SortedUse {
    fn field(self) -> &'static str {
        match self {
            Self::Memory => "memory_peak",
            Self::Cpu => "cpu_time",
        }
    }
}

impl JobList {
    pub(in crate::cli) async fn run(&self, api: &ApiMethods, global: &Global) -> Result<(), Error> {
        if self.csv && global.json {
            return Err(Error::new(
                Exit::Usage,
                "--csv and --json print the same jobs: use one of them",
            ));
        }
        if self.csv {
            return self.print_csv(api).await;
        }
        if let Some(text) = &self.log {
            return self.print_of_log(text, api, global).await;
        }
        if let Some(sort) = self.sort {
            return self.print_largest(sort, api, global).await;
        }
        if !(self.filter.is_given() || global.json || self.cursor.is_some()) {
            return self.print_latest(api, global).await;
        }
        let mut params = self.filter.params(api).await?;
        params.extend(self.cursor.as_ref().map(|cursor| ("cursor".to_owned(), json!(cursor))));
        let (page, found) = find(api, params, self.limit.into()).await?;
        let next = found.next.as_ref().map(ToString::to_string);
        let is_of_dead = self.filter.filter.is_of_dead();
        let table = || table(&found.items, Timestamp::now(), is_of_dead);
        let none = self.filter.no_results().after(self.cursor.as_ref()).among(&found);
        global.list(|| page, table, none)?;
        global.more(next.map(|next| self.command_for(&next)));
        Ok(())
    }

    /// Prints all jobs page by page. An error ends it, so that a part is not taken for the whole.
    async fn print_csv(&self, api: &ApiMethods) -> Result<(), Error> {
        let mut params = self.filter.params(api).await?;
        let chosen: Vec<&str> = self.fields.iter().map(String::as_str).collect();
        let columns = if chosen.is_empty() { job_csv::columns() } else { chosen };
        output::text(&job_csv::header(&columns))?;
        loop {
            let (page, found) = find(api, params.clone(), ListQuery::LIMIT_MAX).await?;
            let line =
                |job: &Value| job_csv::line(&columns, |field| job_csv::plain(job.get(field)));
            let jobs = page["jobs"].as_array().into_iter().flatten();
            output::text(&jobs.map(line).collect::<String>())?;
            let Some(next) = found.next else { return Ok(()) };
            params.insert("cursor".to_owned(), json!(next.to_string()));
        }
    }

    /// Prints the jobs with the largest use of all that match, found page by page.
    async fn print_largest(
        &self,
        sort: SortedUse,
        api: &ApiMethods,
        global: &Global,
    ) -> Result<(), Error> {
        let mut params = self.filter.params(api).await?;
        let mut largest: Vec<(f64, Value)> = Vec::new();
        let last = loop {
            let (mut page, found) = find(api, params.clone(), ListQuery::LIMIT_MAX).await?;
            let jobs = page["jobs"].as_array_mut().into_iter().flat_map(std::mem::take);
            largest.extend(jobs.filter_map(|job| Some((job[sort.field()].as_f64()?, job))));
            largest.sort_by(|(one, _), (other, _)| other.total_cmp(one));
            largest.truncate(self.limit.into());
            let Some(next) = &found.next else { break found };
            params.insert("cursor".to_owned(), json!(next.to_string()));
        };
        let jobs: Vec<Value> = largest.into_iter().map(|(_, job)| job).collect();
        let items: Vec<JobSummary> = read("job.list", &json!(jobs))?;
        let table = || table_of_use(&items, Timestamp::now());
        let none = self.filter.no_results().among(&last);
        global.list(|| json!({ "jobs": jobs }), table, none)
    }

    /// Prints the latest jobs of all states together, the newest first.
    async fn print_latest(&self, api: &ApiMethods, global: &Global) -> Result<(), Error> {
        let limit = usize::from(self.limit);
        let (mut jobs, mut has_more) = (Vec::new(), false);
        for status in JobStatus::ALL {
            // One more tells whether there is one more.
            let most = (limit + 1).min(ListQuery::LIMIT_MAX);
            let params = json!({ "status": status, "limit": most });
            let page = found_of(&api.call("job.list", params).await?)?;
            has_more |= limit == most && page.next.is_some();
            jobs.extend(page.items);
        }
        jobs.sort_by_key(|job| std::cmp::Reverse(job.time("created_at")));
        has_more |= jobs.len() > limit;
        jobs.truncate(limit);
        output::text(&table(&jobs, Timestamp::now(), false).show(global.look()))?;
        if jobs.is_empty() {
            // While an upgrade sorts the ended jobs, no list has all of them.
            let (_, found) = find(api, Map::new(), 1).await?;
            self.filter.no_results().among(&found).report(global, found.items.is_empty());
        }
        // Of several lists there is no cursor: the jobs that were submitted before.
        if let Some(created) =
            jobs.last().filter(|_| has_more).and_then(|job| job.time("created_at"))
        {
            output::note(&format!("more: hero job list --limit {limit} --until {created}"));
        }
        Ok(())
    }

    pub(super) fn command_for(&self, cursor: &str) -> String {
        format!("hero job list{} --limit {} --cursor {cursor}", self.filter.words(), self.limit)
    }
}

/// Searches for a page of jobs, in calls of some seconds each. At a terminal it shows how far it is.
pub(super) async fn find(
    api: &ApiMethods,
    mut params: Map<String, Value>,
    limit: usize,
) -> Result<(Value, FoundJobs), Error> {
    let (mut jobs, mut searched) = (Vec::new(), 0);
    loop {
        params.insert("limit".to_owned(), (limit - jobs.len()).into());
        let mut page = api.call("job.list", params.clone().into()).await?;
        jobs.extend(page["jobs"].as_array_mut().into_iter().flat_map(std::mem::take));
        searched += page["searched"].as_u64().unwrap_or_default();
        if !page["next"].is_null() && jobs.len() < limit {
            output::passing_note(&format!("hero: searched {}", counted(searched, "job", "jobs")));
            params.insert("cursor".to_owned(), page["next"].take());
            continue;
        }
        output::passing_note("");
        (page["jobs"], page["searched"]) = (jobs.into(), searched.into());
        let found = found_of(&page)?;
        return Ok((page, found));
    }
}

fn found_of(page: &Value) -> Result<FoundJobs, Error> {
    Ok(FoundJobs {
        items: read("job.list", &page["jobs"])?,
        next: page["next"].as_str().map(parsed).transpose()?,
        searched: read("job.list", &page["searched"])?,
        complete: page["complete"] == true,
    })
}

/// The table of jobs. Dead letters are all in one state: it has the age of their ends instead.
pub(super) fn table(
    jobs: &[JobSummary],
    now: Timestamp,
    of_dead: bool,
) -> TextTable<'_, JobSummary> {
    let since = |job: &JobSummary, name: &str| {
        job.time(name).map(|time| age(time, now)).unwrap_or_default()
    };
    let died = |job: &JobSummary| since(job, "finished_at");
    let zone = local_zone();
    let starts = |job: &JobSummary| {
        let start = job.time("run_at").filter(|_| job.status == JobStatus::Scheduled);
        start.map(|time| local_second(time, &zone)).unwrap_or_default()
    };
    let table = TextTable::of(jobs)
        .column("#ID", &|job| job.id.to_string())
        .column("~NAME", &|job| shortened(job.text("name")));
    let table =
        if of_dead { table.column(">DIED", &died) } else { table.column("*STATUS", &state) };
    let mut table = table
        .column("TYPE", &|job| job.text("script_type").to_owned())
        .column("?~TARGET", &target)
        .column("?>ATTEMPT", &|job| job.text("attempt").to_owned())
        .column(">AGE", &|job| since(job, "created_at"))
        .column(">TOOK", &|job| took(job, now).unwrap_or_default())
        .column("?~ACTOR", &|job| job.text("actor").to_owned());
    if jobs.iter().any(|job| !starts(job).is_empty()) {
        table = table.column("STARTS", &starts);
    }
    if jobs.iter().any(|job| job.fields.contains_key("error")) {
        table = table.column("!ERROR", &|job| first_line(job.text("error")));
    }
    table
}

/// The table of what the last attempts of jobs used.
fn table_of_use(jobs: &[JobSummary], now: Timestamp) -> TextTable<'_, JobSummary> {
    let memory =
        |job: &JobSummary| job.text("memory_peak").parse().map_or(String::new(), readable_size);
    let cpu = |job: &JobSummary| {
        let seconds = job.text("cpu_time").parse().ok();
        let time = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        time.map(attempt).unwrap_or_default()
    };
    TextTable::of(jobs)
        .column("#ID", &|job| job.id.to_string())
        .column("~NAME", &|job| shortened(job.text("name")))
        .column("TYPE", &|job| job.text("script_type").to_owned())
        .column(">MEMORY", &memory)
        .column(">CPU", &cpu)
        .column(">TOOK", &|job| took(job, now).unwrap_or_default())
        .column(">AGE", &|job| job.time("created_at").map(|at| age(at, now)).unwrap_or_default())
        .column("?~ACTOR", &|job| job.text("actor").to_owned())
}

/// The state, with a mark if the job is late or slow, and what it waits for.
fn state(job: &JobSummary) -> String {
    let mark = job.delay().map(|word| format!(", {word}")).unwrap_or_default();
    let wait = job.awaited().map(|wait| format!(", waits for {wait}")).unwrap_or_default();
    let held = job.fields.get("held_by").filter(|_| job.status == JobStatus::Dispatched);
    let held = held.map(|limit| format!(", held by limit {limit}")).unwrap_or_default();
    format!("{}{mark}{wait}{held}", job.state())
}

/// The target below the type, with the priority unless it is the default.
fn target(job: &JobSummary) -> String {
    let field = |name: &str| Some(job.text(name)).filter(|text| !text.is_empty());
    let mut target = match (field("group"), field("instance")) {
        (None, None) => field("where").unwrap_or("any").to_owned(),
        (Some(group), None) => group.to_owned(),
        (group, Some(instance)) => format!("{}:{instance}", group.unwrap_or("default")),
    };
    if let Some(priority) = field("priority").filter(|priority| *priority != "1") {
        let _ = write!(target, " prio {priority}");
    }
    target
}

/// The duration of the last attempt, so far if it still runs.
fn took(job: &JobSummary, now: Timestamp) -> Option<String> {
    let started = job.time("started_at")?;
    match job.status {
        JobStatus::Started => Some(attempt(between(started, now))),
        status if status.is_terminal() => Some(attempt(between(started, job.time("finished_at")?))),
        _ => None,
    }
}

/// Formats a duration; times of a job are exact to the millisecond.
pub(super) fn attempt(took: Duration) -> String {
    if took.as_millis() == 0 { "<1ms".to_owned() } else { brief(took) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::job_filter::JobFilter;
    use std::collections::BTreeMap;

    fn job(status: JobStatus, fields: &[(&'static str, &str)]) -> JobSummary {
        let fields: BTreeMap<_, _> = fields.iter().map(|(k, v)| (*k, (*v).to_owned())).collect();
        JobSummary { id: "j1".parse().expect("legal"), status, fields }
    }

    #[test]
    fn row_has_target_age_duration_and_actor() {
        let jobs = [job(
            JobStatus::Finished,
            &[
                ("script_type", "osis"),
                ("name", "count words"),
                ("group", "io"),
                ("instance", "3"),
                ("priority", "0"),
                ("attempt", "1"),
                ("actor", "osis:io:3"),
                ("created_at", "2026-01-01T00:00:00.000Z"),
                ("started_at", "2026-01-01T00:00:01.000Z"),
                ("finished_at", "2026-01-01T00:00:01.012Z"),
            ],
        )];
        let now: Timestamp = "2026-01-01T00:00:30Z".parse().expect("a time");
        assert_eq!(
            table(&jobs, now, false).render(),
            "ID  NAME         STATUS    TYPE  TARGET       ATTEMPT  AGE  TOOK  ACTOR\n\
             j1  count words  finished  osis  io:3 prio 0        1  30s  12ms  osis:io:3\n"
        );
        let dead = table(&jobs, now, true).render();
        assert!(
            dead.contains("DIED") && dead.contains(" 28s ") && !dead.contains("STATUS"),
            "{dead}"
        );
        let (created, due) = (("created_at", "2026-01-01T00:00:20Z"), "2026-01-01T09:00:00Z");
        let scheduled = [job(JobStatus::Scheduled, &[created, ("run_at", due)])];
        let shown = table(&scheduled, now, false).render();
        let starts = local_second(due.parse().expect("a time"), &local_zone());
        assert!(shown.contains(" STARTS\n") && shown.contains(&starts), "{shown}");
        assert!(shown.contains(" 10s ") && !shown.contains("in "), "{shown}");
        let wait = ("wait", r#"{"event":"approved"}"#);
        let waits = [job(JobStatus::Scheduled, &[wait]), job(JobStatus::Started, &[wait])];
        let shown = table(&waits, now, false).render();
        assert!(shown.contains(" scheduled, waits for the event approved "), "{shown}");
        assert_eq!(shown.matches("approved").count(), 1, "{shown}");
    }

    #[test]
    fn held_job_names_the_limit() {
        let jobs = [job(JobStatus::Dispatched, &[("held_by", "gpu")])];
        let shown = table(&jobs, Timestamp::UNIX_EPOCH, false).render();
        assert!(shown.contains(" dispatched, held by limit gpu "), "{shown}");
    }

    #[test]
    fn control_characters_in_a_field_are_escaped() {
        let jobs = [job(JobStatus::Started, &[("script_type", "\u{1b}[2J\n")])];
        let text = table(&jobs, Timestamp::UNIX_EPOCH, false).render();
        assert!(text.contains("\\u{1b}[2J\\n") && text.lines().count() == 2, "{text}");
    }

    #[test]
    fn next_page_keeps_the_filters() {
        let filter = JobFilter::of([("status", "error")]);
        let filter = JobFilters { filter, ..JobFilters::default() };
        let list = JobList {
            filter,
            limit: 2,
            csv: false,
            fields: Vec::new(),
            log: None,
            cursor: None,
            sort: None,
        };
        assert_eq!(
            list.command_for("1.j1"),
            "hero job list --status error --limit 2 --cursor 1.j1"
        );
    }
}
