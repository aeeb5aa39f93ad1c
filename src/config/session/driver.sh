# Serves the calls of a session in this shell: variables, functions and the working directory stay from one to the next.
# The argument is the number of seconds without a call after which it ends.
__hero_idle=$1 __hero_out=$HERO_FD __hero_in=$HERO_FD_IN __hero_path=$PATH __hero_most=131072
__hero_said=null __hero_read='' __hero_write='' __hero_script='' __hero_answer=''
set --
exec {__hero_log}>&2

# Says how the call ended, and the end of what it wrote.
__hero_say() {
  builtin local PATH=$__hero_path size cut=0 text
  size=$(command stat -c %s - <&"$__hero_read")
  [[ $size -le $__hero_most ]] || cut=$((size - __hero_most))
  text=$(command tail -c "$__hero_most" <&"$__hero_read" | command base64 -w 0)
  command base64 -d <<<"$text" >&"$__hero_log"
  exec {__hero_read}<&- {__hero_write}>&-
  __hero_read=''
  __hero_said="{\"exit\": $1, \"output\": \"$text\", \"truncated\": $cut}"
}

# A call that ends the shell ends the session; its caller gets its answer.
__hero_exit() {
  [[ $__hero_read ]] || return 0
  __hero_say "$1"
  builtin printf '{"next": %s}\n' "$__hero_said" >&"$__hero_out"
  builtin printf 'a call ended the shell with exit code %s\n' "$1" >&"$__hero_log"
}
builtin trap '__hero_exit $?' EXIT
# Hero says why it ends the session.
builtin trap "__hero_read=''; exit 143" TERM

while :; do
  builtin printf '{"next": %s}\n' "$__hero_said" >&"$__hero_out" || exit 1
  IFS='' builtin read -r -t "$__hero_idle" -u "$__hero_in" __hero_answer
  case $? in
    0) ;;
    1) echo "hero gives no further call" >&2; exit 1 ;;
    *) echo "idle for $__hero_idle s"; exit 0 ;;
  esac
  case $__hero_answer in
    '{"ok":{"script":"'*) ;;
    '{"ok":{"end":"'*) __hero_answer=${__hero_answer#'{"ok":{"end":"'}; builtin echo "${__hero_answer%'"}}'}"; exit 0 ;;
    *) builtin echo "$__hero_answer" >&2; exit 1 ;;
  esac
  __hero_script=${__hero_answer#'{"ok":{"script":"'}
  __hero_script=$(PATH=$__hero_path command base64 -d <<<"${__hero_script%%\"*}"; builtin echo x)
  __hero_script=${__hero_script%x}
  __hero_answer=$(PATH=$__hero_path command mktemp) || exit 1
  exec {__hero_write}>"$__hero_answer" {__hero_read}<"$__hero_answer"
  PATH=$__hero_path command rm -f "$__hero_answer"
  builtin eval "$__hero_script" >&"$__hero_write" 2>&1 </dev/null
  __hero_say $?
  builtin set +eu
done
