# SPDX-License-Identifier: Apache-2.0
# Everything a machine without ROS 2 needs: Python 3.10 to 3.13 (headers, venv), gcc, g++, make and a package index.
#   make demo, make test, make lint          on the wheels of ROS 2 Jazzy, in .venv/
#   make quick                               the part of the tests to run before each commit: two and a half minutes
#   make test ROS_DISTRO=kilted              on those of Kilted, in .venv-kilted/
#   make docs                                the documentation site, in build/site/
#   make package                             source archive, wheel, and a new environment with the wheel alone
#   make soak                                the fault suite: some hours; SOAK_FLAGS="--scale 0.05" or "--parts fuzz"
#   make test PYTEST_FLAGS="-k base -x"      ROBOT_DYN_ID_DATA names the folder of the measured recordings, if any

ROS_DISTRO ?= jazzy
PYTHON ?= python3

venv := $(if $(filter jazzy,$(ROS_DISTRO)),.venv,.venv-$(ROS_DISTRO))
stamp := $(venv)/installed
checked := $(venv)/checked
interfaces := $(venv)/interfaces
documented := $(venv)/documented
environment := pyproject.toml setup.py
comma := ,
workers = -n auto --dist worksteal $(PYTEST_FLAGS)
sources := CMakeLists.txt package.xml $(shell find msg action cpp config data launch urdf robot_dyn_id -not -path '*__pycache__*' 2>/dev/null)

export ROS_DISTRO
# The environment stands alone, whatever distribution or environment this shell has sourced.
unexport ROS_VERSION AMENT_PREFIX_PATH CMAKE_PREFIX_PATH COLCON_PREFIX_PATH PYTHONPATH LD_LIBRARY_PATH RMW_IMPLEMENTATION
unexport _ROS_WHEELS_BOOTSTRAP_COMPLETE
# Rewritten assertions of the tests are kept: without them collection takes twice as long, in each process.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo quick test lint docs soak package clean

demo: $(stamp)
	$(venv)/bin/robot-dyn-id demo

# Not `python -m pytest`, which would test the source tree in place of the installed package.
# Before each commit: no nodes, no programs, no long studies. 5 is "no such test", where the flags choose among the others.
quick: $(interfaces)
	$(venv)/bin/pytest -m "not real_time and not slow" --no-processes $(workers) || [ $$? -eq 5 ]

# Two processes to a core, each in a ROS domain of its own: tests of running nodes mostly wait.
test: $(interfaces)
	$(venv)/bin/pytest -n $$((2 * $$(nproc))) --dist worksteal $(PYTEST_FLAGS)

lint: $(checked)
	$(venv)/bin/ruff check .
	$(venv)/bin/ruff format --check .
	$(venv)/bin/mypy
	$(venv)/bin/uv lock --check --offline --quiet

# The site, with warnings as errors: build/site/index.html.
docs: $(documented)
	$(venv)/bin/python -m sphinx -W --keep-going -q -b html docs build/site

# The package as others get it: a source archive, the wheel of that archive, and an installation of the wheel in an
# environment that holds nothing else. The build tools are those of $(venv).
fresh := build/package
package: $(checked)
	rm -rf $(fresh)
	$(venv)/bin/python -c 'from setuptools.build_meta import build_sdist; build_sdist("$(fresh)")' > /dev/null
	$(venv)/bin/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir $(fresh) $(fresh)/*.tar.gz
	$(PYTHON) -m venv $(fresh)/venv
	$(fresh)/venv/bin/pip install --quiet --prefer-binary $(fresh)/*.whl
	$(fresh)/venv/bin/robot-dyn-id --version
	cd $(fresh) && venv/bin/robot-dyn-id try franka
	$(PYTHON) .ci/size.py $(fresh)/venv

# Everything of the suite that mounts, kills or floods is confined to its own processes, temporary folder and domain.
soak: $(interfaces)
	cd benchmarks && $(abspath $(venv))/bin/python -m faults --out $(CURDIR)/build/faults $(SOAK_FLAGS)

clean:
	rm -rf .venv .venv-* build *.egg-info .pytest_cache .mypy_cache .ruff_cache

# The installed package is always the present tree's, and only new requirements make a new environment. It holds what the
# package needs to run: what builds it is discarded after the build, until tests or lint install it for good. From then
# on a change of the sources takes seconds; before, it takes as long as the first build.
$(stamp): $(environment) $(sources)
	$(if $(filter $(environment),$?),$(create),$(refresh))
	touch $@

define create
@$(PYTHON) .ci/prerequisites.py
	$(PYTHON) -m venv --clear $(venv)
	@echo "Installing ROS 2 $(ROS_DISTRO) and the package into $(venv), once: two to seven minutes, in which pip prints nothing"
	$(venv)/bin/pip install --quiet --prefer-binary '.[$(ROS_DISTRO)]'
	$(venv)/bin/python .ci/trim.py $(venv)
endef
define refresh
@echo "Installing the changed package into $(venv)$(if $(wildcard $(checked)),, (a minute or two))"
	$(venv)/bin/pip install --quiet --no-deps $(if $(wildcard $(checked)),--no-build-isolation) .
endef

# Extras of the package that is installed already: pip adds their requirements and builds nothing.
# $(call add,extras,what needs them)
define add
@echo "Installing what only $(2) into $(venv), once: this needs the package index"
	$(venv)/bin/pip install --quiet --prefer-binary 'robot-dyn-id[$(ROS_DISTRO),$(1)]'
	touch $@
endef

$(checked): $(environment) | $(stamp)
	$(call add,test$(comma)lint$(comma)build$(comma)build-$(ROS_DISTRO),tests and lint need)

# Stand-ins for the messages of robots' drivers, which no package index has; only tests use them.
$(interfaces): $(checked) $(shell find test/interfaces -type f)
	$(venv)/bin/python test/interfaces/build.py
	touch $@

$(documented): $(environment) | $(stamp)
	$(call add,docs,the site needs)
