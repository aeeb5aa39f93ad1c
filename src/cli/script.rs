//! The script argument of a command: reads it within its size limit and finds its script type.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::Args;

use super::input::{self, bad, parsed};
use super::sections::WHAT;
use crate::config::{Config, TypeConfig, format_size};
use crate::engine::process::runs_with;
use crate::error::{Error, Exit};
use crate::proto::job::{JobName, JobSpec};
use crate::proto::target::ScriptType;
use crate::proto::text::shown;

/// The source of the script: a file, standard input or an argument.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(super) struct ScriptSource {
    /// The script's file; `-` reads standard input
    file: Option<PathBuf>,
    /// The script itself
    #[arg(short, long, value_name = "CODE", allow_hyphen_values = true, help_heading = WHAT)]
    eval: Option<String>,
}

impl ScriptSource {
    /// A script from a file, or a text.
    pub(super) fn of(file: Option<PathBuf>, eval: Option<String>) -> Self {
        Self { file, eval }
    }

    /// The text of the script.
    ///
    /// # Errors
    /// [`Exit::NotFound`] if the file does not exist, [`Exit::Data`] if it is larger than `bytes_max`
    /// or not UTF-8.
    pub(super) fn read(&self, bytes_max: u64) -> Result<String, Error> {
        match (&self.eval, self.path()) {
            (Some(code), _) => Ok(code.clone()),
            (None, Some(path)) => {
                let file = File::open(path).map_err(|error| unreadable(path, &error))?;
                read_text(file, path, bytes_max)
            }
            (None, None) => read_text(io::stdin().lock(), Path::new("standard input"), bytes_max),
        }
    }

    /// Gives a job the text of the script, its type and its extension, unless it has these two.
    ///
    /// # Errors
    /// The errors of [`Self::script_type`] and [`Self::read`].
    pub(super) fn fill(&self, spec: &mut JobSpec, config: &Config) -> Result<(), Error> {
        let named = spec.script_type.as_ref().map(ScriptType::as_str);
        let script_type = self.script_type(named, config)?;
        spec.script = self.read(config.job.script_size_max)?;
        if spec.extension.is_empty() {
            spec.extension = self.extension(&script_type, config);
        }
        spec.script_type = Some(script_type);
        Ok(())
    }

    /// Returns the module beside the file of the script that an error of Python or node says is missing: a job has the text
    /// of its script alone.
    pub(super) fn missing_neighbour(&self, error: &str) -> Option<PathBuf> {
        let mut quoted = ["No module named '", "Cannot find module './"].into_iter();
        let (_, name) = quoted.find_map(|begin| error.split_once(begin))?;
        let (name, _) = name.split_once('\'')?;
        let folder = self.path()?.parent()?;
        let files = ["", ".py", ".js"].map(|extension| folder.join(format!("{name}{extension}")));
        files.into_iter().find(|file| !name.contains("..") && file.exists())
    }

    /// Returns the name of the file for lists of jobs; `None` for another source, or a name that no job may have.
    pub(super) fn job_name(&self) -> Option<JobName> {
        self.path()?.file_name()?.to_str()?.parse().ok()
    }

    /// The named type, or the type of the file's extension, or the one that runs the interpreter in its first line.
    ///
    /// # Errors
    /// [`Exit::Usage`] if neither is given, [`Exit::Data`] if it is illegal or not configured.
    pub(super) fn script_type(
        &self,
        named: Option<&str>,
        config: &Config,
    ) -> Result<ScriptType, Error> {
        let script_type: ScriptType = match named {
            Some(name) => parsed(name)?,
            None => self.type_by_file(config)?,
        };
        check_configured(&script_type, config)?;
        Ok(script_type)
    }

