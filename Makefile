# SPDX-License-Identifier: BSD-2-Clause
# The front door; Meson does the work. Sanitizer, fuzz and lint builds live beside $(BUILD) as $(BUILD)-asan, ….
BUILD ?= build
PREFIX ?= /usr/local
DESTDIR ?=
FUZZ_SECONDS ?= 600
SOAK_SECONDS ?= 600
BUSY_ROUNDS ?= 100
CLIENT_SECONDS ?= 1200
SUITE ?= trixie

.PHONY: all build demo deb dist distro distro-deb check test test-long arm64 arm64-part sanitize test-all bench bench-count fuzz soak \
	busy clients interop mutate install uninstall format lint docs docs-html clean help

all: build

help:
	@echo 'make                      build into $(BUILD)/'
	@echo 'make demo                 see it work, in seconds'
	@echo 'make check                the tests for every change: functions, calls, explanations, the command; minutes'
	@echo 'make test                 the tests of the plain build'
	@echo 'make test-long            further ones, which take longer: most programs of distributions, shells'
	@echo 'make arm64                build for aarch64; unit tests, calls, signatures, explanations under qemu-user'
	@echo 'make arm64-part           the same, with the unit tests and a few of the others'
	@echo 'make sanitize             tests under sanitizers, and the fuzzers for ten seconds each'
	@echo 'make test-all             all of these: $(TEST_ALL)'
	@echo 'make bench                measure, with ratios to memcpy'
	@echo 'make bench-count          count instructions per operation; RECORD=1 records them'
	@echo 'make fuzz                 fuzz the WQE executor, FUZZ_SECONDS=$(FUZZ_SECONDS)'
	@echo 'make soak                 two hosts over a network that loses packets, SOAK_SECONDS=$(SOAK_SECONDS)'
	@echo 'make busy                 clients beside busy loops, BUSY_ROUNDS=$(BUSY_ROUNDS)'
	@echo 'make clients              programs of Debian packages over shm and udp, as a table; ONLY=rping selects'
	@echo 'make interop              against soft-RoCE of Linux kernels in virtual machines; needs root; RECORD=1 records'
	@echo 'make mutate               break the source on purpose; see whether the tests notice'
	@echo 'make distro               build and test in another release of Debian or Ubuntu, SUITE=$(SUITE); needs root'
	@echo 'make dist                 make a source archive of the commit'
	@echo 'make deb                  Debian packages, into $(BUILD)-deb/'
	@echo 'make install PREFIX=…     install below PREFIX=$(PREFIX); DESTDIR is honoured'
	@echo 'make uninstall PREFIX=…   remove what was installed there'
	@echo 'make docs-html            the documents as HTML, with a search, into $(BUILD)-docs/'
	@echo 'make format | lint | docs | clean'

build:
	@scripts/deps build
	@scripts/build $(BUILD)

demo:
	@scripts/deps demo
	@scripts/build $(BUILD)
	@examples/demo.sh $(BUILD)

# For every change; what make test adds are other processes, random cases, and programs of the distribution.
check:
	@scripts/deps check
	@scripts/test --build $(BUILD) --only plain --suite unit --suite api --suite explain --suite tool

test:
	@scripts/deps test
	@scripts/test --build $(BUILD) --only plain

test-long:
	@scripts/deps test clients
	@scripts/test --build $(BUILD) --only plain --long

# With a cross compiler, qemu-user and packages of Debian for arm64; skipped, and counted as that, where these are missing.
ARM64 = scripts/test --build $(BUILD) --only arm64 --suite unit --suite signature --suite api --suite explain

arm64:
	@scripts/deps build
	@$(ARM64)

arm64-part:
	@scripts/deps build
	@$(ARM64) --part 4

sanitize:
	@scripts/deps test
	@scripts/test --build $(BUILD) --only asan --only tsan --only fuzz

# What make test-all runs. Each target prints "N passed, N failed" last, or counts as one by its exit status.
TEST_ALL = test test-long sanitize arm64-part

test-all:
	@scripts/sum $(TEST_ALL:%='$(MAKE) %')

