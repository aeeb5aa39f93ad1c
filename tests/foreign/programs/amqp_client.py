"""A client of the topic exchange `beds.events`: it publishes with pika and waits for answers, and knows
nothing of Hero. Arguments: URL."""

import json
import sys
import uuid

import pika
import pika.exceptions

connection = pika.BlockingConnection(pika.URLParameters(sys.argv[1]))
channel = connection.channel()
channel.confirm_delivery()
answers = channel.queue_declare("", exclusive=True).method.queue


def ask(key, operation, template="", data=None):
    """Publishes a message, and returns the answer with its correlation id."""
    correlation_id = str(uuid.uuid4())
    properties = pika.BasicProperties(
        type=operation,
        reply_to=answers,
        correlation_id=correlation_id,
        message_id=str(uuid.uuid4()),
        delivery_mode=2,
        headers={"root": "r-1", "chain": "c-1"},
    )
    body = json.dumps({"template": template, "data": data})
    consumer = channel.consume(answers, auto_ack=True, inactivity_timeout=20)
    channel.basic_publish("beds.events", key, body, properties, mandatory=True)
    for method, got, text in consumer:
        assert method is not None, f"no answer to {key} {operation}"
        if got.correlation_id == correlation_id:
            assert got.headers["root"] == "r-1" and got.headers["chain"] == "c-1", got.headers
            channel.cancel()
            return json.loads(text)


for key in ("rec.read", "rec.write"):
    pong = ask(key, "ping")
    assert pong["ok"] and pong["result"]["key"] == key, pong
    print("ping", key)

person = {"id": "p1", "name": "Ann"}
written = ask("rec.write", "write", "person", person)
assert written == {"ok": True, "result": {"id": "p1", "version": 1}}, written
found = ask("rec.read", "fetch", "person", {"id": "p1"})
assert found["result"]["name"] == "Ann", found
print("objects")

record = {"level": "info", "message": "high tide"}
assert ask("rec.write", "write", "Logger", record)["ok"]
found = ask("rec.read", "fetch", "Logger", {"chain": "c-1"})
assert found["result"]["records"][0]["message"] == "high tide", found
print("logger")

missing = ask("rec.read", "fetch", "person", {"id": "nobody"})
assert missing["error"]["code"] == "not_found", missing
try:
    channel.basic_publish("beds.events", "no.such.key", b"{}", mandatory=True)
    print("routed")
except pika.exceptions.UnroutableError:
    print("unroutable")
connection.close()
