#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""softhca explain agrees with docs/reference/explanations.md, which another program makes of the same table, on each
rule."""
import os
import re
import sys
import unittest

from harness import main, softhca

ROOT = sys.argv[3]


def cell(text):
    """Returns a cell of the document as text: its figures as <0>, <1:kind>."""
    text = re.sub(r'\*(\d(?::\w+)?)\*', r'<\1>', text)
    return text.replace('\\|', '|').replace('\\*', '*').replace('\\<', '<')


def rows():
    """Returns {number: (name, sentence, source, advice)}."""
    with open(os.path.join(ROOT, 'docs/reference/explanations.md'), encoding='utf-8') as file:
        lines = re.findall(r'(?m)^\| (\d+) \| (\w+) \| (.*) \| (.*) \| (.*) \|$', file.read())
    return {int(number): (name, *map(cell, rest)) for number, name, *rest in lines}


RULES = rows()


def blocks(text):
    """Returns {number: {title: line}} of the output for several rules."""
    found = {}
    for block in text.strip().split('\n\n'):
        first, *lines = block.split('\n')
        number, name = first.split()
        found[int(number)] = {'name': name, **{line[2:15].strip(): line[15:] for line in lines}}
    return found


def clean(text):
    """Removes the escapes and italics that only the document has."""
    return text.replace('`', '').replace('<', '').replace('>', '')


class Rules(unittest.TestCase):
    def test_table_is_there(self):
        self.assertGreater(len(RULES), 400)

    def test_each_rule_by_number_and_name(self):
        done = softhca('explain', *map(str, RULES))
        self.assertEqual((done.returncode, done.stderr), (0, ''))
        printed = blocks(done.stdout)
        self.assertEqual(set(printed), set(RULES))
        for number, (name, sentence, source, advice) in RULES.items():
            got = printed[number]
            self.assertEqual(got['name'], name)
            self.assertEqual((clean(got['says']), got['source'], got['what to do']), (clean(sentence), source, advice))
            self.assertEqual('vendor_err' in got, number <= 255)
            if '<' in got['says']:
                self.assertNotRegex(got['for example'], r'[{<]\d')
                for word in ('unknown', 'no state', 'a reason that is', 'a status that is'):
                    self.assertEqual(word in got['for example'], word in got['says'], got)
        by_name = softhca('explain', *(row[0] for row in RULES.values()))
        self.assertEqual(by_name.stdout, done.stdout)

    def test_list(self):
        done = softhca('explain')
        self.assertEqual((done.returncode, done.stderr), (0, ''))
        listed = [line.split()[:2] for line in done.stdout.splitlines()]
        self.assertEqual({int(number): name for number, name in listed}, {n: row[0] for n, row in RULES.items()})

    def test_each_sentence_has_an_example(self):
        """src/tool/samples.def has figures for each rule with figures; docs/inside/adding.md."""
        printed = blocks(softhca('explain', *map(str, RULES)).stdout)
        self.assertEqual([number for number, got in printed.items() if '<' in got['says'] and 'for example' not in got], [])

    def test_real_figures(self):
        """Rule 95 with the figures of a queue pair instead of 10, 20, 30."""
        got = blocks(softhca('explain', '95').stdout)[95]['for example']
        self.assertRegex(got, r'^queue pair 0x\w+ of .* did not answer the request and [0-7] repetitions \(timeout [12]?\d; '
                              r'link: (local|shm|udp)\)$')

    def test_example(self):
        """The sentence as in tests/explain, with figures of its kinds."""
        got = blocks(softhca('explain', '6').stdout)[6]['for example']
        self.assertRegex(got, r'^key 0x\w+ is a (?:memory region|layout key) that allows [a-z |]+; the request needs remote write '
                              r'for \[0x\w+, \+\d+\)$')


class Forms(unittest.TestCase):
    def test_ways_to_name_a_rule(self):
        line = 'mlx5_0 qp 0x40 RDMA_WRITE wr_id 1 → LOC_PROT_ERR: [0x1, +5). [7 KEY_RANGE; IBTA C10-57] Keep …'
        for text in ('7', '0x7', '0x07', 'KEY_RANGE', 'key_range', 'RULE_KEY_RANGE', 'key-range', line,
                     'mlx5_0 qp 0x40: … and 126 more [7 KEY_RANGE]'):
            done = softhca('explain', text)
            self.assertEqual((done.returncode, done.stderr), (0, ''), text)
            self.assertIn('7 KEY_RANGE\n', done.stdout)

    def test_rules_of_a_status(self):
        for text in ('REM_ACCESS_ERR', 'IBV_WC_REM_ACCESS_ERR', 'rem_access_err'):
            done = softhca('explain', text)
            self.assertEqual((done.returncode, done.stderr), (0, ''), text)
            listed = [line.split()[1] for line in done.stdout.splitlines()]
            self.assertIn('KEY_RANGE', listed)
            self.assertNotIn('RETRY_EXHAUSTED', listed)
        for text, rule in (('ENOMEM', 'SQ_FULL'), ('EBUSY', 'PD_IN_USE'), ('WR_FLUSH_ERR', 'FLUSHED'), ('RETRY_EXC_ERR', 'RETRY_EXHAUSTED')):
            self.assertIn(rule, [line.split()[1] for line in softhca('explain', text).stdout.splitlines()], text)

    def test_near_names(self):
        for text, near in (('KEY_RAGNE', 'KEY_RANGE'), ('flushd', 'FLUSHED'), ('window', 'WINDOW_REGION_GONE')):
            done = softhca('explain', text)
            self.assertEqual((done.returncode, done.stdout), (1, ''))
            self.assertEqual(done.stderr.count('\n'), 1)
            self.assertIn(f'softhca: no rule "{text}"; near it: ', done.stderr)
            self.assertIn(near, done.stderr)

    def test_unknown(self):
        # 29 and 147 are not rules and never will be.
        for text in ('29', '147', '99999999999999999999', '-0', '', '0', 'xyzzyxyzzy', 'A' * 5000, '\n\x1b[2J', '[', '[7 ', '7x'):
            done = softhca('explain', '--', text)
            self.assertEqual((done.returncode, done.stdout), (1, ''), text)
            self.assertRegex(done.stderr, r'\Asofthca: no rule "[ -~]*" \(softhca explain lists all\)\n\Z')

    def test_one_of_several_is_unknown(self):
        done = softhca('explain', '7', 'nothing_like_it', '34')
        self.assertEqual(done.returncode, 1)
        self.assertEqual(set(blocks(done.stdout)), {7, 34})

    def test_wrong_use(self):
        done = softhca('explain', '--all')
        self.assertEqual((done.returncode, done.stdout), (2, ''))
        self.assertEqual(done.stderr, 'softhca: unknown option "--all" (try softhca explain --help)\n')
        self.assertEqual(softhca('explain', '--help').returncode, 0)

    def test_no_setting_matters(self):
        done = softhca('explain', '7', env={'SOFTHCA_SEED': 'dice'})
        self.assertEqual((done.returncode, done.stderr), (0, ''))


if __name__ == '__main__':
    main()
