//! The script argument of a command: reads it within its size limit and finds its script type; or a command after `--`, as in
//! `hero exec -- ls -la`, whose job is a script of one line for the shell.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::Args;

use super::help::WHAT;
use super::input::{self, bad, parsed, quoted};
use crate::config::{Config, check_configured, format_size, runs_with, type_of_script};
use crate::error::{Error, Exit};
use crate::proto::job::{JobName, JobSpec};
use crate::proto::target::ScriptType;

/// The type of a command after `--`, unless another is named.
const SHELL_TYPE: &str = "bash";

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
    pub(super) fn of(file: Option<PathBuf>, eval: Option<String>) -> Self {
        Self { file, eval }
    }

    /// Returns the text of the script. Fails with [`Exit::NotFound`] if the file does not exist, with [`Exit::Data`] if it is
    /// larger than `bytes_max` or not UTF-8.
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

    /// Returns the named type, or the type of the file's extension, or the one that runs the interpreter in its first line.
    /// Fails with [`Exit::Usage`] if neither is given, with [`Exit::Data`] if it is illegal or not configured.
    pub(super) fn script_type(
        &self,
        named: Option<&str>,
        config: &Config,
    ) -> Result<ScriptType, Error> {
        let found = type_of_script(named, self.path(), &config.types);
        found.map_err(|error| match self.path() {
            Some(path) => with_hint(error, path),
            None => error,
        })
    }

    /// The extension of the file, if it is one of the further ones of the type; else empty.
    pub(super) fn extension(&self, script_type: &ScriptType, config: &Config) -> String {
        let of_type = config.types.get(script_type).zip(self.path());
        of_type.map(|(of_type, file)| of_type.further_extension(file)).unwrap_or_default()
    }

    pub(super) fn name(&self) -> String {
        match (&self.eval, self.path()) {
            (Some(_), _) => "script".to_owned(),
            (None, Some(path)) => path.display().to_string(),
            (None, None) if self.is_absent() => "command".to_owned(),
            (None, None) => "standard input".to_owned(),
        }
    }

    pub(super) fn is_standard_input(&self) -> bool {
        self.file.as_deref() == Some(Path::new("-"))
    }

    pub(super) fn is_absent(&self) -> bool {
        self.file.is_none() && self.eval.is_none()
    }

    /// The file; `None` for standard input and for code in the arguments.
    fn path(&self) -> Option<&Path> {
        self.file.as_deref().filter(|file| *file != Path::new("-"))
    }
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
    with_hint(input::unreadable(path, error), path)
}

/// Adds to the error of a missing file what its name may be instead.
fn with_hint(mut failed: Error, path: &Path) -> Error {
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

/// Makes the arguments of a job its script: a command whose words reach it as they were given. Fails with
/// [`Exit::Usage`] if there is none, if it is a quoted line of shell, or if the named type is not run by a shell.
pub(super) fn fill_command(spec: &mut JobSpec, config: &Config) -> Result<(), Error> {
    let usage = |message: String| Error::new(Exit::Usage, message);
    let words = std::mem::take(&mut spec.args);
    let Some(program) = words.first().filter(|word| !word.is_empty()) else {
        let message = "nothing to run: name a file, -e CODE, --uses NAME, or a command after --";
        return Err(usage(message.to_owned()));
    };
    if words.len() == 1 && program.contains(char::is_whitespace) {
        return Err(usage(format!(
            "the command after -- is one quoted word, {0}: for a line of shell, use -e {0}; for a command, leave the \
             quotes away",
            quoted(program)
        )));
    }
    let script_type =
        spec.script_type.take().map_or_else(|| parsed::<ScriptType>(SHELL_TYPE), Ok)?;
    check_configured(&script_type, &config.types)?;
    let command = config.types.get(&script_type).map(|of| of.command.as_slice());
    if !command.is_some_and(|command| runs_with("#!/bin/sh", command)) {
        return Err(usage(format!(
            "a command after -- is run by a shell, and {script_type} is none: leave --type away, or name a file or \
             -e CODE before --"
        )));
    }
    if spec.name.is_none() {
        spec.name = program.rsplit('/').next().and_then(|name| name.parse().ok());
    }
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    spec.script = words.join(" ") + "\n";
    spec.script_type = Some(script_type);
    Ok(())
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

    fn filled(script_type: Option<&str>, words: &[&str]) -> Result<JobSpec, Error> {
        let mut spec = JobSpec {
            args: words.iter().map(|word| (*word).to_owned()).collect(),
            script_type: script_type.map(|name| name.parse().expect("legal")),
            ..JobSpec::default()
        };
        fill_command(&mut spec, &Config::default()).map(|()| spec)
    }

    #[test]
    fn command_is_a_line_of_bash_with_its_words_quoted() {
        for (words, line) in [
            (&["ls", "-la"][..], "ls -la\n"),
            (&["echo", "a b", "$HOME", "*", ""], "echo 'a b' '$HOME' '*' ''\n"),
            (&["/usr/bin/printf", "it's\n"], "/usr/bin/printf 'it'\\''s\n'\n"),
            (&["A=1", "~/x", "#"], "'A=1' '~/x' '#'\n"),
        ] {
            let spec = filled(None, words).expect("a command");
            assert_eq!(spec.script, line);
            assert_eq!(spec.script_type.expect("a type").as_str(), "bash");
            assert!(spec.args.is_empty());
        }
        let spec = filled(Some("bash"), &["/usr/bin/rsync", "-a"]).expect("a command");
        assert_eq!(spec.name.expect("a name").as_str(), "rsync");
    }

    #[test]
    fn command_needs_a_word_and_a_shell() {
        for (script_type, words) in
            [(None, &[][..]), (None, &[""]), (None, &["ls | wc"]), (Some("python"), &["ls"])]
        {
            let error = filled(script_type, words).expect_err("no command");
            assert_eq!(error.exit, Exit::Usage, "{error}");
        }
        assert_eq!(filled(Some("ruby"), &["ls"]).expect_err("no type").exit, Exit::Data);
    }
}
