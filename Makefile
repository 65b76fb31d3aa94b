# make check: seconds, no machines. make test: everything, the lab included (root).
.DEFAULT_GOAL := help
VENV := .venv-dev
BIN := $(VENV)/bin
export PATH := $(CURDIR)/$(BIN):$(PATH)
export PYTHONPATH := $(CURDIR)/installer
export ANSIBLE_CONFIG := $(CURDIR)/ansible.cfg
# the tests start pai-install hundreds of times: compiling its modules anew each time is a quarter of a second
unexport PYTHONDONTWRITEBYTECODE
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(not (3,11) <= sys.version_info[:2] <= (3,14))' 2>/dev/null && command -v $$p && break; done)

# of `make clients`
CLIENTS ?= $(HOME)/.cache/pai-install-clients
-include $(wildcard $(CLIENTS)/*.mk)

# two workers have a cluster of the lab each, and take everything else behind it: tests/suites.py
WORKERS ?= 2
SHARED = -n $(WORKERS)

INSTALL = DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends

.PHONY: help venv tools lock format check lint lint-ansible lint-types lint-style unit test molecule clients soak bench bench-scheduler docs docs-site screenshots release clean

help: ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

venv: $(VENV)/.made ## the environment of the tests and linters
$(VENV)/.made: requirements-dev.lock
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { apt-get update -qq && \
		$(INSTALL) "$$($(PYTHON) -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')"; }
	rm -rf $(VENV) && $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	touch $@

lock: ## refresh all lock files from pyproject.toml (needs uv)
	uv pip compile -q --upgrade --universal --generate-hashes --python-version 3.11 --no-header --no-emit-index-url --no-emit-find-links pyproject.toml -o requirements.lock
	uv pip compile -q --upgrade --universal --generate-hashes --python-version 3.11 --no-header --no-emit-index-url --no-emit-find-links pyproject.toml --extra console --group dev -o requirements-dev.lock
	uv pip compile -q --upgrade --generate-hashes --only-binary :all: --python-platform linux --python-version 3.11 --no-header --no-emit-index-url --no-emit-find-links --group console-image --constraint requirements-dev.lock -o installer/pai_install/components/locks/console.lock

format: venv ## rewrite the sources as ruff formats them
	ruff format . && ruff check --fix .

check: lint unit ## linters, types, unit and contract tests; no machines

lint: venv ## ruff, mypy, yamllint, ansible-lint, two at a time
	@$(MAKE) --no-print-directory -j2 --output-sync=target lint-ansible lint-types lint-style

lint-ansible:
	ansible-lint --offline --strict

lint-types:
	mypy

lint-style:
	ruff format --check .
	ruff check .
	yamllint --strict .

unit: venv ## the fast tests alone
	pytest -q $(SHARED) tests/unit tests/golden tests/contract -m "not soak"

tools: ## programs of the box that tests run (root); without the last three, their tests are skipped
	@which rsync mkfs.xfs linux.uml chromium npm >/dev/null || { apt-get update -qq && $(INSTALL) rsync xfsprogs && \
		for it in linux.uml=user-mode-linux chromium=chromium npm=npm; do \
			which $${it%=*} >/dev/null || $(INSTALL) $${it#*=} || true; done; }

test: lint tools ## everything: linters, then all tests with the lab's end-to-end runs (root)
	pytest -v $(SHARED) tests -m "not soak"

molecule: venv ## the scenarios of all roles (root); ROLE=name: of one
	pytest -v tests/molecule $(if $(ROLE),-k "[$(ROLE)]")

clients: venv ## the clients of OpenPAI that no registry has, in the cache of the user: docs/testing.md. Later tests take them
	python -m tests.openpai_clients $(CLIENTS)

soak: venv ## long runs: three control planes, machines lost and found, 30,000 mutated sites and old sites, 100,000 answers of machines, a console under load (root)
	pytest -v tests -m soak
	PAI_FUZZ_EXAMPLES=30000 pytest -v tests/unit/site/test_fuzz.py
	PAI_FUZZ_EXAMPLES=10000 pytest -v tests/unit/migrate/test_account.py

bench-scheduler: venv ## 500 gangs on 200 machines that kwok plays in a cluster that runs (SITE=DIR), by kube-scheduler alone, with our quotas, and by its scheduler (BENCH="--gangs 100": fewer)
	@python -m tests.perf.scheduler_bench $(SITE) $(BENCH)

bench: venv ## measurements as JSON, on a lab of its own (root); PAI_BENCH_SITE=DIR: on a cluster that runs
	@python -m tests.perf.bench

docs: venv ## regenerate docs/reference from the code
	python -m tests.docs

docs-site: venv ## the documentation as a site that needs no server: build/docs/index.html
	python -m tests.docs.site build/docs

screenshots: venv tools ## pictures of the console's pages: build/screenshots (root)
	PAI_PICTURES=$(CURDIR)/build/screenshots pytest -q $(addprefix tests/integration/browser/test_,browser.py big.py tasks.py)

release: venv ## sdist, wheel, checksums, bills of materials, and the tag of the version: docs/contributing/release.md
	python -m tests.release

clean: ## what make made here; the component cache stays
	rm -rf $(VENV) .venv build .mypy_cache .ruff_cache .pytest_cache .hypothesis
