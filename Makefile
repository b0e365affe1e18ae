# One command each; `make` alone lists them. Every target first brings .venv up to date where that is needed.
SHELL := /bin/sh
.DEFAULT_GOAL := help
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory

PY := .venv/bin/python
# Written last by tools/environment.py, so it exists only after a set-up that succeeded.
READY := .venv/.ready
BUILT_FROM := tools/environment.py pyproject.toml $(wildcard setup.py) \
	$(shell find src/lancelet/kernels -name '*.py' -o -name '*.pxd' -o -name '*.pyi')

# At most four workers: each may start a JVM.
PARALLEL := -n auto --maxprocesses 4 --dist loadfile
# `make check test` runs the unit tests once, in check.
UNLESS_CHECKED := $(if $(filter check,$(MAKECMDGOALS)),--ignore=tests/unit)

.PHONY: help setup demo test check test-long bench docs api clean

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' Makefile

demo: $(READY) ## run a pipeline on Spark over texts of this machine, and ask its table (needs no cluster)
	@$(PY) -m demo

test: $(READY) ## run all tests but the long ones; those that measure time or memory run alone
	$(PY) -m pytest -m "timing and not long"
	$(PY) -m pytest -m "not timing and not long" $(PARALLEL) $(UNLESS_CHECKED)

check: $(READY) ## format, lint, types, order of the rooms, sizes, unit tests: under 90 seconds
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	$(PY) -m mypy
	$(PY) -m pytest tests/unit -m "not timing and not long" $(PARALLEL)

test-long: $(READY) ## run the tests that take minutes each
	$(PY) -m pytest -m long

bench: $(READY) ## compare with what you would use instead; ONLY=kernels runs one family
	@$(PY) -m bench $(ONLY)

docs: $(READY) ## build the documentation into build/docs
	@$(PY) -m mkdocs -q build --strict --site-dir build/docs
	@$(PY) -m pdoc --docformat restructuredtext -o build/docs/api lancelet $$($(PY) -c \
		'import lancelet, pkgutil; print(*("lancelet." + module.name for module in pkgutil.iter_modules(lancelet.__path__)))')
	@echo "open build/docs/index.html; the API is in build/docs/api/lancelet.html"

api: $(READY) ## bring docs/api.md, our names beside those of pylance, up to date
	@$(PY) tools/api_table.py

clean: ## remove everything that these commands made, .venv too
	rm -rf .venv build dist node_modules .cache bench/results spark-warehouse metastore_db derby.log artifacts
	rm -rf .pytest_cache .hypothesis .mypy_cache .ruff_cache src/*.egg-info
	find src tests bench demo -name __pycache__ -prune -exec rm -rf {} +
	find src -name '*.so' -exec rm -f {} +

setup: $(READY)

# The interpreter may be given as PYTHON=…; otherwise the first one that is new enough.
PYTHON ?= $(shell for name in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	$$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$name; break; }; done)

$(READY): $(BUILT_FROM)
	@if [ -z "$(PYTHON)" ]; then \
		echo "lancelet needs Python 3.11 or newer and found none on PATH; install one, or name it: make PYTHON=/path/to/python3" >&2; \
		exit 1; fi
	@"$(PYTHON)" tools/environment.py
