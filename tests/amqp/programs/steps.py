"""A client of RabbitMQ with pika that does steps, JSON, and prints their results, JSON.

usage: steps.py URL STEPS

A text may be {"bytes": TEXT}: then each character is one byte, and need not be UTF-8.
"""

import json
import sys
import time
import uuid

import pika


def raw(value):
    if isinstance(value, dict) and set(value) == {"bytes"}:
        return value["bytes"].encode("latin-1")
    if isinstance(value, dict):
        return {raw_name(name): raw(of) for name, of in value.items()}
    return value


def raw_name(name):
    return name[6:].encode("latin-1") if name.startswith("bytes:") else name


def text(value):
    return value.decode("latin-1") if isinstance(value, bytes) else value


def properties(step):
    given = {name: raw(value) for name, value in step.get("properties", {}).items()}
    return pika.BasicProperties(delivery_mode=2, **given)


def publish(channel, step):
    for number in range(step.get("times", 1)):
        of = properties(step)
        if step.get("numbered"):
            of.message_id = of.correlation_id = f"{step['numbered']}{number}"
        channel.basic_publish(
            step.get("exchange", "beds.events"), raw(step["key"]), step.get("body", "").encode(), of
        )


def ask(connection, channel, step):
    """Publishes a request and waits for its answer; null if none comes in time."""
    of = properties(step)
    of.correlation_id = of.correlation_id or str(uuid.uuid4())
    of.reply_to = "amq.rabbitmq.reply-to"
    answers = []
    take = lambda _channel, _method, got, body: answers.append((got.correlation_id, body))
    tag = channel.basic_consume("amq.rabbitmq.reply-to", take, auto_ack=True)
    channel.basic_publish(
        step.get("exchange", "beds.events"), step["key"], step.get("body", "").encode(), of
    )
    end = time.monotonic() + step.get("within", 25)
    while not answers and time.monotonic() < end:
        connection.process_data_events(0.05)
    channel.basic_cancel(tag)
    if not answers:
        return None
    assert answers[0][0] == of.correlation_id, answers
    return json.loads(answers[0][1])


def taken(channel, step):
    found = []
    while True:
        method, got, body = channel.basic_get(step["queue"], auto_ack=True)
        if method is None:
            return found
        headers = {text(name): text(value) for name, value in (got.headers or {}).items()}
        found.append({
            "message_id": text(got.message_id),
            "correlation_id": text(got.correlation_id),
            "app_id": text(got.app_id),
            "traceparent": headers.get("traceparent"),
            "reason": headers.get("x-hero-reason"),
            "body": body.decode(),
        })


def counted(connection, step):
    channel = connection.channel()
    try:
        return channel.queue_declare(step["queue"], passive=True).method.message_count
    except pika.exceptions.ChannelClosedByBroker:
        return None


def do(connection, channel, step):
    match step["do"]:
        case "declare":
            channel.queue_declare(step["queue"], durable=True, arguments=step.get("arguments"))
        case "publish":
            publish(channel, step)
        case "ask":
            return ask(connection, channel, step)
        case "take":
            return taken(channel, step)
        case "count":
            return counted(connection, step)
        case "shovel":
            # As the plugin of this name moves messages: each with its properties, through the default exchange.
            # Those that are there now: what fails again returns.
            for _ in range(channel.queue_declare(step["from"], passive=True).method.message_count):
                method, got, body = channel.basic_get(step["from"])
                if method is None:
                    return None
                channel.basic_publish("", step["to"], body, got)
                channel.basic_ack(method.delivery_tag)
        case "unbind":
            channel.queue_unbind(step["queue"], step["exchange"], step["key"])
        case "delete":
            channel.queue_delete(step["queue"])
        case "delete_exchange":
            channel.exchange_delete(step["exchange"])
        case other:
            raise ValueError(other)


def main():
    _, url, steps = sys.argv
    connection = pika.BlockingConnection(pika.URLParameters(url))
    channel = connection.channel()
    channel.confirm_delivery()
    results = [do(connection, channel, step) for step in json.loads(steps)]
    connection.close()
    print(json.dumps(results))


main()
