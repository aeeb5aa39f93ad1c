"""Tasks of rhailib, for a circle that its own workers still serve."""

from __future__ import annotations

import json
import time
import uuid
from datetime import datetime, timezone
from typing import Any, Optional

from ._errors import JobFailed, WaitTimeout
from ._jobs import Job
from ._steps import Steps

POP_SECONDS = 1.0
"""The wait of one pop, before the details are read: a worker may push no reply."""
TASK_SECONDS = 7 * 86400
"""The time after which Redis forgets a task."""


def run_in_circle(circle: str, script: str, timeout: Optional[float]) -> Steps[str]:
    """Writes a task, waits for its reply and returns its output."""
    task = str(uuid.uuid4())
    details, reply_to = f"rhai_task_details:{task}", f"rhai_reply:{task}"
    now = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
    fields = ("script", script, "status", "pending", "reply_to_queue", reply_to, "created_at", now, "updated_at", now)
    yield [
        ("HSET", details, *fields),
        ("EXPIRE", details, TASK_SECONDS),
        ("LPUSH", f"rhai_tasks:{circle}", task),
    ]
    until = None if timeout is None else time.monotonic() + timeout
    names = ("status", "output", "error", "error_msg")
    while True:
        left = POP_SECONDS if until is None else until - time.monotonic()
        if left <= 0:
            raise WaitTimeout(task, timeout or 0)
        popped = yield ("BLPOP", reply_to, max(0.01, min(left, POP_SECONDS)))
        if popped:
            status, output, *errors = (_field(popped[1], name) for name in names)
        else:
            found = yield ("HMGET", details, *names)
            status, output, *errors = (None if one is None else one.decode(errors="replace") for one in found)
        if status == "completed":
            return output or ""
        if status == "error":
            reason = next(filter(None, errors), "its worker gave no reason")
            raise JobFailed(Job(task, "error", error=reason))


def _field(reply: bytes, name: str) -> Optional[str]:
    try:
        value: Any = json.loads(reply).get(name)
    except (ValueError, AttributeError):
        return None
    return value if value is None or isinstance(value, str) else json.dumps(value)
