"""The types and methods of Hero's API. Written by tools/api_types.py from docs/openrpc.json: do not edit.

Client.api is a Methods, AsyncClient.api an AsyncMethods: one method for each of the API, `job.get` as `job_get`.
"""

# ruff: noqa: A002, E501
from __future__ import annotations

from typing import Any, Awaitable, Callable, Dict, List, Literal, Mapping, Optional, TypedDict, Union

class _DeadLetterRequired(TypedDict):
    id: str
    """The id; a random UUID without one."""


class DeadLetter(_DeadLetterRequired, total=False):
    """A dead letter in a list; numbers and times are text."""
    actor: str
    """The actor that runs it, or ran it last."""
    attempt: str
    """Attempts so far, the running one included."""
    caller_id: str
    """The name of the submitter."""
    context_id: str
    """The context that the script runs in."""
    crashes: str
    """The number of actors that died running it."""
    created_at: str
    """The time at which it was stored."""
    error: str
    """The reason for which it ended in `error`, or for which its last attempt failed."""
    exit_code: str
    """The exit code, where a process ran."""
    finished_at: str
    """The time at which it became terminal."""
    group: str
    """The group of actors that may run it; any group without one."""
    instance: str
    """The one instance that may run it, of the group `default` unless another is given."""
    name: str
    """The name by which people know it in lists; several jobs may have the same."""
    script_type: str
    """The script type; without it the file's extension tells: .rhai osis, .py python, .v and .vsh v, or what the
    configuration says."""


class DeadPage(TypedDict):
    """A page of dead letters."""
    jobs: List[DeadLetter]
    """The dead letters. A caller with bounds may get less than a page with more to come."""
    next: Optional[str]
    """The cursor of the next page, if there may be one."""


class Deleted(TypedDict):
    """A number of deleted things."""
    deleted: int
    """The number of those that were deleted."""


class Id(TypedDict):
    """The id of a job."""
    id: str
    """The id of the job."""


class Info(TypedDict):
    """The program that answers."""
    namespace: str
    """The prefix of all keys."""
    redis: str
    """The address of Redis, without a password."""
    types: List[str]
    """The configured script types."""
    version: str
    """The version of Hero."""


class _JobRequired(TypedDict):
    id: str
    """The id; a random UUID without one."""
    priority: int
    """The priority: 0 urgent, 1 normal, 2 background."""
    script: str
    """The text to run."""
    status: JobStatus


class Job(_JobRequired, total=False):
    """A job. A field that it does not have is left out."""
    actor: str
    """The actor that runs it, or ran it last."""
    after_any: List[str]
    """A job that must end, finished or failed, before this one starts."""
    attempt: int
    """Attempts so far, the running one included."""
    attempts: List[JobAttempt]
    """The latest attempts, the running one included."""
    boot_id: str
    """The boot of that actor."""
    caller_id: str
    """The name of the submitter."""
    concurrent: bool
    """Runs beside other jobs of its instance."""
    context_id: str
    """The context that the script runs in."""
    cpu_time: float
    """The processor time of its last attempt, in seconds."""
    crashes: int
    """The number of actors that died running it."""
    created_at: str
    """The time at which it was stored."""
    dependents: List[str]
    """Jobs that wait for it, or did: the first of them."""
    dependents_more: int
    """The number of further dependents."""
    env_vars: Dict[str, str]
    """An environment variable of the script."""
    error: str
    """The reason for which it ended in `error`, or for which its last attempt failed."""
    exit_code: int
    """The exit code, where a process ran."""
    extension: str
    """The extension of the script's file, one of those of its type, such as .mjs; without it that of the submitted
    file, or the type's first."""
    fallback: str
    """The farthest that it may go if no live actor serves its instance or group: none, group or type."""
    finished_at: str
    """The time at which it became terminal."""
    group: str
    """The group of actors that may run it; any group without one."""
    held_by: str
    """The limit that holds it."""
    hostname: str
    """The machine of the actor, if the job ended in `error`."""
    instance: int
    """The one instance that may run it, of the group `default` unless another is given."""
    limit: str
    """The limit of resources that ended it."""
    limit_key: str
    """The key under which limits `per = "key"` count it."""
    log_missing: int
    """The lines of its log that Redis refused."""
    log_path: str
    """The file for its log, inside `job.log_dir` of the actor's machine."""
    memory_peak: int
    """The most memory of its last attempt, in bytes."""
    name: str
    """The name by which people know it in lists; several jobs may have the same."""
    output: str
    """The output, once it finished."""
    output_encoding: str
    """base64, if the output is not UTF-8 and is given as Base64."""
    prerequisite_names: Dict[str, str]
    """The names by which the script knows prerequisites, beside their ids."""
    prerequisites: List[str]
    """A job that must finish before this one starts."""
    progress: float
    """The progress that the script reported, from 0 to 1."""
    progress_text: str
    """The step that the script reported."""
    reply: bool
    """Pushes a reply when the job ends."""
    reply_format: str
    """The format of its reply: json, or plain, the bare output or error."""
    retention: float
    """The time to keep the job after its end, such as 7d; in seconds."""
    retries: int
    """The number of attempts after the first."""
    run_at: str
    """The earliest time to start: RFC 3339 with Z or an offset, such as 2026-12-24T18:00:00+01:00."""
    script_type: str
    """The script type; without it the file's extension tells: .rhai osis, .py python, .v and .vsh v, or what the
    configuration says."""
    signal: int
    """The signal that ended its process."""
    started_at: str
    """The start of its last attempt."""
    timeout: float
    """The longest time that one attempt may take, such as 30s; in seconds."""
    unique_key: str
    """The key that deduplicates: while a job with this key has not ended, submitting another gives its id and
    creates nothing."""
    updated_at: str
    """The time of its last change of state."""


