
#: make a set-uid copy of bash
cp /bin/bash b && chmod 755 b && chmod u+s b 2> /dev/null && echo ESCAPED || echo held

#: install a set-gid copy of bash
install -m 2755 /bin/bash b 2> /dev/null; [ -g b ] && echo ESCAPED || echo held

#: change modes, keep them in copies and archives
#: without: may be held
mkdir d && echo '#!/bin/sh' > d/p && chmod 751 d/p && chmod 1770 d && cp -r --preserve=mode d e && tar -cf t d && mkdir u && tar --no-same-owner -xpf t -C u && [ "$(stat -c %a d e u/d d/p e/p u/d/p | xargs)" = '1770 1770 1770 751 751 751' ] && echo held || echo ESCAPED

#: read a secret with bash
read -r line < "$SECRET"
[ -n "$line" ] && echo ESCAPED || echo held

#: write by a link with bash
ln -s "$FILE" l && (echo x > l) 2> /dev/null && echo ESCAPED || echo held

#: copy a secret with cp
cp "$SECRET" x 2> /dev/null && echo ESCAPED || echo held

#: write below /tmp
f=$(mktemp -p /tmp 2> /dev/null) && rm -f "$f" && echo ESCAPED || echo held

#: leave links to the outside to the clean-up
#: without: may be held
ln -s "$OUTSIDE" a; ln -s "$FILE" b; mkdir c; ln -s "$OUTSIDE" c/d; echo held
