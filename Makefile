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
.PHONY: help setup setup-demo demo test check format lock bench-capture bench-changes clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: setup-demo ## run the demonstration: a small lake, a late row, a capture; on real Spark
	$(BIN)/python -m dalsegno.demo

test: setup ## run all tests (ARGS=... goes to pytest)
	$(BIN)/python -m pytest $(ARGS)

check: setup ## check format, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy src tests scripts $(wildcard benchmarks examples)

format: setup ## format the code and repair what the linter can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench-capture: setup ## measure how long a capture takes
	$(BIN)/python -m benchmarks.capture

bench-changes: setup ## measure how long it takes to get the rows that a MERGE changed
	$(BIN)/python -m benchmarks.changes

setup: ## make .venv for development (the other targets do it when needed)
	@$(PYTHON) scripts/setup.py dev

setup-demo: ## make .venv for the demo only
	@$(PYTHON) scripts/setup.py demo

lock: setup ## renew requirements/*.txt (ARGS=--upgrade takes newer releases)
	scripts/lock.sh $(BIN)/uv $(ARGS)

clean: ## remove .venv and everything that was built or cached here
	rm -rf .venv .cache build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis spark-warehouse
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
