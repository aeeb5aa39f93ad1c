# A deploy that waits for its approval, without a task: hero submit examples/wait/deploy.sh; hero job tell ID approved
set -euo pipefail

case "${HERO_EVENT-}" in
  "")
    echo "built; who approves it?"
    echo '{"wait": {"event": "approved", "for": "3d"}}' >&"$HERO_FD"
    exit 0
    ;;
  *'"timeout":true'*)
    echo '{"discard": "nobody approved it within 3 days"}' >&"$HERO_FD"
    exit 0
    ;;
esac
echo "deployed: $HERO_EVENT"
