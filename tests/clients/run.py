#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs unmodified programs of the distribution on softhca: as two processes of one host (shm), and on two hosts (udp).

    run.py [--link shm|udp] [--mtu BYTES] [--tool PATH] [--program PATH]… [--only TEXT]
           [--lint] [--table] [--within SECONDS] GROUP…

Prints TAP, or a table. Each case has a time limit and is judged by its exit status and by what it prints; and by the packets that
were or were not seen on the wire.
"""
import argparse
import contextlib
import fcntl
import filecmp
import glob
import json
import os
import pathlib
import re
import shlex
import shutil
import sys
import time

import cases
import migration
import results
import xts
from place import A, ADDRESS, B, LIBRARIES, LINK_MTU, Hosts, enter

# Keys and credentials that the device's built-in import KEK decrypts.
CRYPTO = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../pyverbs/crypto_info.json')
# Fixed names used by each run of programs with XRC domains, which do not remove the files.
LITTER = ['/tmp/xrc_domain_server', '/tmp/xrc_domain_client']
LITTER_LOCK = '/tmp/softhca-clients.lock'


@contextlib.contextmanager
def litter_of(case):
    """For cases with XRC domains: no other test has such files meanwhile, and new ones are removed."""
    if not any(word in case.name for word in cases.LITTERING):
        yield
        return
    with open(LITTER_LOCK, 'w', encoding='ascii') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        absent = [path for path in LITTER if not os.path.exists(path)]
        try:
            yield
        finally:
            for path in absent:
                if os.path.exists(path):
                    os.unlink(path)


class Runner:
    def __init__(self, hosts, options):
        self.hosts = hosts
        self.options = options
        self.write_crypto_files()
        if {'dpdk', 'all'} & set(options.group):
            self.write_dpdk_files()
        for name, lines in cases.BATCHES.items():
            with open(f'{hosts.directory}/{name}', 'w', encoding='ascii') as file:
                file.write(lines)

    def write_crypto_files(self):
        """Writes the files that --aes_xts of perftest reads: a byte in hexadecimal per line, and a program that
        wraps a key."""
        with open(CRYPTO, encoding='ascii') as file:
            info = json.load(file)[0]
        for name in ('credential', 'wrapped_key'):
            with open(f'{self.hosts.directory}/{name}', 'w', encoding='ascii') as file:
                file.writelines(f'0x{byte:02x}\n' for word in info[name] for byte in word.to_bytes(8, 'big'))
        with open(f'{self.hosts.directory}/kek', 'w', encoding='ascii') as file:
            file.write('only the program that wraps reads it\n')
        with open(f'{self.hosts.directory}/wrap', 'w', encoding='ascii') as file:
            # Two perftests of one second use the same name in /tmp, read the file and remove it: run them one after the
            # other.
            file.write('#!/bin/sh\n# wrap KEK OUTPUT\n'
                       f'until ln {self.hosts.directory}/wrapped_key "$2"; do sleep 0.05; done 2>/dev/null\n')
        os.chmod(f'{self.hosts.directory}/wrap', 0o755)

    def write_dpdk_files(self):
        """Writes vectors, and the files that device and driver read for wrapped keys: DPDK's own vectors use a KEK
        of zeroes."""
        for name, lines in {
                **{f'xts-{key}-{length}': xts.vector(key, length) for key, length in cases.DPDK_VECTORS},
                'another-tweak': xts.vector(32, 512).replace('cipher_iv = ', 'cipher_iv = 0, '),
                'import_kek': f'import_kek 0 {bytes(16).hex()}\ncredential 0 {bytes(range(40)).hex()}\n',
                'wcs': xts.wrap(bytes(16), bytes(range(40))).hex(' ') + '\n'}.items():
            with open(f'{self.hosts.directory}/{name}', 'w', encoding='ascii') as file:
                file.write(lines)

    def prefix(self, case):
        """Returns `softhca run` for programs that look for /dev/infiniband; others need only the library path."""
        return [self.options.tool, 'run', '--'] if case.presence else []

    def start(self, case, host, command):
        return self.hosts.start(host, [*self.prefix(case), *command], self.env(case))

    def env(self, case):
        lint = {'SOFTHCA_LINT': 'on'} if self.options.lint else {}
        preload = {'LD_PRELOAD': program_of(case.preload, self.options)} if case.preload else {}
        return {**case.env, **lint, **preload}

    def warnings(self, case, programs):
        """Returns the warnings of --lint, which a correct program never gets, or None."""
        lines = [line for program in programs for line in program.read('explanations').splitlines()]
        warned = [line for line in lines if re.search(r' \[9\d\d [A-Z_]+; ', line) and
                  not any(case.command.startswith(program) and text in line for program, text in cases.EXPECTED)]
        if warned:
            return f'it is warned: {warned[0]}'
        looked = any(line.startswith('softhca: lint: ') for line in lines)
        return None if looked else 'no program says that it has looked for misuse'

    def noise(self, case, programs):
        """Returns output of softhca in a run that passed although the program made no mistake, or None."""
        own = [rule for name, rules in cases.OWN_MISTAKES if case.name.startswith(name) for rule in rules]
        lines = [line for program in programs for line in program.read('explanations').splitlines()
                 if not any(f'[{rule}' in line for rule in own)]
        lines += [line for program in programs for line in program.read('err').splitlines() if line.startswith('softhca: ')]
        return f'it passed, and a line of softhca\'s was printed: {lines[0]}' if lines else None

    def await_server(self, case, server, port, deadline):
        """Returns None when @server is ready."""
        ready = {cases.TCP: lambda: self.hosts.listens(server.host, port),
                 cases.CM: lambda: self.hosts.listens_cm(server.host, port),
                 cases.DATAGRAMS: lambda: self.hosts.has_datagram_socket(server.host, port),
                 cases.GROUP: lambda: self.hosts.is_member(server.host, cases.MULTICAST)}[case.ready]
        while time.monotonic() < deadline and server.poll() is None:
            if ready():
                return None
            time.sleep(0.005)
        return 'the server does not listen'

    def await_ends(self, programs, deadline, status=0):
        while any(program.poll() is None for program in programs):
            if time.monotonic() > deadline:
                break
            # A program that lost its peer may not notice: some wait in TCP forever.
            if any(program.poll() for program in programs):
                deadline = min(deadline, time.monotonic() + 2)
            time.sleep(0.005)
        for program in programs:
            if program.poll() not in (None, status):
                return f'on {program.host} exit status {program.poll()}'
        return 'the time limit has passed' if None in [program.poll() for program in programs] else None

    def kept(self, program):
        """The largest registered memory that @program kept, which is its buffer."""
        names = glob.glob(f'{program.files["regions"]}.*')
        contents = [pathlib.Path(name).read_bytes() for name in names]
        return max(contents, key=len, default=b'')

    def run_pair(self, case, link, deadline):
        """Runs a server on host a, and its client there as well or on host b."""
        where = A if link == cases.SHM else B
        values = {'port': case.port or self.hosts.port(), 'directory': self.hosts.directory, 'address': ADDRESS[A],
                  'client_address': ADDRESS[where], 'other_address': ADDRESS[B]}
        server = self.start(case, A, self.words(case, case.command, values))
        programs = [server]
        wrong = self.await_server(case, server, values['port'], deadline)
        member = None
        if not wrong and case.member:
            member = self.start(case, B, self.words(case, case.member, values))
            programs.append(member)
            wrong = self.await_server(case, member, values['port'], deadline)
        if not wrong:
            command = case.client or case.command
            command += '' if '{address}' in command else ' {address}'
            programs.insert(1, self.start(case, where, self.words(case, command, values)))
            wrong = self.await_ends(programs[1:] if case.endless else programs, deadline)
        if not wrong and case.endless and server.poll() is not None:
            wrong = f'the server has ended by itself, exit status {server.poll()}'
        if not wrong:
            wrong = case.judge(case, *[program.read('out') for program in programs])
        if not wrong and case.regions:
            wrong = cases.moved(case, *map(self.kept, programs))
        return wrong, programs

    def run_alone(self, case, _, deadline):
        """Runs a program without a peer."""
        cpus = sorted(os.sched_getaffinity(0))[:case.cpus]
        values = {'directory': self.hosts.directory, 'cpus': ','.join(map(str, cpus))}
        env = {name: value.format(**values) for name, value in self.env(case).items()}
        program = self.hosts.start(A, [*self.prefix(case), *self.words(case, case.command, values)], env)
        wrong = self.await_ends([program], deadline, case.status)
        return wrong or case.judge(case, program.read('out'), ''), [program]

    def words(self, case, command, values):
        words = shlex.split(command.format(**values))
        return [program_of(words[0], self.options), *words[1:]] if case.built else words

    def run_files(self, case, link, deadline):
        """As run_pair(), with a file to be copied; each of its MiBs is different."""
        sent, received = (f'{self.hosts.directory}/{name}' for name in ('sent', 'received'))
        block = os.urandom(1 << 20)
        with open(sent, 'wb') as file:
            for number in range(cases.RCOPY_BYTES >> 20):
                file.write(number.to_bytes(8, 'big') + block[8:])
        wrong, programs = self.run_pair(case, link, deadline)
        if not wrong and not filecmp.cmp(sent, received, shallow=False):
            wrong = 'what was received is not what was sent'
        for path in (sent, received):
            if os.path.exists(path):
                os.unlink(path)
        return wrong, programs

    def run_mpi(self, case, link, deadline):
        """Runs mpirun on host a, with half of the ranks on host b if the link is udp."""
        agent = f'{self.hosts.directory}/agent'
        with open(agent, 'w', encoding='ascii') as file:
            file.write('#!/bin/sh\n# agent HOST COMMAND...: what ssh is elsewhere\nshift\n'
                       f'exec {shlex.join(self.hosts.enter(B))} {shlex.quote(self.options.tool)} run -- sh -c "$*"\n')
        os.chmod(agent, 0o755)
        half = case.ranks // 2
        hosts = ADDRESS[A] + f':{case.ranks}' if link == cases.SHM else f'{ADDRESS[A]}:{half},{ADDRESS[B]}:{half}'
        command = [f'mpirun.{case.launcher}', '-np', str(case.ranks), '-host', hosts]
        if case.launcher == 'openmpi':
            command += ['--allow-run-as-root', '--oversubscribe', '--mca', 'plm_rsh_agent', agent, '--mca', 'pml', 'ucx',
                        '--mca', 'osc', 'ucx', '--mca', 'btl', '^openib,vader,tcp', '--mca', 'oob_tcp_if_include', '10.77.0.0/24',
                        '--mca', 'orte_keep_fqdn_hostnames', '1']
            for name in ('LD_LIBRARY_PATH', *self.env(case), 'SOFTHCA_EXPLAIN'):
                command += ['-x', name]
        else:
            # It passes on the environment itself.
            command += ['-launcher', 'rsh', '-launcher-exec', agent, '-iface', 'a0']
        program = self.start(case, A, [*command, program_of(rank_program(case), self.options), *case.program.split()[1:]])
        wrong = self.await_ends([program], deadline)
        return wrong or case.judge(case, program.read('out'), ''), [program]

    def run_migration(self, case, link, deadline):
        """Runs a QEMU guest that moves from one process to another."""
        return migration.run(self, case, link, program_of('guest', self.options), deadline)

    def run(self, case, link):
        """Returns the error, or None; and lines to print. A program that loses a race of its own is run at most
        ten times."""
        for _ in range(10):
            wrong, report = self.run_once(case, link)
            if not wrong or not case.race or not any(case.race in line for line in report):
                break
        return wrong, report

    def run_once(self, case, link):
        with litter_of(case):
            return self.run_locked(case, link)

    def run_locked(self, case, link):
        before = self.hosts.datagrams(A)
        begin = time.monotonic()
        run = (self.run_alone if case.alone else self.run_mpi if case.ranks else self.run_files if case.files else
               self.run_pair if case.migration is None else self.run_migration)
        wrong, programs = run(case, link, begin + case.seconds)
        seen = [now - then for now, then in zip(self.hosts.datagrams(A), before)]
        # Multicast packets leave the host, and so reach all of its processes; rsockets of datagrams begin with UDP.
        if not wrong and link == cases.SHM and any(seen) and case.ready not in (cases.GROUP, cases.DATAGRAMS):
            wrong = f'datagrams were seen between processes of one host: {seen}'
        if not wrong and link == cases.UDP and not any(seen):
            wrong = f'no datagrams were seen on the wire: {seen}'
        if not wrong and self.options.lint:
            wrong = self.warnings(case, programs)
        explained = [line for program in programs for line in program.read('explanations').splitlines()]
        if not wrong and not self.options.lint:
            wrong = self.noise(case, programs)
        report = [line for program in programs for line in program.report()] if wrong else []
        self.hosts.stop()
        return wrong, [f'{time.monotonic() - begin:.2f} s', *report, *[f'explained | {line}' for line in explained[:10]]]


def program_of(name, options):
    """Returns the path of our own program with this name, or None."""
    names = {os.path.basename(path).removeprefix('clients-').removesuffix('.so'): path for path in options.program or []}
    return names.get(name)


def missing(case, options):
    """The reason why @case cannot run here, or None."""
    program = cases.program_name(case)
    install = f'apt-get install {cases.package(case)}'
    if not case.built and not shutil.which(program):
        return f'{program} is not installed: {install}'
    if 'LD_PRELOAD' in case.env and not os.path.exists(case.env['LD_PRELOAD']):
        return f'there is no {case.env["LD_PRELOAD"]}: {install}'
    if case.cpus > len(os.sched_getaffinity(0)):
        return f'it needs {case.cpus} processors'
    if case.ranks and not program_of(rank_program(case), options):
        return f'mpicc.{case.launcher} was not installed when this was configured'
    if case.migration is not None and not program_of('guest', options):
        return 'the compiler makes no 32-bit x86 code, which the guest is'
    return None


def rank_program(case):
    """The name of the program that the ranks of @case run."""
    return case.program.split()[0] + ('-mpich' if case.launcher == 'mpich' else '')


def leftovers(hosts, before):
    """Returns names, shared memory and files that outlived their programs."""
    # Sockets end with their processes; the kernel may take a moment for that.
    deadline = time.monotonic() + 2
    while time.monotonic() < deadline and (hosts.names(A) + hosts.names(B)):
        time.sleep(0.05)
    return hosts.names(A) + hosts.names(B) + sorted(set(shared_files()) - before)


def shared_files():
    return os.listdir('/dev/shm') if os.path.isdir('/dev/shm') else []


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--link', choices=[cases.SHM, cases.UDP], action='append')
    parser.add_argument('--tool', default=f'{LIBRARIES}/../src/tool/softhca')
    parser.add_argument('--program', action='append', default=[])
    parser.add_argument('--mtu', type=int, default=LINK_MTU, help='of the interfaces between the hosts')
    parser.add_argument('--only', help='cases with this text in their names')
    parser.add_argument('--lint', action='store_true', help='with SOFTHCA_LINT: fails where a program is warned')
    parser.add_argument('--verbose', action='store_true', help='how long each case took and what was explained, too')
    parser.add_argument('--table', action='store_true', help='a table of clients and links instead of TAP')
    parser.add_argument('--within', type=float, default=float('inf'), metavar='SECONDS', help='cases that have not begun by then fail')
    parser.add_argument('group', nargs='+', choices=['all', *cases.GROUPS])
    options = parser.parse_args()
    # The programs run in a separate directory.
    options.tool = os.path.abspath(options.tool)
    options.program = [os.path.abspath(path) for path in options.program]
    before = set(shared_files())
    report = results.Table() if options.table else results.Tap()
    groups = cases.ALL if options.group == ['all'] else options.group
    end = time.monotonic() + options.within

    with Hosts(options.mtu) as hosts:
        runner = Runner(hosts, options)
        for link in options.link or (cases.SHM, cases.UDP):
            for case in (case for group in groups for case in cases.GROUPS[group]):
                if link not in case.links or options.only and options.only not in case.name:
                    continue
                absent = missing(case, options)
                if absent:
                    report.skipped(case, link, absent)
                elif time.monotonic() > end:
                    report.ended(case, link, f'it was not run: {options.within:g} s were over', [])
                else:
                    wrong, lines = runner.run(case, link)
                    report.ended(case, link, wrong, lines if wrong or options.verbose else [])
        report.left(leftovers(hosts, before))
    return 1 if report.finish() else 0


if __name__ == '__main__':
    enter()
    sys.exit(main())
