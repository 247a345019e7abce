#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Two processes on two hosts, 16 queue pairs, random requests of all operations in both directions, over a network that
# loses, duplicates and reorders 2 % of all packets each: no wrong byte, no lost or duplicated completion, no stuck
# queue pair. The seed is printed; pass it to repeat a run.
#
#   tests/clients/soak.sh BUILD [SECONDS [SEED]]
set -eu
build=$(cd "$1" && pwd)
seconds=${2:-60}
seed=${3:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}
export TEST_LIBRARY_DIRECTORY="$build/lib"
exec "$(dirname "$0")/processes.py" --link udp --seconds $((seconds + 60)) \
	--faults "drop 2%; duplicate 2%; reorder 2% by 3; seed $seed" \
	"$build/tests/clients/clients-soak" --seconds "$seconds" --seed "$seed"
