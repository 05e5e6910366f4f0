# Everything from a fresh clone: python3 >= 3.11 and make are enough.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Versions that were tested together; CONSTRAINTS= takes the newest that pyproject.toml allows
CONSTRAINTS ?= constraints.txt
ROOMS := emulator fixtures harness kube scenarios systems

export MEWS_NIGHTLY
# Where it is set, each of the many Python processes that tests start would rewrite and compile anew what it imports
export PYTHONDONTWRITEBYTECODE =

.PHONY: constraints conform-boxes validate-redfish validation fuzz crash-points planted mutate kills gpushare-sequences oracles demo test test-nightly test-fuse test-containers \
  test-kind test-kind-docs test-kind-leftovers test-kind-gpushare test-kind-koordinator test-kind-dra test-kind-cohdi cohdi-programs test-upstream test-upstream-sample lint dist release image sizes docs bench clean

# Compiled now, as pip does with what it copies: where PYTHONDONTWRITEBYTECODE is set each start would do it again, half
# of the time that `mews up` takes.
# build/editor has links to the sources under their names in mews: pyrightconfig.json points editors there
$(BIN)/.installed: pyproject.toml $(CONSTRAINTS)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet $(if $(CONSTRAINTS),--constraint $(CONSTRAINTS)) --editable '.[test,bench]'
	$(BIN)/python -m compileall -q emulator harness kube systems src/mews
	mkdir -p build/editor/mews
	for part in $(ROOMS) src/mews/__init__.py; do ln -sfn "$(CURDIR)/$$part" build/editor/mews/; done
	$(BIN)/python -m ci.subjects install
	touch $@

# The newest versions that pyproject.toml allows, written down once the tests have passed with them
constraints: $(BIN)/.installed
	$(BIN)/python -m pip install --quiet --upgrade --upgrade-strategy eager --editable '.[test,bench]'
	{ sed -n 1p constraints.txt; $(BIN)/python -m pip freeze --exclude-editable; } > constraints.new && mv constraints.new constraints.txt

# What the demo needs, without what the tests need; pip shows what it installs. With all installed, that is used
$(BIN)/.demo: pyproject.toml $(CONSTRAINTS)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check $(if $(CONSTRAINTS),--constraint $(CONSTRAINTS)) --editable '.[cluster]'
	touch $@

demo: $(if $(wildcard $(BIN)/.installed),$(BIN)/.installed,$(BIN)/.demo)
	$(BIN)/mews demo

# Four workers on two cores: tests wait for servers and clocks for most of their time
test: $(BIN)/.installed
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pytest -n 4 --dist loadfile

# Those of which the daily run takes some only; with a kind cluster's needs at hand `make test-kind MEWS_NIGHTLY=1` too
test-nightly: $(BIN)/.installed
	PATH="$(CURDIR)/$(BIN):$$PATH" MEWS_NIGHTLY=1 $(BIN)/python -m pytest -m "(nightly or hypothesis) and not kind"

# Hosts whose files are served by FUSE; skipped with the reason where this machine has none
test-fuse: $(BIN)/.installed
	$(BIN)/python -m pip install --quiet --editable '.[fuse]'
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pytest tests/emulator/hostd/test_served_hosts.py tests/emulator/hostd/test_fuse_scenario.py tests/systems/kubecomp/test_host_steps_wall.py

test-kind: $(BIN)/.installed
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pytest -m kind tests/kind/test_scenarios.py tests/kind/test_elastic.py tests/kind/test_live.py --durations=0

# Real images as containers of emulated nodes; skipped with the reason where no Docker engine answers
test-containers: $(BIN)/.installed
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pytest tests/kube/emulated/kubelet/engine/test_engine.py tests/harness/commands/test_up_containers.py tests/ci/test_image.py --durations=0

# The commands that pages show of kind
test-kind-docs: $(BIN)/.installed
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pytest -m kind tests/package/test_documented_commands.py --durations=0

# What runs on kind, and on a cluster that is there already, leave behind when they end or are killed
test-kind-leftovers: $(BIN)/.installed
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pytest -m kind tests/kind/test_interrupts.py tests/kind/test_kubeconfig.py --durations=0

# GPU Share on kind: on hosts of its own, so that it shares no cluster with test-kind; five minutes
test-kind-gpushare: $(BIN)/.installed
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pytest -m kind tests/kind/test_gpushare.py --durations=0

