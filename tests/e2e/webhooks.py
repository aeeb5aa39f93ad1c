"""Sends a delivery as a service signs it: SENDER URL SECRET BODY [age=SECONDS] [NAME:VALUE ...]. Prints the status and the answer."""

import base64
import hashlib
import hmac
import json
import sys
import time
import urllib.error
import urllib.request

sender, url, secret, body, *more = sys.argv[1:]
data = body.encode()
age = next((int(word[4:]) for word in more if word.startswith("age=")), 0)
now = str(int(time.time()) - age)


def mac(text):
    return hmac.new(secret.encode(), text, hashlib.sha256)


headers = {"Content-Type": "application/json"}
if sender == "github":
    # https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries
    headers["X-Hub-Signature-256"] = "sha256=" + mac(data).hexdigest()
elif sender == "gitlab":
    # https://docs.gitlab.com/user/project/integrations/webhooks/
    headers["X-Gitlab-Token"] = secret
elif sender == "stripe":
    # https://docs.stripe.com/webhooks/signature; a replaced secret signs as well.
    headers["Stripe-Signature"] = f"t={now},v1={'0' * 64},v1={mac(now.encode() + b'.' + data).hexdigest()},v0=x"
elif sender == "slack":
    # https://docs.slack.dev/authentication/verifying-requests-from-slack
    headers["X-Slack-Request-Timestamp"] = now
    headers["X-Slack-Signature"] = "v0=" + mac(b"v0:" + now.encode() + b":" + data).hexdigest()
elif sender == "shopify":
    # https://shopify.dev/docs/apps/build/webhooks/subscribe/https
    headers["X-Shopify-Hmac-Sha256"] = base64.b64encode(mac(data).digest()).decode()
elif sender == "timed":
    headers["X-Time"] = now
    headers["X-Signature"] = mac(now.encode() + b"." + data).hexdigest()
headers.update(word.split(":", 1) for word in more if ":" in word)
request = urllib.request.Request(url, data=data, headers=headers, method="POST")
try:
    with urllib.request.urlopen(request, timeout=60) as answer:
        status, text = answer.status, answer.read().decode()
except urllib.error.HTTPError as error:
    status, text = error.code, error.read().decode()
print(json.dumps({"status": status, "text": text}))
