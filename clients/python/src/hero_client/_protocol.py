"""The protocol of Hero in Redis (docs/protocol.md) without a connection: each verb is a generator that
yields commands of Redis and gets their replies, so that the clients with and without asyncio are one.

A yielded tuple is a command, a list of tuples is a transaction, and an Event goes to the follower."""

from __future__ import annotations

import base64
import hashlib
import json
import time
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from ._errors import (
    HeroError,
    IdTaken,
    InvalidJob,
    JobFailed,
    NeedsApi,
    NoSuchJob,
    NotPermitted,
    WaitTimeout,
    WrongState,
)
from ._jobs import ENDED, Job, JobSpec, LogEntry, StatusChange, checked_id, job_of, log_entry, resolved
from ._keys import job_hash_key, reply_queue_key, work_queue_group, work_queue_instance, work_queue_type
from ._steps import Steps

Command = Tuple[Any, ...]

POP_SECONDS = 1.0
"""The wait of one pop, before the hash is read: an actor may write no reply."""
READ_MILLIS = 250
"""The wait for lines of a log, before the state is read."""
LINES = 1000
"""Lines of a log in one reply."""
CHUNK = 500
"""Jobs of a batch in one transaction."""
READS = 3
"""The limit on reads of one job that changes meanwhile."""
TYPES_SECONDS = 30.0
"""The script types of the configuration are not read again within this time."""
GRAPH_MAX = 20_000
"""Jobs of a graph, which is one transaction."""


