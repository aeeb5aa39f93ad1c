"""Receives webhooks: writes each request to a file of the folder, in order, and answers as the file `answer` says:
a status, and for a redirect the address behind it. Without that file it answers 200. With a folder `tls` beside its own it has the
certificate in that. Usage: receiver.py FOLDER [PORT]"""
import http.server
import json
import os
import ssl
import sys
import threading

FOLDER = sys.argv[1]
LOCK = threading.Lock()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        told = {"path": self.path, "headers": {k.lower(): v for k, v in self.headers.items()}, "body": body.decode()}
        with LOCK:
            number = len([name for name in os.listdir(FOLDER) if name.endswith(".json")])
            name = os.path.join(FOLDER, "%06d" % number)
            with open(name, "w") as file:
                json.dump(told, file)
            os.rename(name, name + ".json")
        try:
            status, *to = open(os.path.join(FOLDER, "answer")).read().split()
        except FileNotFoundError:
            status, to = "200", []
        self.send_response(int(status))
        for address in to:
            self.send_header("location", address)
        self.end_headers()

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