bench:
	@scripts/deps bench
	@scripts/build $(BUILD)
	@bench/bench.sh $(BUILD)

bench-count:
	@scripts/deps bench
	@scripts/build $(BUILD)
	@bench/count/count.py $(BUILD)/bench/count/softhca-bench-count bench/instructions.txt $(if $(RECORD),--record)

fuzz:
	@scripts/deps fuzz
	@scripts/fuzz $(BUILD)-fuzz $(FUZZ_SECONDS)

soak:
	@scripts/deps test
	@scripts/build $(BUILD)
	@tests/clients/soak.sh $(BUILD) $(SOAK_SECONDS)

# Clients with their default options beside busy loops, on two processors; 100 rounds take hours.
busy:
	@scripts/deps test
	@scripts/build $(BUILD)
	@TEST_LIBRARY_DIRECTORY=$(abspath $(BUILD))/lib tests/clients/busy.py --tool $(abspath $(BUILD))/src/tool/softhca --rounds $(BUSY_ROUNDS)

# Programs of the distribution, in two network namespaces. Clients that are not installed are named, and skipped.
clients:
	@scripts/deps build
	@scripts/deps clients || true
	@scripts/clients $(BUILD) --within $(CLIENT_SECONDS) $(if $(ONLY),--only '$(ONLY)') all

# Runs against the soft-RoCE of Debian kernels, in virtual machines. RELEASES=bookworm selects kernels, ONLY=rping
# (an expression) cases. RECORD=1 writes the table of docs/inside/interop.md.
interop:
	@scripts/deps build
	@scripts/deps interop || true
	@scripts/build $(BUILD)
	@tests/interop/run.py --build $(BUILD) $(RELEASES:%=--suite %) $(if $(ONLY),--only '$(ONLY)') $(if $(RECORD),--record docs/inside/interop.md)

mutate:
	@scripts/deps test
	@tests/mutation/mutate.py

INSTALL = DESTDIR='$(DESTDIR)' scripts/install
RELEASE_OPTIONS = --prefix='$(abspath $(PREFIX))' --libdir=lib -Dtests=false -Dwerror=false

install:
	@$(INSTALL) check $(BUILD)-release '$(abspath $(PREFIX))'
	@scripts/deps build
	@scripts/build $(BUILD)-release $(RELEASE_OPTIONS)
	@$(INSTALL) files $(BUILD)-release '$(abspath $(PREFIX))'

# Needs the same PREFIX and DESTDIR.
uninstall:
	@scripts/deps build
	@scripts/build --target build.ninja $(BUILD)-release $(RELEASE_OPTIONS)
	@$(INSTALL) remove $(BUILD)-release '$(abspath $(PREFIX))'

# A source archive of HEAD.
dist:
	@scripts/dist .

# Debian packages of this release.
deb:
	@scripts/deps deb
	@scripts/deb $(BUILD)-deb

# Another release of Debian or Ubuntu in a directory, by debootstrap; distro-deb makes and tries the packages there.
distro:
	@scripts/distro $(SUITE) $(BUILD)-distros

distro-deb:
	@scripts/distro $(SUITE) $(BUILD)-distros scripts/deb-test
	@scripts/distro $(SUITE) $(BUILD)-distros sh -c 'command -v python3 >/dev/null || \
		{ apt-get update && apt-get install -y --no-install-recommends python3; } >/dev/null; exec scripts/try-ci-examples'

format:
	@scripts/deps lint
	@scripts/sources c | xargs clang-format -i

lint:
	@scripts/deps lint
	@scripts/lint $(BUILD)

docs:
	@scripts/deps lint
	@scripts/build $(BUILD) -Dtests=true
	@scripts/docs $(BUILD)

docs-html:
	@scripts/docs-html $(BUILD)-docs

clean:
	rm -rf $(BUILD) $(BUILD)-docs $(BUILD)-asan $(BUILD)-tsan $(BUILD)-fuzz $(BUILD)-clang $(BUILD)-release $(BUILD)-deb $(BUILD)-distros \
		$(BUILD)-arm64 $(BUILD)-arm64-sysroot
