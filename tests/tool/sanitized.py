#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""A user's program under a sanitizer, on softhca built without one, as in docs/use/install.md.

sanitized.py TOOL SOURCE
"""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import harness

TOOL, SOURCE = map(os.path.abspath, sys.argv[1:3])


class Programs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.mkdtemp()

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.directory)

    def run_under(self, sanitizer, wrong, **options):
        """Returns (exit status, output) of the program, built under @sanitizer with the distribution's libibverbs."""
        program = f'{self.directory}/{sanitizer}'
        if not os.path.exists(program):
            built = subprocess.run(['cc', '-g', f'-fsanitize={sanitizer}', '-pthread', '-o', program, SOURCE, '-libverbs'],
                                   stderr=subprocess.PIPE, text=True, timeout=60, check=False)
            if built.returncode and f'-l{sanitizer[0]}san' in built.stderr:
                self.skipTest(f'the compiler has no {sanitizer} sanitizer')
            self.assertEqual(built.returncode, 0, built.stderr)
        done = subprocess.run([TOOL, 'run', '--no-presence', '--', program, wrong], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=60, check=False,
                              env=harness.clean_environment(**options))
        return done.returncode, done.stdout


class Memory(Programs):
    def test_nothing_is_reported_of_a_program_that_is_right(self):
        for sanitizer in ('address', 'undefined'):
            self.assertEqual(self.run_under(sanitizer, ''), (0, 'success\n'))

    def test_freed_memory_that_a_request_writes(self):
        status, output = self.run_under('address', 'freed')
        self.assertNotEqual(status, 0)
        self.assertIn('heap-use-after-free', output)
        # The report names where it was freed, and the call of the program that writes it.
        self.assertRegex(output, r'(?s)WRITE of size.*sanitized_program\.c.*freed by thread.*sanitized_program\.c')

    def test_regions_that_are_leaked(self):
        status, output = self.run_under('address', 'leaked', ASAN_OPTIONS='fast_unwind_on_malloc=0')
        self.assertNotEqual(status, 0)
        self.assertIn('LeakSanitizer', output)
        self.assertRegex(output, r'(?s)ibv_reg_mr.*in main')


class Threads(Programs):
    # ThreadSanitizer refuses some layouts of the address space, which the test cannot control.
    def run_threads(self, wrong):
        for _ in range(5):
            status, output = self.run_under('thread', wrong)
            if 'unexpected memory mapping' not in output:
                return status, output
        self.skipTest('ThreadSanitizer does not start here')

    def test_nothing_is_reported_of_a_program_that_is_right(self):
        self.assertEqual(self.run_threads(''), (0, 'success\n'))

    def test_source_that_another_thread_changes(self):
        status, output = self.run_threads('race')
        self.assertNotEqual(status, 0)
        self.assertIn('data race', output)


if __name__ == '__main__':
    harness.main()
