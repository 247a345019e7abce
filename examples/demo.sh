#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# make demo: Debian's own ibv_devinfo and the examples on the device; a few seconds, exit status 0 if all went right.
#
#   examples/demo.sh BUILD [--netns]      --netns: the last one on two hosts, too
set -eu
softhca=$1/src/tool/softhca
examples=$1/examples

# A real file of some MB that exists on every machine that builds this: the Python interpreter.
file=$(readlink -f /usr/bin/python3)

directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
output=$directory/output

# show WHAT COMMAND…: runs it on the device, shows what it prints; the demo ends here if it fails.
show() {
	printf '\n== %s\n' "$1"
	shift
	echo "\$ softhca run $*" | sed "s,$examples/,,;s,$directory/,,g"
	"$softhca" run -- "$@" >"$output" 2>&1 || {
		cat "$output"
		echo "demo: $1 failed" >&2
		exit 1
	}
	cat "$output"
}

# explained NUMBER NAME: checks that the last run of show() left an explanation of this rule.
explained() {
	grep -q "\\[$1 $2;" "$output" || {
		echo "demo: rule $1 $2 was not explained" >&2
		exit 1
	}
}

show "Debian's ibv_devinfo sees the device" ibv_devinfo
grep -q 'hca_id:.*mlx5_0' "$output" && grep -q 'PORT_ACTIVE' "$output"

show 'A message goes to and fro' "$examples/ping_pong"

show "A table by columns arrives by rows, in one WRITE ($(wc -c <"$file") bytes)" "$examples/scattered_records" "$file"

show 'The same, with one row more than the columns have' "$examples/scattered_records" --out-of-range "$file"
explained 7 KEY_RANGE

show 'A window is lent, used, revoked, and used again' "$examples/lent_window"
explained 2 KEY_FREE

printf '\nThe numbers in brackets are listed in docs/reference/explanations.md.\n'

head -c 64M /dev/urandom >"$directory/file"
both=$(dirname "$0")/t10dif_target/both.sh

# wrong_data_is_found: checks that the last run of show() reported each kind of damage, on both sides.
wrong_data_is_found() {
	cmp "$directory/file" "$directory/copy"
	for error in GUARD APPTAG REFTAG; do
		[ "$(grep -c "^The [a-z]*'s key finds MLX5DV_MKEY_SIG_BLOCK_BAD_$error$" "$output")" = 2 ] || {
			echo "demo: BAD_$error was not found on both sides" >&2
			exit 1
		}
	done
}

show 'A file goes to a disk with T10-DIF, in another process, and back; then bits flip on the disk' \
	"$both" "$examples" "$directory/file" "$directory/copy"
wrong_data_is_found
case ${2-} in
--netns)
	show 'The same between two hosts, which are network namespaces' \
		"$both" --netns "$examples" "$directory/file" "$directory/copy"
	wrong_data_is_found
	;;
esac
