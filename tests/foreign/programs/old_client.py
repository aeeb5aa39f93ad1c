"""The dispatcher's client, from the old dispatcher protocol alone.

old_client.py SOCKET run WORKER SCRIPT COUNT     run_job_and_await_result; a line of JSON for each
old_client.py SOCKET submit WORKER SCRIPT [NAME=VALUE ...]      prints the id
old_client.py SOCKET list | status ID | stop WORKER ID | logs ID

In SCRIPT, {id} stands for the job's id.
"""
import json
import sys
import uuid
from datetime import datetime, timezone

import redis

link = redis.Redis(unix_socket_path=sys.argv[1], decode_responses=True)


def queue(worker):
    return worker if ":" in worker else f"hero:work_queue:{worker}"


def submit(worker, script, **more):
    job_id = str(uuid.uuid4())
    now = datetime.now(timezone.utc).isoformat()
    fields = {
        "id": job_id, "caller_id": "old", "worker_id": worker, "context_id": "ctx",
        "script": script.replace("{id}", job_id), "timeout": "60", "retries": "0",
        "concurrent": "false", "created_at": now, "updated_at": now, "status": "dispatched",
    }
    fields.update(more)
    link.hset(f"hero:job:{job_id}", mapping=fields)
    link.lpush(queue(worker), job_id)
    return job_id


command, words = sys.argv[2], sys.argv[3:]
if command == "run":
    worker, script, count = words
    for _ in range(int(count)):
        job_id = submit(worker, script)
        reply = link.blpop([f"hero:reply:{job_id}"], timeout=60)
        print(json.dumps({"id": job_id, "reply": reply and reply[1]}), flush=True)
elif command == "submit":
    more = dict(word.split("=", 1) for word in words[2:])
    print(submit(words[0], words[1], **more))
elif command == "list":
    for key in sorted(link.keys("hero:job:*")):
        print(key[len("hero:job:"):])
elif command == "status":
    print(link.hgetall(f"hero:job:{words[0]}")["status"])
elif command == "stop":
    link.lpush(f"hero:stop_queue:{words[0]}", words[1])
elif command == "logs":
    with open(link.hgetall(f"hero:job:{words[0]}")["log_path"], encoding="utf-8") as log:
        sys.stdout.write(log.read())
else:
    sys.exit(__doc__)
