//! Installs the packages that scripts declare, once for each set of packages: of Python a virtual environment with `uv` if it
//! is installed, else with Python's `venv` and `pip`; of node a folder with `npm`.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pep440_rs::VersionSpecifiers;
use regex::Regex;

use super::metadata::{self, Metadata};
use super::python::find_uv;
use crate::config::{DependenciesConfig, JobConfig, SandboxConfig, TypeConfig};
use crate::engine::process::prepare::build_cache::{BuildCache, CacheEntry, Until};
use crate::engine::process::prepare::environment::Environment;
use crate::engine::process::prepare::programs::{cannot_read, find_in, own_path, version_of};
use crate::engine::process::prepare::scratch::Scratch;
use crate::engine::process::prepare::source::illegal;
use crate::engine::process::prepare::tool::{RunTool, Tool, ToolResult};
use crate::engine::{Failure, Log, Stream};
use crate::sandbox::{Sandbox, Support};

/// The files that installers read: settings, such as the address of an index, and a description of the system.
const SETTINGS: [&str; 7] = [
    "/etc/npmrc",
    "/etc/pip.conf",
    "/etc/xdg/pip",
    "/etc/uv",
    "/etc/debian_version",
    "/etc/lsb-release",
    "/etc/os-release",
];
const KIND: &str = "python";
const KIND_OF_NODE: &str = "node";
/// The authorities of the system, which node does not know by itself.
const AUTHORITIES: (&str, &str) = ("NODE_EXTRA_CA_CERTS", "/etc/ssl/certs/ca-certificates.crt");
/// The folder in which node finds packages, above the file of a script.
pub(super) const NODE_MODULES: &str = "node_modules";
const NAMES_PORT: u16 = 53;
/// The message of Python without `pip`, which Debian has in a package of its own.
const MISSING_PIP: &str = "No module named pip";
const HINT: &str = "install uv, python3-pip or python3-venv";

#[derive(Debug, Clone)]
pub(super) struct Packages {
    config: DependenciesConfig,
    /// The sandbox of the scripts, with access to the index for installers.
    sandbox: SandboxConfig,
    cache: BuildCache,
    kill_grace: Duration,
    run_tool: RunTool,
}

impl Packages {
    pub(super) fn new(config: &TypeConfig, job: &JobConfig, run_tool: RunTool) -> Self {
        let mut sandbox = config.sandbox.clone();
        // An older kernel opens the whole network or none of it.
        sandbox.network = !Support::of_this_kernel().has_ports();
        sandbox.ports = ports_of(&config.dependencies);
        sandbox.read.extend(SETTINGS.iter().map(PathBuf::from));
        let config = config.dependencies.clone();
        // Addresses are not absolute paths, and need no permission to read.
        let folders = config.find_links.iter().map(PathBuf::from);
        sandbox.read.extend(folders.filter(|folder| folder.is_absolute()));
        let values = config.env.values().map(PathBuf::from);
        sandbox.read.extend(values.filter(|value| value.is_absolute()));
        let index = config.index.strip_prefix("file://").map(PathBuf::from);
        sandbox.read.extend(index);
        let cache = BuildCache::new(&job.cache_dir, job.cache_size_max);
        Self { config, sandbox, cache, kill_grace: job.kill_grace, run_tool }
    }

