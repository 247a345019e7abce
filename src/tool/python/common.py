# SPDX-License-Identifier: BSD-2-Clause
"""The command that these scripts are a part of: its tables, its errors, its progress line."""
import json
import subprocess
import sys
import time


class Failure(Exception):
    """Ends the command with one line on standard error and exit status 1."""


def say(text):
    """Writes a line to standard error, as the command does in C."""
    # A name of a file or of a program may have bytes that a terminal obeys.
    line = ''.join(c if c.isprintable() else '?' for c in text)
    sys.stderr.write(f'softhca: {line}\n')


class Tool:
    """The program that started this one."""

    def __init__(self, path):
        self.path = path

    def data(self, *arguments):
        """Returns the output of `softhca data`: the tables have one source, in C."""
        done = subprocess.run([self.path, 'data', *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        if done.returncode:
            raise Failure(done.stderr.decode('utf-8', 'replace').strip().replace('softhca: ', '', 1))
        return json.loads(done.stdout.decode('utf-8', 'replace'))


class Progress:
    """
    A line on standard error for work that takes longer than a second, written over and over, and erased at the end; only if that is a
    terminal and the result goes elsewhere.
    """
    FIRST, AGAIN = 1.0, 0.2

    def __init__(self, what, out):
        wanted = sys.stderr.isatty() and not out.isatty()
        self.what, self.next, self.shown = what, time.monotonic() + self.FIRST if wanted else float('inf'), False

    def tell(self, done, whole):
        """@done of @whole are done. Cheap enough to be called for each of a few thousand."""
        if self.next == float('inf') or time.monotonic() < self.next:
            return
        self.next, self.shown = time.monotonic() + self.AGAIN, True
        sys.stderr.write(f'\r\x1b[Ksofthca: {self.what}: {100 * done // whole} %')
        sys.stderr.flush()

    def end(self):
        """Erases the line, if there is one."""
        if self.shown:
            sys.stderr.write('\r\x1b[K')
            sys.stderr.flush()