# Koordinator on kind: a proxy before each node's container runtime; on hosts of its own, too
test-kind-koordinator: $(BIN)/.installed
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pytest -m kind tests/kind/test_koordinator.py --durations=0

# Devices by claims on kind, with our driver and NVIDIA's: nodes need a containerd that knows CDI (docs/dra.md), the
# second one Go and a C compiler
test-kind-dra: $(BIN)/.installed
	PATH="$(CURDIR)/$(BIN):$$PATH" MEWS_NIGHTLY=1 $(BIN)/python -m pytest -m kind tests/kind/test_dra.py --durations=0

# CoHDI's three programs in pods of a kind cluster: nodes need CDI as above, and the programs lie in MEWS_PROGRAMS_DIR
test-kind-cohdi: $(BIN)/.installed
	PATH="$(CURDIR)/$(BIN):$$PATH" MEWS_NIGHTLY=1 $(BIN)/python -m pytest -m kind tests/kind/test_cohdi.py --durations=0

# CoHDI's three programs, from checkouts of its repositories in SOURCES, into TO: for MEWS_COHDI_PROGRAMS (needs Go)
cohdi-programs: TO ?= cohdi
cohdi-programs:
	@test -n "$(SOURCES)" || { echo "make cohdi-programs: SOURCES: must be a folder with checkouts of composable-dra-driver, composable-resource-operator and dynamic-device-scaler" >&2; exit 2; }
	mkdir -p "$(TO)"
	cd "$(SOURCES)/composable-dra-driver" && CGO_ENABLED=0 go build -trimpath -o "$(abspath $(TO))/cdd" .
	cd "$(SOURCES)/composable-resource-operator" && CGO_ENABLED=0 go build -trimpath -o "$(abspath $(TO))/cro-manager" ./cmd
	cd "$(SOURCES)/dynamic-device-scaler" && CGO_ENABLED=0 go build -trimpath -o "$(abspath $(TO))/dds-manager" ./cmd

# Upstream's own judges, built from their Go modules where Go is there: every listed spec of Kubernetes' conformance suite
# before `mews up`, controller-runtime's suites, an operator's and helm before `mews envtest` (half an hour)
test-upstream: $(BIN)/.installed
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m tests.upstream
	PATH="$(CURDIR)/$(BIN):$$PATH" MEWS_UPSTREAM=1 $(BIN)/python -m pytest -m upstream tests/upstream --durations=0

# Those that the day draws (SEED=N: others), some five minutes
test-upstream-sample: $(BIN)/.installed
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m tests.upstream --sample 6 $(if $(SEED),--seed $(SEED))
	PATH="$(CURDIR)/$(BIN):$$PATH" MEWS_UPSTREAM=1 $(BIN)/python -m pytest -m upstream tests/upstream -k "kubebuilder and embedded"

# Commits that the main branch lacks (or BASE=) have their subjects judged, as the hook does that `make` installs.
# Tools that follow imports do not execute the package's __path__: they get the tree of a plain installation
lint: $(BIN)/.installed
	$(BIN)/python -m ci.subjects new $(BASE)
	rm -rf build/tree && MEWS_WHEEL=pure $(BIN)/python -m pip install --quiet --no-deps --target build/tree .
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && MYPYPATH=build/tree $(BIN)/mypy
	cd build/tree && PYTHONPATH=. "$(CURDIR)/$(BIN)/lint-imports" --config "$(CURDIR)/pyproject.toml" --no-cache

# sdist and wheel into dist/; MEWS_WHEEL=aarch64|x86_64|pure names another wheel than that of this machine
dist: $(BIN)/.installed
	$(BIN)/python -m build

# A dry run of .github/workflows/release.yml: builds all distributions into build/release, checks their metadata and the
# notes, and prints what would be uploaded
release: $(BIN)/.installed
	$(BIN)/python -m ci.release

# Each field of each built-in kind, absent, zero, wrong, at and beyond its bounds, put to a real control plane and to the
# embedded server (nightly; needs KUBEBUILDER_ASSETS; SEED=N: others); a seeded sample of it is among the tests
validation: $(BIN)/.installed
	$(BIN)/python -m tests.differential.generated fields --cases 5000 --seed $(or $(SEED),1)

