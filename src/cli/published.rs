//! `hero script publish`, `list`, `show`, `history`, `diff`, `rollback` and `delete`: the published scripts.

use std::fmt::Write;

use clap::Args;
use jiff::Timestamp;
use serde_json::json;

use super::answer::NoResults;
use super::author::user;
use super::input::{bad, parsed};
use super::job_options::{SettingOptions, hidden_at};
use super::script::ScriptSource;
use super::table::{TextTable, facts, first_line};
use super::time::age_of_text;
use super::{Global, output};
use crate::client::{PublishedDocument, ScriptDocument, ScriptTextDocument};
use crate::config::{Config, read_script_head};
use crate::error::{Error, Exit};
use crate::proto::job::{Entrance, InvalidJob, JobSpec, SETTINGS};
use crate::proto::line_diff::shown_diff;
use crate::proto::named_script::{
    ParameterKind, Parameters, PublishedScript, ScriptDefinition, ScriptName, ScriptUse,
    TEXT_BYTES_MAX,
};
use crate::proto::text::{escape, escape_lines};

/// Publish a version of a script: jobs name it by --uses, or run it by hero run-script
#[derive(Debug, Args)]
#[command(override_usage = "hero script publish [OPTIONS] <NAME> <FILE|--eval <CODE>>")]
#[command(mut_args(|option| hidden_at(Entrance::Script, option)))]
#[command(after_help = "Examples:\n  hero script publish deploy deploy.py\n  \
                        hero script publish deploy -t python --timeout 5m deploy.py\n\n\
                        The head of FILE, a comment, may have its description, settings and parameters as TOML:\n  \
                        # /// hero\n  # description = \"Deploys a version\"\n  # timeout = \"5m\"\n  # [params.host]\n  \
                        # required = true\n  # pattern = \"^[a-z0-9.-]+$\"\n  # [params.count]\n  # type = \"integer\"\n  \
                        # minimum = 1\n  # default = 2\n  # ///\n\
                        A parameter has type (string, integer, number, boolean, array or object), description, required, \
                        default, enum, minimum, maximum, minLength, maxLength and pattern. Everybody who may see the \
                        script sees them: no default is a secret.\n\
                        The same version again publishes nothing. The latest 20 versions are kept.")]
pub(super) struct PublishScript {
    /// The name: 1 to 48 of a-z, 0-9, _ and -, the first a letter
    #[arg(id = "script_name", value_name = "NAME")]
    name: String,
    #[command(flatten)]
    source: ScriptSource,
    #[command(flatten)]
    settings: SettingOptions,
}

/// Show a published script: its parameters, its settings and its text
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hero script show deploy\n  hero script show deploy@3\n  \
                        hero script show --text deploy@3 > deploy.py")]
pub(super) struct ShowScript {
    /// The script, NAME or NAME@VERSION
    script: String,
    /// Print the text alone
    #[arg(long)]
    text: bool,
}

/// List the versions of a published script that are kept: who published each, and when
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hero script history deploy")]
pub(super) struct ScriptHistory {
    /// The name of the script
    name: String,
}

/// Show the lines in which two versions of a published script differ, their settings too
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hero script diff deploy\n  hero script diff deploy 2\n  hero script diff deploy 2 3"
)]
pub(super) struct ScriptDiff {
    /// The name of the script
    name: String,
    /// The older version; by default the one before the latest
    from: Option<u32>,
    /// The newer version; by default the latest
    to: Option<u32>,
}

/// Publish the text and the settings of an older version of a script as a new version
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hero script rollback deploy 2")]
pub(super) struct ScriptRollback {
    /// The name of the script
    name: String,
    /// The version
    version: u32,
}

impl PublishScript {
    pub(super) async fn run(&self, global: &Global) -> Result<(), Error> {
        let config = global.config()?;
        let name: ScriptName = parsed(&self.name)?;
        let text = self.source.read(TEXT_BYTES_MAX.min(config.job.script_size_max))?;
        let definition = self.definition(&text, config)?;
        let client = global.client()?;
        let done = client.scripts().publish(&name, &text, &definition, &user()).await?;
        said(&done, global)
    }