class _JobAttemptRequired(TypedDict):
    ended: AttemptOutcome
    """The kind of its end."""
    started_at: str
    """Its start."""


class JobAttempt(_JobAttemptRequired, total=False):
    """One attempt to run a job. Times are RFC 3339."""
    actor: Optional[str]
    """The actor that ran it."""
    attempt: Optional[int]
    """Its number. Numbers begin again when a person retries the job."""
    ended_at: Optional[str]
    """The time of its end."""
    error: Optional[str]
    """The reason why it failed, cut after some hundred bytes."""
    hostname: Optional[str]
    """The machine of the actor."""


class JobPage(TypedDict):
    """A page of jobs."""
    jobs: List[ListedJob]
    """The jobs. A caller with bounds may get less than a page with more to come."""
    next: Optional[str]
    """The cursor of the next page, if there may be one."""


class _JobSettingsRequired(TypedDict):
    script: str
    """The text to run."""
    script_type: str
    """The script type; without it the file's extension tells: .rhai osis, .py python, .v and .vsh v, or what the
    configuration says."""


class JobSettings(_JobSettingsRequired, total=False):
    """The settings of a job to submit, named as the fields of its hash."""
    after_any: List[str]
    """A job that must end, finished or failed, before this one starts."""
    caller_id: str
    """The name of the submitter."""
    concurrent: bool
    """Runs beside other jobs of its instance."""
    context_id: str
    """The context that the script runs in."""
    env_vars: Dict[str, str]
    """An environment variable of the script."""
    extension: str
    """The extension of the script's file, one of those of its type, such as .mjs; without it that of the submitted
    file, or the type's first."""
    fallback: str
    """The farthest that it may go if no live actor serves its instance or group: none, group or type."""
    group: str
    """The group of actors that may run it; any group without one."""
    id: str
    """The id; a random UUID without one."""
    instance: int
    """The one instance that may run it, of the group `default` unless another is given."""
    limit_key: str
    """The key under which limits `per = "key"` count it."""
    log_path: str
    """The file for its log, inside `job.log_dir` of the actor's machine."""
    name: str
    """The name by which people know it in lists; several jobs may have the same."""
    prerequisite_names: Dict[str, str]
    """The names by which the script knows prerequisites, beside their ids."""
    prerequisites: List[str]
    """A job that must finish before this one starts."""
    priority: int
    """The priority: 0 urgent, 1 normal, 2 background."""
    reply: bool
    """Pushes a reply when the job ends."""
    reply_format: str
    """The format of its reply: json, or plain, the bare output or error."""
    retention: float
    """The time to keep the job after its end, such as 7d; in seconds."""
    retries: int
    """The number of attempts after the first."""
    run_at: str
    """The earliest time to start: RFC 3339 with Z or an offset, such as 2026-12-24T18:00:00+01:00."""
    timeout: float
    """The longest time that one attempt may take, such as 30s; in seconds."""
    unique_key: str
    """The key that deduplicates: while a job with this key has not ended, submitting another gives its id and
    creates nothing."""


