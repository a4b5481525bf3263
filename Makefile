# Everything here sets itself up: a machine needs Python 3.11 or later, and make.
# Another interpreter: make PYTHON=/path/to/python test. More for pytest: make test ARGS="-k walls".

CANDIDATES := python3 python3.14 python3.13 python3.12 python3.11 python
IS_RECENT := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for candidate in $(CANDIDATES); do \
	$$candidate -c "$(IS_RECENT)" 2>/dev/null && echo $$candidate && break; done)

# Tests start hundreds of interpreters, each of which would compile everything again.
unexport PYTHONDONTWRITEBYTECODE

BIN := .venv/bin
INSTALLED := .venv/installed
READY := .venv/ready
SITE := .venv-docs
SITE_READY := $(SITE)/ready
DOJO := .venv-agentdojo
DOJO_READY := $(DOJO)/ready
VERSIONS := .venv-versions
NEIGHBOURS := .venv-neighbours
NEIGHBOURS_READY := $(NEIGHBOURS)/ready
LOG := build/pip.log
INSTALL := -m pip --disable-pip-version-check install --constraint constraints.txt
OR_SAY := > $(LOG) 2>&1 || { \
	echo "This setup downloads packages, and pip could not: is there a network? See $(LOG)." >&2; exit 1; }

.PHONY: help demo screens check quick test suite lint verify presets laws adversary mutants settings agentdojo neighbours \
	versions verified results bench docs clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' Makefile

demo: $(INSTALLED) ## show an agent at work: offline, in seconds (PACE=2: with pauses)
	@$(BIN)/bpagent demo $(if $(PACE),--pace $(PACE))

screens: $(READY) ## take the pictures of the README (needs chromium)
	$(BIN)/python -m tests.agent.page.chromium

check: $(READY) ## lint, types and the quick tests, side by side (half a minute)
	@$(MAKE) --no-print-directory --jobs 2 lint quick

quick: $(READY)
	$(BIN)/python -m pytest --numprocesses auto --durations 5 --durations-min 0.25 -m 'not slow' $(ARGS)

test: $(READY) ## run everything that has to hold: lint, and beside it the whole suite, on all processors
	@$(MAKE) --no-print-directory --jobs 2 lint suite

suite: $(READY)
	$(BIN)/python -m pytest --numprocesses auto --dist loadscope --durations 20 --durations-min 1 $(ARGS)

lint: $(READY) ## check style and types, of code and tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

verify: $(READY) ## look at every state of the loop with subsets of its rules (minutes; SUBSETS=all: hours)
	WHOLE=1 $(BIN)/python -m pytest --numprocesses auto --timeout 0 tests/agent/verification
	SUBSETS=$(SUBSETS) $(BIN)/python -m tests.agent.verification.verify_every_loop verify

presets: $(READY) ## verify every preset with every protocol and policy, and pairs; writes docs/verification.md (hours; STATES=20000: minutes)
	@$(BIN)/python -m tests.agent.verification.verify_every_loop presets $(STATES)

laws: $(READY) ## play ten thousand random runs and check each (minutes)
	CASES=$(or $(CASES),5000) $(BIN)/python -m pytest -q -n 0 --timeout 0 --hypothesis-profile default \
		tests/agent/session/test_laws.py tests/agent/session/test_undo_laws.py

adversary: $(READY) ## run every attack confined, in a disposable root: nothing changes outside (an hour; EVERY=20: minutes)
	@EVERY=$(EVERY) $(BIN)/python -m tests.agent.tools.sandbox.adversary $(LEVELS)

mutants: $(READY) ## change the code of ROOM=agent/threads (or what differs from main), and list what no test notices (minutes)
	@$(BIN)/python -m tests.mutants $(ROOM) $(if $(SAMPLE),--sample $(SAMPLE)) $(if $(JOBS),--jobs $(JOBS)) \
		$(if $(BASE),--base $(BASE)) $(if $(JUDGES),--judges $(JUDGES)) $(if $(WITHOUT),--without '$(WITHOUT)')

settings: $(READY) ## try every task of every setting four ways (minutes)
	$(BIN)/python -m tests.agent.lab.try_every_task

agentdojo: $(DOJO_READY) ## compare with AgentDojo's own pipeline, in an environment of its own (minutes, the network)
	$(DOJO)/bin/python -m pytest tests/agent/lab/settings/test_agentdojo.py $(ARGS)

neighbours: $(NEIGHBOURS_READY) ## try the bridges with Inspect, ControlArena, pydantic-ai and openai-agents themselves (minutes, the network)
	$(NEIGHBOURS)/bin/python -m pytest -p no:cacheprovider --timeout 600 \
		-W 'ignore:Unclosed <MemoryObject:ResourceWarning' tests/agent/lab/bridges $(ARGS)

