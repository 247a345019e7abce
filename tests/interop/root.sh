#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Makes the files of a virtual machine: a Debian release with its kernel, rdma-core and client programs.
#
#   tests/interop/root.sh SUITE DIRECTORY      SUITE: bookworm, trixie, …
#
# Writes DIRECTORY/SUITE: vmlinuz, root.img (ext4), early/ (busybox and the modules needed to mount the root), and release (the
# version of the kernel's package). Later runs use them again. Packages come from MIRROR, by default the Debian archive
# in the apt configuration of this machine. Exits with status 77 if the files cannot be made here.
set -eu
suite=$1
mkdir -p "$2"
made=$(cd "$2" && pwd)/$suite
# Files made by another version of this script are made again.
version=$(cksum <"$0")
[ "$(cat "$made/.complete" 2>/dev/null)" != "$version" ] || exit 0

# Clients of rdma-core and the iSCSI initiator, with the tools they need.
packages='rdmacm-utils,perftest,ibverbs-utils,ibverbs-providers,python3,iproute2,kmod,open-iscsi,e2fsprogs'
# Modules for the disk and the network; the guest loads all others from its root.
early='virtio_pci virtio_blk virtio_net ext4'

cannot() {
	echo "tests/interop/root.sh: $1" >&2
	exit 77
}

[ "$(id -u)" -eq 0 ] || cannot 'only root can make it'
for program in debootstrap busybox mke2fs cpio; do
	command -v $program >/dev/null || cannot "there is no $program"
done
: "${MIRROR=$(apt-get indextargets --format '$(ORIGIN) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
	awk '$1 == "Debian" && $2 !~ /security/ { print $2; exit }')}"

rm -rf "$made"
mkdir -p "$made"
root=$made/root
if ! debootstrap --variant=minbase --include="$packages" "$suite" "$root" $MIRROR >"$made/root.log" 2>&1; then
	tail -n 5 "$made/root.log" >&2
	cannot "debootstrap failed for $suite"
fi
rm -f "$root"/var/cache/apt/archives/*.deb

# The kernel's package is unpacked and not installed, because its scripts would make an unused initramfs.
if [ -e /etc/resolv.conf ]; then cat /etc/resolv.conf >"$root/etc/resolv.conf"; fi
if [ -d /etc/apt/apt.conf.d ]; then cp /etc/apt/apt.conf.d/*proxy* "$root/etc/apt/apt.conf.d/" 2>/dev/null || true; fi
package=$(chroot "$root" apt-cache depends linux-image-amd64 | awk '$1 == "Depends:" { print $2; exit }')
[ -n "$package" ] || cannot "$suite has no linux-image-amd64"
if ! chroot "$root" sh -c "cd /tmp && apt-get download $package" >>"$made/root.log" 2>&1; then
	tail -n 5 "$made/root.log" >&2
	cannot "$package cannot be downloaded"
fi
dpkg-deb -x "$root"/tmp/linux-image-*.deb "$made/kernel"
dpkg-deb -f "$root"/tmp/linux-image-*.deb Version >"$made/release"
rm -f "$root"/tmp/linux-image-*.deb
mv "$made"/kernel/boot/vmlinuz-* "$made/vmlinuz"
# Packages may contain /lib as a directory, while the root has a link to /usr/lib there.
mkdir -p "$root/usr/lib/modules"
find "$made/kernel" -path '*/lib/modules/*' -prune -exec mv {} "$root/usr/lib/modules/" \;
kernel=$(ls "$root/usr/lib/modules")
modules=$root/usr/lib/modules/$kernel/kernel
rm -rf "$modules/drivers/gpu" "$modules/drivers/media" "$modules/drivers/net/wireless" "$modules/sound" "$made/kernel"
chroot "$root" depmod "$kernel"

# Lists the modules in the order in which insmod must load them.
mkdir -p "$made/early/bin" "$made/early/modules"
cp "$(command -v busybox)" "$made/early/bin/busybox"
for module in $early; do
	chroot "$root" modprobe -S "$kernel" --show-depends "$module"
done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' | while read -r path; do
	cp "$root/$path" "$made/early/modules/"
	basename "$path"
done >"$made/early/modules/order"

mke2fs -q -t ext4 -d "$root" "$made/root.img" 2G
rm -rf "$root"
echo "$version" >"$made/.complete"
