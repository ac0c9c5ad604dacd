# One virtual environment, two stamps: a second run installs nothing.
#   make demo       install what the demonstration needs and run it (DEMO_ARGS="--json record.json")
#   make test       install what the tests need; lint, types, layers, tests (PYTEST_ARGS="-k name")
#   make lint       the same without the tests
#   make bench      hours of measuring beside the bare model and other caches (BENCH_ARGS="--quick": minutes)
#   make notebooks  run every notebook from top to bottom

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test lint bench notebooks clean
MAKEFLAGS += --no-builtin-rules
SHELL := /bin/sh

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

help:
	@sed -n 's/^#   //p' Makefile

$(VENV)/.made:
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or newer is needed: make PYTHON=/path/to/python3.11"; exit 1; }
	"$(PYTHON)" -m venv $(VENV)
	@touch $@

$(VENV)/.demo: $(VENV)/.made pyproject.toml
	$(PIP) install --quiet --editable ".[demo]"
	@touch $@

$(VENV)/.bench: $(VENV)/.made pyproject.toml
	$(PIP) install --quiet --editable ".[bench]"
	@touch $@ $(VENV)/.demo

# torch first and by itself: the build that this platform's index offers, not one pulled in later.
$(VENV)/.test: $(VENV)/.made pyproject.toml
	$(PIP) install --quiet torch==2.13.0
	$(PIP) install --quiet --editable ".[test]"
	@touch $@ $(VENV)/.bench $(VENV)/.demo

demo: $(VENV)/.demo
	$(BIN)/stepcache demo $(DEMO_ARGS)

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: lint
	$(BIN)/python -m pytest $(PYTEST_ARGS)

bench: $(VENV)/.bench
	$(BIN)/stepcache bench paper $(BENCH_ARGS)

notebooks:
	@ls notebooks/*.ipynb >/dev/null 2>&1 || { echo "make notebooks: there are no notebooks (notebooks/*.ipynb) yet"; exit 2; }
	$(MAKE) $(VENV)/.test
	$(PIP) install --quiet nbconvert ipykernel
	$(BIN)/python -m nbconvert --to notebook --execute --output-dir $(VENV)/notebooks notebooks/*.ipynb

clean:
	rm -rf $(VENV)
