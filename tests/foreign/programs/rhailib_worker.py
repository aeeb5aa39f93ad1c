"""The worker of the rhailib sequence diagram. Its scripts are sums and products of whole numbers, or
with a third word scripts of bash.

rhailib_worker.py SOCKET CIRCLE [bash]
"""
import json
import subprocess
import sys
import time

import redis

link = redis.Redis(unix_socket_path=sys.argv[1], decode_responses=True)
circle = sys.argv[2]

print("serves", flush=True)
while True:
    popped = link.blpop([f"rhai_tasks:{circle}"], timeout=1)
    if popped is None:
        continue
    task_id = popped[1]
    key = f"rhai_task_details:{task_id}"
    details = link.hgetall(key)
    while not details:  # The diagram has the client push before it writes.
        time.sleep(0.001)
        details = link.hgetall(key)
    link.hset(key, "status", "processing")
    try:
        if len(sys.argv) > 3:
            output = subprocess.check_output(["bash", "-c", details["script"]], text=True).rstrip("\n")
        else:
            output = str(eval(details["script"], {"__builtins__": {}}))  # noqa: S307
        outcome = {"status": "completed", "output": output}
    except Exception as error:  # noqa: BLE001
        outcome = {"status": "error", "error": str(error)}
    link.hset(key, mapping=outcome)
    link.hincrby("test:by_rhailib_worker", task_id, 1)
    reply = details.get("reply_to_queue") or details.get("reply_to")
    if reply:
        link.lpush(reply, json.dumps({"task_id": task_id, **outcome}))
