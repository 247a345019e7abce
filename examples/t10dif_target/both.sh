#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Target and initiator as two processes of this host, or, with --netns, on two hosts that are network namespaces, joined by
# a veth pair (root, or user namespaces). Their programs are in DIRECTORY.
#
#   softhca run -- both.sh [--netns] DIRECTORY FILE [COPY]
set -eu
hosts=one
case $1 in
--netns)
	shift
	user=
	[ "$(id -u)" -eq 0 ] || user='--user --map-root-user'
	# Everything ends with the first process of the new PID namespace.
	namespaces="$user --net --pid --mount-proc --fork --kill-child"
	unshare $namespaces true || exit 77 # forbidden here
	exec unshare $namespaces "$0" --inside "$@"
	;;
--inside)
	shift
	hosts=two
	;;
esac
directory=$1
shift

output=$(mktemp)
address=127.0.0.1
there=
if [ $hosts = two ]; then
	address=10.77.0.1
	ip link set lo up
	unshare --net sh -c 'echo && exec sleep 1000' >"$output" &
	there="nsenter --target $! --net --"
	until [ -s "$output" ]; do sleep 0.05; done
	# Fits packets of 4096 bytes of data.
	ip link add a0 mtu 4500 type veth peer name b0 mtu 4500
	ip link set b0 netns $!
	ip addr add $address/24 dev a0
	ip link set a0 up
	$there ip link set lo up
	$there ip addr add 10.77.0.2/24 dev b0
	$there ip link set b0 up
	# Its address is a GID once the interface has a carrier.
	until ip link show a0 | grep -q LOWER_UP; do sleep 0.05; done
fi

"$directory/t10dif_target" $address 0 1024 >"$output" &
target=$!
trap 'kill $target 2>/dev/null || :; rm -f "$output"' EXIT
until port=$(sed -n 's/^target: waiting at port //p' "$output") && [ "$port" ]; do
	kill -0 $target || exit 1
	sleep 0.05
done
$there "$directory/t10dif_initiator" $address "$port" "$@"
wait $target
echo
sed 1d "$output"
