# Hostile scripts, the same as in tests/escape, in a unit of the package as systemd runs it.

HOSTILE=hero@hostile
ESCAPE=/opt/escape
TARGETS=/var/lib/hero/targets

starts_a_unit_for_them() {
    # In the machine of tests/system/cgroups they are there.
    if [ -d tests/escape ]; then
        mkdir -p "$run_dir/root$ESCAPE"
        cp -R tests/escape/run tests/escape/scripts "$run_dir/root$ESCAPE"
    fi
    # An emulated processor takes longer. One script tries to return too much.
    configure hostile "[job]
output_overflow = \"fail\"
$(inside $ESCAPE/run --config --cpu "$1")"
    inside systemctl start $HOSTILE
    if has_cgroups; then
        says $HOSTILE "each job that is a process has a control group of its own"
    fi
}

contains_them() {
    inside install -d -o hero -g hero -m 700 $TARGETS
    inside runuser -u hero -- $ESCAPE/run --folder $TARGETS --daemon "$(property $HOSTILE MainPID)" \
        > "$run_dir/table" || { grep -av '^[a-z]* *\(cold\|warm\) ' "$run_dir/table"; return 1; }
    is active property $HOSTILE ActiveState
    is 0 property $HOSTILE NRestarts
    grep '^not run' "$run_dir/table" || true
    echo "= $(tail -n 1 "$run_dir/table")"
}

leaves_nothing_behind() {
    # The rest are the daemon, the interpreter that it keeps ready, and the forks that wait.
    eventually 20 has_few_processes
    inside systemctl stop $HOSTILE
    # The socket of the API is the supervisor's.
    is api.sock inside ls -A /run/hero
    inside rm -rf $TARGETS
    configure hostile
}

has_few_processes() {
    [ "$(property $HOSTILE TasksCurrent)" -gt 0 ]
    [ "$(members "$(cgroup_folder $HOSTILE)")" -le 4 ]
}

claim "a unit for hostile scripts starts, with control groups of its jobs where the machine has them" \
    starts_a_unit_for_them 10
claim "hostile scripts are contained in the unit, as new processes and as forks" contains_them
claim "they leave no process and no folder behind" leaves_nothing_behind
