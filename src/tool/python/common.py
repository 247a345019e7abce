# SPDX-License-Identifier: BSD-2-Clause
"""Access to the softhca command: its tables, its errors, its progress line."""
import json
import subprocess
import sys
import time


class Failure(Exception):
    """Ends the command with one line on standard error and exit status 1."""


def say(text):
    """Writes a line to standard error, as the command does in C."""
    # Names of files and programs may contain terminal control characters.
    line = ''.join(c if c.isprintable() else '?' for c in text)
    sys.stderr.write(f'softhca: {line}\n')


class Tool:
    """The softhca command, which started this process."""

    def __init__(self, path):
        self.path = path

    def data(self, *arguments):
        """Returns the output of `softhca data`, since the tables are defined in C only."""
        done = subprocess.run([self.path, 'data', *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        if done.returncode:
            raise Failure(done.stderr.decode('utf-8', 'replace').strip().replace('softhca: ', '', 1))
        return json.loads(done.stdout.decode('utf-8', 'replace'))


class Progress:
    """
    A progress line on standard error for work of more than a second, updated in place and erased at the end; only if that is a
    terminal and the result goes elsewhere.
    """
    FIRST, AGAIN = 1.0, 0.2

    def __init__(self, what, out):
        wanted = sys.stderr.isatty() and not out.isatty()
        self.what, self.next, self.shown = what, time.monotonic() + self.FIRST if wanted else float('inf'), False

    def tell(self, done, whole):
        """Reports that @done of @whole are done. Cheap enough for thousands of calls."""
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
