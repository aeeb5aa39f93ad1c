//! Scripts to publish: the head of a text, and `*.toml` in `supervisor.scripts_dir`, each with one `[script.NAME]` or
//! more.
//!
//! A head is a comment in the text, from a line `# /// hero` to a line `# ///`, with the keys of `[script.NAME]`. Other
//! languages begin the lines with `//` or `--`.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value};

use super::config_error::{ConfigError, FilePlace};
use super::cron_rules::with_key;
use super::files::{self, TableKind};
use super::job_table::JobTable;
use super::schema::Config;
use super::source::Source;
use crate::proto::job::{Entrance, InvalidJob, JobSpec};
use crate::proto::named_script::{
    Parameter, Parameters, SCRIPTS_MAX, ScriptDefinition, ScriptName, TEXT_BYTES_MAX,
};
use crate::proto::text::shown;

/// The signs that begin a comment to the end of its line.
const COMMENTS: [&str; 3] = ["#", "//", "--"];
/// The first line of a head behind the sign, and the last one.
const HEAD_BEGINS: &str = "/// hero";
const HEAD_ENDS: &str = "///";
/// The number of lines within which a head begins.
const LINES_BEFORE_HEAD: usize = 100;

/// The description and the parameters of a script, beside the settings of its jobs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ScriptHead {
    pub description: String,
    pub params: Option<Parameters>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ScriptFile {
    pub name: ScriptName,
    pub file: PathBuf,
    pub text: String,
    pub definition: ScriptDefinition,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct ScriptFiles {
    pub scripts: Vec<ScriptFile>,
    /// The mistakes of the scripts and files that are left out.
    pub problems: Vec<ConfigError>,
}

/// The keys of `[script.NAME]` that are not settings of its jobs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
struct ScriptKeys {
    file: Option<PathBuf>,
    description: Option<String>,
    params: Option<Map<String, Value>>,
}

/// Reads the head of a text: sets the settings of its jobs in `spec`, and returns the rest. A text without a head says
/// nothing.
///
/// # Errors
/// [`ConfigError::Wrong`] with the line of the text that has the mistake.
pub fn read_script_head(
    file: &Path,
    text: &str,
    spec: &mut JobSpec,
) -> Result<ScriptHead, ConfigError> {
    let Some(head) = head_of(text).map_err(|(line, message)| {
        let place = FilePlace { file: file.to_owned(), position: Some((line, 1)) };
        ConfigError::Wrong { place, message }
    })?
    else {
        return Ok(ScriptHead::default());
    };
    let source = Source::parse(file, &head)?;
    let table = source.whole(Entrance::Script);
    let mut own = ScriptHead::default();
    let keys = read_keys(&table, spec, &mut own)?;
    match keys.file {
        Some(_) => Err(table.wrong("file", "is this file: a head has no such key")),
        None => Ok(own),
    }
}

/// Reads a table, whose keys win over those that are set.
fn read_keys(
    table: &JobTable<'_>,
    spec: &mut JobSpec,
    head: &mut ScriptHead,
) -> Result<ScriptKeys, ConfigError> {
    let mut keys: ScriptKeys = table.read(&["params", "script"], spec)?;
    if let Some(description) = keys.description.take() {
        head.description = description;
    }
    if let Some(params) = keys.params.take() {
        let read = params.into_iter().map(|(name, value)| {
            let parameter: Result<Parameter, _> = serde_json::from_value(value);
            let wrong = |why| table.wrong("params", format!("{}: {why}", shown(&name)));
            Ok((name.clone(), parameter.map_err(wrong)?))
        });
        let declared = Parameters(read.collect::<Result<_, ConfigError>>()?);
        let checked = declared.check_declared();
        checked.map_err(|(name, why)| table.wrong("params", with_key(&name, why)))?;
        head.params = Some(declared);
    }
    Ok(keys)
}

/// Returns the head of a text, with blanks in place of everything else, so that lines and columns stay.
fn head_of(text: &str) -> Result<Option<String>, (usize, String)> {
    // As the engines do, which get the text without it.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let begins = |line: &str| {
        COMMENTS.into_iter().find(|sign| {
            line.trim_end().strip_prefix(sign).is_some_and(|rest| rest.trim_start() == HEAD_BEGINS)
        })
    };
    let mut found = text.lines().take(LINES_BEFORE_HEAD).enumerate();
    let found = found.find_map(|(place, line)| Some((place, begins(line)?)));
    let Some((first, sign)) = found else { return Ok(None) };
    let mut head = "\n".repeat(first + 1);
    for (place, line) in text.lines().enumerate().skip(first + 1) {
        let Some(rest) = line.strip_prefix(sign) else {
            let message =
                format!("the head that begins in line {} has no end: `{sign} ///`", first + 1);
            return Err((place + 1, message));
        };
        if rest.trim() == HEAD_ENDS {
            return Ok(Some(head));
        }
        head.push_str(&" ".repeat(sign.len()));
        head.push_str(rest);
        head.push('\n');
    }
    Err((first + 1, format!("the head has no end: a line `{sign} ///`")))
}

