#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""softhca completion: words that bash, zsh and fish offer for a command line; options are those of softhca(1),
values those of --help."""
import os
import pty
import re
import select
import shutil
import subprocess
import tempfile
import time
import unittest

from harness import TOOL, clean_environment, main, softhca

# Words as split by bash, which makes "=" a word.
ASK = '''
source "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
COMPREPLY=()
_softhca
printf '%s\\n' "${COMPREPLY[@]}"
'''


@unittest.skipUnless(shutil.which('bash'), 'no bash')
class Completion(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.script = f'{cls.directory.name}/softhca'
        with open(cls.script, 'w', encoding='utf-8') as file:
            done = softhca('completion', stdout=file)
        assert (done.returncode, done.stderr) == (0, '')
        for name in ('one.pcapng', 'two.txt'):
            with open(f'{cls.directory.name}/{name}', 'w', encoding='ascii'):
                pass

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()

    def offered(self, *words):
        done = subprocess.run(['bash', '--norc', '-c', ASK, 'bash', self.script, TOOL, *words], text=True, capture_output=True,
                              env=clean_environment(), cwd=self.directory.name, timeout=60, check=False)
        self.assertEqual(done.stderr, '')
        return sorted(done.stdout.split())

    def test_script_is_one(self):
        done = subprocess.run(['bash', '-n', self.script], text=True, capture_output=True, check=False, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ''))

    def test_commands(self):
        commands = re.findall(r'(?m)^  softhca ([a-z]+) ', softhca('--help').stdout)
        self.assertGreater(len(commands), 8)
        self.assertEqual(self.offered(''), sorted([*commands, '--help', '--version']))
        self.assertEqual(self.offered('de'), ['decode'])
        self.assertEqual(self.offered('--v'), ['--version'])
        self.assertEqual(self.offered('nothing'), [])

    def test_options(self):
        settings = re.findall(r'(?m)^  --([a-z-]+)(?: VALUE|\[=VALUE\])', softhca('--help').stdout)
        self.assertEqual(self.offered('env', '--'), sorted(f'--{name}' for name in [*settings, 'format', 'help']))
        self.assertEqual(self.offered('run', '--no'), ['--no-presence'])
        self.assertEqual(self.offered('env', '--no'), [])
        self.assertEqual(self.offered('top', '--'), ['--help', '--interval', '--json', '--once', '--sort'])
        self.assertEqual(self.offered('run', '--mtu', '512', '--cr'), ['--crypto', '--crypto-file', '--crypto-tweak'])
        self.assertEqual(self.offered('run', '--mtu', '=', '512', '--cr'), ['--crypto', '--crypto-file', '--crypto-tweak'])

    def test_values(self):
        for equals in ([], ['=']):
            self.assertEqual(self.offered('run', '--profile', *equals, ''), ['connectx', 'man'])
            self.assertEqual(self.offered('run', '--profile', *equals, 'c'), ['connectx'])
            self.assertEqual(self.offered('info', '--mtu', *equals, ''), ['1024', '2048', '256', '4096', '512', 'auto'])
            self.assertEqual(self.offered('run', '--explain', *equals, ''), ['all', 'off', 'one.pcapng', 'softhca', 'stderr', 'two.txt'])
            self.assertEqual(self.offered('run', '--seed', *equals, ''), [])
            self.assertEqual(self.offered('decode', 'wqe', '--transport', *equals, ''), ['dc', 'rc', 'uc', 'ud', 'xrc'])
            self.assertEqual(self.offered('decode', '--cqe-size', *equals, '1'), ['128'])
        self.assertEqual(self.offered('run', '--profile', '='), ['connectx', 'man'])

    def test_value_that_may_be_left_out(self):
        offered = self.offered('run', '--lint', '=')
        with open(f'{os.path.dirname(os.path.abspath(__file__))}/../../docs/use/lint.md', encoding='utf-8') as text:
            names = [name.lower().replace('_', '-') for name in re.findall(r'(?m)^\| 9\d\d \| (\w+) \|', text.read())]
        self.assertEqual(offered, sorted(['off', 'on', *names, *('-' + name for name in names)]))
        self.assertEqual(self.offered('run', '--lint', '=', 'of'), ['off'])
        self.assertEqual(self.offered('run', '--lint', '=', '-cq'), ['-cq-too-small'])
        # The next word after it is an option, or the program.
        self.assertEqual(self.offered('run', '--lint', '--prof'), ['--profile'])
        self.assertIn('env', self.offered('run', '--lint', 'en'))
        self.assertEqual(self.offered('run', '--lint', '=', 'on', '--prof'), ['--profile'])

    def test_each_word_that_is_offered_is_taken(self):
        for setting in re.findall(r'(?m)^  --([a-z-]+)(?: VALUE|\[=VALUE\])', softhca('--help').stdout):
            for value in self.offered('run', f'--{setting}', '=', ''):
                if not os.path.exists(f'{self.directory.name}/{value}'):
                    done = softhca('env', f'--{setting}={value}')
                    self.assertEqual(done.returncode, 0, done.stderr)

    def test_arguments(self):
        self.assertEqual(self.offered('decode', ''), ['bsf', 'cqe', 'mkey', 'packet', 'wqe'])
        self.assertEqual(self.offered('decode', '--number', '3', 'p'), ['packet'])
        self.assertEqual(self.offered('decode', 'packet', 'o'), ['one.pcapng'])
        self.assertEqual(self.offered('encode', 't'), ['two.txt'])
        for words in (('timeline',), ('report',), ('report', '--output'), ('run', '--report'), ('report', 'two.txt')):
            self.assertEqual(self.offered(*words, 'o'), ['one.pcapng'])
        self.assertEqual(self.offered('data', ''), ['packets', 'rules', 'timeline'])
        self.assertEqual(self.offered('data', 'packets', 'o'), ['one.pcapng'])
        self.assertEqual(self.offered('completion', ''), ['bash', 'fish', 'zsh'])
        # A setting that names a directory has no files.
        os.makedirs(f'{self.directory.name}/one.keys', exist_ok=True)
        self.addCleanup(os.rmdir, f'{self.directory.name}/one.keys')
        self.assertEqual(self.offered('run', '--keys', 'o'), ['off', 'one.keys'])
        self.assertEqual(self.offered('explain', 'key_ra'), ['KEY_RANGE'])

    def test_program(self):
        self.assertIn('env', self.offered('run', 'en'))
        self.assertIn('env', self.offered('run', '--mtu', '512', '--', 'en'))
        self.assertIn('one.pcapng', self.offered('run', '--no-presence', 'cat', 'o'))
        # From there on options belong to the program.
        self.assertEqual(self.offered('run', 'cat', '--mtu', ''), ['one.pcapng', 'softhca', 'two.txt'])
        self.assertEqual(self.offered('run', 'cat', '--pro'), [])
        self.assertIn('env', self.offered('hosts', '2', '--', 'en'))
        self.assertEqual(self.offered('hosts', '2', '--interf'), ['--interface-mtu'])
        self.assertEqual(self.offered('hosts', '2', 'cat', '--pro'), [])


class Other(unittest.TestCase):
    """The completions of both other shells."""
    ASKED = (('softhca encod', 'encode'), ('softhca run --profi', '--profile'), ('softhca run --profile=conn', 'connectx'),
             ('softhca decode --cqe-size 1', '128'), ('softhca decode pac', 'packet'), ('softhca explain KEY_RAN', 'KEY_RANGE'),
             ('softhca run --report one', 'one.pcapng'), ('softhca timeline one', 'one.pcapng'), ('softhca completion fi', 'fish'),
             ('softhca run --keys one', 'one.keys'), ('softhca run ls one', 'one.pcapng'))

    def setUp(self):
        self.directory = self.enterContext(tempfile.TemporaryDirectory())
        with open(f'{self.directory}/one.pcapng', 'w', encoding='ascii'):
            pass
        self.environment = clean_environment(PATH=f'{os.path.dirname(TOOL)}:{os.environ["PATH"]}', HOME=self.directory, TERM='dumb')

    def script(self, shell):
        path = f'{self.directory}/.script'
        with open(path, 'w', encoding='utf-8') as file:
            done = softhca('completion', shell, stdout=file)
        self.assertEqual((done.returncode, done.stderr), (0, ''))
        return path

    def test_wrong_use(self):
        for arguments in (['csh'], ['bash', 'zsh'], ['--bash']):
            done = softhca('completion', *arguments)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count('\n')), (2, '', 1))
        self.assertEqual(softhca('completion').stdout, softhca('completion', 'bash').stdout)

    @unittest.skipUnless(shutil.which('fish'), 'no fish')
    def test_fish(self):
        script = self.script('fish')
        os.mkdir(f'{self.directory}/one.keys')
        for line, wanted in self.ASKED:
            with self.subTest(line):
                done = subprocess.run(['fish', '-N', '-c', 'source $argv[1]; complete -C $argv[2]', script, line], text=True,
                                      capture_output=True, env=self.environment, cwd=self.directory, timeout=60, check=False)
                offered = [row.split('\t')[0].split('=')[-1].rstrip('/') for row in done.stdout.splitlines()]
                self.assertIn(wanted, offered, done)
                if '--keys' in line:
                    self.assertNotIn('one.pcapng', offered)

    @unittest.skipUnless(shutil.which('zsh'), 'no zsh')
    def test_zsh(self):
        script = self.script('zsh')
        done = subprocess.run(['zsh', '-n', script], text=True, capture_output=True, check=False, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ''))
        os.mkdir(f'{self.directory}/one.keys')
        for line, wanted in self.ASKED:
            if line.endswith(' one') and '--keys' not in line:
                line += '.p'
            with self.subTest(line):
                self.assertIn(wanted, self.zsh(script, line))

    def zsh(self, script, line):
        """Returns zsh's completion of @line when the tabulator is pressed."""
        child, terminal = pty.fork()
        if not child:
            os.chdir(self.directory)
            os.execvpe('zsh', ['zsh', '-f', '-i'], {**self.environment, 'PS1': ''})
        try:
            os.write(terminal, f"autoload -Uz compinit; compinit -D -u; source {script}; "
                               "bindkey '^X' print-it; print-it() {{ print -r \"<<$BUFFER>>\"; }}; zle -N print-it; echo rea''dy\n"
                     .replace('{{', '{').replace('}}', '}').encode())
            said = self.until(terminal, b'ready\r')
            os.write(terminal, f'{line}\t\x18'.encode())
            said = self.until(terminal, b'>>')
        finally:
            os.kill(child, 9)
            os.waitpid(child, 0)
            os.close(terminal)
        found = re.findall(r'<<(.*?)>>', said.replace('\r', '').replace('\n', ''))
        return found[-1] if found else said

    def until(self, terminal, text):
        said, end = b'', time.monotonic() + 60
        while text not in said and time.monotonic() < end:
            if select.select([terminal], [], [], 0.2)[0]:
                said += os.read(terminal, 65536)
        return said.decode('utf-8', 'replace')


if __name__ == '__main__':
    main()
