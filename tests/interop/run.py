#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs softhca against the soft-RoCE of Linux kernels, which run in virtual machines (docs/inside/interop.md).

    run.py --build BUILD [--suite NAME]… [--only EXPRESSION] [--record DOCUMENT] [--kvm]

Prints a line per case and a summary, "N passed, N failed, N skipped". Cases that this machine cannot run are skipped, with
the reason. BUILD/interop has the guests and the logs of their consoles.
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

# Debian releases, each with its kernel and rdma-core.
SUITES = ['bookworm', 'trixie']
IN, OUT = 'rxe -> softhca', 'softhca -> rxe' # from the client to the server
LOSS = '1%'
# Marks around the table in the document.
BEGIN, END = '<!-- make interop RECORD=1 writes this -->', '<!-- end -->'
HERE = os.path.dirname(os.path.abspath(__file__))
NEEDED = ('qemu-system-x86_64', 'debootstrap', 'busybox', 'cpio', 'mke2fs', 'ip', 'unshare')


class Outside(place.Hosts):
    """This network namespace, in which programs run on softhca."""

    def __init__(self, directory):
        # pylint: disable=super-init-not-called
        self.directory = directory
        self.programs = []
        self.ports = iter(range(20000, 30000))

    def __exit__(self, *_):
        self.stop()


class Runner:
    def __init__(self, outside, guest, build):
        self.outside = outside
        self.checked = f'{build}/tests/interop/interop-checked'
        self.tool = f'{build}/src/tool/softhca'
        self.directory = f'{build}/interop'
        self.guest = guest
        self.indices = {'outside': self.outside_gids(), 'guest': machine.gids(guest.run('ibv_devinfo -v'))}

    def outside_gids(self):
        program = self.outside.start(place.A, ['ibv_devinfo', '-v'])
        program.process.wait()
        found = machine.gids(program.read('out'))
        self.device = re.search(r'hca_id:\s*(\S+)', program.read('out'))[1]
        return found

    def start(self, inside, command):
        """Starts @command on softhca or, if @inside, in the guest."""
        words = shlex.split(command)
        if words[0] == 'checked':
            words[0] = '/run/interop-checked' if inside else self.checked
        if inside:
            return machine.GuestProgram(self.guest, shlex.join(words))
        return self.outside.start(place.A, words)

    def values(self, case, inside, serves_inside, port):
        """Returns the values for the placeholders of a command."""
        end = 'guest' if inside else 'outside'
        gid = (machine.GUEST6 if inside else machine.HOST6) if case.family == table.IPV6 else \
            '::ffff:' + (machine.GUEST if inside else machine.HOST)
        addresses = {table.IPV4: (machine.HOST, machine.GUEST), table.IPV6: (machine.HOST6, machine.GUEST6)}
        return {'device': 'rxe0' if inside else self.device, 'gid': self.indices[end][gid], 'port': port,
                'address': addresses[case.family][serves_inside], 'address4': addresses[table.IPV4][serves_inside]}

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
            # Some programs wait forever for a peer that has failed.
            if any(program.poll() for program in programs):
                deadline = min(deadline, time.monotonic() + 3)
            time.sleep(0.02)
        for program, end in zip(programs, ('client', 'server')):
            if program.poll():
                return f'the {end} ends with status {program.poll()}'
        return 'the time limit has passed' if None in [program.poll() for program in programs] else None

    def run(self, case, direction):
        """Runs @case and returns (error or None, lines of output)."""
        serves_inside = direction == OUT
        port = case.port or self.outside.port()
        deadline = time.monotonic() + case.seconds
        if case.script:
            wrong, report = case.script(self, deadline)
            self.outside.stop()
            return wrong, report
        server = self.start(serves_inside, case.command.format(**self.values(case, serves_inside, serves_inside, port)))
        programs = [server]
        wrong = self.await_server(case, server, serves_inside, port, deadline)
        if not wrong:
            known = ','.join(case.server_known if serves_inside else case.client_known)
            values = self.values(case, not serves_inside, serves_inside, port) | {'known': f'-k {known}' if known else ''}
            command = case.client.format(**values)
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
    """Counts the cases and prints a line for each."""

    def __init__(self):
        self.counts = {'passed': 0, 'failed': 0, 'skipped': 0}
        self.kernels = {} # descriptions by version
        self.results = {} # by case, kernel, direction, and whether packets were lost

    def add(self, result, text, key=None, lines=()):
        self.counts[result] += 1
        self.results[key] = result
        print(f'{result:<8} {text}', flush=True)
        for line in lines:
            print(f'         {line}', flush=True)

    def record(self, path):
        """Replaces the table of the document at @path, between the marks."""
        rows = {}
        for (name, kernel, direction, lossy), result in self.results.items():
            rows.setdefault(f'{name}, {LOSS} lost' if lossy else name, {})[kernel, direction] = result
        columns = [(kernel, direction) for kernel in self.kernels for direction in (OUT, IN)]
        alike = {} # names of cases, by their results
        for name, row in rows.items():
            alike.setdefault(tuple(row.get(column, '') for column in columns), []).append(name)
        lines = [f'{" and ".join(self.kernels.values())}; {time.strftime("%Y-%m-%d", time.gmtime())}.', '',
                 '| ' + ' | '.join(f'{kernel}: {direction}' for kernel, direction in columns) + ' | cases |',
                 '|' + '--|' * len(columns) + '--|']
        lines += ['| ' + ' | '.join(results) + f' | {"; ".join(names)} |' for results, names in alike.items()]
        with open(path, encoding='utf-8') as file:
            before, rest = file.read().split(BEGIN)
        with open(path, 'w', encoding='utf-8') as file:
            file.write('\n'.join([before + BEGIN, *lines, END + rest.split(END)[1]]))

    def end(self):
        print(', '.join(f'{count} {result}' for result, count in self.counts.items()))
        return 1 if self.counts['failed'] else 0


