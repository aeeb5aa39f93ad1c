# The tasks of this tree. `make help` lists them; everything else is cargo.

CARGO ?= cargo
RELEASE := target/release/hero
DEBUG := target/debug/hero
# Programs that only tests use, unpacked from Debian's packages.
TOOLS := target/tools
# The checks of accessibility, from npm.
AXE := 4.14.1
# A client of RabbitMQ in JavaScript, from npm.
AMQPLIB := 0.10.9
# The oldest version of Rust that works.
RUST := $(shell sed -n 's/^rust-version = "\(.*\)"$$/\1/p' Cargo.toml)
# All packages are chosen, so that their libraries have the same features in each command, and are compiled once.
BUILD := $(CARGO) build --locked --workspace
# The hostile scripts of an unprivileged user, without the package.
UNPRIVILEGED := escape::hostile_scripts_of_an_unprivileged_user
# The tests whose sizes FULL=1 raises tenfold.
SIZED := e2e::graphs::large e2e::idle::jobs_that_wait e2e::load store::atomic_batch::fan_out
# The prefix of commands that need root.
ROOT := $(shell [ "$$(id -u)" = 0 ] || echo sudo)

# Installs a Debian package, unless its test succeeds: $(call package,NAME,TEST,PURPOSE,ENVIRONMENT)
# With RUNLEVEL=1 the package starts no server.
define package
	@if $(2) > /dev/null 2>&1; then \
	    echo "$(1): found"; \
	elif ! command -v apt-get > /dev/null; then \
	    echo "$(1) is missing ($(3)), and this is not Debian: install it, then run make again"; exit 1; \
	else \
	    echo "$(1) is missing ($(3)): installing Debian's package with $(ROOT) apt-get"; \
	    $(ROOT) apt-get update -q && \
	    $(ROOT) env $(4) DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $(1); \
	fi
endef

# Runs a command and reports every 8 s that it goes on: a large crate compiles in silence.
define with_progress
	@( n=0; while sleep 8; do n=$$((n + 8)); echo "    ... building for $$n s"; done ) & ticker=$$!; \
	$(1); status=$$?; kill $$ticker; exit $$status
endef

.DEFAULT_GOAL := help
.PHONY: help rust deps deps-test build demo test test-quick test-engines fuzz chaos foreign test-system test-cgroups \
        test-clients test-fresh test-sal-original release-check lint fmt docs screenshots bench scale soak deb apt-repo container crates deb-twice deny clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Debian's own cargo is older and fails later, with an obscure message.
rust:
	@have=$$($(CARGO) --version 2> /dev/null | sed -n '1s/^cargo \([0-9.]*\).*/\1/p'); \
	if [ "$$(printf '%s\n' "$(RUST)" "$$have" | sort -V | head -n 1)" != "$(RUST)" ]; then \
	    echo "Hero needs Rust $(RUST) or later and found cargo $${have:-nowhere}:" \
	        "install it with rustup (https://rustup.rs), or update it with 'rustup update stable'"; \
	    exit 1; \
	fi

deps: ## install redis-server from Debian if it is missing
	$(call package,redis-server,command -v redis-server,the private Redis of the demo and the tests)

deps-test: deps ## get the Debian packages that only tests use
	$(call package,python3-redis,/usr/bin/python3 -c 'import redis',tests with foreign programs in Python)
	$(call package,python3-jsonschema,/usr/bin/python3 -c 'import jsonschema',the check of docs/openrpc.json)
	$(call package,python3-yaml,/usr/bin/python3 -c 'import yaml',the comparison of YAML in scripts)
	$(call package,openssl,command -v openssl,tests of TLS)
	$(call package,python3-venv,/usr/bin/python3 -c 'import ensurepip',tests of Python packages)
	@if [ -x $(TOOLS)/usr/bin/prometheus-node-exporter ] && [ -x $(TOOLS)/usr/bin/prometheus ] || \
	    { command -v prometheus && command -v prometheus-node-exporter; } > /dev/null; then \
	    echo "prometheus, promtool, node_exporter: found"; \
	elif command -v apt-get > /dev/null; then \
	    echo "prometheus is missing (tests of metrics and alerts): unpacking it and node_exporter from Debian's packages"; \
	    mkdir -p $(TOOLS) && $(ROOT) apt-get update -q && cd $(TOOLS) && \
	    apt-get download -q -o APT::Sandbox::User=root prometheus prometheus-node-exporter && \
	    for package in prometheus*_*.deb; do dpkg-deb -x $$package . && rm $$package; done; \
	fi
	$(call package,mariadb-server,[ -x /usr/sbin/mariadbd ],tests of rel.* of brokers,RUNLEVEL=1)
	$(call package,curl,command -v curl,tests of downloads by scripts)
	$(call package,rabbitmq-server,test -x /usr/lib/rabbitmq/bin/rabbitmq-server,tests of brokers,RUNLEVEL=1)
	$(call package,python3-pika,/usr/bin/python3 -c 'import pika',tests with a client of RabbitMQ in Python)
	$(call package,chromium-driver,command -v chromium && command -v chromedriver,tests of the page in a browser)
	$(call package,firefox-esr,command -v firefox-esr,tests of the page in a second browser)
	$(call package,npm,command -v npm,tests with clients of npm)
	@if [ -e $(TOOLS)/axe-core/axe.min.js ]; then \
	    echo "axe-core: found"; \
	elif command -v npm > /dev/null; then \
	    echo "axe-core is missing (accessibility of the page): unpacking it from npm"; \
	    mkdir -p $(TOOLS)/axe-core && cd $(TOOLS)/axe-core && npm pack --silent axe-core@$(AXE) > /dev/null && \
	    tar -xzf axe-core-$(AXE).tgz --strip-components 1 package/axe.min.js && rm axe-core-$(AXE).tgz || \
	    echo "axe-core cannot be fetched: its checks are skipped"; \
	fi
	@if [ -e $(TOOLS)/amqplib/node_modules/amqplib/package.json ]; then \
	    echo "amqplib: found"; \
	elif command -v npm > /dev/null; then \
	    echo "amqplib is missing (tests with a client of RabbitMQ in JavaScript): installing it from npm"; \
	    mkdir -p $(TOOLS) && npm install --silent --no-audit --no-fund --prefix $(TOOLS)/amqplib amqplib@$(AMQPLIB) || \
	    echo "amqplib cannot be fetched: its tests are skipped"; \
	fi

