#: output and error
echo out; echo err >&2
#: exit code
echo partial; exit 3
#: last command fails
false
#: strict mode stops
set -euo pipefail
echo before
false | cat
echo never
#: unset variable
set -u
echo "$missing"
#: trap at exit
trap 'echo cleaned' EXIT
exit 4
#: trap of an error
trap 'echo "failed in line $LINENO"' ERR
false
echo on
#: killed by itself
echo before
kill -TERM $$
#: command not found
no-such-program
#: syntax error
if true; then
#: syntax error in the middle
echo one
fi
#: arguments and name
echo "$# ${0##*/}"
#: functions and locals
twice() { local n=$1; echo $((n * 2)); }
twice 21
#: arrays
names=(a "b c" d); declare -A ages=([x]=1); echo "${#names[@]} ${names[1]} ${ages[x]}"
#: here document
cat <<END
a $((1 + 1))
END
#: here string
read -r a b <<< "1 2"; echo "$b $a"
#: pipeline and its status
false | true; echo "${PIPESTATUS[@]}"
#: process substitution
diff <(echo a) <(echo b)
#: background job
sleep 0.01 & wait $!; echo $?
#: background job is not waited for
(sleep 0.01; echo never > /dev/null) &
echo end
#: standard input is empty
cat; read -r x || echo "nothing to read"
#: files
echo text > a; cp a b; mkdir -p c/d; ln -s a l; ls
#: temporary file
file=$(mktemp); [[ $file == "$TMPDIR"/* ]] && echo private; rm "$file"
#: here and home
[[ $HOME == "$TMPDIR" ]] && echo same; cd ~ && [[ $PWD == "$HOME" ]] && echo home
#: quoting and globs
touch 'x y' z; for f in *; do echo "<$f>"; done
#: no match for a glob
echo *.none
#: locale
echo "${LC_CTYPE} ${LANG-none}"; text=grüße; echo "${#text}"
#: output that is not text
printf '\xff\xfe\n'
#: output without a line end
printf a
#: arithmetic error
echo $((1 / 0)); echo on
#: source
echo 'value=5' > lib.sh; . ./lib.sh; echo $value
#: missing file to source
. ./no-such-file; echo on
#: eval and printf
eval 'x=3'; printf '%05d|%s|%q\n' "$x" a "b c"
#: regular expressions
[[ abc123 =~ ([a-z]+)([0-9]+) ]] && echo "${BASH_REMATCH[2]}"
#: options
echo $-; shopt -q interactive_comments && echo comments
#: exec
echo before; exec echo replaced
#: redirected for the rest
exec > out.txt; echo into the file
#: closed output
exec 1>&-; echo lost
#: descriptors
exec 9> nine; echo x >&9; exec 9>&-; cat nine
#: limits
ulimit -c
#: subshell exit
(exit 7); echo $?
#: umask
umask; touch a; stat -c %a a
