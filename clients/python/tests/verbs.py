"""Each verb against the real daemon: the checks that hold for every client, with and without asyncio."""

from __future__ import annotations

import asyncio
import inspect
import time
from dataclasses import replace
from typing import Any

from hero_client import (
    IdTaken,
    InvalidJob,
    JobFailed,
    JobSpec,
    LogLine,
    NoSuchJob,
    Progress,
    StatusChange,
    WaitTimeout,
    WrongState,
    job,
)

PATIENCE = 60
"""Seconds until a test gives up a wait."""


class Blocking:
    """Gives a client of asyncio the methods of one without, so that one test tries both."""

    def __init__(self, loop: asyncio.AbstractEventLoop, client: Any) -> None:
        self._loop, self._client = loop, client

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            started = getattr(self._client, name)(*args, **kwargs)
            if not inspect.isasyncgen(started):
                return self._loop.run_until_complete(started)

            async def collect() -> Any:
                return [event async for event in started]

            return iter(self._loop.run_until_complete(collect()))

        return call


class Verbs:
    """The tests; a class with a method `open` makes them real."""

    client: Any

    def open(self) -> Any:
        """Returns a client."""

    def setUp(self) -> None:
        """Opens the client of one test."""
        self.client = self.open()

    def tearDown(self) -> None:
        """Closes it."""
        self.client.close()

    def until(self: Any, job_id: str, status: str) -> None:
        """Waits until a job has a state."""
        end = time.monotonic() + PATIENCE
        while self.client.get(job_id).status != status:
            self.assertLess(time.monotonic(), end, f"job {job_id} is not {status}")

    def test_a_job_runs_and_is_read(self: Any) -> None:
        done = self.client.run(JobSpec("osis", "40 + 2", name="the answer"), timeout=PATIENCE)
        self.assertEqual((done.status, done.output, done.json()), ("finished", "42", 42))
        again = self.client.get(done.id)
        self.assertEqual((again.script_type, again.name, again.attempt), ("osis", "the answer", 1))
        self.assertEqual(again.actor, "osis:default:1")
        self.assertTrue(again.ended and again.created_at and again.finished_at)
        self.assertEqual(self.client.output(done.id), b"42")
        self.assertEqual(self.client.wait(done.id, timeout=PATIENCE).output, "42")

    def test_bytes_of_an_output_arrive_as_they_are(self: Any) -> None:
        script = "import sys; sys.stdout.buffer.write(bytes([255, 0, 65]))"
        done = self.client.run(JobSpec("python", script), timeout=PATIENCE)
        self.assertEqual(done.output_bytes, b"\xff\x00A")
        self.assertEqual(self.client.output(done.id), b"\xff\x00A")

    def test_a_large_output_arrives_whole(self: Any) -> None:
        done = self.client.run(JobSpec("python", "print('x' * 100000)"), timeout=PATIENCE)
        self.assertEqual(len(done.output_bytes), 100_000)
        self.assertEqual(self.client.get(done.id).output, "x" * 100_000)
        self.assertEqual(self.client.output(done.id), b"x" * 100_000)

    def test_a_failed_job_raises_with_its_error(self: Any) -> None:
        spec = JobSpec("python", "raise ValueError('no tea')", retries=0)
        with self.assertRaisesRegex(JobFailed, "no tea") as raised:
            self.client.run(spec, timeout=PATIENCE)
        failed = raised.exception.job
        self.assertEqual(failed.status, "error")
        for call in (self.client.wait, self.client.output):
            with self.assertRaisesRegex(JobFailed, "no tea"):
                call(failed.id)
        self.assertIn("no tea", self.client.get(failed.id).error)

    def test_a_follower_gets_states_lines_and_progress(self: Any) -> None:
        script = 'print("one"); progress(0.5, "half"); print("two"); 1'
        job_id = self.client.submit(JobSpec("osis", script))
        events = list(self.client.follow(job_id))
        states = [event.status for event in events if isinstance(event, StatusChange)]
        lines = [(event.fd, event.line) for event in events if isinstance(event, LogLine)]
        reports = [(event.progress, event.text) for event in events if isinstance(event, Progress)]
        self.assertEqual(events[-1], StatusChange("finished"))
        self.assertEqual(len(states), len(set(states)), states)
        self.assertEqual(lines, [(1, "one"), (1, "two")])
        self.assertEqual(reports, [(0.5, "half")])
        log = self.client.log(job_id)
        self.assertEqual([entry.line for entry in log if isinstance(entry, LogLine)], ["one", "two"])

    def test_a_batch_of_a_hundred_keeps_its_order(self: Any) -> None:
        ids = self.client.batch(JobSpec("osis", f"{number} * 2") for number in range(100))
        outputs = [self.client.wait(job_id, timeout=PATIENCE).json() for job_id in ids]
        self.assertEqual(outputs, [number * 2 for number in range(100)])
        self.assertEqual(self.client.batch([]), [])

    def test_the_jobs_of_a_graph_read_each_other(self: Any) -> None:
        ids = self.client.graph(
            {
                "sum": JobSpec("osis", "INPUTS.a + INPUTS.b", prerequisites=["a", "b"]),
                "a": JobSpec("osis", '"4"'),
                "b": JobSpec("osis", '"2"'),
                "after": JobSpec("osis", '"cleaned"', after_any=["sum"]),
            }
        )
        self.assertEqual(self.client.wait(ids["sum"], timeout=PATIENCE).output, "42")
        self.assertEqual(self.client.wait(ids["after"], timeout=PATIENCE).output, "cleaned")
        with self.assertRaisesRegex(InvalidJob, "wait for each other"):
            spec = JobSpec("osis", "1")
            self.client.graph({"a": _after(spec, "b"), "b": _after(spec, "a")})

    def test_a_running_and_a_waiting_job_are_stopped(self: Any) -> None:
        runs = self.client.submit(JobSpec("osis", "loop {}"))
        waits = self.client.submit(JobSpec("osis", "1", prerequisites=[runs]))
        self.until(runs, "started")
        self.until(waits, "waiting_for_prerequisites")
        for job_id in (waits, runs):
            self.client.stop(job_id)
            with self.assertRaisesRegex(JobFailed, "stopped"):
                self.client.wait(job_id, timeout=PATIENCE)
        with self.assertRaisesRegex(WrongState, "stop"):
            self.client.stop(runs)

    def test_a_wait_that_is_over_leaves_the_job_alone(self: Any) -> None:
        job_id = self.client.submit(JobSpec("osis", "loop {}"))
        with self.assertRaisesRegex(WaitTimeout, "has not ended"):
            self.client.wait(job_id, timeout=0.05)
        self.client.stop(job_id)

    def test_an_unknown_job_is_named_in_each_error(self: Any) -> None:
        verbs = (self.client.get, self.client.wait, self.client.output, self.client.log, self.client.stop)
        for verb in (*verbs, lambda job_id: list(self.client.follow(job_id))):
            with self.assertRaisesRegex(NoSuchJob, "no-such-job"):
                verb("no-such-job")

    def test_a_taken_id_and_an_illegal_setting_are_rejected(self: Any) -> None:
        job_id = self.client.submit(JobSpec("osis", "1"))
        with self.assertRaisesRegex(IdTaken, job_id):
            self.client.submit(JobSpec("osis", "2", id=job_id))
        with self.assertRaisesRegex(InvalidJob, "script_type"):
            self.client.submit(JobSpec("Os:is", "2"))

    def test_a_function_runs_as_a_job(self: Any) -> None:
        @job(self.client, timeout=PATIENCE)
        def add(first: int, second: int = 0, *, say: str = "") -> Any:
            """Adds."""
            import math

            print("in the log")
            return {"sum": math.floor(first + second), "say": say}

        self.assertEqual(add(1, 2), {"sum": 3, "say": ""})
        self.assertEqual(add.run(40, second=2, say="é"), {"sum": 42, "say": "é"})
        done = self.client.wait(add.submit(1), timeout=PATIENCE)
        self.assertEqual((done.name, add.result(done)["sum"]), ("add", 1))
        lines = [entry.line for entry in self.client.log(done.id) if isinstance(entry, LogLine)]
        self.assertEqual(lines, ["in the log"])
        with self.assertRaisesRegex(JobFailed, "TypeError"):
            add.run("a", 1)


def _after(spec: JobSpec, *names: str) -> JobSpec:
    return replace(spec, prerequisites=names)
