#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""softhca: options, environment, exit status. Expected values are those of softhca(1)."""
import os
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

from harness import LIBRARIES, TOOL, clean_environment, main, softhca

OPTIONS = ['profile', 'devices', 'device-name', 'pci', 'doorbells', 'explain', 'lint', 'color', 'capture', 'keys', 'seed', 'gids',
           'link', 'faults', 'counters', 'timeline', 'timeline-records', 'roce-port', 'peer-silence', 'mtu', 'cm-response-timeout',
           'cm-retries', 'cm-packet-lifetime', 'cm-grace-ms', 'crypto', 'crypto-tweak', 'crypto-file']


def environment_of(*arguments, env=None):
    """Returns the environment that `softhca run` gives a program."""
    done = softhca('run', *arguments, '--', 'env', '-0', env=env)
    assert done.returncode == 0, done.stderr
    return dict(entry.split('=', 1) for entry in done.stdout.split('\0') if entry)


class WrongUse(unittest.TestCase):
    """One clear line on stderr, nothing on stdout, exit status 2."""

    def refused(self, *arguments, text, env=None):
        done = softhca(*arguments, env=env)
        self.assertEqual((done.returncode, done.stdout), (2, ''), done.stderr)
        self.assertEqual(done.stderr.count('\n'), 1, done.stderr)
        self.assertEqual(done.stderr[:9], 'softhca: ')
        self.assertIn(text, done.stderr)

    def test_no_command(self):
        self.refused(text='no command')

    def test_unknown_command(self):
        self.refused('start', text='unknown command "start"')
        self.refused('--profile', 'man', text='unknown option "--profile"')
        self.refused('help', 'start', text='unknown command "start"')
        self.refused('help', 'run', 'run', text='unexpected argument "run"')

    def test_misspelt_words(self):
        for command, meant in (('rnu', 'run'), ('docter', 'doctor'), ('tops', 'top'), ('explian', 'explain')):
            self.refused(command, text=f'unknown command "{command}" (did you mean {meant}?)')
        for option, meant in (('--lnik', 'link'), ('--time-line', 'timeline'), ('--no-presense', 'no-presence')):
            self.refused('run', option, 'x', text=f'unknown option "{option}" (did you mean --{meant}?)')
        self.refused('top', '--jsn', text='unknown option "--jsn" (did you mean --json?)')
        for word in ('x', 'xyzzy', 'o' * 1000, ''):
            done = softhca(word)
            self.assertEqual(done.returncode, 2)
            self.assertNotIn('did you mean', done.stderr)

    def test_unknown_option(self):
        for command in ('run', 'env', 'info', 'doctor'):
            self.refused(command, '--colour', 'red', text='unknown option "--colour"')
            self.refused(command, '--colour=red', text='unknown option "--colour"')
            self.refused(command, '-p', 'man', text='unknown option "-p"')
            # An option must be written in full.
            self.refused(command, '--prof', 'man', text='unknown option "--prof"')
            self.refused(command, '--profiles=man', text='unknown option "--profiles"')

    def test_bad_value(self):
        for command in ('run', 'env', 'info', 'doctor'):
            self.refused(command, '--profile', 'both', text='--profile: bad value "both" (expected: man, connectx)')
            self.refused(command, '--profile=', text='--profile: bad value "" (expected: man, connectx)')
            self.refused(command, '--devices', '0', text='--devices: bad value "0" (expected: 1 to 16)')
            self.refused(command, '--mtu=1500', text='--mtu: bad value "1500"')
            self.refused(command, '--device-name', 'a/b', text='--device-name: bad value "a/b"')

    def test_missing_value(self):
        for option in (option for option in OPTIONS if option != 'lint'):
            self.refused('env', f'--{option}', text=f'--{option}: no value given')
            # Otherwise `run --keys -- program` makes a directory that is called "--".
            self.refused('run', f'--{option}', '--', 'true', text=f'--{option}: no value given')
            self.refused('run', f'--{option}', '--lint', 'true', text=f'--{option}: no value given')

    def test_bad_value_in_the_environment(self):
        for command in ('run', 'env', 'info', 'doctor'):
            self.refused(command, env={'SOFTHCA_SEED': 'dice'}, text='SOFTHCA_SEED: bad value "dice"')

    def test_line_stays_one_line(self):
        self.refused('env', '--profile', 'a\nb', text='bad value "a?b"')

    def test_no_program(self):
        self.refused('run', text='no program')
        self.refused('run', '--', text='no program')
        self.refused('run', '--mtu', '512', text='no program')

    def test_argument_too_many(self):
        self.refused('env', 'ls', text='unexpected argument "ls"')
        self.refused('info', '--', 'ls', text='unexpected argument "ls"')


