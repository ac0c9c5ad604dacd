# One virtual environment, two stamps: a second run installs nothing.
#   make demo       install what the demonstration needs and run it (DEMO_ARGS="--json record.json")
#   make test       install what the tests need; lint, types, layers, tests (PYTEST_ARGS="-k name")
#   make lint       the same without the tests
#   make bench      hours of measuring beside the bare model and other caches (BENCH_ARGS="--quick": minutes)
#   make trust      attack it for an hour: fuzzing, faults, forgeries; writes docs/reliability.md (TRUST_ARGS="--quick": minutes)
#   make audit      ask whether a dependency is known to be vulnerable (AUDIT_ARGS=all: those of the extras too)
#   make docs       the documentation as a site of its own, in build/site; needs no network once installed
#   make notebooks  run every notebook from top to bottom (NOTEBOOKS_ARGS=--write: and keep the outputs)
#   make screenshots  the pictures in docs/images, made again from real runs; needs Chromium (SHOTS_ARGS="--only demo")

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test lint bench trust audit docs notebooks screenshots clean
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
	@echo "Installing what the demonstration needs into $(VENV), this once: some minutes, and silent."
	$(PIP) install --quiet --editable ".[demo]"
	@touch $@

$(VENV)/.bench: $(VENV)/.made pyproject.toml
	$(PIP) install --quiet --editable ".[bench]"
	@touch $@ $(VENV)/.demo

$(VENV)/.docs: $(VENV)/.made pyproject.toml
	$(PIP) install --quiet --editable ".[docs]"
	@touch $@

$(VENV)/.notebooks: $(VENV)/.made pyproject.toml
	$(PIP) install --quiet --editable ".[notebooks]"
	@touch $@ $(VENV)/.bench $(VENV)/.demo

# torch first and by itself: the build that this platform's index offers, not one pulled in later.
$(VENV)/.test: $(VENV)/.made pyproject.toml
	$(PIP) install --quiet torch==2.13.0
	$(PIP) install --quiet --editable ".[test]"
	@touch $@ $(VENV)/.bench $(VENV)/.demo $(VENV)/.docs $(VENV)/.notebooks

# Without the fuzzer that is guided by coverage where there is none for this platform.
$(VENV)/.trust: $(VENV)/.test
	$(PIP) install --quiet --editable ".[trust]" || echo "make trust: atheris cannot be installed here"
	@touch $@

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

trust: $(VENV)/.trust
	$(BIN)/python -m trust $(TRUST_ARGS)

audit: $(VENV)/.test
	$(BIN)/python -m trust.dependencies --audit $(AUDIT_ARGS)

docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

notebooks: $(VENV)/.notebooks
	$(BIN)/python notebooks/run.py --out $(VENV)/notebooks $(NOTEBOOKS_ARGS)

screenshots: $(VENV)/.test
	$(BIN)/python docs/_build/screenshots.py $(SHOTS_ARGS)

clean:
	rm -rf $(VENV)