impl Config {
    /// Makes the definition of a text with these settings of its jobs, within the bounds of this configuration.
    pub fn define_script(
        &self,
        text: &str,
        spec: &JobSpec,
        head: ScriptHead,
    ) -> Result<ScriptDefinition, InvalidJob> {
        let Some(name) = &spec.script_type else {
            return Err(InvalidJob::new("script_type", "is missing: type = \"python\""));
        };
        if !self.types.contains_key(name) {
            let why = format!("`{name}` is not a configured script type");
            return Err(InvalidJob::new("script_type", why));
        }
        if text.len() as u64 > TEXT_BYTES_MAX {
            let why = format!("is longer than {TEXT_BYTES_MAX} bytes");
            return Err(InvalidJob::new("script", why));
        }
        let own = JobSpec { script: text.to_owned(), ..spec.clone() };
        own.check(&self.job.bounds())?;
        self.check_asked(&own)?;
        ScriptDefinition::new(text, &own, head.description, head.params)
    }

    /// Reads the scripts of the folder. A missing folder has none.
    pub fn script_files(&self) -> ScriptFiles {
        let kind = TableKind { word: "script", most: SCRIPTS_MAX, many: "scripts" };
        let read = |file: &Path, text: &str| self.script_file(file, text);
        let of = |script: &ScriptFile| (script.name.clone(), script.file.clone());
        let (scripts, problems) = files::read_folder(&self.supervisor.scripts_dir, kind, read, of);
        ScriptFiles { scripts, problems }
    }

    fn script_file(
        &self,
        file: &Path,
        text: &str,
    ) -> Result<Vec<Result<ScriptFile, ConfigError>>, ConfigError> {
        let source = Source::parse(file, text)?;
        source.has_only(&["script"])?;
        let tables = source.job_tables("script", Entrance::Script)?;
        Ok(tables.iter().map(|table| self.script_table(file, table)).collect())
    }

