#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks an installation: the places of its files, that it can be moved, and that it does not shadow the system's
libraries.

install.py BUILD PREFIX VERSION
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import harness

BUILD, PREFIX, VERSION = sys.argv[1:4]
SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCRIPTS = ('__main__.py', 'common.py', 'page.css', 'page.js', 'page.py', 'report.py', 'report_timeline.py', 'timeline.py', 'timeline_maker.py',
           'timeline_records.py', 'timeline_requests.py', 'timeline_tracks.py')
PROGRAM = '''
#include <stdio.h>
#include <softhca.h>
int main(void) { return puts(softhca_version()) < 0; }
'''
PROJECT = '''
cmake_minimum_required(VERSION 3.13)
project(user C)
find_package(softhca %s REQUIRED)
add_executable(program program.c)
target_link_libraries(program softhca::softhca)
enable_testing()
add_test(NAME program COMMAND softhca::command run -- $<TARGET_FILE:program>)
'''


def output(*command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=60, **options).stdout


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = tempfile.mkdtemp()
        output('meson', 'install', '-C', BUILD, '--no-rebuild', '--quiet', '--destdir', cls.root)
        # Not where it was configured for.
        cls.prefix = f'{cls.root}/moved'
        shutil.move(f'{cls.root}{PREFIX}', cls.prefix)
        cls.tool = f'{cls.prefix}/bin/softhca'
        cls.libraries = f'{cls.prefix}/lib/softhca'

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.root)

    def test_files(self):
        files = {os.path.relpath(os.path.join(directory, name), self.prefix)
                 for directory, _, names in os.walk(self.prefix) for name in names}
        self.assertEqual(files, {
            'bin/softhca', 'include/softhca.h', 'lib/pkgconfig/softhca.pc',
            'lib/cmake/softhca/softhca-config.cmake', 'lib/cmake/softhca/softhca-config-version.cmake',
            'share/man/man1/softhca.1', 'share/man/man3/softhca.h.3', 'share/man/man7/softhca-faults.7', 'share/man/man7/softhca-settings.7',
            'share/bash-completion/completions/softhca.bash', 'share/zsh/site-functions/_softhca', 'share/fish/vendor_completions.d/softhca.fish',
            *(f'share/softhca/{name}' for name in SCRIPTS),
            'lib/softhca/libsofthca.so', 'lib/softhca/libsofthca.so.0',
            'lib/softhca/libibverbs.so.1', 'lib/softhca/libmlx5.so.1', 'lib/softhca/librdmacm.so.1'})

    def test_libraries_find_each_other_and_nothing_of_the_build(self):
        for library in ('libsofthca.so.0', 'libibverbs.so.1', 'libmlx5.so.1', 'librdmacm.so.1'):
            dynamic = output('readelf', '-dW', f'{self.libraries}/{library}')
            self.assertIn(f'soname: [{library}]', dynamic)
            self.assertNotIn('RPATH', dynamic.replace('RUNPATH', ''))
            self.assertNotIn(BUILD, dynamic)
            if library != 'libsofthca.so.0':
                self.assertIn('runpath: [$ORIGIN]', dynamic)

    def test_command(self):
        environment = harness.clean_environment()
        self.assertRegex(output(self.tool, '--version', env=environment), rf'^softhca {re.escape(VERSION)}( \([0-9a-f]+\))?\n$')
        self.assertEqual(output(self.tool, 'run', 'printenv', 'LD_LIBRARY_PATH', env=environment),
                         f'{os.path.realpath(self.libraries)}\n')

    def test_scripts(self):
        """Scripts of the installation, which need nothing from the build tree and stay unchanged."""
        environment = harness.clean_environment()
        trace, page = f'{self.root}/trace.json', f'{self.root}/page.html'
        output(self.tool, 'run', '--timeline', trace, '--', 'true', env=environment)
        self.assertEqual(output(self.tool, 'timeline', trace, env=environment), open(trace, encoding='ascii').read())
        output(self.tool, 'report', '--output', page, trace, env=environment)
        self.assertIn('<title>softhca report</title>', open(page, encoding='utf-8').read())
        self.assertEqual(sorted(os.listdir(f'{self.prefix}/share/softhca')), sorted(SCRIPTS))
        for name in SCRIPTS:
            with open(f'{self.prefix}/share/softhca/{name}', encoding='utf-8') as file:
                self.assertNotIn(BUILD, file.read())

    def test_program_with_pkg_config(self):
        environment = harness.clean_environment(PKG_CONFIG_PATH=f'{self.prefix}/lib/pkgconfig')
        flags = output('pkg-config', f'--define-variable=prefix={self.prefix}', '--cflags', '--libs', 'softhca',
                       env=environment).split()
        with open(f'{self.root}/program.c', 'w', encoding='ascii') as source:
            source.write(PROGRAM)
        output('cc', '-Wall', '-Werror', '-o', f'{self.root}/program', f'{self.root}/program.c', *flags)
        self.assertEqual(output(self.tool, 'run', f'{self.root}/program', env=environment), f'{VERSION}\n')
        # Linking with softhca.h must not make a program use our libibverbs without its user's knowledge.
        self.assertNotIn('PATH', output('readelf', '-dW', f'{self.root}/program'))

    @unittest.skipUnless(shutil.which('cmake'), 'cmake is not installed')
    def test_program_with_cmake(self):
        environment = harness.clean_environment()
        project, build = f'{self.root}/project', f'{self.root}/project/build'
        os.mkdir(project)
        with open(f'{project}/program.c', 'w', encoding='ascii') as source:
            source.write(PROGRAM)
        with open(f'{project}/CMakeLists.txt', 'w', encoding='ascii') as source:
            source.write(PROJECT % VERSION)
        output('cmake', '-S', project, '-B', build, f'-DCMAKE_PREFIX_PATH={self.prefix}', env=environment)
        output('cmake', '--build', build, env=environment)
        output('ctest', '--test-dir', build, '--output-on-failure', env=environment)
        self.assertNotIn('PATH', output('readelf', '-dW', f'{build}/program'))
        # A later version than this one is not found.
        with open(f'{project}/CMakeLists.txt', 'w', encoding='ascii') as source:
            source.write(PROJECT % '999.0')
        with self.assertRaises(subprocess.CalledProcessError):
            output('cmake', '-S', project, '-B', build, f'-DCMAKE_PREFIX_PATH={self.prefix}', env=environment,
                   stderr=subprocess.DEVNULL)


