# SPDX-License-Identifier: BSD-2-Clause
"""Shared by the tests of the softhca command: running it in a clean environment, and TAP output."""
import os
import shutil
import subprocess
import sys
import unittest

TOOL = os.path.abspath(sys.argv[1])
LIBRARIES = os.path.realpath(sys.argv[2])


def clean_environment(**more):
    """Returns the environment without settings and library path, plus `more`."""
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(('SOFTHCA_', 'MLX5_', 'LD_', 'CMOCKA_'))}
    environment.update(more)
    return environment


def softhca(*arguments, env=None, **options):
    """Runs the command; returns the CompletedProcess with text output."""
    return subprocess.run([TOOL, *arguments], env=clean_environment(**(env or {})), text=True, timeout=60,
                          check=False, **{'stdout': subprocess.PIPE, 'stderr': subprocess.PIPE, **options})


def alone():
    """Runs the test again in its own namespaces, if possible: there are no names and processes of other tests."""
    inside = 'TEST_ALONE'
    unshare = ['unshare', '--net', '--pid', '--mount-proc', '--fork', '--kill-child']
    if inside in os.environ or os.geteuid() != 0 or not shutil.which('ip'):
        return
    if subprocess.run([*unshare, 'true'], stderr=subprocess.DEVNULL, check=False).returncode:
        return
    os.environ[inside] = '1'
    os.execvp('unshare', [*unshare, 'sh', '-c', 'ip link set lo up; "$@"; exit $?', 'sh', sys.executable, *sys.argv])


class Tap(unittest.TestResult):
    """Prints a TAP line per test method."""

    def line(self, verdict, test, text=''):
        print(f'{verdict} {self.testsRun} - {test.id().split(".", 1)[1]}')
        for part in text.splitlines():
            print('#', part)

    def addSuccess(self, test):
        self.line('ok', test)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.line('not ok', test, self.failures[-1][1])

    def addError(self, test, err):
        super().addError(test, err)
        self.line('not ok', test, self.errors[-1][1])

    def addSubTest(self, test, subtest, err):
        failures, errors = len(self.failures), len(self.errors)
        super().addSubTest(test, subtest, err)
        for _, text in self.failures[failures:] + self.errors[errors:]:
            self.line('not ok', subtest, text)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        print(f'ok {self.testsRun} # SKIP {test.id().split(".", 1)[1]}: {reason}')


def main():
    suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules['__main__'])
    result = Tap()
    suite.run(result)
    print(f'1..{result.testsRun}')
    sys.exit(0 if result.wasSuccessful() and result.testsRun else 1)
