//! `hero submit`: submits one job, a batch or a graph, and does not wait.

mod batch_lines;
mod circle;
mod graph;
mod many;

use std::collections::BTreeMap;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args};
use serde_json::{Value, json};

use self::batch_lines::{BatchLines, JobPerLine};
pub(super) use self::graph::{params, read_plan};
use super::api::{ApiMethods, MethodError, read, settings};
use super::every::EveryOptions;
use super::help::{MANY, WHERE};
use super::input::bad;
use super::job_options::{JobOptions, SCRIPT_HELP, trace_of_environment};
use super::key::Signing;
use super::script::ScriptSource;
use super::sent_job::{JobSending, SentJob, SubmitSpan};
use super::table::wrapped;
use super::time::{local, local_zone};
use super::window_options::WindowOptions;
use super::{Global, job_notes, output, script_doc};
use crate::client::{Client, FilesByPlace, Graph};
use crate::config::{Config, GraphFile, Source};
use crate::error::{Error, Exit};
use crate::proto::graph::GraphCallback;
use crate::proto::graph_plan::GraphPlan;
use crate::proto::job::{Job, JobSpec, SETTINGS};
use crate::proto::legacy::Circle;
use crate::proto::text::{counted, escape_lines};
use crate::rpc::results::SubmittedGraph;

const EACH_TAKES_NO: [&str; 4] = ["graph", "batch", "uses", "unique_key"];

/// Submit a script and print the id of the job; or many from a file, and print the id of their batch or graph
#[derive(Debug, Args)]
#[command(
    override_usage = "hero submit [OPTIONS] <FILE|--eval <CODE>|--uses <NAME>> [-- <ARG>...]\n       \
                            hero submit [OPTIONS] -- <COMMAND> [<ARG>...]\n       \
                            hero submit [OPTIONS] <--graph <FILE>|--batch <FILE>>\n       \
                            hero submit [OPTIONS] --each <FILE> <FILE|-- <COMMAND>> [<ARG>...]"
)]
#[command(mut_group("ScriptSource", |group| group.required(false)))]
#[command(group = ArgGroup::new("Lines").args(["batch", "each", "every_machine", "every_actor"]))]
#[command(group = ArgGroup::new("Many").args(["graph", "batch", "each", "every_machine", "every_actor"]))]
#[command(mut_arg("file", |file| {
    file.index(1).required_unless_present_any(["eval", "uses", "args", "graph", "batch"])
}))]
#[command(mut_arg("args", |args| args.index(2)))]
#[command(mut_args(|option| WindowOptions::bound_to("Many", option)))]
#[command(after_help = ["Examples:\n  hero submit --delay 10m -t osis -e 'print(\"tea\")'\n  \
                        hero submit --timeout 2h -- rsync -a /srv/data backup:data\n  \
                        hero submit --at \"tomorrow 09:00\" --timezone Europe/Brussels report.py\n  \
                        hero submit --after \"$(hero submit first.py)\" second.py\n  \
                        hero submit --after-any ID --retention 7d clean_up.py\n  \
                        hero submit --input data.csv=/home/ann/data.csv report.py\n  \
                        hero submit --unique-by script --unique-for 10m report.py -- north\n  \
                        hero submit --sign ops.key --signed-for 2h repair.sh\n  \
                        hero submit --graph release.toml\n  \
                        hero submit --check --graph release.toml\n  \
                        hero submit --dry-run --timeout 2h -- rsync -a /srv/data backup:data\n  \
                        hero submit --batch jobs.jsonl --on-end report.py\n  \
                        ls *.png | hero submit --each - --input {} resize.sh\n  \
                        hero submit --every-machine --where 'role = web' --expires 2d clean.sh\n  \
                        hero submit --each hosts.txt --timeout 5m check.sh\n  \
                        hero submit --circle main --timeout 1m -e '40 + 2'\n  \
                        hero submit --each hosts.txt --at-a-time 4 --stop-after 5% -- deploy\n  \
                        hero submit --each hosts.txt --pause-after '1 tell' -- deploy\n  \
                        hero graph wait \"$(hero submit --batch jobs.jsonl)\"\n  \
                        echo '{\"script_type\": \"osis\", \"script\": \"1\"}' | hero submit --batch -\n\n", SCRIPT_HELP,
    "\n\n\
                        A graph has a table [job.NAME] for each job, with script or file, type,\n\
                        after, after_any (names of the graph, or ids) and the options above.\n\
                        A batch has a job a line, an object of JSON with these members, or the words of the\n\
                        options:\n", &batch_members(), "\n\
                        Beside --graph or --batch, --id and --name name the graph or batch, --notify\n\
                        the notifications that tell of its end, --at-a-time, --stop-after and --pause-after bound it;\n\
                        of the others only --check can be given, which checks a graph and submits nothing."].concat())]