class _LineRequired(TypedDict):
    fd: int
    """1 for standard output, 2 for standard error, 3 for progress."""
    id: str
    """Its place in the log."""
    line: str
    """The text, without its line end."""


class Line(_LineRequired, total=False):
    """A line of a log."""
    progress: Optional[float]
    """The progress from 0 to 1, if the line is about it."""


class Lines(TypedDict):
    """Lines of a job's log."""
    id: str
    """The id of the job."""
    lines: List[Line]
    """The lines."""
    next: Optional[str]
    """The value of `after` for the next part: set if there may be more already."""


class _ListedJobRequired(TypedDict):
    id: str
    """The id; a random UUID without one."""


class ListedJob(_ListedJobRequired, total=False):
    """A job in a list; numbers and times are text."""
    actor: str
    """The actor that runs it, or ran it last."""
    attempt: str
    """Attempts so far, the running one included."""
    caller_id: str
    """The name of the submitter."""
    context_id: str
    """The context that the script runs in."""
    created_at: str
    """The time at which it was stored."""
    error: str
    """The reason for which it ended in `error`, or for which its last attempt failed."""
    finished_at: str
    """The time at which it became terminal."""
    group: str
    """The group of actors that may run it; any group without one."""
    held_by: str
    """The limit that holds it."""
    instance: str
    """The one instance that may run it, of the group `default` unless another is given."""
    name: str
    """The name by which people know it in lists; several jobs may have the same."""
    priority: str
    """The priority: 0 urgent, 1 normal, 2 background."""
    progress: str
    """The progress that the script reported, from 0 to 1."""
    progress_text: str
    """The step that the script reported."""
    run_at: str
    """The earliest time to start: RFC 3339 with Z or an offset, such as 2026-12-24T18:00:00+01:00."""
    script_type: str
    """The script type; without it the file's extension tells: .rhai osis, .py python, .v and .vsh v, or what the
    configuration says."""
    started_at: str
    """The start of its last attempt."""
    status: JobStatus


class ObjectPage(TypedDict):
    """A page of objects."""
    next: Optional[str]
    """The value of `after` for the next page, if there may be one."""
    objects: List[Dict[str, Any]]
    """The objects, each with its `id`, `version`, `created_at` and `modified_at`."""


class _OutputRequired(TypedDict):
    output: str
    """The output: text, or Base64."""


class Output(_OutputRequired, total=False):
    """The output of a job."""
    output_encoding: Optional[str]
    """`base64` if the output is not UTF-8."""


class Problem(TypedDict):
    """A dead letter that stays as it is."""
    id: str
    """The id of the job."""
    problem: str
    """The reason."""


class Refused(TypedDict):
    """A rejected job of a batch."""
    error: str
    """The reason."""
    line: int
    """Its place in the batch, from 1."""


class Retried(TypedDict):
    """Jobs that run again."""
    jobs: List[RetriedJob]
    """The jobs, the one that was named first."""


class _RetriedJobRequired(TypedDict):
    id: str
    """The id of the job."""


class RetriedJob(_RetriedJobRequired, total=False):
    """A job that runs again, or stays as it is."""
    problem: Optional[str]
    """The reason for which it stays as it is."""
    result: Optional[str]
    """Its new state."""


class Submitted(TypedDict):
    """The jobs of a batch that were accepted, and the others."""
    ids: List[str]
    """The ids of the accepted jobs, in the order of the batch."""
    refused: List[Refused]
    """The rejected jobs."""


class Tally(TypedDict):
    """The number of dead letters that were retried or deleted."""
    done: int
    """The number of those that were."""
    left: int
    """The number of those that could not be: another job holds their unique key, a prerequisite failed or is gone,
    or they are not dead letters any more."""
    problems: List[Problem]
    """The reasons, for dead letters that were named."""


class Told(TypedDict):
    """A job and what was done to it."""
    id: str
    """The id of the job."""
    result: str
    """Its new state, or what was done: `stopped`, `told to stop`, `deleted`."""


class TypeCount(TypedDict):
    """The objects of one type in one context."""
    context: str
    """The context."""
    objects: int
    """The number of objects."""
    type: str
    """The type."""


