#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
A program observes the same outcomes of small messages whichever path they take through the device.

outcomes.py COMMAND LIBRARIES PROGRAM: the program is api-outcomes. Within a process most of its messages take the fast path
(src/transport/DESIGN.md). With a filter all of them take the general path. Over shm and udp they arrive as from another process or host.
"""
import os
import subprocess
import sys
import tempfile
import unittest

from harness import clean_environment, main

PROGRAM = os.path.abspath(sys.argv[3])
WAYS = {
    'fast path': {},
    'by packets': {'SOFTHCA_FAULTS': 'drop 0%'},
    'shm': {'SOFTHCA_LINK': 'shm'},
    'udp': {'SOFTHCA_LINK': 'udp', 'SOFTHCA_ROCE_PORT': '47905'},
}


def outcomes(settings):
    with tempfile.NamedTemporaryFile('r', encoding='ascii') as file:
        environment = clean_environment(SOFTHCA_GIDS='loopback', SOFTHCA_SEED='5', SOFTHCA_EXPLAIN='off', OUTCOMES=file.name,
                                        LD_LIBRARY_PATH=os.path.realpath(sys.argv[2]), **settings)
        done = subprocess.run([PROGRAM], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60,
                              check=False)
        assert done.returncode == 0, done.stdout
        return file.read().split('seed ')[1:]


class Outcomes(unittest.TestCase):
    def setUp(self):
        self.fast = outcomes({})

    def test_messages_of_all_kinds(self):
        """The drawn messages cover all kinds: otherwise agreement of all paths would mean nothing."""
        text = ''.join(self.fast)
        for opcode in range(7):
            self.assertGreater(text.count(f': opcode {opcode}, '), 100)
        for status in ('success', 'Work Request Flushed Error', 'remote access error', 'remote invalid request error',
                       'local protection error', 'local length error', 'RNR retry counter exceeded'):
            self.assertGreater(text.count(f': {status}, '), 10, status)
        self.assertGreater(text.count('memory '), 300)

    def test_ways_agree(self):
        for way, settings in WAYS.items():
            found = outcomes(settings)
            self.assertEqual(len(self.fast), len(found), way)
            for mine, other in zip(self.fast, found):
                self.assertEqual(mine, other, way)


if __name__ == '__main__':
    main()