    fn type_by_file(&self, config: &Config) -> Result<ScriptType, Error> {
        let usage = |what: String| {
            let message = format!(
                "cannot find the script type: {what}; use --type with one of {}",
                names(config)
            );
            Error::new(Exit::Usage, message)
        };
        let Some(path) = self.path() else {
            return Err(usage("the script is not a file".to_owned()));
        };
        let extension = path.extension().map(|ext| format!(".{}", ext.to_string_lossy()));
        let by_extension = extension.as_deref().map(|extension| {
            let found = types_of(extension, config);
            // Other systems write `.PY`.
            let lower = || types_of(&extension.to_ascii_lowercase(), config);
            if found.is_empty() { lower() } else { found }
        });
        match (by_extension.as_deref().unwrap_or_default(), &extension) {
            ([one], _) => return Ok(one.clone()),
            (several @ [_, ..], Some(extension)) => {
                let several = joined(several);
                return Err(usage(format!("the extension {extension} belongs to {several}")));
            }
            _ => {}
        }
        let line = first_line(path)?;
        match (types_that_run(&line, config).as_slice(), extension) {
            ([one], _) => Ok(one.clone()),
            ([], _) if line.starts_with("#!") => {
                Err(usage(format!("no script type runs {}", shown(&line))))
            }
            ([], Some(extension)) => {
                Err(usage(format!("no script type has the extension {extension}")))
            }
            ([], None) => {
                let path = path.display();
                Err(usage(format!("{path} has no extension, and no interpreter in its first line")))
            }
            (several, _) => {
                Err(usage(format!("its first line {} fits {}", shown(&line), joined(several))))
            }
        }
    }

    /// The extension of the file, if it is one of the further ones of the type; else empty.
    pub(super) fn extension(&self, script_type: &ScriptType, config: &Config) -> String {
        let of_type = config.types.get(script_type).zip(self.path());
        of_type.map(|(of_type, file)| of_type.further_extension(file)).unwrap_or_default()
    }

    /// The name of the source in messages.
    pub(super) fn name(&self) -> String {
        match (&self.eval, self.path()) {
            (Some(_), _) => "script".to_owned(),
            (None, Some(path)) => path.display().to_string(),
            (None, None) if self.is_absent() => "command".to_owned(),
            (None, None) => "standard input".to_owned(),
        }
    }

    /// Returns true if the script comes from standard input.
    pub(super) fn is_standard_input(&self) -> bool {
        self.file.as_deref() == Some(Path::new("-"))
    }

    /// Returns true if neither a file nor code was given.
    pub(super) fn is_absent(&self) -> bool {
        self.file.is_none() && self.eval.is_none()
    }

    /// The file; `None` for standard input and for code in the arguments.
    fn path(&self) -> Option<&Path> {
        self.file.as_deref().filter(|file| *file != Path::new("-"))
    }
}

/// Returns the first line of a file, as far as an interpreter may stand in it.
fn first_line(path: &Path) -> Result<String, Error> {
    const LENGTH_MAX: u64 = 4096;
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(LENGTH_MAX).read_to_end(&mut bytes));
    read.map_err(|error| unreadable(path, &error))?;
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim_start_matches('\u{feff}');
    Ok(text.lines().next().unwrap_or_default().trim_end().to_owned())
}

/// The types whose command is the interpreter that the first line of a script names. A type that comes with Hero wins
/// over others.
fn types_that_run(line: &str, config: &Config) -> Vec<ScriptType> {
    let found: Vec<ScriptType> = config
        .types
        .iter()
        .filter(|(_, of_type)| runs_with(line, &of_type.command))
        .map(|(name, _)| name.clone())
        .collect();
    let own = |name: &&ScriptType| ["bash", "python", "node"].contains(&name.as_str());
    match found.iter().find(own) {
        Some(own) => vec![own.clone()],
        None => found,
    }
}

fn joined(types: &[ScriptType]) -> String {
    types.iter().map(ScriptType::as_str).collect::<Vec<_>>().join(" and ")
}