# Requests of chance against every HTTP face; a seeded sample of it is among the tests
fuzz: $(BIN)/.installed
	$(BIN)/python -m tests.fuzz --requests 100000 $(if $(FACE),--face "$(FACE)")

# Every component killed at every line of scenarios of a system, pairs of crashes with a fault between them, and random
# schedules before the oracle (of kubecomp also faults in pairs); seeded samples are among the tests.
# SYSTEM=kubecomp (default), gpushare, koordinator, kod2, or mixed: pods of all four systems in one cluster; of remediation
# and pooldra there are no random schedules
crash-points: SYSTEM ?= kubecomp
crash-points: $(BIN)/.installed
	$(BIN)/python -m tests.crash_points --system "$(SYSTEM)" --pairs 2000
	$(if $(filter remediation pooldra,$(SYSTEM)),,$(BIN)/python -m tests.oracle --system "$(SYSTEM)" $(if $(filter kubecomp,$(SYSTEM)),--pairs 2000) --schedules 2000 --jobs "$$(nproc)")

# One-line faults in all systems, kubelet, scheduler, controllers and hardware, 75 kept by hand and 75 drawn (SEED=N):
# which are found, and whose first wrong line is named; ends in a JSON object a room. 20 are among the tests
planted: $(BIN)/.installed
	$(BIN)/python -m tests.planted --seed $(or $(SEED),1)

# How many one-line faults the tests of a room notice: make mutate ROOM=kube/cel SEED=1 COUNT=50; ten minutes or more
mutate: $(BIN)/.installed
	$(BIN)/python -m tests.mutate $(ROOM) --seed $(or $(SEED),1) --count $(or $(COUNT),50)

# Every component killed at every line of three worlds with pods of all four systems, and a thousand random worlds with one
# to five kills each; samples are among the tests
kills: $(BIN)/.installed
	$(BIN)/python -m tests.crash_points --scenarios mixed --delay drawn --pairs 0
	$(BIN)/python -m tests.crash_points.random_worlds --worlds 1000

# GPU Share through sequences of chance, ten thousand of them; 60 are among the tests
gpushare-sequences: $(BIN)/.installed
	MEWS_GPUSHARE_SEQUENCES=10000 $(BIN)/python -m benchmarks.gpushare sequences

# Thousands of drawn cases put to the published systems themselves and to ours (SEED=N: others; CASES=N). SYSTEM=koordinator,
# koordinator-validating, koordinator-mutating, gpushare (needs MEWS_PROGRAMS_DIR), kod2, kubecomp, or all (default).
# MEWS_WRITE=1 records the answers that are among the tests anew
oracles: $(BIN)/.installed
	$(BIN)/python -m tests.upstream.oracles --system $(or $(SYSTEM),all) --seed $(or $(SEED),1000000) \
	  $(if $(CASES),--cases $(CASES)) $(if $(MEWS_WRITE),--write)

# `mews conform` before sixty boxes behind reverse proxies, reading only and with changes (SEED=N: others); three of them are
# among the tests
conform-boxes: $(BIN)/.installed
	$(BIN)/python -m tests.conform_boxes --seed $(or $(SEED),1)

# The image of mews, on BASE= or $MEWS_BASE_IMAGE or python:3.12-slim
image: $(BIN)/.installed
	$(BIN)/python -m ci.image $(if $(BASE),--base "$(BASE)") $(if $(TAG),--tag "$(TAG)")

# Installed bytes of the package and all its dependencies, base and extra cluster; exits 1 above a bar
sizes: $(BIN)/.installed
	$(BIN)/python -m ci.sizes

bench: $(BIN)/.installed
	$(BIN)/python benchmarks/run.py

# DMTF's judges against a fresh server: make validate-redfish SCHEMAS=directory of the published CSDL files
validate-redfish: $(BIN)/.installed
	@test -n "$(SCHEMAS)" || { echo "validate-redfish: SCHEMAS=DIR is missing: the published CSDL files" >&2; exit 2; }
	MEWS_REDFISH_SCHEMAS="$(abspath $(SCHEMAS))" $(BIN)/python -m pytest -v tests/contract/test_redfish_validators.py

# The documentation site, into build/site; links and anchors are checked, nothing is fetched
docs: $(BIN)/.installed
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
