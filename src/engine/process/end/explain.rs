//! Explains what the sandbox refused a child that has failed, with the keys that would allow it. The kernel
//! tells a denial to nobody but the process, so the end of its standard error has to say what failed; what the
//! sandbox allows decides whether it was the reason. Pure but for looks at the modes of the named files.
//!
//! Standard error is the script's own text: everything read from it and said about it is bounded and escaped.

mod limits;
mod missing;
mod network;
mod paths;
mod words;

pub(crate) use limits::Ending;
pub(in crate::process) use missing::{ModuleFolders, missing_of_own_folder};

use std::path::{Path, PathBuf};

use self::paths::paths_in;
use self::words::{SaidError, frames_before, has_word, is_code, use_said};
use crate::config::{DEFAULT_FILE, SandboxConfig};
use crate::proto::job::AskedBounds;
use crate::proto::text::escape;
use crate::sandbox::{Allowance, FileUse, Refusal};

const LINES_MAX: usize = 100;
/// The maximum number of paths of one line that are explained: of a move there are two.
const REFUSALS_PER_LINE_MAX: usize = 2;
const REFUSALS_MAX: usize = 20;
const LINE_BYTES_MAX: usize = 8 * 1024;

/// The rights of a child, and the table of the configuration that gives them.
#[derive(Debug)]
pub(crate) struct Explainer<'a> {
    /// The table of the sandbox: `type.python.sandbox`, or `sal`.
    pub(crate) table: String,
    pub(crate) allowance: Allowance,
    /// The folders that the table has already.
    pub(crate) read: &'a [PathBuf],
    pub(crate) write: &'a [PathBuf],
    pub(crate) source: &'a str,
    /// The sandbox of a script type with the bounds that the job asked for; `None` for commands of `sal`.
    pub(crate) of_type: Option<(&'a SandboxConfig, &'a AskedBounds)>,
}

