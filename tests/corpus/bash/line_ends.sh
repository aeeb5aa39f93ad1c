#: here document with carriage returns
cat <<EOF | od -An -c | head -3
GET / HTTP/1.0

EOF
#: one line has a carriage return in a string
printf %s "a
b" | od -An -c
#: carriage return before a comment
x="1"; echo "${#x}"