class TypeCounts(TypedDict):
    """Numbers of objects."""
    next: Optional[str]
    """The value of `after` for the next page, if there may be one."""
    types: List[TypeCount]
    """Each type of each context."""


AttemptOutcome = Literal['running', 'finished', 'error', 'crashed', 'given_back']
"""The kind of an attempt's end."""

JobStatus = Literal['created', 'waiting_for_prerequisites', 'scheduled', 'dispatched', 'started', 'finished', 'error']
"""The state of a job. Only the server-side scripts change it, and only as [`JobStatus::may_become`] allows."""


class Methods:
    """The methods of the API."""

    def __init__(self, call: Callable[[str, Mapping[str, Any]], Any]) -> None:
        self._call = call

    def batch_submit(self, *, jobs: List[JobSettings], all_or_none: Optional[bool] = None) -> Submitted:
        """Submits many jobs: each is accepted or rejected by itself, or all or none."""
        answer: Submitted = self._call("batch.submit", _given({"jobs": jobs, "all_or_none": all_or_none}))
        return answer

    def dead_delete(self, *, ids: Optional[List[str]] = None, all: Optional[bool] = None, script_type: Optional[str] = None, error: Optional[str] = None) -> Tally:
        """Deletes dead letters: those that are named, or, with the scope admin, all that match a filter."""
        answer: Tally = self._call("dead.delete", _given({"ids": ids, "all": all, "script_type": script_type, "error": error}))
        return answer

    def dead_list(self, *, script_type: Optional[str] = None, error: Optional[str] = None, limit: Optional[int] = None, cursor: Optional[str] = None) -> DeadPage:
        """Lists dead letters type by type, the newest first, page by page."""
        answer: DeadPage = self._call("dead.list", _given({"script_type": script_type, "error": error, "limit": limit, "cursor": cursor}))
        return answer

    def dead_retry(self, *, ids: Optional[List[str]] = None, all: Optional[bool] = None, script_type: Optional[str] = None, error: Optional[str] = None) -> Tally:
        """Runs dead letters again: those that are named, or all that match a filter."""
        answer: Tally = self._call("dead.retry", _given({"ids": ids, "all": all, "script_type": script_type, "error": error}))
        return answer

    def job_clear(self, *, yes: bool) -> Deleted:
        """Deletes every job that is not running."""
        answer: Deleted = self._call("job.clear", _given({"yes": yes}))
        return answer

    def job_create(self, *, job: JobSettings) -> Id:
        """Stores a job without starting it; job.start does that."""
        answer: Id = self._call("job.create", _given({"job": job}))
        return answer

    def job_delete(self, *, id: str) -> Told:
        """Deletes a job that is not running, with its log."""
        answer: Told = self._call("job.delete", _given({"id": id}))
        return answer

    def job_get(self, *, id: str) -> Job:
        """Returns a job with all its fields."""
        answer: Job = self._call("job.get", _given({"id": id}))
        return answer

    def job_list(self, *, status: Optional[JobStatus] = None, script_type: Optional[str] = None, limit: Optional[int] = None, cursor: Optional[str] = None) -> JobPage:
        """Lists jobs by state, the newest first, page by page."""
        answer: JobPage = self._call("job.list", _given({"status": status, "script_type": script_type, "limit": limit, "cursor": cursor}))
        return answer

    def job_log(self, *, id: str, after: Optional[str] = None, since: Optional[str] = None, limit: Optional[int] = None) -> Lines:
        """Returns lines of a job's log."""
        answer: Lines = self._call("job.log", _given({"id": id, "after": after, "since": since, "limit": limit}))
        return answer

    def job_output(self, *, id: str) -> Output:
        """Returns the output of a finished job."""
        answer: Output = self._call("job.output", _given({"id": id}))
        return answer

    def job_retry(self, *, id: str, with_dependents: Optional[bool] = None) -> Retried:
        """Runs an ended job again."""
        answer: Retried = self._call("job.retry", _given({"id": id, "with_dependents": with_dependents}))
        return answer

    def job_run(self, *, job: JobSettings, wait: Optional[float] = None) -> Job:
        """Submits a job, waits for its end and returns it; if the wait ends first, as it is then."""
        answer: Job = self._call("job.run", _given({"job": job, "wait": wait}))
        return answer

    def job_start(self, *, id: str) -> Told:
        """Starts a created job."""
        answer: Told = self._call("job.start", _given({"id": id}))
        return answer

    def job_stop(self, *, id: str) -> Told:
        """Stops a job, waiting or running."""
        answer: Told = self._call("job.stop", _given({"id": id}))
        return answer

    def job_submit(self, *, job: JobSettings) -> Id:
        """Submits a job and returns its id; if a job with its unique key has not ended, that job's id."""
        answer: Id = self._call("job.submit", _given({"job": job}))
        return answer

    def job_wait(self, *, id: str, wait: Optional[float] = None) -> Job:
        """Waits for the end of a job and returns it; if the wait ends first, as it is then."""
        answer: Job = self._call("job.wait", _given({"id": id, "wait": wait}))
        return answer

    def object_delete(self, *, type: str, ids: List[str], context: Optional[str] = None) -> Deleted:
        """Deletes objects of one type."""
        answer: Deleted = self._call("object.delete", _given({"type": type, "ids": ids, "context": context}))
        return answer

    def object_find(self, *, type: str, query: str, context: Optional[str] = None, limit: Optional[int] = None) -> ObjectPage:
        """Finds the objects that match a query."""
        answer: ObjectPage = self._call("object.find", _given({"type": type, "query": query, "context": context, "limit": limit}))
        return answer

    def object_get(self, *, type: str, id: str, context: Optional[str] = None) -> Dict[str, Any]:
        """Returns one object."""
        answer: Dict[str, Any] = self._call("object.get", _given({"type": type, "id": id, "context": context}))
        return answer

    def object_list(self, *, type: str, context: Optional[str] = None, after: Optional[str] = None, limit: Optional[int] = None) -> ObjectPage:
        """Lists the objects of one type by id, page by page."""
        answer: ObjectPage = self._call("object.list", _given({"type": type, "context": context, "after": after, "limit": limit}))
        return answer

    def object_types(self, *, context: Optional[str] = None, after: Optional[str] = None) -> TypeCounts:
        """Counts the objects of each type by context, page by page."""
        answer: TypeCounts = self._call("object.types", _given({"context": context, "after": after}))
        return answer

    def system_info(self) -> Info:
        """Returns the version, the address of Redis and the script types."""
        answer: Info = self._call("system.info", _given({}))
        return answer