    fn script_table(&self, file: &Path, table: &JobTable<'_>) -> Result<ScriptFile, ConfigError> {
        let name: ScriptName = table.name.parse().map_err(|error| table.wrong_table(error))?;
        // The table says where the text is, whose head is read first: the table wins.
        let keys: ScriptKeys = {
            let (mut spec, mut head) = (JobSpec::default(), ScriptHead::default());
            read_keys(table, &mut spec, &mut head)?
        };
        let Some(path) = keys.file else { return Err(table.wrong_table("needs a file")) };
        let path = file.parent().unwrap_or(Path::new("")).join(path);
        let text = table.read_file("file", &path, TEXT_BYTES_MAX.min(self.job.script_size_max))?;
        let mut spec = JobSpec::default();
        let mut head = read_script_head(&path, &text, &mut spec)?;
        read_keys(table, &mut spec, &mut head)?;
        let of_type = spec.script_type.as_ref().and_then(|name| self.types.get(name));
        if let Some(of_type) = of_type.filter(|_| spec.extension.is_empty()) {
            spec.extension = of_type.further_extension(&path);
        }
        let definition =
            self.define_script(&text, &spec, head).map_err(|error| table.wrong_table(error))?;
        Ok(ScriptFile { name, file: file.to_owned(), text, definition })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEPLOY: &str = "#!/usr/bin/env python3\n# /// hero\n# description = \"Deploys\"\n# type = \"python\"\n\
        # timeout = \"5m\"\n# [params.host]\n# required = true\n# [params.count]\n# type = \"integer\"\n\
        # default = 2\n# ///\nprint(1)\n";

    fn head(text: &str) -> Result<(JobSpec, ScriptHead), String> {
        let mut spec = JobSpec::default();
        let head = read_script_head(Path::new("a.py"), text, &mut spec);
        head.map(|head| (spec, head)).map_err(|error| error.to_string())
    }

    #[test]
    fn head_of_a_text_has_settings_and_parameters() {
        let (spec, read) = head(DEPLOY).expect("legal");
        assert_eq!(spec.script_type.as_ref().map(ToString::to_string).as_deref(), Some("python"));
        assert_eq!(spec.timeout.map(|time| time.as_secs()), Some(300));
        assert_eq!(read.description, "Deploys");
        let params = read.params.expect("declared").0;
        let names: Vec<&str> = params.keys().map(String::as_str).collect();
        assert_eq!(names, ["host", "count"], "as they are declared");
        assert!(params["host"].required && params["count"].default == Some(2.into()));
        for sign in ["//", "--"] {
            let text = DEPLOY.replace("\n# ", &format!("\n{sign} "));
            assert_eq!(head(&text).expect("legal"), (spec.clone(), head(DEPLOY).expect("legal").1));
        }
        let marked = format!("\u{feff}{DEPLOY}");
        assert_eq!(head(&marked).expect("legal"), (spec, head(DEPLOY).expect("legal").1));
        assert_eq!(head("print(1)").expect("none").1, ScriptHead::default());
        // PEP 723 has a head of its own.
        assert_eq!(head("# /// script\n# x\n# ///\n").expect("none").1, ScriptHead::default());
    }

    #[test]
    fn mistakes_of_a_head_have_the_line_of_the_text() {
        for (text, said) in [
            ("# /// hero\n# timeout = 5\n# ///\n", "a.py:2:13: timeout: expected a duration"),
            ("# /// hero\n# timout = \"5m\"\n# ///\n", "did you mean `timeout`?"),
            ("# /// hero\n# a = \n# ///\n", "a.py:2:"),
            (
                "# /// hero\n# type = \"python\"\nprint(1)\n",
                "a.py:3:1: the head that begins in line 1 has no end",
            ),
            ("# /// hero\n", "has no end"),
            ("# /// hero\n# caller = \"me\"\n# ///\n", "each job of the script has its own"),
            (
                "# /// hero\n# at = \"2100-01-01T00:00:00Z\"\n# ///\n",
                "each job of the script has its own",
            ),
            ("# /// hero\n# uses = \"other\"\n# ///\n", "a script names no other"),
            ("# /// hero\n# file = \"/etc/passwd\"\n# ///\n", "a head has no such key"),
            ("# /// hero\n# script = \"1\"\n# ///\n", "script"),
            (
                "# /// hero\n# [params.a]\n# min = 1\n# ///\n",
                "a.py:2:4: params: a: unknown field `min`",
            ),
            (
                "# /// hero\n# [params.a]\n# pattern = \"(\"\n# ///\n",
                "params: a: pattern is not a regular",
            ),
            ("# /// hero\n# [params.a]\n# default = 2026-01-01\n# ///\n", "params: a: default: "),
            ("# /// hero\n# params = 1\n# ///\n", "params"),
        ] {
            let error = head(text).expect_err(said);
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn script_of_the_folder_has_the_head_of_its_file_and_its_table_wins() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| {
            std::fs::write(folder.path().join(name), text).expect("written");
        };
        write("deploy.py", DEPLOY);
        write(
            "a.toml",
            "[script.deploy]\nfile = \"deploy.py\"\ntimeout = \"10s\"\n[script.bad]\nfile = \"none.py\"\n",
        );
        write(
            "b.toml",
            "[script.deploy]\nfile = \"deploy.py\"\n[script.Bad]\nfile = \"deploy.py\"\n",
        );
        let mut config = Config::default();
        config.supervisor.scripts_dir = folder.path().to_owned();
        let read = config.script_files();
        let [script] = read.scripts.as_slice() else { panic!("{read:?}") };
        assert_eq!(script.definition.settings["timeout"], "10");
        assert_eq!(script.definition.description, "Deploys");
        let problems: Vec<String> = read.problems.iter().map(ToString::to_string).collect();
        assert!(problems[0].contains("none.py: no such file"), "{problems:?}");
        assert!(problems[1].contains("script.deploy is in "), "{problems:?}");
        assert!(problems[2].contains("name of a script `Bad` is not legal"), "{problems:?}");
    }

    #[test]
    fn definition_is_checked_against_the_configuration() {
        let config = Config::default();
        for (field, text, said) in [
            ("script_type", "ruby", "`ruby` is not a configured"),
            ("timeout", "999999", "is more than"),
        ] {
            let mut spec = head(DEPLOY).expect("legal").0;
            crate::proto::job::Setting::of_field(field)
                .expect(field)
                .set(&mut spec, text)
                .expect(text);
            let error = config.define_script("1", &spec, ScriptHead::default()).expect_err(said);
            assert!(error.to_string().contains(said), "{error}");
        }
        let error = config.define_script("1", &JobSpec::default(), ScriptHead::default());
        assert!(error.expect_err("no type").to_string().contains("script_type is missing"));
    }
}