class Help(unittest.TestCase):
    def test_help(self):
        for arguments in (['--help'], ['help'], ['run', '--help'], ['env', '--help'], ['info', '-h'], ['doctor', '--help']):
            done = softhca(*arguments)
            self.assertEqual((done.returncode, done.stderr), (0, ''))
            for option in OPTIONS:
                self.assertRegex(done.stdout, rf'--{option}[ [[]')

    def test_manual_has_the_options_and_no_others(self):
        with open(f'{os.path.dirname(__file__)}/../../man/softhca.1', encoding='ascii') as page:
            manual = page.read().replace('\\-', '-')
        variables = re.findall(r'(?m)^\.BR --(\S+) .*(SOFTHCA_\w+)$', manual)
        helped = re.findall(r'(?m)^  --([a-z-]+)(?: VALUE|\[=VALUE\])', softhca('--help').stdout)
        self.assertEqual([option for option, _ in variables], helped)
        self.assertEqual(sorted(helped), sorted(OPTIONS))
        for option, variable in variables:
            self.assertEqual(variable, 'SOFTHCA_' + option.upper().replace('-', '_'))

    def test_manual_has_the_commands_and_no_others(self):
        with open(f'{os.path.dirname(__file__)}/../../man/softhca.1', encoding='ascii') as page:
            synopsis = page.read().split('.SH SYNOPSIS\n')[1].split('.SH ')[0]
        helped = re.findall(r'(?m)^ +softhca ([a-z]+)', softhca('--help').stdout)
        self.assertIn('run', helped)
        self.assertEqual(re.findall(r'(?m)^\.B softhca ([a-z]+)', synopsis), helped)

    def test_version(self):
        done = softhca('--version')
        self.assertEqual((done.returncode, done.stderr), (0, ''))
        self.assertRegex(done.stdout, r'^softhca \d+\.\d+\.\d+( \([0-9a-f]{7,}\))?\n$')
        for argument in ('-V', 'version'):
            self.assertEqual(softhca(argument).stdout, done.stdout)

    def test_short_help_fits_a_screen(self):
        done = softhca('-h')
        self.assertEqual((done.returncode, done.stderr), (0, ''))
        lines = done.stdout.splitlines()
        self.assertLessEqual(len(lines), 24)
        self.assertLessEqual(max(map(len, lines[2:])), 80)
        self.assertEqual([line.split()[0] for line in lines[2:-5]], re.findall(r'(?m)^  softhca ([a-z]+)', softhca('--help').stdout)[:-1])

    def test_help_of_a_command(self):
        for command in re.findall(r'(?m)^  ([a-z]+) ', softhca('-h').stdout.split('\n\n')[1]):
            with self.subTest(command):
                done = softhca('help', command)
                self.assertEqual((done.returncode, done.stderr), (0, ''))
                self.assertTrue(done.stdout.startswith(f'softhca {command}'))
                self.assertRegex(done.stdout, rf'For example: .*softhca {command}')
                self.assertEqual(softhca(command, '--help').stdout, done.stdout)
                self.assertEqual(softhca(command, '-h').stdout, done.stdout)
        self.assertEqual(softhca('help').stdout, softhca('--help').stdout)
        for command in ('', *re.findall(r'(?m)^  softhca ([a-z]+)', softhca('--help').stdout)[:-1]):
            self.assertEqual([line for line in softhca('help', *([command] if command else [])).stdout.splitlines() if len(line) > 80], [])

    def test_full_disk_is_an_error(self):
        with open('/dev/full', 'w', encoding='ascii') as full:
            done = softhca('--version', stdout=full)
        self.assertEqual(done.returncode, 1)


