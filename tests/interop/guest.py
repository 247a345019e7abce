# SPDX-License-Identifier: BSD-2-Clause
"""A virtual machine with the soft-RoCE of its kernel (rdma_rxe), joined to this network namespace by a tap device.

root.sh makes its kernel and root. QEMU emulates the processor, so neither KVM nor hardware is needed. Commands reach the
guest over a second network (agent.py), which is not affected by packet loss on the first.
"""
import ctypes
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time

HOST, GUEST = '10.9.0.1', '10.9.0.2'
HOST6, GUEST6 = 'fd09::1', 'fd09::2'
TAP = 'tap0'
MTU = 1500
AGENT_PORT = 7000
BOOT_SECONDS = 240
PR_SET_PDEATHSIG = 1
HERE = os.path.dirname(os.path.abspath(__file__))


class Failure(Exception):
    """The guest does not boot, or a command in it fails."""


def make_tap():
    """Creates the interface of this namespace that is connected to the guest."""
    for command in (f'ip tuntap add {TAP} mode tap', f'ip link set {TAP} mtu {MTU}', 'ip link set lo up',
                    f'ip addr add {HOST}/24 dev {TAP}', f'ip -6 addr add {HOST6}/64 dev {TAP} nodad', f'ip link set {TAP} up'):
        subprocess.run(command.split(), check=True)


class Guest:
    """A running virtual machine. Copies of @files are in its /run; its console is written to @log."""

    def __init__(self, made, files, directory, log, kvm=False):
        self.log = log
        initrd = self.initramfs(made, files, directory)
        command = ['qemu-system-x86_64', '-accel', 'kvm' if kvm else 'tcg,thread=multi', '-cpu', 'host' if kvm else 'max',
                   '-smp', '1', '-m', '768', '-nodefaults', '-display', 'none', '-no-reboot', '-serial', f'file:{log}',
                   '-kernel', f'{made}/vmlinuz', '-initrd', initrd,
                   '-append', 'console=ttyS0 mitigations=off tsc=unstable panic=-1 quiet',
                   '-drive', f'file={made}/root.img,format=raw,if=virtio,snapshot=on',
                   '-netdev', f'tap,id=data,ifname={TAP},script=no,downscript=no', '-device', 'virtio-net-pci,netdev=data',
                   '-netdev', f'user,id=control,restrict=on,hostfwd=tcp:127.0.0.1:{AGENT_PORT}-10.0.2.15:{AGENT_PORT}',
                   '-device', 'virtio-net-pci,netdev=control']
        libc = ctypes.CDLL(None)
        with open(log, 'wb'), open(f'{log}.qemu', 'wb') as errors:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors, cwd=directory,
                                            env={**os.environ, 'TMPDIR': directory},
                                            preexec_fn=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL))
        try:
            self.await_agent()
            self.set_up()
        except BaseException:
            self.stop()
            raise

    @staticmethod
    def initramfs(made, files, directory):
        """Packs @made/early, init.sh, and @files for the guest's /run."""
        tree = f'{directory}/initramfs'
        shutil.copytree(f'{made}/early', tree)
        os.makedirs(f'{tree}/programs')
        shutil.copy(f'{HERE}/init.sh', f'{tree}/init')
        os.chmod(f'{tree}/init', 0o755)
        for path in [f'{HERE}/agent.py', *files]:
            shutil.copy(path, f'{tree}/programs/')
        names = subprocess.run(['find', '.'], cwd=tree, stdout=subprocess.PIPE, check=True).stdout
        with open(f'{directory}/initrd', 'wb') as output:
            subprocess.run(['cpio', '--quiet', '-o', '-H', 'newc'], cwd=tree, input=names, stdout=output, check=True)
        return f'{directory}/initrd'

    def await_agent(self):
        deadline = time.monotonic() + BOOT_SECONDS
        while self.process.poll() is None and time.monotonic() < deadline:
            with open(self.log, encoding='utf-8', errors='replace') as console:
                if 'agent: ready' in console.read():
                    return
            time.sleep(0.1)
        raise Failure(f'the guest does not boot: see {self.log}')

    def set_up(self):
        """Adds the RDMA device to the interface that is connected to the tap."""
        self.run(f'ip addr add {GUEST}/24 dev eth0 && ip -6 addr add {GUEST6}/64 dev eth0 nodad && '
                 f'ip link set eth0 mtu {MTU} up && modprobe rdma_rxe && modprobe rdma_ucm && modprobe ib_uverbs && '
                 'rdma link add rxe0 type rxe netdev eth0')
        for address in (HOST, HOST6):
            self.run(f'ping -c 1 -W 5 {address} >/dev/null || true')

    def lose(self, loss):
        """Drops the fraction @loss of all packets in each direction from now on."""
        netem = f'root netem limit 100000 loss {loss}'
        self.run(f'tc qdisc add dev eth0 {netem} && ip link add arriving type ifb && ip link set arriving up && '
                 f'tc qdisc add dev arriving {netem} && tc qdisc add dev eth0 handle ffff: ingress && '
                 'tc filter add dev eth0 parent ffff: matchall action mirred egress redirect dev arriving')

    def lost(self):
        """Returns the number of packets dropped so far: (sent, received)."""
        return tuple(sum(map(int, re.findall(r'netem.*?dropped (\d+)', self.run(f'tc -s qdisc show dev {device}'), re.S)))
                     for device in ('eth0', 'arriving'))

    def connect(self, command):
        connection = socket.create_connection(('127.0.0.1', AGENT_PORT))
        connection.sendall(json.dumps(command).encode() + b'\n')
        return connection

    def run(self, command, seconds=60):
        """Runs @command, which must succeed, and returns its output."""
        program = GuestProgram(self, command)
        program.wait(time.monotonic() + seconds)
        if program.status != 0:
            program.kill()
            raise Failure(f'in the guest: {command}: exit status {program.status}\n{program.output}{program.errors}')
        return program.output

    def stop(self):
        self.process.kill()
        self.process.wait()


class GuestProgram:
    """A command in the guest."""

    host = 'guest'

    def __init__(self, guest, command):
        self.command = command
        self.connection = guest.connect(command)
        self.received = b''
        self.status = None
        self.output = self.errors = ''

    def poll(self):
        """Returns the exit status, or None while the command runs."""
        self.wait(0)
        return self.status

    def wait(self, deadline):
        while self.status is None and self.connection:
            self.connection.settimeout(max(deadline - time.monotonic(), 0.001))
            try:
                piece = self.connection.recv(1 << 16)
            except TimeoutError:
                return
            if not piece:
                raise Failure(f'the agent has ended the connection of: {self.command}')
            self.received += piece
            if self.received.endswith(b'\n'):
                self.status, self.output, self.errors = json.loads(self.received)
                self.connection.close()
                self.connection = None

    def kill(self):
        """Ends the command and waits for its output."""
        if self.connection:
            self.connection.shutdown(socket.SHUT_WR)
            self.wait(time.monotonic() + 20)

    def read(self, name):
        return {'out': self.output, 'err': self.errors}.get(name, '')

    def report(self, lines=20):
        return [f'in the guest: {self.command}', f'exit status {self.status}',
                *[f'{name} | {line}' for name in ('out', 'err') for line in self.read(name).splitlines()[-lines:]]]


def gids(devinfo):
    """Returns the indices of the RoCE v2 GIDs in the output of `ibv_devinfo -v`: {address: index}."""
    return {gid: int(index) for index, gid in re.findall(r'GID\[ *(\d+)\]:\s*(\S+), RoCE v2', devinfo)}
