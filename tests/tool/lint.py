#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
softhca run --lint: selection, destination and counting of warnings.

lint.py COMMAND LIBRARIES MISUSE EARLY: MISUSE is misuse.c, which leaks two PDs and a CQ, and ends; EARLY is early.c,
which reads the buffer of a receive as its argument selects.
"""
import os
import re
import signal
import subprocess
import sys
import unittest

from harness import TOOL, clean_environment, main

PROGRAM = os.path.abspath(sys.argv[3])
EARLY = os.path.abspath(sys.argv[4])
WARNING = re.compile(r'(?m)^mlx5_0 ibv_close_device: (\d) objects of kind (\w+) still exist when their context is closed\. '
                     r'\[900 LEAKED_OBJECTS; ')


def run(*options, **env):
    done = subprocess.run([TOOL, 'run', *options, '--', PROGRAM], env=clean_environment(**env), timeout=60, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, done
    return done.stderr


class Choice(unittest.TestCase):
    def test_off(self):
        for options in ([], ['--lint=off'], ['--lint=on,off']):
            text = run(*options)
            self.assertEqual(text, '')

    def expect_warned(self, text):
        self.assertEqual(sorted(WARNING.findall(text)), [('1', 'CQ'), ('2', 'PD')], text)
        self.assertEqual(text.splitlines()[-1], 'softhca: lint: 2 warnings: 2 LEAKED_OBJECTS')

    def test_on(self):
        for options in (['--lint'], ['--lint=on'], ['--lint=leaked-objects'], ['--lint=LEAKED_OBJECTS'],
                        ['--lint=-leaked-objects,leaked-objects'], ['--lint=-queue-unsignaled']):
            self.expect_warned(run(*options))

    def test_error_exitcode(self):
        for options, status in ((['--lint'], 9), ([], 0), (['--lint=queue-unsignaled'], 0)):
            done = subprocess.run([TOOL, 'run', '--error-exitcode=9', *options, '--', PROGRAM], env=clean_environment(), timeout=60,
                                  check=False, capture_output=True, text=True)
            self.assertEqual(done.returncode, status, done)

    def test_variable(self):
        self.expect_warned(run(SOFTHCA_LINT='on'))
        self.assertNotIn('lint', run('--lint=off', SOFTHCA_LINT='on'))

    def test_silenced(self):
        for choice in ('-leaked-objects', 'on,-leaked-objects', 'queue-unsignaled', 'leaked-objects,-leaked-objects,queue-unsignaled'):
            text = run(f'--lint={choice}')
            self.assertFalse(WARNING.search(text), text)
            self.assertEqual(text.splitlines()[-1], 'softhca: lint: 0 warnings')

    def test_wrong(self):
        for wrong in ('yes', 'on,', ',on', '-', 'leaked', 'leaked-objects-', '-on', 'KEY_RANGE', 'on,-off'):
            done = subprocess.run([TOOL, 'run', f'--lint={wrong}', '--', PROGRAM], env=clean_environment(), timeout=60,
                                  check=False, capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout), (2, ''), wrong)
            self.assertRegex(done.stderr, r'^softhca: --lint: "[^"]*" is not a warning \(.*\)\n$')

    def test_wrong_variable(self):
        """A program that is not started by the command gets the message where explanations go."""
        done = subprocess.run([PROGRAM], env=clean_environment(LD_LIBRARY_PATH=os.path.realpath(sys.argv[2]), SOFTHCA_LINT='x\n',
                                                               SOFTHCA_EXPLAIN='stderr'),
                              timeout=60, check=False, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0)
        self.assertIn('softhca: SOFTHCA_LINT: "x?" is not a warning', done.stderr)
        self.assertNotIn('LEAKED_OBJECTS', done.stderr)

    def test_program_after_the_option(self):
        """--lint takes no argument: the next word is the program, also without --."""
        done = subprocess.run([TOOL, 'run', '--lint', PROGRAM], env=clean_environment(), timeout=60, check=False,
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0)
        self.expect_warned(done.stderr)


def early(how, *options):
    done = subprocess.run([TOOL, 'run', *(options or ['--lint=-sends-abandoned']), '--', EARLY, how], env=clean_environment(), timeout=60,
                          check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return done.returncode, done.stderr


class ReadTooEarly(unittest.TestCase):
    """Rule 922; its handler of SIGSEGV does not affect the program's own."""

    def expect(self, how, warnings, *options):
        status, text = early(how, *options)
        self.assertEqual(status, 0, (how, text))
        said = re.findall(r'(?m)^mlx5_0 (.*): the buffer of the receive was read at 0x[0-9a-f]+ before its completion was polled\. '
                          r'\[922 RECEIVE_READ_EARLY; ', text)
        self.assertEqual(len(said), warnings, (how, text))
        self.assertIn(f'softhca: lint: {warnings} warning', text)
        return said

    def test_right(self):
        for how in ('', 'srq', 'handler', 'fork', 'fork srq', 'replaces', 'blocks', 'never'):
            self.expect(how, 0)

    def test_wrong(self):
        for how in ('before', 'late', 'before handler', 'late fork', 'late never'):
            said = self.expect(how, 1)
            self.assertRegex(said[0], r'^qp 0x[0-9a-f]+ ibv_post_recv wr_id 1$')
        for how in ('before srq', 'late srq', 'late never srq'):
            self.assertEqual(self.expect(how, 1), ['ibv_post_srq_recv wr_id 1'])

    def test_cannot_be_seen(self):
        """Programs that handle or block the signal run as without warnings."""
        for how in ('before replaces', 'late replaces', 'before blocks', 'late blocks'):
            self.expect(how, 0)

    def test_silenced(self):
        self.expect('before', 0, '--lint=-receive-read-early')

    def test_own_faults(self):
        for how in ('null', 'sent', 'null srq'):
            self.assertEqual(early(how)[0], -signal.SIGSEGV, how)

    def test_written_last_first(self):
        """With WRITE_READ_EARLY, which `on` does not enable, everything else is unchanged."""
        self.expect('', 0, '--lint=on,write-read-early')
        self.expect('late', 1, '--lint=on,write-read-early')


if __name__ == '__main__':
    main()
