# The entry: targets that install what is missing, build with meson and ninja, and
# run things. `make help` lists them.

PREFIX ?= /usr/local
comma  := ,

.DEFAULT_GOAL := help
.PHONY: help build run test check check-asan check-clang check-escape check-e2e bench install \
	uninstall clean format hooks spec compdb setup setup-test build-tests check-deep \
	check-torture check-vm check-all check-stress check-images setup-fuzz setup-deep setup-bench soak fuzz coverage

help: ## list these targets
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1@\2/p' Makefile | column -t -s@

setup:
	@tools/setup build

setup-test:
	@tools/setup test

setup-fuzz:
	@tools/setup fuzz

setup-deep:
	@tools/setup deep

# One folder a way of building; what meson says is only shown when it fails.
configure = meson setup $(@D) $(1) >$(@D).log 2>&1 || { cat $(@D).log; exit 1; }; rm $(@D).log

build/build.ninja: | setup
	@echo "building in build/: a minute or two, the first time"
	@$(call configure,--prefix $(PREFIX))

build-asan/build.ninja: | setup
	@$(call configure,-Db_sanitize=address$(comma)undefined -Db_lundef=false)

build-clang/build.ninja: | setup
	@CC=clang $(call configure)

build-fuzz/build.ninja: | setup-fuzz
	@CC=clang $(call configure,-Dfuzz=true -Db_sanitize=address$(comma)undefined -Db_lundef=false)

build-coverage/build.ninja: | setup-fuzz
	@CC=clang $(call configure,-Dcounters=$(abspath build-coverage)/counters)

# What succeeds says nothing: not that there was nothing to do either.
quietly = out=$$($(1) 2>&1) || { printf '%s\n' "$$out"; exit 1; }

build: build/build.ninja ## build the program: build/glovebox
	@$(call quietly,ninja -C build program)

build-tests: setup-test build/build.ninja
	@$(call quietly,ninja -C build)

run: build ## build, then serve on 127.0.0.1:8000 in the foreground (ARGS="…" adds flags)
	@exec build/glovebox serve $(ARGS)

test: build-tests ## everything a user needs: unit, gates, e2e, escape and torture tests (root)
	@tools/run-tests unit root gates e2e escape cold torture

check: build-tests ## fast, no root: unit tests and gates
	@tools/run-tests unit gates

check-e2e: build-tests ## the API and the command line as dialogues (root)
	@tools/run-tests e2e

check-escape: build-tests ## every attack of the threat model (root)
	@tools/run-tests escape

check-torture: build-tests ## kernel calls that are missing, or fail in their turn (root)
	@tools/run-tests torture

check-asan: setup-test build-asan/build.ninja ## unit tests under AddressSanitizer and UBSan
	@$(call quietly,ninja -C build-asan)
	@tools/run-tests --build build-asan unit

check-clang: setup-test build-clang/build.ninja ## build with clang; unit tests
	@$(call quietly,ninja -C build-clang)
	@tools/run-tests --build build-clang unit

check-images: build-tests ## the image python-data, built and used; minutes, and a mirror of Debian's (root)
	@tools/run-tests images

# Without what cannot be installed the benchmark goes on, and says that it was not measured.
setup-bench:
	@tools/setup bench || echo "setup: going on without it" >&2

bench: build setup-bench ## measure beside bare Python and the sandboxes found here, 5 minutes (root; ARGS=--quick: half a minute, --write)
	@ninja -C build --quiet tests/bench/bench-client
	@tests/bench/bench $(ARGS)

soak: build ## 100,000 runs in a row, then good and hostile ones for 30 minutes while processes are killed at random (root; ARGS=--runs N, STORM=--seconds N)
	@tools/soak $(ARGS)
	@tools/storm $(STORM)

check-stress: build ## every stressor of stress-ng, and trinity, in cells (root)
	@tools/setup stress
	@tests/stress/stress $(ARGS)

check-vm: setup-deep build/build.ninja ## what depends on cgroup v2, in emulated guests of two kernels (root; ARGS="--kernel 6.1")
	@tests/vm/check $(ARGS)

fuzz: setup-fuzz build-fuzz/build.ninja ## fuzz what reads foreign bytes, 20 s a target (ARGS="--seconds N TARGET…"); corpora are replayed by the unit tests
	@tools/fuzz $(ARGS)

coverage: setup-fuzz build-coverage/build.ninja ## what the tests reach of priv/, wire/, kernel/, by line and branch (root); report in build-coverage/report
	@tools/coverage $(ARGS)

check-deep: check-asan check-clang fuzz check-images check-vm check-stress ## what `make test` leaves out: sanitizers, clang, fuzzing, a large image, the guests, others' hostile programs (root)

check-all: test check-deep ## the full matrix: those two, and the whole suite in the guests, warm and cold (root; hours)
	@tests/vm/check --whole

install: build/build.ninja ## install below PREFIX (default /usr/local), DESTDIR before it
	@$(call quietly,meson configure build -Dprefix=$(PREFIX))
	@$(call quietly,ninja -C build program)
	@meson install -C build --no-rebuild --quiet $(if $(DESTDIR),--destdir $(abspath $(DESTDIR)))

uninstall: ## remove what `make install` of this tree installed
	@ninja -C build --quiet uninstall

clean: ## remove everything that was built
	@rm -rf build build-*

format: setup-test ## format all C files in place
	@find src include tests examples tools -name '*.[ch]' -exec clang-format -i {} +

hooks: ## let git run the quick gates before each commit
	@printf '#!/bin/sh\nexec tools/run-tests quick\n' >.git/hooks/pre-commit
	@chmod +x .git/hooks/pre-commit

spec: ## print every test as the sentence that it checks, by area
	@tools/spec

compdb: build ## compile_commands.json for editors
	@ln -sf build/compile_commands.json compile_commands.json
