PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
CORE := $(VENV)/.core
DEV := $(VENV)/.dev
FRAMEWORKS := $(VENV)/.frameworks
SOURCES := pyproject.toml src/themis/_version.py

.PHONY: demo test test-full test-all test-pythons lint check bench paper paper-quick docs docs-serve package clean
.NOTPARALLEL: # two installs into one environment at once would break it

demo: $(CORE)
	$(BIN)/themis demo

test: $(DEV)
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow" --durations 10 --durations-min 3

test-full: $(FRAMEWORKS)
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not long" --durations 25 --durations-min 8

test-all: $(FRAMEWORKS)
	$(BIN)/python -m pytest -n auto --dist worksteal

test-pythons:
	.ci/pythons

lint: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

check: lint test

bench: $(DEV)
	set -e; for name in coverage speed felt "growth --quick" subjects http_service slots "scaling --quick" "load --quick" "load --soak" "search --quick" "verdicts --quick"; do \
		set -- $$name; $(BIN)/python benchmarks/$$1.py $$2; done

paper: $(DEV)
	$(BIN)/python -m studies.fse2017

paper-quick: $(DEV)
	$(BIN)/python -m studies.fse2017 --quick

docs: $(DEV)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir site

docs-serve: docs
	$(BIN)/python -m http.server --directory site --bind 127.0.0.1 8000

# Three stamps in one environment: the demo needs a fifth of what the tests do, and those a quarter
# of what the slow ones do. uv installs, where
# there is one that knows dependency groups, and pip otherwise.
ifneq ($(shell uv pip install --help 2>/dev/null | grep -e --group),)
ENVIRONMENT := test -x $(BIN)/python || $(PYTHON) -m venv --without-pip $(VENV)
INSTALL := uv pip install --quiet --python $(BIN)/python
else
ENVIRONMENT := test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV)
INSTALL := $(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check
endif

$(CORE): $(SOURCES)
	$(ENVIRONMENT)
	$(INSTALL) --editable .
	touch $@

$(DEV): $(SOURCES)
	$(ENVIRONMENT)
	$(INSTALL) "pip>=25.1" # the first that knows dependency groups
	$(INSTALL) --editable ".[all]" --group dev
	touch $(CORE) $@

$(FRAMEWORKS): $(DEV)
	$(INSTALL) --group frameworks
	touch $@

package:
	.ci/package $(PYTHON)

clean:
	rm -rf dist site .venv .venvs .pytest_cache .mypy_cache .ruff_cache .hypothesis
