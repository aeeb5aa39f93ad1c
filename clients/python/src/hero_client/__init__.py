"""Submits, follows and stops jobs of Hero, a job daemon for scripts on Redis.

Client and AsyncClient speak to the API of the supervisor, and need only the standard library. RedisClient and
AsyncRedisClient speak to Redis itself, and need redis-py.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from ._api import AsyncClient, Client
from ._calls import JobFile, JobPage
from ._errors import (
    ApiError,
    HeroError,
    IdTaken,
    InvalidJob,
    JobFailed,
    NeedsApi,
    NoSuchJob,
    NotPermitted,
    Unreachable,
    WaitTimeout,
    WrongState,
)
from ._function import JobFunction, job
from ._jobs import Event, Job, JobSpec, LogEntry, LogLine, Progress, StatusChange
from ._keys import job_hash_key, reply_queue_key, work_queue_group, work_queue_instance, work_queue_type

if TYPE_CHECKING:
    from ._redis import AsyncRedisClient, RedisClient

__all__ = [
    "ApiError",
    "AsyncClient",
    "Client",
    "Event",
    "HeroError",
    "IdTaken",
    "InvalidJob",
    "Job",
    "JobFailed",
    "JobFile",
    "JobFunction",
    "JobPage",
    "JobSpec",
    "LogEntry",
    "LogLine",
    "NeedsApi",
    "NoSuchJob",
    "NotPermitted",
    "Progress",
    "StatusChange",
    "Unreachable",
    "WaitTimeout",
    "WrongState",
    "job",
    "job_hash_key",
    "reply_queue_key",
    "work_queue_group",
    "work_queue_instance",
    "work_queue_type",
]
# `from hero_client import *` imports every name, and these need redis-py.
if find_spec("redis") is not None:
    __all__ += ["AsyncRedisClient", "RedisClient"]


def __getattr__(name: str) -> Any:
    """Imports redis-py with the first use of a client over Redis."""
    if name in ("RedisClient", "AsyncRedisClient"):
        from . import _redis

        return getattr(_redis, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
