#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""softhca top: counters of processes, seen from outside: of running ones, stopped ones, and ones with false data."""
import json
import mmap
import os
import pty
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import termios
import time
import unittest

from harness import TOOL, alone, clean_environment, main, softhca

REFUSE = os.path.abspath(sys.argv[3])
NAME = 'softhca-counters'
PATIENCE = 20

# A process with devices, which reports that and waits for a line; "fork" makes a child that does the same, with "full"
# there is no free descriptor at that time.
WAITER = '''
import ctypes, os, sys
verbs = ctypes.CDLL('libibverbs.so.1')
verbs.ibv_get_device_list.restype = ctypes.c_void_p
assert verbs.ibv_get_device_list(None)
while 'full' in sys.argv:
    try:
        os.dup(0)
    except OSError:
        break
if 'fork' in sys.argv and not os.fork():
    os.write(1, b'%d\\n' % os.getpid())
    sys.stdin.readline()
    os._exit(0)
os.write(1, b'%d\\n' % os.getpid())
sys.stdin.readline()
'''

# Closes all unknown descriptors, opens its own file under their numbers, and forks.
DAEMON = '''
import ctypes, os, tempfile
verbs = ctypes.CDLL('libibverbs.so.1')
verbs.ibv_get_device_list.restype = ctypes.c_void_p
assert verbs.ibv_get_device_list(None)
os.closerange(3, 64)
own = tempfile.TemporaryFile(buffering=0)
own.write(b'own')
numbers = range(3, 64)
for number in numbers:
    os.dup2(own.fileno(), number)
child = os.fork()
for number in numbers:
    assert os.path.samestat(os.fstat(number), os.fstat(own.fileno())), number
assert os.pread(own.fileno(), 10, 0) == b'own'
if not child:
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
'''


def top(*arguments, **options):
    begin = time.monotonic()
    done = softhca('top', '--once', '--json', '--interval', '0.05', *arguments, **options)
    assert (done.returncode, done.stderr) == (0, ''), done.stderr
    assert time.monotonic() - begin < 10, 'slow'
    return {process['pid']: process for process in json.loads(done.stdout)}


class Started:
    """A program under softhca run, killed at the end."""

    def __init__(self, *command, settings=(), prefix=()):
        self.process = subprocess.Popen([*prefix, TOOL, 'run', '--gids', 'loopback', *settings, '--', *command], text=True,
                                        env=clean_environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL)
        self.pid = self.process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


def waiter(*arguments, **options):
    started = Started(sys.executable, '-c', WAITER, *arguments, **options)
    started.first = int(started.process.stdout.readline())
    return started


def wait_for(what):
    """Waits until what() is true; returns its last value."""
    end = time.monotonic() + PATIENCE
    while True:
        got = what()
        if got or time.monotonic() > end:
            return got
        time.sleep(0.05)


