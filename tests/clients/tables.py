#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Processes of a host with different tables of GIDs: a datagram that one of them reads for another keeps its addresses.

    tables.py HOLDER PROGRAM      prints TAP; HOLDER is strangers.c, PROGRAM has both ends of a connection in one process
"""
import os
import sys

from place import A, ADDRESS, B, Hosts, enter
from strangers import lines, until


def main():
    holder_program, program = map(os.path.abspath, sys.argv[1:3])
    udp = {'SOFTHCA_LINK': 'udp', 'SOFTHCA_EXPLAIN': 'stderr'}
    with Hosts() as hosts:
        holder = hosts.start(A, [holder_program, 'far', ADDRESS[B]], {**udp, 'SOFTHCA_GIDS': 'auto'})
        has_port = until(lambda: lines(holder, 'uc ') and hosts.has_datagram_socket(A, 4791))
        # By its link-local GID, which no interface has: so it selects an entry of the table.
        run = hosts.start(A, [program, '2000'], {**udp, 'SOFTHCA_GIDS': 'loopback'})
        until(lambda: run.poll() is not None, 100)
        right = has_port and holder.poll() is None and run.poll() == 0
        print('1..1')
        print('ok' if right else 'not ok', '1 - another process has the port, and another table')
        for report in () if right else (holder, run):
            print('#', *report.report(), sep='\n# ')
    return not right


if __name__ == '__main__':
    enter()
    sys.exit(main())
