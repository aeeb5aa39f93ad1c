//! `hero submit` of many jobs by the methods of the API: a batch or a graph in one call.

use std::io::Read;
use std::path::Path;

use serde_json::{Value, json};

use super::each::JobPerLine;
use super::{Submit, batch_line, graph};
use crate::cli::api::{ApiMethods, settings};
use crate::cli::every::EveryOptions;
use crate::cli::input;
use crate::cli::window_options::WindowOptions;
use crate::cli::{Global, output};
use crate::config::{Config, format_size};
use crate::error::{Error, Exit};
use crate::proto::job::JobSpec;
use crate::proto::text::{counted, escape_lines};

impl Submit {
    /// Submits many jobs over the API.
    pub(super) async fn submit_many(&self, api: &ApiMethods, global: &Global) -> Result<(), Error> {
        if self.signing.is_given() {
            let message = "--sign needs the machine itself, and signs no copies for every machine";
            return Err(Error::new(Exit::Usage, message));
        }
        if self.options.is_check() && self.graph.is_some() {
            return global.needs_no_remote();
        }
        let (config, printed) = (global.config()?, (self.ids, global.json));
        if let Some(word) = self.every.word() {
            let window = self.window.window();
            let mut params = EveryOptions::params(&self.options, (word, window), config)?;
            self.add_of_batch(&mut params, config)?;
            let (result, _) = EveryOptions::submit(api, params).await?;
            return print_batch(&result, &format!("--every-{word}"), printed);
        }
        let JobSpec { id, name, notify, .. } = self.options.settings_of_many()?;
        let mut params = json!({ "id": id, "name": name, "notify": notify });
        WindowOptions::add_to(&mut params, self.window.window());
        if let Some(file) = &self.graph {
            graph_params(&mut params, file, config)?;
            let result = api.call("graph.submit", params).await?;
            return self.print_graph(&result, global);
        }
        let each =
            self.each.as_ref().map(|_| JobPerLine::new(&self.options, config)).transpose()?;
        let Some(file) = self.batch.as_deref().or(self.each.as_deref()) else { return Ok(()) };
        let (mut jobs, mut rejected) = (Vec::new(), 0_u64);
        for (number, text) in lines_of(file, config)? {
            let read = match &each {
                Some(each) => each.job(&text).map(|job| (job, true)),
                None => batch_line::read(&text, file, config).map(|(job, of)| (job, of.is_empty())),
            };
            let why = match read {
                Ok((job, true)) => {
                    jobs.push(settings(&job));
                    continue;
                }
                Ok(_) => "files of a line are not submitted over the API".to_owned(),
                Err(error) => error.to_string(),
            };
            output::note(&format!("hero: {}:{number}: {why}", file.display()));
            rejected += 1;
        }
        let number = counted(rejected, "line was", "lines were");
        let of_lines = Error::new(Exit::Data, format!("{}: {number} rejected", file.display()));
        if rejected > 0 && (self.all_or_none || jobs.is_empty()) {
            return Err(of_lines);
        }
        params["jobs"] = json!(jobs);
        self.add_of_batch(&mut params, config)?;
        let result = api.call("batch.submit", params).await?;
        print_batch(&result, &file.display().to_string(), printed)?;
        if rejected > 0 { Err(of_lines) } else { Ok(()) }
    }

    /// Adds the options of a batch to its parameters.
    fn add_of_batch(&self, params: &mut Value, config: &Config) -> Result<(), Error> {
        params["all_or_none"] = json!(self.all_or_none);
        for (callback, job) in self.callbacks.clone().jobs(config)? {
            params[callback.as_str()] = json!(settings(&job));
        }
        Ok(())
    }