impl Explainer<'_> {
    /// Returns what the sandbox refused last: that is why the child failed. One line may tell of two files.
    pub(crate) fn of_text(&self, stderr: &str) -> Vec<String> {
        let lines: Vec<&str> = stderr.lines().collect();
        let lines = &lines[lines.len().saturating_sub(LINES_MAX)..];
        let mut of_lines = (0..lines.len()).rev().map(|at| {
            let mut explanations = self.of_line(lines[at], frames_before(lines, at));
            explanations.dedup();
            explanations
        });
        of_lines.find(|explanations| !explanations.is_empty()).unwrap_or_default()
    }

    /// Returns all that the sandbox refused, in the order of the text, each once.
    pub(crate) fn of_whole_text(&self, stderr: &str) -> Vec<String> {
        let lines: Vec<&str> = stderr.lines().collect();
        let mut found: Vec<String> = Vec::new();
        for (at, line) in lines.iter().enumerate() {
            for explanation in self.of_line(line, frames_before(&lines, at)) {
                if found.len() < REFUSALS_MAX && !found.contains(&explanation) {
                    found.push(explanation);
                }
            }
        }
        found
    }

    /// Explains one line; `frames` are the lines of its traceback.
    fn of_line(&self, line: &str, frames: &[&str]) -> Vec<String> {
        if line.len() > LINE_BYTES_MAX {
            return Vec::new();
        }
        let lower = line.to_ascii_lowercase();
        if refuses_process(&lower) {
            return vec![self.of_processes()];
        }
        match SaidError::of(&lower) {
            None => Vec::new(),
            Some(SaidError::Denied) => {
                // Of mount(8), which says so instead of "not permitted".
                if ["mount: ", "umount: "].iter().any(|program| lower.starts_with(program)) {
                    return self.of_call(&lower, &[]).into_iter().collect();
                }
                let refused = self.of_files(line, &lower, frames);
                if refused.is_empty() {
                    return self
                        .of_network(SaidError::Denied, &lower, frames)
                        .into_iter()
                        .collect();
                }
                refused
            }
            Some(SaidError::NotPermitted) => {
                let network = self.of_network(SaidError::NotPermitted, &lower, frames);
                network.or_else(|| self.of_call(&lower, frames)).into_iter().collect()
            }
            Some(SaidError::NoSuchCall) => self.of_call(&lower, frames).into_iter().collect(),
            Some(error) => self.of_network(error, &lower, frames).into_iter().collect(),
        }
    }

    fn of_processes(&self) -> String {
        format!(
            "starting a process or thread was refused: `processes` and `job_processes` in [{}], TasksMax= of the unit of \
             the actor, and kernel.pid_max bound their number",
            self.table
        )
    }

    fn of_files(&self, line: &str, lower: &str, frames: &[&str]) -> Vec<String> {
        let wanted = use_said(lower, frames);
        let paths = paths_in(line);
        // A program that is named by its path says so first.
        let names_program = usize::from(line.starts_with('/') && paths.len() > 1);
        let refusals = paths.into_iter().skip(names_program).filter_map(|variants| {
            let exists = |path: &&&str| Path::new(path).exists();
            let path = variants.iter().find(exists).or(variants.first())?;
            self.allowance.refused(Path::new(path), wanted)
        });
        refusals.take(REFUSALS_PER_LINE_MAX).map(|refusal| self.file(&refusal)).collect()
    }

    fn file(&self, refusal: &Refusal) -> String {
        let path = escape(&refusal.path.to_string_lossy());
        let what = match refusal.uses.as_slice() {
            _ if !refusal.exists => "creating",
            [FileUse::Read] if refusal.is_folder => "listing",
            [FileUse::Read] => "reading",
            [FileUse::Write] => "writing",
            [FileUse::Execute] => "executing",
            uses if uses.contains(&FileUse::Change) => "changing",
            _ => "access to",
        };
        let how =
            if refusal.is_certain { "was refused" } else { "is refused, probably why it failed" };
        let of_hero = Path::new(DEFAULT_FILE).parent();
        let parent = refusal.path.parent();
        let looks =
            refusal.uses.iter().any(|wanted| matches!(wanted, FileUse::Read | FileUse::Execute));
        let opens = if of_hero.is_some_and(|folder| refusal.path.starts_with(folder)) {
            "no script should read the configuration of Hero; [secrets] gives values to jobs"
                .to_owned()
        } else if may_be_secret(&refusal.path) {
            "it may hold secrets; [secrets] gives values to jobs".to_owned()
        } else if [to_read(refusal), to_write(refusal)]
            .iter()
            .any(|opened| opened == Path::new("/"))
        {
            "no key should open the whole disk; use the folder of the job, which is its HOME"
                .to_owned()
        } else if !looks && ["/tmp", "/var/tmp"].iter().any(|dir| parent == Some(Path::new(dir))) {
            "a job has a folder of its own for such files, $TMPDIR, which mktemp uses".to_owned()
        } else {
            self.opening(refusal)
        };
        format!("sandbox: {what} {path} {how}; {opens}")
    }

    fn opening(&self, refusal: &Refusal) -> String {
        let table = &self.table;
        let has = |wanted| refusal.uses.contains(&wanted);
        let looks = has(FileUse::Read) || has(FileUse::Execute);
        let changes = has(FileUse::Write) || has(FileUse::Change);
        let read = || with_path("read", self.read, &to_read(refusal));
        let write = || with_path("write", self.write, &to_write(refusal));
        match (looks, changes) {
            (true, true) => {
                let looking = if has(FileUse::Execute) { "executing" } else { "reading" };
                format!("[{table}] {} would allow {looking} it, {} writing too", read(), write())
            }
            (true, false) => format!("[{table}] {} would allow it", read()),
            (false, _) => format!("[{table}] {} would allow it", write()),
        }
    }

    /// Explains a system call that is denied with any arguments, if the text names one.
    fn of_call(&self, lower: &str, frames: &[&str]) -> Option<String> {
        /// Words of programs, with the call that they mean.
        const ALIASES: [(&str, &str); 8] = [
            ("read kernel buffer", "syslog"),
            ("cannot set date", "clock_settime"),
            ("inotify", "inotify_init1"),
            ("watch '", "inotify_init1"),
            ("change root directory", "chroot"),
            ("ptrace", "ptrace"),
            ("ownership", "fchownat"),
            ("chown", "fchownat"),
        ];
        let denied = &self.allowance.denied_calls;
        let named_in = |text: &str| {
            let alias = ALIASES.iter().find(|(said, _)| text.contains(said)).map(|(_, call)| *call);
            let alias = alias.filter(|call| denied.contains(call));
            alias.or_else(|| denied.iter().copied().find(|call| has_word(text, call)))
        };
        let (table, code) = (&self.table, frames.iter().filter(|frame| is_code(frame)));
        if has_word(lower, "kill") || code.clone().any(|frame| frame.contains("os.kill(")) {
            return self.allowance.own_signals.then(|| {
                "sandbox: signals reach only the job's own processes; no key changes that"
                    .to_owned()
            });
        }
        let changes_mode =
            |text: &str| has_word(text, "chmod") || text.contains("changing permissions");
        let is_mode = changes_mode(lower) || code.clone().any(|frame| changes_mode(frame));
        if is_mode {
            return (!self.allowance.chmod).then(|| {
                format!(
                    "sandbox: changing modes was refused; [{table}] chmod = true would allow it"
                )
            });
        }
        let none =
            format!("no key of [{table}] allows it but enabled = false, which ends the sandbox");
        if let Some(call) = named_in(lower) {
            return Some(format!("sandbox: the system call {call} was refused; {none}"));
        }
        let call = code.clone().rev().find_map(|frame| named_in(frame))?;
        Some(format!("sandbox: the system call {call} is refused, probably why it failed; {none}"))
    }
}

