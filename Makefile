# Two commands on a fresh machine with Python 3.11+ and make:
#   make demo   trains on Adult, prints a table, writes frontier.png
#   make test   runs the tests
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
CONTEST ?= build/contest
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet

.PHONY: demo test test-all lint format types docs bench track picture peers vendor holds methods reproduce stale clean

demo: $(VENV)/.demo
	$(BIN)/python examples/demo.py

test: $(VENV)/.test
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow and not network" tests README.md $(PYTEST_ARGS)

test-all: $(VENV)/.test
	$(BIN)/python -m pytest $(PYTEST_ARGS)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(VENV)/.dev
	$(BIN)/mypy

docs: $(VENV)/.docs
	$(BIN)/sphinx-build -q -W -b html docs docs/_build/html

# A bar that is missed is printed and does not stop the others.
bench: $(VENV)/.bench
	-$(BIN)/python benchmarks/quality.py
	-$(BIN)/python benchmarks/quality.py --units
	-$(BIN)/python benchmarks/contest_quality.py --cache $(CONTEST)
	$(BIN)/python benchmarks/speed.py
	-$(BIN)/python benchmarks/oracle.py
	-$(BIN)/python benchmarks/contest.py
	-$(BIN)/python benchmarks/scale.py
	-$(BIN)/python benchmarks/train.py

track: $(VENV)/.track
	$(BIN)/python -m pytest -q --benchmark-autosave benchmarks/track_parts.py $(TRACK_ARGS)

# The README's picture: the frontier on test data, with fairlearn and OxonFair beside it.
picture: $(VENV)/.bench
	$(BIN)/python benchmarks/frontier.py

# Fits of the contest that are in CONTEST already are not run again.
peers: $(VENV)/.peers
	$(BIN)/python benchmarks/contest_quality.py --cache $(CONTEST) --page docs/contest.md $(PEERS_ARGS)

# What a machine without a package index needs beside NumPy, SciPy, scikit-learn and pandas.
vendor: $(VENV)/.peers
	$(BIN)/python benchmarks/contest_vendor.py $(CONTEST)/vendor
	$(BIN)/python benchmarks/contest_quality.py --fetch --cache $(CONTEST) --data-home $(CONTEST)/data

holds: $(VENV)/.peers
	$(BIN)/python benchmarks/holds.py $(HOLDS_ARGS)

methods: $(VENV)/.demo
	$(BIN)/python benchmarks/methods.py $(METHODS_ARGS)

reproduce: $(VENV)/.paper
	$(BIN)/evenhand reproduce --out docs/reproduction $(REPRODUCE_ARGS)
	changes=$$($(BIN)/python tools/verdicts.py) && echo "$$changes" > docs/reproduction/changes.md

# Pages whose figures are older than the code they measure; none at a release.
stale:
	@$(PYTHON) tools/stale.py

clean:
	rm -rf $(VENV) docs/_build docs/api build dist

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "evenhand needs Python 3.11 or newer; try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: $(BIN)/python pyproject.toml
	@echo "setting up $(VENV) ..."
	$(PIP) -e ".[cli,fast,plot]"
	@touch $@

$(VENV)/.test: $(BIN)/python pyproject.toml
	@echo "setting up $(VENV) ..."
	$(PIP) -e ".[test]"
	@touch $@

$(VENV)/.track: $(BIN)/python pyproject.toml
	$(PIP) -e ".[bench]"
	@touch $@

$(VENV)/.peers: $(BIN)/python pyproject.toml
	$(PIP) -e ".[cli,fast,plot,peers]"
	@touch $@

$(VENV)/.paper: $(BIN)/python pyproject.toml
	$(PIP) -e ".[fast,paper]"
	@touch $@

$(VENV)/.bench: $(BIN)/python pyproject.toml
	$(PIP) -e ".[cli,fast,plot,peers,dask]"
	@touch $@

$(VENV)/.dev: $(BIN)/python pyproject.toml
	$(PIP) -e ".[dev]"
	@touch $@

$(VENV)/.docs: $(BIN)/python pyproject.toml
	$(PIP) -e ".[docs]"
	@touch $@
