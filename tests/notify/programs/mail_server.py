"""A mail server of Python's library: writes each mail to a file of the folder, in order. It knows no address gone@…, and
writes each attempt to send there into the file `refused`. Usage: mail_server.py FOLDER [PORT]"""
import asyncore
import json
import os
import smtpd
import sys

FOLDER = sys.argv[1]


class Channel(smtpd.SMTPChannel):
    def smtp_RCPT(self, arg):
        if "gone@" not in arg:
            return super().smtp_RCPT(arg)
        with open(os.path.join(FOLDER, "refused"), "a") as file:
            file.write(arg + "\n")
        return self.push("550 5.1.1 no such user")


class Server(smtpd.SMTPServer):
    channel_class = Channel

    def process_message(self, peer, sender, recipients, data, **options):
        number = len([name for name in os.listdir(FOLDER) if name.endswith(".json")])
        name = os.path.join(FOLDER, "%06d" % number)
        with open(name, "w") as file:
            json.dump({"from": sender, "to": recipients, "body": data.decode()}, file)
        os.rename(name, name + ".json")


server = Server(("127.0.0.1", int(sys.argv[2]) if len(sys.argv) > 2 else 0), None)
with open(os.path.join(FOLDER, "port.new"), "w") as file:
    file.write(str(server.socket.getsockname()[1]))
os.rename(os.path.join(FOLDER, "port.new"), os.path.join(FOLDER, "port"))
asyncore.loop()
