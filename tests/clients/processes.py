#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs a test of processes that connect to each other: on one host (shm; near: over udp nevertheless), or on two hosts
(udp), optionally over an unreliable network.

    processes.py --link shm|near|udp [--faults TEXT] [--seconds LIMIT] PROGRAM [ARGUMENT…]

PROGRAM gets `--netns PATH` for its other processes if they are to run on another host. Prints TAP.
"""
import argparse
import os
import re
import sys
import time

from place import A, B, Hosts, enter


def wait(program, seconds):
    deadline = time.monotonic() + seconds
    while program.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    return 'the time limit has passed' if program.poll() is None else \
        f'exit status {program.poll()}' if program.poll() else None


def shared_files():
    return set(os.listdir('/dev/shm')) if os.path.isdir('/dev/shm') else set()


def leftovers(hosts, before):
    """Sockets end with their processes; the kernel may take a moment for that."""
    deadline = time.monotonic() + 2
    while True:
        left = hosts.names(A) + hosts.names(B) + sorted(shared_files() - before)
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.05)


def watched(directory):
    """Returns the environment of programs under a sanitizer: reports of all of them, including killed ones, are
    kept."""
    if 'TEST_SANITIZED' not in os.environ:
        return {}
    return {name: f'{os.environ.get(name, "")}:log_path={directory}/report'
            for name in ('ASAN_OPTIONS', 'TSAN_OPTIONS', 'UBSAN_OPTIONS')}


# Printed by the leak checker if a thread ends while it stops all others, as in a process that exits.
NO_FINDING = re.compile(r'==\d+==Unable to get registers from thread \d+\.')


def reports(directory):
    """Returns the lines reported by sanitizers."""
    lines = []
    for name in sorted(os.listdir(directory)):
        if name.startswith('report.'):
            with open(os.path.join(directory, name), encoding='utf-8', errors='replace') as file:
                lines += [line for line in file.read().splitlines() if not NO_FINDING.fullmatch(line)]
    return lines


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--link', choices=['shm', 'near', 'udp'], required=True)
    parser.add_argument('--faults')
    parser.add_argument('--explain', help='a file for the explanations')
    parser.add_argument('--seconds', type=float, default=120, help='time limit')
    parser.add_argument('command', nargs=argparse.REMAINDER)
    options = parser.parse_args()
    command = [os.path.abspath(options.command[0]), *options.command[1:]]
    env = {'SOFTHCA_EXPLAIN': 'off'}
    if options.explain:
        env['SOFTHCA_EXPLAIN'] = os.path.abspath(options.explain)
    before = shared_files()

    with Hosts() as hosts:
        env |= watched(hosts.directory)
        if options.link == 'udp':
            command = [*command, '--netns', f'/proc/{hosts.holder.pid}/ns/net']
        if options.link == 'near':
            env['SOFTHCA_LINK'] = 'udp'
        if options.faults:
            env['SOFTHCA_FAULTS'] = options.faults
        seen = hosts.datagrams(A)
        program = hosts.start(A, command, env)
        wrong = wait(program, options.seconds)
        seen = [now - then for now, then in zip(hosts.datagrams(A), seen)]
        if not wrong and any(seen) != (options.link != 'shm'):
            wrong = f'datagrams received and sent: {seen}'
        print('not ok' if wrong else 'ok', '1 -', options.link, os.path.basename(command[0]))
        for line in ([wrong, *program.report()] if wrong else program.read('out').splitlines()):
            print('#', line)
        hosts.stop()
        left = leftovers(hosts, before)
        print('not ok' if left else 'ok', '2 - nothing is left')
        for name in left:
            print('#', name)
        reported = reports(hosts.directory)
        print('not ok' if reported else 'ok', '3 - no sanitizer reports anything')
        for line in reported:
            print('#', line)
    print('1..3')
    return 1 if wrong or left or reported else 0


if __name__ == '__main__':
    enter()
    sys.exit(main())
