# make demo: tag real texts with real labels.   make test: run the whole suite.
# make serve: open a page on the demo's model in the browser.
# make sanitized-test: run the suite with kernels that stop at any out-of-bounds access or undefined behaviour.
# make fuzz: search for inputs that break a reader, guided by coverage, ten minutes per target.
PYTHON ?= python3
BIN := $(if $(filter Windows_NT,$(OS)),.venv/Scripts,.venv/bin)
SOURCES := pyproject.toml constraints.txt CMakeLists.txt $(wildcard src/longtail/native/*.cpp src/longtail/native/*.h)
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt

SANITIZED := build/sanitized
FUZZED := build/fuzz
FUZZ_TARGETS := repository_text texts rows other_files manifest model
FUZZ_SECONDS ?= 600
.PHONY: demo serve test sanitized-test fuzz lint bench clean

demo: .venv/installed
	$(BIN)/longtail demo

serve: .venv/installed-serve build/demo-model/manifest.json
	$(BIN)/longtail serve build/demo-model --open

build/demo-model/manifest.json: | .venv/installed-serve
	$(BIN)/longtail demo --out build/demo-model < /dev/null

test: .venv/installed-test
	$(BIN)/python -m pytest -n auto

# Linux with g++. Leak detection is off: the interpreter and its extensions keep memory until the process ends, on purpose.
# libstdc++ is preloaded with libasan, which otherwise fails to find what it wraps when a kernel throws.
# Left out are slow tests, torch, and parts above the learners, which reach the kernels only through what is tested here.
UNSANITIZED := audit benchmarks checking cli fuzz neural papers planning report serve test_architecture.py test_docs.py \
	tagger/test_network_encoder.py tagger/test_networks_of_groups.py
sanitized-test: $(SANITIZED)/installed
	LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so.6)" \
	ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 LONGTAIL_EXPECT_SANITIZED=1 \
	$(SANITIZED)/venv/bin/python -m pytest -n auto -m "not slow" $(UNSANITIZED:%=--ignore=tests/%)

# Linux with clang. `make fuzz-texts FUZZ_SECONDS=60` runs one target; `make -j2 fuzz` runs two at a time.
fuzz: $(addprefix fuzz-,$(FUZZ_TARGETS))

fuzz-%: $(FUZZED)/installed
	LD_PRELOAD="$$($(FUZZED)/venv/bin/python -c 'import atheris; print(atheris.path())')/asan_with_fuzzer.so" \
	ASAN_OPTIONS=detect_leaks=0 $(FUZZED)/venv/bin/python -m tests.fuzz $* -max_total_time=$(FUZZ_SECONDS)

$(FUZZED)/installed: export CXX = clang++
$(FUZZED)/installed: BUILD_OPTIONS = --config-settings=cmake.define.LONGTAIL_FUZZ=ON
# These environments share the packages of .venv, which are added after their own longtail is installed.
$(SANITIZED)/installed $(FUZZED)/installed: build/%/installed: .venv/installed-test $(SOURCES) $(shell find src -name '*.py')
	$(PYTHON) -m venv --clear build/$*/venv
	build/$*/venv/bin/python -m pip --disable-pip-version-check install --quiet --no-deps \
		--config-settings=cmake.define.LONGTAIL_SANITIZE=ON --config-settings=cmake.build-type=RelWithDebInfo \
		--config-settings=install.strip=false --config-settings=build-dir=build/$*/kernels $(BUILD_OPTIONS) .
	$(if $(filter fuzz,$*),build/$*/venv/bin/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt atheris)
	$(BIN)/python -c "import site; print(*site.getsitepackages(), sep='\n')" > \
		"$$(build/$*/venv/bin/python -c 'import site; print(site.getsitepackages()[0])')/packages.pth"
	@touch $@

lint: .venv/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: .venv/installed-test
	$(BIN)/python -m benchmarks.compare $(BENCH)

clean:
	rm -rf .venv build dist

.venv/created:
	$(PYTHON) -m venv .venv
	@touch $@

.venv/installed: $(SOURCES) | .venv/created
	@echo "Installing longtail into .venv: pip downloads dependencies and compiles the kernels, which takes about a minute"
	$(PIP) --editable .
	@touch $@

.venv/installed-%: $(SOURCES) | .venv/created
	@echo "Installing longtail[$*] into .venv"
	$(PIP) --editable ".[$*]"
	@touch $@ .venv/installed
