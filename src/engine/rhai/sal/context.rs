//! The job as the functions of `sal` see it: its folders and the paths that it may use.

use std::path::{Path, PathBuf};

use ::rhai::{Dynamic, Variant};

use crate::engine::Stream;
use crate::engine::process::SYSTEM_PATH;
use crate::engine::rhai::functions::{Added, Functions};
use crate::engine::rhai::runtime::context::{self, JobContext};
use crate::engine::rhai::runtime::settings::{FileAccess, SalSettings};
use crate::error::reason;

pub(super) use context::{CallError, CallResult, RhaiResult, excerpt};

pub(super) type SalJob<'a> = JobContext<'a, SalSettings>;

pub(super) fn operation<T>(
    name: &str,
    object: &str,
    work: impl FnOnce(SalJob<'_>) -> CallResult<T>,
) -> RhaiResult<T> {
    context::operation(name, object, |run| run.sal, work)
}

/// Functions that run `work` as an operation on their first argument.
impl<'a> Functions<'a> {
    pub(super) fn act<T: Variant + Clone>(
        &mut self,
        name: &'static str,
        summary: &'static str,
        example: &'static str,
        work: impl Fn(SalJob<'_>) -> CallResult<T> + Send + Sync + 'static,
    ) -> Added<'_, 'a> {
        self.add(name, [], summary, example, move || operation(name, "", &work))
    }

    pub(super) fn act_on<T: Variant + Clone>(
        &mut self,
        name: &'static str,
        parameter: &'static str,
        summary: &'static str,
        example: &'static str,
        work: impl Fn(SalJob<'_>, &str) -> CallResult<T> + Send + Sync + 'static,
    ) -> Added<'_, 'a> {
        self.add(name, [parameter], summary, example, move |object: &str| {
            operation(name, object, |job| work(job, object))
        })
    }

    pub(super) fn act_with<A: Variant + Clone, T: Variant + Clone>(
        &mut self,
        name: &'static str,
        parameters: [&'static str; 2],
        summary: &'static str,
        example: &'static str,
        work: impl Fn(SalJob<'_>, &str, A) -> CallResult<T> + Send + Sync + 'static,
    ) -> Added<'_, 'a> {
        self.add(name, parameters, summary, example, move |object: &str, second: A| {
            operation(name, object, |job| work(job, object, second))
        })
    }
}

/// Runs `work` as `operation` does, for a question to the network. If it fails, the script gets `fallback`
/// and the log the reason; what the configuration forbids is an error.
pub(super) fn question<T>(
    name: &str,
    object: &str,
    fallback: T,
    work: impl FnOnce(SalJob<'_>) -> CallResult<T>,
) -> RhaiResult<T> {
    operation(name, object, |job| {
        job.settings.check_network()?;
        match work(job) {
            Err(CallError::Failed(reason)) if !reason.starts_with("not allowed") => {
                job.check_stop()?;
                job.log_failure(name, object, &reason);
                Ok(fallback)
            }
            answered => answered,
        }
    })
}

impl<'a> SalJob<'a> {
    pub(super) fn own_folder(self) -> CallResult<&'a Path> {
        let folder = self.run.scratch();
        folder.map_err(|error| {
            format!("cannot create the script's folder: {}", reason(&error)).into()
        })
    }

    pub(super) fn folder(self) -> CallResult<PathBuf> {
        match &*self.run.folder.borrow() {
            Some(folder) => Ok(folder.clone()),
            None => Ok(self.own_folder()?.to_owned()),
        }
    }

    /// Returns the full path, if it may be read.
    pub(super) fn to_read(self, path: &str) -> CallResult<PathBuf> {
        self.allowed(path, FileAccess::Read, true)
    }

    /// Returns the full path, if it may be written; a link is followed.
    pub(super) fn to_write(self, path: &str) -> CallResult<PathBuf> {
        self.allowed(path, FileAccess::Write, true)
    }

    /// Returns the full path, if its entry may be created, moved or removed; a link is not followed.
    pub(super) fn to_change(self, path: &str) -> CallResult<PathBuf> {
        self.allowed(path, FileAccess::Write, false)
    }

    fn allowed(self, path: &str, access: FileAccess, follow_last: bool) -> CallResult<PathBuf> {
        if path.is_empty() {
            return Err("the path is empty".into());
        }
        if path.contains('\0') {
            return Err("the path contains a NUL byte".into());
        }
        let path = self.folder()?.join(path);
        self.settings.check_path(&path, self.own_folder()?, access, follow_last)?;
        Ok(path)
    }

    /// Logs why an operation on an object failed.
    pub(super) fn log_failure(self, name: &str, object: &str, reason: &str) {
        let object = excerpt(object);
        self.run.log_text(Stream::Stderr, &format!("{name} {object}: {reason}"));
    }

    pub(super) fn check_count(self, count: usize, what: &str) -> CallResult<()> {
        let most = self.run.limits.array_len_max;
        if count > most { Err(format!("more than {most} {what}").into()) } else { Ok(()) }
    }

    pub(super) fn search_path(self) -> &'a str {
        self.run.script.env.get("PATH").map_or(SYSTEM_PATH, String::as_str)
    }
}

/// Returns true for a text of letters, digits and `others` that no program takes for an option.
pub(super) fn is_word(text: &str, others: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || others.contains(c);
    !text.is_empty() && !text.starts_with('-') && text.chars().all(is_plain)
}

pub(super) fn path_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

pub(super) fn or_unit(text: Option<String>) -> Dynamic {
    text.map_or(Dynamic::UNIT, Into::into)
}
