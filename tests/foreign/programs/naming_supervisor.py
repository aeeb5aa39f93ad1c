"""The supervisor of the queue naming document, in the window of the migration (scenario C).

naming_supervisor.py SOCKET push TYPE SCRIPT PREFIX COUNT LEGACY_QUEUE     prints the ids
naming_supervisor.py SOCKET run TYPE SCRIPT LEGACY_QUEUE     run_job_and_await_result; prints the result
naming_supervisor.py SOCKET stop TYPE ID     stop_job

It stores each job, and pushes its id to the canonical queue and then to the legacy one. In SCRIPT, {id}
stands for the job's id.
"""
import json
import sys
import uuid

import redis

link = redis.Redis(unix_socket_path=sys.argv[1], decode_responses=True)


def start(job_id, script_type, script, legacy):
    link.hset(
        f"hero:job:{job_id}",
        mapping={"id": job_id, "script": script.replace("{id}", job_id), "status": "dispatched"},
    )
    link.lpush(f"hero:q:work:type:{script_type}", job_id)
    link.lpush(legacy, job_id)


def await_result(job_id):
    while True:
        popped = link.blpop([f"hero:q:reply:{job_id}"], timeout=1)
        if popped:
            reply = json.loads(popped[1])
            return reply.get("output", reply.get("error"))
        # For actors that do not use reply queues.
        job = link.hgetall(f"hero:job:{job_id}")
        if job["status"] in ("finished", "error"):
            return job.get("output", job.get("error"))


command, words = sys.argv[2], sys.argv[3:]
if command == "push":
    script_type, script, prefix, count, legacy = words
    for number in range(int(count)):
        start(f"{prefix}-{number}", script_type, script, legacy)
        print(f"{prefix}-{number}", flush=True)
elif command == "run":
    script_type, script, legacy = words
    job_id = str(uuid.uuid4())
    start(job_id, script_type, script, legacy)
    print(await_result(job_id))
elif command == "stop":
    link.lpush(f"hero:q:ctl:type:{words[0]}", words[1])
else:
    sys.exit(__doc__)
