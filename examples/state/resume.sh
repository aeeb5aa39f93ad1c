# A script in bash that goes on where it was: hero exec --retries 3 examples/state/resume.sh
set -euo pipefail

# Keeps a state, a value of JSON, for the next attempt. Fails if it is not kept.
checkpoint() {
  printf '{"state": %s}\n' "$1" >&"$HERO_FD"
  read -r answer <&"$HERO_FD_IN"
  [[ $answer == '{"ok":true}' ]] || { echo "not kept: $answer" >&2; return 1; }
}

done=0
if [ -n "${HERO_STATE-}" ]; then done=$(cat "$HERO_STATE"); fi
while [ "$done" -lt 5 ]; do
  done=$((done + 1))
  checkpoint "$done"
  if [ "$done" = 3 ] && [ "$HERO_ATTEMPT" = 1 ]; then echo "lost the connection" >&2; exit 1; fi
done
echo "$done steps in $HERO_ATTEMPT attempts"