    /// Returns the environment with the packages of a script, created if it does not exist; `None` without packages.
    /// Fails with [`Failure::Invalid`] for metadata that cannot be parsed, and with the messages of the installer.
    pub(super) fn of(
        &self,
        source: &str,
        python: &Path,
        until: Until<'_>,
        log: &dyn Log,
    ) -> Result<Option<CacheEntry>, Failure> {
        let wanted = metadata::read(source).map_err(|reason| illegal(&reason))?;
        let Some(wanted) = wanted else { return Ok(None) };
        let Metadata { requires_python, dependencies } = &wanted;
        let declared = format!("{requires_python}\n{dependencies:?}");
        let install = |installer: &Installer<'_>, folder: &Path| {
            installer.install(&wanted, &environment(folder))
        };
        self.entry((KIND, &declared), python, (until, log), install).map(Some)
    }

    /// Returns the folder with the packages of a script of node, created if it does not exist; `None` without packages. Fails
    /// as [`Self::of`].
    pub(super) fn of_node(
        &self,
        source: &str,
        node: &Path,
        until: Until<'_>,
        log: &dyn Log,
    ) -> Result<Option<CacheEntry>, Failure> {
        let wanted = metadata::read_of_node(source).map_err(|reason| illegal(&reason))?;
        if wanted.is_empty() {
            return Ok(None);
        }
        let install =
            |installer: &Installer<'_>, folder: &Path| installer.install_with_npm(&wanted, folder);
        self.entry((KIND_OF_NODE, &format!("{wanted:?}")), node, (until, log), install).map(Some)
    }

    /// Returns the entry of a kind with what a script declares, installed for an interpreter if it does not exist.
    fn entry(
        &self,
        (kind, declared): (&str, &str),
        interpreter: &Path,
        (until, log): (Until<'_>, &dyn Log),
        install: impl FnOnce(&Installer<'_>, &Path) -> Result<(), Failure>,
    ) -> Result<CacheEntry, Failure> {
        if !self.config.enabled {
            let message = "the script declares packages, which are not installed: \
                           dependencies.enabled is false for its type";
            return Err(Failure::script(message));
        }
        let made_of = self.made_of(declared, interpreter)?;
        let job_deadline = until.deadline;
        let build_timeout = self.config.build_timeout;
        self.cache.entry(kind, &made_of, until, |folder| {
            let own = Instant::now() + build_timeout;
            let until = Until { deadline: job_deadline.min(own), ..until };
            let mut sandbox = self.sandbox.clone();
            sandbox.write.push(folder.to_owned());
            let sandbox = Sandbox::of_type(&sandbox);
            let installer = Installer { packages: self, interpreter, until, log, sandbox };
            match install(&installer, folder) {
                Err(Failure::Timeout) if own < job_deadline => Err(Failure::script(format!(
                    "the script's packages were not installed within {build_timeout:?}"
                ))),
                other => other,
            }
        })
    }

    fn made_of(&self, declared: &str, interpreter: &Path) -> Result<String, Failure> {
        let real = interpreter.canonicalize().map_err(|error| cannot_read(interpreter, &error))?;
        let version = version_of(&real)?;
        let DependenciesConfig { index, find_links, source_builds, env, .. } = &self.config;
        Ok(format!("1\n{version}\n{index:?} {find_links:?} {source_builds} {env:?}\n{declared}\n"))
    }
}

/// Returns the TCP ports that an installer may reach: of the configured addresses, and of an index that it chooses
/// itself. None without an address, and none but these, so that what a package runs while it is built reaches no
/// server of this machine or its neighbours.
fn ports_of(config: &DependenciesConfig) -> Vec<u16> {
    let index = Some(config.index.as_str()).filter(|index| *index != "none");
    let named = index.into_iter().chain(config.find_links.iter().map(String::as_str));
    let of = |address: &str| {
        let address: hyper::Uri = address.parse().ok()?;
        let usual = match address.scheme_str()? {
            "https" => 443,
            "http" => 80,
            _ => return None,
        };
        Some(address.port_u16().unwrap_or(usual))
    };
    let mut ports: Vec<u16> = named.filter_map(of).collect();
    // An index names its files by addresses, mostly of another server.
    if index.is_some() || !ports.is_empty() {
        ports.extend([NAMES_PORT, 443]);
        ports.extend(config.env.values().filter_map(|value| of(value)));
    }
    ports.sort_unstable();
    ports.dedup();
    ports
}

pub(super) fn environment(entry: &Path) -> PathBuf {
    entry.join("venv")
}

pub(super) fn interpreter(entry: &Path) -> PathBuf {
    environment(entry).join("bin/python")
}

struct Installer<'a> {
    packages: &'a Packages,
    interpreter: &'a Path,
    until: Until<'a>,
    log: &'a dyn Log,
    sandbox: Sandbox,
}

