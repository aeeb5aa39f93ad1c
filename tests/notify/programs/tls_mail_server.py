"""A mail server with TLS and passwords: writes each mail to a file of the folder, with the user, the password, and whether it came
under TLS. The port in the file `port` has STARTTLS, the one in `implicit` TLS from the first byte. The certificate is in `tls`
beside the folder. Usage: tls_mail_server.py FOLDER"""
import base64
import json
import os
import socketserver
import ssl
import sys
import threading

FOLDER = sys.argv[1]
TLS = os.path.join(os.path.dirname(FOLDER), "tls")
CONTEXT = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
CONTEXT.load_cert_chain(os.path.join(TLS, "cert.pem"), os.path.join(TLS, "key.pem"))
LOCK = threading.Lock()


def keep(mail):
    with LOCK:
        number = len([name for name in os.listdir(FOLDER) if name.endswith(".json")])
        name = os.path.join(FOLDER, "%06d" % number)
        with open(name, "w") as file:
            json.dump(mail, file)
        os.rename(name, name + ".json")


class Session(socketserver.BaseRequestHandler):
    def handle(self):
        connection, way = self.request, "plain"
        if self.server.is_implicit:
            connection, way = CONTEXT.wrap_socket(connection, server_side=True), "implicit"
        lines = connection.makefile("rb")
        mail = {"to": [], "user": None, "password": None}

        def say(text):
            connection.sendall(text.encode() + b"\r\n")

        say("220 test")
        while line := lines.readline().decode().strip():
            word = line.upper()
            if word.startswith("EHLO"):
                say("250-test\r\n250 " + ("STARTTLS" if way == "plain" else "AUTH PLAIN"))
            elif word == "STARTTLS":
                say("220 go on")
                connection, way = CONTEXT.wrap_socket(connection, server_side=True), "starttls"
                lines = connection.makefile("rb")
            elif word.startswith("AUTH PLAIN "):
                _, mail["user"], mail["password"] = base64.b64decode(line.split()[2]).decode().split("\0")
                say("235 welcome")
            elif word.startswith("RCPT TO:"):
                mail["to"].append(line.split("<")[1].split(">")[0])
                say("250 known")
            elif word == "DATA":
                say("354 end with a point")
                body = []
                while (text := lines.readline()) != b".\r\n":
                    body.append(text.decode())
                keep({**mail, "way": way, "body": "".join(body)})
                say("250 taken")
            elif word == "QUIT":
                say("221 bye")
                return
            else:
                say("250 well")


def listen(is_implicit, name):
    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Session)
    server.daemon_threads, server.is_implicit = True, is_implicit
    threading.Thread(target=server.serve_forever).start()
    with open(os.path.join(FOLDER, name + ".new"), "w") as file:
        file.write(str(server.server_address[1]))
    os.rename(os.path.join(FOLDER, name + ".new"), os.path.join(FOLDER, name))


listen(True, "implicit")
listen(False, "port")
