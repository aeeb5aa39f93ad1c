"""The verbs over the API without a connection: each is a generator that yields calls and gets their results.

A yielded Call is a method of the API."""

from __future__ import annotations

import base64
import time
from dataclasses import dataclass, replace
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence

from ._errors import InvalidJob, JobFailed, WaitTimeout
from ._jobs import Job, JobSpec, LogEntry, job_of, log_entry, refuse_cycle
from ._steps import Steps

WAIT_SECONDS = 30.0
"""The wait of one call: shorter than the patience of proxies."""


@dataclass(frozen=True)
class Call:
    """A call of the API."""

    method: str
    params: Mapping[str, Any]
    seconds: float = 0
    """How long the server may wait before it answers."""


@dataclass(frozen=True)
class Download:
    """A GET of a path below the address of the API."""

    path: str
    seconds: float = 0


@dataclass(frozen=True)
class JobFile:
    """A file of a job."""

    name: str
    size: int
    """Its size in bytes."""
    kind: str
    """`output` if its script left it, `input` if it was given."""


@dataclass(frozen=True)
class JobPage:
    """A page of a list of jobs."""

    jobs: List[Job]
    next: Optional[str]
    """The `cursor` of the next page, if there may be one."""


def submit(spec: JobSpec, inputs: Optional[Mapping[str, bytes]] = None, stdin: Optional[bytes] = None) -> Steps[str]:
    """Submits a job."""
    answer = yield Call("job.submit", {"job": spec.settings(), **_given(inputs, stdin)})
    return str(answer["id"])


def run(
    spec: JobSpec,
    timeout: Optional[float],
    inputs: Optional[Mapping[str, bytes]] = None,
    stdin: Optional[bytes] = None,
) -> Steps[Job]:
    """Submits a job and waits for its end."""
    until = _until(timeout)
    seconds = _slice(until)
    given = _given(inputs, stdin)
    answer = yield Call("job.run", {"job": spec.settings(), "wait": seconds, **given}, seconds)
    job = _job(answer)
    return _finished(job) if job.ended else (yield from _waited(job.id, timeout, until))


def wait(job_id: str, timeout: Optional[float]) -> Steps[Job]:
    """Waits for the end of a job."""
    until = _until(timeout)
    # The reply may have gone to another: then the server sees the end only after a second.
    job = yield from get(job_id)
    return _finished(job) if job.ended else (yield from _waited(job_id, timeout, until))


def _waited(job_id: str, timeout: Optional[float], until: Optional[float]) -> Steps[Job]:
    while True:
        seconds = _slice(until)
        job = _job((yield Call("job.wait", {"id": job_id, "wait": seconds}, seconds)))
        if job.ended:
            return _finished(job)
        if until is not None and time.monotonic() >= until:
            raise WaitTimeout(job_id, timeout or 0)


def get(job_id: str) -> Steps[Job]:
    """Reads a job."""
    return _job((yield Call("job.get", {"id": job_id})))


def output(job_id: str) -> Steps[Optional[bytes]]:
    """Reads the output of a job."""
    job = yield from get(job_id)
    if job.ended:
        return _finished(job).output_bytes or b""
    return None


def files(job_id: str) -> Steps[List[JobFile]]:
    """Lists the files of a job."""
    answer = yield Call("job.files", {"id": job_id})
    return [JobFile(one["name"], one["size"], one["kind"]) for one in answer["files"]]


def file(job_id: str, name: str) -> Steps[bytes]:
    """Reads a file of a job."""
    answer = yield Call("job.file", {"id": job_id, "name": name})
    if "path" in answer:
        content: bytes = yield Download(answer["path"])
        return content
    return base64.b64decode(answer["content"])


def log(job_id: str) -> Steps[List[LogEntry]]:
    """Reads the log of a job."""
    return (yield from _lines(job_id, None))


def batch(specs: Iterable[JobSpec]) -> Steps[List[str]]:
    """Submits jobs, all or none."""
    jobs = [spec.settings() for spec in specs]
    if not jobs:
        return []
    answer = yield Call("batch.submit", {"jobs": jobs, "all_or_none": True})
    if answer["refused"]:
        first = answer["refused"][0]
        raise InvalidJob(f"job {first['line']} of the batch: {first['error']}; none was submitted")
    return list(answer["ids"])


def graph(jobs: Mapping[str, JobSpec]) -> Steps[Dict[str, str]]:
    """Submits jobs that wait for each other by name, all or none. The API gives them their ids."""
    refuse_cycle(jobs)
    if not jobs:
        return {}
    answer = yield Call("graph.submit", {"jobs": [_node(name, spec, jobs) for name, spec in jobs.items()]})
    return {name: str(answer["jobs"][name]) for name in jobs}


def _node(name: str, spec: JobSpec, jobs: Mapping[str, JobSpec]) -> Dict[str, Any]:
    def known(names: Sequence[str]) -> List[str]:
        return [one if one in jobs else spec.prerequisite_names.get(one, one) for one in names]

    alone = replace(spec, prerequisites=(), after_any=())
    after = {"after": known(spec.prerequisites), "after_any": known(spec.after_any)}
    return {"name": name, "job": alone.settings(), **after}


def stop(job_id: str) -> Steps[None]:
    """Stops a job."""
    yield Call("job.stop", {"id": job_id})


def retry(job_id: str, with_dependents: bool) -> Steps[None]:
    """Runs an ended job again."""
    yield Call("job.retry", {"id": job_id, "with_dependents": with_dependents})


def delete(job_id: str) -> Steps[None]:
    """Deletes a job that does not run."""
    yield Call("job.delete", {"id": job_id})


def page(query: Mapping[str, Any]) -> Steps[JobPage]:
    """Reads a page of the list of jobs."""
    answer = yield Call("job.list", {name: value for name, value in query.items() if value is not None})
    return JobPage([_job(one) for one in answer["jobs"]], answer.get("next"))


def call(method: str, params: Mapping[str, Any]) -> Steps[Any]:
    """Calls a method of the API."""
    return (yield Call(method, params))


def _lines(job_id: str, after: Optional[str]) -> Steps[List[LogEntry]]:
    entries: List[LogEntry] = []
    while True:
        params = {"id": job_id} if after is None else {"id": job_id, "after": after}
        answer = yield Call("job.log", params)
        entries += [log_entry(line["id"], line) for line in answer["lines"]]
        after = answer.get("next")
        if after is None:
            return entries


def _given(inputs: Optional[Mapping[str, bytes]], stdin: Optional[bytes]) -> Dict[str, Any]:
    """The files of a job, as the API takes them."""
    given: Dict[str, Any] = {}
    if inputs:
        given["inputs"] = {name: base64.b64encode(content).decode() for name, content in inputs.items()}
    if stdin is not None:
        given["stdin"] = base64.b64encode(stdin).decode()
    return given


def _until(timeout: Optional[float]) -> Optional[float]:
    return None if timeout is None else time.monotonic() + timeout


def _slice(until: Optional[float]) -> float:
    return WAIT_SECONDS if until is None else max(0.0, min(WAIT_SECONDS, until - time.monotonic()))


def _job(document: Mapping[str, Any]) -> Job:
    output = document.get("output")
    if output is not None:
        encoded = document.get("output_encoding") == "base64"
        output = base64.b64decode(output) if encoded else str(output).encode()
    return job_of(document, output)


def _finished(job: Job) -> Job:
    if job.status == "error":
        raise JobFailed(job)
    return job
