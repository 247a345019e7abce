#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Counts the instructions that an operation takes, and compares them with those that are recorded.

    count.py PROGRAM RECORD [--record] [--only TEXT] [--counted FILE]

PROGRAM is softhca-bench-count. A figure that grew by more than 5 % (udp: 15 %) beyond the one in RECORD, an operation that
is not recorded, and one that is recorded and no longer there are refused: exit status 1. --record writes RECORD instead.
--counted takes the figures from a file that looks like RECORD; PROGRAM is not run then.

valgrind's callgrind counts, within one function and on one thread (count.h). It shows each program the same processor,
whatever it runs on, so that the figures of two machines are equal if compiler, C library and valgrind are: these are
recorded too, and if they differ nothing is compared: exit status 77.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

GROWTH = 0.05
CLOCKED_GROWTH = 0.15 # for udp, where an acknowledgement may wait for data to travel with
GOALS = {'one thread: WRITE of 8 bytes': 900} # upper limits; exceeding one is not an error
LINKS = ('local', 'shm', 'udp')
NOT_COMPARED = 77
HEAD = """\
# SPDX-License-Identifier: BSD-2-Clause
# Instructions of one operation, as `make bench-count` counts them; docs/inside/benchmarks.md says how. A change that makes one
# grow by more than 5 % (udp: 15 %) is refused. If it is wanted: `make bench-count RECORD=1` writes this file anew.
"""


def dumps(directory):
    """Returns the totals of all dumps, in order."""
    totals = []
    while os.path.exists(f'{directory}/dump.{len(totals) + 1}'):
        with open(f'{directory}/dump.{len(totals) + 1}', encoding='utf-8') as file:
            totals.append(int(re.findall(r'(?m)^(?:totals|summary): (\d+)$', file.read())[-1]))
    return totals


def undisturbed(totals):
    """Returns the figure of a round without timers and other threads. The minimum could be one where another thread
    did the work."""
    return sorted(totals)[len(totals) // 4]


def count_link(program, link):
    """Returns (environment of the figures, {operation: instructions}) over one link."""
    # Without the caller's settings; a GID table and a port that no other process uses.
    environment = {'PATH': os.environ.get('PATH', os.defpath), 'SOFTHCA_SEED': '1', 'SOFTHCA_GIDS': 'loopback',
                   'SOFTHCA_ROCE_PORT': str(20000 + os.getpid() % 10000)}
    with tempfile.TemporaryDirectory() as directory:
        done = subprocess.run(['valgrind', '--tool=callgrind', f'--callgrind-out-file={directory}/dump',
                               '--collect-atstart=no', '--toggle-collect=counted', '--dump-after=counted', program, link],
                              env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            sys.exit(f'{done.stderr}bench-count: {program} {link} ended with {done.returncode}')
        totals = dumps(directory)
    depends, *lines = done.stdout.splitlines()
    figures = {}
    for line in lines:
        rounds, operations, name = line.split(' ', 2)
        rounds = int(rounds)
        mine, totals = totals[:2 * rounds], totals[2 * rounds:]
        if len(mine) != 2 * rounds:
            sys.exit(f'bench-count: callgrind made too few dumps for "{name}"')
        figures[name] = (undisturbed(mine[1::2]) - undisturbed(mine[::2])) / int(operations)
    if totals:
        sys.exit('bench-count: callgrind made more dumps than there are operations')
    return depends, figures


def count(program):
    if not shutil.which('valgrind'):
        print('bench-count: valgrind is not installed')
        sys.exit(NOT_COMPARED)
    valgrind = subprocess.run(['valgrind', '--version'], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    figures = {}
    for link in LINKS:
        depends, of_link = count_link(program, link)
        figures.update(of_link)
    return f'{depends}, {valgrind}', figures


def read(path):
    """Returns (environment of the figures, {operation: instructions}) of a file."""
    depends, figures = None, {}
    with open(path, encoding='utf-8') as file:
        for line in file.read().splitlines():
            if line.startswith('with '):
                depends = line.removeprefix('with ')
            elif line and not line.startswith('#'):
                figure, name = line.split(None, 1)
                figures[name] = float(figure)
    return depends, figures


def write(path, depends, figures):
    with open(path, 'w', encoding='utf-8') as file:
        file.write(f'{HEAD}with {depends}\n\n')
        file.writelines(f'{figure:8.0f}  {name}\n' for name, figure in figures.items())


def goal(name, figure):
    most = GOALS.get(name)
    return f'  <= {most}  {"met" if figure <= most else "MISSED"}' if most else ''


def compare(counted, recorded):
    """Prints all figures; returns the errors."""
    wrong = []
    print(f'{"counted":>9} {"recorded":>9} {"change":>8}  operation')
    for name, figure in counted.items():
        known = recorded.get(name)
        if known is None:
            print(f'{figure:9.0f} {"":9} {"":8}  {name}')
            wrong.append(f'"{name}" takes {figure:.0f} instructions and is not recorded')
            continue
        change = figure / known - 1
        print(f'{figure:9.0f} {known:9.0f} {100 * change:+7.1f}%  {name}{goal(name, figure)}')
        growth = CLOCKED_GROWTH if name.startswith('udp: ') else GROWTH
        if figure > known * (1 + growth) + 0.5: # both are rounded
            wrong.append(f'"{name}" grew by {100 * change:.1f} %, from {known:.0f} instructions to {figure:.0f}')
    wrong += [f'"{name}" is recorded and not counted' for name in recorded if name not in counted]
    return wrong


def main():
    parser = argparse.ArgumentParser(description='Count instructions of operations.')
    parser.add_argument('program')
    parser.add_argument('recorded')
    parser.add_argument('--record', action='store_true', help='write the file instead of comparing with it')
    parser.add_argument('--counted', metavar='FILE', help='figures to compare, instead of counting')
    options = parser.parse_args()

    depends, counted = read(options.counted) if options.counted else count(options.program)
    if options.record:
        write(options.recorded, depends, counted)
        print(f'{options.recorded}: {len(counted)} operations')
        return 0
    with_what, recorded = read(options.recorded)
    wrong = compare(counted, recorded)
    if depends != with_what:
        print(f'bench-count: counted with {depends},\nrecorded with {with_what}: not compared')
        return NOT_COMPARED
    for line in wrong:
        print(f'bench-count: {line}')
    if wrong:
        print('bench-count: if that is wanted, `make bench-count RECORD=1` writes bench/instructions.txt anew')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
