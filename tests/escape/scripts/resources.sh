
#: leave a core behind
#: without: may be held
[ "$(ulimit -Hc)" = 0 ] && echo held || echo ESCAPED

#: nest folders without end
#: without: may be held
for i in $(seq 200); do mkdir d && cd d || break; done; chmod 0 . 2> /dev/null; echo held