    /// Prints a graph that was submitted.
    pub(super) fn print_graph(&self, result: &Value, global: &Global) -> Result<(), Error> {
        let id = escape_lines(result["graph_id"].as_str().unwrap_or_default());
        let text = if global.json {
            format!("{result}\n")
        } else if self.ids {
            let jobs = result["jobs"].as_object().into_iter().flatten();
            jobs.flat_map(|(name, id)| {
                let id = escape_lines(id.as_str().unwrap_or_default());
                [escape_lines(name), "  ".to_owned(), id, "\n".to_owned()]
            })
            .collect()
        } else {
            format!("{id}\n")
        };
        output::accepted(&text)?;
        if !global.json {
            output::note(&format!("graph {id}: hero graph wait {id}"));
        }
        Ok(())
    }
}

/// Returns the lines of a file that are not empty, with their numbers.
fn lines_of(path: &Path, config: &Config) -> Result<Vec<(usize, Vec<u8>)>, Error> {
    let mut text = Vec::new();
    let most = config.api.body_size_max;
    let read = input::open(path)?.take(most + 1).read_to_end(&mut text);
    if read.map_err(|error| input::unreadable(path, &error))? as u64 > most {
        let (path, most) = (path.display(), format_size(most));
        let message =
            format!("{path}: more than {most} are not submitted in one call: several files");
        return Err(Error::new(Exit::Data, message));
    }
    let lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).enumerate();
    let lines = lines.filter(|(_, line)| !line.is_empty());
    Ok(lines.map(|(place, line)| (place + 1, line.to_vec())).collect())
}

/// Adds the jobs and callbacks of a file to the parameters of a graph. What the command line names counts more.
fn graph_params(params: &mut Value, file: &Path, config: &Config) -> Result<(), Error> {
    let text = graph::read_file(file)?;
    let source = graph::parse(file, &text)?;
    let (_, graph) = graph::read(&source, file, config)?;
    if params["id"].is_null() && graph.has_fixed_id() {
        params["id"] = json!(graph.id());
    }
    if params["name"].is_null() {
        params["name"] = json!(graph.name_of_all());
    }
    WindowOptions::add_to(params, graph.window());
    let notify = params["notify"].as_array_mut().into_iter();
    notify.for_each(|all| all.extend(graph.notifications().iter().map(|name| json!(name))));
    let mut jobs = Vec::new();
    for node in graph.nodes() {
        if node.has_files() {
            let message = format!("{}: files of a job are not submitted over the API", node.name());
            return Err(Error::new(Exit::Data, message));
        }
        let [after, after_any] = node.prerequisites();
        let job = settings(node.job());
        jobs.push(
            json!({ "name": node.name(), "job": job, "after": after, "after_any": after_any }),
        );
    }
    params["jobs"] = json!(jobs);
    for (callback, job) in graph.callbacks() {
        params[callback.as_str()] = json!(settings(job));
    }
    Ok(())
}

fn print_batch(result: &Value, from: &str, (ids, json): (bool, bool)) -> Result<(), Error> {
    let refused = result["refused"].as_array().map(Vec::as_slice).unwrap_or_default();
    for of in refused {
        let why = of["error"].as_str().unwrap_or_default();
        output::note(&format!("hero: {from}:{}: {why}", of["line"]));
    }
    let batch = result["id"].as_str().map(escape_lines);
    let text = match (json, ids, &batch) {
        (true, ..) => format!("{result}\n"),
        (_, true, _) => {
            let ids = result["ids"].as_array().into_iter().flatten();
            ids.filter_map(Value::as_str)
                .flat_map(|id| [escape_lines(id), "\n".to_owned()])
                .collect()
        }
        (_, _, Some(id)) => format!("{id}\n"),
        (_, _, None) => String::new(),
    };
    output::accepted(&text)?;
    if let Some(id) = batch.filter(|_| !json) {
        output::note(&format!("batch {id}: hero graph wait {id}"));
    }
    if refused.is_empty() {
        return Ok(());
    }
    let number = counted(refused.len() as u64, "line was", "lines were");
    Err(Error::new(Exit::Data, format!("{from}: {number} rejected")))
}
