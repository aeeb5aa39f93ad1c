"""The client of the rhailib sequence diagram.

rhailib_client.py SOCKET CIRCLE SCRIPT COUNT [FIELD]

As in the diagram it pushes the id first and writes the details after that. FIELD is what names the
reply queue: reply_to_queue, as the data structures have it; reply_to, as the diagram has it; or
reply_queue_name, as the workflow has it.
In SCRIPT, {n} stands for the task's number. Prints a line of JSON for each reply.
"""
import json
import sys
import time
import uuid

import redis

link = redis.Redis(unix_socket_path=sys.argv[1], decode_responses=True)
circle, script, count = sys.argv[2], sys.argv[3], int(sys.argv[4])
field = sys.argv[5] if len(sys.argv) > 5 else "reply_to_queue"

for number in range(count):
    task_id = str(uuid.uuid4())
    reply_queue = f"rhai_reply:{uuid.uuid4()}"
    began = time.monotonic()
    link.lpush(f"rhai_tasks:{circle}", task_id)
    link.hset(
        f"rhai_task_details:{task_id}",
        mapping={
            "script": script.replace("{n}", str(number)), "status": "pending",
            field: reply_queue, "created_at": str(time.time()), "client_rpc_id": str(number),
        },
    )
    popped = link.blpop([reply_queue], timeout=60)
    took_ms = (time.monotonic() - began) * 1000
    details = link.hgetall(f"rhai_task_details:{task_id}")
    link.delete(reply_queue)
    reply = popped and json.loads(popped[1])
    print(json.dumps({"id": task_id, "reply": reply, "details": details, "ms": took_ms}), flush=True)