/// Rejects a script type that is not configured.
///
/// # Errors
/// [`Exit::Data`], with the configured types.
pub(super) fn check_configured(script_type: &ScriptType, config: &Config) -> Result<(), Error> {
    if config.types.contains_key(script_type) {
        return Ok(());
    }
    Err(bad(format!(
        "the script type `{script_type}` is not configured; configured types: {}",
        names(config)
    )))
}

/// The types with this extension. A well-known type wins over others with the same extension.
fn types_of(extension: &str, config: &Config) -> Vec<ScriptType> {
    let well_known = match extension {
        ".rhai" => Some("osis"),
        ".py" => Some("python"),
        ".v" | ".vsh" => Some("v"),
        _ => None,
    };
    if let Some(known) = well_known.and_then(|name| name.parse().ok()) {
        return vec![known];
    }
    let has = |config: &TypeConfig| {
        let mut further = config.options.more_extensions.iter();
        config.extension == extension || further.any(|other| other == extension)
    };
    let of_extension = config.types.iter().filter(|(_, config)| has(config));
    of_extension.map(|(name, _)| name.clone()).collect()
}

fn read_text(from: impl Read, name: &Path, bytes_max: u64) -> Result<String, Error> {
    let name = name.display();
    let mut bytes = Vec::new();
    let read = from.take(bytes_max + 1).read_to_end(&mut bytes);
    let read = read.map_err(|error| unreadable(Path::new(&name.to_string()), &error))?;
    if read as u64 > bytes_max {
        let limit = format_size(bytes_max);
        return Err(bad(format!(
            "cannot read the script in {name}: it is larger than {limit}, the limit job.script_size_max"
        )));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        bad(format!(
            "cannot read the script in {name}: it is not UTF-8 (byte {at}); convert the file"
        ))
    })
}

fn unreadable(path: &Path, error: &io::Error) -> Error {
    let mut failed = input::unreadable(path, error);
    let text = path.to_string_lossy();
    // Nobody names a file so: it is code.
    let is_code = text.contains(|c: char| c.is_whitespace() || "();='\"".contains(c));
    let is_word = !text.contains(['/', '.']);
    if failed.exit != Exit::NotFound {
        return failed;
    }
    if is_code {
        failed.message += "; to run a text as a script: -e, as in hero exec -t bash -e 'echo hi'";
    } else if is_word {
        failed.message += "; to run a command: hero exec -- ";
        failed.message += &text;
    }
    failed
}