build: rust ## build target/release/hero
	$(CARGO) build --release --locked

demo: rust deps ## real jobs of every type through a real Redis, and a table of what ran where; KEEP=DIR keeps the jobs there, and the page open; PROGRAM=FILE takes that hero
	$(if $(PROGRAM),,$(call with_progress,$(BUILD) --bin hero))
	$(or $(PROGRAM),$(DEBUG)) dev $(if $(KEEP),--keep '$(KEEP)') -- examples/demo.sh
	$(if $(KEEP),$(or $(PROGRAM),$(DEBUG)) dev --keep '$(KEEP)')

# Seeds are fixed, so that a failure repeats.
test: rust deps-test ## all tests, each on a private Redis of its own; NAMES='WORD...' takes those whose names contain one; prints how long each took
	CARGO=$(CARGO) tests/run $(NAMES)

test-quick: rust deps ## unit tests and the store tests
	$(CARGO) test --locked --workspace --lib
	$(CARGO) test --locked --workspace --test integration store::

# What is missing on this machine is skipped, counted and named at the end.
test-engines: rust ## scripts as jobs and by hand in Python, bash, node and V: those in PATH, and what their tests need
	CARGO=$(CARGO) tests/run --package hero-engine process

# The compilers and the generator come from npm and PyPI.
test-clients: rust deps-test ## the packages of clients/, with mypy, and clients that are made of docs/openrpc.json, with tsc
	CARGO=$(CARGO) tests/run clients::

fuzz: rust deps ## mutated inputs of all that is parsed: SECONDS=60 each
	FUZZ_SECONDS=$(or $(SECONDS),60) SEED=$${SEED:-random} \
	    $(CARGO) test --locked --test integration fuzz:: -- --nocapture

# FULL=1 are the sizes of which other runs take a tenth, and UNSANDBOXED=1 shows that the hostile scripts do harm.
chaos: rust deps-test ## the full storm of faults: KILLS=1000 JOBS=50000 LONGEST=3600 (seconds) MESSAGES=20000 KIN_SEEDS=10 SEED=random
	KILLS=$${KILLS:-1000} JOBS=$${JOBS:-50000} LONGEST=$${LONGEST:-3600} SEED=$${SEED:-random} \
	    $(CARGO) test --locked --test integration -- --nocapture --test-threads 1 chaos::storm chaos::cluster chaos::shards
	UNSANDBOXED=1 KIN_SEEDS=$${KIN_SEEDS:-10} SEED=$${SEED:-random} \
	    $(CARGO) test --locked --test integration -- --nocapture --test-threads 1 chaos::kin escape::hostile_scripts
	FULL=1 SEED=$${SEED:-random} \
	    $(CARGO) test --locked --test integration -- --nocapture --test-threads 1 $(SIZED)
	AMQP_MESSAGES=$${MESSAGES:-20000} \
	    $(CARGO) test --locked --test integration amqp::storm -- --nocapture
	FIRINGS=$${FIRINGS:-60} ROLLING_RUNS=$${ROLLING_RUNS:-20} \
	    $(CARGO) test --locked --test integration -- --nocapture e2e::cron::three_supervisors store::rolling
	SEED=$${SEED:-random} SEQUENCES=$${SEQUENCES:-50} \
	    $(CARGO) test --locked --test integration model::

