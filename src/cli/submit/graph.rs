//! `hero submit --graph`: a file of jobs that wait for each other, by names of its own.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Display;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use super::input;
use crate::cli::script::ScriptSource;
use crate::client::{ClientError, Graph};
use crate::config::{Config, KeyPath, explain, parse_duration, place};
use crate::error::{Error, Exit};
use crate::proto::job::{Job, JobId};

/// The largest file that is read.
const FILE_SIZE_MAX: u64 = 32 << 20;

/// What the file says of one job, or of all.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
struct Entry {
    script: Option<Spanned<String>>,
    file: Option<Spanned<PathBuf>>,
    after: Vec<Spanned<String>>,
    after_any: Vec<Spanned<String>>,
    id: Option<Spanned<String>>,
    unique_key: Option<Spanned<String>>,
    #[serde(rename = "type")]
    script_type: Option<Spanned<String>>,
    group: Option<Spanned<String>>,
    instance: Option<Spanned<u16>>,
    priority: Option<Spanned<u8>>,
    timeout: Option<Spanned<String>>,
    retries: Option<u32>,
    retention: Option<Spanned<String>>,
    at: Option<Spanned<String>>,
    delay: Option<Spanned<String>>,
    env: BTreeMap<String, String>,
    caller: Option<String>,
    context: Option<String>,
    concurrent: Option<bool>,
    log_path: Option<String>,
}

/// A file that has been read, and where in it the names stand.
pub(super) struct GraphFile<'t> {
    path: &'t Path,
    text: &'t str,
    jobs: HashMap<String, Range<usize>>,
    prerequisites: HashMap<(String, String), Range<usize>>,
}

/// The text of a graph's file, within its bound.
pub(super) fn read_file(path: &Path) -> Result<String, Error> {
    input::read_bounded(path, FILE_SIZE_MAX)
}