class Env(unittest.TestCase):
    VALUE = 'drop 1%; at packet 3 drop; seed 7'

    def printed(self, form, env=None):
        done = softhca('env', '--format', form, '--faults', self.VALUE, '--mtu=512', env=env)
        self.assertEqual((done.returncode, done.stderr), (0, ''))
        return done.stdout

    def test_sh(self):
        self.assertEqual(self.printed('sh'), softhca('env', '--faults', self.VALUE, '--mtu=512').stdout)

    def test_github(self):
        """GitHub reads lines NAME=VALUE from $GITHUB_ENV, and takes their values literally."""
        for before, path in ((None, LIBRARIES), ('/a:/b', f'{LIBRARIES}:/a:/b')):
            lines = self.printed('github', env={'LD_LIBRARY_PATH': before} if before else None).splitlines()
            self.assertEqual(lines, [f'LD_LIBRARY_PATH={path}', f'SOFTHCA_FAULTS={self.VALUE}', 'SOFTHCA_MTU=512'] if lines[2].startswith('SOFTHCA_MTU')
                             else [f'LD_LIBRARY_PATH={path}', 'SOFTHCA_MTU=512', f'SOFTHCA_FAULTS={self.VALUE}'])

    def test_docker(self):
        lines = self.printed('docker').splitlines()
        self.assertEqual(lines[0], f'ENV LD_LIBRARY_PATH="{LIBRARIES}"')
        self.assertEqual(sorted(lines[1:]), [f'ENV SOFTHCA_FAULTS="{self.VALUE}"', 'ENV SOFTHCA_MTU="512"'])
        done = softhca('env', '--format=docker', '--keys', '/a"b$c\\d')
        self.assertEqual(done.stdout.splitlines()[1], r'ENV SOFTHCA_KEYS="/a\"b\$c\\d"')

    @unittest.skipUnless(shutil.which('fish'), 'no fish')
    def test_fish(self):
        script = self.printed('fish') + "printf '%s\\n' $SOFTHCA_FAULTS; env | grep LD_LIBRARY_PATH"
        for before, path in (({}, LIBRARIES), ({'LD_LIBRARY_PATH': '/a:/b'}, f'{LIBRARIES}:/a:/b')):
            done = subprocess.run(['fish', '--no-config', '-c', script], env=clean_environment(**before), text=True, capture_output=True,
                                  timeout=60, check=False)
            self.assertEqual(done.stdout.splitlines(), [self.VALUE, f'LD_LIBRARY_PATH={path}'], done.stderr)

    def test_fish_quotes(self):
        done = softhca('env', '--format=fish', '--keys', "/a'b\\c")
        self.assertEqual(done.stdout.splitlines()[1], r"set -gx SOFTHCA_KEYS '/a\'b\\c';")


