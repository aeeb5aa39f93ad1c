"""The worker loop of the old dispatcher protocol, with its stop queue.

old_worker.py SOCKET WORKER [if-exists]

With `if-exists` it replies as the loop of the document does: only if the reply queue exists.
WORKER is a name, or the whole key of a work queue with another of the older names.
"""
import subprocess
import sys
import time

import redis

link = redis.Redis(unix_socket_path=sys.argv[1], decode_responses=True)
queue = sys.argv[2] if ":" in sys.argv[2] else f"hero:work_queue:{sys.argv[2]}"
stops = f"hero:stop_queue:{queue.rsplit(':', 1)[1]}"


def execute(job_id, script):
    child = subprocess.Popen(["bash", "-c", script], stdout=subprocess.PIPE, text=True)
    while child.poll() is None:
        if link.llen(stops) > 0 and job_id in link.lrange(stops, 0, -1):
            child.kill()
            child.wait()
            link.hset(f"hero:job:{job_id}", mapping={"status": "error", "error": "stopped_by_request"})
            link.lrem(stops, 1, job_id)
            return None
        time.sleep(0.002)
    return child.stdout.read().rstrip("\n")


print("serves", flush=True)
while True:
    popped = link.blpop([queue], timeout=1)
    if popped is None:
        continue
    job_id = popped[1]
    job = link.hgetall(f"hero:job:{job_id}")
    link.hset(f"hero:job:{job_id}", "status", "started")
    if link.llen(stops) > 0 and link.lpop(stops) == job_id:
        link.hset(f"hero:job:{job_id}", mapping={"status": "error", "error": "stopped"})
        continue
    result = execute(job_id, job.get("script", ""))
    if result is None:
        continue
    link.hset(f"hero:job:{job_id}", mapping={"status": "finished", "output": result})
    if "if-exists" in sys.argv and not link.exists(f"hero:reply:{job_id}"):
        continue
    link.lpush(f"hero:reply:{job_id}", result)
    link.expire(f"hero:reply:{job_id}", 60)