versions: $(READY) ## run the quick tests with OF=lowest or OF=newest versions of every dependency (minutes, the network)
	@echo "Setting up $(VERSIONS), about a minute ..."
	@$(BIN)/python -m venv --clear $(VERSIONS)
	@grep -oE '[a-z][A-Za-z0-9_.-]*>=[0-9.]+' pyproject.toml | sed 's/>=/==/' > build/lowest.txt
	@$(VERSIONS)/bin/python -m pip install --upgrade pip $(OR_SAY)
	@$(VERSIONS)/bin/python -m pip install --constraint $(if $(filter lowest,$(OF)),build/lowest.txt,/dev/null) \
		--editable . --group dev $(OR_SAY)
	$(VERSIONS)/bin/python -m pytest --numprocesses auto -m 'not slow' $(ARGS)

verified: $(READY) ## look at every state of the loop with each protocol of docs/results/plan.yaml, and write down how many
	$(BIN)/python -m tests.agent.lab.verify_for_results agent/lab/experiments/verified.csv $(STATES)

results: $(READY) ## run docs/results/plan.yaml (FOLDER=results: what is there is kept), and write docs/results and its page
	$(BIN)/python -m tests.agent.lab.write_results $(or $(FOLDER),results)

bench: $(READY) ## measure: cost per event and per turn, import time, memory
	$(BIN)/python tests/bench/run.py

docs: $(SITE_READY) ## build the pages as a site in build/site, with links checked
	NO_MKDOCS_2_WARNING=1 $(SITE)/bin/mkdocs build --quiet --strict --config-file docs/.site/mkdocs.yml
	@echo build/site/index.html

clean: ## remove the virtual environment, caches and what was built
	rm -rf .venv .venv-* build dist .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Made anew from nothing when a version or a dependency changes, so that nothing is found that is not asked for.
# pip itself comes first: older ones do not know --group. No build isolation: the build backend is pinned too.
$(INSTALLED): pyproject.toml constraints.txt
	@"$(PYTHON)" -c "$(IS_RECENT)" 2>/dev/null || { \
		echo "bpagent needs Python 3.11 or later, found none (PYTHON='$(PYTHON)');" \
		"install one, or name it: make PYTHON=/path/to/python" >&2; exit 1; }
	@echo "Setting up .venv with $$("$(PYTHON)" --version), about half a minute ..."
	@"$(PYTHON)" -m venv --clear .venv
	@mkdir -p $(dir $(LOG))
	@$(BIN)/python $(INSTALL) --upgrade pip hatchling $(OR_SAY)
	@$(BIN)/python $(INSTALL) --no-build-isolation --editable . $(OR_SAY)
	@touch $@

$(READY): $(INSTALLED)
	@echo "Adding what the tests need, about half a minute ..."
	@$(BIN)/python $(INSTALL) --no-build-isolation --editable . --group dev $(OR_SAY)
	@touch $@

# AgentDojo brings the libraries of every provider along (290 MB), so it is not in the environment of the tests.
$(DOJO_READY): $(READY)
	@echo "Setting up $(DOJO), about a minute ..."
	@$(BIN)/python -m venv --clear $(DOJO)
	@$(DOJO)/bin/python $(INSTALL) --upgrade pip hatchling $(OR_SAY)
	@$(DOJO)/bin/python $(INSTALL) --no-build-isolation --editable '.[agentdojo]' --group dev $(OR_SAY)
	@touch $@

# Their newest versions, whatever ours are pinned to: the bridges have to hold with these. They leave streams open.
$(NEIGHBOURS_READY): $(READY)
	@echo "Setting up $(NEIGHBOURS), some minutes ..."
	@$(BIN)/python -m venv --clear $(NEIGHBOURS)
	@$(NEIGHBOURS)/bin/python -m pip --disable-pip-version-check -qq install --editable '.[lab]' \
		control-arena inspect_ai openai-agents pydantic-ai-slim hypothesis pytest pytest-anyio pytest-timeout trio
	@touch $@

# The generator of the site reads the sources and never imports them, so it needs no package of the project.
$(SITE_READY): pyproject.toml
	@echo "Setting up $(SITE), a few seconds ..."
	@"$(PYTHON)" -m venv --clear $(SITE)
	@$(SITE)/bin/python -m pip --disable-pip-version-check -qq install --upgrade pip
	@$(SITE)/bin/python -m pip --disable-pip-version-check -qq install --group docs
	@touch $@
