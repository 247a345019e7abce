#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs client programs with their default options on a loaded machine: together with busy loops, on two processors.

    busy.py [--rounds N] [--seconds S] [--loops N] [--link shm|udp] [--only TEXT] [--tool PATH]

An adapter answers while its program does not run, so these programs must not fail because of the load. Prints TAP, a
line for each program and link; ends with the round in which the time is over. Each program has its own time limit, far
beyond the slowdown by sixteen loops.
"""
import argparse
import os
import sys
import time
from pathlib import Path

import cases
from place import LIBRARIES, Hosts, enter
from run import Runner

PINGPONGS = ['rc', 'uc', 'ud', 'srq', 'xsrq']
PERFTESTS = [f'ib_{operation}_{kind}' for operation in ('write', 'read', 'send') for kind in ('bw', 'lat')]
LONG = ['ib_write_bw', 'ib_send_bw']
SECONDS = 120
PROCESSORS = 2


def table():
    """Default options; the numbers of iterations are the defaults as well, given for the judges."""
    def pingpong(kind):
        return cases.Case(f'ibv_{kind}_pingpong', f'ibv_{kind}_pingpong -d mlx5_0 -g 3 -p {{port}} -n 1000', cases.pingpong,
                          seconds=SECONDS)
    return [pingpong(kind) for kind in PINGPONGS] + [
        cases.Case(name, f'{name} -d mlx5_0 -x 3 -p {{port}} -n {5000 if name in LONG else 1000}', cases.perftest,
                   seconds=SECONDS) for name in PERFTESTS]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--rounds', type=int, default=100)
    parser.add_argument('--seconds', type=float, default=float('inf'))
    parser.add_argument('--loops', type=int, default=16)
    parser.add_argument('--link', choices=(cases.SHM, cases.UDP))
    parser.add_argument('--only', default='')
    parser.add_argument('--tool', default='softhca')
    parser.add_argument('--program', default='')
    parser.add_argument('--inside', action='store_true', help=argparse.SUPPRESS)
    enter()
    parser.set_defaults(lint=False, group=[])
    options = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:PROCESSORS])
    chosen = [(case, link) for case in table() for link in (cases.SHM, cases.UDP)
              if options.only in case.name and options.link in (None, link)]
    runs, failures = dict.fromkeys(range(len(chosen)), 0), {}
    end = time.monotonic() + options.seconds
    with Hosts() as hosts:
        runner = Runner(hosts, options)
        for _ in range(options.loops):
            # In the PID namespace of this test, so they end with it in any case.
            os.spawnvp(os.P_NOWAIT, 'sh', ['sh', '-c', 'while :; do :; done'])
        for _ in range(options.rounds):
            for number, (case, link) in enumerate(chosen):
                if time.monotonic() > end:
                    break
                wrong, lines = runner.run(case, link)
                runs[number] += 1
                if wrong:
                    failures.setdefault(number, []).append([wrong, *lines])
    print(f'1..{len(chosen)}')
    for number, (case, link) in enumerate(chosen):
        failed = failures.get(number, [])
        print(f'{"not ok" if failed else "ok"} {number + 1} - {case.name} {link} # {runs[number]} runs, {len(failed)} failed')
        for line in failed[0] if failed else []:
            print(f'#   {line}')
    sys.exit(bool(failures))


if __name__ == '__main__':
    if not LIBRARIES:
        sys.exit(f'{Path(sys.argv[0]).name}: set TEST_LIBRARY_DIRECTORY to the folder that has libibverbs.so.1')
    main()
