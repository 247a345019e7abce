# SPDX-License-Identifier: BSD-2-Clause
"""Live migration of a QEMU guest over `rdma:`: guest.c verifies its own memory and prints a line for each pass.

The lines of both ends, one after the other, are the passes from 1 on without a gap, and all are right.
"""
import json
import os
import socket
import time

from place import A, ADDRESS, B

# Passes before the migration begins, and passes at the destination.
PASSES = 5
# Seconds between two looks.
PAUSE = 0.02


class Monitor:
    """A connection to the control socket of a running QEMU (QMP)."""

    def __init__(self, path, deadline):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(max(deadline - time.monotonic(), 1))
        while True:
            try:
                self.socket.connect(path)
                break
            except (FileNotFoundError, ConnectionRefusedError):
                if time.monotonic() > deadline:
                    raise
                time.sleep(PAUSE)
        self.lines = self.socket.makefile('r', encoding='utf-8')
        self.lines.readline()
        self.execute('qmp_capabilities')

    def execute(self, command, **arguments):
        """Returns the result of @command. Events that come before it are skipped."""
        self.socket.sendall(json.dumps({'execute': command, 'arguments': arguments}).encode() + b'\n')
        while True:
            reply = json.loads(self.lines.readline() or '{"error": {"desc": "the connection ended"}}')
            if 'error' in reply:
                raise OSError(f'{command}: {reply["error"]["desc"]}')
            if 'return' in reply:
                return reply['return']


class Machine:
    """A QEMU with the guest @kernel on @host."""

    def __init__(self, runner, case, host, kernel, deadline, *options):
        name = f'{runner.hosts.directory}/qemu-{runner.hosts.port()}'
        self.serial = name + '.serial'
        command = ['qemu-system-x86_64', '-machine', 'pc,accel=tcg', '-m', '64', '-nodefaults', '-display', 'none', '-kernel', kernel,
                   '-serial', f'file:{self.serial}', '-qmp', f'unix:{name}.qmp,server=on,wait=off', *options]
        self.program = runner.start(case, host, command)
        self.monitor = Monitor(name + '.qmp', deadline)

    def text(self):
        """Returns the guest's output on this machine."""
        if not os.path.exists(self.serial):
            return ''
        with open(self.serial, encoding='ascii', errors='replace') as file:
            return file.read()


def await_passes(machine, count, deadline):
    """Returns true when the guest has completed @count lines on @machine."""
    while machine.text().count('\n') < count:
        if time.monotonic() > deadline or machine.program.poll() is not None:
            return False
        time.sleep(PAUSE)
    return True


def await_migration(source, deadline):
    """Returns the last state of the migration."""
    while True:
        state = source.monitor.execute('query-migrate')
        if state['status'] in ('completed', 'failed', 'cancelled') or time.monotonic() > deadline:
            return state
        time.sleep(PAUSE)


def judge(before, after):
    """Returns the error in the guest's output at its source and then at its destination, or None."""
    lines = (before + after).splitlines(keepends=True)
    if lines and not lines[-1].endswith('\n'):
        lines.pop()
    for number, line in enumerate(lines, 1):
        if line != f'pass {number} right\n':
            return f'line {number} of the guest is {line!r}'
    return None


def move(source, target, uri, capabilities, deadline):
    """Migrates the guest of @source to @target. Returns the problem, or None."""
    for end in (source, target):
        end.monitor.execute('migrate-set-capabilities',
                            capabilities=[{'capability': name, 'state': True} for name in capabilities])
    target.monitor.execute('migrate-incoming', uri=uri)
    if not await_passes(source, PASSES, deadline):
        return 'the guest does not run at its source'
    source.monitor.execute('migrate', uri=uri)
    state = await_migration(source, deadline)
    if state['status'] != 'completed':
        return f'the migration ends as {state["status"]}: {state.get("error-desc", "no reason is told")}'
    before = source.text()
    if not await_passes(target, PASSES, deadline):
        return 'the guest does not continue at its destination'
    return judge(before, target.text()) or \
        (None if source.text() == before else 'the guest still runs at its source')


def run(runner, case, link, kernel, deadline):
    """Runs the destination on host a, the source there as well or on host b. Returns the problem, or None; and the
    programs."""
    try:
        target = Machine(runner, case, A, kernel, deadline, '-incoming', 'defer')
        source = Machine(runner, case, A if link == 'shm' else B, kernel, deadline)
        uri = f'rdma:{ADDRESS[A]}:{runner.hosts.port()}'
        wrong = move(source, target, uri, case.migration, deadline)
        if not wrong:
            source.monitor.execute('quit')
            target.monitor.execute('quit')
            wrong = runner.await_ends([source.program, target.program], deadline)
    except OSError as error:
        wrong = str(error)
    return wrong, list(runner.hosts.programs)
