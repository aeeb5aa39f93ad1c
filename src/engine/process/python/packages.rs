//! The packages that scripts ask for: one environment for each set of them, made once, with `uv`
//! where it is, else with Python's own `venv` and `pip`.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::metadata::Metadata;
use super::metadata_of;
use super::version::Demand;
use crate::config::{DependenciesConfig, JobConfig};
use crate::engine::process::cache::{Cache, Entry, Patience};
use crate::engine::process::tool::Tool;
use crate::engine::process::{Scratch, failure, find_program, reason};
use crate::engine::{Failure, Log};

const KIND: &str = "python";
/// How `venv` and `pip` say that they are not installed; Debian has both in packages of their own.
const MISSING_PIP: &str = "No module named pip";
const HINT: &str = "install uv, python3-pip or python3-venv";

/// Makes environments, as `[type.NAME.dependencies]` says.
#[derive(Debug, Clone)]
pub(in crate::engine::process) struct Packages {
    config: DependenciesConfig,
    cache: Cache,
    kill_grace: Duration,
}

impl Packages {
    pub(in crate::engine::process) fn new(config: &DependenciesConfig, job: &JobConfig) -> Self {
        let cache = Cache::new(&job.cache_dir, job.cache_size_max);
        Self { config: config.clone(), cache, kill_grace: job.kill_grace }
    }

    /// The environment that a script asks for, made if it is not there yet; `None` if it asks for
    /// none.
    ///
    /// # Errors
    /// [`Failure::Invalid`] for metadata that cannot be read, [`Failure::Script`] with what the
    /// installer said.
    pub(in crate::engine::process) fn of(
        &self,
        source: &str,
        python: &Path,
        patience: Patience<'_>,
        log: &dyn Log,
    ) -> Result<Option<Entry>, Failure> {
        let Some(wanted) = metadata_of(source)? else { return Ok(None) };
        if !self.config.enabled {
            let message = "the script asks for packages, which this machine does not install: \
                           dependencies.enabled is false for its type";
            return Err(failure(message.to_owned()));
        }
        let made_of = self.made_of(&wanted, python)?;
        let job_deadline = patience.deadline;
        let build_timeout = self.config.build_timeout;
        let entry = self.cache.entry(KIND, &made_of, patience, |folder| {
            let own = Instant::now() + build_timeout;
            let patience = Patience { deadline: job_deadline.min(own), ..patience };
            let build = Build { packages: self, python, patience, log };
            match build.run(&wanted, &environment(folder)) {
                Err(Failure::Timeout) if own < job_deadline => Err(failure(format!(
                    "the script's packages were not installed within {build_timeout:?}"
                ))),
                other => other,
            }
        })?;
        Ok(Some(entry))
    }

    /// All that decides what an environment holds.
    fn made_of(&self, wanted: &Metadata, python: &Path) -> Result<String, Failure> {
        let real = python.canonicalize();
        let interpreter = real.and_then(|real| Ok((real.metadata()?, real)));
        let (data, real) = interpreter.map_err(|error| {
            failure(format!("cannot read {}: {}", python.display(), reason(&error)))
        })?;
        let DependenciesConfig { index, find_links, source_builds, .. } = &self.config;
        Ok(format!(
            "1\n{} {} {}\n{index:?} {find_links:?} {source_builds}\n{:?}\n{:?}\n",
            real.display(),
            data.size(),
            data.mtime(),
            wanted.requires_python,
            wanted.dependencies
        ))
    }
}

/// Where the environment is in its entry.
fn environment(entry: &Path) -> PathBuf {
    entry.join("venv")
}

/// The interpreter of an environment.
pub(in crate::engine::process) fn interpreter(entry: &Path) -> PathBuf {
    environment(entry).join("bin/python")
}

/// One environment in the making.
struct Build<'a> {
    packages: &'a Packages,
    python: &'a Path,
    patience: Patience<'a>,
    log: &'a dyn Log,
}

