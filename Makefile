# What one does with this tree. `make help` lists it; everything else is cargo.

CARGO ?= cargo
RELEASE := target/release/hero
# Run as root, or through sudo.
ROOT := $(shell [ "$$(id -u)" = 0 ] || echo sudo)

.DEFAULT_GOAL := help
.PHONY: help deps build demo test chaos foreign test-system test-cgroups lint fmt bench deb deny clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

deps: ## install what is missing: redis-server, and python3-redis for tests, from Debian's packages
	@if command -v redis-server > /dev/null; then \
	    echo "redis-server is there: $$(redis-server --version | cut -d' ' -f3)"; \
	else \
	    echo "redis-server is missing: installing Debian's package with apt-get"; \
	    $(ROOT) apt-get update -qq && \
	    $(ROOT) env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends redis-server; \
	fi
	@if /usr/bin/python3 -c 'import redis' 2> /dev/null; then \
	    echo "python3-redis is there"; \
	else \
	    echo "python3-redis is missing: installing Debian's package with apt-get"; \
	    $(ROOT) apt-get update -qq && \
	    $(ROOT) env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3-redis; \
	fi

build: ## build target/release/hero
	$(CARGO) build --release --locked

demo: deps build ## real jobs of every type through a real Redis, and a table of what ran where
	$(RELEASE) dev -- examples/demo.sh

# The storm of faults keeps both cores busy: it comes after the others, which wait on conditions
# that it would only delay.
test: deps ## all tests, each on a private Redis of its own
	$(CARGO) test --locked -- --skip chaos::storm
	$(CARGO) test --locked --test integration chaos::storm

chaos: deps ## the full storm of faults: KILLS=1000 JOBS=50000 LONGEST=3600 (seconds) SEED=...
	KILLS=$${KILLS:-1000} JOBS=$${JOBS:-50000} LONGEST=$${LONGEST:-3600} \
	    $(CARGO) test --locked --test integration chaos::storm -- --nocapture
	FIRINGS=$${FIRINGS:-60} \
	    $(CARGO) test --locked --test integration e2e::cron::three_supervisors -- --nocapture

foreign: deps ## every pair of old and new programs, with JOBS=1000 jobs each
	FOREIGN_JOBS=$${JOBS:-1000} $(CARGO) test --locked --test integration foreign:: -- --test-threads 2

test-system: ## the package on a real Debian 12 with systemd, booted in a container; as root
	CARGO=$(CARGO) tests/system/run

# Not for CI: the processor of that machine is emulated.
test-cgroups: ## control groups of jobs, on Debian 12's own kernel, booted in qemu; as root
	CARGO=$(CARGO) tests/system/cgroups

lint: ## formatting and clippy, as CI holds them
	$(CARGO) fmt --check
	$(CARGO) clippy --locked --all-targets -- -D warnings
	@# Tests switch the fail points on; what is shipped is built without.
	$(CARGO) clippy --locked -- -D warnings

fmt: ## format the sources
	$(CARGO) fmt

bench: deps build ## measure Hero beside what the same Redis can do
	$(RELEASE) bench

deb: ## build the Debian package into target/debian/
	@if ! command -v dh > /dev/null; then \
	    echo "debhelper is missing: installing Debian's package with apt-get"; \
	    $(ROOT) apt-get update -qq && \
	    $(ROOT) env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends debhelper; \
	fi
	CARGO=$(CARGO) packaging/build-deb

deny: ## licences, bans and advisories of the dependencies (needs cargo-deny)
	@command -v cargo-deny > /dev/null || { echo "cargo-deny is missing: cargo install --locked cargo-deny"; exit 1; }
	$(CARGO) deny check

clean: ## remove what was built
	$(CARGO) clean