pub(super) struct Submit {
    #[command(flatten)]
    options: JobOptions,
    #[command(flatten)]
    signing: Signing,
    /// Submit all jobs of this TOML file, or none; `-` reads standard input
    #[arg(long, value_name = "FILE", group = "ScriptSource", conflicts_with_all = JobOptions::ids(), help_heading = MANY)]
    graph: Option<PathBuf>,
    /// Submit the jobs of this file, one per line as JSON; `-` reads standard input
    #[arg(long, value_name = "FILE", group = "ScriptSource", conflicts_with_all = JobOptions::ids().chain(["check"]), help_heading = MANY)]
    batch: Option<PathBuf>,
    /// Submit a job for each line of this file, which replaces {} in the arguments or comes after them, and in --input
    /// and --stdin, and names the job, as one batch; `-` reads standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = EACH_TAKES_NO, help_heading = MANY)]
    each: Option<PathBuf>,
    /// Write the script as a task into this circle of rhailib, for its own workers, wait for it, for --timeout or
    /// job.timeout, and print its output
    #[arg(long, value_name = "NAME", conflicts_with_all = no_options_of_a_task(), help_heading = WHERE)]
    circle: Option<Circle>,
    /// Print what would be submitted as JSON, and submit nothing
    #[arg(long, conflicts_with_all = ["check", "ids"])]
    dry_run: bool,
    /// Print the ids of the jobs, one a line, instead of the id of the batch or graph; for a graph after their names
    #[arg(long, requires = "Many", conflicts_with = "check")]
    ids: bool,
    /// Submit all jobs of the batch, or none if one is rejected
    #[arg(long, requires = "Lines", help_heading = MANY)]
    all_or_none: bool,
    #[command(flatten)]
    window: WindowOptions,
    #[command(flatten)]
    callbacks: CallbackFiles,
    #[command(flatten)]
    every: EveryOptions,
}

/// The ids of the options that a task of rhailib cannot have.
fn no_options_of_a_task() -> impl Iterator<Item = &'static str> {
    let of_job = JobOptions::ids().filter(|id| *id != "timeout");
    of_job.chain(["id", "name", "notify", "check", "dry_run", "Many"])
}

/// Returns the members that a line of a batch may have, in lines for the help.
fn batch_members() -> String {
    let members = SETTINGS.iter().map(|of| of.field);
    let members: Vec<&str> = members.chain(["delay", "file", "inputs", "stdin"]).collect();
    let lines = wrapped(&members.join(" "), 75, "");
    lines.iter().flat_map(|line| ["  ", line, "\n"]).collect()
}

/// The scripts that start at the end of a batch.
#[derive(Debug, Clone, Args)]
#[expect(clippy::struct_field_names, reason = "the names of the options")]
struct CallbackFiles {
    /// Run this script once all jobs of the batch have finished
    #[arg(long, value_name = "FILE", requires = "Lines", help_heading = MANY)]
    on_success: Option<PathBuf>,
    /// Run this script once all jobs of the batch have ended, if not all finished
    #[arg(long, value_name = "FILE", requires = "Lines", help_heading = MANY)]
    on_failure: Option<PathBuf>,
    /// Run this script once all jobs of the batch have ended
    #[arg(long, value_name = "FILE", requires = "Lines", help_heading = MANY)]
    on_end: Option<PathBuf>,
}

impl CallbackFiles {
    /// Reads the scripts; the extension of each says its type.
    fn jobs(self, config: &Config) -> Result<BTreeMap<GraphCallback, Job>, Error> {
        let files = [self.on_success, self.on_failure, self.on_end];
        let given = GraphCallback::ALL.into_iter().zip(files);
        let read =
            given.filter_map(|(callback, file)| Some((callback, file?))).map(|(of, file)| {
                let mut spec = JobSpec::default();
                ScriptSource::of(Some(file), None).fill(&mut spec, config)?;
                Ok((of, Job::from(spec)))
            });
        read.collect()
    }
}

impl Submit {
    pub(super) async fn run(self, global: &Global) -> Result<(), Error> {
        if self.dry_run {
            return self.print_dry_run(global);
        }
        if let Some(circle) = &self.circle {
            return Box::pin(self.run_in_circle(circle, global)).await;
        }
        let mut api = global.methods()?;
        if let Some(word) = self.every.word() {
            return Box::pin(self.submit_everywhere(&api, word, global)).await;
        }
        if self.graph.is_none() && self.batch.is_none() && self.each.is_none() {
            return Box::pin(self.submit_one(&mut api, global)).await;
        }
        api.sign(&self.signing)?;
        match &self.graph {
            Some(file) => Box::pin(self.submit_graph(&api, file, global)).await,
            None => Box::pin(self.submit_lines(&api, global)).await,
        }
    }

