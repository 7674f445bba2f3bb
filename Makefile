# Needs Python 3.11 or later, make and a package index; everything else goes to .venv.

PYTHON ?= python3
# What is handed on to pytest: make test ARGS="-k lapse"
ARGS ?=
# How long the storm of `make chaos` takes.
SECONDS ?= 300

VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check
RUNTIME := $(VENV)/.runtime
DEVELOPMENT := $(VENV)/.development
NODE := $(VENV)/.node
# A gigabyte of other frameworks and engines, apart: the core has to work without them.
ENGINES_VENV := .venv-engines
ENGINES := $(ENGINES_VENV)/.installed
TEST_SETTINGS := DJANGO_SETTINGS_MODULE=tests.settings.sqlite
SUITES := browser chaos crash mariadb node roles schema

.DEFAULT_GOAL := help
.PHONY: help install demo test coverage model lint format types imports migrations-check messages schema docs \
	test-engines test-everywhere test-extras test-matrix races crash chaos bench-cycle bench-queue bench-api bench-frameworks clean $(SUITES:%=test-%)

help: ## Say what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

install: $(DEVELOPMENT) ## Set up .venv with everything that developing needs

demo: $(RUNTIME) ## Start the example site with a worker, a broker and an agent
	$(PY) manage.py demo

test: $(DEVELOPMENT) ## Run the suite on SQLite, and on real PostgreSQL and Redis
	$(PY) -m scripts.test $(ARGS)

test-everywhere: $(DEVELOPMENT) ## Run each test of the suite on SQLite and on PostgreSQL
	$(PY) -m scripts.test --everywhere $(ARGS)

coverage: $(DEVELOPMENT) ## Run it and say which lines of the package it covers
	$(PY) -m scripts.test --coverage $(ARGS)

model: $(DEVELOPMENT) ## Explore the protocol in full, in every order (some minutes)
	$(PY) -m tests.model $(ARGS)

lint: $(DEVELOPMENT) ## Check style, formatting, imports and types
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(MAKE) imports types

format: $(DEVELOPMENT) ## Mend what the linter and the formatter can mend
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

types: $(DEVELOPMENT) ## Check the types
	$(PY) -m mypy

imports: $(DEVELOPMENT) ## Check who imports whom
	$(VENV)/bin/lint-imports

migrations-check: $(DEVELOPMENT) ## Check that no migration is missing
	$(TEST_SETTINGS) $(PY) manage.py makemigrations --check --dry-run

messages: $(DEVELOPMENT) ## Gather what is to be translated, and compile what is (needs gettext)
	cd hitl_approvals && ../$(VENV)/bin/django-admin makemessages -l de --no-wrap --no-location --no-obsolete
	cd hitl_approvals && ../$(VENV)/bin/django-admin compilemessages -l de

schema: $(DEVELOPMENT) ## Write the OpenAPI document that the docs link to
	$(PY) -m scripts.schema

docs: $(DEVELOPMENT) ## Build the documentation
	$(PY) -m sphinx --fail-on-warning --keep-going --nitpicky -b html docs docs/_build/html

test-browser: ## Drive the admin in Chromium
test-chaos: ## Take servers away while work is under way
test-crash: ## Kill worker processes at every failpoint
test-mariadb: ## Run the suite on MariaDB
test-node: $(NODE) ## Kill and restart the example's agents, under Node and in curl
test-roles: ## Try every action in every role and state over REST
test-schema: ## Ask the API everything that its OpenAPI document allows
$(SUITES:%=test-%): $(DEVELOPMENT)
	$(PY) -m scripts.test --suite $(@:test-%=%) $(ARGS)

test-engines: $(ENGINES) ## Run what needs other agent frameworks or workflow engines
	$(ENGINES_VENV)/bin/python -m scripts.test --suite engines $(ARGS)

test-extras: $(DEVELOPMENT) ## Run what has to hold with each framework or engine alone
	$(PY) -m scripts.extras $(ARGS)

test-matrix: $(DEVELOPMENT) ## Run the suite with the other Pythons and Djangos that are here
	$(PY) -m scripts.matrix $(ARGS)

races: $(DEVELOPMENT) ## Let every pair of verbs meet twenty times, on every database
	HITL_RACE_ROUNDS=20 $(PY) -m scripts.test tests/concurrency
	HITL_RACE_ROUNDS=20 $(PY) -m scripts.test --suite mariadb tests/concurrency

crash: $(DEVELOPMENT) ## Kill and stop real processes at every failpoint, in every way
	$(PY) -m tests.crash $(ARGS)

chaos: $(DEVELOPMENT) ## Kill everything by chance for SECONDS, and reckon afterwards
	$(PY) -m tests.chaos --seconds $(SECONDS) $(ARGS)

bench-cycle: $(DEVELOPMENT) ## Time one decided call beside bare psycopg
	$(PY) -m tests.benchmarks $(ARGS)

bench-queue: $(DEVELOPMENT) ## Time the pages of the desk at a thousand and at a million rows
	$(PY) -m tests.benchmarks queue $(ARGS)

bench-api: $(DEVELOPMENT) ## Time the API at a thousand and at a million rows, and 500 that wait
	$(PY) -m tests.benchmarks api $(ARGS)

bench-frameworks: $(ENGINES) ## Time a suspension and its resumption beside LangGraph and DBOS
	$(ENGINES_VENV)/bin/python -m tests.benchmarks frameworks $(ARGS)

clean: ## Remove everything that was made here, the environments included
	rm -rf $(VENV) .venv-* .artifacts .demo docs/_build .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	rm -f .coverage .coverage.*
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(PY):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or later is needed; name one: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)

# pip reads dependency groups since 25.1, and new environments may get an older one.
$(RUNTIME): pyproject.toml constraints.txt | $(PY)
	$(PIP) install --quiet --upgrade 'pip>=25.1'
	$(PIP) install --quiet --constraint constraints.txt --editable '.[base]' --group demo
	@touch $@

$(DEVELOPMENT): $(RUNTIME)
	$(PIP) install --quiet --constraint constraints.txt --editable '.[base]' --group dev
	@touch $@

$(ENGINES): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(ENGINES_VENV)
	$(ENGINES_VENV)/bin/pip --disable-pip-version-check install --quiet --upgrade 'pip>=25.1'
	$(ENGINES_VENV)/bin/pip --disable-pip-version-check install --quiet --constraint constraints.txt \
		--editable '.[all]' --group engines
	@touch $@

$(NODE): $(DEVELOPMENT)
	$(PIP) install --quiet --constraint constraints.txt --group node
	@touch $@
