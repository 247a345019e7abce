#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks the errors and the output of count.py with invented figures.

    check.py COUNT_PY
"""
import os
import subprocess
import sys
import tempfile
import unittest

HERE = 'compiler 1, valgrind-1'


def run(recorded, counted, *options, recorded_with=HERE):
    """Returns (exit status, output, the record afterwards)."""
    with tempfile.TemporaryDirectory() as directory:
        for name, depends, figures in (('recorded', recorded_with, recorded), ('counted', HERE, counted)):
            with open(os.path.join(directory, name), 'w', encoding='utf-8') as file:
                file.write(f'# a comment\nwith {depends}\n\n')
                file.writelines(f'{figure:8}  {operation}\n' for operation, figure in figures.items())
        record = os.path.join(directory, 'recorded')
        done = subprocess.run([sys.executable, COUNT, 'no such program', record, '--counted',
                               os.path.join(directory, 'counted'), *options],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        with open(record, encoding='utf-8') as file:
            return done.returncode, done.stdout, file.read()


class Check(unittest.TestCase):
    def test_same(self):
        status, output, _ = run({'WRITE of 8 bytes': 1000}, {'WRITE of 8 bytes': 1000})
        self.assertEqual(status, 0, output)

    def test_growth_within_five_percent(self):
        status, output, _ = run({'a': 1000, 'b': 100}, {'a': 1050, 'b': 20})
        self.assertEqual(status, 0, output)

    def test_growth_beyond(self):
        status, output, _ = run({'a': 1000, 'one thread: b': 1000}, {'a': 900, 'one thread: b': 1051})
        self.assertEqual(status, 1, output)
        self.assertIn('"one thread: b" grew by 5.1 %, from 1000 instructions to 1051', output)
        self.assertNotIn('"a"', output)
        self.assertIn('make bench-count RECORD=1', output)

    def test_growth_by_the_clock(self):
        status, output, _ = run({'udp: a': 1000, 'shm: udp: a': 1000}, {'udp: a': 1150, 'shm: udp: a': 1050})
        self.assertEqual(status, 0, output)
        status, output, _ = run({'udp: a': 1000}, {'udp: a': 1151})
        self.assertEqual(status, 1, output)

    def test_not_recorded(self):
        status, output, _ = run({'a': 1000}, {'a': 1000, 'b': 7})
        self.assertEqual(status, 1, output)
        self.assertIn('"b" takes 7 instructions and is not recorded', output)

    def test_no_longer_counted(self):
        status, output, _ = run({'a': 1000, 'b': 7}, {'a': 1000})
        self.assertEqual(status, 1, output)
        self.assertIn('"b" is recorded and not counted', output)

    def test_other_compiler(self):
        status, output, _ = run({'a': 1000}, {'a': 2000}, recorded_with='compiler 2, valgrind-1')
        self.assertEqual(status, 77, output)
        self.assertIn('not compared', output)

    def test_record(self):
        status, output, record = run({'a': 1000, 'b': 5}, {'a': 2000.4, 'c': 3}, '--record')
        self.assertEqual(status, 0, output)
        self.assertEqual([line for line in record.splitlines() if line and not line.startswith('#')],
                         [f'with {HERE}', '    2000  a', '       3  c'])


if __name__ == '__main__':
    COUNT = sys.argv.pop(1)
    unittest.main(verbosity=0)
