# make run and make test do all that they need, once. Places (override from the environment or on
# the command line): VENV, and what the program itself reads: CMM_CACHE_DIR, CMM_MODELS_DIR, HF_HOME.
# Where ~/goinfre exists (homes with a small quota), large things go there.

SHELL := /bin/bash
PYTHON ?= python3
ARGS ?=
GOINFRE := $(wildcard $(HOME)/goinfre)

ifneq ($(GOINFRE),)
VENV ?= $(GOINFRE)/cmm/venv
export HF_HOME ?= $(GOINFRE)/huggingface
export PIP_CACHE_DIR ?= $(GOINFRE)/pip
export CMM_CACHE_DIR ?= $(GOINFRE)/cmm/cache
else
VENV ?= .venv
endif
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_ROOT_USER_ACTION := ignore

PY := $(VENV)/bin/python
PACKAGES := grammar compiler runtime data
SOURCES := grammar compiler runtime data tests bench
# The CPU build of torch; where that index cannot be reached, pip goes on with the usual one. Without
# dependencies, or pip would ask for each of them there too.
TORCH_INDEX := --retries 1 --extra-index-url https://download.pytorch.org/whl/cpu
PIP := $(PY) -m pip install --quiet --constraint constraints.txt

.DEFAULT_GOAL := help
.PHONY: install run debug test unit lint coverage format bench clean fclean help

help:  ## this list
	@awk -F':.*## ' '/^[a-z]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' Makefile
	@echo '  ARGS="..." reaches the command: make run ARGS="--input prompts.json"'

install: $(VENV)/.run  ## virtual environment, CPU torch, the program

run: $(VENV)/.run  ## answer data/input/function_calling_tests.json; ARGS go to cmm run
	@$(VENV)/bin/cmm run $(ARGS)

debug: $(VENV)/.run  ## the same under the debugger
	@$(PY) -m pdb -m cmm.runtime.start run $(ARGS)

test: $(VENV)/.dev  ## all tests; those of a real model fetch it first
	@$(PY) -m pytest $(ARGS)

unit: $(VENV)/.dev  ## the tests that need no weights; CMM_TEST_SCALE=5 tries five times as much
	@$(PY) -m pytest -m "not model" $(ARGS)

lint: $(VENV)/.dev build/typing  ## ruff, mypy in strict mode, bandit, pip-audit where it can
	@$(PY) -m ruff check $(wildcard $(SOURCES))
	@$(PY) -m ruff format --check $(wildcard $(SOURCES))
	@MYPYPATH=build/typing $(PY) -m mypy $(PACKAGES:%=-p cmm.%)
	@$(PY) -m bandit --quiet --configfile pyproject.toml --recursive $(PACKAGES)
	@found=$$($(PY) -m pip_audit -r constraints.txt --no-deps --disable-pip --progress-spinner off 2>&1) \
	  && grep -c 'could not be audited' <<< "$$found" \
	    | sed -n 's/^[1-9].*/pip-audit: & packages are not in the database that it reaches here/p' >&2 \
	  || case "$$found" in \
	    *"known vulnerabilit"*) echo "$$found" >&2; exit 1;; \
	    *) echo "pip-audit cannot reach its database: skipped" >&2;; esac

coverage: $(VENV)/.dev  ## which lines and branches of grammar and compiler the tests run
	@$(PY) -m coverage run -m pytest -m "not model" tests/grammar tests/compiler tests/test_doctests.py
	@$(PY) -m coverage report --skip-covered --fail-under=95

format: $(VENV)/.dev  ## let ruff lay out the code
	@$(PY) -m ruff check --fix $(wildcard $(SOURCES))
	@$(PY) -m ruff format $(wildcard $(SOURCES))

bench: $(VENV)/.dev  ## measure decoding; bench/maskbench.py measures schemas, given files of them
	@$(PY) bench/decode.py $(ARGS)

clean:  ## what the tools leave behind
	@rm -rf build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find $(wildcard $(SOURCES)) -name __pycache__ -prune -exec rm -rf {} +

fclean: clean  ## also the virtual environment and the output; models and tables stay cached
	@rm -rf $(VENV) data/output

# mypy does not follow the mapping of folders to cmm.*, so it is shown a tree of links.
build/typing: Makefile
	@mkdir -p build/typing/cmm
	@for name in $(PACKAGES); do ln -sfn ../../../$$name build/typing/cmm/$$name; done
	@touch build/typing

$(PY):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
	  || { echo "cmm needs Python 3.10 or newer: make PYTHON=python3.12 ..." >&2; exit 2; }
	@mkdir -p $(dir $(VENV))
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.run: pyproject.toml constraints.txt | $(PY)
	@echo "installing torch (CPU) and the program into $(VENV), once" >&2
	@$(PIP) $(TORCH_INDEX) --no-deps torch
	@$(PIP) --editable '.[run]'
	@touch $@

$(VENV)/.dev: $(VENV)/.run
	@$(PIP) --editable '.[run,dev]'
	@touch $@
