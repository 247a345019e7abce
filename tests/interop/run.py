#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs softhca against the soft-RoCE of Linux kernels, which run in virtual machines (docs/interop.md).

    run.py --build BUILD [--suite NAME]… [--only TEXT] [--kvm]

Prints a line per case, and last "N passed, N failed, N skipped". What cannot be run here is skipped, and the reason
printed. Logs of the guests are in BUILD/interop.
"""
import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

import guest as machine
import table

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../clients'))
import place

# Releases of Debian; each has a kernel of its own, and the rdma-core of its time.
SUITES = ['bookworm', 'trixie']
IN, OUT = 'rxe -> softhca', 'softhca -> rxe' # from the client to the server
HERE = os.path.dirname(os.path.abspath(__file__))
NEEDED = ('qemu-system-x86_64', 'debootstrap', 'busybox', 'cpio', 'mke2fs', 'ip', 'unshare')


class Outside(place.Hosts):
    """This network namespace, the other end of the guest's cable. Programs in it run on softhca."""

    def __init__(self, directory):
        # pylint: disable=super-init-not-called
        self.directory = directory
        self.programs = []
        self.ports = iter(range(20000, 30000))

    def __exit__(self, *_):
        self.stop()


class Runner:
    def __init__(self, outside, guest):
        self.outside = outside
        self.guest = guest
        self.indices = {'outside': self.outside_gids(), 'guest': machine.gids(guest.run('ibv_devinfo -v'))}

    def outside_gids(self):
        program = self.outside.start(place.A, ['ibv_devinfo', '-v'])
        program.process.wait()
        found = machine.gids(program.read('out'))
        self.device = re.search(r'hca_id:\s*(\S+)', program.read('out'))[1]
        return found

    def start(self, inside, command):
        """@command, on softhca or in the guest."""
        if inside:
            return machine.GuestProgram(self.guest, command)
        return self.outside.start(place.A, shlex.split(command))

    def values(self, case, inside, serves_inside, port):
        """What fills in the command of an end."""
        end = 'guest' if inside else 'outside'
        gid = (machine.GUEST6 if inside else machine.HOST6) if case.family == table.IPV6 else \
            '::ffff:' + (machine.GUEST if inside else machine.HOST)
        address = {table.IPV4: (machine.HOST, machine.GUEST), table.IPV6: (machine.HOST6, machine.GUEST6)}[case.family]
        return {'device': 'rxe0' if inside else self.device, 'gid': self.indices[end][gid], 'port': port,
                'address': address[serves_inside]}

    def listens(self, case, inside, port):
        if not inside:
            return self.outside.listens_cm(place.A, port) if case.ready == table.CM else self.outside.listens(place.A, port)
        if case.ready == table.CM:
            return re.search(rf'state LISTEN\b.*:{port}\s', self.guest.run('rdma resource show cm_id')) is not None
        return self.guest.run(f'ss -Hltn sport = :{port}') != ''

    def await_server(self, case, server, inside, port, deadline):
        while server.poll() is None and time.monotonic() < deadline:
            if self.listens(case, inside, port):
                return None
            time.sleep(0.02)
        return 'the server does not listen'

    def await_ends(self, programs, deadline):
        while any(program.poll() is None for program in programs) and time.monotonic() < deadline:
            # A program that lost its peer need not notice.
            if any(program.poll() for program in programs):
                deadline = min(deadline, time.monotonic() + 3)
            time.sleep(0.02)
        for program, end in zip(programs, ('client', 'server')):
            if program.poll():
                return f'the {end} ends with status {program.poll()}'
        return 'the time limit has passed' if None in [program.poll() for program in programs] else None

    def run(self, case, direction):
        """What is wrong, or None; and lines to read."""
        serves_inside = direction == OUT
        port = case.port or self.outside.port()
        deadline = time.monotonic() + case.seconds
        server = self.start(serves_inside, case.command.format(**self.values(case, serves_inside, serves_inside, port)))
        programs = [server]
        wrong = self.await_server(case, server, serves_inside, port, deadline)
        if not wrong:
            command = case.client.format(**self.values(case, not serves_inside, serves_inside, port))
            programs.insert(0, self.start(not serves_inside, command))
            wrong = self.await_ends(programs, deadline)
        for program in programs:
            program.kill()
        if not wrong:
            wrong = case.judge(case, programs[1].read('out'), programs[0].read('out'))
        report = [line for program in programs for line in program.report()] if wrong else []
        self.outside.stop()
        return wrong, report


