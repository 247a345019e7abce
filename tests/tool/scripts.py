#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Scripts used by the Makefile: scripts/deps names missing packages, scripts/build shows progress, scripts/sum adds up
counts.

scripts.py SOURCE
"""
import os
import subprocess
import sys
import tempfile
import unittest

import harness

SOURCE = os.path.abspath(sys.argv[1])


def run(script, *words, **environment):
    return subprocess.run([f'{SOURCE}/scripts/{script}', *words], env=harness.clean_environment(**environment), text=True,
                          capture_output=True, timeout=60, check=False)


class Deps(unittest.TestCase):
    # Package names of docs/use/install.md's distributions for ISA-L, OpenSSL, rdma-core and cmocka.
    INSTALLERS = {
        'debian': 'apt-get install -y --no-install-recommends libibverbs-dev librdmacm-dev libisal-dev libssl-dev libcmocka-dev',
        'fedora': 'dnf install -y rdma-core-devel isa-l-devel openssl-devel libcmocka-devel',
        'arch': 'pacman -S --needed rdma-core isa-l openssl cmocka',
        'alpine': 'apk add rdma-core-dev isa-l-dev openssl-dev cmocka-dev',
    }

    def lacking(self, release):
        """Returns the output on a machine where pkg-config finds nothing."""
        with tempfile.TemporaryDirectory() as directory:
            with open(f'{directory}/os-release', 'w', encoding='ascii') as file:
                file.write(release)
            done = run('deps', '--probe', 'build', 'cmocka', OS_RELEASE=f'{directory}/os-release', PKG_CONFIG_LIBDIR=directory,
                       PKG_CONFIG_PATH='')
        self.assertEqual((done.returncode, done.stdout), (1, ''))
        self.assertIn('Missing: libibverbs libmlx5 librdmacm libisal libcrypto cmocka \n', done.stderr)
        return [line.strip() for line in done.stderr.splitlines() if line.startswith('    ')]

    def test_all_in_one_message(self):
        for release, name in (('ID=debian\n', 'debian'), ('ID=ubuntu\nID_LIKE=debian\n', 'debian'), ('ID=fedora\n', 'fedora'),
                              ('ID="rocky"\nID_LIKE="rhel centos fedora"\n', 'fedora'), ('ID=arch\n', 'arch'),
                              ('ID=alpine\n', 'alpine')):
            self.assertEqual(self.lacking(release), [self.INSTALLERS[name]], release)

    def test_unknown_distribution(self):
        self.assertEqual(self.lacking('ID=nixos\n'), list(self.INSTALLERS.values()))

    def test_nothing_missing(self):
        done = run('deps', '--probe', 'build', 'cmocka')
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, '', ''))


class Build(unittest.TestCase):
    def build(self, *commands):
        """Runs scripts/build with a ninja that runs the shell @commands."""
        with tempfile.TemporaryDirectory() as directory:
            with open(f'{directory}/ninja', 'w', encoding='ascii') as file:
                file.write('\n'.join(['#!/bin/sh', *commands]))
            os.chmod(f'{directory}/ninja', 0o755)
            with open(f'{directory}/build.ninja', 'w', encoding='ascii'):
                pass
            done = run('build', directory, PATH=f'{directory}:{os.environ["PATH"]}')
            return done.returncode, done.stdout.replace(directory, 'B'), done.stderr

    def test_progress(self):
        steps = 'for i in $(seq 0 250); do echo "[$i/250] Compiling C object $i"; done'
        lines = ''.join(f'building B: {step} of 250 steps\n' for step in (100, 200, 250))
        self.assertEqual(self.build(steps), (0, lines, ''))

    def test_failure(self):
        status, _, errors = self.build('echo "[1/2] Compiling C object a"', 'echo "FAILED: a"', 'echo "a.c:1: error: no"', 'exit 3')
        self.assertEqual((status, errors), (1, 'FAILED: a\na.c:1: error: no\n'))


class Sum(unittest.TestCase):
    def test_counts(self):
        done = run('sum', 'echo "3 passed, 1 failed"; echo "FAILED   a"; exit 1', 'true', 'false', 'echo "5 passed, 0 failed"; exit 3')
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout.splitlines()[-4:], [
            'FAILED   a', 'FAILED   false', 'FAILED   echo "5 passed, 0 failed"; exit 3 ended with 3', '9 passed, 3 failed'])

    def test_success(self):
        done = run('sum', 'echo "3 passed, 0 failed"', 'true')
        self.assertEqual((done.returncode, done.stdout.splitlines()[-1]), (0, '4 passed, 0 failed'))


if __name__ == '__main__':
    harness.main()
