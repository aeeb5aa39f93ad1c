//! The paths that call methods, as the document of all paths describes them.

/// A path that calls a method, for the document of all paths.
pub(super) struct RestPath {
    /// The verb of HTTP in lower case.
    pub(super) verb: &'static str,
    pub(super) path: &'static str,
    /// The name of the operation.
    pub(super) operation: &'static str,
    pub(super) method: &'static str,
    /// The purpose, where it differs from the method's.
    pub(super) summary: Option<&'static str>,
    /// True if it may wait for the end of the job.
    pub(super) waits: bool,
    pub(super) result: RestResult,
}

/// The kind of a response.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RestResult {
    /// The result of the method.
    Document,
    /// The same, of a job that was submitted.
    Created,
    Text,
    Bytes,
    /// The same, or a range of it.
    File,
}

impl RestPath {
    const fn new(
        verb: &'static str,
        path: &'static str,
        operation: &'static str,
        method: &'static str,
        result: RestResult,
    ) -> Self {
        Self { verb, path, operation, method, summary: None, waits: false, result }
    }

    const fn waiting(self) -> Self {
        Self { waits: true, ..self }
    }
}

/// The paths. The pages serve the log and the files.
pub(super) const PATHS: [RestPath; 6] = [
    RestPath::new("post", "/jobs", "submitJob", "job.submit", RestResult::Created).waiting(),
    RestPath::new("post", "/jobs/{id}/tell", "tellJob", "job.tell", RestResult::Document),
    RestPath::new("get", "/jobs/{id}", "getJob", "job.get", RestResult::Document).waiting(),
    RestPath::new("get", "/jobs/{id}/output", "getJobOutput", "job.output", RestResult::Bytes),
    RestPath {
        summary: Some("Returns the log of a job as text."),
        ..RestPath::new("get", "/jobs/{id}/log", "getJobLog", "job.log", RestResult::Text)
    },
    RestPath::new("get", "/jobs/{id}/files/{name}", "getJobFile", "job.file", RestResult::File),
];
