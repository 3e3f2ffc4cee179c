# make app         the dashboard (first time: makes .venv and installs what it needs)
# make test        lint, types and tests; with CI=true also the slow, real-data and browser tests
# make lint        lint and types alone
# make acceptance  the paper's tables and the statistical proofs: long
# make campaign    kills, damaged files, full disks, hostile files, attacks on what is told, counted: an hour
# make sample-audit  the audit that a first start shows, trained anew: after a change to training or audit
# make docs        the parts of docs/ and the schema of a record that follow from the code, written anew: after a new method,
#                  backbone, attacker, layout or metric
# make bench       speed, as ratios within one run; make bench BENCH_DATA="DATA DATA" times other graphs
# make paper       the paper's tables and figures, of the graphs that lie in PAPER_DATA: hours; goes on where it stopped
#
# PYTHON names the interpreter that makes .venv. Another build of torch: install it into .venv by hand.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

# Bytecode is kept: without it each of the tests' processes compiles all modules again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: app test lint acceptance campaign sample-audit docs bench paper
app: $(VENV)/.app
	$(BIN)/python -m uge_core app

test: lint
	$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder
	$(BIN)/python -m pytest --only-alone

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy -n auto

acceptance: $(VENV)/.dev
	$(BIN)/python -m pytest -m acceptance

campaign: $(VENV)/.dev
	$(BIN)/python -m tests.campaigns

sample-audit: $(VENV)/.app
	$(BIN)/python -m uge_core.runs.sample_audit

docs: $(VENV)/.app
	$(BIN)/python tests/written_docs.py
	$(BIN)/python -m uge_core.runs.schema

bench: $(VENV)/.app
	$(BIN)/python -m uge_core bench $(BENCH_DATA)

paper: $(VENV)/.app
	$(BIN)/python -m uge_core reproduce all $(PAPER_DATA) --rows uge_core/runs/reproduced

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; name one with make PYTHON=/path/to/python3.11" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.app: requirements.txt pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install -r requirements.txt -e .
	@touch $@

$(VENV)/.dev: requirements-dev.txt $(VENV)/.app
	$(BIN)/python -m pip install -r requirements-dev.txt
	@touch $@
