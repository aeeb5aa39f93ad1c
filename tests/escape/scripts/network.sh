
#: connect with bash
(echo > "/dev/tcp/127.0.0.1/$TCP") 2> /dev/null && echo ESCAPED || echo held

#: send a datagram with bash
(echo > "/dev/udp/127.0.0.1/$UDP") 2> /dev/null && echo ESCAPED || echo held

#: list the networks of the machine with ip
#: without: may be held
[ -n "$(ip -brief address 2> /dev/null)" ] && echo ESCAPED || echo held

#: list the connections of the machine
[ "$(cat /proc/net/tcp 2> /dev/null | wc -l)" -gt 1 ] && echo ESCAPED || echo held