class Processes(unittest.TestCase):
    def test_no_processes(self):
        self.assertNotIn(os.getpid(), top())
        self.assertIn('PID', softhca('top', '--once', '--interval', '0.05').stdout)

    def test_a_process_that_does_nothing(self):
        with waiter() as started:
            shown = top()[started.pid]
            self.assertEqual((shown['qps'], shown['errors'], shown['links']), (0, 0, '-'))
            self.assertRegex(shown['program'], r'^python')
            self.assertEqual(set(shown['counters']), set(shown['per_second']))
            text = softhca('top', '--once', '--interval=0.05').stdout
            self.assertRegex(text, rf'(?m)^ *{started.pid} python\S* +0 +0 +0 +0 +0 +0 +0 -$')
            self.assertRegex(text, r'(?m)^  total \d+ process(es)? +0 ')
        self.assertNotIn(started.pid, top())

    @unittest.skipUnless(shutil.which('ibv_rc_pingpong'), 'no ibverbs-utils')
    def test_traffic(self):
        with socket.socket() as free:
            free.bind(('127.0.0.1', 0))
            port = str(free.getsockname()[1])
        command = ['ibv_rc_pingpong', '-d', 'mlx5_0', '-g', '3', '-n', '1000000000', '-p', port]
        settings = ['--faults', 'drop 1%; seed 3', '--link', 'shm']
        with Started(*command, settings=settings) as server:
            self.assertTrue(wait_for(lambda: top().get(server.pid, {}).get('qps') == 1))
            with Started(*command, '127.0.0.1', settings=settings) as client:
                self.assertTrue(wait_for(lambda: top().get(client.pid, {}).get('counters', {}).get('packets_resent')))
                shown = top('--interval', '0.5')
                for pid in (server.pid, client.pid):
                    self.assertEqual((shown[pid]['qps'], shown[pid]['links']), (1, 'shm'))
                    self.assertGreater(shown[pid]['per_second']['shm_bytes_sent'], 1000)
                    self.assertGreater(shown[pid]['counters']['fault_dropped'], 0)
                # A stopped process is shown as it is, and does not delay others.
                os.kill(client.pid, signal.SIGSTOP)
                os.kill(server.pid, signal.SIGSTOP)
                time.sleep(0.1)
                shown = top('--interval', '0.2')
                for pid in (server.pid, client.pid):
                    self.assertEqual(shown[pid]['per_second']['shm_bytes_sent'], 0)
                    self.assertGreater(shown[pid]['counters']['shm_bytes_sent'], 1000)

    def test_forked_child_counts_for_itself(self):
        with waiter('fork') as started:
            pids = {started.first, int(started.process.stdout.readline())}
            self.assertTrue(pids <= set(top()))
            files = {}
            for pid in pids:
                for name in os.listdir(f'/proc/{pid}/fd'):
                    if NAME in os.readlink(f'/proc/{pid}/fd/{name}'):
                        files.setdefault(pid, []).append(os.stat(f'/proc/{pid}/fd/{name}').st_ino)
            self.assertEqual([len(inodes) for inodes in files.values()], [1, 1])
            self.assertEqual(len({inodes[0] for inodes in files.values()}), 2)

    def test_forked_child_without_a_descriptor_left(self):
        prefix = ['prlimit', '--nofile=64', '--']
        with waiter('fork', 'full', prefix=prefix) as started:
            pids = {started.first, int(started.process.stdout.readline())}
            self.assertTrue(pids <= set(top()))

    def test_program_that_closes_all_descriptors(self):
        done = subprocess.run([TOOL, 'run', '--gids', 'loopback', '--', sys.executable, '-c', DAEMON], env=clean_environment(),
                              text=True, capture_output=True, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ''))

    def test_others_cannot_corrupt_the_file(self):
        """Otherwise a process that counts could be killed by SIGBUS, or show false counts."""
        with waiter() as started:
            path, = (f'/proc/{started.pid}/fd/{name}' for name in os.listdir(f'/proc/{started.pid}/fd')
                     if NAME in os.readlink(f'/proc/{started.pid}/fd/{name}'))
            size = os.stat(path).st_size
            with open(path, 'r+b', buffering=0) as file:
                for spoil in (lambda: file.truncate(0), lambda: file.truncate(size + 1), lambda: file.write(b'x'),
                              lambda: mmap.mmap(file.fileno(), 4096)):
                    with self.assertRaises(PermissionError):
                        spoil()
            self.assertIn(started.pid, top())

    def test_process_without_a_file(self):
        with waiter(prefix=[REFUSE, 'memfd_create']) as started:
            self.assertNotIn(started.pid, top())

    @unittest.skipIf(os.geteuid(), 'not root')
    def test_only_the_same_user_and_root(self):
        with waiter() as started:
            # /proc/PID/fd of another user's process cannot be read.
            try:
                done = subprocess.run([TOOL, 'top', '--once', '--json', '--interval', '0.05'], user=65534, group=65534, extra_groups=[],
                                      env=clean_environment(), text=True, capture_output=True, timeout=60, check=False)
            except PermissionError:
                self.skipTest('the build tree is not for others')
            if done.returncode in (126, 127) or 'shared libraries' in done.stderr:
                self.skipTest('the build tree is not for others')
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotIn(started.pid, {process['pid'] for process in json.loads(done.stdout)})
            self.assertIn(started.pid, top())


def head(names, devices=1, rows=1, row_bytes=None, first=4096, version=1, counters=None, magic=b'softhca counters'):
    """Returns a head as defined by src/observe/counter_file.h."""
    row = devices * len(names) * 8 if row_bytes is None else row_bytes
    return struct.pack('<16sIIIIII', magic, version, len(names) if counters is None else counters, devices, row, first, rows) + \
        b''.join(name.encode().ljust(32, b'\0') for name in names)


