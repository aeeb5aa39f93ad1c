# A migration of many steps that goes on where it was, however often its actor dies:
# hero exec --retries 3 examples/state/migration.sh -- 1000
set -euo pipefail

# Keeps a state, a value of JSON, for the next attempt. Fails if it is not kept.
checkpoint() {
  printf '{"state": %s}\n' "$1" >&"$HERO_FD"
  read -r answer <&"$HERO_FD_IN"
  [[ $answer == '{"ok":true}' ]] || { echo "not kept: $answer" >&2; return 1; }
}

steps=${1:-1000}
step=0
attempts=0
if [ -n "${HERO_STATE-}" ] && [[ $(<"$HERO_STATE") =~ \"step\":\ *([0-9]+),\ *\"attempts\":\ *([0-9]+) ]]; then
  step=${BASH_REMATCH[1]}
  attempts=${BASH_REMATCH[2]}
fi
attempts=$((attempts + 1))
echo "goes on after step $step" >&2
while [ "$step" -lt "$steps" ]; do
  # Here a step does its work. It may run twice: its state is kept only after it.
  step=$((step + 1))
  checkpoint "{\"step\": $step, \"attempts\": $attempts}"
done
echo "{\"step\": $step, \"attempts\": $attempts}"
