# Everything installs itself into .venv; only Python 3.11+, pip and make are needed.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo docs test test-all lint format bench dist clean

demo: .venv/.demo  ## a two-minute tour that ends in a page: out/tour/report.html
	$(BIN)/unbounded run tour
	$(BIN)/unbounded report out/tour

docs: .venv/.docs  ## the site, out/site/index.html: without warnings, all links of its own checked
	$(BIN)/sphinx-build -q -W --keep-going -b html docs out/site
	$(BIN)/python docs/links.py out/site

test: .venv/.test  ## the tests, doctests included
	$(BIN)/python -m pytest -n auto

test-all: .venv/.test  ## with the long statistics, every learner on every Python found and on two Numbas, memory checks
	$(BIN)/python -m pytest -n auto -m "long or not long"
	$(BIN)/python tests/interpreters.py --all
	$(BIN)/python tests/litellm_router.py
	$(BIN)/python tests/litellm_workers.py
	$(BIN)/python tests/evolution.py
	$(BIN)/python tests/numba_versions.py --all
	$(BIN)/python tests/memory.py

lint: .venv/.lint .venv/.test  ## style, types, layers
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tests/snippets.py
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.readthedocs .readthedocs.yaml
	$(BIN)/python docs/style_check.py docs src tests

format: .venv/.lint
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: .venv/.bench .venv/.test  ## ratios against peers and references; needs gcc
	$(BIN)/python benchmarks/start.py
	$(BIN)/python benchmarks/bandits.py
	$(BIN)/python benchmarks/many_arms.py
	$(BIN)/python benchmarks/occupancy.py
	$(BIN)/python benchmarks/durable.py

dist: .venv/.release  ## a release, tried in a new environment: docs/develop/index.md
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	$(BIN)/twine check --strict dist/*
	$(BIN)/python tests/release.py dist
	$(BIN)/python tests/commands.py dist/*.whl
	PATH=$(BIN):$$PATH $(BIN)/python tests/dependencies.py dist/*.whl

clean:
	rm -rf .venv out dist

.venv/bin/python:
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip

.venv/.ci: pyproject.toml | .venv/bin/python  ## what .ci/run needs, by one run of pip
	$(BIN)/python -m pip install --quiet --editable '.[lint,test,docs]'
	touch .venv/.lint .venv/.test .venv/.docs $@

.venv/.%: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --editable '.[$*]'
	touch $@