    fn definition(&self, text: &str, config: &Config) -> Result<ScriptDefinition, Error> {
        let refused = |error: InvalidJob| bad(format!("cannot publish {}: {error}", self.name));
        if text.is_empty() {
            return Err(bad(format!("{}: it is empty", self.source.name())));
        }
        let mut spec = JobSpec::default();
        let place = self.source.name();
        let head = read_script_head(place.as_ref(), text, &mut spec).map_err(bad)?;
        let unfit = SETTINGS.iter().find_map(|setting| {
            let why = setting.absent_at(Entrance::Script)?;
            self.settings.given(setting.word).map(|_| InvalidJob::new(setting.field, why))
        });
        if let Some(error) = unfit {
            return Err(refused(error));
        }
        self.settings.apply(&mut spec, None)?;
        if spec.script_type.is_none() {
            spec.script_type = Some(self.source.script_type(None, config)?);
        }
        if let Some(script_type) = spec.script_type.as_ref().filter(|_| spec.extension.is_empty()) {
            spec.extension = self.source.extension(script_type, config);
        }
        config.define_script(text, &spec, head).map_err(refused)
    }
}

fn said(done: &PublishedDocument, global: &Global) -> Result<(), Error> {
    let PublishedDocument { name, version, created } = done;
    global.print(|| json!(done), || format!("{name}@{version}\n"))?;
    if !created && !global.json {
        output::note(&format!("hero: {name}@{version} is the same: nothing was published"));
    }
    Ok(())
}

pub(super) async fn list_scripts(global: &Global) -> Result<(), Error> {
    let client = global.client()?;
    let all = client.scripts().list().await?;
    let now = client.system().now().await?;
    let all: Vec<ScriptDocument> =
        all.iter().map(|(name, of)| ScriptDocument::of(name, of)).collect();
    let none = NoResults::new("published script");
    global.list(|| json!({ "scripts": all }), || table(&all, now, true), none)
}

fn table(
    scripts: &[ScriptDocument],
    now: Timestamp,
    is_list: bool,
) -> TextTable<'_, ScriptDocument> {
    let about = |of: &ScriptDocument| match of.rolled_back_to {
        Some(version) if !is_list => format!("rolled back to {version}"),
        _ => first_line(&of.description),
    };
    TextTable::of(scripts)
        .column("!NAME", &|of| of.name.clone())
        .column(">VERSION", &|of| of.version.to_string())
        .column("TYPE", &|of| of.script_type.clone())
        .column("PUBLISHED", &|of| age_of_text(&of.published_at, now))
        .column("BY", &|of| of.file.clone().unwrap_or_else(|| of.published_by.clone()))
        .column("DIGEST", &|of| of.digest.chars().take(12).collect())
        .column("?~DESCRIPTION", &about)
}

impl ShowScript {
    pub(super) async fn run(&self, global: &Global) -> Result<(), Error> {
        let client = global.client()?;
        let script = client.scripts().get(&parsed(&self.script)?).await?;
        if self.text && !global.json {
            return output::text(&script.text);
        }
        let shown = ScriptTextDocument::of(script.clone());
        global.print(|| json!(shown), || in_full(&script, &shown))
    }
}

impl ScriptHistory {
    pub(super) async fn run(&self, global: &Global) -> Result<(), Error> {
        let client = global.client()?;
        let name: ScriptName = parsed(&self.name)?;
        let versions = client.scripts().history(&name).await?;
        let now = client.system().now().await?;
        let all: Vec<ScriptDocument> =
            versions.iter().map(|of| ScriptDocument::of(&name, of)).collect();
        let table = || table(&all, now, false).show(global.look());
        global.print(|| json!({ "versions": all }), table)
    }
}

