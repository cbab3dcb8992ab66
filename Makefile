# Needs make and Python 3.11 or newer, nothing else. `make` alone lists what there is.

# The first interpreter that fits; a name on PATH is not enough (a version manager's stub answers to every name).
# The upper bound is numba's: no wheels exist for a later Python.
PYTHON ?= $(shell for python in python3.11 python3.12 python3.13 python3.14 python3; do \
	$$python -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' 2>/dev/null && { echo $$python; break; }; done)

BIN := .venv/bin
LOCKED := .venv/.locked
READY := .venv/.ready
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
UV_VERSION := 0.13.9
# Read from make's command line only: some shells export HOST, and a page served to a whole network must be meant.
HOST := localhost

.DEFAULT_GOAL := help
# `make lint test` in that order even under -j: the last line printed is pytest's.
.NOTPARALLEL:
.PHONY: help app lab report validate test lint format bench browser lock clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo 'ARGS="..." is passed on, e.g. make test ARGS="-k staleness"'

app: $(READY) ## the explorer in the browser, on localhost:8866 (else PORT=..., HOST=...)
	$(BIN)/python -m rlqueue.app --host $(HOST) $(ARGS)

lab: $(READY) ## the same notebooks in JupyterLab
	$(BIN)/jupyter lab notebooks $(ARGS)

report: $(READY) ## every table and figure of the source report beside what was printed, into build/report
	$(BIN)/python -m rlqueue.cli report --out build/report $(ARGS)

validate: $(READY) ## published runs predicted blind, with every error; tables into build/validation
	$(BIN)/python -m rlqueue.cli validate --out build/validation $(ARGS)

test: $(READY) browser ## all tests, those in a browser among them
	$(BIN)/python -m pytest $(ARGS)

lint: $(READY) ## style, formatting and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

format: $(READY) ## rewrite the files as lint wants them
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

bench: $(READY) ## print how fast solve, grid and page are
	$(BIN)/python -m benchmarks $(ARGS)

browser: $(READY)
	@$(BIN)/python tests/browser.py

lock: ## pin the newest releases that pyproject.toml admits (environment.yml then follows by hand; a test compares)
	$(PYTHON) -m venv build/lock
	build/lock/bin/python -m pip --disable-pip-version-check --quiet install uv==$(UV_VERSION)
	build/lock/bin/uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 --fork-strategy fewest \
		--only-binary :all: --generate-hashes --no-header --no-annotate --upgrade --quiet --output-file requirements.lock

clean: ## remove the environment and everything built
	rm -rf .venv build dist .hypothesis .import_linter_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Two stamps, since a change of pyproject.toml (a lint rule, say) need not fetch a hundred packages again.
$(LOCKED): requirements.lock
	@test -n "$(PYTHON)" || { echo "No Python from 3.11 to 3.14 found on PATH; name one: make PYTHON=/path/to/python" >&2; exit 1; }
	@echo "Installing the packages of requirements.lock into .venv: about a minute, once."
	@$(PYTHON) -m venv .venv
	@# The lock is closed (pip check says so) and by hash; --no-deps spares the resolver, wheels only runs nobody's setup code.
	@$(PIP) install --no-deps --require-hashes --only-binary :all: --requirement requirements.lock
	@$(PIP) check
	@touch $@

$(READY): $(LOCKED) pyproject.toml
	@$(PIP) install --no-deps --no-index --no-build-isolation --editable .
	@echo "Compiling the simulation: a minute or two, once."
	@$(BIN)/python -m rlqueue.warm_up
	@touch $@
