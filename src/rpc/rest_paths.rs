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
}

/// The paths. The pages serve the log and the files.
pub(super) const PATHS: [RestPath; 6] = [
    RestPath {
        verb: "post",
        path: "/jobs",
        operation: "submitJob",
        method: "job.submit",
        summary: None,
        waits: true,
        result: RestResult::Created,
    },
    RestPath {
        verb: "post",
        path: "/jobs/{id}/tell",
        operation: "tellJob",
        method: "job.tell",
        summary: None,
        waits: false,
        result: RestResult::Document,
    },
    RestPath {
        verb: "get",
        path: "/jobs/{id}",
        operation: "getJob",
        method: "job.get",
        summary: None,
        waits: true,
        result: RestResult::Document,
    },
    RestPath {
        verb: "get",
        path: "/jobs/{id}/output",
        operation: "getJobOutput",
        method: "job.output",
        summary: None,
        waits: false,
        result: RestResult::Bytes,
    },
    RestPath {
        verb: "get",
        path: "/jobs/{id}/log",
        operation: "getJobLog",
        method: "job.log",
        summary: Some("Returns the log of a job as text."),
        waits: false,
        result: RestResult::Text,
    },
    RestPath {
        verb: "get",
        path: "/jobs/{id}/files/{name}",
        operation: "getJobFile",
        method: "job.file",
        summary: None,
        waits: false,
        result: RestResult::Bytes,
    },
];