impl ScriptDiff {
    pub(super) async fn run(&self, global: &Global) -> Result<(), Error> {
        let client = global.client()?;
        let name: ScriptName = parsed(&self.name)?;
        let used = |version| ScriptUse { name: name.clone(), version };
        let only = || {
            let message = format!("the script {name} has one version: nothing to compare it with");
            Error::new(Exit::NotFound, message)
        };
        let from = match self.from {
            Some(from) => from,
            None => client.scripts().history(&name).await?.get(1).ok_or_else(only)?.version,
        };
        let one = client.scripts().get(&used(Some(from))).await?;
        let other = client.scripts().get(&used(self.to)).await?;
        let settings = shown_diff(&settings(&one), &settings(&other));
        let text = shown_diff(&one.text, &other.text);
        let json = || json!({ "settings": settings, "text": text });
        let lines = || settings.iter().chain(&text).map(|line| escape(line) + "\n").collect();
        global.print(json, lines)
    }
}

impl ScriptRollback {
    pub(super) async fn run(&self, global: &Global) -> Result<(), Error> {
        let client = global.client()?;
        let done = client.scripts().rollback(&parsed(&self.name)?, self.version, &user()).await?;
        said(&done, global)
    }
}

pub(super) async fn delete_scripts(names: &[String], global: &Global) -> Result<(), Error> {
    let client = global.client()?;
    let delete = async |name: &String| Ok(client.scripts().delete(&parsed(name)?).await?);
    global.each_done(names, "deleted", delete).await
}

fn in_full(script: &PublishedScript, of: &ScriptTextDocument) -> String {
    let of = &of.of;
    let from = of.file.clone().unwrap_or_else(|| of.published_by.clone());
    let older = of.rolled_back_to.map(|version| format!("the text of version {version}"));
    let settings = of.settings.iter().map(|(field, value)| {
        (field.as_str(), value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned))
    });
    let own = [
        ("script", format!("{}@{}", of.name, of.version)),
        ("type", of.script_type.clone()),
        ("digest", of.digest.clone()),
        ("published", format!("{} by {from}", of.published_at)),
        ("has", older.unwrap_or_default()),
    ];
    let mut text = facts(10, own.into_iter().chain(settings));
    if !of.description.is_empty() {
        let _ = write!(text, "\n{}\n", escape_lines(&of.description));
    }
    let _ = write!(text, "\n{}\n", parameters(script));
    text.push_str(&escape_lines(&script.text));
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// Returns the parameters of a script, a line each, and how a job gives them.
pub(super) fn parameters(script: &PublishedScript) -> String {
    let reference = script.reference();
    let Some(Parameters(declared)) = &script.of.definition.params else {
        return format!("parameters: {reference} declares none and takes any\n");
    };
    if declared.is_empty() {
        return format!("parameters: {reference} takes none\n");
    }
    let mut text = "parameters:\n".to_owned();
    for (name, of) in declared {
        let is_text = of.kind == ParameterKind::String;
        let option =
            if is_text { format!("--param {name}=TEXT") } else { format!("--param {name}:=JSON") };
        let default = of.default.as_ref().map(|value| format!("; default {value}"));
        let default =
            if of.required { "; required".to_owned() } else { default.unwrap_or_default() };
        let about =
            if of.description.is_empty() { String::new() } else { format!("{}; ", of.description) };
        let _ = writeln!(
            text,
            "  {option:28}  {}",
            escape(&format!("{about}{}{default}", of.expected()))
        );
    }
    text
}

/// Returns what a version says beside its text, a line each.
fn settings(script: &PublishedScript) -> String {
    let of = &script.of.definition;
    let mut text = format!("type = {}\n", of.script_type);
    if !of.description.is_empty() {
        let _ = writeln!(text, "description = {}", escape(&of.description));
    }
    for (field, value) in &of.settings {
        let _ = writeln!(text, "{field} = {}", escape(value));
    }
    for (name, of) in of.params.iter().flat_map(|params| &params.0) {
        let schema = serde_json::to_string(of).unwrap_or_default();
        let _ = writeln!(text, "params.{name} = {schema}");
    }
    text
}
