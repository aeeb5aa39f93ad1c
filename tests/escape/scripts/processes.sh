
#: signal a process with bash
#: landlock: 6
kill -CONT "$VICTIM" 2> /dev/null && echo ESCAPED || echo held

#: signal all processes with bash
kill -0 -- -1 2> /dev/null && echo ESCAPED || echo held

#: list the processes with ps
#: without: may be held
ps -e 2> /dev/null | grep -q sleep && echo ESCAPED || echo held

#: slow a process down with renice
renice -n 1 -p "$VICTIM" > /dev/null 2>&1 && echo ESCAPED || echo held
