# The package as a file.

lintian_is_silent() {
    output=$(lintian --allow-root "$(dirname "$deb")"/hero_*.changes 2>&1) || true
    [ -z "$output" ] || { echo "$output"; return 1; }
}

holds_what_it_should() {
    local files
    files=$(dpkg-deb --contents "$deb")
    for file in ./usr/bin/hero ./etc/hero/hero.toml ./usr/lib/systemd/system/hero@.service \
        ./usr/lib/systemd/user/hero@.service ./usr/lib/systemd/user/hero-redis.service \
        ./usr/lib/systemd/system/hero.target ./etc/logrotate.d/hero \
        ./usr/share/man/man1/hero.1.gz ./usr/share/man/man1/hero-job-list.1.gz \
        ./usr/share/man/man5/hero.toml.5.gz ./usr/share/man/man7/hero.7.gz ./usr/share/man/man7/hero-operations.7.gz \
        ./usr/share/bash-completion/completions/hero \
        ./usr/share/zsh/vendor-completions/_hero \
        ./usr/share/fish/vendor_completions.d/hero.fish \
        ./usr/share/hero/rhai/osis.d.rhai ./usr/share/hero/rhai/sal.d.rhai ./usr/share/hero/hero.schema.json \
        ./usr/share/doc/hero/copyright ./usr/share/doc/hero/changelog.Debian.gz; do
        has "$files" " $file"
    done
    # Since Debian 13 no package owns files in /lib.
    lacks "$files" " ./lib/"
    is "$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)-1" \
        dpkg-deb --field "$deb" Version
    has "$(dpkg-deb --field "$deb" Recommends)" "redis-server | valkey-server"
    ls "$(dirname "$deb")"/hero-dbgsym_*.deb
}

# The components of the program, each with its version, its licence and its checksum.
lists_its_components() {
    local unpacked=$run_dir/sbom
    dpkg-deb --extract "$deb" "$unpacked"
    python3 - "$unpacked/usr/share/doc/hero/hero.cdx.json" << 'EOF'
import json, sys
bom = json.load(open(sys.argv[1]))
assert bom["bomFormat"] == "CycloneDX" and bom["metadata"]["component"]["name"] == "hero"
parts = {part["name"]: part for part in bom["components"]}
assert len(parts) > 50 and {"redis", "rhai", "tokio", "ring"} <= set(parts), len(parts)
for part in parts.values():
    assert part["version"] and part["licenses"] and part["purl"].startswith("pkg:cargo/"), part
    assert len(part["hashes"][0]["content"]) == 64, part
assert any(of["dependsOn"] for of in bom["dependencies"] if of["ref"].startswith("pkg:cargo/hero@"))
print(f"= {len(bom['components'])} components")
EOF
}

# The tests of debian/tests, in a copy of the machine's root. Those that need a booted machine are
# skipped there: autopkgtest has exit code 2 for that.
passes_its_own_tests() {
    local root=$run_dir/autopkgtest log=$run_dir/autopkgtest.log status=0
    mkdir "$root"
    tar -C "$root" -xf "$(root_archive)"
    mount -t proc proc "$root/proc"
    autopkgtest -B --summary-file "$run_dir/summary" "$deb" "$(doc_deb)" target/debian-build/tree/ \
        -- chroot "$root" > "$log" 2>&1 || status=$?
    umount "$root/proc"
    [ "$status" = 0 ] || [ "$status" = 2 ] || { tail -n 30 "$log"; return 1; }
    is 2 grep -cE '^(runs-jobs|configuration) +PASS' "$run_dir/summary"
}

# The pages that README links to, as files beside it.
holds_the_linked_pages() {
    local files page
    files=$(dpkg-deb --contents "$deb"; dpkg-deb --contents "$(doc_deb)")
    # The package has its changelog under the name that Debian gives it.
    for page in $(grep -oE '\]\((docs|[A-Z]+)[^)#]*' README.md | cut -c 3- | sort -u |
        grep -v '^CHANGELOG'); do
        has "$files" " ./usr/share/doc/hero/$page"
    done
}

names_no_place_of_the_build() {
    local unpacked=$run_dir/unpacked
    dpkg-deb --extract "$deb" "$unpacked"
    # The program of the tests has fail points, and names of the place; the one that is shipped has neither.
    if grep -qF HERO_FAILPOINT "$unpacked/usr/bin/hero"; then
        [ "$(basename "$(dirname "$deb")")" = debian-test ] || return 1
        rm "$unpacked/usr/bin/hero"
        echo "= but for the program, which is the one of the tests"
    fi
    ! grep -rlF -e "$PWD" -e "${CARGO_HOME:-$HOME/.cargo}" "$unpacked" || return 1
}

claim "lintian finds nothing in the package" lintian_is_silent
claim "the package holds the program, units, man pages, completions; version as in Cargo.toml" \
    holds_what_it_should
claim "the package holds the pages that README links to" holds_the_linked_pages
claim "it lists the components of the program" lists_its_components
claim "its own tests pass, as autopkgtest runs them" passes_its_own_tests
claim "no file of it names the place it was built at" names_no_place_of_the_build
