#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
softhca run --faults and --counters: wrong scripts, files, and the summary at the end of the program.

faults.py COMMAND LIBRARIES PROGRAM: the program is one of the tests of the API, with traffic within one process.
"""
import os
import re
import signal
import sys
import tempfile
import unittest

from harness import main, softhca

PROGRAM = os.path.abspath(sys.argv[3])


def traffic(*options, env=None):
    done = softhca('run', *options, '--', PROGRAM, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def summary(text):
    """Returns (frames, seed, {rule: (applied, possible)})."""
    head = re.search(r'(?m)^softhca: mlx5_0: faults: (\d+) frames, seed (\d+)$', text)
    rules = re.findall(r'(?m)^softhca: mlx5_0: faults: (.*): (\d+) of (\d+)$', text)
    return int(head.group(1)), int(head.group(2)), {name: (int(done), int(of)) for name, done, of in rules}


class WrongScripts(unittest.TestCase):
    def refused(self, *arguments, line, env=None):
        done = softhca(*arguments, env=env)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (2, '', line + '\n'))

    def test_line_and_column(self):
        for command in ('run', 'env', 'info'):
            self.refused(command, '--faults', 'drop 1%; delay 5', line=(
                'softhca: --faults: line 1, column 17: expected ns, us, ms or s, not the end of the script'))
            self.refused(command, '--faults=drop 1%\n drop 2% 3', line=(
                'softhca: --faults: line 2, column 10: expected ";" or the end of the line, not "3"'))

    def test_environment(self):
        self.refused('run', 'true', env={'SOFTHCA_FAULTS': 'drop 101%'}, line=(
            'softhca: SOFTHCA_FAULTS: line 1, column 6: expected a share of 0% to 100%, not "101"'))

    def test_files(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, 'script')
            self.refused('run', '--faults', path, 'true', line=(
                'softhca: --faults: line 1, column 1: expected seed, a condition (on, of, to, at, from, for) or an '
                'action (drop, duplicate, reorder, corrupt, delay, rnr, kill), not "/" (and no file of that name exists)'))
            with open(path, 'w', encoding='ascii') as file:
                file.write('# a comment\ncorrupt 1%\n')
            self.refused('run', '--faults', path, 'true', line=(
                f'softhca: --faults: {path}: line 2, column 9: expected "payload" or "frame", not "1"'))
            self.refused('run', '--faults', directory, 'true', line=(
                f'softhca: --faults: {directory}: Is a directory'))

    def test_library_alone(self):
        """A program that was not started by the command continues without faults, and explains why."""
        done = softhca('run', '--explain', 'stderr', '--', 'env', 'SOFTHCA_FAULTS=drip', PROGRAM)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stderr, r'(?m)^softhca: SOFTHCA_FAULTS: line 1, column 1: expected seed, ')
        self.assertNotIn('frames, seed', done.stderr)


class Summary(unittest.TestCase):
    def test_summary(self):
        frames, seed, rules = summary(traffic('--faults', 'drop 2%; of ack duplicate; seed 5').stderr)
        self.assertEqual(seed, 5)
        self.assertGreater(frames, 100)
        self.assertEqual(set(rules), {'drop 2%', 'of ack duplicate'})
        self.assertEqual(rules['drop 2%'][1], frames)
        self.assertTrue(0 < rules['drop 2%'][0] < frames / 10)
        self.assertEqual(*rules['of ack duplicate'])

    def test_file(self):
        with tempfile.NamedTemporaryFile('w', suffix='.faults') as file:
            file.write('# slower\nseed 9\n\ndelay 1us 10%   # now and then\n')
            file.flush()
            frames, seed, rules = summary(traffic('--faults', file.name).stderr)
        self.assertEqual(seed, 9)
        self.assertEqual(rules['delay 1us 10%'][1], frames)

    def test_seed_of_the_setting(self):
        self.assertEqual(summary(traffic('--faults', 'drop 0%', '--seed', '77').stderr)[1], 77)

    def test_no_sink_no_summary(self):
        self.assertNotIn('softhca', traffic('--faults', 'drop 1%', '--explain', 'off').stderr)


class Kill(unittest.TestCase):
    def test_kill(self):
        done = softhca('run', '--faults', 'at packet 9 kill', '--', PROGRAM)
        self.assertEqual(done.returncode, -signal.SIGKILL, done.stdout + done.stderr)
        # A number greater than that of the packets.
        traffic('--faults', 'at packet 100000 kill')


class Counters(unittest.TestCase):
    def counters(self, text):
        parts = re.split(r'(?m)^softhca: counters of mlx5_0 in process \d+\n', text)
        self.assertEqual(len(parts), 2, text)
        return {name: int(value) for name, value in re.findall(r'(?m)^  ([a-z_]+) +(\d+)$', parts[1])}

    def test_stderr(self):
        text = traffic('--faults', 'drop 2%; seed 5', '--counters', 'stderr').stderr
        counters = self.counters(text)
        self.assertEqual(counters['fault_frames'], summary(text)[0])
        self.assertEqual(counters['fault_dropped'], summary(text)[2]['drop 2%'][0])
        self.assertNotIn(0, counters.values())

    def test_file_is_appended_to(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, 'counters')
            for _ in range(2):
                done = traffic('--explain', 'off', '--counters', path, '--faults', 'drop 0%')
                self.assertNotIn('softhca', done.stderr)
            with open(path, encoding='ascii') as file:
                parts = file.read().split('softhca: counters of mlx5_0 in process ')
        self.assertEqual(len(parts), 3)
        self.assertEqual(len(set(part.split('\n')[0] for part in parts)), 3)


if __name__ == '__main__':
    main()
