#: child writes after the end
import subprocess
subprocess.Popen(["/bin/sh", "-c", "sleep 0.3; echo later"])
print("now")
#: output goes through a child
import os, subprocess, sys
child = subprocess.Popen(["/bin/sed", "s/^/> /"], stdin=subprocess.PIPE)
os.dup2(child.stdin.fileno(), 1)
child.stdin.close()
print("through")
#: error goes through a child and the script fails
import os, subprocess, sys
child = subprocess.Popen(["/bin/sed", "-u", "s/^/E: /"], stdin=subprocess.PIPE, stdout=2)
os.dup2(child.stdin.fileno(), 2)
child.stdin.close()
sys.exit("no such thing")
#: fork writes after its parent
import os, time
if os.fork() == 0:
    time.sleep(0.3)
    print("child", flush=True)
    os._exit(0)
print("parent", flush=True)
os._exit(0)
#: daemon with its own session writes after the end
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(0.3)
        os.write(1, b"daemon\n")
        os._exit(0)
    os._exit(0)
os.wait()
print("started")
