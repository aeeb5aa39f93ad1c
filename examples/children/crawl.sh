# A script in bash that submits jobs: hero exec examples/children/crawl.sh
# Needs may_submit = ["bash"] in [type.bash].
set -euo pipefail

# Submits a job, given as JSON, and prints the answer. Fails if it is refused.
submit() {
  printf '{"submit": %s}\n' "$1" >&"$HERO_FD"
  read -r answer <&"$HERO_FD_IN"
  [[ $answer == '{"ok":'* ]] || { echo "not submitted: $answer" >&2; return 1; }
  printf '%s\n' "$answer"
}

for page in 1 2 3; do
  submit "{\"type\": \"bash\", \"name\": \"page-$page\", \"script\": \"echo page $page\"}"
done
