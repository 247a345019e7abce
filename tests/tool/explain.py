#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
Output of softhca run for a program that fails: folding, colours, and that the program does not wait for its reader.

explain.py COMMAND LIBRARIES PROGRAM: the program is flushed.c, with one failure, 127 flushes, and a child.
"""
import os
import pty
import re
import socket
import subprocess
import sys
import tempfile
import termios
import tty
import unittest

from harness import TOOL, clean_environment, main, softhca

PROGRAM = os.path.abspath(sys.argv[3])
RECORDS = '128\n'


def run(*options, env=None, stderr=subprocess.PIPE):
    """The program must not wait for the reader of its standard error: otherwise the time would run out."""
    done = subprocess.run([TOOL, 'run', *options, '--', PROGRAM], env=clean_environment(**(env or {})), timeout=60,
                          check=False, stdout=subprocess.PIPE, stderr=stderr)
    assert (done.returncode, done.stdout.decode()) == (0, RECORDS), done
    return done.stderr.decode() if done.stderr is not None else None


class Folding(unittest.TestCase):
    def expect_three_lines(self, text):
        lines = text.splitlines()
        self.assertEqual(len(lines), 3, text)
        self.assertRegex(lines[0], r'^mlx5_0 qp 0x[0-9a-f]+ RDMA_WRITE wr_id 0 → LOC_PROT_ERR: ')
        self.assertRegex(lines[1], r'^mlx5_0 qp 0x[0-9a-f]+ RDMA_WRITE wr_id 1 → WR_FLUSH_ERR: ')
        self.assertRegex(lines[2], r'^mlx5_0 qp 0x[0-9a-f]+: … and 126 more \[[0-9]+ [A-Z_]+\]$')

    def test_one_failure(self):
        self.expect_three_lines(run())

    def test_over_a_link(self):
        """With a device thread."""
        self.expect_three_lines(run('--link', 'shm'))

    def test_file(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, 'why')
            self.assertEqual(run('--explain', path), '')
            with open(path, encoding='utf-8') as file:
                self.expect_three_lines(file.read())


class ErrorExitcode(unittest.TestCase):
    """softhca run --error-exitcode=N."""

    def expect(self, status, *arguments, **env):
        done = softhca('run', '--error-exitcode=77', *arguments, env=env)
        self.assertEqual(done.returncode, status, done)
        return done

    def test_explained(self):
        self.expect(77, '--', PROGRAM)

    def test_nothing(self):
        self.expect(0, '--', 'true')
        self.expect(3, '--', 'sh', '-c', 'exit 3')

    def test_wherever_lines_go(self):
        self.expect(77, '--explain=off', '--', PROGRAM)
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, 'why')
            self.expect(77, f'--explain={path}', '--', PROGRAM)
            self.assertTrue(os.path.getsize(path))

    def test_children_and_other_programs(self):
        self.expect(77, '--', 'sh', '-c', f'{PROGRAM}; exec true')
        self.expect(77, '--', 'sh', '-c', f'(exec {PROGRAM}); exit 3')

    def test_signal(self):
        self.expect(-15, '--', 'sh', '-c', f'{PROGRAM}; kill $$')

    def test_with_a_page(self):
        with tempfile.TemporaryDirectory() as directory:
            page = os.path.join(directory, 'page.html')
            self.expect(77, '--report', page, '--', PROGRAM)
            self.assertTrue(os.path.getsize(page))

    def test_wrong(self):
        for value in ('0', '256', '-1', 'x', '', '1x', ' 1'):
            done = softhca('run', f'--error-exitcode={value}', '--', 'true')
            self.assertEqual(done.returncode, 2, value)
            self.assertEqual(done.stderr, f'softhca: --error-exitcode is a number from 1 to 255, not "{value}"\n')


OTHER_USER = ('setpriv', '--reuid=65534', '--regid=65534', '--clear-groups')


@unittest.skipIf(os.geteuid() != 0, 'needs root, to be another user')
class ErrorExitcodeOfUsers(unittest.TestCase):
    """The marks of --error-exitcode are those of the program, whatever its user, and of no other program."""

    def test_program_that_changed_its_user(self):
        if subprocess.run([*OTHER_USER, TOOL, '--version'], check=False, capture_output=True).returncode:
            self.skipTest('another user may not run the command')
        done = softhca('run', '--error-exitcode=77', '--', *OTHER_USER, PROGRAM)
        self.assertEqual(done.returncode, 77, done)

    def test_other_user(self):
        """Without the environment of the program, the file is neither listed nor found."""
        script = ('touch "$1" && ls /tmp/softhca-marks-*/ && exit 4; '
                  'for file in /tmp/softhca-marks-* /tmp/softhca-marks-*/*; do echo x >>"$file"; done; exit 3')
        with tempfile.TemporaryDirectory() as directory:
            os.chmod(directory, 0o777)
            ran = os.path.join(directory, 'ran')
            done = softhca('run', '--error-exitcode=77', '--', *OTHER_USER, 'env', '-i', '/bin/sh', '-c', script, 'sh', ran)
            self.assertEqual(done.returncode, 3, done)
            self.assertTrue(os.path.exists(ran))

    def test_nothing_is_left(self):
        done = softhca('run', '--error-exitcode=77', '--', 'sh', '-c', 'dirname "$SOFTHCA_EXPLAIN_MARKS"')
        self.assertFalse(os.path.exists(done.stdout.strip()), done)


class NobodyReads(unittest.TestCase):
    def test_pipe(self):
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        while True:
            try:
                os.write(writer, b'x' * 4096)
            except BlockingIOError:
                break
        os.set_blocking(writer, True)
        run(stderr=writer)
        self.assertTrue(os.get_blocking(writer))
        os.close(writer)
        with os.fdopen(reader, 'rb') as file:
            self.assertNotIn(b'qp', file.read())

    def test_closed_pipe(self):
        reader, writer = os.pipe()
        os.close(reader)
        run(stderr=writer)
        os.close(writer)

    def test_socket(self):
        reader, writer = socket.socketpair()
        writer.setblocking(False)
        while True:
            try:
                writer.send(b'x' * 4096)
            except BlockingIOError:
                break
        writer.setblocking(True)
        run(stderr=writer)
        reader.close()
        writer.close()

    def test_stopped_terminal(self):
        terminal, program = pty.openpty()
        termios.tcflow(program, termios.TCOOFF)
        run(stderr=program)
        os.close(terminal)
        os.close(program)


class Color(unittest.TestCase):
    def on_terminal(self, *options, env=None):
        terminal, program = pty.openpty()
        tty.setraw(program)
        run(*options, env={'TERM': 'xterm', **(env or {})}, stderr=program)
        text = os.read(terminal, 65536).decode()
        os.close(program)
        os.close(terminal)
        return text

    def test_terminal(self):
        failure, flush, more, _ = self.on_terminal().split('\n')
        self.assertRegex(failure, '^\033\\[1;31mmlx5_0 .* → LOC_PROT_ERR\033\\[0m: [^\033]*$')
        self.assertRegex(flush, '^\033\\[2mmlx5_0 [^\033]* → WR_FLUSH_ERR: [^\033]*\033\\[0m$')
        self.assertRegex(more, '^\033\\[2mmlx5_0 [^\033]* more [^\033]*\033\\[0m$')

    def test_not_wanted(self):
        for env in ({'NO_COLOR': '1'}, {'TERM': 'dumb'}, {'TERM': ''}, {'SOFTHCA_COLOR': 'never'}):
            self.assertNotIn('\033', self.on_terminal(env=env), env)
        self.assertNotIn('\033', self.on_terminal('--color', 'never'))
        # Not everywhere, and an empty NO_COLOR has no effect.
        self.assertNotIn('\033', run(env={'TERM': 'xterm'}))
        self.assertIn('\033', self.on_terminal(env={'NO_COLOR': ''}))

    def test_wanted(self):
        """Options of softhca override NO_COLOR."""
        self.assertIn('\033', run('--color', 'always', env={'NO_COLOR': '1'}))
        self.assertEqual(re.sub('\033\\[[0-9;]*m', '', run('--color=always')).count('\n'), 3)

    def test_wrong(self):
        self.assertEqual(softhca('run', '--color', 'red', 'true').returncode, 2)


if __name__ == '__main__':
    main()
