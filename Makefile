# The verbs of the project. `make` alone lists them.

CARGO ?= cargo
# Arguments for the program: make run ARGS="--home /tmp/x"
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help demo run build test conformance lint tidy deny drill bench fuzz properties openapi test-model clean

help: ## list the verbs
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: .setup-build ## build, then run one real turn with tools in a temporary home
	@echo "Building Nylorun; the first time takes some minutes."
	@$(CARGO) run --quiet --locked -p nylorun -- demo $(ARGS)

run: .setup-build ## build, then serve in the foreground: make run ARGS="--home DIR"
	@$(CARGO) run --quiet --locked -p nylorun -- serve $(ARGS)

build: .setup-build ## build the release binary, target/release/nylorun
	$(CARGO) build --locked --release -p nylorun

test: ## install what is missing, then run every check and test, on SQLite and PostgreSQL
	@scripts/test

conformance: .setup-test ## drive the binary over HTTP as clients do, on both databases (a part: make conformance ARGS="stream keys")
	@scripts/postgres with scripts/test-conformance $(ARGS)

lint: ## format, clippy and documentation, warnings refused
	$(CARGO) fmt --all --check
	$(CARGO) clippy --quiet --locked --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --quiet --locked --workspace --no-deps --document-private-items

tidy: ## the repository's own rules: layers, budgets, pages, links
	@$(CARGO) run --quiet --locked -p xtask -- tidy

deny: ## licences, bans, sources and advisories of the dependencies
	@scripts/deny

drill: .setup-test ## kill the server at every durable step and at random moments, on both databases
	@scripts/postgres with $(CARGO) test --locked -p nylorun --test it kills -- --nocapture
	@scripts/postgres with $(CARGO) test --locked --workspace --features nylorun/crash-points --test it crash_points -- --nocapture

bench: .setup-test ## measure the release binary; results go to bench/results (a part: make bench ARGS="--only turn --database sqlite")
	$(CARGO) build --locked --release -p nylorun -p bench
	@scripts/postgres with $(CARGO) run --quiet --locked --release -p bench -- $(ARGS)

fuzz: .setup-build ## made-up input for one reader: make fuzz TARGET=frames MINUTES=10; without TARGET, the names
	$(CARGO) run --locked -p fuzz -- $(TARGET) $(if $(TARGET),--minutes $(or $(MINUTES),1))

properties: .setup-build ## property tests with many more cases: make properties CASES=20000
	PROPTEST_CASES=$(or $(CASES),20000) $(CARGO) test --locked -p nylorun-domain -p nylorun-wire \
		-p nylorun-engine -p nylorun-workspace -p nylorun-gates -p nylorun-keys --lib --test it

openapi: .setup-build ## write openapi/*.json anew from the route table
	UPDATE_OPENAPI=1 $(CARGO) test --quiet --locked -p nylorun-server --test it openapi

test-model: .setup-build ## one turn on a small real model served on this machine; not part of make test
	@scripts/test-model

clean: ## remove what was built and fetched
	$(CARGO) clean
	rm -rf .cache

.PHONY: .setup-build .setup-test
.setup-build:
	@scripts/setup build
.setup-test:
	@scripts/setup test