class Files(unittest.TestCase):
    """This process has a file, of another version of softhca, or a malicious one."""

    def shown(self, content, size=None):
        fd = os.memfd_create(NAME)
        try:
            os.write(fd, content)
            if size is not None:
                os.ftruncate(fd, size)
            return top().get(os.getpid())
        finally:
            os.close(fd)

    def test_file_of_another_version(self):
        """Counters are found by their names; two devices and two threads are added up."""
        names = ['retries_exhausted', 'something_of_the_future', 'qps_created', 'qps_destroyed', 'udp_packets_sent']
        rows = [[1, 100, 7, 2, 1000], [2, 200, 0, 0, 1], [4, 300, 1, 1, 0], [8, 400, 0, 0, 0]]
        body = head(names, devices=2, rows=2)
        body += bytes(4096 - len(body)) + b''.join(struct.pack('<5Q', *row) for row in rows)
        shown = self.shown(body)
        self.assertEqual((shown['qps'], shown['errors'], shown['links']), (5, 15, 'udp'))
        self.assertEqual(shown['counters']['udp_packets_sent'], 1001)
        self.assertEqual(shown['counters']['shm_bytes_sent'], 0)
        self.assertNotIn('something_of_the_future', shown['counters'])

    def test_files_that_are_none(self):
        names = ['qps_created']
        page = bytes(4096)
        for content, size in ((b'', 0), (b'softhca', None), (head(names, magic=b'softhca-counters') + page * 2, None),
                              (head(names, version=2) + page * 2, None), (head(names, rows=0xffffffff) + page * 2, None),
                              (head(names, rows=1024), 4097), (head(names, rows=1024, row_bytes=1 << 20), 1 << 20),
                              (head(names, row_bytes=0) + page * 2, None), (head(names, row_bytes=0xffffffff) + page * 2, None),
                              (head(names, devices=0xffffffff, row_bytes=8) + page * 2, None), (head(names, counters=0xffffffff) + page, None),
                              (head(names, counters=4096, devices=64, row_bytes=8), 1 << 20),
                              (head(names, rows=1024, row_bytes=4 << 20), 4097 << 20),
                              (head(names, first=0xffffffff) + page * 2, None), (os.urandom(8192), None)):
            self.assertIsNone(self.shown(content, size), content[:48])

    def test_counters_that_go_back(self):
        """They are shown, and no rate is computed from them."""
        body = head(['qps_created', 'packets_resent'])
        body += bytes(4096 - len(body)) + struct.pack('<QQ', 0, (1 << 64) - 1)
        fd = os.memfd_create(NAME)
        os.write(fd, body)
        running = subprocess.Popen([TOOL, 'top', '--once', '--json', '--interval', '1'], env=clean_environment(), text=True,
                                   stdout=subprocess.PIPE)
        time.sleep(0.5)
        os.pwrite(fd, struct.pack('<QQ', 5, 3), 4096)
        out, _ = running.communicate(timeout=60)
        os.close(fd)
        shown = {process['pid']: process for process in json.loads(out)}[os.getpid()]
        self.assertEqual((shown['counters']['packets_resent'], shown['per_second']['packets_resent']), (3, 0))
        self.assertGreater(shown['per_second']['qps_created'], 1)

    def test_names_that_a_terminal_obeys(self):
        body = head(['qps_created'])
        body += bytes(4096 - len(body)) + struct.pack('<Q', 0)
        with open('/proc/self/comm', 'r+', encoding='ascii') as comm:
            before = comm.read()
        try:
            with open('/proc/self/comm', 'wb') as comm:
                comm.write(b'a"\\\x1b[2J\xff')
            self.assertEqual(self.shown(body)['program'], 'a"\\?[2J?')
        finally:
            with open('/proc/self/comm', 'w', encoding='ascii') as comm:
                comm.write(before)


