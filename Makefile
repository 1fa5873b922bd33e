# heddle's front door. Meson does the building (meson.build); these are the things one does with it.

PREFIX ?= /usr/local
DESTDIR ?=
# For build directories that do not exist yet, e.g. MESON_FLAGS=-Dwerror=true.
MESON_FLAGS ?=

ASAN := build-asan -Db_sanitize=address,undefined
TSAN := build-tsan -Db_sanitize=thread
AARCH64 := build-aarch64 --cross-file tools/aarch64.ini
QEMU := qemu-aarch64 -R 32G -L /usr/aarch64-linux-gnu

# What is tested beside the test program: public headers, the manual, examples, the README.
house = out=$$(meson test -C $(1) --suite house --no-rebuild --print-errorlogs 2>&1) && \
	echo "rooms, headers, manual, examples and README are well" || { echo "$$out"; exit 1; }

# All tests once more on a simulated runtime, under so many schedules each. What fails says how to repeat it.
simulated = out=$$($(1)/tests/heddle-sim-tests --repeat $(2) 2>&1) && echo "under $(2) schedules each: $$(echo "$$out" | tail -1)" || \
	{ echo "$$out" | grep -v '^ok \|^skip '; exit 1; }

# Every program that README.md, docs/ and examples/ show, on one, two and eight workers, with what it prints.
shown = out=$$(meson test -C $(1) --suite shown --no-rebuild --print-errorlogs 2>&1) && \
	echo "the programs that we show print what they should" || { echo "$$out"; exit 1; }

# Lua programs that check themselves, and `heddle lua`; none where there is no Lua.
lua = out=$$(meson test -C $(1) --suite lua --no-rebuild --print-errorlogs 2>&1) && echo "Lua processes are well" || { echo "$$out"; exit 1; }

# A few of them under Valgrind.
valgrind = out=$$(meson test -C $(1) --suite valgrind --no-rebuild --print-errorlogs 2>&1) && \
	echo "the programs in examples/programs are well under Valgrind" || { echo "$$out"; exit 1; }

# Programs under `heddle explore`: every planted bug is found, nothing is found where nothing is.
explored = out=$$(meson test -C $(1) --suite sim --no-rebuild --print-errorlogs 2>&1) && \
	echo "planted bugs are found, and nothing else" || { echo "$$out"; exit 1; }

# Instructions that a yield and the like execute: none more than 2 % above bench/instructions.txt.
counted = bench/instructions --check $(1)/bench/heddle-bench

help: ## this list
	@echo "heddle: lightweight processes for C"
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 24

run: build ## a guided tour, in under 20 seconds; installs the packages that it needs
	@build/examples/tour/tour

test: setup-test build ## all the tests that end soon; installs the packages that they need
	@$(call house,build)
	@build/tests/heddle-tests
	@$(call simulated,build,5)
	@$(call explored,build)
	@$(call valgrind,build)
	@$(call counted,build)

stress: build ## the heavy tests, and new schedules for the others: minutes; installs a browser
	@tools/setup packages/browser.txt
	@build/tests/heddle-tests --stress --jobs 1
	@export HD_TEST_SEED=$$(date +%s)000; $(call simulated,build,100)
	@meson test -C build --suite sim-stress --suite inside-stress --no-rebuild --print-errorlogs

soak: build ## half an hour of an echo server with random cancels, closes and timeouts: nothing may leak (MINUTES=30)
	@build/tests/heddle-soak $(or $(MINUTES),30)

models: ## check the protocols in models/, all their states
	@tools/setup packages/models.txt
	@models/run

bench: setup ## measure heddle beside Go, Boost.Fiber and State Threads
	@tools/setup packages/bench.txt
	@bench/run --json build-bench/results.json

sanitize: asan tsan ## the tests under ASan and UBSan, then under TSan

asan: setup ## the tests under ASan and UBSan
	@tools/build $(ASAN) $(MESON_FLAGS)
	@build-asan/tests/heddle-tests
	@$(call shown,build-asan)
	@$(call lua,build-asan)
	@$(call simulated,build-asan,5)
	@$(call explored,build-asan)

tsan: setup ## the tests under TSan
	@tools/build $(TSAN) $(MESON_FLAGS)
	@TSAN_OPTIONS="atexit_sleep_ms=0 $$TSAN_OPTIONS" build-tsan/tests/heddle-tests
	@export TSAN_OPTIONS="atexit_sleep_ms=0 $$TSAN_OPTIONS"; $(call shown,build-tsan)

test-aarch64: setup ## the tests on aarch64, under qemu-user
	@tools/setup packages/aarch64.txt
	@tools/build $(AARCH64) $(MESON_FLAGS)
	@$(call house,build-aarch64)
	@HD_TEST_TIMEOUT=60 HD_TEST_SCALE=20 $(QEMU) build-aarch64/tests/heddle-tests
	@echo "note: qemu-user runs on this machine's memory order; this does not test aarch64's"

install: ## into DESTDIR and PREFIX: library, headers, pkg-config file, manual
	@tools/setup --check packages/install.txt
	@rm -rf build-install # it remembers its PREFIX
	@tools/build build-install --prefix "$(PREFIX)" --libdir lib -Dtests=false -Dexamples=false -Dbench=false $(MESON_FLAGS)
	@DESTDIR="$(DESTDIR)" meson install -C build-install --quiet --no-rebuild
	@tools/after-install "$(DESTDIR)" "$(PREFIX)"

format: ## lay out all C code by .clang-format
	@tools/setup packages/format.txt
	@find include src tests examples bench -name '*.[ch]' -o -name '*.cc' | xargs clang-format -i

clean: ## remove the build directories
	@rm -rf build build-*

setup:
	@tools/setup packages/build.txt

setup-test:
	@tools/setup packages/build.txt packages/test.txt

build: setup
	@tools/build build $(MESON_FLAGS)

.PHONY: help run test stress soak models bench sanitize asan tsan test-aarch64 install format clean setup setup-test build
