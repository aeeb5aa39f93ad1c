"""Receives webhooks: writes each request to a file of the folder, in order, and answers as the file `answer` says:
a status, and for a redirect the address behind it, else a body. While it says `hang`, requests are neither written nor
answered. Without that file it answers 200. With a folder `tls` beside its own it has the certificate in that. Usage: receiver.py FOLDER [PORT]"""
import http.server
import json
import os
import ssl
import sys
import threading
import time

FOLDER = sys.argv[1]
LOCK = threading.Lock()


def answer():
    """Returns the words of the file `answer`."""
    try:
        return open(os.path.join(FOLDER, "answer")).read().split() or ["200"]
    except FileNotFoundError:
        return ["200"]


class Handler(http.server.BaseHTTPRequestHandler):
    # Connections are kept.
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        if answer()[0] == "hang":
            open(os.path.join(FOLDER, "hangs"), "w").close()
            while answer()[0] == "hang":
                time.sleep(0.05)
            self.close_connection = True
            return
        told = {"path": self.path, "headers": {k.lower(): v for k, v in self.headers.items()}, "body": body.decode(), "from": self.client_address[1]}
        with LOCK:
            number = len([name for name in os.listdir(FOLDER) if name.endswith(".json")])
            name = os.path.join(FOLDER, "%06d" % number)
            with open(name, "w") as file:
                json.dump(told, file)
            os.rename(name, name + ".json")
        told, *rest = answer()
        self.send_response(int(told))
        is_redirect = told.startswith("3")
        for address in rest if is_redirect else []:
            self.send_header("location", address)
        text = "" if is_redirect else " ".join(rest)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def do_GET(self):
        self.do_POST()

    def log_message(self, *args):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2]) if len(sys.argv) > 2 else 0), Handler)
TLS = os.path.join(os.path.dirname(FOLDER), "tls")
if os.path.isdir(TLS):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(os.path.join(TLS, "cert.pem"), os.path.join(TLS, "key.pem"))
    server.socket = context.wrap_socket(server.socket, server_side=True)
with open(os.path.join(FOLDER, "port.new"), "w") as file:
    file.write(str(server.server_port))
os.rename(os.path.join(FOLDER, "port.new"), os.path.join(FOLDER, "port"))
server.serve_forever()
