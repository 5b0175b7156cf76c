# What a contributor runs; `make` lists it.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
# Scripts that talk to the debug binary as others will: the longest first, two at a time.
clients := schemathesis mcp-clients python-package mem0-client grpc-python tours
.PHONY: help run test every-test test-backends check bench bench-scaling bench-recall bench-peers bench-attacks bench-hidden openapi $(clients)

export CARGO_TARGET_DIR ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/memtrove/target

# A test that fails must not leave its new snapshot in the tree; `cargo insta` is for that.
test every-test test-backends check: export INSTA_UPDATE = no
# How the targets ended that `make test` leaves out.
results := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/memtrove/results

# nextest runs tests in parallel and shows slow ones; plain cargo does where it is not installed.
nextest := $(shell command -v cargo-nextest)
cargo-deny := $(shell command -v cargo-deny)
cargo-test = $(if $(nextest),cargo nextest run --no-fail-fast,cargo test --no-fail-fast --all-targets)
# nextest leaves to scripts/test-http.sh what is quicker there. Most of the others wait, for disks and for processes.
but-http = $(if $(nextest),--test-threads 4 -E "$$(scripts/test-http.sh filter)")
# Documentation is for contributors: private items are in it, and public ones may link to them.
rustdoc-flags = -D warnings -A rustdoc::private_intra_doc_links
# A step says how long it took, and one that fails says which one it was; of the steps before the clients nothing after it runs.
step = @echo "==> $(1)"; $(2) || { echo "make $@: $(1) failed" >&2; exit 1; }; echo "==> $(1): $$SECONDS s"

help: ## Lists the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 24

run: ## Serves Memtrove on http://127.0.0.1:7077, data in ~/.local/share/memtrove
	cargo run --release -- serve

test: ## Runs everything that must pass: all tests, the API document under fuzzing, the code of the documents
	$(call step,installing what the tests need,scripts/test-deps.sh)
	$(call step,building everything,cargo test --workspace --locked --no-run --quiet)
	$(call step,servers for tests,scripts/servers-outlive-builds.sh)
	@scripts/postgres.sh run scripts/seaweedfs.sh run scripts/azurite.sh run $(MAKE) --no-print-directory every-test
	@echo "not part of this: make test-backends ($$(cat $(results)/test-backends 2>/dev/null || echo 'not run here yet'))"

test-backends: ## Runs every test over HTTP on PostgreSQL too, also those that cannot depend on the engine
	$(call step,building everything,cargo test --workspace --locked --no-run --quiet)
	@mkdir -p $(results) && echo "failed at $$(git rev-parse --short HEAD)" >$(results)/$@
	$(call step,tests over HTTP on PostgreSQL,scripts/postgres.sh run scripts/seaweedfs.sh run scripts/azurite.sh run scripts/test-http.sh postgres)
	@echo "passed at $$(git rev-parse --short HEAD)" >$(results)/$@

# Beside a PostgreSQL, an S3 and an Azure that are gone afterwards, however they end.
every-test:
	$(call step,cargo tests,$(cargo-test) --workspace --locked $(but-http))
	$(if $(nextest),$(call step,tests over HTTP on SQLite,scripts/test-http.sh sqlite))
	$(call step,tests over HTTP on PostgreSQL,scripts/test-http.sh postgres-differs)
	$(call step,documentation tests,cargo test --workspace --doc --locked --quiet)
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target --keep-going $(clients)

$(clients):
	$(call step,$@,scripts/$@.sh)

check: ## Looks at format, lints, documentation and dependencies and runs the quick tests: before every commit
	$(call step,format,cargo fmt --all --check)
	$(call step,lints,cargo clippy --workspace --all-targets --quiet -- -D warnings)
	$(call step,documentation,RUSTDOCFLAGS="$(rustdoc-flags)" cargo doc --workspace --no-deps --document-private-items --quiet)
	$(call step,licences and sources of dependencies,$(if $(cargo-deny),cargo deny --log-level error check licenses bans sources,echo "left out: cargo-deny is not installed"))
	$(call step,quick tests,$(cargo-test) -p memtrove-core -p memtrove-wire)

ENGINE ?= sqlite
# A server for measurements keeps what it acknowledged; one for tests need not.
durable = -c fsync=on -c full_page_writes=on
# The database logs the plan of every statement.
explained = $(durable) -c session_preload_libraries=auto_explain -c auto_explain.log_min_duration=0 -c auto_explain.log_analyze=on \
  -c auto_explain.log_buffers=on

bench: ## Measures Memtrove against the floor of its own stack (ARGS="--only append"; ENGINE=postgres: beside PostgreSQL), results in bench/results
	cargo build --release -p memtrove -p memtrove-bench
	cargo build --release -p memtrove-store --example commits
	$(if $(filter postgres,$(ENGINE)),MEMTROVE_POSTGRES_OPTIONS="$(durable)" scripts/postgres.sh run )$(CARGO_TARGET_DIR)/release/memtrove-bench --engine $(ENGINE) $(ARGS)

bench-scaling: ## Measures what requests cost PostgreSQL at 10,000 to 1,000,000 entries
	cargo build --release -p memtrove
	MEMTROVE_POSTGRES_OPTIONS="$(explained)" scripts/postgres.sh run python3 bench/scaling/measure.py --bin $(CARGO_TARGET_DIR)/release/memtrove --plot docs/scaling.svg

# What `scripts/test-deps.sh` unpacks; without it `local` and MiniLM are left out.
MODEL ?= $(wildcard $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/memtrove/minilm)

bench-recall: ## Measures how well what was written is found again: SCORER=retrieval.py with DATA=locomo10.json, MADIAL=directory or both (ARGS="--against OLD")
	@test -n "$(SCORER)" -a -n "$(DATA)$(MADIAL)" || { echo "usage: make bench-recall SCORER=retrieval.py [DATA=locomo10.json] [MADIAL=dir] [MODEL=dir]; bench/README.md says where they are published" >&2; exit 2; }
	cargo build --release -p memtrove
	python3 bench/recall.py --scorer "$(SCORER)" $(if $(DATA),--data "$(DATA)") $(if $(MADIAL),--madial "$(MADIAL)") \
	  $(if $(MODEL),--model "$(MODEL)") --bin $(CARGO_TARGET_DIR)/release/memtrove --plot docs/recall.svg $(ARGS)

bench-peers: ## Measures search beside chroma and LangGraph's stores, which it installs (ARGS="--write": results in bench/results; --against OLD, --full, --only PART)
	cargo build --release -p memtrove
	MEMTROVE_POSTGRES_OPTIONS="$(durable)" scripts/postgres.sh run python3 bench/peers.py --bin $(CARGO_TARGET_DIR)/release/memtrove $(ARGS)

bench-attacks: ## Measures what callers that stall cost others: bodies not sent, answers not read, idle connections (ARGS="--write": results in bench/results)
	cargo build --release -p memtrove
	python3 bench/attacks.py --bin $(CARGO_TARGET_DIR)/release/memtrove $(ARGS)

bench-hidden: ## Measures what others can tell by time of memories that they may not see (ARGS="--write": results in bench/results)
	cargo build --release -p memtrove
	python3 bench/hidden.py --bin $(CARGO_TARGET_DIR)/release/memtrove $(ARGS)

openapi: ## Writes the API document that clients are generated from, openapi/memtrove.json
	mkdir -p openapi && cargo run --quiet -- openapi >openapi/memtrove.json.new && mv openapi/memtrove.json.new openapi/memtrove.json
