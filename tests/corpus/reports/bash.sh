#: GDC-ConsumerEdge/automated-cluster-provisioner#71, last lines before an exit go through tee
exec > >(tee -a "$HOME/cluster.log") 2>&1
die() { echo ">>> [ERROR] Details: $1"; echo ">>> [ERROR] Skipping failure signal"; exit 1; }
echo "create cluster"
die "quota exceeded"
#: aws-samples/aws-do-eks#76, diagnosis of a failed preflight goes through tee
LOG="$HOME/preflight.log"
exec > >(tee -a "$LOG") 2>&1
echo "preflight: checking 4 nodes"
echo "FATAL: no route to node 3"
exit 1
#: cline/cline#13817, background child holds the output of an ended command
{ sleep 0.3; echo "from the background"; } &
echo "done"
#: camptocamp/devops-stack#296, option in the first line stops at an error
#!/bin/sh -e
false
echo "went on"
#: koalaman/shellcheck#1248, option in the first line of sh
#!/bin/sh -e
false
echo true
#: sclorg/container-common-scripts#60, failed test is overlooked without the option
#!/bin/bash -e
test 1 = 2
echo "all tests passed"
#: koalaman/shellcheck#466, change into a missing folder stops the script
#!/bin/bash -e
cd '/nonexitpath'
echo 'hello'
#: koalaman/shellcheck#805, two options in the first line
#!/bin/bash -ex
echo a
false
echo b
#: containers/qm#543, four options in the first line
#!/bin/bash -euvx
echo "running"
echo "$UNSET_VARIABLE"
#: kenryu42/cc-safety-net#115, carriage return in the end of a here document
cat <<EOF
body
EOF
echo after
#: rmyorston/busybox-w32#285, here document of lines with carriage returns
cat <<HERE | od -An -c
foo
bar
HERE
echo 123
#: ansible/ansible#65926, playbook that a shell starts
/usr/bin/python3 - <<'PYTHON'
import multiprocessing
context = multiprocessing.get_context("fork")
queue, lock = context.Queue(), context.Lock()
def run(host):
    with lock:
        queue.put(f"ok: [{host}]")
workers = [context.Process(target=run, args=(host,)) for host in ("a", "b")]
[worker.start() for worker in workers]
print(sorted(queue.get(timeout=30) for _ in workers))
[worker.join() for worker in workers]
PYTHON
#: ansible/ansible#43090, lock of a program in python
python3 -c 'from multiprocessing import Lock; print(Lock().acquire())'
#: celery/celery#124, worker without shared memory does not hang
cat > worker.py <<'PYTHON'
from concurrent.futures import ProcessPoolExecutor
if __name__ == "__main__":
    with ProcessPoolExecutor(1) as pool:
        print(pool.submit(pow, 2, 5).result())
PYTHON
timeout 60 python3 worker.py
#: microsoft/WSL#115, semaphore in a pipe of programs
python3 -c 'import multiprocessing; print(multiprocessing.BoundedSemaphore(2).acquire())' | tr a-z A-Z
#: rear/rear#885, messages and errors in one log
log=run.log
exec 2> >(tee -a "$log" >&2)
echo "to the screen" | tee -a "$log"
echo "an error" >&2
#: openshift/release#78746, log is read at the end of the script
trap 'echo "status $?"' EXIT
exec > >(tee -i setup-output.log) 2>&1
echo "setting up"
exit 3
#: debian-pi/raspbian-ua-netinst#340, last line before the end
exec > >(tee install.log)
for n in 1 2 3; do echo "step $n"; done
echo "installation finished"
#: containers/qm#539, trace and verbose
#!/bin/bash -evx
greeting=hello
echo "$greeting"
#: reef-technologies/cookiecutter-rt-django#177, options of sh
#!/bin/sh -ex
echo one
false
echo two
#: ansible-community/molecule-plugins#181, user of a container
set -u
test "$USER" = "$LOGNAME" && test -n "$USER" && echo named
#: devspace-sh/devspace#2743, text without a line end before the rest of its line
echo -n "Text without a newline"
sleep 0.3
echo "... finished!"
#: terramate-io/terramate#2208, question without an answer
printf 'Enter a word: '
read -r word || echo "no answer"
#: idris-lang/Idris2#2313, question as the last output
printf 'Package name: ' >&2