foreign: rust deps-test ## every pair of old and new programs, with JOBS=1000 jobs each
	FOREIGN_JOBS=$${JOBS:-1000} $(CARGO) test --locked --test integration foreign:: -- --test-threads 2

test-system: rust ## the package with the program of the tests on a real Debian 12 with systemd, booted in a container; SUITE=trixie for 13; as root
	CARGO=$(CARGO) HERO_SYSTEM_TEST_SUITE=$(or $(SUITE),bookworm) tests/system/run

# Not for CI: the processor of that machine is emulated.
test-cgroups: rust ## control groups of jobs, on Debian 12's own kernel, booted in qemu; as root
	CARGO=$(CARGO) tests/system/cgroups

# Not for CI: it compiles everything twice.
test-fresh: rust ## the two commands of README on a minimal Debian 12, as an unprivileged user; as root
	CARGO=$(CARGO) tests/system/fresh

# Not for CI: it needs the registry of crates, and compiles 270 of them.
test-sal-original: rust deps ## the scripts of the published SAL crates, on those crates and on Hero
	$(call package,curl,command -v curl,downloads by scripts)
	$(call package,rsync,command -v rsync,rsync by scripts)
	$(BUILD) --bin hero
	nice $(CARGO) build --jobs 1 --manifest-path tests/sal_original/Cargo.toml --target-dir target/sal_original
	CARGO=$(CARGO) tests/sal_original/run target/sal_original/debug/sal_original $(DEBUG)

lint: rust ## formatting and clippy, as CI runs them
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings

fmt: ## format the sources
	$(CARGO) fmt --all

docs: rust ## write what is made from tables: docs of functions and methods, etc/hero.toml, its page and schema, hero(7)
	$(BUILD) --bin xtask
	target/debug/xtask docs
	python3 clients/python/tools/api_types.py

screenshots: rust deps ## make the pictures of the page again, in docs/images/
	$(call package,chromium,command -v chromium,it takes the pictures)
	$(BUILD) --bin hero
	xtask/screenshots.sh

bench: deps build ## measure Hero beside plain commands of the same Redis
	$(RELEASE) bench

# DIVIDE_BY=100 divides each load by 100. Other work on the machine makes calls look longer.
scale: rust deps ## put the largest loads on a private Redis; fails if a call takes more than 25 ms
	$(BUILD) --bin hero --bin xtask
	$(DEBUG) --config xtask/scale.toml dev -- target/debug/xtask scale --divide-by $${DIVIDE_BY:-1}

# ROUNDS=60 JOBS=2000 REST=8 and their like make it longer or shorter.
soak: deps build ## let 100 000 jobs run and the daemon rest, for ten minutes; print what its processes hold; fails if they grow
	$(RELEASE) --config xtask/soak.toml dev -- xtask/soak.sh

deb: rust ## build the Debian package into target/debian/; ARCH=arm64 cross-builds that of another architecture
	$(call package,debhelper,command -v dh,it builds Debian packages)
	CARGO=$(CARGO) ARCH=$(ARCH) packaging/build-deb

apt-repo: ## make a signed apt repository of the packages in target/debian, in target/apt; URL=https://… for a server, KEY=NAME signs
	$(call package,apt-utils,command -v apt-ftparchive,it makes the lists of a repository)
	packaging/apt-repo $(if $(URL),--url '$(URL)') $(if $(KEY),--key '$(KEY)')

container: ## build an OCI image of hero dev with the package, in target/container; as root
	$(call package,mmdebstrap,command -v mmdebstrap,it makes the root of the image)
	$(call package,buildah,command -v buildah,it builds images)
	packaging/container

# The client in Rust, and the lower rooms that it needs.
CRATES := error proto config store artifacts client

crates: rust ## pack the crate hero-client, with those that it needs, into target/package
	$(CARGO) package --locked $(CRATES:%=--package hero-%)

# Hours: what takes too long for each change.
release-check: deb ## before a release: the shipped package on booted Debian 12 and 13, the full storms, two equal builds; as root
	for suite in bookworm trixie; do \
	    HERO_DEB=$$(echo $$PWD/target/debian/hero_*_$$(dpkg --print-architecture).deb) HERO_SYSTEM_TEST_SUITE=$$suite tests/system/run || exit 1; \
	done
	$(MAKE) deny chaos deb-twice

deb-twice: rust ## build the package twice from nothing, and compare: the builds must be equal
	CARGO=$(CARGO) packaging/build-twice

deny: ## licences, bans and advisories of the dependencies (needs cargo-deny)
	@command -v cargo-deny > /dev/null || { echo "cargo-deny is missing: cargo install --locked cargo-deny"; exit 1; }
	$(CARGO) deny check

clean: ## remove everything that was built
	$(CARGO) clean
