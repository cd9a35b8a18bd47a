# Each target does its own set-up, on a fresh Debian or Ubuntu machine with Python 3.10 or newer; see README.md.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# Python's modules are compiled once, also where the environment forbids it: else each k8s-cr and each conductor that a
# test starts takes three times as long.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help demo demo-openstack demo-ha test test-all unit functional lint docs audit bench clean
.DELETE_ON_ERROR:

help: ## These targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 16

demo: bed-ready ## Three sample packages through a real Tacker on a real Kubernetes
	@$(BIN)/python -m functional_tests.demo

demo-openstack: bed-ready ## A cluster of servers of a real OpenStack, which becomes a VIM
	@$(BIN)/python -m functional_tests.demo --openstack

demo-ha: bed-ready ## Three masters on servers of Heat: one is killed and healed, and a CNF has a volume
	@$(BIN)/python -m functional_tests.demo --ha

test: bed-ready unit functional ## Unit tests, and the functional tests that need no cloud

test-all: bed-ready unit ## All tests
	@$(BIN)/python -m functional_tests --all

unit: $(VENV)/complete ## Unit tests, some minutes
	@$(BIN)/python -m pytest tests --ignore=tests/lcm --numprocesses $$((2 * $$(nproc) + 1)) --dist worksteal
	@$(BIN)/python -m pytest tests/lcm --numprocesses $$(nproc) --dist worksteal

functional: bed-ready ## Tests on the test bed: of FAMILY="core samples" only these, on CLUSTER=kind|1.35|KUBECONFIG
	@$(BIN)/python -m functional_tests $(if $(filter command line,$(origin CLUSTER)),--cluster "$(CLUSTER)") $(FAMILY)

lint: $(VENV)/complete docs ## Style, security, types, layers and documents
	@$(BIN)/ruff check .
	@$(BIN)/bandit -q -r k8s_cr_driver --severity-level medium
	@$(BIN)/mypy
	@$(BIN)/lint-imports

docs: $(VENV)/complete ## The documents in doc/build/html; a warning, or a tutorial whose package is not right, is an error
	@$(BIN)/reno -q lint
	@$(BIN)/k8s-cr validate doc/source/tutorial/package --param NAME=nightly
	@$(BIN)/sphinx-build -q -E -W --keep-going -b html doc/source doc/build/html

audit: ## Known vulnerabilities of the locked packages; needs a public advisory service, so the network
	@$(PYTHON) -m venv build/audit
	@build/audit/bin/pip install --quiet "pip-audit>=2.9,<3"
	@build/audit/bin/pip-audit --strict --no-deps --disable-pip --requirement requirements/dev.lock

bench: bed-ready ## Speed, beside the project's peers
	@$(BIN)/python -m benchmarks

.PHONY: bed-ready
bed-ready:
	@$(PYTHON) -m functional_tests.bootstrap --bed

$(VENV)/complete: requirements/dev.lock setup.cfg functional_tests/bootstrap.py
	@$(PYTHON) -m functional_tests.bootstrap

clean: ## Ends a test bed that is still up, and removes what was built in this folder
	@if [ -x $(BIN)/python ]; then $(BIN)/python -m functional_tests.testbed down; fi
	@rm -rf $(VENV) build dist doc/build *.egg-info
