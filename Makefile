# Everything runs in .venv, which is made on first use; `make help` lists the targets.
PYTHON ?= python3
BIN := .venv/bin
KERNELS ?= 1
PIP := $(BIN)/pip install -q --disable-pip-version-check --no-compile
DEMO_EXTRAS := view

# Bytecode is kept, in .venv, even where the environment forbids it: else each process that the tests start compiles all sources
# of Warp, NumPy and this package anew, more than 2 s.
export PYTHONDONTWRITEBYTECODE :=
export PYTHONPYCACHEPREFIX := $(CURDIR)/.venv/pycache

.DEFAULT_GOAL := help
.PHONY: help demo view test test-all kernels lint docs dist bench clean

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## */\1|/' | awk -F'|' '{printf "  make %-10s %s\n", $$1, $$2}'

demo: .venv/.demo ## run the demonstration
	$(BIN)/sharnir demo

view: .venv/.demo ## show an example, or a file of your own, in the browser (NAME=four_bar)
	$(BIN)/sharnir view $(or $(NAME),four_bar)

# The kernels are compiled once before the tests, so that two workers do not compile the same module at once; and while the
# environment is made, which takes one core alone.
test: ## the fast tests, two at a time
	$(MAKE) -s -j 2 .venv/.ready kernels
	$(BIN)/python -m pytest -n 2 --dist loadfile

test-all: ## all tests, the slow ones too; times are asserted
	$(MAKE) -s -j 2 .venv/.ready kernels
	SHARNIR_TIMES=1 $(BIN)/python -m pytest -n 2 --dist loadfile -m ""

# From the sources beside this file, whatever pip does to what is installed.
kernels: .venv/.base
	$(BIN)/python -c "from sharnir.cli.arguments import main; raise SystemExit(main(['info', '--compile']))"

lint: .venv/.ready ## ruff (lint, format), mypy, docs, wheel and sdist
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(MAKE) -s docs dist KERNELS=0

docs: .venv/.ready ## the pages, into out/docs; a warning or a broken link is an error
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs out/docs
	@echo "docs: open out/docs/index.html"

dist: .venv/.ready ## wheel, with compiled kernels (KERNELS=0: without), and sdist into dist/, installed and tried
	rm -rf dist
	SHARNIR_KERNELS=$(KERNELS) $(BIN)/python -m build --no-isolation -o dist . > /dev/null
	$(BIN)/python docs/tools/try_dist.py

bench: .venv/.ready ## the benchmarks, peers side by side
	$(BIN)/python -m benchmarks

clean: ## remove what was made, the environment too
	rm -rf .venv out dist .pytest_cache .ruff_cache .mypy_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	$(PYTHON) -m venv .venv

# What the library needs itself.
.venv/.base: pyproject.toml | $(BIN)/python
	$(PIP) -e .
	touch $@

.venv/.ready: .venv/.base
	$(PIP) -e ".[dev]"
	touch .venv/.ready .venv/.demo

# The demonstration does with less; a full environment serves it too.
.venv/.demo: pyproject.toml | $(BIN)/python
	$(PIP) -e ".[$(DEMO_EXTRAS)]"
	touch $@
