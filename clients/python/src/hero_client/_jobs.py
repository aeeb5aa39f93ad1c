"""What a job is to a program: its settings, its record, and what happens to it."""

from __future__ import annotations

import json
import re
import uuid
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from typing import Any, Dict, Mapping, Optional, Sequence, Union

from ._errors import InvalidJob

Duration = Union[int, float, timedelta, str]
"""Seconds, a timedelta, or a text as on the command line: `5s`, `10m`."""

_DURATION = re.compile(r"([0-9]+)(ms|s|m|h|d)\Z")
_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}

_SHARD = re.compile(r"s[1-9][0-9]*-")
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
_TYPE = re.compile(r"[a-z][a-z0-9_]{0,31}\Z")
_GROUP = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}\Z")

ENDED = frozenset({"finished", "error"})
"""The states that a job has at its end."""


@dataclass(frozen=True)
class JobSpec:
    """A job to submit. Only the script type and the script are needed, or `uses`; docs/jobs.md of Hero explains
    every setting."""

    script_type: str = ""
    script: str = ""
    id: Optional[str] = None
    """A random UUID without one."""
    name: Optional[str] = None
    """What people see in lists."""
    caller_id: Optional[str] = None
    context_id: Optional[str] = None
    extension: Optional[str] = None
    group: Optional[str] = None
    instance: Optional[int] = None
    where: Optional[str] = None
    fallback: Optional[str] = None
    """`none`, `group` or `type`."""
    priority: Optional[int] = None
    """0 urgent, 1 normal, 2 background."""
    timeout: Optional[Duration] = None
    """The longest time of one attempt."""
    retries: Optional[int] = None
    """Attempts after the first."""
    backoff: Optional[str] = None
    """The waits before retries: `10s`, or `10s..5m`, which doubles up to the longer one."""
    retry_if: Optional[str] = None
    """The exit codes that are retried, such as `1,64-78`."""
    discard_if: Optional[str] = None
    """The exit codes that are never retried, such as `65`."""
    memory: Optional[str] = None
    """The memory of each process, such as `512MiB`, as far as its type allows."""
    job_memory: Optional[str] = None
    """The memory of the job as a whole, as far as its type allows."""
    cpu: Optional[Duration] = None
    """The processor time of each process, as far as its type allows."""
    network: Optional[str] = None
    """`none`, `all`, or TCP ports such as `443,53`, as far as its type allows."""
    concurrent: Optional[bool] = None
    log_path: Optional[str] = None
    env_vars: Mapping[str, str] = field(default_factory=dict)
    tags: Sequence[str] = ()
    """Words to find it by in lists."""
    args: Sequence[str] = ()
    """The arguments of a script that is a process; in Rhai the array `args`."""
    params: Mapping[str, Any] = field(default_factory=dict)
    """The parameters of the script, any values of JSON: `hero.params`, in Rhai the map `params`."""
    secrets: Sequence[str] = ()
    """Secrets of the actor's machine: `NAME`, `VARIABLE=NAME` or `file:NAME`."""
    prerequisites: Sequence[str] = ()
    """Ids of jobs that must finish before. In a graph, names of its jobs too."""
    after_any: Sequence[str] = ()
    """Ids of jobs that must end before, finished or failed. In a graph, names of its jobs too."""
    prerequisite_names: Mapping[str, str] = field(default_factory=dict)
    run_at: Optional[datetime] = None
    """With a time zone."""
    expires: Optional[Duration] = None
    """How long after its submission, or `run_at`, it may start; later it ends as expired."""
    expect_within: Optional[Duration] = None
    """How long after its submission, or `run_at`, it is expected to end; later it is marked as late."""
    slow_after: Optional[Duration] = None
    """How long an attempt may run before it is marked as slow."""
    unique_key: Optional[str] = None
    unique_for: Optional[Duration] = None
    """How long after its submission a job that finished still holds its unique key."""
    unique_by: Optional[str] = None
    """`key`, `script` or `params`; the last two only over the API, which makes the key."""
    on_duplicate: Optional[str] = None
    """`return`, `replace` or `reject`; over the API."""
    debounce: Optional[Duration] = None
    """How long to wait for a later job with the same unique key, which runs in place of this one; only over the
    API: RedisClient raises NeedsApi."""
    debounce_max: Optional[Duration] = None
    """How long at most jobs replace each other before one runs."""
    limit_key: Optional[str] = None
    shard_key: Optional[str] = None
    """Jobs with the same key are on the same shard; only over the API, which chooses the shard: RedisClient
    raises NeedsApi."""
    traceparent: Optional[str] = None
    """Its place in a trace, as W3C's trace context has it."""
    signature: Optional[str] = None
    """Its signature, `KEY TIME SIGNATURE`; docs/protocol.md says what is signed. It needs an id."""
    retention: Optional[Duration] = None
    """How long the job is kept after its end."""
    output_overflow: Optional[str] = None
    """`truncate` or `fail`: what becomes of an output that is too large."""
    durable: Optional[bool] = None
    """Whether the submission and the end are confirmed by the disk of Redis or its replicas (`redis.ack`); only
    over the API: RedisClient raises NeedsApi."""
    may_fail: Optional[bool] = None
    """Whether its failure counts for nothing in its graph or batch, whose jobs after it run then as well."""
    reply: Optional[bool] = None
    reply_format: Optional[str] = None
    uses: Optional[str] = None
    """The published script that gives the text and the type, `NAME` or `NAME@VERSION`; only over the API: RedisClient
    raises NeedsApi."""
    script_digest: Optional[str] = None
    """The SHA-256 that the text of the published script must have."""
    notify: Sequence[str] = ()
    """The names of the notifications that tell of the job, `[notify.NAME]` of hero.toml."""

    def settings(self) -> Dict[str, Any]:
        """Returns what is set, as JSON of the API has it. Raises InvalidJob."""
        found: Dict[str, Any] = {}
        for one in fields(self):
            value = getattr(self, one.name)
            if value is None or (one.name in _MANY and not value):
                continue
            if one.name in ("script", "script_type") and not value and self.uses is not None:
                continue
            found[one.name] = _plain(one.name, value)
        _check(found)
        return found

    def hash(self) -> Dict[str, str]:
        """Returns what is set as fields of the job's hash in Redis. Raises InvalidJob."""
        return {name: _text(name, value) for name, value in self.settings().items()}

    def with_id(self, begin: str = "") -> JobSpec:
        """Returns the same job with an id, which begins so if it had none."""
        return self if self.id is not None else replace(self, id=begin + str(uuid.uuid4()))


