#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Checks that no example is warned of misuse: right.sh COMMAND DIRECTORY, of the examples.
set -eu
file=$(mktemp)
said=$(mktemp)
trap 'rm -f "$file" "$said"' EXIT

right() {
	"$tool" run --lint -- "$@" >/dev/null 2>"$said"
	grep -qx 'softhca: lint: 0 warnings' "$said" || {
		cat "$said" >&2
		exit 1
	}
}

tool=$1
head -c 100000 /dev/urandom >"$file"
right "$2/ping_pong"
right "$2/lent_window"
right "$2/tutorial"
right "$2/tutorial" break
right "$2/scattered_records" "$file"