class AsyncMethods:
    """The methods of the API for asyncio."""

    def __init__(self, call: Callable[[str, Mapping[str, Any]], Awaitable[Any]]) -> None:
        self._call = call

    async def batch_submit(self, *, jobs: List[JobSettings], all_or_none: Optional[bool] = None) -> Submitted:
        """Submits many jobs: each is accepted or rejected by itself, or all or none."""
        answer: Submitted = await self._call("batch.submit", _given({"jobs": jobs, "all_or_none": all_or_none}))
        return answer

    async def dead_delete(self, *, ids: Optional[List[str]] = None, all: Optional[bool] = None, script_type: Optional[str] = None, error: Optional[str] = None) -> Tally:
        """Deletes dead letters: those that are named, or, with the scope admin, all that match a filter."""
        answer: Tally = await self._call("dead.delete", _given({"ids": ids, "all": all, "script_type": script_type, "error": error}))
        return answer

    async def dead_list(self, *, script_type: Optional[str] = None, error: Optional[str] = None, limit: Optional[int] = None, cursor: Optional[str] = None) -> DeadPage:
        """Lists dead letters type by type, the newest first, page by page."""
        answer: DeadPage = await self._call("dead.list", _given({"script_type": script_type, "error": error, "limit": limit, "cursor": cursor}))
        return answer

    async def dead_retry(self, *, ids: Optional[List[str]] = None, all: Optional[bool] = None, script_type: Optional[str] = None, error: Optional[str] = None) -> Tally:
        """Runs dead letters again: those that are named, or all that match a filter."""
        answer: Tally = await self._call("dead.retry", _given({"ids": ids, "all": all, "script_type": script_type, "error": error}))
        return answer

    async def job_clear(self, *, yes: bool) -> Deleted:
        """Deletes every job that is not running."""
        answer: Deleted = await self._call("job.clear", _given({"yes": yes}))
        return answer

    async def job_create(self, *, job: JobSettings) -> Id:
        """Stores a job without starting it; job.start does that."""
        answer: Id = await self._call("job.create", _given({"job": job}))
        return answer

    async def job_delete(self, *, id: str) -> Told:
        """Deletes a job that is not running, with its log."""
        answer: Told = await self._call("job.delete", _given({"id": id}))
        return answer

    async def job_get(self, *, id: str) -> Job:
        """Returns a job with all its fields."""
        answer: Job = await self._call("job.get", _given({"id": id}))
        return answer

    async def job_list(self, *, status: Optional[JobStatus] = None, script_type: Optional[str] = None, limit: Optional[int] = None, cursor: Optional[str] = None) -> JobPage:
        """Lists jobs by state, the newest first, page by page."""
        answer: JobPage = await self._call("job.list", _given({"status": status, "script_type": script_type, "limit": limit, "cursor": cursor}))
        return answer

    async def job_log(self, *, id: str, after: Optional[str] = None, since: Optional[str] = None, limit: Optional[int] = None) -> Lines:
        """Returns lines of a job's log."""
        answer: Lines = await self._call("job.log", _given({"id": id, "after": after, "since": since, "limit": limit}))
        return answer

    async def job_output(self, *, id: str) -> Output:
        """Returns the output of a finished job."""
        answer: Output = await self._call("job.output", _given({"id": id}))
        return answer

    async def job_retry(self, *, id: str, with_dependents: Optional[bool] = None) -> Retried:
        """Runs an ended job again."""
        answer: Retried = await self._call("job.retry", _given({"id": id, "with_dependents": with_dependents}))
        return answer

    async def job_run(self, *, job: JobSettings, wait: Optional[float] = None) -> Job:
        """Submits a job, waits for its end and returns it; if the wait ends first, as it is then."""
        answer: Job = await self._call("job.run", _given({"job": job, "wait": wait}))
        return answer

    async def job_start(self, *, id: str) -> Told:
        """Starts a created job."""
        answer: Told = await self._call("job.start", _given({"id": id}))
        return answer

    async def job_stop(self, *, id: str) -> Told:
        """Stops a job, waiting or running."""
        answer: Told = await self._call("job.stop", _given({"id": id}))
        return answer

    async def job_submit(self, *, job: JobSettings) -> Id:
        """Submits a job and returns its id; if a job with its unique key has not ended, that job's id."""
        answer: Id = await self._call("job.submit", _given({"job": job}))
        return answer

    async def job_wait(self, *, id: str, wait: Optional[float] = None) -> Job:
        """Waits for the end of a job and returns it; if the wait ends first, as it is then."""
        answer: Job = await self._call("job.wait", _given({"id": id, "wait": wait}))
        return answer

    async def object_delete(self, *, type: str, ids: List[str], context: Optional[str] = None) -> Deleted:
        """Deletes objects of one type."""
        answer: Deleted = await self._call("object.delete", _given({"type": type, "ids": ids, "context": context}))
        return answer

    async def object_find(self, *, type: str, query: str, context: Optional[str] = None, limit: Optional[int] = None) -> ObjectPage:
        """Finds the objects that match a query."""
        answer: ObjectPage = await self._call("object.find", _given({"type": type, "query": query, "context": context, "limit": limit}))
        return answer

    async def object_get(self, *, type: str, id: str, context: Optional[str] = None) -> Dict[str, Any]:
        """Returns one object."""
        answer: Dict[str, Any] = await self._call("object.get", _given({"type": type, "id": id, "context": context}))
        return answer

    async def object_list(self, *, type: str, context: Optional[str] = None, after: Optional[str] = None, limit: Optional[int] = None) -> ObjectPage:
        """Lists the objects of one type by id, page by page."""
        answer: ObjectPage = await self._call("object.list", _given({"type": type, "context": context, "after": after, "limit": limit}))
        return answer

    async def object_types(self, *, context: Optional[str] = None, after: Optional[str] = None) -> TypeCounts:
        """Counts the objects of each type by context, page by page."""
        answer: TypeCounts = await self._call("object.types", _given({"context": context, "after": after}))
        return answer

    async def system_info(self) -> Info:
        """Returns the version, the address of Redis and the script types."""
        answer: Info = await self._call("system.info", _given({}))
        return answer


def _given(params: Dict[str, Any]) -> Dict[str, Any]:
    return {name: value for name, value in params.items() if value is not None}