class Protocol:
    """The verbs for one namespace."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._types: List[str] = []
        self._types_until = 0.0

    def submit(self, spec: JobSpec) -> Steps[str]:
        """Stores a job and pushes its id."""
        ids = yield from self.batch([spec])
        return ids[0]

    def batch(self, specs: Iterable[JobSpec]) -> Steps[List[str]]:
        """Stores jobs and pushes their ids, all of a chunk or none."""
        specs = list(specs)
        _refuse_what_needs_the_api(specs)
        jobs = [spec.with_id() for spec in specs]
        hashes = [job.hash() for job in jobs]
        yield from self._refuse_unknown_types(jobs)
        yield from self._refuse_taken(specs)
        for start in range(0, len(hashes), CHUNK):
            yield self._stored(hashes[start : start + CHUNK])
        return [one["id"] for one in hashes]

    def graph(self, graph: Mapping[str, JobSpec]) -> Steps[Dict[str, str]]:
        """Stores the jobs of a graph and pushes their ids, all or none."""
        if len(graph) > GRAPH_MAX:
            raise InvalidJob(f"the graph has {len(graph)} jobs: at most {GRAPH_MAX} can be submitted together")
        _refuse_what_needs_the_api(graph.values())
        jobs = resolved(graph)
        hashes = {name: job.hash() for name, job in jobs.items()}
        yield from self._refuse_unknown_types(jobs.values())
        yield from self._refuse_taken(graph.values())
        if hashes:
            yield self._stored(hashes.values())
        return {name: one["id"] for name, one in hashes.items()}

    def run(self, spec: JobSpec, timeout: Optional[float]) -> Steps[Job]:
        """Submits a job and waits for its end."""
        return (yield from self._wait((yield from self.submit(spec)), timeout))

    def wait(self, job_id: str, timeout: Optional[float]) -> Steps[Job]:
        """Waits for the end of a job."""
        if (yield from self._status(job_id)) in ENDED:
            return _finished((yield from self.get(job_id)))
        return (yield from self._wait(job_id, timeout))

    def _wait(self, job_id: str, timeout: Optional[float]) -> Steps[Job]:
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            left = POP_SECONDS if until is None else until - time.monotonic()
            if left <= 0:
                raise WaitTimeout(job_id, timeout or 0)
            # Redis counts milliseconds, and 0 has no end.
            popped = yield ("BLPOP", reply_queue_key(job_id, self._namespace), max(0.01, min(left, POP_SECONDS)))
            reply = popped and popped[1]
            try:
                if (yield from self._status(job_id)) in ENDED:
                    return _finished((yield from self._read(job_id, reply)))
            except NoSuchJob:
                # Its retention may be shorter than the way of the reply.
                if reply is None:
                    raise
                return _finished(_replied(job_id, reply))

    def get(self, job_id: str) -> Steps[Job]:
        """Reads a job."""
        return (yield from self._read(job_id, None))

    def _read(self, job_id: str, reply: Optional[bytes]) -> Steps[Job]:
        """Reads a job; a large output from its reply, if there is one."""
        command = ("HGETALL", self._job(job_id))
        found = yield command
        for _ in range(READS):
            pairs = found if isinstance(found, dict) else dict(zip(found[::2], found[1::2]))
            if not pairs:
                raise NoSuchJob(job_id)
            output = pairs.get(b"output")
            is_whole = True
            if output is None and _is_named(pairs.get(b"status"), pairs.get(b"output_key")):
                output = _output_in(job_id, reply)
                if output is None:
                    output, is_whole, found = yield from self._output_beside(job_id, command, found)
            if is_whole:
                values = {_text(name): _text(value) for name, value in pairs.items() if name != b"output"}
                return job_of({**values, "id": job_id}, output)
        raise HeroError(f"cannot read job {job_id}: it changes while it is read; try again")

    def output(self, job_id: str) -> Steps[Optional[bytes]]:
        """Reads the output of a job; None until it has finished."""
        # The last two change with every run.
        fields = ("status", "output", "error", "output_key", "updated_at", "attempt")
        command = ("HMGET", self._job(job_id), *fields)
        found = yield command
        for _ in range(READS):
            status, output, error, named = found[:4]
            if status is None:
                raise NoSuchJob(job_id)
            if _state(status) == "error":
                raise JobFailed(Job(job_id, "error", error=_text(error or b"")))
            if _state(status) != "finished":
                return None
            is_whole = True
            if output is None and _is_named(status, named):
                output, is_whole, found = yield from self._output_beside(job_id, command, found)
            if is_whole:
                return output or b""
        raise HeroError(f"cannot read the output of job {job_id}: the job changes while it is read; try again")

    def _output_beside(self, job_id: str, command: Command, found: Any) -> Steps[Tuple[Any, bool, Any]]:
        """Reads the output that a hash names. Returns it, whether the hash is unchanged, and the
        hash. A transaction would do, but a Redis whose memory is full refuses even reading transactions."""
        key = self._output(job_id)
        output = yield ("GET", key)
        now = yield command
        if output is None and now == found:
            raise HeroError(f"cannot read the output of job {job_id}: its key {key} is gone; run the job again")
        return output, now == found, now

    def log(self, job_id: str) -> Steps[List[LogEntry]]:
        """Reads the log of a job."""
        yield from self._status(job_id)
        entries: List[LogEntry] = []
        while True:
            more = yield from self._lines(job_id, entries[-1].place if entries else None)
            if not more:
                return entries
            entries += more

    def follow(self, job_id: str) -> Steps[None]:
        """Yields the states of a job and the entries of its log, until its end."""
        status = yield from self._status(job_id)
        yield StatusChange(status)
        place = "0-0"
        while status not in ENDED:
            reply = yield (
                "XREAD", "COUNT", LINES, "BLOCK", READ_MILLIS, "STREAMS", self._log(job_id), place
            )  # fmt: skip
            now = yield from self._status(job_id)
            if now != status and now not in ENDED:
                yield StatusChange(now)
            for entry in _entries(reply):
                place = entry.place
                yield entry
            status = now
        # The log is complete before the job has ended.
        while True:
            more = yield from self._lines(job_id, place)
            if not more:
                break
            for entry in more:
                place = entry.place
                yield entry
        yield StatusChange(status)

    def stop(self, job_id: str) -> Steps[None]:
        """Asks for the stop of a job."""
        known = yield ("HMGET", self._job(job_id), "status", "script_type", "actor")
        status, script_type, actor = (None if one is None else _text(one) for one in known)
        if status is None:
            raise NoSuchJob(job_id)
        if status.lower() in ENDED:
            raise WrongState(f"cannot stop job {job_id}: it has ended")
        if not script_type:
            raise WrongState(f"cannot stop job {job_id}: its hash names no script_type yet; try again")
        queue = f"q:ctl:type:{script_type}"
        if status.lower() == "started" and actor and actor.count(":") == 2:
            kind, group, instance = actor.split(":")
            if (yield ("EXISTS", self._key(f"meta:actor:inst:{actor}"))):
                queue = f"q:ctl:type:{kind}:group:{group}:inst:{instance}"
        yield ("RPUSH", self._key(queue), json.dumps({"cmd": "stop", "job_id": job_id}))

    def list(self) -> Steps[Any]:
        """Raises NeedsApi."""
        raise NeedsApi("list", "the lists of jobs by state are Hero's own keys")
        yield

    def retry(self) -> Steps[Any]:
        """Raises NeedsApi."""
        raise NeedsApi("retry", "a retry and the check of the state that it leaves are one atomic step")
        yield

    def delete(self) -> Steps[Any]:
        """Raises NeedsApi."""
        raise NeedsApi("delete", "a deletion has to reach every list and every dependent of the job")
        yield

    def _stored(self, hashes: Iterable[Mapping[str, str]]) -> List[Command]:
        commands: List[Command] = []
        for one in hashes:
            fields = [word for pair in one.items() for word in pair]
            commands.append(("HSET", self._job(one["id"]), *fields, "status", "dispatched"))
            commands.append(("RPUSH", _queue(one, self._namespace), one["id"]))
        return commands

    def _refuse_unknown_types(self, jobs: Iterable[JobSpec]) -> Steps[None]:
        """Refuses a type that no supervisor has in its configuration, as the API does. Without a supervisor that tells
        its types, and for a login that may not read them, any type may be right."""
        if time.monotonic() >= self._types_until:
            try:
                self._types = yield from self._configured_types()
            except NotPermitted:
                self._types = []
            self._types_until = time.monotonic() + TYPES_SECONDS
        for job in jobs:
            if self._types and job.script_type not in self._types:
                # It may have been added since.
                self._types_until = 0.0
                known = ", ".join(self._types)
                raise InvalidJob(f"script_type `{job.script_type}` is not configured; the types are {known}")

    def _configured_types(self) -> Steps[List[str]]:
        newest = yield ("ZREVRANGE", self._key("meta:supervisor:index"), 0, 0)
        if not newest:
            return []
        presence = yield ("GET", self._key("meta:supervisor:inst:" + _text(newest[0])))
        try:
            return [str(one) for one in json.loads(presence or b"{}").get("types", [])]
        except (ValueError, AttributeError, TypeError):
            return []

    def _refuse_taken(self, specs: Iterable[JobSpec]) -> Steps[None]:
        ids = [spec.id for spec in specs if spec.id is not None]
        if not ids:
            return
        if len(set(ids)) < len(ids):
            raise InvalidJob("two of the jobs have the same id")
        found = yield [("EXISTS", self._job(job_id)) for job_id in ids]
        for job_id, exists in zip(ids, found):
            if exists:
                raise IdTaken(job_id)

    def _status(self, job_id: str) -> Steps[str]:
        status = yield ("HGET", self._job(job_id), "status")
        if status is None:
            raise NoSuchJob(job_id)
        return _state(status)

    def _lines(self, job_id: str, after: Optional[str]) -> Steps[List[LogEntry]]:
        start = f"({after}" if after else "-"
        reply = yield ("XRANGE", self._log(job_id), start, "+", "COUNT", LINES)
        return _parsed(reply or [])

    def _key(self, rest: str) -> str:
        return f"{self._namespace}:{rest}"

    def _job(self, job_id: str) -> str:
        return job_hash_key(job_id, self._namespace)

    def _output(self, job_id: str) -> str:
        return self._key("meta:job:output:" + checked_id(job_id))

    def _log(self, job_id: str) -> str:
        return self._key("meta:job:log:" + checked_id(job_id))


def _refuse_what_needs_the_api(specs: Iterable[JobSpec]) -> None:
    specs = list(specs)
    if any(spec.shard_key is not None for spec in specs):
        raise NeedsApi("shard_key", "it chooses the shard of a job")
    if any(spec.debounce is not None for spec in specs):
        raise NeedsApi("debounce", "it replaces the job that waits")
    if any(spec.uses is not None or spec.script_digest is not None for spec in specs):
        raise NeedsApi("uses", "it gives the job the text of a published script")
    if any(spec.durable for spec in specs):
        raise NeedsApi("durable", "it confirms a submission")


def _queue(job: Mapping[str, str], namespace: str) -> str:
    """The list of the most specific queue that the job names."""
    script_type, group = job["script_type"], job.get("group", "default")
    if "instance" in job:
        queue = work_queue_instance(script_type, group, int(job["instance"]), namespace)
    elif "group" in job:
        queue = work_queue_group(script_type, group, namespace)
    else:
        queue = work_queue_type(script_type, namespace)
    if "where" in job:
        queue += ":where:" + hashlib.sha1(job["where"].encode()).hexdigest()
    priority = job.get("priority", "1")
    return queue if priority == "1" else f"{queue}:prio:{priority}"


def _finished(job: Job) -> Job:
    if job.status == "error":
        raise JobFailed(job)
    return job


def _is_named(status: Optional[bytes], output_key: Optional[bytes]) -> bool:
    """Returns whether the output of a job has a key of its own: a large one."""
    return output_key is not None and status is not None and _state(status) == "finished"


def _output_in(job_id: str, reply: Optional[bytes]) -> Optional[bytes]:
    """The output in a reply; None without a reply, and for a reply that is not JSON."""
    try:
        return None if reply is None else _replied(job_id, reply).output_bytes
    except NoSuchJob:
        return None


def _replied(job_id: str, reply: bytes) -> Job:
    """The end of a job whose reply alone is left."""
    try:
        said = json.loads(reply)
        status = said["status"]
    except (ValueError, TypeError, KeyError):
        raise NoSuchJob(job_id) from None
    output = said.get("output")
    if output is not None and said.get("output_encoding") == "base64":
        output = base64.b64decode(output)
    elif output is not None:
        output = str(output).encode()
    return Job(job_id, status, output_bytes=output, error=said.get("error"))


def _entries(reply: Any) -> List[LogEntry]:
    """The entries of one stream in a reply to XREAD, which later versions of Redis may give as a map."""
    if not reply:
        return []
    entries = next(iter(reply.values())) if isinstance(reply, dict) else reply[0][1]
    if entries and isinstance(entries[0], list) and entries[0] and isinstance(entries[0][0], (list, tuple)):
        entries = entries[0]
    return _parsed(entries)


def _parsed(entries: Sequence[Any]) -> List[LogEntry]:
    found = []
    for place, pairs in entries:
        named = pairs if isinstance(pairs, dict) else dict(zip(pairs[::2], pairs[1::2]))
        fields = {_text(name): _text(value) for name, value in named.items()}
        found.append(log_entry(_text(place), fields))
    return found


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _state(value: bytes) -> str:
    return _text(value).lower()
