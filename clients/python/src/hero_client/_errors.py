"""The errors of the clients. All of them are a HeroError."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

if TYPE_CHECKING:
    from ._jobs import Job


class HeroError(Exception):
    """The base of all errors of this package."""


class InvalidJob(HeroError, ValueError):
    """A setting of a job is not legal, or the daemon rejected the job. Nothing was submitted."""


class NoSuchJob(HeroError, LookupError):
    """No job has this id: it never existed, was deleted, or its retention is over."""

    def __init__(self, job_id: str) -> None:
        super().__init__(f"there is no job {job_id}")
        self.job_id = job_id


class IdTaken(HeroError):
    """Another job has this id already. Nothing was submitted."""

    def __init__(self, job_id: str) -> None:
        super().__init__(f"cannot submit job {job_id}: another job has this id")
        self.job_id = job_id


class JobFailed(HeroError):
    """A job ended in `error`. `job` has its error and attempts."""

    def __init__(self, job: Job) -> None:
        super().__init__(f"job {job.id} failed: {job.error}")
        self.job = job


class WaitTimeout(HeroError, TimeoutError):
    """The time to wait is over and the job has not ended. The job goes on."""

    def __init__(self, job_id: str, seconds: float) -> None:
        super().__init__(f"job {job_id} has not ended after {seconds:g} s; it goes on")
        self.job_id = job_id


class WrongState(HeroError):
    """The state of a job does not allow this: it has ended, or it runs."""


class NotPermitted(HeroError, PermissionError):
    """The caller is not known, or may not do this."""


class Unreachable(HeroError, ConnectionError):
    """Redis or the API does not answer. A call that changes something may have had its effect."""


class NeedsApi(HeroError, NotImplementedError):
    """The protocol in Redis cannot do this; the API can."""

    def __init__(self, verb: str, why: str) -> None:
        super().__init__(f"{verb} needs the API, because {why}; use Client in place of RedisClient")
        self.verb = verb


class ApiError(HeroError):
    """The API answered with an error that has no class of its own. `code` is the code of JSON-RPC."""

    def __init__(self, code: int, message: str, data: Optional[Any] = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data
