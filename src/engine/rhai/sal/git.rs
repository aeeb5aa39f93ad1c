//! Git repositories, with the program git.

use std::fs;
use std::path::{Path, PathBuf};

use ::rhai::Array;

use super::context::{CallResult, RhaiResult, SalJob, operation, path_text};
use super::external_program::ExternalProgram;
use super::files::make_parents;
use super::find::names_like;
use crate::engine::rhai::functions::Functions;

/// The depth of the search for repositories in a tree; host, account and name are three levels.
const FOLDER_DEPTH_MAX: usize = 8;

pub(super) fn register(functions: &mut Functions<'_>) {
    functions.group("git", "Git repositories.");
    functions.class::<GitTree>("GitTree");
    functions.class::<GitRepo>("GitRepo");
    register_tree(functions);
    functions.add(
        "path",
        ["repository"],
        "Returns the path of the repository.",
        r#"
git_clone(env_get("ORIGIN"), "work").path().ends_with("/work")
// → true"#,
        |repository: GitRepo| path_text(&repository.path),
    );
    functions.add(
        "has_changes",
        ["repository"],
        "Returns whether the repository has uncommitted changes.",
        r#"
let repository = git_clone(env_get("ORIGIN"), "work");
file_write("work/new.txt", "new");
repository.has_changes()
// → true"#,
        |repository: GitRepo| {
            operation_in(&repository.path, "has_changes", |job| {
                Ok(!repository.git(job, &["status", "--porcelain"])?.is_empty())
            })
        },
    );
    register_exchange(functions);
}

fn register_exchange(functions: &mut Functions<'_>) {
    functions.add(
        "pull",
        ["repository"],
        "Pulls new commits from the origin; fails if both sides have new commits.",
        r#"git_clone(env_get("ORIGIN"), "work").pull();"#,
        |repository: GitRepo| repository.act("pull", &["pull", "--ff-only", "--quiet"]),
    );
    functions.add(
        "reset",
        ["repository"],
        "Discards all uncommitted changes, including new files.",
        r#"
let repository = git_clone(env_get("ORIGIN"), "work");
file_write("work/README", "spoiled");
repository.reset().has_changes()
// → false"#,
        |repository: GitRepo| {
            repository.act("reset", &["reset", "--hard", "--quiet"])?;
            repository.act("reset", &["clean", "-d", "--force", "--quiet"])
        },
    );
    functions.add(
        "commit",
        ["repository", "message"],
        "Commits all changes, including new files; does nothing without changes.",
        r#"
let repository = git_clone(env_get("ORIGIN"), "work");
file_write("work/new.txt", "new");
repository.commit("add a file").has_changes()
// → false"#,
        |repository: GitRepo, message: &str| {
            operation_in(&repository.path, "commit", |job| repository.commit(job, message))?;
            Ok::<_, Box<::rhai::EvalAltResult>>(repository)
        },
    );
    functions.add(
        "push",
        ["repository"],
        "Pushes the commits to the origin.",
        r#"
let repository = git_clone(env_get("ORIGIN"), "work");
file_write("work/new.txt", "new");
repository.commit("add a file").push();"#,
        |repository: GitRepo| repository.act("push", &["push", "--quiet"]),
    );
}

fn register_tree(functions: &mut Functions<'_>) {
    functions
        .add(
            "git_clone",
            ["url"],
            "Clones a repository, by default into a folder of its name, and returns it.",
            r#"
let repository = git_clone(env_get("ORIGIN"));
repository.has_changes()
// → false"#,
            |url: &str| clone(url, None),
        )
        .overload(["url", "path"], |url: &str, path: &str| clone(url, Some(path)));
    functions.act_on(
        "git_tree_new",
        "path",
        "Returns the tree of all repositories below a folder, which is created if it does not exist.",
        r#"
git_clone(env_get("ORIGIN"), "code/one");
git_tree_new("code").list().len
// → 1"#,
        |job, path| {
                let folder = job.to_read(path)?;
                if !folder.try_exists()? {
                    fs::create_dir_all(job.to_write(path)?)?;
                }
                let folder = folder.canonicalize()?;
                if folder.is_dir() { Ok(GitTree { folder }) } else { Err("not a folder".into()) }
            },
    );
    functions.add(
        "list",
        ["tree"],
        "Returns the paths of all repositories of the tree.",
        r#"
git_clone(env_get("ORIGIN"), "code/one");
git_tree_new("code").list()[0].ends_with("/code/one")
// → true"#,
        |tree: GitTree| {
            operation_in(&tree.folder, "list", |job| {
                Ok(tree.paths(job)?.iter().map(|path| path_text(path).into()).collect::<Array>())
            })
        },
    );
    register_search(functions);
}

