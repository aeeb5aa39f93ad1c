"""Settings, graphs and functions, without a daemon."""

from __future__ import annotations

import json
import subprocess
import sys
import unittest
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, List, Optional

import hero_client
from hero_client import (
    HeroError,
    InvalidJob,
    JobSpec,
    NeedsApi,
    job,
    job_hash_key,
    reply_queue_key,
    work_queue_group,
    work_queue_instance,
    work_queue_type,
)
from hero_client._protocol import Protocol

LIMIT = 3


class Keys(unittest.TestCase):
    def test_each_key_is_spelled_as_the_protocol_says(self) -> None:
        spelled = {
            job_hash_key("job-1"): "hero:job:job-1",
            reply_queue_key("job-1"): "hero:q:reply:job-1",
            work_queue_type("osis"): "hero:q:work:type:osis",
            work_queue_group("osis", "io"): "hero:q:work:type:osis:group:io",
            work_queue_instance("osis", "io", 3): "hero:q:work:type:osis:group:io:inst:3",
            job_hash_key("a", namespace="{hero}"): "{hero}:job:a",
        }
        for key, expected in spelled.items():
            self.assertEqual(key, expected)


class Settings(unittest.TestCase):
    def test_a_client_over_redis_refuses_a_durable_job(self) -> None:
        spec = JobSpec("osis", "1", durable=True)
        self.assertEqual(spec.settings()["durable"], True)
        for steps in (Protocol("hero").submit(spec), Protocol("hero").graph({"a": spec})):
            with self.assertRaisesRegex(NeedsApi, "durable needs the API"):
                next(steps)

    def test_a_client_over_redis_refuses_a_shard_key(self) -> None:
        spec = JobSpec("osis", "1", shard_key="acme")
        for steps in (Protocol("hero").batch([spec]), Protocol("hero").graph({"a": spec})):
            with self.assertRaisesRegex(NeedsApi, "shard_key needs the API"):
                next(steps)

    def test_settings_are_written_as_the_protocol_has_them(self) -> None:
        spec = JobSpec(
            "bash",
            "echo",
            timeout=1.5,
            retention=timedelta(minutes=1),
            concurrent=False,
            reply=False,
            env_vars={"A": "é"},
            after_any=["a", "b"],
            run_at=datetime(2030, 1, 2, tzinfo=timezone.utc),
        )
        expected = {
            "script_type": "bash",
            "script": "echo",
            "timeout": "1500ms",
            "retention": "60",
            "concurrent": "false",
            "reply": "0",
            "env_vars": '{"A": "é"}',
            "after_any": '["a", "b"]',
            "run_at": "2030-01-02T00:00:00+00:00",
        }
        self.assertEqual(spec.hash(), expected)

    def test_a_time_may_be_written_as_on_the_command_line(self) -> None:
        for text, seconds in (("5s", 5), ("1500ms", 1.5), ("2m", 120)):
            self.assertEqual(JobSpec("bash", "echo", timeout=text).settings()["timeout"], seconds)

    def test_import_of_all_names_needs_only_the_standard_library(self) -> None:
        folder = str(Path(hero_client.__file__).parent.parent)
        words = [sys.executable, "-c", "from hero_client import *; print(Client.__name__)"]
        done = subprocess.run(words, env={"PYTHONPATH": folder}, capture_output=True, text=True)
        self.assertEqual((done.stdout, done.stderr), ("Client\n", ""))

    def test_an_illegal_setting_is_named(self) -> None:
        wrong: List[Any] = [
            ({"timeout": 0}, "timeout"),
            ({"timeout": "5 s"}, "timeout"),
            ({"retention": True}, "retention"),
            ({"run_at": datetime(2030, 1, 2)}, "time zone"),
            ({"prerequisites": "a"}, "prerequisites"),
            ({"group": "a:b"}, "group"),
            ({"instance": 0}, "instance"),
            ({"priority": 3}, "priority"),
            ({"id": "a b"}, "id"),
        ]
        for settings, said in wrong:
            with self.assertRaisesRegex(InvalidJob, said):
                JobSpec("bash", "echo", **settings).hash()


class Functions(unittest.TestCase):
    def test_a_function_that_would_not_run_alone_is_rejected(self) -> None:
        here = 1

        def of_the_module(number: int) -> int:
            return number + LIMIT

        def of_the_function_around() -> int:
            return here

        def of_an_import() -> str:
            return json.dumps([one for one in range(here)])

        def in_its_default(number: int = LIMIT) -> int:
            return number

        for function in (of_the_module, of_the_function_around, of_an_import, in_its_default, lambda: 1):
            with self.assertRaisesRegex(InvalidJob, "LIMIT|here|json|plain function|cannot be read"):
                job()(function)

    def test_annotations_and_recursion_travel(self) -> None:
        @job(group="io")
        def factorial(number: Optional[int], *rest: List[Any]) -> Optional[int]:
            return 1 if not number else number * (factorial(number - 1) or 1)

        spec = factorial.spec(5)
        self.assertEqual((spec.group, spec.name, spec.script_type), ("io", "factorial", "python"))
        self.assertNotIn("@job", spec.script)
        compile(spec.script, "<job>", "exec")

    def test_arguments_must_be_json_and_fit(self) -> None:
        @job()
        def one(first: Any) -> Any:
            return first

        with self.assertRaisesRegex(InvalidJob, "arguments of one"):
            one.spec(object())
        with self.assertRaises(TypeError):
            one.spec()
        with self.assertRaisesRegex(HeroError, "names no client"):
            one.run(1)


if __name__ == "__main__":
    unittest.main()
