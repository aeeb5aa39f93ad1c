"""The clients over Redis, against the daemon on the Redis of HERO_TEST_REDIS."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import threading
import unittest
from typing import Any

import redis
from verbs import Blocking, Verbs

from hero_client import (
    AsyncRedisClient,
    HeroError,
    InvalidJob,
    JobFailed,
    JobSpec,
    NeedsApi,
    RedisClient,
    Unreachable,
    WaitTimeout,
)
from hero_client._protocol import Protocol

URL = os.environ["HERO_TEST_REDIS"]


def serve_circle(link: Any, tasks: int) -> None:
    """Does what a worker of rhailib does, with sums and products in place of Rhai."""
    for _ in range(tasks):
        task = link.blpop("rhai_tasks:of python")[1].decode()
        script, reply_to = link.hmget(f"rhai_task_details:{task}", "script", "reply_to_queue")
        try:
            outcome = {"status": "completed", "output": str(eval(script)) if b"reply" not in script else "no reply"}
        except ZeroDivisionError as error:
            outcome = {"status": "error", "error": str(error)}
        link.hset(f"rhai_task_details:{task}", mapping=outcome)
        if b"reply" not in script:
            link.lpush(reply_to, json.dumps({"task_id": task, **outcome}))


class OverRedis(Verbs):
    """What only the clients over Redis do."""

    def test_what_the_protocol_cannot_do_names_the_api(self: Any) -> None:
        for call in (self.client.list, lambda: self.client.retry("a"), lambda: self.client.delete("a")):
            with self.assertRaisesRegex(NeedsApi, "needs the API, because"):
                call()

    def test_an_unknown_type_is_refused(self: Any) -> None:
        with self.assertRaisesRegex(InvalidJob, "script_type `pyton` is not configured; the types are .*python"):
            self.client.submit(JobSpec("pyton", "1"))
        with self.assertRaisesRegex(InvalidJob, "`pyton` is not configured"):
            self.client.graph({"a": JobSpec("pyton", "1")})

    def test_a_job_goes_to_the_queue_that_it_names(self: Any) -> None:
        for settings in ({"priority": 0}, {"group": "default", "priority": 2}, {"instance": 1}):
            done = self.client.run(JobSpec("osis", "1", **settings), timeout=60)
            self.assertEqual(done.output, "1")


    def test_a_script_runs_in_a_circle_of_rhailib(self: Any) -> None:
        with contextlib.closing(redis.Redis.from_url(URL[len("redis+") :])) as link:
            worker = threading.Thread(target=serve_circle, args=(link, 3), daemon=True)
            worker.start()
            self.assertEqual(self.client.run_in_circle("of python", "6 * 7", timeout=60), "42")
            with self.assertRaisesRegex(JobFailed, "division by zero"):
                self.client.run_in_circle("of python", "1 / 0", timeout=60)
            self.assertEqual(self.client.run_in_circle("of python", "without a reply", timeout=60), "no reply")
            worker.join()
            with self.assertRaises(WaitTimeout):
                self.client.run_in_circle("nobody's", "1", timeout=0.1)

    def test_a_large_output_that_is_gone_is_an_error_unless_the_reply_has_it(self: Any) -> None:
        script = "print('x' * 100000)"
        done = self.client.run(JobSpec("python", script), timeout=60)
        key = f"hero:meta:job:output:{done.id}"
        with contextlib.closing(redis.Redis.from_url(URL[len("redis+") :])) as link:
            self.assertEqual(link.delete(key), 1)
            for call in (self.client.get, self.client.output, self.client.wait):
                with self.assertRaisesRegex(HeroError, f"key {key} is gone"):
                    call(done.id)
            # A small output that a program wrote needs no key.
            link.hset(f"hero:job:{done.id}", "output", "small")
            self.assertEqual(self.client.output(done.id), b"small")

    def test_a_large_output_is_read_while_the_memory_is_full(self: Any) -> None:
        done = self.client.run(JobSpec("python", "print('x' * 100000)"), timeout=60)
        with contextlib.closing(redis.Redis.from_url(URL[len("redis+") :])) as link:
            link.config_set("maxmemory", 1)
            try:
                self.assertEqual(self.client.output(done.id), b"x" * 100_000)
                self.assertEqual(self.client.get(done.id).output, "x" * 100_000)
            finally:
                link.config_set("maxmemory", 0)


class ThatReads(unittest.TestCase):
    """The reads of one job, with a Redis that changes it between them."""

    ENDED = [b"status", b"finished", b"output_key", b"k", b"attempt", b"1"]
    AGAIN = [b"status", b"finished", b"output_key", b"k", b"attempt", b"2"]

    def test_output_and_hash_are_of_one_run(self) -> None:
        steps = Protocol("hero").get("a")
        read: Any = next(steps)
        for answer in (self.ENDED, b"of the first run", self.AGAIN, b"of the second run"):
            self.assertIn(read[0], ("HGETALL", "GET"))
            read = steps.send(answer)
        with self.assertRaises(StopIteration) as end:
            steps.send(self.AGAIN)
        self.assertEqual((end.exception.value.output, end.exception.value.attempt), ("of the second run", 2))

    def test_a_wait_takes_a_large_output_from_the_reply(self) -> None:
        steps = Protocol("hero").wait("a", 60)
        answers: Any = [b"started", (b"hero:q:reply:a", b'{"job_id":"a","status":"finished","output":"whole"}')]
        next(steps)
        for answer in [*answers, b"finished"]:
            steps.send(answer)
        with self.assertRaises(StopIteration) as end:
            steps.send(self.ENDED)
        self.assertEqual(end.exception.value.output, "whole")


class WithoutAsyncio(OverRedis, unittest.TestCase):
    def open(self) -> Any:
        return RedisClient(URL)

    def test_an_absent_redis_is_named(self) -> None:
        with RedisClient(URL + ".absent") as client, self.assertRaisesRegex(Unreachable, "cannot reach Redis"):
            client.get("a")


class OfAnUrl(unittest.TestCase):
    def test_a_cluster_is_refused_with_the_way_out(self) -> None:
        for of in (RedisClient, AsyncRedisClient):
            with self.assertRaisesRegex(HeroError, "address of its API"):
                of("redis+cluster://127.0.0.1:6379/")


class WithAsyncio(OverRedis, unittest.TestCase):
    def open(self) -> Any:
        self.loop = asyncio.new_event_loop()
        self.addCleanup(self.loop.close)
        return Blocking(self.loop, AsyncRedisClient(URL))

    def test_an_absent_redis_is_named(self) -> None:
        with self.assertRaisesRegex(Unreachable, "cannot reach Redis"):
            Blocking(self.loop, AsyncRedisClient(URL + ".absent")).get("a")

    def test_jobs_run_at_once(self) -> None:
        async def both() -> Any:
            async with AsyncRedisClient(URL) as client:
                specs = [JobSpec("osis", str(number)) for number in range(8)]
                return [done.json() for done in await asyncio.gather(*map(client.run, specs))]

        self.assertEqual(self.loop.run_until_complete(both()), list(range(8)))

    def test_a_cancelled_wait_leaves_the_connections_in_order(self) -> None:
        async def cancelled() -> Any:
            name = "cancelled"
            async with AsyncRedisClient(URL, client_name=name) as client:
                job_id = await client.submit(JobSpec("osis", "loop {}"))
                wait = asyncio.ensure_future(client.wait(job_id))
                while not waits_in_redis(name):
                    await asyncio.sleep(0.01)
                wait.cancel()
                await asyncio.wait([wait])
                read = [await client.get(job_id) for _ in range(3)]
                await client.stop(job_id)
                return {job_id}, {job.id for job in read}

        expected, found = self.loop.run_until_complete(cancelled())
        self.assertEqual(found, expected)


def waits_in_redis(name: str) -> bool:
    """Returns whether the connection of this name is in a BLPOP."""
    with contextlib.closing(redis.Redis.from_url(URL[len("redis+") :])) as link:
        return any(one["name"] == name and one["cmd"] == "blpop" for one in link.client_list())


if __name__ == "__main__":
    unittest.main()
