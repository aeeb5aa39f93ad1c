"""The supervisor of the queue naming document, in the window of the migration (scenario C).

naming_supervisor.py SOCKET TYPE SCRIPT PREFIX COUNT LEGACY_QUEUE

Stores each job, pushes its id to the canonical queue and then to the legacy one, and prints it. In
SCRIPT, {id} stands for the job's id.
"""
import sys

import redis

link = redis.Redis(unix_socket_path=sys.argv[1], decode_responses=True)
script_type, script, prefix, count, legacy = sys.argv[2:7]

for number in range(int(count)):
    job_id = f"{prefix}-{number}"
    link.hset(
        f"hero:job:{job_id}",
        mapping={"id": job_id, "script": script.replace("{id}", job_id), "status": "dispatched"},
    )
    link.lpush(f"hero:q:work:type:{script_type}", job_id)
    link.lpush(legacy, job_id)
    print(job_id, flush=True)