impl<'t> GraphFile<'t> {
    /// Makes jobs of what the file says.
    ///
    /// # Errors
    /// [`Exit::Data`] with file, line and column.
    pub(super) fn parse(
        path: &'t Path,
        text: &'t str,
        config: &Config,
    ) -> Result<(Self, Graph), Error> {
        let mut file = Self { path, text, jobs: HashMap::new(), prerequisites: HashMap::new() };
        let tree = DeTable::parse(text)
            .map_err(|error| file.wrong(error.span(), explain(error.message(), None)))?;
        let mut jobs: Vec<(String, Range<usize>, &Spanned<DeValue<'_>>)> = Vec::new();
        let mut defaults = Entry::default();
        for (key, value) in tree.get_ref() {
            match (key.get_ref().as_ref(), value.get_ref()) {
                ("job", DeValue::Table(table)) => {
                    let entries = table.iter();
                    jobs.extend(
                        entries
                            .map(|(name, entry)| (name.get_ref().to_string(), name.span(), entry)),
                    );
                }
                ("defaults", _) => defaults = file.defaults(value)?,
                (other, _) => {
                    let known = "a graph has the tables [job.NAME], one for each job, and \
                                 [defaults]";
                    let message = format!("`{}` is none of its keys: {known}", shown(other));
                    return Err(file.wrong(Some(key.span()), message));
                }
            }
        }
        if jobs.is_empty() {
            return Err(file.wrong(None, "holds no job: each is a table such as [job.fetch]"));
        }
        // In the order of the file, in which those that wait for nothing are dispatched.
        jobs.sort_by_key(|(_, span, _)| span.start);
        let mut graph = Graph::new();
        for (name, span, value) in jobs {
            let entry: Entry = file.entry(&["job", &name], value)?;
            file.jobs.insert(name.clone(), span.clone());
            let job = file.job(&name, &span, &entry, &defaults, config)?;
            let node = graph.add(&name, job);
            for prerequisite in &entry.after {
                node.after(prerequisite.get_ref());
            }
            for prerequisite in &entry.after_any {
                node.after_any(prerequisite.get_ref());
            }
            for prerequisite in entry.after.into_iter().chain(entry.after_any) {
                let span = prerequisite.span();
                file.prerequisites.entry((name.clone(), prerequisite.into_inner())).or_insert(span);
            }
        }
        Ok((file, graph))
    }

    /// A refusal, with the place in the file that it is about.
    pub(super) fn explained(&self, error: ClientError) -> Error {
        let span = match &error {
            ClientError::UnknownInGraph { job, prerequisite, .. } => {
                self.prerequisites.get(&(job.clone(), prerequisite.clone()))
            }
            ClientError::Cycle(names) => names.first().and_then(|name| self.jobs.get(name)),
            ClientError::Refused { name, .. } => self.jobs.get(name),
            _ => return error.into(),
        };
        Error::new(error.exit(), self.wrong(span.cloned(), &error).message)
    }

    fn wrong(&self, span: Option<Range<usize>>, message: impl Display) -> Error {
        let place = place(self.path, self.text, span.map(|span| span.start));
        Error::new(Exit::Data, format!("{place}: {message}"))
    }

    fn entry(&self, table: &[&str], value: &Spanned<DeValue<'_>>) -> Result<Entry, Error> {
        Entry::deserialize(ValueDeserializer::from(value.clone())).map_err(|error| {
            // An unknown key is named by the message alone.
            let key = error.message().strip_prefix("unknown field `");
            let key = key.and_then(|rest| rest.split('`').next());
            let path: Vec<&str> = table.iter().copied().chain(key).collect();
            let message = explain(error.message(), Some(&KeyPath::of(&path)));
            self.wrong(error.span().or(Some(value.span())), message)
        })
    }

    fn defaults(&self, value: &Spanned<DeValue<'_>>) -> Result<Entry, Error> {
        let entry = self.entry(&["defaults"], value)?;
        let own = [
            ("script", entry.script.as_ref().map(Spanned::span)),
            ("file", entry.file.as_ref().map(Spanned::span)),
            ("id", entry.id.as_ref().map(Spanned::span)),
            ("unique_key", entry.unique_key.as_ref().map(Spanned::span)),
            ("after", entry.after.first().map(Spanned::span)),
            ("after_any", entry.after_any.first().map(Spanned::span)),
        ];
        match own.into_iter().find_map(|(name, span)| Some((name, span?))) {
            Some((name, span)) => {
                Err(self.wrong(Some(span), format!("defaults.{name}: each job has its own")))
            }
            None => Ok(entry),
        }
    }

    fn job(
        &self,
        name: &str,
        span: &Range<usize>,
        own: &Entry,
        defaults: &Entry,
        config: &Config,
    ) -> Result<Job, Error> {
        let mut job = Job::new(JobId::random(), String::new());
        self.read_script(&mut job, name, span, own, defaults, config)?;
        macro_rules! either {
            ($field:ident) => {
                own.$field.as_ref().or(defaults.$field.as_ref())
            };
        }
        if let Some(id) = self.parsed(own.id.as_ref())? {
            job.id = id;
        }
        job.spec.unique_key = self.parsed(own.unique_key.as_ref())?;
        job.spec.group = self.parsed(either!(group))?;
        job.spec.instance = self.parsed_number(either!(instance))?;
        job.spec.priority = self.parsed_number(either!(priority))?.unwrap_or_default();
        job.spec.timeout = self.duration(either!(timeout))?;
        job.spec.retention = self.duration(either!(retention))?;
        job.spec.retries = own.retries.or(defaults.retries);
        job.spec.run_at = self.run_at(either!(at), either!(delay))?;
        job.spec.env_vars.extend(defaults.env.clone());
        job.spec.env_vars.extend(own.env.clone());
        job.spec.caller_id = either!(caller).cloned().unwrap_or_default();
        job.spec.context_id = either!(context).cloned().unwrap_or_default();
        job.spec.concurrent = own.concurrent.or(defaults.concurrent).unwrap_or(true);
        job.spec.log_path = either!(log_path).cloned();
        Ok(job)
    }

    fn read_script(
        &self,
        job: &mut Job,
        name: &str,
        span: &Range<usize>,
        own: &Entry,
        defaults: &Entry,
        config: &Config,
    ) -> Result<(), Error> {
        let folder = self.path.parent().unwrap_or(Path::new(""));
        let (source, at) = match (&own.script, &own.file) {
            (Some(script), None) => {
                (ScriptSource::of(None, Some(script.get_ref().clone())), script.span())
            }
            (None, Some(file)) => {
                (ScriptSource::of(Some(folder.join(file.get_ref())), None), file.span())
            }
            _ => {
                let message = "has either a script, or the file that it is in";
                return Err(
                    self.wrong(Some(span.clone()), format!("job `{}` {message}", shown(name)))
                );
            }
        };
        let named = own.script_type.as_ref().or(defaults.script_type.as_ref());
        let at_type = named.map_or(at.clone(), Spanned::span);
        let script_type = source.script_type(named.map(|n| n.get_ref().as_str()), config);
        job.spec.script_type = Some(script_type.map_err(|error| {
            self.wrong(Some(at_type), error.message.replace("--type", "`type`"))
        })?);
        job.spec.script = source
            .read(config.job.script_size_max)
            .map_err(|error| Error::new(error.exit, self.wrong(Some(at), error.message).message))?;
        Ok(())
    }

    fn parsed<T>(&self, value: Option<&Spanned<String>>) -> Result<Option<T>, Error>
    where
        T: std::str::FromStr<Err: Display>,
    {
        let parse = |value: &Spanned<String>| {
            value.get_ref().parse().map_err(|error| self.wrong(Some(value.span()), error))
        };
        value.map(parse).transpose()
    }

    fn parsed_number<T, N>(&self, value: Option<&Spanned<N>>) -> Result<Option<T>, Error>
    where
        T: std::str::FromStr<Err: Display>,
        N: Display,
    {
        let parse = |value: &Spanned<N>| {
            let text = value.get_ref().to_string();
            text.parse().map_err(|error| self.wrong(Some(value.span()), error))
        };
        value.map(parse).transpose()
    }

    fn duration(&self, value: Option<&Spanned<String>>) -> Result<Option<Duration>, Error> {
        let parse = |value: &Spanned<String>| {
            parse_duration(value.get_ref()).map_err(|error| self.wrong(Some(value.span()), error))
        };
        value.map(parse).transpose()
    }

    fn run_at(
        &self,
        at: Option<&Spanned<String>>,
        delay: Option<&Spanned<String>>,
    ) -> Result<Option<Timestamp>, Error> {
        match (at, delay) {
            (None, None) => Ok(None),
            (Some(at), None) => at.get_ref().parse().map(Some).map_err(|_| {
                let message = "expected a time in RFC 3339 with Z or an offset, such as \
                               \"2026-12-24T18:00:00+01:00\"";
                self.wrong(Some(at.span()), message)
            }),
            (None, Some(text)) => {
                let delay = self.duration(Some(text))?.unwrap_or_default();
                Timestamp::now().checked_add(delay).map(Some).map_err(|_| {
                    self.wrong(Some(text.span()), "that is later than any time there is")
                })
            }
            (Some(at), Some(_)) => {
                Err(self.wrong(Some(at.span()), "a job has either a time or a delay"))
            }
        }
    }
}

/// A name of the file, short and safe enough for a message.
fn shown(name: &str) -> String {
    name.chars().take(64).flat_map(char::escape_debug).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Graph, Error> {
        let parsed = GraphFile::parse(Path::new("g.toml"), text, &Config::default());
        parsed.map(|(_, graph)| graph)
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line_and_column() {
        for (text, message) in [
            ("", "g.toml: holds no job: each is a table such as [job.fetch]"),
            ("[job.a]\nscript = 1", "g.toml:2:10: job.a: expected a string"),
            ("[jobs.a]", "g.toml:1:2: `jobs` is none of its keys: a graph has the tables"),
            ("job = 1", "g.toml:1:1: `job` is none of its keys"),
            (
                "[job.a]\nscrip = \"1\"",
                "g.toml:2:1: unknown key `scrip` in [job.a]; did you mean `script`?",
            ),
            ("[job.a]\ntype = \"osis\"", "g.toml:1:6: job `a` has either a script, or the file"),
            ("[job.a]\nscript = \"1\"", "g.toml:2:10: cannot find the script type: "),
            ("[job.a]\nscript = \"1\"\ntype = \"ruby\"", "g.toml:3:8: the script type `ruby` is"),
            ("[job.a]\nfile = \"/no/such.py\"", "g.toml:2:8: no such file: /no/such.py"),
            (
                "[defaults]\ntype = \"osis\"\nafter = [\"a\"]\n[job.a]\nscript = \"1\"",
                "g.toml:3:10: defaults.after: each job has its own",
            ),
            ("[job.a]\nscript = \"1\"\ntype = \"osis\"\ntimeout = \"soon\"", "g.toml:4:11: "),
            ("[job.a]\nscript = \"1\"\ntype = \"osis\"\ninstance = 0", "g.toml:4:12: "),
            ("[job.a\n", "g.toml:1:7: "),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.message.starts_with(message), "{text:?}: {}", error.message);
            assert!(matches!(error.exit, Exit::Data | Exit::NotFound), "{text:?}");
        }
    }

    #[test]
    fn jobs_come_in_the_order_of_the_file_with_their_defaults() {
        let text = "[defaults]\ntype = \"osis\"\nenv = { A = \"1\", B = \"1\" }\nretries = 2\n\
                    [job.z]\nscript = \"1\"\n[job.\"a b\"]\nscript = \"2\"\nenv = { B = \"2\" }\n\
                    retries = 0\nafter = [\"z\"]\n";
        let (file, graph) =
            GraphFile::parse(Path::new("g.toml"), text, &Config::default()).expect("a graph");
        assert_eq!(graph.len(), 2);
        assert_eq!(file.jobs["a b"].start, text.find("\"a b\"").expect("it is there"));
        let unknown = ClientError::UnknownInGraph {
            job: "a b".to_owned(),
            prerequisite: "z".to_owned(),
            nearest: None,
        };
        let told = file.explained(unknown);
        assert!(told.message.starts_with("g.toml:11:10: job `a b` waits for `z`"), "{told}");
    }
}