class Table(unittest.TestCase):
    """Processes with counters that are written here."""

    def processes(self, rows):
        """Starts a process for each of @rows: bytes sent, QPs, errors. Returns their PIDs."""
        names = ['shm_bytes_sent', 'qps_created', 'retries_exhausted']
        script = ('import os, struct, sys\n'
                  'fd = os.memfd_create("softhca-counters"); os.write(fd, sys.stdin.buffer.read(4096 + 24)); print(fd, flush=True)\n'
                  'sys.stdin.close(); import time; time.sleep(60)')
        started = []
        for values in rows:
            body = head(names)
            body += bytes(4096 - len(body)) + struct.pack('<QQQ', *values)
            process = subprocess.Popen([sys.executable, '-c', script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            self.addCleanup(process.communicate)
            self.addCleanup(process.kill)
            process.stdin.write(body)
            process.stdin.flush()
            process.stdout.readline()
            started.append(process.pid)
        return started

    def lines(self, *options):
        done = softhca('top', '--once', '--interval', '0.05', *options)
        self.assertEqual((done.returncode, done.stderr), (0, ''))
        return done.stdout.splitlines()

    def test_80_columns(self):
        """Numbers of any size."""
        self.processes([(0, 123456789, 987654321), (0, (1 << 63) - 1, 1)])
        lines = self.lines()
        self.assertTrue(all(len(line) <= 80 for line in lines), lines)
        self.assertIn(' 123M ', '\n'.join(lines))
        self.assertIn(' 988M ', '\n'.join(lines))

    def test_sort_and_totals(self):
        pids = self.processes([(0, 7, 1), (0, 40, 0), (0, 3, 5)])
        found = {order: [int(line.split()[0]) for line in self.lines('--sort', order)[1:-1] if int(line.split()[0]) in pids]
                 for order in ('pid', 'qps', 'errors')}
        self.assertEqual(found['pid'], sorted(pids))
        self.assertEqual(found['qps'], [pids[1], pids[0], pids[2]])
        self.assertEqual(found['errors'], [pids[2], pids[0], pids[1]])
        titles, *rows, total = [line.split() for line in self.lines()]
        self.assertEqual(titles[:3], ['PID', 'PROGRAM', 'QPS'])
        self.assertEqual(total[:3], ['total', str(len(rows)), 'processes'])
        self.assertEqual(int(total[3]), sum(int(row[2]) for row in rows))

    def test_keys_and_colour(self):
        """On a terminal: s sorts by the next column, r reverses, q ends; afterwards the terminal is as before."""
        pids = self.processes([(0, 7, 1), (0, 40, 0)])
        here, there = pty.openpty()
        before = termios.tcgetattr(there)
        with subprocess.Popen([TOOL, 'top', '--interval', '60'], env=clean_environment(TERM='xterm'), stdin=there, stdout=there,
                              stderr=subprocess.PIPE) as process:
            def until(text):
                said = b''
                end = time.monotonic() + PATIENCE
                while text not in said and time.monotonic() < end:
                    if select.select([here], [], [], 0.1)[0]:
                        said += os.read(here, 65536)
                self.assertIn(text, said)
                return said.decode('utf-8')

            def order(said):
                return [int(pid) for pid in re.findall(r'(?m)^ *(\d+) ', said) if int(pid) in pids]

            wait_for(lambda: not termios.tcgetattr(there)[3] & termios.ICANON)
            self.assertFalse(termios.tcgetattr(there)[3] & (termios.ICANON | termios.ECHO))
            os.write(here, b'ss')
            said = until(b'column (qps)')
            self.assertEqual(order(said[said.rindex('\033[H'):]), [pids[1], pids[0]])
            self.assertIn('\033[7m  QPS\033[0m', said)
            self.assertRegex(said, '\033\\[31m +1\033\\[0m')     # errors are red
            os.write(here, b'rS')
            until(b'column (program)')
            os.write(here, b's')
            said = until(b'column (qps)')
            self.assertEqual(order(said[said.rindex('\033[H'):]), [pids[0], pids[1]])
            os.write(here, b'q')
            self.assertEqual((process.wait(PATIENCE), process.stderr.read()), (0, b''))
        self.assertEqual(termios.tcgetattr(there), before)
        # An interrupt restores the terminal, too.
        with subprocess.Popen([TOOL, 'top', '--interval', '60'], env=clean_environment(TERM='xterm'), stdin=there, stdout=there) as process:
            wait_for(lambda: not termios.tcgetattr(there)[3] & termios.ICANON)
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(PATIENCE), -signal.SIGINT)
        self.assertEqual(termios.tcgetattr(there), before)
        os.close(here)
        os.close(there)


class Use(unittest.TestCase):
    def test_wrong_use(self):
        for arguments in (['now'], ['--interval', '0'], ['--interval', 'nan'], ['--interval', '-1'], ['--interval', '1s'],
                          ['--interval', '1e9'], ['--interval'], ['--mtu', '512'], ['--once=yes'], ['--sort', 'size']):
            done = softhca('top', *arguments)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count('\n')), (2, '', 1), arguments)

    def test_continues_until_it_is_interrupted(self):
        running = subprocess.Popen([TOOL, 'top', '--interval', '0.05'], env=clean_environment(), text=True,
                                   stdout=subprocess.PIPE)
        lines = [running.stdout.readline() for _ in range(6)]
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=10)
        self.assertGreater(len([line for line in lines if re.match(r' +PID PROGRAM', line)]), 1)
        self.assertEqual(running.returncode, -signal.SIGINT)

    def test_closed_pipe(self):
        running = subprocess.Popen([TOOL, 'top', '--interval', '0.05'], env=clean_environment(), stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL)
        running.stdout.readline()
        running.stdout.close()
        self.assertIn(running.wait(timeout=10), (1, -signal.SIGPIPE))


if __name__ == '__main__':
    alone()
    main()
