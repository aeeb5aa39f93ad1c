#: GDC-ConsumerEdge/automated-cluster-provisioner#71, last lines before an exit go through tee
exec > >(tee -a "$HOME/cluster.log") 2>&1
die() { echo ">>> [ERROR] Details: $1"; echo ">>> [ERROR] Skipping failure signal"; exit 1; }
echo "create cluster"
die "quota exceeded"
#: aws-samples/aws-do-eks#76, diagnosis of a failed preflight goes through tee
LOG="$HOME/preflight.log"
exec > >(tee -a "$LOG") 2>&1
echo "preflight: checking 4 nodes"
echo "FATAL: no route to node 3"
exit 1
#: cline/cline#13817, background child holds the output of an ended command
{ sleep 0.3; echo "from the background"; } &
echo "done"
#: camptocamp/devops-stack#296, option in the first line stops at an error
#!/bin/sh -e
false
echo "went on"
#: koalaman/shellcheck#1248, option in the first line of sh
#!/bin/sh -e
false
echo true
#: sclorg/container-common-scripts#60, failed test is overlooked without the option
#!/bin/bash -e
test 1 = 2
echo "all tests passed"
#: koalaman/shellcheck#466, change into a missing folder stops the script
#!/bin/bash -e
cd '/nonexitpath'
echo 'hello'
#: koalaman/shellcheck#805, two options in the first line
#!/bin/bash -ex
echo a
false
echo b
#: containers/qm#543, four options in the first line
#!/bin/bash -euvx
echo "running"
echo "$UNSET_VARIABLE"
#: kenryu42/cc-safety-net#115, carriage return in the end of a here document
cat <<EOF
body
EOF
echo after
#: rmyorston/busybox-w32#285, here document of lines with carriage returns
cat <<HERE | od -An -c
foo
bar
HERE
echo 123
