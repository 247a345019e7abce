#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
Timeline files, traces and inputs of a report with random damage: each is read, or refused with one line, without
further effects.

The readers run in this process, so that thousands of files take seconds. The seed is fixed; a failure names its round.

mutated.py COMMAND LIBRARIES PING_PONG
"""
import io
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

from harness import LIBRARIES, TOOL, clean_environment, main

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(TOOL), 'python'))
import common
import report
import timeline
import timeline_maker
import timeline_records
import timeline_tracks

PING_PONG = os.path.abspath(sys.argv[3])
SEED = 22
FILES, TRACES, REPORTS = 2000, 1500, 150
# observe/timeline_file.h: bytes of the head, of a row, of a chunk.
HEAD, ROW, CHUNK = 4096, 64, 32768
CHUNKS_AT, ROWS_AT = 24, 28
# Numbers that readers of counts and lengths often mishandle.
EXTREMES = (0, 1, 2, 127, 128, 255, 256, 0x7fffffff, 0x80000000, 0xffffffff, 1 << 62, 1 << 63, (1 << 64) - 1)


def mutate(randomness, content, begin, end):
    """Returns @content with some of the bytes in [@begin, @end) changed."""
    damaged = bytearray(content)
    for _ in range(randomness.choice((1, 2, 8, 100))):
        at = randomness.randrange(begin, end)
        if randomness.random() < 0.5:
            damaged[at] = randomness.randrange(256)
        else:
            number = struct.pack('<Q', randomness.choice(EXTREMES))[:randomness.choice((1, 2, 4, 8))]
            damaged[at:at + len(number)] = number[:len(damaged) - at]
    return bytes(damaged)


class Mutated(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.mkdtemp()
        cls.tool = common.Tool(TOOL)
        cls.tables = cls.tool.data('timeline')

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.directory)

    def setUp(self):
        self.randomness = random.Random(SEED)

    def recorded(self, **settings):
        """Makes a small file of records: a few rows, and the first chunk that a run has filled."""
        path = f'{self.directory}/good'
        environment = clean_environment(SOFTHCA_TIMELINE=path, SOFTHCA_TIMELINE_RECORDS='2048', LD_LIBRARY_PATH=LIBRARIES, **settings)
        subprocess.run([PING_PONG, '30'], env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)
        [name] = [name for name in os.listdir(self.directory) if name.endswith('.records')]
        with open(f'{self.directory}/{name}', 'rb') as file:
            content = file.read()
        os.unlink(f'{self.directory}/{name}')
        [rows] = struct.unpack_from('<I', content, ROWS_AT)
        small = bytearray(content[:HEAD + 4 * ROW] + content[HEAD + rows * ROW:HEAD + rows * ROW + CHUNK])
        struct.pack_into('<II', small, CHUNKS_AT, 1, 4)
        return bytes(small)

    def write(self, content):
        path = f'{self.directory}/file'
        with open(path, 'wb') as file:
            file.write(content)
        return path

    def check_trace(self, text):
        events = json.loads(text)['traceEvents']
        for event in events:
            self.assertIsInstance(event['ts'], float)
            self.assertIn(event['ph'], 'MXBEbestf')
        return events

    def made(self, content):
        """Returns the events of the trace of a file of records, or None if it is refused."""
        path, out = self.write(content), io.StringIO()
        reader = timeline_records.Reader(self.tables)
        if reader.started(path) is None:
            return None
        try:
            reader.add(path)
        except common.Failure as failure:
            self.assertRegex(str(failure), '^[^\n]+$')
            return None
        events = reader.events()
        trace = timeline_tracks.Trace(out, timeline_maker.base_of(events))
        timeline.write_records(reader, events, trace, timeline.Processes())
        trace.end()
        return self.check_trace(out.getvalue())

    def damaged(self, good, places):
        """Returns @good with an error: cut, lengthened, or with bytes changed in one of @places."""
        kind = self.randomness.random()
        if kind < 0.1:
            return good[:self.randomness.randrange(len(good))]
        if kind < 0.13:
            return good + self.randomness.randbytes(self.randomness.randrange(5000))
        return mutate(self.randomness, good, *self.randomness.choice(places))

    def test_records(self):
        goods = [self.recorded(), self.recorded(SOFTHCA_LINK='udp', SOFTHCA_FAULTS='drop 5%; duplicate 5%; rnr 5%; seed 7')]
        for good in goods:
            self.assertGreater(len(self.made(good)), 300)
        begin = HEAD + 4 * ROW
        places = (16, 400), (16, 32), (HEAD, begin), (begin, begin + 64), (begin, begin + 4000), (begin, len(goods[0]))
        outcomes = {True: 0, False: 0}
        for round_ in range(FILES):
            content = self.damaged(goods[round_ % 2], places)
            with self.subTest(round=round_):
                outcomes[self.made(content) is not None] += 1
        # Some but not all of them are refused.
        self.assertGreater(min(outcomes.values()), FILES // 20, outcomes)

    def test_huge_counts(self):
        """Counts with a product that overflows 32 or 64 bits are refused before memory is allocated."""
        good = self.recorded()
        for chunks in EXTREMES[4:10]:
            for rows in EXTREMES[4:10]:
                wild = bytearray(good)
                struct.pack_into('<II', wild, CHUNKS_AT, chunks, rows)
                self.assertIsNone(self.made(bytes(wild)), (chunks, rows))

    def test_traces(self):
        done = subprocess.run([TOOL, 'timeline', self.write(self.recorded())], env=clean_environment(), capture_output=True, check=True)
        lines = done.stdout.splitlines(keepends=True)
        good = b''.join(lines[:60] + lines[-1:])
        outcomes = {True: 0, False: 0}
        for round_ in range(TRACES):
            path, out = self.write(self.damaged(good, ((0, 120), (120, len(good)), (len(good) - 80, len(good))))), io.StringIO()
            with self.subTest(round=round_):
                try:
                    made = timeline.Made(path)
                    made.copy(timeline_tracks.Trace(out, made.base_ns), timeline.Processes())
                    outcomes[True] += 1
                except common.Failure as failure:
                    self.assertRegex(str(failure), '^[^\n]+$')
                    outcomes[False] += 1
        self.assertGreater(min(outcomes.values()), TRACES // 20, outcomes)

    def test_reports(self):
        """Traces, explanations and counters; a page is made of each, without markup from them."""
        done = subprocess.run([TOOL, 'timeline', self.write(self.recorded())], env=clean_environment(), capture_output=True, check=True)
        trace = b'\n'.join(line for line in done.stdout.splitlines() if b'"ph":"b"' in line or line.startswith(b'{"display'))
        why = b'mlx5_0 qp 0x40: key 0x5 [7 KEY_RANGE; IBTA C10-57] check it\n' * 20
        counters = b'softhca: counters of ping_pong, process 7\n  packets_sent 5\n  bytes_sent 18446744073709551615\n' * 5
        for round_ in range(REPORTS):
            good = (trace, why, counters)[round_ % 3]
            content = self.damaged(good.replace(b'0x4', b'<x>'), ((0, len(good)),))
            with self.subTest(round=round_):
                out = f'{self.directory}/page'
                report.make(self.tool, out, '0', [self.write(content)])
                with open(out, encoding='utf-8') as file:
                    page = file.read()
                self.assertNotIn('<x>', page)
                self.assertEqual(page.count('<script'), 1)


if __name__ == '__main__':
    main()
