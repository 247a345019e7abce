#!/bin/busybox sh
# SPDX-License-Identifier: BSD-2-Clause
# First program of a guest: mounts the root file system and starts the agent in it. Changes to the root are lost when the
# virtual machine ends.
/bin/busybox --install -s /bin
mkdir -p /proc /sys /dev /system
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
while read -r module; do
	insmod "/modules/$module"
done </modules/order
while ! mount -t ext4 /dev/vda /system 2>/dev/null; do sleep 0.1; done
mount -t tmpfs tmpfs /system/run
cp /programs/* /system/run/
for directory in proc sys dev; do mount --move /$directory /system/$directory; done
mkdir -p /system/dev/pts /system/dev/shm
mount -t devpts devpts /system/dev/pts
mount -t tmpfs tmpfs /system/dev/shm
mount -t tmpfs tmpfs /system/tmp
exec switch_root /system /usr/bin/python3 -u /run/agent.py
