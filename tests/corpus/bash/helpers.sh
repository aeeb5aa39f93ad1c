#: output goes through tee
exec > >(tee -a "$HOME/run.log") 2>&1
echo "step 1"; echo "step 2"
echo "RESULT=42"
#: output goes through tee and the script fails
set -euo pipefail
exec > >(tee -a "$HOME/run.log")
echo "step 1"
cat /nonexistent
#: errors go through sed and the script fails
set -euo pipefail
exec 2> >(sed 's/^/E: /' >&2)
echo "about to fail" >&2
cat /nonexistent
#: output goes through a slow helper
exec > >(while read -r line; do sleep 0.1; echo "got $line"; done)
echo a; echo b; echo c
#: output goes through a chain of helpers
exec > >(tr a-z A-Z | sed 's/^/> /' | cat)
echo chained
#: output goes through a named pipe
mkfifo "$HOME/pipe"
cat "$HOME/pipe" &
exec > "$HOME/pipe"
echo through
#: output is compressed at the end
exec > >(gzip -c | gunzip -c)
seq 20000
#: output and error have helpers of their own
exec > >(sed 's/^/out: /') 2> >(sed 's/^/err: /' >&2)
echo one; echo two >&2
#: helper of a helper writes last
( (sleep 0.3; echo last) & )
echo first
#: background job writes after the end
{ sleep 0.3; echo later; } &
echo now
#: coprocess writes after the end
exec 3>&1
coproc { sleep 0.3; echo from the coprocess >&3; }
echo main
#: logger of a function
log() { while IFS= read -r line; do printf '[%s] %s\n' "$1" "$line"; done; }
{ echo a; echo b; } > >(log x)
#: helper of a subshell that fails
(exec > >(sed 's/^/sub: /'; touch written); echo inside; exit 3)
code=$?; until test -e written; do sleep 0.01; done; echo "code $code"
#: trap at exit writes through the helper
exec > >(sed 's/^/| /')
trap 'echo cleaned' EXIT
echo body; exit 5
#: killed script leaves its helper
exec > >(sed 's/^/| /')
echo before
kill -KILL $$
