# SPDX-License-Identifier: BSD-2-Clause
"""
The documents, and the blocks of code in them. The third argument of the program is the directory of the source.

DOCUMENTS are those for users and contributors, NOTES those next to the code that they describe.
"""
import glob
import os
import re
import sys

SOURCE = os.path.abspath(sys.argv[3])
DOCUMENTS = sorted([*(os.path.join(SOURCE, name) for name in ('README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md')),
                    *glob.glob(f'{SOURCE}/docs/**/*.md', recursive=True)])
NOTES = sorted(path for top in ('src', 'tests') for path in glob.glob(f'{SOURCE}/{top}/**/*.md', recursive=True))
# Fenced code with its inside as the group, or indented code, across blank lines. Indented code begins after a blank line
# (CommonMark 4.4); without one it continues a paragraph.
CODE = re.compile(r'(?ms)^```[^\n]*\n(.*?)^```$|(?:\A|(?<=\A\n)|(?<=\n\n))(?: {4}|\t)[^\n]*\n(?:\n*(?: {4}|\t)[^\n]*\n)*')


def read(path):
    with open(path, encoding='utf-8') as file:
        return file.read()