fn names(config: &Config) -> String {
    let names: Vec<&str> = config.types.keys().map(ScriptType::as_str).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> Config {
        let bash = "[type.bash]\nengine = \"command\"\ncommand = [\"/bin/bash\", \"{script}\"]\n";
        Config::from_toml("hero.toml".as_ref(), bash).expect("legal")
    }

    fn of_file(file: &str, named: Option<&str>) -> Result<String, Error> {
        let source = ScriptSource { file: Some(file.into()), eval: None };
        source.script_type(named, &config()).map(|found| found.to_string())
    }

    #[test]
    fn extension_selects_the_script_type() {
        for (file, name) in [
            ("a.rhai", "osis"),
            ("dir/a.py", "python"),
            ("a.v", "v"),
            ("a.b.vsh", "v"),
            ("a.sh", "bash"),
            ("a.mjs", "node"),
            ("a.ts", "node"),
            ("A.SH", "bash"),
            ("A.Py", "python"),
            ("A.VSH", "v"),
        ] {
            assert_eq!(of_file(file, None).expect(file), name);
        }
    }

    #[test]
    fn file_keeps_its_extension_if_its_type_has_it() {
        for (file, script_type, kept) in [
            ("a.mjs", "node", ".mjs"),
            ("dir.x/a.vsh", "v", ".vsh"),
            ("A.MJS", "node", ".mjs"),
            ("a.js", "node", ""),
            ("a.mjs", "python", ""),
            ("-", "node", ""),
            ("a", "ruby", ""),
        ] {
            let source = ScriptSource::of(Some(file.into()), None);
            let script_type = script_type.parse().expect("legal");
            assert_eq!(source.extension(&script_type, &config()), kept, "{file}");
        }
    }

    #[test]
    fn named_type_wins_over_the_extension() {
        assert_eq!(of_file("a.rhai", Some("sal")).expect("configured"), "sal");
    }

    #[test]
    fn script_without_a_known_type_is_wrong_usage() {
        let folder = tempfile::tempdir().expect("a folder");
        let [plain, other] = ["script", "a.txt"].map(|name| {
            let file = folder.path().join(name);
            std::fs::write(&file, "1").expect("written");
            file.display().to_string()
        });
        for file in [&plain, &other, "-"] {
            let error = of_file(file, None).expect_err(file);
            assert_eq!(error.exit, Exit::Usage, "{file}");
            assert!(error.message.contains("--type"), "{}", error.message);
        }
        for file in ["script", "a.txt"] {
            assert_eq!(of_file(file, None).expect_err(file).exit, Exit::NotFound, "{file}");
        }
    }

    #[test]
    fn file_without_a_known_extension_takes_the_type_of_its_interpreter() {
        let folder = tempfile::tempdir().expect("a folder");
        let of_text = |name: &str, text: &str| {
            let file = folder.path().join(name);
            std::fs::write(&file, text).expect("written");
            of_file(&file.display().to_string(), None)
        };
        for (name, line, script_type) in [
            ("backup", "#!/bin/bash -e", "bash"),
            ("backup.daily", "#!/bin/sh", "bash"),
            ("report", "#!/usr/bin/env python3\n", "python"),
            ("a", "#!/usr/bin/env -S node --no-warnings\r\n", "node"),
            ("a.py", "#!/bin/bash", "python"),
        ] {
            assert_eq!(of_text(name, line).expect(line), script_type, "{name} {line}");
        }
        for (line, why) in [
            ("#!/usr/bin/ruby\n", "no script type runs #!/usr/bin/ruby"),
            ("echo", "no interpreter in its first line"),
        ] {
            let error = of_text("other", line).expect_err(line);
            assert!(error.exit == Exit::Usage && error.message.contains(why), "{error}");
        }
        let error = of_file("rsync", None).expect_err("no such file");
        assert!(error.message.ends_with("to run a command: hero exec -- rsync"), "{error}");
    }

    #[test]
    fn extension_of_two_types_is_ambiguous() {
        let mut config = config();
        let bash = config.types[&"bash".parse().expect("legal")].clone();
        config.types.insert("sh".parse().expect("legal"), bash);
        let source = ScriptSource { file: Some("a.sh".into()), eval: None };
        let error = source.script_type(None, &config).expect_err("two");
        assert!(error.message.contains("bash and sh"), "{}", error.message);
    }

    #[test]
    fn unconfigured_type_is_rejected_with_the_configured_ones() {
        let error = of_file("a.rb", Some("ruby")).expect_err("not configured");
        assert_eq!(error.exit, Exit::Data);
        assert!(
            error.message.ends_with("bash, heroscript, node, osis, python, sal, v"),
            "{}",
            error.message
        );
        assert_eq!(of_file("a", Some("a:b")).expect_err("illegal").exit, Exit::Data);
    }

    #[test]
    fn script_must_be_utf8_within_its_size_limit() {
        let read = |bytes: &[u8]| read_text(bytes, Path::new("x"), 4);
        assert_eq!(read(b"1234").expect("fits"), "1234");
        let large = read(b"12345").expect_err("too large");
        assert!(large.exit == Exit::Data && large.message.contains("4B"), "{large}");
        let binary = read(b"12\xff").expect_err("no text");
        assert!(binary.message.contains("byte 2"), "{binary}");
    }

    #[test]
    fn missing_file_is_not_found() {
        let source = ScriptSource { file: Some("/no/such/file.py".into()), eval: None };
        assert_eq!(source.read(10).expect_err("missing").exit, Exit::NotFound);
    }
}