fn register_search(functions: &mut Functions<'_>) {
    functions.add(
        "find",
        ["tree", "pattern"],
        "Returns the repositories whose name or path in the tree matches; `*` matches any text.",
        r#"
git_clone(env_get("ORIGIN"), "code/web-one");
git_clone(env_get("ORIGIN"), "code/api");
git_tree_new("code").find("web*").len
// → 1"#,
        |tree: GitTree, pattern: &str| {
            operation_in(&tree.folder, "find", |job| {
                let found = tree.find(job, pattern)?.into_iter();
                Ok(found.map(::rhai::Dynamic::from).collect::<Array>())
            })
        },
    );
    functions.add(
        "get",
        ["tree", "pattern"],
        "Returns the one repository whose name or path matches; no match or several are an error. A URL is \
         cloned into the folder SERVER/ACCOUNT/NAME of the tree, unless that exists.",
        r#"
git_clone(env_get("ORIGIN"), "code/one");
git_tree_new("code").get("one").has_changes()
// → false"#,
        |tree: GitTree, pattern: &str| {
            operation("git get", pattern, |job| {
                if pattern.starts_with("http") || pattern.starts_with("git@") {
                    return tree.clone_once(job, pattern);
                }
                let mut found = tree.find(job, pattern)?;
                match (found.pop(), found.len()) {
                    (Some(one), 0) => Ok(one),
                    (Some(_), more) => Err(format!("{} repositories match", more + 1).into()),
                    (None, _) => Err("no repository matches".into()),
                }
            })
        },
    );
}

