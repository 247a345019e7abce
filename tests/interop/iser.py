# SPDX-License-Identifier: BSD-2-Clause
"""iSCSI over RDMA: the kernel's initiator (ib_iser) in the guest uses a disk of Debian's tgt, which runs on softhca.

tgt accesses the initiator's memory by READ and WRITE; commands and responses are SENDs.
"""
import os
import subprocess
import time

import guest as machine
import place

PORT = 3260
DISK_BYTES = 64 << 20
TARGET, INITIATOR = 'iqn.2025-01.org.softhca:disk', 'iqn.2025-01.org.softhca:guest'
LOGIN = f'''set -e
modprobe ib_iser
modprobe sd_mod
mkdir -p /run/lock/iscsi
echo InitiatorName={INITIATOR} >/etc/iscsi/initiatorname.iscsi
iscsid
iscsiadm -m discovery -t st -p {machine.HOST} -I iser
iscsiadm -m node -T {TARGET} -p {machine.HOST}:{PORT} -I iser --login
until ls /dev/sd?; do sleep 0.1; done 2>/dev/null
'''
# Writes data, reads it back without the cache and compares it; then makes, fills and checks a file system.
USE = '''set -e
dd if=/dev/urandom of=/tmp/written bs=1M count=4
dd if=/tmp/written of=/dev/sda bs=64k oflag=direct
dd if=/dev/sda of=/tmp/read bs=256k count=16 iflag=direct
cmp /tmp/written /tmp/read
mke2fs -q -t ext4 /dev/sda
mount /dev/sda /mnt
cp -r /usr/lib/python3*/json /usr/lib/python3*/email /mnt
umount /mnt
e2fsck -fn /dev/sda
mount /dev/sda /mnt
diff -r /usr/lib/python3*/email /mnt/email
umount /mnt
'''
LOGOUT = 'iscsiadm -m node --logout && iscsiadm -m node -o delete && iscsiadm -k 0'


def admin(directory, environment, *arguments):
    subprocess.run([f'{directory}/usr/sbin/tgtadm', '--lld', 'iser', *arguments], env={**os.environ, **environment}, check=True)


def run(runner, deadline):
    """Returns (error or None, lines of output)."""
    tgt = f'{runner.directory}/tgt'
    if not os.path.exists(f'{tgt}/.complete'):
        return 'skipped: tgt cannot be had here', []
    outside = runner.outside
    disk = f'{outside.directory}/disk'
    with open(disk, 'wb') as file:
        file.truncate(DISK_BYTES)
    libraries = ':'.join([place.LIBRARIES, f'{tgt}/usr/lib/x86_64-linux-gnu', f'{tgt}/lib/x86_64-linux-gnu'])
    environment = {'TGT_IPC_SOCKET': f'{outside.directory}/tgt', 'LD_LIBRARY_PATH': libraries}
    target = outside.start(place.A, [runner.tool, 'run', '--', f'{tgt}/usr/sbin/tgtd', '-f', '--iscsi',
                                     f'portal={machine.HOST}:{PORT}'], environment)
    while not outside.listens_cm(place.A, PORT):
        if target.poll() is not None or time.monotonic() > deadline:
            return 'tgtd does not listen', target.report()
        time.sleep(0.05)
    admin(tgt, environment, '--mode', 'target', '--op', 'new', '--tid', '1', '--targetname', TARGET)
    admin(tgt, environment, '--mode', 'logicalunit', '--op', 'new', '--tid', '1', '--lun', '1', '-b', disk)
    # Over iSER, tgt requires permission for both the address and the name of the initiator.
    admin(tgt, environment, '--mode', 'target', '--op', 'bind', '--tid', '1', '-I', 'ALL')
    admin(tgt, environment, '--mode', 'target', '--op', 'bind', '--tid', '1', '-Q', INITIATOR)
    for step in (LOGIN, USE, LOGOUT):
        program = machine.GuestProgram(runner.guest, step)
        program.wait(deadline)
        program.kill()
        if program.status != 0:
            return 'the guest fails', [*program.report(), *target.report()]
    return None, []