class Tally:
    """Counts the cases, and prints a line for each."""

    def __init__(self):
        self.counts = {'passed': 0, 'failed': 0, 'skipped': 0}

    def add(self, result, text, lines=()):
        self.counts[result] += 1
        print(f'{result:<8} {text}', flush=True)
        for line in lines:
            print(f'         {line}', flush=True)

    def end(self):
        print(', '.join(f'{count} {result}' for result, count in self.counts.items()))
        return 1 if self.counts['failed'] else 0


def run_suite(suite, options, tally):
    """All cases against the kernel of @suite."""
    made = f'{options.build}/interop/{suite}'
    with tempfile.TemporaryDirectory(prefix='softhca-', dir='/tmp') as directory, Outside(directory) as outside:
        machine.make_tap()
        begin = time.monotonic()
        guest = machine.Guest(made, [], directory, f'{options.build}/interop/{suite}.console', options.kvm)
        try:
            kernel = guest.run('uname -r').strip()
            place.await_link(['ip', '-o', 'link', 'show', 'dev', machine.TAP])
            print(f'kernel {kernel} of {suite}: booted in {time.monotonic() - begin:.0f} s', flush=True)
            runner = Runner(outside, guest)
            for case in table.CASES:
                for direction in (OUT, IN):
                    name = f'{kernel.split("-")[0]}: {direction}: {case.name}'
                    if options.only and not re.search(options.only, name):
                        continue
                    begin = time.monotonic()
                    wrong, report = runner.run(case, direction)
                    tally.add('failed' if wrong else 'passed', f'{name} ({time.monotonic() - begin:.1f} s)',
                              [wrong, *report] if wrong else [])
        finally:
            guest.stop()
            place.ip('link', 'del', machine.TAP)


def absent():
    """Why nothing can be run here, or None."""
    if os.getuid() != 0:
        return 'only root can make virtual networks and the root of a guest'
    for program in NEEDED:
        if not shutil.which(program):
            return f'there is no {program}'
    return None if os.path.exists('/dev/net/tun') else 'there is no /dev/net/tun'


def main(inside):
    parser = argparse.ArgumentParser()
    parser.add_argument('--build', required=True)
    parser.add_argument('--suite', action='append', help='a release of Debian')
    parser.add_argument('--only', help='cases whose line matches this expression')
    parser.add_argument('--kvm', action='store_true', help='instead of emulation')
    options = parser.parse_args()
    options.build = os.path.abspath(options.build)
    options.suite = options.suite or SUITES
    place.LIBRARIES = f'{options.build}/lib'
    tally = Tally()
    reason = absent()
    if reason:
        tally.add('skipped', f'all: {reason}')
        return tally.end()
    if not inside:
        # Roots are made here, where there is a network.
        for suite in options.suite:
            subprocess.run([f'{HERE}/root.sh', suite, f'{options.build}/interop'], check=False)
        place.enter(lambda why: sys.exit(f'namespaces are forbidden here: {why}'))
    for suite in options.suite:
        if not os.path.exists(f'{options.build}/interop/{suite}/.complete'):
            tally.add('skipped', f'{suite}: its root cannot be made here, see above')
            continue
        try:
            run_suite(suite, options, tally)
        except machine.Failure as failure:
            tally.add('failed', f'{suite}: {failure}')
    return tally.end()


if __name__ == '__main__':
    # In the second run of this program, in the namespaces.
    is_inside = '--inside' in sys.argv
    if is_inside:
        place.enter()
    sys.exit(main(is_inside))
