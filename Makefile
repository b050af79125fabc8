# Everything runs in a virtual environment of this checkout. `make` alone lists the targets.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python3.10; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null && echo $$p && break; done)
DEFAULT_PYTHON := $(filter python3,$(PYTHON))
VENV ?= $(if $(DEFAULT_PYTHON),.venv,.venv-$(notdir $(PYTHON)))
BIN := $(VENV)/bin
SHELL_FILES := scripts/mcpgreen scripts/installed/mcpgreen .ci/run mcpgreen/sdk/json-tool mcpgreen/sdk/bin/jq $(wildcard mcpgreen/sdk/*.sh \
	mcpgreen/providers/*.sh mcpgreen/running/*.sh mcpgreen/templates/*/*.sh mcpgreen/templates/*/*.bash \
	project/tools/*/*.sh project/providers/*.sh scripts/demonstration/tools/count-words.sh examples/*/*/*.sh \
	examples/*/*/*/*.sh tests/conformance/project/tools/*.sh tests/conformance/project/providers/*.sh)
# Two more than processors: tests wait for time as well. A selection is quicker in one process, unless it is large:
# TESTS=tests/features WORKERS=auto
WORKERS ?= $(if $(TESTS),0,$(shell expr $$(getconf _NPROCESSORS_ONLN) + 2))
# The checkout as a plain line in a .pth file. By itself, setuptools has every Python of the environment load a finder,
# which takes longer than all the rest of its start; and tests start thousands.
EDITABLE := --config-settings editable_mode=compat -e
# $(call install,WHAT): names each package when it is fetched. pip alone would say nothing, or far too much.
install = @{ $(BIN)/python -m pip install --progress-bar off --disable-pip-version-check $(1) || echo failed; } \
	| awk '/^Collecting /{print "  " $$2; fflush()} /^Installing collected/{print "  ... and installing them"; fflush()} \
	/^failed$$/{exit 1}'
# Whatever the shell says: without what Python has compiled, each process would compile what it imports.
unexport PYTHONDONTWRITEBYTECODE
ROUNDS ?= 100
ABUSE_SECS ?= 200
SUITE := tests/conformance
FRAMEWORKS := tests/frameworks
FRAMEWORKS_VENV := .venv-frameworks
FASTMCP_VENV := .venv-fastmcp
TYPESCRIPT_PEER := scripts/bench/typescript

help: ## List the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 13

run: $(VENV)/.runs ## Show the server at work on project/
	@$(BIN)/python scripts/demo.py

test: $(VENV)/.tests ## Run all tests
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(OPTIONS) $(TESTS)

lint: $(VENV)/.tests ## Check style, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python scripts/check_layers.py
	@if command -v shellcheck >/dev/null; then echo shellcheck $(SHELL_FILES); shellcheck $(SHELL_FILES); \
	else echo "shellcheck is not installed: shell files were not checked"; fi

stress: $(VENV)/.tests ## Run the stress tests, 100 rounds each (ROUNDS=n), and attack at random (ABUSE_SECS=n, three times)
	@MCPGREEN_STRESS_ROUNDS=$(ROUNDS) MCPGREEN_ABUSE_SECS=$(ABUSE_SECS) $(BIN)/python -m pytest tests/stress tests/abuse

faults: $(VENV)/.tests ## Plant faults, and check that the tests catch each of them (FAULTS=names and options)
	@$(BIN)/python scripts/planted_faults.py $(FAULTS)

bench: $(VENV)/.bench ## Measure the speed, and compare it with other servers
	@$(BIN)/python scripts/bench $(BENCH)

conformance: $(VENV)/.tests $(SUITE)/node_modules/.ready ## Run the official conformance suite
	@$(BIN)/python scripts/conformance.py $(CONFORMANCE)
	@$(BIN)/python -m pytest -q $(SUITE)/checks.py

frameworks: $(FASTMCP_VENV)/.ready $(FRAMEWORKS_VENV)/.ready $(FRAMEWORKS)/node/node_modules/.ready ## Install agent frameworks; the tests then try them

dist: $(VENV)/.build ## Build the wheel and the sdist in dist/, and try the wheel in a fresh environment
	@rm -rf build dist/*.whl dist/*.tar.gz
	@$(BIN)/python -m build --outdir dist . >/dev/null
	@$(BIN)/python scripts/check_dist.py

launcher: $(VENV)/.runs ## Build dist/mcpgreen, one file to copy anywhere (OFFLINE=1: with all packages inside)
	@$(BIN)/python scripts/build_launcher.py $(if $(OFFLINE),--offline)

docs: $(VENV)/.runs ## Write the generated pages in docs/, and site/ with all pages for a browser
	@$(BIN)/python scripts/build_docs.py
	@if $(MAKE) --no-print-directory $(VENV)/.docs; then $(BIN)/python scripts/build_site.py; else \
	echo "What builds the site could not be installed: the pages are written, site/ is not."; fi

site: $(VENV)/.docs ## Write only site/
	@$(BIN)/python scripts/build_site.py

picture: $(VENV)/.runs ## Record `make run` for the README; only by hand, since no two recordings are alike
	@$(BIN)/python scripts/record_terminal.py demo make run

clean: ## Remove everything that the other targets created
	rm -rf .venv .venv-* build dist site *.egg-info .pytest_cache .ruff_cache .mypy_cache project/.registry $(SUITE)/node_modules \
	$(TYPESCRIPT_PEER)/node_modules $(FRAMEWORKS)/node/node_modules
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "mcpgreen needs Python 3.10 or newer; none was found. Name one: make PYTHON=..."; exit 1; }
	@echo "Making the environment $(VENV) with $(PYTHON) (once) ..."
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "This Python has no working venv module (Debian: apt install python3-venv)."; exit 1; }

$(VENV)/.runs: $(VENV)/bin/python setup.py
	@echo "Installing mcpgreen and what it needs into $(VENV) (once):"
	$(call install,$(EDITABLE) .)
	@touch $@

$(VENV)/.tests: $(VENV)/.runs
	@echo "Installing what the tests need into $(VENV) (once):"
	$(call install,$(EDITABLE) '.[test]')
	@touch $@

$(VENV)/.build: $(VENV)/.runs
	@echo "Installing what builds packages into $(VENV) (once):"
	$(call install,build)
	@touch $@

$(VENV)/.docs: $(VENV)/.runs
	@echo "Installing what builds the site into $(VENV) (once):"
	$(call install,$(EDITABLE) '.[docs]')
	@touch $@

$(VENV)/.bench: $(VENV)/.runs
	@echo "Installing the peers into $(VENV) (once):"
	$(call install,$(EDITABLE) '.[bench]')
	@if command -v npm >/dev/null; then npm ci --prefix $(TYPESCRIPT_PEER) --no-audit --no-fund --loglevel=error; \
	else echo "npm is not installed: the TypeScript SDK will not be measured"; fi
	@touch $@

$(SUITE)/node_modules/.ready: $(SUITE)/package-lock.json
	@command -v npm >/dev/null || { echo "The conformance suite needs node and npm (Debian: apt install nodejs npm)."; exit 1; }
	@echo "Installing the conformance suite (once) ..."
	@npm ci --prefix $(SUITE) --no-audit --no-fund --loglevel=error
	@touch $@

$(FRAMEWORKS_VENV)/.ready: $(FRAMEWORKS)/requirements.txt
	@echo "Installing the frameworks of Python into $(FRAMEWORKS_VENV) (once) ..."
	@$(PYTHON) -m venv $(FRAMEWORKS_VENV)
	@$(FRAMEWORKS_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --only-binary :all: -r $<
	@touch $@

# Apart from our own packages: with its server, FastMCP may need an older version of its client.
$(FASTMCP_VENV)/.ready:
	@echo "Installing FastMCP into $(FASTMCP_VENV) (once) ..."
	@$(PYTHON) -m venv $(FASTMCP_VENV)
	@$(FASTMCP_VENV)/bin/python -m pip install --quiet --disable-pip-version-check "fastmcp-slim[client,server]>=4" fastmcp-tasks
	@touch $@

$(FRAMEWORKS)/node/node_modules/.ready: $(FRAMEWORKS)/node/package.json
	@command -v npm >/dev/null || { echo "The frameworks of node need npm (Debian: apt install npm)."; exit 1; }
	@echo "Installing the frameworks of node (once) ..."
	@npm install --prefix $(FRAMEWORKS)/node --no-package-lock --no-audit --no-fund --loglevel=error
	@touch $@

.PHONY: help run test lint stress faults bench conformance frameworks dist launcher docs site picture clean
