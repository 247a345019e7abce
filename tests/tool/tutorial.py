#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
docs/use/tutorial.md: its program is that of the examples, and its commands have the effects described.

tutorial.py COMMAND LIBRARIES SOURCE
"""
import os
import re
import subprocess
import sys
import tempfile
import unittest

from harness import TOOL, clean_environment, main

SOURCE = os.path.abspath(sys.argv[3])
# Commands that build softhca and put it into the path: already done.
DONE = ['make', 'export PATH=$PWD/build/src/tool:$PATH']


def read(name):
    with open(os.path.join(SOURCE, name), encoding='utf-8') as file:
        return file.read()


def commands(text):
    """Returns [(command, its output)] of the indented blocks with a prompt."""
    found = []
    for block in re.findall(r'(?m)(?:^(?: {4}[^\n]*)?\n)+', text):
        for line in block.splitlines():
            if line.startswith('    $ '):
                found.append((line[6:], []))
            elif found and line.startswith('    '):
                found[-1][1].append(line[4:])
    return found


def pattern(lines):
    """Hexadecimal numbers differ from run to run; … stands for the rest of a line, and alone for any lines."""
    text = ''
    for line in lines:
        if line.strip() == '…':
            text += r'(?:.*\n)*?'
            continue
        text += re.sub('0x[0-9a-f]+', '0x[0-9a-f]+', re.escape(line)).replace('…', '.*') + r' *\n'
    return text


class Tutorial(unittest.TestCase):
    def test_program_is_the_example(self):
        listing = '\n'.join(re.findall(r'(?ms)^```c\n(.*?)^```$', read('docs/use/tutorial.md')))
        self.assertEqual(listing, read('examples/tutorial.c'))

    def test_commands(self):
        found = commands(re.sub(r'(?ms)^```c\n.*?^```$', '', read('docs/use/tutorial.md')))
        self.assertEqual([command for command, _ in found[:2]], DONE)
        self.assertGreater(len(found), 9)
        with tempfile.TemporaryDirectory() as directory:
            os.symlink(f'{SOURCE}/examples', f'{directory}/examples')
            env = clean_environment(PATH=f'{os.path.dirname(TOOL)}:{os.environ["PATH"]}')
            for command, lines in found[2:]:
                done = subprocess.run(['sh', '-c', command], cwd=directory, env=env, text=True, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, timeout=60, check=False)
                self.assertEqual(done.returncode, 0, f'{command}\n{done.stdout}')
                self.assertRegex(done.stdout, rf'\A{pattern(lines)}\Z', command)


main()