def run_cases(runner, kernel, options, tally, lossy):
    """Runs the cases in both directions; if @lossy, only those that run under packet loss."""
    for case in table.CASES:
        for direction in (OUT, IN):
            name = f'{kernel}: {direction}: {case.name}' + (f', {LOSS} lost' if lossy else '')
            if (lossy and not case.lossy) or (case.script and direction == OUT) or (options.only and not re.search(options.only, name)):
                continue
            if tuple(map(int, kernel.split('.')[:2])) < case.since:
                tally.add('skipped', f'{name}: this kernel does not have it', (case.name, kernel, direction, lossy))
                continue
            begin = time.monotonic()
            try:
                wrong, report = runner.run(case, direction)
            except (machine.Failure, OSError, subprocess.CalledProcessError) as failure:
                wrong, report = str(failure), []
                runner.outside.stop()
            result = 'passed' if not wrong else 'skipped' if wrong.startswith('skipped') else 'failed'
            tally.add(result, f'{name} ({time.monotonic() - begin:.1f} s)',
                      (case.name, kernel, direction, lossy), [wrong, *report] if wrong else [])


def run_suite(suite, options, tally):
    """Runs all cases against the kernel of @suite."""
    made = f'{options.build}/interop/{suite}'
    with tempfile.TemporaryDirectory(prefix='softhca-', dir='/tmp') as directory, Outside(directory) as outside:
        machine.make_tap()
        begin = time.monotonic()
        programs = [f'{options.build}/tests/interop/interop-checked']
        guest = machine.Guest(made, programs, directory, f'{options.build}/interop/{suite}.console', options.kvm)
        try:
            with open(f'{made}/release', encoding='ascii') as file:
                kernel = file.read().split('-')[0]
            place.await_link(['ip', '-o', 'link', 'show', 'dev', machine.TAP])
            print(f'Linux {kernel}, {guest.run("uname -r").strip()} of {suite}: booted in {time.monotonic() - begin:.0f} s', flush=True)
            library = guest.run("dpkg-query -W -f '${source:Upstream-Version}' libibverbs1").split('-')[0]
            tally.kernels[kernel] = f'Linux {kernel} ({suite}, rdma-core {library})'
            runner = Runner(outside, guest, options.build)
            run_cases(runner, kernel, options, tally, False)
            guest.lose(LOSS)
            run_cases(runner, kernel, options, tally, True)
            print(f'packets that the guest has lost: {", ".join(map(str, guest.lost()))}', flush=True)
        finally:
            guest.stop()
            place.ip('link', 'del', machine.TAP)


def absent():
    """Returns the reason why this machine cannot run the tests, or None."""
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
    parser.add_argument('--only', help='cases with lines that match this expression')
    parser.add_argument('--record', metavar='DOCUMENT', help='writes the table of results into it')
    parser.add_argument('--kvm', action='store_true', help='instead of emulation')
    options = parser.parse_args()
    if options.record and (options.only or options.suite):
        parser.error('--record needs all cases of all releases')
    options.build = os.path.abspath(options.build)
    options.suite = options.suite or SUITES
    place.LIBRARIES = f'{options.build}/lib'
    tally = Tally()

    def forbidden(why):
        tally.add('skipped', f'all: {why}')
        sys.exit(tally.end())

    reason = absent()
    if reason:
        tally.add('skipped', f'all: {reason}')
        return tally.end()
    if not inside:
        # Only this process, outside the namespaces, can reach the package archive.
        for suite in options.suite:
            subprocess.run([f'{HERE}/root.sh', suite, f'{options.build}/interop'], check=False)
        subprocess.run([f'{HERE}/tgt.sh', f'{options.build}/interop'], check=False)
        place.enter(forbidden)
    for suite in options.suite:
        if not os.path.exists(f'{options.build}/interop/{suite}/.complete'):
            tally.add('skipped', f'{suite}: its root cannot be made here, see above')
            continue
        try:
            run_suite(suite, options, tally)
        except machine.Failure as failure:
            tally.add('failed', f'{suite}: {failure}')
    if options.record:
        tally.record(options.record)
    return tally.end()


if __name__ == '__main__':
    # place.enter() runs this program again in the namespaces, with this option.
    is_inside = '--inside' in sys.argv
    if is_inside:
        place.enter()
    sys.exit(main(is_inside))
