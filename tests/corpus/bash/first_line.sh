#: first line stops at an error
#!/bin/bash -e
printf "%s\n" hi
false
echo unreachable
#: first line of sh stops at an error
#!/bin/sh -e
# coding: latin-1
printf "%s\n" hi
false
echo unreachable
#: first line refuses unset variables
#!/bin/bash -u
echo one
echo "$missing"
echo two
#: first line with options together
#!/bin/bash -eu
echo "${1-none}"
false
echo two
#: first line by env with several options
#!/usr/bin/env -S bash -euo pipefail
echo one
false | cat
echo two
#: first line by env without options
#!/usr/bin/env bash
echo one
false
echo two
#: first line by env with a variable
#!/usr/bin/env -S GREETING=hello bash -e
echo "$GREETING"
false
echo two
#: first line traces
#!/bin/bash -x
echo one
#: first line without file names
#!/bin/bash -f
echo *
#: first line ends the options
#!/bin/sh -
echo one
#: first line that is posix
#!/bin/bash --posix
shopt -o posix
#: first line without options
#!/bin/bash
echo one; false; echo two
#: first line has a blank before the interpreter
#! /bin/bash -e
echo one; false; echo two
