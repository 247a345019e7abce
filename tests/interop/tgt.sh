#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Unpacks Debian's iSCSI target, which supports iSER, into DIRECTORY/tgt, together with libaio. Installing the package would start
# a service on this machine.
#
#   tests/interop/tgt.sh DIRECTORY
#
# Exits with status 77 if the packages cannot be downloaded.
set -eu
made=$1/tgt
[ ! -e "$made/.complete" ] || exit 0

cannot() {
	echo "tests/interop/tgt.sh: $1" >&2
	exit 77
}

rm -rf "$made"
mkdir -p "$made"
cd "$made"
apt-get download tgt >tgt.log 2>&1 || cannot 'tgt cannot be downloaded'
library=$(dpkg-deb -f tgt_*.deb Depends | tr -d ',' | tr ' ' '\n' | grep '^libaio1' | head -n 1)
apt-get download "$library" >>tgt.log 2>&1 || cannot "$library cannot be downloaded"
for package in *.deb; do
	dpkg-deb -x "$package" .
	rm "$package"
done
touch .complete
