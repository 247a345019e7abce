#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""softhca info: settings with their origins, and the device as libibverbs shows it."""
import os
import re
import socket
import subprocess
import tempfile
import time
import unittest

from harness import LIBRARIES, TOOL, alone, main, softhca


SANITIZED = 'TEST_SANITIZED' in os.environ


def info(*arguments, env=None, through_run=()):
    command = ['run', *through_run, '--', TOOL, 'info', *arguments] if through_run else ['info', *arguments]
    done = softhca(*command, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def start(*command):
    """Starts a command under softhca run; its process becomes the program."""
    return subprocess.Popen([TOOL, 'run', '--', *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def settings(text):
    """Returns {variable: (value, origin)}."""
    rows = re.findall(r'^  (SOFTHCA_\w+) +(.*?) +(default|environment|option)$', text, re.M)
    return {name: (value, origin) for name, value, origin in rows}


class Settings(unittest.TestCase):
    def test_defaults(self):
        self.assertEqual(settings(info()), {
            'SOFTHCA_PROFILE': ('man', 'default'), 'SOFTHCA_DEVICES': ('1', 'default'),
            'SOFTHCA_DEVICE_NAME': ('mlx5_', 'default'), 'SOFTHCA_PCI': ('off', 'default'), 'SOFTHCA_EXPLAIN': ('off', 'default'),
            'SOFTHCA_DOORBELLS': ('scan', 'default'), 'SOFTHCA_LINT': ('off', 'default'),
            'SOFTHCA_COLOR': ('auto', 'default'), 'SOFTHCA_CAPTURE': ('off', 'default'), 'SOFTHCA_KEYS': ('off', 'default'),
            'SOFTHCA_SEED': ('0', 'default'), 'SOFTHCA_GIDS': ('auto', 'default'),
            'SOFTHCA_FAULTS': ('off', 'default'), 'SOFTHCA_COUNTERS': ('off', 'default'),
            'SOFTHCA_TIMELINE': ('off', 'default'), 'SOFTHCA_TIMELINE_RECORDS': ('auto', 'default'),
            'SOFTHCA_ROCE_PORT': ('4791', 'default'), 'SOFTHCA_PEER_SILENCE': ('30', 'default'),
            'SOFTHCA_LINK': ('auto', 'default'), 'SOFTHCA_MTU': ('auto', 'default'),
            'SOFTHCA_CM_RESPONSE_TIMEOUT': ('20', 'default'), 'SOFTHCA_CM_RETRIES': ('15', 'default'),
            'SOFTHCA_CM_PACKET_LIFETIME': ('16', 'default'), 'SOFTHCA_CM_GRACE_MS': ('50', 'default'),
            'SOFTHCA_CRYPTO': ('plaintext', 'default'), 'SOFTHCA_CRYPTO_TWEAK': ('le', 'default'),
            'SOFTHCA_CRYPTO_FILE': ('built-in', 'default')})

    def test_origins(self):
        got = settings(info('--mtu', '512', env={'SOFTHCA_SEED': '7', 'SOFTHCA_MTU': '256'}))
        self.assertEqual(got['SOFTHCA_MTU'], ('512', 'option'))
        self.assertEqual(got['SOFTHCA_SEED'], ('7', 'environment'))
        self.assertEqual(got['SOFTHCA_LINK'], ('auto', 'default'))

    def test_origin_survives_run(self):
        got = settings(info(through_run=['--mtu', '512'], env={'SOFTHCA_SEED': '7'}))
        self.assertEqual(got['SOFTHCA_MTU'], ('512', 'option'))
        self.assertEqual(got['SOFTHCA_SEED'], ('7', 'environment'))

    def test_profile_and_libraries(self):
        text = info('--profile=connectx')
        self.assertRegex(text, r'^softhca \d+\.\d+\.\d+, profile connectx\n')
        self.assertIn(f'\nlibraries {LIBRARIES}\n', text)

    def test_libraries_are_its_own_whatever_the_environment_says(self):
        with tempfile.TemporaryDirectory() as directory:
            for name in ('libsofthca.so.0', 'libibverbs.so.1'):
                with open(f'{directory}/{name}', 'w', encoding='ascii') as file:
                    file.write('not a library')
            self.assertIn('\ndevice mlx5_0', info(env={'LD_LIBRARY_PATH': directory}))


class Device(unittest.TestCase):
    def test_device(self):
        text = info()
        # ConnectX-6 Dx, as programs of the mlx5 class look for it.
        self.assertRegex(text, r'(?m)^device mlx5_0: vendor 0x02c9 part 4125, firmware \S+, guid [0-9a-f]{16}$')
        self.assertRegex(text, r'(?m)^  port 1: active, Ethernet, mtu (256|512|1024|2048|4096) of 4096, max message 1073741824 bytes')
        self.assertNotIn('guid 0000000000000000', text)

    def test_number_and_name(self):
        text = info('--devices', '3', '--device-name', 'rdma')
        self.assertEqual(re.findall(r'(?m)^device (\S+):', text), ['rdma0', 'rdma1', 'rdma2'])
        guids = re.findall(r'guid (\w{16})', text)
        self.assertEqual(len(set(guids)), 3)

    def test_gids(self):
        text = info('--gids', 'loopback')
        rows = re.findall(r'(?m)^    gid (\d+) +(\S+) +(RoCE v\d)', text)
        self.assertIn(('RoCE v2'), [row[2] for row in rows if row[1] == '::ffff:127.0.0.1'])
        self.assertEqual([int(row[0]) for row in rows], sorted(int(row[0]) for row in rows))

    def test_mtu(self):
        self.assertIn(', mtu 1024 of 4096,', info('--mtu', '1024'))

    def test_limits(self):
        limits = dict(re.findall(r'(?m)^    (max_\w+) +(\d+)$', info()))
        want = {'max_qp': 1 << 18, 'max_qp_wr': 32768, 'max_sge': 30, 'max_cqe': 4194303, 'max_srq_wr': 32767,
                'max_qp_rd_atom': 16, 'max_mr_size': (1 << 64) - 1, 'max_pkeys': 1}
        self.assertEqual({name: int(limits[name]) for name in want}, want)


class Links(unittest.TestCase):
    def test_links(self):
        text = info()
        self.assertRegex(text, r'(?m)^links\n  local  \S.*\n  shm    \S.*\n  udp    \S.*port 4791: .*$')

    def test_owner_of_the_port(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
            taken.bind(('', 0))
            port = taken.getsockname()[1]
            self.assertRegex(info('--roce-port', str(port)),
                             rf'(?m)^  udp    .*port {port}: taken by process {os.getpid()} \(\S+\)')
        self.assertRegex(info('--roce-port', str(port)), rf'(?m)^  udp    .*port {port}: free; ')

    def test_listeners(self):
        """The listening process is the test itself; a name that is only bound is just a port in use."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as one, \
                socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as other:
            one.bind('\0softhca/1/cm/0106/64999')
            other.bind('\0softhca/1/cm/0111/64998')
            one.listen()
            text = info()
            self.assertRegex(text, rf'(?m)^listeners\n(  .*\n)*  TCP   port 64999 process {os.getpid()} \(\S+\)$')
            self.assertNotIn('64998', text)
        self.assertNotIn('64999', info())

    @unittest.skipIf(SANITIZED, 'programs that are not built here do not run under a sanitizer')
    def test_connections(self):
        """rping: a persistent server and a client with an endless test, one at each end."""
        with socket.socket() as probe:
            probe.bind(('127.0.0.1', 0))
            port = str(probe.getsockname()[1])
        server = start('rping', '-s', '-P', '-a', '127.0.0.1', '-p', port)
        try:
            self.await_text(rf'(?m)^  TCP   port {port} process {server.pid} \(rping\)$')
            client = start('rping', '-c', '-a', '127.0.0.1', '-p', port)
            try:
                for end in server, client:
                    self.await_text(rf'(?m)^connections of rdma_cm\n(  .*\n)*  1 +process {end.pid} \(rping\)$')
            finally:
                client.kill()
                client.wait()
        finally:
            server.kill()
            server.wait()
        self.assertNotRegex(info(), rf'process {server.pid} ')

    def await_text(self, pattern):
        end = time.monotonic() + 20
        while not re.search(pattern, info()):
            self.assertLess(time.monotonic(), end, f'{pattern} did not come:\n{info()}')
            time.sleep(0.05)

    def test_counters(self):
        rows = dict(re.findall(r'(?m)^  ([a-z_]+) +(\S.*)$', info().split('\ncounters\n')[1]))
        self.assertIn('fault_dropped', rows)
        self.assertGreater(len(rows), 40)


if __name__ == '__main__':
    alone()
    main()
