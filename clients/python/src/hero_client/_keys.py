"""The keys of a program that speaks the protocol of Redis itself."""

from __future__ import annotations

from ._jobs import checked_id

NAMESPACE = "hero"


def job_hash_key(job_id: str, namespace: str = NAMESPACE) -> str:
    """The hash of a job."""
    return f"{namespace}:job:{checked_id(job_id)}"


def reply_queue_key(job_id: str, namespace: str = NAMESPACE) -> str:
    """The list that gets the reply to a job."""
    return f"{namespace}:q:reply:{checked_id(job_id)}"


def work_queue_type(script_type: str, namespace: str = NAMESPACE) -> str:
    """The list of the jobs for any actor of a script type."""
    return f"{namespace}:q:work:type:{script_type}"


def work_queue_group(script_type: str, group: str, namespace: str = NAMESPACE) -> str:
    """The list of the jobs for a group of actors."""
    return f"{work_queue_type(script_type, namespace)}:group:{group}"


def work_queue_instance(script_type: str, group: str, instance: int, namespace: str = NAMESPACE) -> str:
    """The list of the jobs for one actor."""
    return f"{work_queue_group(script_type, group, namespace)}:inst:{instance}"