impl Installer<'_> {
    fn install(&self, wanted: &Metadata, venv: &Path) -> Result<(), Failure> {
        self.check_version(&wanted.requires_python)?;
        let sources = self.sources(&wanted.dependencies)?;
        let path = self.packages.config.env.get("PATH");
        let uv = match find_uv(path.map(OsStr::new)) {
            Some(uv) if self.creates_with(&uv, venv)? => Some(uv),
            _ => None,
        };
        if uv.is_none() {
            let mut args = words(&["-m", "venv", "--clear", "--without-pip"]);
            args.push(venv.into());
            self.must(self.interpreter, args)?;
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

    /// Installs into `node_modules` of a folder, with the npm of this node or of the system. No package runs code of its own
    /// meanwhile, unless the type allows it.
    fn install_with_npm(&self, wanted: &[String], folder: &Path) -> Result<(), Failure> {
        let DependenciesConfig { index, source_builds, env, .. } = &self.packages.config;
        let path = env.get("PATH").map_or_else(own_path, OsString::from);
        let own = self.interpreter.parent().map(|folder| folder.join("npm"));
        let npm = own.filter(|npm| npm.is_file()).or_else(|| find_in("npm", &path));
        let npm = npm.and_then(|npm| npm.canonicalize().ok()).ok_or_else(|| {
            Failure::script("the script's packages cannot be installed: install npm")
        })?;
        let mut args = vec![npm.into()];
        args.extend(words(&["install", "--no-audit", "--no-fund", "--loglevel=error", "--prefix"]));
        args.push(folder.into());
        if !source_builds {
            args.push("--ignore-scripts".into());
        }
        match index.as_str() {
            "" => {}
            "none" => args.push("--offline".into()),
            index => args.extend(words(&["--registry", index])),
        }
        args.push("--".into());
        args.extend(wanted.iter().map(OsString::from));
        self.must(self.interpreter, args)
    }

    /// Creates an empty environment with uv, or logs why not. Fails only with a stop, or at the deadline.
    fn creates_with(&self, uv: &Path, venv: &Path) -> Result<bool, Failure> {
        let mut args = words(&["venv", "--quiet", "--python"]);
        args.extend([self.interpreter.into(), venv.into()]);
        let reason = match self.tool_with(uv, args, None) {
            Ok(Ok(_)) => return Ok(true),
            Ok(Err(messages)) => messages,
            Err(ended @ (Failure::Timeout | Failure::Stopped(_))) => return Err(ended),
            Err(failure) => failure.to_string(),
        };
        let line = format!("{} fails, so pip installs the packages: {reason}", uv.display());
        line.lines().for_each(|line| self.log.line(Stream::Stderr, line));
        Ok(false)
    }

    /// Installs with the pip of the system, which need not be copied into each environment, or else with one in it.
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
        match self.tool(self.interpreter, install(of_system))? {
            Ok(_) => Ok(()),
            Err(messages) if messages.contains(MISSING_PIP) => {
                if self.tool(own_python, words(&["-m", "ensurepip"]))?.is_err() {
                    let message = format!("the script's packages cannot be installed: {HINT}");
                    return Err(Failure::script(message));
                }
                self.must(own_python, install(words(&["-m", "pip"])))
            }
            Err(messages) => Err(not_installed(&messages)),
        }
    }

    /// Returns the arguments for the index, and for the packages after `--`, so that none is taken for an option.
    fn sources(&self, dependencies: &[String]) -> Result<Vec<OsString>, Failure> {
        let DependenciesConfig { index, find_links, source_builds, .. } = &self.packages.config;
        if let Some(package) = dependencies.iter().find(|package| !is_of_index(package))
            && !source_builds
        {
            return Err(Failure::script(format!(
                "the script's packages cannot be installed: {package:?} is no package of the index: other \
                 places may have sources, which are built with code of their own; name the package and its \
                 versions, or set dependencies.source_builds = true"
            )));
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

    fn check_version(&self, required: &VersionSpecifiers) -> Result<(), Failure> {
        if required.is_empty() {
            return Ok(());
        }
        let code = "import sys; print('%d.%d.%d' % sys.version_info[:3])";
        let version = self.tool_with(self.interpreter, words(&["-I", "-c", code]), None)?;
        let version = version.unwrap_or_default();
        let (python, version) = (self.interpreter.display(), version.trim());
        if version.parse().is_ok_and(|version| required.contains(&version)) {
            return Ok(());
        }
        let message = format!("the script requires Python {required}, but {python} is {version}");
        Err(Failure::script(message))
    }

    fn must(&self, program: &Path, args: Vec<OsString>) -> Result<(), Failure> {
        match self.tool(program, args)? {
            Ok(_) => Ok(()),
            Err(messages) => Err(not_installed(&messages)),
        }
    }

    fn tool(&self, program: &Path, args: Vec<OsString>) -> Result<ToolResult, Failure> {
        self.tool_with(program, args, Some(self.log))
    }

    fn tool_with(
        &self,
        program: &Path,
        args: Vec<OsString>,
        log: Option<&dyn Log>,
    ) -> Result<ToolResult, Failure> {
        let scratch = Scratch::new()
            .map_err(|error| Failure::before_start("cannot create a folder", &error))?;
        let env = self.packages.config.env.iter().map(|(name, value)| (name.into(), value.into()));
        let mut env: Environment = env.collect();
        let (name, file) = AUTHORITIES;
        if Path::new(file).exists() {
            env.entry(name.into()).or_insert_with(|| file.into());
        }
        let tool = Tool {
            program: program.to_owned(),
            args,
            env,
            folder: scratch.path(),
            sandbox: &self.sandbox,
            read: Vec::new(),
            kill_grace: self.packages.kill_grace,
        };
        (self.packages.run_tool)(tool, self.until, log)
    }
}

/// Returns true for a package that an installer can get from the index alone: a name, extras and versions, with a
/// condition after them. The switches of installers against builds do not count for addresses, files and
/// repositories.
fn is_of_index(package: &str) -> bool {
    const ARCHIVES: [&str; 12] = [
        ".whl", ".zip", ".tar", ".gz", ".tgz", ".bz2", ".tbz", ".xz", ".txz", ".tlz", ".lz",
        ".lzma",
    ];
    const FORM: &str = r"(?-u)^([\w.-]+)\s*(\[[\w., -]*\])?\s*([<>=!~(][\w.<>=!~,()*+ -]*)?$";
    let package = package.split(';').next().unwrap_or_default().trim();
    let form = Regex::new(FORM).ok();
    form.and_then(|form| form.captures(package)).is_some_and(|found| {
        let name = found[1].to_ascii_lowercase();
        !ARCHIVES.iter().any(|archive| name.ends_with(archive))
    })
}

fn not_installed(messages: &str) -> Failure {
    let is_noise = |line: &&str| line.starts_with("WARNING:") || line.starts_with("[notice]");
    let lines: Vec<&str> = messages.lines().filter(|line| !is_noise(line)).collect();
    let messages = lines.join("\n");
    Failure::script(format!("the script's packages cannot be installed: {}", messages.trim()))
}

fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{DependenciesConfig, is_of_index, ports_of};

    #[test]
    fn installer_reaches_the_ports_of_its_addresses_alone() {
        let ports = |index: &str, find_links: &[&str], proxy: &str| {
            ports_of(&DependenciesConfig {
                index: index.to_owned(),
                find_links: find_links.iter().map(|link| (*link).to_owned()).collect(),
                env: BTreeMap::from([("HTTPS_PROXY".to_owned(), proxy.to_owned())]),
                ..DependenciesConfig::default()
            })
        };
        assert_eq!(ports("", &[], ""), [53, 443]);
        assert_eq!(ports("http://pypi.lan:3141/simple", &[], ""), [53, 443, 3141]);
        assert_eq!(
            ports("http://pypi.lan/simple", &["https://lan:8443/x"], ""),
            [53, 80, 443, 8443]
        );
        assert_eq!(ports("", &[], "http://user:word@proxy:3128"), [53, 443, 3128]);
        assert_eq!(ports("none", &["/srv/wheels"], "http://proxy:3128"), [] as [u16; 0]);
        assert_eq!(ports("none", &["http://lan/x"], ""), [53, 80, 443]);
    }

    #[test]
    fn only_packages_by_name_are_of_the_index() {
        for package in [
            "requests",
            "requests<3,>=2.1",
            "requests ~= 2.0",
            "zope.interface==5.0.0+local",
            "ruamel.yaml (>=0.15)",
            "uvicorn[standard, x-y] >= 0.2 ; python_version < '3.12'",
            "x; platform_machine == 'a@b/c'",
        ] {
            assert!(is_of_index(package), "{package}");
        }
        for package in [
            "git+http://127.0.0.1/x",
            "x @ git+https://127.0.0.1/x.git",
            "x@https://127.0.0.1/x-1-py3-none-any.whl",
            "x @ http://127.0.0.1/x.tar.gz?x=.whl",
            "x[y] @ file:///etc",
            "https://127.0.0.1/x-1-py3-none-any.whl",
            "x.tar.gz",
            "X-1.0.ZIP",
            "x-1-py3-none-any.whl[y]",
            "folder/x",
            "x y",
            "x [y",
            "x ==1 --index-url=http://127.0.0.1",
            "x == 1 @ http://127.0.0.1",
            "",
        ] {
            assert!(!is_of_index(package), "{package}");
        }
    }
}