_MANY = frozenset(
    {"args", "tags", "params", "secrets", "notify", "env_vars", "prerequisites", "after_any", "prerequisite_names"}
)
_DURATIONS = frozenset({"timeout", "cpu", "retention", "expires", "expect_within", "slow_after", "unique_for", "debounce", "debounce_max"})


def _plain(name: str, value: Any) -> Any:
    if name in _DURATIONS:
        seconds = seconds_of(name, value)
        if not seconds > 0:
            raise InvalidJob(f"{name} is {value!r}: give a time above 0")
        # The daemon counts in milliseconds.
        millis = round(seconds * 1000)
        return millis // 1000 if millis % 1000 == 0 else millis / 1000
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise InvalidJob(f"{name} has no time zone: give one, such as timezone.utc")
        return value.isoformat()
    if name in ("env_vars", "params", "prerequisite_names"):
        return dict(value)
    if name in _MANY:
        if isinstance(value, str):
            raise InvalidJob(f"{name} is a text: give a list of {'texts' if name in ('args', 'secrets', 'tags', 'notify') else 'ids'}")
        return list(value)
    return value


def seconds_of(name: str, value: Any) -> float:
    """Returns a time in seconds. Raises InvalidJob for what is none."""
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, str):
        read = _DURATION.match(value)
        if read is not None:
            return int(read[1]) * _UNITS[read[2]]
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    raise InvalidJob(f"{name} is {value!r}: give seconds, a timedelta, or a text such as '5s'")


def _text(name: str, value: Any) -> str:
    if name in _DURATIONS:
        return str(value) if isinstance(value, int) else f"{round(value * 1000)}ms"
    if name == "reply":
        return "1" if value else "0"
    if isinstance(value, (dict, list, bool)):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def _check(settings: Mapping[str, Any]) -> None:
    """Checks what becomes part of a key or decides the queue; the daemon checks the rest."""
    if not settings.get("script", settings.get("uses")):
        raise InvalidJob("the script is empty")
    if "script_type" in settings and not _TYPE.match(settings["script_type"]):
        raise InvalidJob(f"script_type `{settings['script_type']}` is no name of a script type")
    if "id" in settings:
        checked_id(settings["id"])
    group = settings.get("group")
    if group is not None and not _GROUP.match(group):
        raise InvalidJob(f"group `{group}` is no name of a group")
    instance = settings.get("instance")
    if instance is not None and instance not in range(1, 65536):
        raise InvalidJob(f"instance is {instance!r}: give a number from 1 to 65535")
    if settings.get("where") is not None and (group is not None or instance is not None):
        raise InvalidJob("where cannot stand beside a group or an instance, which are labels")
    if settings.get("priority") not in (None, 0, 1, 2):
        raise InvalidJob(f"priority is {settings['priority']!r}: give 0, 1 or 2")


def checked_id(job_id: str) -> str:
    """Returns the id. Raises InvalidJob if no job can have it."""
    if not _ID.match(job_id):
        raise InvalidJob(f"`{job_id}` is no id of a job: give letters, digits, `_` and `-`, at most 64")
    return job_id