impl Build<'_> {
    fn run(&self, wanted: &Metadata, venv: &Path) -> Result<(), Failure> {
        self.check_version(&wanted.requires_python)?;
        let sources = self.sources(&wanted.dependencies)?;
        let uv = find_program("uv");
        let folder = |flags: &[&str]| words(flags).into_iter().chain([venv.into()]).collect();
        if let Some(uv) = &uv {
            let mut args: Vec<OsString> = words(&["venv", "--quiet", "--python"]);
            args.extend([self.python.into(), venv.into()]);
            self.must(uv, args)?;
        } else {
            self.must(self.python, folder(&["-m", "venv", "--without-pip"]))?;
        }
        if wanted.dependencies.is_empty() {
            return Ok(());
        }
        let own_python = venv.join("bin/python");
        if let Some(uv) = &uv {
            let mut args = words(&["pip", "install", "--quiet", "--no-cache", "--python"]);
            args.push(own_python.into());
            if !self.packages.config.source_builds {
                args.push("--no-build".into());
            }
            args.extend(sources);
            return self.must(uv, args);
        }
        self.install_with_pip(&own_python, &sources)
    }

    /// With the pip of the system, which needs not be copied into every environment, or else with
    /// one of the environment's own.
    fn install_with_pip(&self, own_python: &Path, sources: &[OsString]) -> Result<(), Failure> {
        let install = |mut before: Vec<OsString>| {
            let only_wheels: &[&str] =
                if self.packages.config.source_builds { &[] } else { &["--only-binary", ":all:"] };
            before.extend(words(&["--quiet", "--no-input", "--disable-pip-version-check"]));
            before.extend(words(&["install", "--no-cache-dir"]));
            before.extend(words(only_wheels));
            before.extend_from_slice(sources);
            before
        };
        let mut of_system = words(&["-m", "pip", "--python"]);
        of_system.push(own_python.into());
        match self.tool(self.python, install(of_system))? {
            Ok(_) => Ok(()),
            Err(said) if said.contains(MISSING_PIP) => {
                if self.tool(own_python, words(&["-m", "ensurepip"]))?.is_err() {
                    return Err(failure(format!("the script asks for packages: {HINT}")));
                }
                self.must(own_python, install(words(&["-m", "pip"])))
            }
            Err(said) => Err(not_installed(&said)),
        }
    }

    /// Where packages come from, and which; the latter last, so that none is an option.
    fn sources(&self, dependencies: &[String]) -> Result<Vec<OsString>, Failure> {
        let DependenciesConfig { index, find_links, source_builds, .. } = &self.packages.config;
        let from_sources = |package: &&String| {
            let address = package.split_once('@').map(|(_, address)| address);
            let address = address.map(|rest| rest.split([';', '#']).next().unwrap_or(rest).trim());
            address.is_some_and(|address| address.rsplit('.').next() != Some("whl"))
        };
        if let Some(package) = dependencies.iter().find(from_sources)
            && !source_builds
        {
            let message = format!(
                "the script's packages cannot be installed: {package:?} is built from sources, \
                 which dependencies.source_builds does not allow"
            );
            return Err(failure(message));
        }
        let mut args = match index.as_str() {
            "" => Vec::new(),
            "none" => words(&["--no-index"]),
            index => words(&["--index-url", index]),
        };
        for link in find_links {
            args.extend(words(&["--find-links", link]));
        }
        args.push("--".into());
        args.extend(dependencies.iter().map(OsString::from));
        Ok(args)
    }

    fn check_version(&self, wanted: &str) -> Result<(), Failure> {
        let Some(demand) = Demand::parse(wanted).filter(|_| !wanted.is_empty()) else {
            return Ok(());
        };
        let code = "import sys; print('%d.%d.%d' % sys.version_info[:3])";
        let version = self.tool(self.python, words(&["-I", "-c", code]))?.unwrap_or_default();
        if demand.allows(version.trim()) {
            return Ok(());
        }
        let (python, version) = (self.python.display(), version.trim());
        Err(failure(format!("the script requires Python {wanted}, and {python} is {version}")))
    }

    fn must(&self, program: &Path, args: Vec<OsString>) -> Result<(), Failure> {
        match self.tool(program, args)? {
            Ok(_) => Ok(()),
            Err(said) => Err(not_installed(&said)),
        }
    }

    fn tool(&self, program: &Path, args: Vec<OsString>) -> Result<Result<String, String>, Failure> {
        let scratch = Scratch::new()
            .map_err(|error| failure(format!("cannot make a folder: {}", reason(&error))))?;
        let tool = Tool {
            program: program.to_owned(),
            args,
            env: Vec::new(),
            folder: scratch.path(),
            kill_grace: self.packages.kill_grace,
        };
        tool.run(self.patience, Some(self.log))
    }
}

fn not_installed(said: &str) -> Failure {
    let is_noise = |line: &&str| line.starts_with("WARNING:") || line.starts_with("[notice]");
    let lines: Vec<&str> = said.lines().filter(|line| !is_noise(line)).collect();
    failure(format!("the script's packages cannot be installed: {}", lines.join("\n").trim()))
}

fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}
