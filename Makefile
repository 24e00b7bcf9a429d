# Everything sets itself up: only Python 3.11 or newer and make are needed. `make help` lists the targets.

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
ifeq ($(strip $(PYTHON)),)
$(error Python 3.11 or newer was not found as python3, python3.14, 3.13, 3.12 or 3.11. Install one, or name it: make PYTHON=/path/to/python)
endif

# Arguments for pytest, for instance: make test ARGS='tests/spark -k java'
ARGS ?=
BIN := .venv/bin

.DEFAULT_GOAL := help
.PHONY: help setup setup-demo demo test prove-changes prove-exact prove-lakes prove-rewrites prove-runs chaos check format lock clean
.PHONY: bench-capture bench-changes bench-cli bench-declared bench-engine bench-lake bench-pipeline bench-service bench-spark bench-triggers

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: setup-demo ## run the demonstration: days with late events, with a lookback and incremental, on real Spark
	$(BIN)/python -m examples.playback.demo

# Two processes, each with a Spark of its own; a file's tests stay together, and what takes long is not left to the end.
# ARGS='-n 0 …' runs them in this one.
test: setup ## run all tests (ARGS=... goes to pytest)
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder $(ARGS)

prove-changes: setup ## compare captures with the truth on 1,000 random histories (ARGS=... goes to pytest)
	$(BIN)/python -m pytest tests/iceberg/test_histories.py --histories 1000 $(ARGS)

prove-exact: setup ## play thousands of scripts, faults and what people do, and compare targets with the truth (ARGS=...)
	$(BIN)/python -m pytest tests/exact -n 2 --scenarios 1800 --rest-scenarios 200 $(ARGS)

# Needs Java, Maven, Go and npm; what they install is kept in the cache folder of dalsegno.
prove-lakes: setup ## try the servers of lakes and clusters that Maven, Go and npm install (ARGS=... goes to pytest)
	$(BIN)/python -m pytest -n 0 -m prove_lakes $(ARGS)

prove-rewrites: setup ## compare incremental SQL with the full SELECT on 150 random histories of random queries (ARGS=...)
	$(BIN)/python -m pytest tests/rewrite --rewrites 150 $(ARGS)

prove-runs: setup ## kill workers through 100 incremental runs while a writer works on the tables (ARGS=... goes to pytest)
	$(BIN)/python -m pytest tests/acceptance/test_under_fire.py --fires 100 -s $(ARGS)

chaos: setup ## kill nodes 200 times, cut them off and restart their database, while hundreds of workflows run (ARGS=...)
	$(BIN)/python -m pytest tests/chaos --kills 200 -s $(ARGS)

check: setup ## check format, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy src tests scripts benchmarks $(if $(wildcard examples/*/*.py),examples)

format: setup ## format the code and repair what the linter can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench-capture: setup ## measure how long a capture takes
	$(BIN)/python -m benchmarks.capture

bench-changes: setup ## measure how long it takes to get the rows that a MERGE changed
	$(BIN)/python -m benchmarks.changes

bench-cli: setup ## measure the CPU time of commands, in multiples of import sqlalchemy
	$(BIN)/python -m benchmarks.cli

bench-lake: setup ## measure captures where each request to the store takes 30 ms; needs Go (ARGS=... goes to it)
	$(BIN)/python -m benchmarks.lake $(ARGS)

bench-spark: setup ## measure what a Spark SQL step adds to its query
	$(BIN)/python -m benchmarks.spark_step

bench-engine: setup ## measure what the engine adds to the steps it runs, beside Dagster (ARGS=... goes to it)
	$(BIN)/python -m benchmarks.engine $(ARGS)

bench-triggers: setup ## measure what watching 1,000 tables costs, and how soon a commit starts a run (ARGS=... goes to it)
	$(BIN)/python -m benchmarks.triggers $(ARGS)

# About an hour on two cores with nothing else to do, and 30 GB in build/ for a while.
bench-pipeline: setup ## measure whether incremental processing pays, beside lookback and others (ARGS=... goes to it)
	$(BIN)/python -m benchmarks.pipeline --chart docs/images $(ARGS)

# About half an hour on two cores with nothing else to do, and 40 GB in build/ for a while.
bench-declared: setup ## measure declared tables beside lookback, SQL by hand and full refreshes (ARGS=... goes to it)
	$(BIN)/python -m benchmarks.declared $(ARGS)

bench-service: setup ## measure nodes on PostgreSQL under load, and when one dies (ARGS='--minutes 5' for less than an hour)
	$(BIN)/python -m benchmarks.service $(ARGS)

setup: ## make .venv for development (the other targets do it when needed)
	@$(PYTHON) scripts/setup.py dev

setup-demo: ## make .venv for the demo only
	@$(PYTHON) scripts/setup.py demo

lock: setup ## renew requirements/*.txt (ARGS=--upgrade takes newer releases)
	scripts/lock.sh $(BIN)/uv $(ARGS)

clean: ## remove .venv and everything that was built or cached here
	rm -rf .venv .cache build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis spark-warehouse
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