class Places(unittest.TestCase):
    """Places where make install refuses to install, and files that make uninstall leaves."""

    def script(self, *words, **environment):
        return subprocess.run([f'{SOURCE}/scripts/install', *words], env=harness.clean_environment(**environment), text=True,
                              capture_output=True, timeout=60, check=False)

    def expect_line(self, done, pattern):
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, rf'\Amake install: [^\n]*{pattern}[^\n]*\n\Z')

    @unittest.skipUnless(shutil.which('make'), 'make is not installed')
    def test_prefix_in_the_source(self):
        header = f'{SOURCE}/include/softhca.h'
        with tempfile.TemporaryDirectory() as directory:
            for prefix in (SOURCE, f'{SOURCE}/include', f'{directory}/b-release/x'):
                done = subprocess.run(['make', '-C', SOURCE, 'install', f'PREFIX={prefix}', f'BUILD={directory}/b'], text=True,
                                      env=harness.clean_environment(DESTDIR=''), capture_output=True, timeout=60, check=False)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(f'make install: PREFIX={prefix} is in the ', done.stderr)
                self.assertNotIn('Traceback', done.stderr)
            self.assertEqual(os.listdir(directory), [])
        self.assertTrue(os.path.exists(header))

    def test_link_to_the_source(self):
        with tempfile.TemporaryDirectory() as directory:
            os.symlink(SOURCE, f'{directory}/link')
            self.expect_line(self.script('check', BUILD, f'{directory}/link'), 'is in the source directory')
            self.expect_line(self.script('check', BUILD, '/', DESTDIR=SOURCE), 'is in the source directory')
            self.assertEqual(self.script('check', BUILD, '/usr', DESTDIR=f'{SOURCE}/debian/tmp').returncode, 0)

    def test_prefix_that_cannot_be_written(self):
        self.expect_line(self.script('check', BUILD, '/dev/null/softhca'), '/dev/null is not a directory')
        # Root may write everywhere except to a file system like this one.
        self.expect_line(self.script('files', BUILD, '/proc', DESTDIR='/proc/softhca'), '/proc')

    def test_uninstall(self):
        with tempfile.TemporaryDirectory() as root:
            self.assertEqual(self.script('files', BUILD, PREFIX, DESTDIR=root).returncode, 0)
            own = f'{root}{PREFIX}/include/another.h'
            with open(own, 'w', encoding='ascii') as file:
                file.write('\n')
            done = self.script('remove', BUILD, PREFIX, DESTDIR=root)
            self.assertEqual((done.returncode, done.stderr), (0, ''))
            self.assertEqual([f'{directory}/{name}' for directory, _, names in os.walk(root) for name in names], [own])
            self.assertFalse(os.path.exists(f'{root}{PREFIX}/lib/softhca'))


if __name__ == '__main__':
    harness.main()
