# README.md, as an operator pastes it, line by line, on a machine without the package.

# The lines of the Nth block of commands in the operators' section.
readme_block() { # N
    awk -v wanted="$1" '
        /^## / { here = ($0 == "## As an operator") }
        here && /^```sh$/ { block++; code = 1; next }
        /^```$/ { code = 0 }
        here && code && block == wanted' README.md
}

installs_by_the_readme() {
    local line
    inside mkdir -p /root/tree/target/debian
    inside cp /root/hero.deb "/root/tree/target/debian/hero_1_$(dpkg --print-architecture).deb"
    inside cp /root/hero-doc.deb "/root/tree/target/debian/hero-doc_1_all.deb"
    readme_block 1 > "$run_dir/block"
    [ "$(wc -l < "$run_dir/block")" -ge 5 ]
    while IFS= read -r line <&3; do
        case $line in "make deb"*) continue ;; esac
        # apt-get asks whether to go on, and the operator says yes.
        yes | inside env EDITOR=true sh -c "cd /root/tree && $line" ||
            { echo "failed: $line"; return 1; }
    done 3< "$run_dir/block"
}

# says LINE: runs it, and succeeds if it says something; the journal may be some moments behind.
says() {
    output=$(alice sh -c "$1" 2>&1 < /dev/null) && [ -n "$output" ] && lacks "$output" "No entries"
}

works_by_the_readme() {
    local line id
    id=$(alice hero submit -t osis -e '40 + 2')
    readme_block 2 > "$run_dir/block"
    [ "$(wc -l < "$run_dir/block")" -ge 3 ]
    while IFS= read -r line <&3; do
        case $line in
        *" -f"*)
            # Goes on for ever, as it should.
            exits 124 alice timeout 2 sh -c "${line%%#*}"
            has "$output" ready
            continue
            ;;
        *JOB_ID=ID*) line=$(echo "$line" | sed "s/JOB_ID=ID/JOB_ID=$id/") ;;
        esac
        eventually 30 says "$line" || { echo "failed or silent: $line"; return 1; }
    done 3< "$run_dir/block"
}

claim "README: an operator installs by it" installs_by_the_readme
claim "README: a user runs jobs and reads the journal by it" works_by_the_readme
