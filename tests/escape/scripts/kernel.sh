
#: raise its own limits again
#: without: may be held
ulimit -Hn 1000000 2> /dev/null && echo ESCAPED || echo held

#: mount with the program for it
#: without: escapes as root
d=$(mktemp -d) && mount -t tmpfs none "$d" 2> /dev/null && umount "$d" && echo ESCAPED || echo held

#: a namespace with the program for it
#: without: escapes as root
unshare --mount true 2> /dev/null && echo ESCAPED || echo held

#: enter the namespaces of the daemon
#: without: escapes as root
nsenter --net --target "$DAEMON" true 2> /dev/null && echo ESCAPED || echo held

#: run a program as another user
#: without: escapes as root
setpriv --reuid 12345 --clear-groups true 2> /dev/null && echo ESCAPED || echo held

#: read the kernel's log
#: without: escapes as root
dmesg > /dev/null 2>&1 && echo ESCAPED || echo held
