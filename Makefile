PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test check lint bench paper paper-quick docs clean

demo: $(STAMP)
	$(BIN)/themis demo

test: $(STAMP)
	$(BIN)/python -m pytest -n auto

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

check: lint test

bench: $(STAMP)
	set -e; for name in coverage speed subjects http_service "load --quick" "search --quick"; do \
		set -- $$name; $(BIN)/python benchmarks/$$1.py $$2; done

paper: $(STAMP)
	$(BIN)/python -m studies.fse2017

paper-quick: $(STAMP)
	$(BIN)/python -m studies.fse2017 --quick

docs: $(STAMP)
	$(BIN)/mkdocs build --strict --site-dir site

$(STAMP): pyproject.toml src/themis/_version.py
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	touch $(STAMP)

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