fn may_be_secret(path: &Path) -> bool {
    const NAMES: [&str; 14] = [
        ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".netrc", ".pgpass", ".env",
        ".npmrc", ".pypirc", "shadow", "gshadow", "sudoers",
    ];
    const FOLDERS: [&str; 4] =
        ["/etc/ssl/private", "/etc/sudoers.d", "/run/credentials", "/run/secrets"];
    let is_named = path.components().any(|part| NAMES.iter().any(|name| part.as_os_str() == *name));
    let is_key = path.extension().is_some_and(|extension| extension == "key" || extension == "pem");
    is_named || is_key || FOLDERS.iter().any(|folder| path.starts_with(folder))
}

fn to_read(refusal: &Refusal) -> PathBuf {
    let path = &refusal.path;
    if path.starts_with("/proc") {
        return "/proc".into();
    }
    let is_hidden =
        path.components().any(|part| part.as_os_str().as_encoded_bytes().starts_with(b"."));
    match path.parent() {
        // The folder of one file may be opened where it is a folder of data, not the home of a user or `/etc`.
        Some(folder) if !refusal.is_folder && !is_hidden && folder.components().count() > 2 => {
            folder.to_owned()
        }
        _ => path.clone(),
    }
}

fn to_write(refusal: &Refusal) -> PathBuf {
    if refusal.uses.contains(&FileUse::Change) {
        return refusal.path.parent().unwrap_or(&refusal.path).to_owned();
    }
    to_read(refusal)
}

pub(crate) fn with_path(key: &str, present: &[PathBuf], path: &Path) -> String {
    const SHOWN_MAX: usize = 3;
    let Some(text) = path.to_str().filter(|text| escape(text) == *text) else {
        return format!("a further path in {key}");
    };
    if present.len() > SHOWN_MAX {
        return format!("{} in {key}", serde_json::json!(text));
    }
    let known = present.iter().filter_map(|path| path.to_str());
    let all: Vec<String> =
        known.chain([text]).map(|text| serde_json::json!(text).to_string()).collect();
    format!("{key} = [{}]", all.join(", "))
}

fn refuses_process(lower: &str) -> bool {
    let is_of_one = ["fork", "start new thread", "pthread_create", "spawn"];
    lower.contains("can't start new thread")
        || lower.contains("resource temporarily unavailable")
            && is_of_one.iter().any(|word| lower.contains(word))
}

#[cfg(test)]
mod tests;
