# SPDX-License-Identifier: BSD-2-Clause
"""Two hosts that are network namespaces, and programs in them.

enter() runs the test again in new namespaces: in the network namespace it is host "a", its process is the first of a
PID namespace. Therefore all processes and interfaces that it creates are gone when it ends, in any way.
"""
import ctypes
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

A, B = 'a', 'b'
ADDRESS = {A: '10.77.0.1', B: '10.77.0.2'}
# MTU of Ethernet, and of a veth pair by default: packets of 1024 bytes of payload fit.
LINK_MTU = 1500
SKIPPED = 77
PR_SET_PDEATHSIG = 1
# __SO_ACCEPTCON among the flags of /proc/net/unix (proc(5)).
LISTENING = '00010000'

LIBRARIES = os.environ.get('TEST_LIBRARY_DIRECTORY', '')


def skip(reason):
    print(f'1..0 # SKIP {reason}')
    sys.exit(SKIPPED)


def enter(forbidden=skip):
    """Returns in new namespaces of network, processes, mounts and host name; if that is not possible, calls
    @forbidden with the reason."""
    inside = '--inside'
    if inside in sys.argv:
        sys.argv.remove(inside)
        # The first process of a PID namespace ignores signals without a handler.
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda number, _: sys.exit(128 + number))
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        # Tests that run at the same time look there for leftovers of their own programs.
        subprocess.run(['mount', '-t', 'tmpfs', 'tmpfs', '/dev/shm'], stderr=subprocess.DEVNULL, check=False)
        return
    for program in ('unshare', 'nsenter', 'ip'):
        if not shutil.which(program):
            forbidden(f'there is no {program}')
    unshare = ['unshare', '--net', '--uts', '--pid', '--mount', '--mount-proc', '--fork', '--kill-child']
    if os.getuid() != 0:
        unshare[1:1] = ['--user', '--map-root-user']
    probe = subprocess.run([*unshare, 'ip', 'link', 'add', 'probe0', 'type', 'veth', 'peer', 'name', 'probe1'],
                           stderr=subprocess.PIPE, text=True, check=False)
    if probe.returncode:
        forbidden('network namespaces or veth are forbidden here: ' + probe.stderr.strip().replace('\n', '; '))
    sys.stdout.flush()
    sys.stderr.flush()
    os.execvp(unshare[0], [*unshare, sys.executable, os.path.abspath(sys.argv[0]), *sys.argv[1:], inside])


def ip(*arguments):
    subprocess.run(['ip', *arguments], check=True)


def await_link(show):
    """Some time after both ends are up the kernel reports that packets can pass; until then the interface has no
    device."""
    deadline = time.monotonic() + 10
    while ' state UP ' not in subprocess.run(show, stdout=subprocess.PIPE, text=True, check=True).stdout:
        if time.monotonic() > deadline:
            raise TimeoutError(f'{" ".join(show)}: not up')
        time.sleep(0.01)


