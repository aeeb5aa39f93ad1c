#: staticafi/symbiotic#138, last line of a child that ends at once
import subprocess, sys
sys.stdout.flush()
subprocess.Popen(["/bin/sh", "-c", "printf 'line %s\\n' 1 2 3; sleep 0.1; printf 'last\\n'"])
#: datalad/datalad#3656, lines that a child has not written at its end
import subprocess
subprocess.Popen(["/bin/sh", "-c", "printf 'one\\ntwo'; sleep 0.1; echo ' three' >&2"])
#: r-lib/processx#235, program in the background
import subprocess
print("started", flush=True)
child = subprocess.Popen(["/bin/sh", "-c", "for n in 1 2 3; do echo step $n; sleep 0.05; done"])
