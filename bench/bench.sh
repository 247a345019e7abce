#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Measures the library of a build directory: one process, then two, on one host and on two. The results go to
# BUILD/bench/results.json and links.json as well.
#
#   bench/bench.sh BUILD [--quick] [option…]      (softhca-bench --help)
#   bench/bench.sh BUILD --links [option…]        two processes only (bench/links/links.py --help)
set -eu
build=${1:?usage: bench/bench.sh BUILD [option…]}
shift
program=$build/bench/softhca-bench
[ -x "$program" ] || { echo "bench: there is no $program (make builds it)" >&2; exit 1; }
# Otherwise explanations, profiles etc. would be measured too.
for name in $(env | sed -n 's/^\(SOFTHCA_[A-Z0-9_]*\|MLX5_[A-Z0-9_]*\)=.*/\1/p'); do
	unset "$name"
done
links() {
	"$(dirname "$0")/links/links.py" "$build" --json "$build/bench/links.json" "$@"
}
if [ "${1-}" = --links ]; then
	shift
	links "$@"
	exit
fi
"$program" --json "$build/bench/results.json" "$@"
case "$*" in
'') links ;;
--quick) links --quick ;;
esac