def resolved(graph: Mapping[str, JobSpec]) -> Dict[str, JobSpec]:
    """Returns the jobs of a graph with ids in place of names; each keeps the names of its
    prerequisites. Raises InvalidJob for jobs that wait for each other."""
    # A graph is on one shard, and so are the jobs that it waits for: their ids begin with its number.
    known = (one for spec in graph.values() for one in (*spec.prerequisites, *spec.after_any) if one not in graph)
    told = next(map(_SHARD.match, known), None)
    jobs = {name: spec.with_id(told.group() if told else "") for name, spec in graph.items()}

    def with_ids(spec: JobSpec) -> JobSpec:
        names = dict(spec.prerequisite_names)
        for known in (*spec.prerequisites, *spec.after_any):
            if known in jobs:
                names[known] = str(jobs[known].id)
        return replace(
            spec,
            prerequisites=[names.get(one, one) for one in spec.prerequisites],
            after_any=[names.get(one, one) for one in spec.after_any],
            prerequisite_names=names,
        )

    refuse_cycle(graph)
    return {name: with_ids(replace(spec, name=spec.name or name)) for name, spec in jobs.items()}


def refuse_cycle(graph: Mapping[str, JobSpec]) -> None:
    """Raises InvalidJob for jobs that wait for each other."""
    left = {
        name: {one for one in (*spec.prerequisites, *spec.after_any) if one in graph} for name, spec in graph.items()
    }
    while left:
        free = {name for name, after in left.items() if not after}
        if not free:
            raise InvalidJob(f"the jobs {', '.join(sorted(left))} of the graph wait for each other")
        left = {name: after - free for name, after in left.items() if name not in free}


@dataclass(frozen=True)
class Job:
    """A job as it was when it was read."""

    id: str
    status: str
    """`created`, `waiting_for_prerequisites`, `scheduled`, `dispatched`, `started`, `finished` or
    `error`."""
    script_type: str = ""
    name: str = ""
    output_bytes: Optional[bytes] = None
    """The output of a finished job, any bytes."""
    error: Optional[str] = None
    """Why it ended in `error`, or why its last attempt failed."""
    exit_code: Optional[int] = None
    attempt: int = 0
    """Attempts so far."""
    actor: Optional[str] = None
    """The actor that runs it, or ran it last: TYPE:GROUP:INSTANCE."""
    created_at: Optional[str] = None
    started_at: Optional[str] = None
    finished_at: Optional[str] = None
    progress: Optional[float] = None
    """The latest report of its script, from 0 to 1."""
    progress_text: Optional[str] = None
    fields: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """All that was read, by the names of the hash or of the API's result."""

    @property
    def ended(self) -> bool:
        """Whether it is finished or in error."""
        return self.status in ENDED

    @property
    def output(self) -> Optional[str]:
        """The output as text; bytes that are no UTF-8 are replaced."""
        return None if self.output_bytes is None else self.output_bytes.decode("utf-8", "replace")

    def json(self) -> Any:
        """The value of an output that is JSON. Raises ValueError for another."""
        return json.loads(self.output_bytes or b"")


@dataclass(frozen=True)
class StatusChange:
    """The job has another state. The first event of a follower is the state at its start."""

    status: str


@dataclass(frozen=True)
class LogLine:
    """A line of the job's log."""

    fd: int
    """1 for standard output, 2 for standard error."""
    line: str
    place: str
    """Its position in the log, as Redis names it: `MILLISECONDS-NUMBER`."""


@dataclass(frozen=True)
class Progress:
    """The script reported its progress."""

    progress: float
    """From 0 to 1."""
    text: str
    place: str
    """Its position in the log."""


Event = Union[StatusChange, LogLine, Progress]
"""What a follower of a job gets."""

LogEntry = Union[LogLine, Progress]


def log_entry(place: str, fields: Mapping[str, Any]) -> LogEntry:
    """Returns the entry of a log from its fields, which are texts in Redis and values of JSON in the API."""
    fd = int(fields.get("fd") or 1)
    if fd == 3:
        return Progress(float(fields.get("progress") or 0), fields.get("line", ""), place)
    return LogLine(fd, fields.get("line", ""), place)


def job_of(values: Mapping[str, Any], output: Optional[bytes]) -> Job:
    """Returns a job from its fields, which are texts in Redis and values of JSON in the API."""

    def number(name: str, kind: Any) -> Any:
        try:
            return kind(values[name]) if values.get(name) not in (None, "") else None
        except ValueError:
            return None

    def text(name: str) -> Optional[str]:
        return values.get(name) or None

    return Job(
        id=values["id"],
        status=str(values.get("status", "")).lower(),
        script_type=text("script_type") or "",
        name=text("name") or "",
        output_bytes=output,
        error=text("error"),
        exit_code=number("exit_code", int),
        attempt=number("attempt", int) or 0,
        actor=text("actor"),
        created_at=text("created_at"),
        started_at=text("started_at"),
        finished_at=text("finished_at"),
        progress=number("progress", float),
        progress_text=text("progress_text"),
        fields=values,
    )
