#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""softhca doctor: if system calls are refused, limits are low, or a network namespace is empty, it reports that and
suggests a fix."""
import json
import os
import resource
import socket
import subprocess
import sys
import unittest

from harness import TOOL, alone, clean_environment, main, softhca

REFUSE = os.path.abspath(sys.argv[3])
NAMES = ['libraries', 'shared_memory', 'abstract_sockets', 'names', 'reading_memory', 'udp_port', 'addresses', 'namespaces',
         'other_adapters', 'cpu', 'open_files', 'locked_memory', 'huge_pages']


def run(*command, **options):
    return subprocess.run(command, env=clean_environment(), text=True, capture_output=True, timeout=60, check=False, **options)


def findings(done):
    return {finding['name']: finding for finding in json.loads(done.stdout)}


def refused(calls, *arguments):
    done = run(REFUSE, calls, TOOL, 'doctor', '--json', *arguments)
    assert done.stderr == '', done.stderr
    return done.returncode, findings(done)


class Machine(unittest.TestCase):
    def test_text_and_json_say_the_same(self):
        text, array = softhca('doctor'), softhca('doctor', '--json')
        self.assertEqual(text.returncode, array.returncode)
        found = findings(array)
        self.assertEqual(list(found), NAMES)
        for finding in found.values():
            self.assertEqual(set(finding), {'name', 'verdict', 'found', 'advice'})
            self.assertIn(finding['verdict'], ('ok', 'less', 'bad'))
            self.assertEqual(finding['advice'] == '', finding['verdict'] == 'ok')
            self.assertIn(f'{finding["verdict"]:5} {finding["name"]:17} {finding["found"]}\n', text.stdout)
        self.assertEqual(text.returncode, int('bad' in [finding['verdict'] for finding in found.values()]))

    def test_cpu(self):
        with open('/proc/cpuinfo', encoding='ascii') as file:
            flags = next((line.split() for line in file if line.startswith('flags')), [])
        text = findings(softhca('doctor', '--json'))['cpu']['found']
        chosen, present, *missing = text.split('; ')
        self.assertEqual([work.split(' by ')[0] for work in chosen.split(', ')],
                         ['T10-DIF', 'CRC32', 'CRC32C', 'CRC64', 'checksum', 'AES-XTS'])
        for flag, name in (('avx2', 'avx2'), ('avx512f', 'avx512f'), ('pclmulqdq', 'pclmul'), ('gfni', 'gfni')):
            self.assertEqual(name in present.split(), flag in flags, (flag, text))
            # The fastest kernels, of which all kinds of x86-64 but these four need more.
            self.assertEqual(name in ''.join(missing).split(), flag not in flags and name != 'avx2', (flag, text))
        self.assertEqual(' by gfni' in chosen, 'gfni' in present and 'vpclmulqdq' in present and 'avx512vbmi' in present)

    def test_wrong_use(self):
        for command in ('doctor', 'info', 'env'):
            done = softhca(command, 'now', 'then')
            self.assertEqual((done.returncode, done.stderr), (2, f'softhca: {command}: unexpected argument "now"\n'))
        self.assertEqual(softhca('doctor', '--json=yes').returncode, 2)
        self.assertEqual(softhca('doctor', '--roce-port', '0').returncode, 2)


class Sandbox(unittest.TestCase):
    def test_each_refusal(self):
        for call, name, verdict, status in (
                ('memfd_create', 'shared_memory', 'bad', 1), ('bind', 'abstract_sockets', 'bad', 1),
                ('bind', 'udp_port', 'bad', 1), ('socket', 'udp_port', 'bad', 1), ('unshare', 'namespaces', 'less', 0),
                ('mount', 'namespaces', 'less', 0), ('pwritev', 'reading_memory', 'less', 0)):
            got, found = refused(call)
            self.assertEqual((found[name]['verdict'], got), (verdict, status), call)
            self.assertIn('Operation not permitted', found[name]['found'], call)
            self.assertNotEqual(found[name]['advice'], '')

    def test_all_at_once(self):
        got, found = refused('memfd_create,bind,socket,unshare,mount,pwritev,getdents64')
        self.assertEqual((got, list(found)), (1, NAMES))


class Limits(unittest.TestCase):
    def limited(self, which, soft):
        done = run(TOOL, 'doctor', '--json', preexec_fn=lambda: resource.setrlimit(which, (soft, soft)))
        self.assertEqual(done.stderr, '')
        return findings(done)

    def test_limits(self):
        found = self.limited(resource.RLIMIT_NOFILE, 100)['open_files']
        self.assertEqual((found['verdict'], found['found']), ('less', 'a process may have 100 descriptors'))
        found = self.limited(resource.RLIMIT_MEMLOCK, 65536)['locked_memory']
        self.assertEqual((found['verdict'], found['found']), ('less', 'a process may lock 64 kB'))


class Network(unittest.TestCase):
    def test_port(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
            taken.bind(('', 0))
            port = taken.getsockname()[1]
            done = softhca('doctor', '--json', '--roce-port', str(port))
            found = findings(done)['udp_port']
            self.assertEqual((found['verdict'], done.returncode), ('bad', 1))
            self.assertIn(f'port {port} is taken by process {os.getpid()} (', found['found'])
        self.assertEqual(findings(softhca('doctor', '--json', '--roce-port', str(port)))['udp_port']['verdict'], 'ok')

    def test_name_that_a_terminal_obeys(self):
        with open('/proc/self/comm', encoding='ascii') as comm:
            before = comm.read()
        try:
            with open('/proc/self/comm', 'wb') as comm:
                comm.write(b'a"\\\x1b[2J\xff')
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
                taken.bind(('', 0))
                port = str(taken.getsockname()[1])
                found = findings(softhca('doctor', '--json', '--roce-port', port))['udp_port']['found']
                self.assertIn(f'process {os.getpid()} (a"\\?[2J?)', found)
                self.assertIn(f'process {os.getpid()} (a"\\?[2J?)', softhca('info', '--roce-port', port).stdout)
        finally:
            with open('/proc/self/comm', 'w', encoding='ascii') as comm:
                comm.write(before)

    def inside(self, commands):
        """Returns its output in a network namespace in which `commands` have run."""
        done = run('unshare', '--map-root-user', '--net', 'sh', '-ec', f'{commands}\nexec "$0" doctor --json', TOOL)
        if 'unshare' in done.stderr:
            self.skipTest(done.stderr.strip())
        return findings(done)

    def test_holders_of_names(self):
        # PR_SET_PDEATHSIG: its parent is the command, by exec, and the pipe of the command's output closes with both.
        hold = ('import ctypes, socket, sys, time\n'
                'ctypes.CDLL(None).prctl(1, 9)\n'
                'kept = [socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) for number in range(int(sys.argv[1]))]\n'
                'for number, one in enumerate(kept):\n'
                '    one.bind("\\0softhca/1/slot/%d" % (number + 1))\n'
                'port = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)\n'
                'port.bind("\\0softhca/1/port/4791")\n'
                'print(flush=True)\n'
                'time.sleep(20)\n')
        if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 5000:
            self.skipTest('5000 descriptors are not allowed')
        for count, verdict in ((3, 'ok'), (4500, 'less')):
            found = self.inside(f"ulimit -n 5000; mkfifo /tmp/doctor.$$; python3 -c '{hold}' {count} >/tmp/doctor.$$ & "
                                'read line </tmp/doctor.$$; rm /tmp/doctor.$$')['names']
            self.assertEqual((found['verdict'], found['found']), (
                verdict, f'user 0 holds {count} of 16382 names of queue pair numbers and 1 of ports; 0 more users hold names'))
        self.assertEqual(self.inside('true')['names']['found'], 'no user holds a name of softhca')

    def test_namespace_without_addresses(self):
        found = self.inside('ip link set lo up')['addresses']
        self.assertEqual((found['verdict'], found['found'][:10]), ('less', 'no address'))
        self.assertIn('ip-address(8)', found['advice'])

    def test_namespace_with_an_address(self):
        found = self.inside('ip link set lo up; ip link add eth7 type veth peer name eth8; ip addr add 192.0.2.9/24 dev eth7; '
                            'ip link set eth7 up; ip link set eth8 up')['addresses']
        self.assertEqual(found['verdict'], 'ok')
        self.assertIn('eth7', found['found'])


if __name__ == '__main__':
    alone()
    main()
