#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
softhca run --keys: which keys are drawn, the contents of the drawings, that both forms agree, and the limit on their
number.

keys.py COMMAND LIBRARIES SOURCE SCATTERED_RECORDS LENT_WINDOW KEY_TESTS...
"""
import os
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

from harness import LIBRARIES, clean_environment, main, softhca

SOURCE, SCATTERED_RECORDS, LENT_WINDOW, *KEY_TESTS = map(os.path.abspath, sys.argv[3:])
NAME = re.compile(r'(\d+)-mlx5_0-(0x[0-9a-f]+)-(\d+)\.(\d+)\.(txt|svg)')
MOST = 256 + 64
MOST_BYTES = 256 * 1024


def read(path):
    with open(path, encoding='utf-8') as file:
        return file.read()


def texts(svg):
    """Returns the words of an SVG, as seen by a reader."""
    root = ElementTree.fromstring(svg)
    assert root.tag == '{http://www.w3.org/2000/svg}svg'
    return [''.join(element.itertext()) for element in root.iter('{http://www.w3.org/2000/svg}text')]


def drawings(directory):
    """{(process, number, serial, version): (text, svg)}"""
    found = {}
    for name in os.listdir(directory):
        match = NAME.fullmatch(name)
        assert match, name
        found.setdefault(match.groups()[:4], {})[match[5]] = read(os.path.join(directory, name))
    assert all(len(both) == 2 for both in found.values())
    return {key: (both['txt'], both['svg']) for key, both in found.items()}


def run(directory, *program, env=None, status=0):
    done = softhca('run', '--keys', directory, '--', *program, env=env)
    assert done.returncode == status, done.stdout + done.stderr
    return done


class Keys(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.directory.name, 'keys')

    def tearDown(self):
        self.directory.cleanup()

    def only(self):
        found = drawings(self.path)
        self.assertEqual(len(found), 1, list(found))
        return next(iter(found.values()))

    def scatter(self, *options, rows):
        """A table of `rows` rows of 64 bytes, laid out as by the example: columns of 40, 16 and 8 bytes."""
        table = os.path.join(self.directory.name, 'table')
        with open(table, 'wb') as file:
            file.write(bytes(64 * rows))
        return run(self.path, SCATTERED_RECORDS, *options, table)

    def test_interleaved(self):
        done = self.scatter(rows=1000)
        self.assertRegex(done.stderr, r'(?m)^softhca: mlx5_0: 1 drawing of keys in ' + re.escape(self.path))
        text, svg = self.only()
        self.assertIn('3 entries of 64 bytes in all, repeated 1,000 times', text)
        self.assertIn('[0x0, +64,000)', text)
        # Starts of the rows, and offset of each value in its column.
        starts = {}
        for offset, size, entry, row, address in re.findall(
                r'(?m)^   \+0x([0-9a-f]+) +(\d+) bytes +entry (\d), repetition (\d+) +--> 0x([0-9a-f]+) ', text):
            entry, row = int(entry), int(row)
            self.assertEqual(int(offset, 16), row * 64 + (0, 40, 56)[entry])
            self.assertEqual(int(size), (40, 16, 8)[entry])
            starts.setdefault(entry, set()).add(int(address, 16) - row * (40, 16, 8)[entry])
        self.assertEqual([len(starts[entry]) for entry in range(3)], [1, 1, 1])
        shown = len(re.findall(r'(?m)^   \+0x', text))
        self.assertIn(f'… {3000 - shown:,} more', text)
        self.assertRegex(text, r'queue pair 0x[0-9a-f]+, local read: 1 time, 64,000 bytes, within \[0x0, \+64,000\)')
        self.assertNotIn('!', text)
        self.assertNotIn('refused', svg)

    def test_few_rows_are_all_there(self):
        self.scatter(rows=3)
        text, _ = self.only()
        self.assertEqual(len(re.findall(r'(?m)^   \+0x', text)), 9)
        self.assertNotIn('more (', text)

    def test_refused(self):
        """One row more than the columns have: the last value of each is refused, the others are not."""
        self.scatter('--out-of-range', rows=1000)
        text, svg = self.only()
        self.assertEqual(re.findall(r'(?m)^!! \+0x([0-9a-f]+) ', text),
                         [f'{1000 * 64 + begin:x}' for begin in (0, 40, 56)])
        self.assertEqual(len(re.findall(r'(?m)^ ! \+0x', text)), 6)
        self.assertRegex(text, r'(?m)^!! .* RDMA_WRITE wr_id 1 → LOC_PROT_ERR: .* \[7 KEY_RANGE; ')
        self.assertRegex(text, r'wanted: local read of \[0x0, \+64,064\)')
        self.assertNotIn('used by', text)
        self.assertIn('class="bad"', svg)
        self.assertIn('wanted', texts(svg))

    def test_picture_of_the_readme(self):
        """The current drawing is the same; only addresses, keys and processes differ."""
        self.scatter('--out-of-range', rows=1000)
        picture = read(os.path.join(SOURCE, 'docs/use/key.svg'))
        # Line breaks in an explanation depend on the length of its figures.
        words = [re.sub(r'0x[0-9a-f]+|process \d+', '#', ' '.join(texts(svg))).split() for svg in (picture, self.only()[1])]
        self.assertEqual(*words, 'run scripts/key-picture BUILD')

    def test_window(self):
        """Lent at 1 KiB of 4 KiB, used, revoked, used: each state has its own drawing."""
        run(self.path, LENT_WINDOW)
        found = sorted(drawings(self.path).items(), key=lambda item: int(item[0][3]))
        self.assertEqual([key[3] for key, _ in found], ['1', '2'])
        lent, revoked = (both[0] for _, both in found)
        for text in (lent, revoked):
            self.assertIn('… 1,024 bytes before', text)
            self.assertIn('… 2,048 bytes after', text)
        self.assertRegex(lent, r'type 2 window .*: live')
        self.assertRegex(lent, r'queue pair 0x[0-9a-f]+, remote write: 1 time, 1,024 bytes')
        self.assertNotIn('!!', lent)
        self.assertRegex(revoked, r'type 2 window .*: invalidated')
        self.assertIn('[2 KEY_FREE; ', revoked)
        self.assertIn('!! +0x0  1,024 bytes', revoked)

    def test_both_forms_say_the_same(self):
        """The SVG is XML, and has each word of a layout, of blocks or of a refusal that the text has."""
        for program in KEY_TESTS[:-1]:
            run(self.path, program)
        found = drawings(self.path)
        self.assertGreater(len(found), 50)
        blocks = 0
        for key, (text, svg) in found.items():
            seen = re.sub(r'\s+', '', ''.join(texts(svg)))
            for line in re.findall(r'(?m)^(?:!!| !|  ) (\S.*)$', text):
                for word in re.split(r' +\+ (?=\d: )| {2,}| --> | <-- | \| ', line):
                    word = re.sub(r'^--> |^<-- |^\| *|^… and \d+ more.*|\s+', '', word)
                    if word in ('', '|'):
                        continue
                    where = re.match(r'(0x[0-9a-f]+)(.*)', word)
                    for part in (where.groups() if where else (word,)):
                        self.assertIn(part, seen, f'{key}: {line}')
            self.assertLess(len(svg.encode()), MOST_BYTES)
            self.assertNotRegex(svg, r'(?i)href|<script|url\(|<image')
            self.assertIn('prefers-color-scheme:dark', svg)
            blocks += 'blocks: in memory' in text
        self.assertGreater(blocks, 5)
        self.assertTrue(any('AES-XTS' in text for text, _ in found.values()))
        bad = [text for text, _ in found.values() if 'expected 0x5678, found 0x5679' in text]
        self.assertTrue(bad)
        for text in bad:
            # tests/api/signature_errors.c changes the application tag of block 1.
            self.assertRegex(text, r'(?m)^!! 1  \+0x208: 512 .*<-- application tag in memory')

    def test_bounded(self):
        """tests/api/mw_bind.c binds some thousand windows; some in children, which have their own drawings."""
        done = run(self.path, KEY_TESTS[-1])
        drawn, more = re.search(r'(\d+) drawings of keys in .*, … ([\d,]+) more not drawn', done.stderr).groups()
        processes = [name.split('-')[0] for name in os.listdir(self.path)]
        self.assertEqual(max(map(processes.count, processes)), 2 * int(drawn))
        self.assertGreaterEqual(int(drawn), 256)
        self.assertLessEqual(int(drawn), MOST)
        self.assertGreater(int(more.replace(',', '')), 0)

    def test_wrong_directory(self):
        """softhca run does not start the program. A program that runs without it continues, and the library explains why there are no drawings."""
        below = os.path.join(self.path, 'below')
        done = run(below, LENT_WINDOW, status=1)
        self.assertEqual((done.stdout, done.stderr), ('', f'softhca: --keys: {below}: No such file or directory\n'))
        environment = clean_environment(SOFTHCA_KEYS=below, SOFTHCA_EXPLAIN='stderr', LD_LIBRARY_PATH=LIBRARIES)
        done = subprocess.run([LENT_WINDOW], env=environment, text=True, timeout=60, check=True, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE)
        self.assertRegex(done.stderr, r'(?m)^softhca: SOFTHCA_KEYS=.*/keys/below: No such file or directory$')
        with open(self.path, 'w', encoding='ascii') as file:
            file.write('mine')
        done = run(self.path, LENT_WINDOW, status=1)
        self.assertIn('Not a directory', done.stderr)
        self.assertEqual(read(self.path), 'mine')

    def test_off(self):
        done = softhca('run', '--', LENT_WINDOW)
        self.assertNotIn('drawing', done.stderr)


if __name__ == '__main__':
    main()