    async fn submit_one(&self, api: &mut ApiMethods, global: &Global) -> Result<(), Error> {
        let config = global.config()?;
        let how = JobSending { signing: &self.signing, is_awaited: false, explains: false };
        let sent = SentJob::send(api, &self.options, how, config).await?;
        let (id, is_new) = (&sent.job.id, sent.is_new);
        let as_json = || json!({ "id": id, "created": is_new }).to_string();
        let text = if global.json { as_json() } else { id.to_string() };
        output::accepted(&format!("{text}\n"))?;
        sent.note(config);
        global.hint(&format!("wait for its end: hero job wait {id}; look: hero job show {id}"));
        let is_read = !global.json && io::stderr().is_terminal();
        if let Some(start) = sent.spec.run_at.filter(|_| is_read) {
            output::note(&format!("starts {}", local(start, &local_zone())));
        }
        // The presence of old workers is unknown.
        if config.supervisor.served_legacy_queues().is_empty()
            && let Some(reason) = job_notes::blocker(api, id.as_str()).await
            && reason.starts_with("an actor")
        {
            job_notes::report_blocker(id.as_str(), &reason);
        }
        sent.span.end("job", sent.job.id.as_str()).await;
        Ok(())
    }

    async fn submit_graph(
        &self,
        api: &ApiMethods,
        file: &Path,
        global: &Global,
    ) -> Result<(), Error> {
        let config = global.config()?;
        let text = graph::read_file(file)?;
        let source = graph::parse(file, &text)?;
        let (places, mut plan, files) = self.plan_of(&source, file, config)?;
        if self.options.further.check {
            return check_graph(&global.client()?, &places, plan, global);
        }
        let is_local = matches!(api, ApiMethods::Local { .. });
        let span = SubmitSpan::begin(config, trace_of_environment());
        // The other jobs join the trace of the first that has one.
        if plan.jobs_and_callbacks().all(|(_, job)| job.spec.traceparent.is_none())
            && let Some(first) = plan.jobs.first_mut()
        {
            first.job.spec.traceparent = span.place;
        }
        let params = params(plan.clone());
        let answer = api.answer("graph.submit", params, files).await;
        let document = answer.map_err(|failed| graph::explained(&places, failed))?;
        let submitted: SubmittedGraph = read("graph.submit", &document)?;
        self.print_graph(&document, &submitted, global)?;
        if is_local {
            job_notes::print_of_graph(&plan, config);
        }
        job_notes::report_unserved(&submitted.unserved);
        span.end("graph", &submitted.id).await;
        Ok(())
    }

    /// Returns the graph of a file with the options, and the places and the files of its jobs.
    fn plan_of<'s>(
        &self,
        source: &'s Source<'s>,
        file: &Path,
        config: &Config,
    ) -> Result<(GraphFile<'s>, GraphPlan<Job>, FilesByPlace), Error> {
        let JobSpec { id, name, notify, .. } = self.options.settings_of_many()?;
        let (places, mut plan, files) = graph::read(source, file, config)?;
        (plan.id, plan.name) = (id.or(plan.id), name.or(plan.name));
        plan.notify.extend(notify.iter().map(ToString::to_string));
        plan.set_window(plan.window().changed_by(self.window.window()));
        Ok((places, plan, files))
    }

    fn print_graph(
        &self,
        document: &Value,
        submitted: &SubmittedGraph,
        global: &Global,
    ) -> Result<(), Error> {
        let id = escape_lines(&submitted.id);
        let text = if global.json {
            format!("{document}\n")
        } else if self.ids {
            let line = |(name, id): (&String, &String)| {
                [escape_lines(name), "  ".into(), escape_lines(id), "\n".into()]
            };
            submitted.jobs.iter().flat_map(line).collect()
        } else {
            format!("{id}\n")
        };
        output::accepted(&text)?;
        if !global.json {
            output::note(&format!("graph {id}: hero graph wait {id}"));
        }
        Ok(())
    }

    /// Prints the job with its queue, the graph, the batch of a job for every machine, or a job for each line.
    fn print_dry_run(&self, global: &Global) -> Result<(), Error> {
        let config = global.config()?;
        if let Some(word) = self.every.word() {
            let every = (word, self.window.window());
            return output::json(&EveryOptions::params(&self.options, every, config)?);
        }
        if let Some(file) = &self.graph {
            let text = graph::read_file(file)?;
            let source = graph::parse(file, &text)?;
            let (places, plan, _) = self.plan_of(&source, file, config)?;
            checked_graph(&Client::open(config)?, &places, plan.clone())?;
            return output::json(&params(plan));
        }
        let Some(file) = self.batch.as_ref().or(self.each.as_ref()) else {
            let job = self.options.job(config)?;
            Client::open(config)?.check(&job).map_err(bad)?;
            let queue = job.spec.queue().map(|queue| queue.to_string());
            return output::json(&json!({ "job": settings(&job), "queue": queue }));
        };
        let each =
            self.each.as_ref().map(|_| JobPerLine::new(&self.options, config)).transpose()?;
        let mut lines = BatchLines::open(file, each.as_ref(), config, None)?;
        many::print_lines(&mut lines, file, &Client::open(config)?)
    }
}