class Run(unittest.TestCase):
    def test_exit_status_is_the_programs(self):
        for status in (0, 1, 2, 77, 255):
            self.assertEqual(softhca('run', '--', 'sh', '-c', f'exit {status}').returncode, status)

    def test_death_by_signal_is_the_programs(self):
        done = softhca('run', '--', 'sh', '-c', 'kill -TERM $$')
        self.assertEqual(done.returncode, -signal.SIGTERM)

    def test_input_and_output_are_the_programs(self):
        done = softhca('run', '--', 'sh', '-c', 'cat; echo error >&2', input='text')
        self.assertEqual((done.stdout, done.stderr), ('text', 'error\n'))

    def test_arguments_are_the_programs(self):
        done = softhca('run', '--', 'printf', '<%s>', '--mtu', '', 'a b', '--', "'")
        self.assertEqual(done.stdout, "<--mtu><><a b><--><'>")

    def test_options_end_at_the_program(self):
        done = softhca('run', '--mtu=512', 'sh', '-c', 'echo $SOFTHCA_MTU $1', 'sh', '--mtu=1024')
        self.assertEqual(done.stdout, '512 --mtu=1024\n')

    def test_program_that_is_not_there(self):
        done = softhca('run', '--', 'no-such-program')
        self.assertEqual(done.returncode, 127)
        self.assertEqual(done.stderr, 'softhca: cannot run no-such-program: No such file or directory\n')

    def test_output_that_cannot_be_opened(self):
        """One line, and the program does not start; outputs that can be opened leave no files."""
        with tempfile.TemporaryDirectory() as directory:
            file, started = f'{directory}/file', f'{directory}/started'
            with open(file, 'w', encoding='ascii'):
                pass
            outputs = ('explain', 'capture', 'keys', 'counters', 'timeline', 'report')
            for path, error, options in ((f'{directory}/none/x', 'No such file or directory', outputs),
                                         (f'{file}/x', 'Not a directory', outputs),
                                         (file, 'Not a directory', ('keys',)),
                                         (directory, 'Is a directory', [name for name in outputs if name != 'keys']),
                                         (f'all:{directory}/none/x', 'No such file or directory', ('explain',)),
                                         (f'{directory}/%p/x', 'No such file or directory', outputs)):
                for option in options:
                    with self.subTest(option, path=path):
                        done = softhca('run', '--no-presence', f'--{option}', path, '--', 'touch', started)
                        self.assertEqual((done.returncode, done.stdout), (1, ''))
                        named = re.escape(path.removeprefix('all:')).replace('%p', r'\d+')
                        self.assertRegex(done.stderr, rf'^softhca: --{option}: {named}: {error}\n$')
                        # A variable may be the user's as well.
                        if option != 'report':
                            done = softhca('run', '--no-presence', '--', 'touch', started, env={f'SOFTHCA_{option.upper()}': path})
                            self.assertEqual((done.returncode, done.stderr.count('\n')), (1, 1), done.stderr)
            self.assertEqual(os.listdir(directory), ['file'])
            for option in ('explain', 'capture', 'keys', 'counters'):
                self.assertEqual(softhca('run', '--no-presence', f'--{option}', f'{directory}/x', '--', 'true').returncode, 0)
            self.assertEqual(os.listdir(directory), ['file'])

    @unittest.skipUnless(shutil.which('ibv_devices'), 'no ibverbs-utils')
    @unittest.skipIf('TEST_SANITIZED' in os.environ, 'programs that are not built here do not run under a sanitizer')
    def test_process_in_the_name_of_an_output(self):
        with tempfile.TemporaryDirectory() as directory:
            for option in ('explain', 'capture', 'keys', 'counters', 'timeline', 'report'):
                with self.subTest(option):
                    running = subprocess.Popen([TOOL, 'run', '--no-presence', f'--{option}', f'{directory}/{option}.%p', '--', 'ibv_devinfo'],
                                               env=clean_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                    self.assertEqual(running.wait(60), 0)
                    self.assertTrue(os.path.exists(f'{directory}/{option}.{running.pid}'), os.listdir(directory))
            self.assertEqual(len(os.listdir(directory)), 6)

    def test_program_that_cannot_run(self):
        done = softhca('run', '--', '/')
        self.assertEqual(done.returncode, 126)
        self.assertIn('cannot run /: ', done.stderr)

    def test_libraries_come_first(self):
        path = environment_of()['LD_LIBRARY_PATH']
        self.assertEqual(path, LIBRARIES)
        path = environment_of(env={'LD_LIBRARY_PATH': ''})['LD_LIBRARY_PATH']
        self.assertEqual(path, LIBRARIES)
        path = environment_of(env={'LD_LIBRARY_PATH': '/a:/b'})['LD_LIBRARY_PATH']
        self.assertEqual(path, f'{LIBRARIES}:/a:/b')
        # It is added only once; a longer name with the same beginning is another directory.
        path = environment_of(env={'LD_LIBRARY_PATH': f'{LIBRARIES}:/a'})['LD_LIBRARY_PATH']
        self.assertEqual(path, f'{LIBRARIES}:/a')
        path = environment_of(env={'LD_LIBRARY_PATH': f'{LIBRARIES}2'})['LD_LIBRARY_PATH']
        self.assertEqual(path, f'{LIBRARIES}:{LIBRARIES}2')

    @unittest.skipUnless(shutil.which('ibv_devices'), 'no ibverbs-utils')
    def test_loader_takes_our_libraries(self):
        done = softhca('run', '--', 'ldd', shutil.which('ibv_devices'))
        self.assertIn(f'libibverbs.so.1 => {LIBRARIES}/libibverbs.so.1', done.stdout)
        self.assertRegex(done.stdout, r'libsofthca\.so\.0 => ' + LIBRARIES)

    def test_works_through_a_link(self):
        with tempfile.TemporaryDirectory() as directory:
            os.symlink(TOOL, f'{directory}/command')
            done = subprocess.run([f'{directory}/command', 'run', 'printenv', 'LD_LIBRARY_PATH'], text=True,
                                  env=clean_environment(), stdout=subprocess.PIPE, check=True)
        self.assertEqual(done.stdout, f'{LIBRARIES}\n')


class Settings(unittest.TestCase):
    def test_options_become_variables(self):
        got = environment_of('--profile', 'connectx', '--devices=2', '--device-name', 'rdma', '--seed=0x10',
                             '--gids', 'loopback', '--link=local', '--mtu', '1024', '--explain=/tmp/a b',
                             '--crypto=wrapped', '--crypto-file', '/etc/keys')
        want = {'PROFILE': 'connectx', 'DEVICES': '2', 'DEVICE_NAME': 'rdma', 'SEED': '16', 'GIDS': 'loopback',
                'LINK': 'local', 'MTU': '1024', 'EXPLAIN': '/tmp/a b', 'CRYPTO': 'wrapped',
                'CRYPTO_FILE': '/etc/keys'}
        self.assertEqual({name: got[f'SOFTHCA_{name}'] for name in want}, want)

    def test_unset_stays_unset(self):
        names = {name for name in environment_of() if name.startswith('SOFTHCA_')}
        self.assertEqual(names, {'SOFTHCA_DOORBELLS', 'SOFTHCA_EXPLAIN', 'SOFTHCA_PCI', 'SOFTHCA_RUN_OPTIONS'})

    def test_devices_are_on_pci_by_default(self):
        self.assertEqual(environment_of()['SOFTHCA_PCI'], 'on')
        self.assertEqual(environment_of()['SOFTHCA_DOORBELLS'], 'auto')
        self.assertEqual(environment_of(env={'SOFTHCA_DOORBELLS': 'trap'})['SOFTHCA_DOORBELLS'], 'trap')
        self.assertEqual(environment_of(env={'SOFTHCA_PCI': 'off'})['SOFTHCA_PCI'], 'off')
        self.assertEqual(environment_of('--pci', 'off')['SOFTHCA_PCI'], 'off')
        self.assertNotIn('SOFTHCA_PCI', environment_of('--no-presence'))

    def test_explanations_are_shown_by_default(self):
        self.assertEqual(environment_of()['SOFTHCA_EXPLAIN'], 'stderr')
        self.assertEqual(environment_of(env={'SOFTHCA_EXPLAIN': 'off'})['SOFTHCA_EXPLAIN'], 'off')
        self.assertEqual(environment_of('--explain', 'off')['SOFTHCA_EXPLAIN'], 'off')

    def test_option_wins(self):
        self.assertEqual(environment_of('--mtu=512', env={'SOFTHCA_MTU': '256'})['SOFTHCA_MTU'], '512')
        self.assertEqual(environment_of('--mtu=512', '--mtu=1024')['SOFTHCA_MTU'], '1024')

    def test_unknown_variable_is_named(self):
        done = softhca('run', '--', 'true', env={'SOFTHCA_PROFIL': 'connectx'})
        self.assertEqual(done.returncode, 0)
        self.assertEqual(done.stderr, 'softhca: SOFTHCA_PROFIL is not a setting and has no effect\n')


class Env(unittest.TestCase):
    def shell(self, *arguments, env=None):
        """Returns LD_LIBRARY_PATH and SOFTHCA_EXPLAIN of a shell that evaluated the line."""
        line = softhca('env', *arguments, env=env)
        self.assertEqual((line.returncode, line.stderr, line.stdout.count('\n')), (0, '', 1))
        done = subprocess.run(['sh', '-euc', 'eval "$1"; printf "%s|%s" "$LD_LIBRARY_PATH" "${SOFTHCA_EXPLAIN-unset}"',
                               'sh', line.stdout], env=clean_environment(**(env or {})), text=True, check=True,
                              stdout=subprocess.PIPE)
        return done.stdout

    def test_line_for_a_shell(self):
        self.assertEqual(self.shell(), f'{LIBRARIES}|unset')
        self.assertEqual(self.shell(env={'LD_LIBRARY_PATH': '/a b:/c'}), f'{LIBRARIES}:/a b:/c|unset')

    def test_options_are_quoted(self):
        for text in ("a'b", '$HOME', '`id`', 'a b', 'a"b', '\\', '*'):
            self.assertEqual(self.shell('--explain', text), f'{LIBRARIES}|{text}')


if __name__ == '__main__':
    main()
