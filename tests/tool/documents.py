#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
Checks the documents: links resolve, named files and functions exist, and calls of softhca have existing commands and
options.

documents.py COMMAND LIBRARIES SOURCE
"""
import glob
import os
import re
import unittest

from documents_text import CODE, DOCUMENTS, NOTES, SOURCE, read
from harness import main, softhca

# At the beginning of a command, optionally with a path.
CALL = re.compile(r'(?:^\s*(?:\$ )?|[;|&] *|[$<]\(|\w+=\S* )(?:\S*/)?softhca[ \t]+(.*)')


def code_lines(text):
    """Lines of the code blocks, with those that end in a backslash joined to the next."""
    for block in CODE.finditer(text):
        yield from re.sub(r'\\\n\s*', '', block[0]).splitlines()


def anchors(text):
    """Returns GitHub's anchors of the headings."""
    headings = re.findall(r'(?m)^#+ (.+?) *$', CODE.sub('', text))
    return {re.sub(r'[^\w\- ]', '', heading.lower()).replace(' ', '-') for heading in headings}


def broken_links(path, text):
    prose = re.sub(r'`[^`]*`', '', CODE.sub('', text))
    for target in re.findall(r'\]\(([^)\s]+)\)', prose):
        if re.match(r'[a-z]+:', target):
            continue
        name, _, anchor = target.partition('#')
        there = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
        if not os.path.exists(there) or (anchor and anchor not in anchors(text if there == path else read(there))):
            yield target


def sources():
    """Returns the files of the source, each by all suffixes of its path: 'a/b/c.h', 'b/c.h' and 'c.h'."""
    known = set()
    for top in ('src', 'tests', 'scripts', 'include', 'examples', 'bench', 'fuzz', 'docs', 'man', 'debian'):
        for directory, _, files in os.walk(os.path.join(SOURCE, top)):
            for name in files:
                parts = os.path.relpath(os.path.join(directory, name), SOURCE).split(os.sep)
                known.update('/'.join(parts[first:]) for first in range(len(parts)))
    return known


def missing_files(text, known):
    """Returns source files that the text names in code, `file.c`, but that do not exist."""
    for name in re.findall(r'`([\w./-]+\.(?:c|h|def|md))`', CODE.sub('', text)):
        if name not in known and not name.startswith('/'):
            yield name


def identifiers():
    """Returns the words of the sources, which the notes may name as functions."""
    known = set()
    for top in ('src', 'tests', 'include', 'scripts'):
        for path in glob.glob(f'{SOURCE}/{top}/**/*', recursive=True):
            if path.endswith(('.c', '.h', '.def', '.py')):
                known.update(re.findall(r'\w+', read(path)))
    return known


def missing_functions(text, known):
    """Returns functions that the text names in code, `function()`, but that are missing in the sources."""
    for name in re.findall(r'`([a-z_0-9]+)\(\)`', CODE.sub('', text)):
        if name not in known:
            yield f'{name}()'


def options(words, alone=('--lint', '--no-presence', '--shell')):
    """Returns the command's own words: options of `run` come before the program, later words belong to the program."""
    valued = False
    for place, word in enumerate(words):
        if word == '--':
            return words[:place]
        if word.startswith('--'):
            valued = '=' not in word and word not in alone
        elif words[0] == 'run' and place and not valued:
            return words[:place]
        else:
            valued = False
    return words


def calls(text):
    """Returns the calls of softhca in code blocks and in code within sentences."""
    spans = re.findall(r'`softhca\s([^`]+)`', CODE.sub('', text))
    for line in [*(match[1] for line in code_lines(text) for match in CALL.finditer(line)), *spans]:
        line = re.sub(r"'[^']*'|\"[^\"]*\"", 'TEXT', line)
        words = re.split(r'\s[#|&<>]|[;)"]', line)[0].split()
        if words:
            yield options(words)


def vocabulary():
    """Returns {command: options}, by --help."""
    said = softhca('--help').stdout
    settings, _, own = said.partition('\nOptions of one command:\n')
    commands = {name: set() for name in re.findall(r'(?m)^  softhca ([a-z]+)', said)}
    users = re.search(r'(?m)^Options of ([a-z, ]+), each', settings)[1].split(', ')
    for name in users:
        commands[name].update(re.findall(r'(?m)^  (--[a-z-]+)', settings))
    for name, option in re.findall(r'(?m)^  ([a-z]+) (--[a-z-]+)', own):
        commands[name].add(option)
    return commands


class Documents(unittest.TestCase):
    def test_links(self):
        self.assertEqual([(os.path.relpath(path, SOURCE), link) for path in DOCUMENTS + NOTES for link in broken_links(path, read(path))],
                         [])

    def test_a_broken_link_is_found(self):
        text = '# A title: x\n[one](gone.md) [two](#no-such) [three](#a-title-x) `[four](gone)` [five](../README.md#nothing)\n'
        self.assertEqual(list(broken_links(os.path.join(SOURCE, 'docs/use/mkeys.md'), text)),
                         ['gone.md', '#no-such', '../README.md#nothing'])

    def test_files(self):
        known = sources()
        pages = NOTES + [path for path in DOCUMENTS if os.path.basename(path) in ('architecture.md', 'adding.md', 'CONTRIBUTING.md')]
        self.assertEqual([(os.path.relpath(path, SOURCE), name) for path in pages for name in missing_files(read(path), known)], [])

    def test_a_missing_file_is_found(self):
        text = 'See `src/core/lock.h`, `core/lock.h`, `lock.h`, `core/key.h`, `gone.c`.\n'
        self.assertEqual(list(missing_files(text, sources())), ['core/key.h', 'gone.c'])

    def test_functions(self):
        known = identifiers()
        pages = NOTES + [path for path in DOCUMENTS if path.endswith('/inside/architecture.md')]
        self.assertEqual([(os.path.relpath(path, SOURCE), name) for path in pages for name in missing_functions(read(path), known)], [])

    def test_a_missing_function_is_found(self):
        text = '`softhca_version()` and `softhca_' + 'gone()` of `struct lint_hooks`\n'
        self.assertEqual(list(missing_functions(text, identifiers())), ['softhca_' + 'gone()'])

    def wrong(self, text):
        known = vocabulary()
        for command, *words in calls(text):
            if command in ('-h', '--help', '-V', '--version', 'help', 'version'):
                continue
            if command not in known:
                yield command
                continue
            for word in words:
                if word.startswith('--') and word.split('=')[0] not in known[command]:
                    yield f'{command} {word}'

    def test_commands_and_options(self):
        texts = {os.path.relpath(path, SOURCE): read(path) for path in DOCUMENTS}
        self.assertEqual([(path, wrong) for path, text in texts.items() for wrong in self.wrong(text)], [])
        self.assertGreater(sum(len(list(calls(text))) for text in texts.values()), 60)

    def test_a_wrong_option_is_found(self):
        text = '''
    $ softhca run --keyz x -- ./program --any
    softhca fly
    build/src/tool/softhca decode packet --numb 3 wire.pcapng
    softhca run --lint ./program --any

and `softhca top --twice`.
'''
        self.assertEqual(list(self.wrong(text)), ['run --keyz', 'fly', 'decode --numb', 'top --twice'])


main()
