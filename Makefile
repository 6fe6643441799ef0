PYTHON ?= python3
BIN := .venv/bin
# A current pip resolves and unpacks in a fraction of the time. Most of what is installed is never imported, so bytecode is
# compiled on import.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt
STUDY ?= studies/examples/docstrings.yaml
# Bytecode is compiled on the first import and kept, also where the shell says otherwise: each of a launch's processes, and each
# process that a test starts, would compile what it imports anew.
export PYTHONDONTWRITEBYTECODE =
# Of all tests one process more than cores: those that kill workers mostly wait.
JOBS ?= $(if $(TESTS),3,2)
.DEFAULT_GOAL := help

.PHONY: help setup search test nightly lint docs reference bench gpu clean

help: ## Show this help
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "make %-8s %s\n", $$1, $$2}'

.venv/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(PIP) pip
	$(PIP) -e .
	@touch $@

.venv/.installed-dev: .venv/.installed
	$(PIP) -e '.[dev]'
	@touch $@

setup: .venv/.installed-dev ## Create .venv with everything that development needs

search: .venv/.installed ## Launch the example study on the embedded backbone and task
	$(BIN)/deltaspace launch $(STUDY)

# More threads than cores are several times slower than one a process.
test: export OMP_NUM_THREADS ?= 1
test: .venv/.installed-dev ## Run the tests on JOBS=2 processes (with a third of the slow ones: make test TESTS=tests)
	@tests/services.sh
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal --durations 40 $(if $(TESTS),$(TESTS),-m "not slow")

nightly: export DELTASPACE_TEST_ALL = 1
nightly: TESTS = tests
nightly: test ## Run all tests, and of those that are shared out over runs every part

lint: .venv/.installed-dev ## Lint, format, types, import direction
	$(BIN)/ruff check --no-cache .
	$(BIN)/ruff format --no-cache --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: .venv/.installed-dev ## See that the reference is what the program says, and build the documentation into site/, in strict mode
	$(BIN)/python docs/generate.py --check
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

reference: .venv/.installed-dev ## Write the pages of the reference again, from what the program says of itself
	$(BIN)/python docs/generate.py

# Not search.py, rivals.py, faults.py and fleet.py: they take hours, continue where they were stopped, and say more with
# --help.
bench: .venv/.installed-dev ## Run the benchmarks that take minutes (what they printed: benchmarks/results)
	$(BIN)/python benchmarks/overhead.py
	$(BIN)/python benchmarks/steps.py
	$(BIN)/python benchmarks/memory.py
	$(BIN)/python benchmarks/packs.py

gpu: .venv/.installed-dev ## Measure all that needs a GPU: packs equal trials alone, planned memory, throughput
	$(BIN)/python benchmarks/gpu.py

clean: ## Remove the environment and caches
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache site
