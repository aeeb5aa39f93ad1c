"""An actor of the canonical queue names that knows nothing but BLPOP, HSET and LPUSH.

canonical_actor.py SOCKET TYPE GROUP INSTANCE
"""
import json
import subprocess
import sys

import redis

link = redis.Redis(unix_socket_path=sys.argv[1], decode_responses=True)
script_type, group, instance = sys.argv[2:5]
of_type = f"hero:q:work:type:{script_type}"
queues = [f"{of_type}:group:{group}:inst:{instance}", f"{of_type}:group:{group}", of_type]

print("serves", flush=True)
while True:
    popped = link.blpop(queues, timeout=1)
    if popped is None:
        continue
    key = f"hero:job:{popped[1]}"
    script = link.hget(key, "script")
    link.hset(key, "status", "started")
    output = subprocess.run(["bash", "-c", script], stdout=subprocess.PIPE, text=True, check=False).stdout
    output = output.rstrip("\n")
    link.hset(key, mapping={"status": "finished", "output": output})
    link.lpush(
        f"hero:q:reply:{popped[1]}",
        json.dumps({"job_id": popped[1], "status": "finished", "output": output}),
    )
    link.expire(f"hero:q:reply:{popped[1]}", 60)
