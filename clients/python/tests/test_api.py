"""The clients over the API, against the daemon whose API is at HERO_TEST_API."""

from __future__ import annotations

import asyncio
import os
import unittest
from typing import Any

from verbs import PATIENCE, Blocking, Verbs

from hero_client import AsyncClient, Client, InvalidJob, JobFailed, JobSpec, NoSuchJob, WrongState

URL = os.environ["HERO_TEST_API"]


class OverApi(Verbs):
    """What only the clients over the API do."""

    def test_a_failed_job_is_retried_listed_and_deleted(self: Any) -> None:
        spec = JobSpec("python", "raise SystemExit(3)", retries=0, name="fails")
        with self.assertRaises(JobFailed) as raised:
            self.client.run(spec, timeout=PATIENCE)
        job_id = raised.exception.job.id
        self.assertEqual(raised.exception.job.exit_code, 3)
        self.client.retry(job_id)
        with self.assertRaises(JobFailed):
            self.client.wait(job_id, timeout=PATIENCE)
        listed = {job.id: job for job in self.client.list(status="error", script_type="python").jobs}
        self.assertEqual((listed[job_id].name, listed[job_id].status), ("fails", "error"))
        named = {one: [job.id for job in self.client.list(name=one).jobs] for one in ("fails", "nobody")}
        self.assertEqual((job_id in named["fails"], named["nobody"]), (True, []))
        self.client.delete(job_id)
        with self.assertRaises(NoSuchJob):
            self.client.get(job_id)

    def test_a_job_is_given_files_and_leaves_some(self: Any) -> None:
        script = (
            "import os, shutil, sys\n"
            "shutil.copy(os.environ['HERO_INPUT_DIR'] + '/a', os.environ['HERO_OUTPUT_DIR'] + '/b')\n"
            "print(sys.stdin.read())"
        )
        job = self.client.run(JobSpec("python", script), PATIENCE, inputs={"a": b"\xff\0"}, stdin=b"given")
        self.assertEqual(job.output, "given")
        found = [(file.name, file.size, file.kind) for file in self.client.files(job.id)]
        self.assertEqual(found, [("b", 2, "output"), ("a", 2, "input"), ("-", 5, "stdin")])
        self.assertEqual(self.client.file(job.id, "b"), b"\xff\0")
        with self.assertRaises(NoSuchJob):
            self.client.file(job.id, "c")
        large = bytes(range(256)) * 10_000
        script = "import os; open(os.environ['HERO_OUTPUT_DIR'] + '/a b', 'wb').write(bytes(range(256)) * 10_000)"
        job = self.client.run(JobSpec("python", script), PATIENCE)
        self.assertEqual(self.client.file(job.id, "a b"), large)
        other = self.client.submit(JobSpec("python", "print(1)"), inputs={"a": b"1"})
        self.client.wait(other, timeout=PATIENCE)

    def test_a_list_has_pages(self: Any) -> None:
        ids = set(self.client.batch(JobSpec("osis", str(number)) for number in range(5)))
        for job_id in ids:
            self.client.wait(job_id, timeout=PATIENCE)
        cursor, found = None, set()
        while True:
            page = self.client.list(script_type="osis", limit=2, cursor=cursor)
            self.assertLessEqual(len(page.jobs), 2)
            found |= {job.id for job in page.jobs}
            cursor = page.next
            if cursor is None:
                break
        self.assertLessEqual(ids, found)

    def test_a_running_job_is_not_deleted_and_not_retried(self: Any) -> None:
        job_id = self.client.submit(JobSpec("osis", "loop {}"))
        self.until(job_id, "started")
        for call in (self.client.delete, self.client.retry):
            with self.assertRaises(WrongState):
                call(job_id)
        self.client.stop(job_id)

    def test_a_batch_with_a_bad_job_submits_none(self: Any) -> None:
        jobs = [JobSpec("osis", "1", id=f"none-{id(self)}"), JobSpec("osis", "1", timeout=10**9)]
        with self.assertRaisesRegex(InvalidJob, "job 2 of the batch"):
            self.client.batch(jobs)
        with self.assertRaises(NoSuchJob):
            self.client.get(jobs[0].id)

    def test_a_unique_key_gives_the_first_job(self: Any) -> None:
        spec = JobSpec("osis", "loop {}", unique_key=f"key-{id(self)}")
        first = self.client.submit(spec)
        self.assertEqual(self.client.submit(spec), first)
        self.client.stop(first)


class WithoutAsyncio(OverApi, unittest.TestCase):
    def open(self) -> Any:
        return Client(URL)


class WithAsyncio(OverApi, unittest.TestCase):
    def open(self) -> Any:
        self.loop = asyncio.new_event_loop()
        self.addCleanup(self.loop.close)
        return Blocking(self.loop, AsyncClient(URL))


if __name__ == "__main__":
    unittest.main()