fn operation_in<T>(
    folder: &Path,
    name: &str,
    work: impl FnOnce(SalJob<'_>) -> CallResult<T>,
) -> RhaiResult<T> {
    operation(&format!("git {name}"), &path_text(folder), work)
}

#[derive(Debug, Clone)]
struct GitTree {
    folder: PathBuf,
}

#[derive(Debug, Clone)]
struct GitRepo {
    path: PathBuf,
}

impl GitTree {
    fn find(&self, job: SalJob<'_>, pattern: &str) -> CallResult<Vec<GitRepo>> {
        let names = names_like(pattern)?;
        let matching = |path: &PathBuf| {
            let below = path.strip_prefix(&self.folder).unwrap_or(path).to_string_lossy();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            names.is_match(&below) || names.is_match(&name)
        };
        let paths = self.paths(job)?.into_iter().filter(matching);
        Ok(paths.map(|path| GitRepo { path }).collect())
    }

    /// Clones the newest commit of a URL into its folder of the tree, if that does not exist.
    fn clone_once(&self, job: SalJob<'_>, url: &str) -> CallResult<GitRepo> {
        let parts = url_parts(url).ok_or("Git error: not the URL of a repository")?;
        let path = parts.iter().fold(self.folder.clone(), |path, part| path.join(part));
        let path = job.to_write(&path_text(&path))?;
        if !path.try_exists()? {
            job.settings.check_network()?;
            make_parents(&path)?;
            let words = ["clone", "--quiet", "--depth", "1", "--", url];
            output(job, git(&self.folder).args(words).arg(&path))?;
        }
        Ok(GitRepo { path })
    }

    /// Returns the sorted paths of the repositories. Repositories inside of one are not found.
    fn paths(&self, job: SalJob<'_>) -> CallResult<Vec<PathBuf>> {
        let mut folders = vec![(self.folder.clone(), 0)];
        let mut found = Vec::new();
        while let Some((folder, depth)) = folders.pop() {
            job.check_stop()?;
            if folder.join(".git").exists() {
                found.push(folder);
            } else if depth < FOLDER_DEPTH_MAX
                && let Ok(entries) = fs::read_dir(&folder)
            {
                let inner = entries.flatten();
                let inner = inner.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
                folders.extend(inner.map(|entry| (entry.path(), depth + 1)));
            }
            job.check_count(found.len(), "repositories")?;
        }
        found.sort();
        Ok(found)
    }
}

impl GitRepo {
    fn act(&self, name: &str, args: &[&str]) -> RhaiResult<Self> {
        operation_in(&self.path, name, |job| {
            job.to_change(&path_text(&self.path))?;
            self.git(job, args).map(|_| self.clone())
        })
    }

    fn commit(&self, job: SalJob<'_>, message: &str) -> CallResult<()> {
        job.to_change(&path_text(&self.path))?;
        self.git(job, &["add", "--all"])?;
        if self.git(job, &["status", "--porcelain"])?.is_empty() {
            return Ok(());
        }
        // Git does not commit without an identity; a configured one takes precedence.
        let known = git(&self.path).args(["config", "--get", "user.email"]).run(job)?.success();
        let default = ["-c", "user.name=hero", "-c", "user.email=hero@localhost"];
        let identity = if known { &[][..] } else { &default[..] };
        let message = format!("--message={message}");
        let commit = git(&self.path).args(identity.iter().copied());
        output(job, commit.args(["commit", "--quiet", &message])).map(|_| ())
    }

    fn git(&self, job: SalJob<'_>, args: &[&str]) -> CallResult<String> {
        job.to_read(&path_text(&self.path))?;
        output(job, git(&self.path).args(args.iter().copied()))
    }
}

/// Returns a git command that never prompts for a password.
fn git(folder: &Path) -> ExternalProgram {
    ExternalProgram::new("git").default_env("GIT_TERMINAL_PROMPT", "0").folder(folder)
}

/// Runs a git command and returns its output. Scripts look for "Git error" in the message of a failure.
fn output(job: SalJob<'_>, command: ExternalProgram) -> CallResult<String> {
    let ran = command.run(job)?;
    if ran.success() {
        Ok(ran.stdout())
    } else {
        Err(format!("Git error: {}", ran.failure()).into())
    }
}

/// Returns server, account and name of `https://SERVER/ACCOUNT/NAME.git` or `git@SERVER:ACCOUNT/NAME.git`.
fn url_parts(url: &str) -> Option<[&str; 3]> {
    let web = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let (server, path) = match web {
        Some(web) => web.split_once('/')?,
        None => url.strip_prefix("git@")?.split_once(':')?,
    };
    let server = server.rsplit('@').next()?;
    let (account, name) = path.trim_end_matches('/').split_once('/')?;
    let name = name.strip_suffix(".git").unwrap_or(name);
    let parts = [server, account, name];
    let is_folder = |part: &&str| !part.is_empty() && !part.starts_with('.') && !part.contains('/');
    parts.iter().all(is_folder).then_some(parts)
}

fn clone(url: &str, path: Option<&str>) -> RhaiResult<GitRepo> {
    operation("git_clone", url, |job| {
        // A path is on this machine; anything else is a URL.
        if url.starts_with('/') {
            job.to_read(url)?;
        } else {
            job.settings.check_network()?;
        }
        let name = url.trim_end_matches('/').rsplit(['/', ':']).next().unwrap_or_default();
        let name = name.strip_suffix(".git").unwrap_or(name);
        let to = job.to_write(path.unwrap_or(name))?;
        // Git would run the command in an `ext::` URL.
        let protocols = ["-c", "protocol.ext.allow=never", "clone", "--quiet", "--", url];
        output(job, git(&job.folder()?).args(protocols).arg(&to))?;
        Ok(GitRepo { path: to.canonicalize()? })
    })
}
