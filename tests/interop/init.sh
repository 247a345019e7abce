#!/bin/busybox sh
# SPDX-License-Identifier: BSD-2-Clause
# The first program of a guest: mounts the root and starts the agent in it. What the guest changes in its root is lost
# with the virtual machine.
/bin/busybox --install -s /bin
mkdir -p /proc /sys /dev /root
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
while read -r module; do
	insmod "/modules/$module"
done </modules/order
while ! mount -t ext4 /dev/vda /root 2>/dev/null; do sleep 0.1; done
mount -t tmpfs tmpfs /root/run
cp /programs/* /root/run/
for directory in proc sys dev; do mount --move /$directory /root/$directory; done
mkdir -p /root/dev/pts /root/dev/shm
mount -t devpts devpts /root/dev/pts
mount -t tmpfs tmpfs /root/dev/shm
mount -t tmpfs tmpfs /root/tmp
exec switch_root /root /usr/bin/python3 -u /run/agent.py
