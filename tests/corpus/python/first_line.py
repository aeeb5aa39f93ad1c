#: first line asks for optimised code
#!/usr/bin/python3 -O
assert False, "not checked"
print(__debug__)
#: first line asks for optimised code without texts
#!/usr/bin/env -S python3 -OO
def f():
    "text"
print(f.__doc__, __debug__)
#: first line is unbuffered
#!/usr/bin/env -S python3 -u
import sys
print(sys.stdout.write_through)
#: first line ignores the environment
#!/usr/bin/python3 -E
import sys
print(sys.flags.ignore_environment)
#: first line is isolated
#!/usr/bin/python3 -I
import sys
print(sys.flags.isolated)
#: first line makes warnings errors
#!/usr/bin/python3 -Werror
import warnings
warnings.warn("careful")
#: first line by env with a variable
#!/usr/bin/env -S A=1 python3 -B
import os, sys
print(os.environ["A"], sys.dont_write_bytecode)
#: first line without options
#!/usr/bin/env python3
print(__debug__)
#: first line names another program
#!/usr/bin/env -S python3
print("the same")
