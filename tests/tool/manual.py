#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
The manual pages beside softhca(1): what they show works, and they have all that the header, the parser of fault scripts and the
table of settings have.

manual.py COMMAND LIBRARIES SOURCE
"""
import os
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

from harness import LIBRARIES, clean_environment, main, softhca

SOURCE = os.path.abspath(sys.argv[3])
ROFF = {r'\-': '-', r'\(aq': "'", r'\(ga': '`', r'\(ha': '^', r'\(ti': '~', r'\e': '\\'}


def read(name):
    with open(os.path.join(SOURCE, name), encoding='utf-8') as file:
        return file.read()


def plain(text):
    """Returns the text without fonts, with the characters that escapes stand for."""
    return re.sub(r'\\(?:f[BIPR]|-|\((?:aq|ga|ha|ti)|e)', lambda found: ROFF.get(found.group(), ''), text)


def examples(page):
    return [plain(text) for text in re.findall(r'(?ms)^\.EX\n(.*?)^\.EE$', read(f'man/{page}'))]


def without_comments(text):
    return re.sub(r'(?s)/\*.*?\*/', '', text)


def squeezed(text):
    """Returns text with one blank between words and none around marks, so that only the tokens are compared."""
    return re.sub(r'\s*(\W)\s*', r'\1', re.sub(r'\s+', ' ', text)).strip()


class Faults(unittest.TestCase):
    def test_examples(self):
        scripts = 0
        for text in examples('softhca-faults.7'):
            if text.startswith('$ '):
                command, _, output = text[2:].partition('\n')
                done = softhca(*shlex.split(command)[1:])
                self.assertEqual((done.returncode, done.stderr), (2, output))
                continue
            if text.startswith('softhca '):
                words = shlex.split(text)
                text = words[words.index('--faults') + 1]
            done = softhca('info', '--faults', text)
            self.assertEqual((done.returncode, done.stderr), (0, ''), text)
            scripts += 1
        self.assertGreater(scripts, 5)

    def test_examples_inside_sentences(self):
        for script in ('of send at packet 3 drop', 'on ud rnr', 'of ack corrupt payload'):
            self.assertIn(f'\\fB{script}\\fP', read('man/softhca-faults.7'))
        self.assertEqual(softhca('info', '--faults', 'of send at packet 3 drop').returncode, 0)
        for refused in ('on ud rnr', 'of ack corrupt payload', 'at packet 2 from packet 3 drop', 'drop 1% drop', 'kill 2',
                        'of send of write drop', 'for 2 packets drop 2', 'seed 1; seed 2', 'reorder by 1001', 'drop 100.1%',
                        'delay 3601s', 'delay 2ms..1ms', 'of qp 0x1000000 drop', 'DROP'):
            self.assertEqual(softhca('info', '--faults', refused).returncode, 2, refused)
        for taken in ('reorder by 1000', 'drop 0.000001%', 'delay 3600s', 'delay 1ms..1ms 5%', 'of qp 0xffffff to qp 0 drop', 'reorder 5 by 2',
                      '; ;drop#all\n\nkill', 'for 2 packets at packet 3 drop', 'at packet 3 drop 2', 'seed 18446744073709551615'):
            self.assertEqual(softhca('info', '--faults', taken).returncode, 0, taken)

    def test_every_word_of_the_language(self):
        """The parser lists the words that it expects: each of them is at the head of a paragraph, or in bold."""
        page = plain(read('man/softhca-faults.7'))
        heads = ' '.join(re.findall(r'(?m)^\.TP\n(.*)$', page)).replace(',', ' ,')
        bold = ' '.join(re.findall(r'\\fB([^\\]*)\\fP', read('man/softhca-faults.7')))

        def expected(script):
            error = softhca('info', '--faults', script).stderr
            text = re.search(r'expected (.*?), not "\?"', error).group(1)
            text = re.sub(r'a condition \((.*?)\) or an action \((.*?)\)', r'\1, \2', text)
            return [word.strip('" ') for word in re.split(r', | or ', text)]

        for script in ('?', 'on ?', 'of ?', 'corrupt ?', 'delay 1 ?', 'of cm sidr ?'):
            for word in expected(script):
                word = {'corrupt ?': 'corrupt ' + word, 'of cm sidr ?': 'cm sidr ' + word}.get(script, word)
                if word == 'seed':
                    self.assertIn('\n.SH SEED\n', page)
                elif script == 'on ?' or script == 'delay 1 ?':
                    self.assertRegex(bold, rf'(^| ){word}( |$)', script)
                else:
                    self.assertRegex(heads, rf'(^| ){word}( |$)', script)
        # The messages of the connection manager are optional words that the parser does not list; their table does.
        for message in re.findall(r'(?m)^CM_MESSAGE\((\w+)', read('src/format/cm_messages.def')):
            words = 'cm ' + message.lower().replace('_', ' ')
            self.assertRegex(heads, rf'(^| ){words}( |$)')
            self.assertEqual(softhca('info', '--faults', f'of {words} drop').returncode, 0, words)


class Header(unittest.TestCase):
    def setUp(self):
        self.header = without_comments(read('include/softhca.h'))
        self.page = read('man/softhca.h.3')

    def test_functions(self):
        synopsis = squeezed(plain(self.page.split('.SH SYNOPSIS')[1].split('.SH DESCRIPTION')[0]))
        header = re.sub(r'static inline ', '', self.header)
        prototypes = re.findall(r'(?ms)^((?:const |struct )?\w+ \*?(softhca_\w+)\([^{;]*?\))(?=;|\n\{)', header)
        for prototype, _ in prototypes:
            self.assertIn(squeezed(prototype) + ';', synopsis)
        names = {name for _, name in prototypes}
        self.assertEqual(names, set(re.findall(r'\b(softhca_\w+)\(', header)))
        self.assertEqual(set(re.findall(r'\b(softhca_\w+)\(', synopsis)), names)
        self.assertEqual(set(re.findall(r'\bsofthca_\w+', self.page.split('.SH NAME')[1].split('.SH')[0])), names)
        description = self.page.split('.SH DESCRIPTION')[1]
        for name in names:
            self.assertIn(f'.BR {name} ()', description)

    def test_structures(self):
        shown = {squeezed(without_comments(text)) for text in examples('softhca.h.3')}
        structures = re.findall(r'(?ms)^(?:#define SOFTHCA_FIGURES \d+\n\n)?(?:struct|enum) softhca_\w+ \{.*?^\};', self.header)
        self.assertEqual(len(structures), len(re.findall(r'\b(?:struct|enum) softhca_\w+ \{', self.header)))
        for structure in structures:
            self.assertIn(squeezed(structure), shown)

    def test_program(self):
        program = [text for text in examples('softhca.h.3') if 'main(' in text]
        self.assertEqual(len(program), 1)
        with tempfile.TemporaryDirectory() as directory:
            with open(f'{directory}/program.c', 'w', encoding='utf-8') as file:
                file.write(program[0])
            built = subprocess.run(['cc', '-Wall', '-Wextra', '-Werror', f'-I{SOURCE}/include', '-o', f'{directory}/program',
                                    f'{directory}/program.c', f'-L{LIBRARIES}', f'-Wl,-rpath-link,{LIBRARIES}', '-lsofthca', '-libverbs'],
                                   env=clean_environment(), text=True, timeout=60, check=False, stderr=subprocess.PIPE)
            self.assertEqual((built.returncode, built.stderr), (0, ''))
            done = softhca('run', '--explain', 'off', '--', f'{directory}/program')
        self.assertEqual((done.returncode, done.stderr), (0, ''))
        self.assertIn('ibv_reg_mr', done.stdout)


class Settings(unittest.TestCase):
    def test_all_and_no_others(self):
        page = plain(read('man/softhca-settings.7'))
        headings = re.findall(r'(?m)^\.TP\n(SOFTHCA_\w+), --(\S+)$', page)
        self.assertEqual([name for name, _ in headings], ['SOFTHCA_' + option.upper().replace('-', '_') for _, option in headings])
        self.assertEqual([option for _, option in headings], re.findall(r'(?m)^  --([a-z-]+)(?: VALUE|\[=VALUE\])', softhca('--help').stdout))

    def test_no_markup_of_other_documents(self):
        page = read('man/softhca-settings.7')
        self.assertTrue(page.isascii())
        self.assertNotRegex('\n'.join(page.splitlines()[3:]), '`')

    def test_examples(self):
        shown = examples('softhca-settings.7')
        self.assertEqual(len(shown), 2)
        words = shlex.split(shown[0])
        done = softhca('info', *words[2:words.index('--')])
        self.assertEqual((done.returncode, done.stderr), (0, ''))
        self.assertIn('profile connectx', done.stdout)
        words = shlex.split(shown[1])
        done = softhca(*words[words.index('softhca') + 1:], env=dict(word.split('=') for word in words if '=' in word))
        self.assertEqual((done.returncode, done.stderr), (0, ''))
        self.assertRegex(done.stdout, r'(?m)^.*PROFILE.*connectx.*environment')


if __name__ == '__main__':
    main()
