# A job that tells how far it has come: hero exec examples/progress.py shows a bar at a terminal.
import json
import os
import time

tell = os.fdopen(int(os.environ["HERO_FD"]), "w", buffering=1)
pages = 20
for page in range(pages):
    time.sleep(0.1)
    print(json.dumps({"progress": (page + 1) / pages, "text": f"page {page + 1}"}), file=tell)
print(json.dumps({"output": {"pages": pages}}), file=tell)