class Hosts:
    """Hosts "a", on which the test itself runs, and "b", joined by a veth pair."""

    def __init__(self, mtu=LINK_MTU):
        # Sockets of programs have paths in here: keep it short.
        self.directory = tempfile.mkdtemp(prefix='softhca-', dir='/tmp')
        self.programs = []
        self.ports = iter(range(20000, 30000))
        subprocess.run(['hostname', A], check=True)
        # /sys shows the network of the time when it was mounted. UCX reads it; if mounting is not allowed, the old one
        # stays.
        mount_sys = 'mount -t sysfs sysfs /sys 2>/dev/null'
        subprocess.run(['sh', '-c', mount_sys], check=False)
        self.holder = subprocess.Popen(['unshare', '--net', '--uts', '--mount', 'sh', '-c',
                                        f'hostname {B}; {mount_sys}; echo; exec sleep inf'], stdout=subprocess.PIPE)
        self.holder.stdout.readline()
        ip('link', 'add', 'a0', 'mtu', str(mtu), 'type', 'veth', 'peer', 'name', 'b0', 'mtu', str(mtu))
        ip('link', 'set', 'b0', 'netns', str(self.holder.pid))
        runs = {A: ['ip'], B: ['nsenter', '-t', str(self.holder.pid), '-n', 'ip']}
        for host, run in runs.items():
            for arguments in (['addr', 'add', f'{ADDRESS[host]}/24', 'dev', f'{host}0'],
                              ['link', 'set', 'lo', 'up'], ['link', 'set', f'{host}0', 'up']):
                subprocess.run([*run, *arguments], check=True)
        for host, run in runs.items():
            await_link([*run, '-o', 'link', 'show', 'dev', f'{host}0'])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
        self.holder.kill()
        self.holder.wait()
        shutil.rmtree(self.directory, ignore_errors=True)

    def port(self):
        """The network is not shared, so a port that was not used before is free."""
        return next(self.ports)

    def enter(self, host):
        """Returns the command that runs a command on @host."""
        return ['nsenter', '-t', str(self.holder.pid), '-n', '-u', '-m', '--'] if host == B else []

    def path(self, host, name):
        """Returns the path of a file of /proc/net as seen by @host."""
        return f'/proc/{self.holder.pid if host == B else "self"}/net/{name}'

    def start(self, host, command, env=None):
        program = Program(self, host, command, env or {})
        self.programs.append(program)
        return program

    def stop(self):
        """Ends programs that still run."""
        for program in self.programs:
            program.kill()
        self.programs = []

    def listens(self, host, port):
        for name in ('tcp', 'tcp6'):
            with open(self.path(host, name), encoding='ascii') as table:
                for line in table.readlines()[1:]:
                    fields = line.split()
                    if fields[3] == '0A' and int(fields[1].rsplit(':', 1)[1], 16) == port:
                        return True
        return False

    def listens_cm(self, host, port):
        """Returns true if a process of @host accepts requests of rdma_cm for @port, in any port space: by the name
        of its socket."""
        with open(self.path(host, 'unix'), encoding='utf-8', errors='replace') as table:
            return any(re.fullmatch(rf'\S+ \S+ \S+ {LISTENING} .* @softhca/1/cm/[0-9a-f]+/{port}\s*', line)
                       for line in table)

    def has_datagram_socket(self, host, port):
        """Returns true if a process of @host has a UDP socket at @port."""
        for name in ('udp', 'udp6'):
            with open(self.path(host, name), encoding='ascii') as table:
                if any(int(line.split()[1].rsplit(':', 1)[1], 16) == port for line in table.readlines()[1:]):
                    return True
        return False

    def is_member(self, host, group):
        """Returns true if @host has joined the multicast group, an IPv4 address."""
        number = struct.pack('<I', int.from_bytes(socket.inet_aton(group), 'big')).hex()
        with open(self.path(host, 'igmp'), encoding='ascii') as table:
            return any(line.split()[0].lower() == number for line in table if line.startswith('\t'))

    def datagrams(self, host):
        """Returns (received, sent) UDP datagrams of @host so far."""
        counts = [0, 0]
        with open(self.path(host, 'snmp'), encoding='ascii') as table:
            rows = [line.split() for line in table if line.startswith('Udp:')]
        values = dict(zip(rows[0][1:], map(int, rows[1][1:])))
        counts[0] += values['InDatagrams']
        counts[1] += values['OutDatagrams']
        with open(self.path(host, 'snmp6'), encoding='ascii') as table:
            values = dict(line.split() for line in table)
        counts[0] += int(values['Udp6InDatagrams'])
        counts[1] += int(values['Udp6OutDatagrams'])
        return tuple(counts)

    def names(self, host):
        """Returns the bound abstract UNIX sockets of @host."""
        with open(self.path(host, 'unix'), encoding='utf-8', errors='replace') as table:
            return sorted(set(re.findall(r'@\S+', table.read())))


class Program:
    """A program on a host, with our libraries first in its path; its output goes to files."""

    def __init__(self, hosts, host, command, env):
        self.command = command
        self.host = host
        number = len(hosts.programs)
        self.files = {name: f'{hosts.directory}/{name}.{time.monotonic_ns()}.{number}'
                      for name in ('out', 'err', 'explanations', 'regions')}
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith(('SOFTHCA_', 'MLX5_', 'CMOCKA_', 'UCX_', 'OMPI_'))}
        environment |= {'LD_LIBRARY_PATH': LIBRARIES, 'TMPDIR': hosts.directory, 'LC_ALL': 'C',
                        'SOFTHCA_EXPLAIN': self.files['explanations'], 'KEEP_REGIONS': self.files['regions'], **env}
        environment = {name: value for name, value in environment.items() if value is not None}
        libc = ctypes.CDLL(None)
        # ucx_perftest built with MPI behaves as an MPI rank unless it has a terminal.
        self.terminal = os.openpty() if 'ucx_perftest' in command else None
        stdin = self.terminal[1] if self.terminal else subprocess.DEVNULL
        with open(self.files['out'], 'wb') as out, open(self.files['err'], 'wb') as err:
            # A process group, so that its children end with it.
            self.process = subprocess.Popen([*hosts.enter(host), *command], env=environment, cwd=hosts.directory,
                                            stdin=stdin, stdout=out, stderr=err, start_new_session=True,
                                            preexec_fn=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL))

    @property
    def pid(self):
        return self.process.pid

    def poll(self):
        return self.process.poll()

    def kill(self):
        if self.process.poll() is None:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.process.wait()
        for file in self.terminal or ():
            os.close(file)
        self.terminal = None

    def read(self, name):
        try:
            with open(self.files[name], encoding='utf-8', errors='replace') as file:
                return file.read()
        except FileNotFoundError:
            return ''

    def report(self, lines=20):
        """Returns the end of its output and the first explanations, for failures."""
        text = [f'on {self.host}: {" ".join(self.command)}', f'exit status {self.process.poll()}']
        for name in ('out', 'err'):
            text += [f'{name} | {line}' for line in self.read(name).splitlines()[-lines:]]
        return text + [f'why | {line}' for line in self.read('explanations').splitlines()[:4]]
