"""A program that submits a job with `where`, from docs/protocol.md alone.

where_client.py SOCKET ID EXPRESSION [LIST]     to LIST, or the list of the expression
"""
import hashlib
import sys

import redis

link = redis.Redis(unix_socket_path=sys.argv[1], decode_responses=True)
job_id, where = sys.argv[2:4]
own = "hero:q:work:type:bash:where:" + hashlib.sha1(where.encode()).hexdigest()
link.hset(f"hero:job:{job_id}", mapping={
    "id": job_id, "script": ":", "script_type": "bash", "status": "dispatched", "where": where})
link.rpush(sys.argv[4] if len(sys.argv) > 4 else own, job_id)