/// Checks the names and the settings of a graph without Redis.
fn checked_graph(
    client: &Client,
    places: &GraphFile<'_>,
    plan: GraphPlan<Job>,
) -> Result<Graph, Error> {
    let graph = Graph::of(plan).map_err(bad)?;
    let checked = client.graphs().check(&graph);
    checked.map_err(|error| graph::explained(places, MethodError::of(error.into(), None)))?;
    Ok(graph)
}

/// Checks a graph and its scripts without Redis.
fn check_graph(
    client: &Client,
    places: &GraphFile<'_>,
    plan: GraphPlan<Job>,
    global: &Global,
) -> Result<(), Error> {
    let (config, graph) = (global.config()?, checked_graph(client, places, plan)?);
    let mut problems = Vec::new();
    for (name, job) in graph.jobs_and_callbacks() {
        // A published script was checked when it was published.
        let own = job.spec.script_type.as_ref().filter(|_| job.spec.uses.is_none());
        let Some(script_type) = own else { continue };
        let JobSpec { script, extension, .. } = &job.spec;
        let checked = script_doc::refuse_faulty(config, script_type, name, script, extension);
        // Not every type has a check.
        problems.extend(checked.err().filter(|error| error.exit == Exit::Data));
    }
    if problems.is_empty() {
        let jobs = graph.len();
        // Without Redis.
        let unchecked = "jobs and published scripts outside of the file are not checked";
        let jobs_text = counted(jobs as u64, "job", "jobs");
        let readable = || format!("{jobs_text}: no mistake found; {unchecked}\n");
        return global.print(|| json!({ "jobs": jobs }), readable);
    }
    let lines: Vec<String> = problems.into_iter().map(|error| error.message).collect();
    Err(bad(lines.join("\n")))
}

#[cfg(test)]
mod tests {
    mod entrances;

    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        submit: Submit,
    }

    #[test]
    fn a_file_of_jobs_takes_no_options_of_one_job() {
        let read = |args: &[&str]| Line::try_parse_from([&["submit"], args].concat());
        for good in [
            &["--graph", "g.toml"][..],
            &["--batch", "-"],
            &["--batch", "b", "--all-or-none", "--name", "nightly"],
            &["--batch", "b", "--on-end", "e.py", "--on-success", "s.py", "--on-failure", "f.py"],
            &["--graph", "g.toml", "--name", "nightly", "--id", "g1"],
            &["--graph", "g.toml", "--check"],
            &["--graph", "g.toml", "--ids"],
            &["--graph", "g.toml", "--at-a-time", "4", "--stop-after", "5%"],
            &["--batch", "b", "--at-a-time", "4", "--stop-after", "2"],
            &["--batch", "b", "--ids"],
            &["--each", "-", "--all-or-none", "--ids", "--timeout", "1m", "--", "gzip", "-k"],
            &["--each", "lines", "--on-end", "e.py", "resize.sh", "--", "{}"],
            &["-e", "1", "--circle", "main", "--timeout", "1m"],
            &["-e", "1", "-t", "osis"],
            &["--timeout", "1m", "--", "rsync", "-a"],
        ] {
            assert!(read(good).is_ok(), "{good:?}");
        }
        for wrong in [
            &["--graph", "g.toml", "-e", "1"][..],
            &["--graph", "g.toml", "--batch", "b"],
            &["--graph", "g.toml", "-t", "osis"],
            &["--batch", "b", "--env", "A=b"],
            &["--batch", "b", "--check"],
            &["--batch", "b", "--limit-key", "k"],
            &["--graph", "g.toml", "--limit-key", "k"],
            &["--graph", "g.toml", "--delay", "1s"],
            &["--graph", "g.toml", "--", "ls"],
            &["--graph", "g.toml", "--on-end", "e.py"],
            &["-e", "1", "-t", "osis", "--on-end", "e.py"],
            &["--graph", "g.toml", "--all-or-none"],
            &["-e", "1", "--all-or-none"],
            &["-e", "1", "--ids"],
            &["-e", "1", "--circle", "main", "--env", "A=b"],
            &["--circle", "main", "--batch", "b"],
            &["-e", "1", "--circle", "main", "--dry-run"],
            &["-e", "1", "-t", "osis", "--at-a-time", "1"],
            &["--batch", "b", "--stop-after", "0%"],
            &[],
        ] {
            assert!(read(wrong).is_err(), "{wrong:?}");
        }
    }
}
