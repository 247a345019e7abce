#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# make demo: Debian's own ibv_devinfo on the device.
#
#   examples/demo.sh BUILD
set -eu
softhca=$1/src/tool/softhca

echo '$ softhca run ibv_devinfo'
"$softhca" run ibv_devinfo
