#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""softhca hosts and softhca on: as root, as an unprivileged user, and where /proc cannot be mounted again."""
import os
import shutil
import signal
import subprocess
import tempfile
import unittest

from harness import TOOL, clean_environment, main, softhca

NOBODY = 65534
NAMESPACES = subprocess.run(['unshare', '-Urnm', 'true'], stderr=subprocess.DEVNULL, check=False).returncode == 0
BRIDGE = subprocess.run(['unshare', '-Urn', 'ip', 'link', 'add', 'name', 'switch', 'type', 'bridge'],
                        stderr=subprocess.DEVNULL, check=False).returncode == 0 if shutil.which('ip') else False
SAME_CODE = 'as root, the same code runs'


class WrongUse(unittest.TestCase):
    def refused(self, *arguments):
        done = softhca(*arguments)
        self.assertEqual((done.returncode, done.stdout, done.stderr.count('\n')), (2, '', 1), done)
        return done.stderr

    def test_hosts(self):
        for arguments in ([], ['0', '--', 'true'], ['65', '--', 'true'], ['2x', '--', 'true'], ['2'],
                          ['2', '--shell', '--', 'true'], ['--shell', '2'], ['2', '--interface-mtu', '500', 'true'],
                          ['2', '--no-such-option', 'true']):
            with self.subTest(arguments):
                self.refused('hosts', *arguments)

    def test_on(self):
        for arguments in ([], ['--no-such-option']):
            with self.subTest(arguments):
                self.refused('on', *arguments)

    def test_on_elsewhere(self):
        done = softhca('on', 'h1', 'true')
        self.assertEqual(done.returncode, 126)
        self.assertIn('SOFTHCA_HOSTS', done.stderr)


@unittest.skipUnless(NAMESPACES and BRIDGE, 'namespaces, ip(8) or bridges are missing here')
class Hosts(unittest.TestCase):
    wrapper = ()

    def setUp(self):
        self.directory = tempfile.TemporaryDirectory(prefix='softhca-test-')
        os.chmod(self.directory.name, 0o777)
        self.environment = clean_environment(TMPDIR=self.directory.name, SOFTHCA=TOOL)

    def tearDown(self):
        left = os.listdir(self.directory.name)
        self.directory.cleanup()
        self.assertEqual(left, [])

    def command(self, count, script, *options):
        return [*self.wrapper, TOOL, 'hosts', str(count), '--no-presence', *options, '--', 'sh', '-c', script]

    def hosts(self, count, script, *options, status=0, errors='', **more):
        done = subprocess.run(self.command(count, script, *options), env=self.environment, text=True, timeout=60,
                              check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd='/', **more)
        self.assertEqual((done.returncode, done.stderr), (status, errors), done)
        return sorted(done.stdout.splitlines())

    def on_first(self, script, **more):
        """Returns the output of a script on the first of two hosts, without the name of the host."""
        return [line.removeprefix('h1: ') for line in self.hosts(2, f'[ $SOFTHCA_HOST = 2 ] || {{ {script}; }}', **more)]

    def test_each_host_has_its_name_number_and_address(self):
        self.assertEqual(self.hosts(3, 'echo $(hostname) $SOFTHCA_HOST of $SOFTHCA_HOST_COUNT'),
                         ['h1: h1 1 of 3', 'h2: h2 2 of 3', 'h3: h3 3 of 3'])
        self.assertEqual(self.hosts(2, "ip -o -4 address show dev eth0 | awk '{print $4}'"),
                         ['h1: 10.99.0.1/24', 'h2: 10.99.0.2/24'])
        self.assertEqual(self.on_first('getent ahostsv4 h2 | head -1; getent ahostsv6 h2-ipv6 | head -1')[0].split()[0],
                         '10.99.0.2')

    def test_names_in_a_container_without_etc_hosts(self):
        etc = os.path.join(self.directory.name, 'etc')
        script = ('mkdir $0 && cp -a /etc/passwd /etc/group /etc/nsswitch.conf /etc/ld.so.cache /etc/alternatives $0 && '
                  'mount --bind $0 /etc && exec "$@"')
        self.wrapper = ('unshare', '-Urm' if os.geteuid() else '-m', 'sh', '-c', script, etc, *self.wrapper)
        self.assertEqual(self.on_first('getent ahostsv4 h2 | head -1; ls /etc')[:2], ['10.99.0.2       STREAM h2', 'alternatives'])
        shutil.rmtree(etc)

    def test_mtu(self):
        self.assertEqual(self.on_first('cat /proc/self/net/dev | grep -c eth0; ip -o link show dev eth0 | grep -o mtu.1500'),
                         ['1', 'mtu 1500'])
        self.assertEqual(self.hosts(1, 'ip -o link show dev eth0 | grep -o mtu.[0-9]*', '--interface-mtu', '4200'),
                         ['h1: mtu 4200'])

    def test_interfaces_are_up_at_once(self):
        program = 'import socket; socket.create_server(("10.99.0.2", 5000), family=socket.AF_INET).accept()[0].send(b"hi")'
        client = 'import socket,time\nfor i in range(500):\n try: s = socket.create_connection(("h2", 5000)); break\n' \
                 ' except ConnectionRefusedError: time.sleep(0.01)\nprint(s.recv(2).decode())'
        self.assertEqual(self.hosts(2, f"""if [ $SOFTHCA_HOST = 2 ]; then exec python3 -c '{program}'; fi
            exec python3 -c '{client}'"""), ['h1: hi'])

    def test_first_status_that_is_not_0(self):
        self.hosts(3, 'exit $((SOFTHCA_HOST - 1))', status=1)
        self.hosts(2, '[ $SOFTHCA_HOST = 1 ] || kill -9 $$', status=137)

    def test_program_is_missing(self):
        done = subprocess.run([*self.wrapper, TOOL, 'hosts', '1', '--', './no-such-program'], env=self.environment,
                              text=True, timeout=60, check=False, stderr=subprocess.PIPE, cwd='/')
        self.assertEqual((done.returncode, done.stderr),
                         (127, 'h1: softhca: cannot run ./no-such-program: No such file or directory\n'))

    def test_output_is_kept_apart(self):
        lines = self.hosts(2, 'for i in $(seq 500); do echo $i; done; printf end', errors='')
        self.assertEqual(lines, sorted([f'h{host}: {i}' for host in (1, 2) for i in range(1, 501)] +
                                       ['h1: end', 'h2: end']))
        self.hosts(1, 'echo wrong >&2', errors='h1: wrong\n')

    def test_long_line_is_printed_in_pieces(self):
        lines = self.hosts(1, 'head -c 10000 /dev/zero | tr "\\0" x; echo')
        self.assertEqual(sum(len(line) - len('h1: ') for line in lines), 10000)

    def test_standard_input_is_that_of_the_first_host(self):
        self.assertEqual(self.hosts(2, 'cat', input='text\n'), ['h1: text'])

    def test_background_processes_end_with_the_run(self):
        self.hosts(2, f'sleep 1000 & echo $! >{self.directory.name}/$SOFTHCA_HOST; (setsid sh -c "sleep 1000 & ")')
        for host in '12':
            os.unlink(f'{self.directory.name}/{host}')
        # The pipe of the output has no writer left: subprocess.run() has returned.

    def test_signals_reach_the_programs(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with self.subTest(number), subprocess.Popen(
                    self.command(2, 'trap "echo trapped; exit 3" TERM INT HUP; echo ready; while :; do sleep 0.05; done'),
                    env=self.environment, text=True, stdout=subprocess.PIPE, start_new_session=True) as run:
                ready = [run.stdout.readline(), run.stdout.readline()]
                run.send_signal(number)
                self.assertEqual(sorted(ready + run.stdout.readlines()),
                                 ['h1: ready\n', 'h1: trapped\n', 'h2: ready\n', 'h2: trapped\n'])
                self.assertEqual(run.wait(60), 128 + number)

    def test_program_that_ignores_signals_is_killed(self):
        with subprocess.Popen(self.command(1, 'trap "" TERM; echo ready; while :; do sleep 0.05; done'), env=self.environment,
                              text=True, stdout=subprocess.PIPE, start_new_session=True) as run:
            run.stdout.readline()
            run.terminate()
            self.assertEqual(run.wait(60), 128 + signal.SIGTERM)

    def test_reader_that_ends(self):
        done = subprocess.run(['bash', '-c', f'"$@" | head -1; exit ${{PIPESTATUS[0]}}', 'sh', *self.command(2, 'yes')],
                              env=self.environment, text=True, timeout=60, check=False, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)
        self.assertEqual((done.returncode, done.stdout.count('\n')), (128 + signal.SIGPIPE, 1), done)

    # ---- on

    def test_on_runs_a_line_for_sh_as_ssh_does(self):
        self.assertEqual(self.on_first("$SOFTHCA on h2 hostname ';' 'echo $SOFTHCA_HOST'; cd /tmp; $SOFTHCA on h2 pwd"),
                         sorted(['h2', '2', '/tmp']))

    def test_on_runs_a_command_as_it_is(self):
        self.assertEqual(self.on_first("a='x  y' $SOFTHCA on h2 -- printenv a; $SOFTHCA on h2 -- echo '$HOME  ;'"),
                         sorted(['x  y', '$HOME  ;']))

    def test_on_passes_streams_and_status(self):
        self.assertEqual(self.on_first('echo text | $SOFTHCA on h2 cat; $SOFTHCA on h2 exit 7; echo $?; '
                                       "$SOFTHCA on h2 'kill -9 $$'; echo $?; $SOFTHCA on h2 -- /no-such-program 2>&1; echo $?"),
                         sorted(['text', '7', '137', 'softhca: cannot run /no-such-program: No such file or directory', '127']))

    def test_on_reaches_no_other_names(self):
        self.assertEqual(self.on_first('for host in h3 h0 hosts ../x ""; do $SOFTHCA on "$host" true 2>/dev/null; echo $?; done'),
                         ['126'] * 5)

    def test_on_passes_signals(self):
        fifo = f'{self.directory.name}/fifo'
        os.mkfifo(fifo)
        os.chmod(fifo, 0o666)
        script = ("$SOFTHCA on h2 'exec 2>/dev/null; trap \"echo trapped; exit 5\" TERM; echo ready >{0}; "
                  "while :; do sleep 0.05; done' & read line <{0}; kill -TERM $!; wait $!; echo $?; rm {0}")
        self.assertEqual(self.on_first(script.format(fifo)), sorted(['trapped', '5']))

    def test_on_kills_the_command_of_a_requester_that_is_killed(self):
        script = ("$SOFTHCA on h2 'while :; do echo x; sleep 0.05; done' >{0}/out & sleep 1; kill -9 $!; sleep 0.5; "
                  'a=$(wc -c <{0}/out); sleep 0.5; [ $a -gt 0 ] && [ $a = $(wc -c <{0}/out) ]; echo $?; rm {0}/out')
        self.assertEqual(self.on_first(script.format(self.directory.name)), ['0'])

    def test_on_with_a_large_environment(self):
        self.environment['LARGE'] = 'x' * 100000
        self.assertEqual(self.on_first('$SOFTHCA on h2 -- printenv LARGE | wc -c'), ['100001'])

    def test_on_garbage(self):
        """A requester that sends garbage, or nothing, does not stop the host."""
        script = ('import os, socket\n'
                  'for message in (b"", b"x", bytes(12), b"\\xff" * 12, bytes(4096)):\n'
                  ' s = socket.socket(socket.AF_UNIX); s.connect(os.environ["SOFTHCA_HOSTS"] + "/h2"); s.send(message); s.close()')
        self.assertEqual(self.on_first(f"python3 -c '{script}'; $SOFTHCA on h2 hostname"), ['h2'])

    def test_on_serves_others_while_a_requester_is_stopped(self):
        """One requester that has sent nothing, one that stops after the descriptors, and one between the strings."""
        script = ('import array, os, socket, struct, subprocess, time\n'
                  'open_ = []\n'
                  'for message in (b"", struct.pack("III", 1, 0, 7), struct.pack("III", 1, 0, 7) + b"/\\0"):\n'
                  ' s = socket.socket(socket.AF_UNIX); s.connect(os.environ["SOFTHCA_HOSTS"] + "/h2")\n'
                  ' s.sendmsg([message], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))] if message else [])\n'
                  ' open_.append(s)\n'
                  'began = time.monotonic()\n'
                  'subprocess.run([os.environ["SOFTHCA"], "on", "h2", "hostname"])\n'
                  'print(time.monotonic() - began < 4, flush=True)\n'
                  'open_[2].send(b"true\\0")\n'
                  'print(struct.unpack("i", open_[2].recv(4)))\n')
        self.assertEqual(self.on_first(f"python3 -c '{script}'"), sorted(['h2', 'True', '(0,)']))

    def test_on_closes_a_fourth_descriptor(self):
        """A request passes the three standard streams; the host refuses one with more, and keeps none of them open."""
        script = ('import os, select, socket, struct\n'
                  'strings = b"/\\0hostname\\0"\n'
                  'for count in (3, 4):\n'
                  ' end, other = os.pipe()\n'
                  ' s = socket.socket(socket.AF_UNIX); s.connect(os.environ["SOFTHCA_HOSTS"] + "/h2")\n'
                  ' socket.send_fds(s, [struct.pack("3I", 1, 0, len(strings))], [0, 1, 2, other][:count])\n'
                  ' os.close(other)\n'
                  ' try: s.sendall(strings); status = struct.unpack("i", s.recv(4))[0]\n'
                  ' except ConnectionError: status = 126 << 8\n'
                  ' print(count, status >> 8, len(select.select([end], [], [], 10)[0]), flush=True)')
        self.assertEqual(self.on_first(f"python3 -c '{script}'"), ['3 0 1', '4 126 1', 'h2'])

    # ---- RDMA

    @unittest.skipUnless(shutil.which('ibv_rc_pingpong'), 'ibv_rc_pingpong is not installed')
    @unittest.skipIf('TEST_SANITIZED' in os.environ, 'programs that are not built here do not run under a sanitizer')
    def test_pingpong_over_udp(self):
        lines = self.hosts(2, """if [ $SOFTHCA_HOST = 1 ]; then exec ibv_rc_pingpong -g 3 -n 100 -c; fi
            for i in $(seq 100); do ss -tln | grep -q none; ibv_rc_pingpong -g 3 -n 100 -c h1 2>/dev/null && exit; sleep 0.1; done
            exit 1""")
        self.assertEqual(sum('100 iters' in line for line in lines), 2)
        self.assertTrue(any('GID ::ffff:10.99.0.2' in line for line in lines if line.startswith('h1: ')), lines)

    @unittest.skipUnless(shutil.which('mpirun') and shutil.which('orted'), 'Open MPI is not installed')
    def test_mpirun_with_on_as_its_remote_shell(self):
        # mpirun reads SHELL if the user's login shell is not a shell, and warns if that is not set either.
        done = self.on_first('OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 SHELL=/bin/sh mpirun --mca plm_rsh_agent '
                             '"$SOFTHCA on" --host h1:1,h2:1 -np 2 hostname')
        self.assertEqual(done, ['h1', 'h2'])


@unittest.skipIf(os.geteuid() != 0, 'needs root, to be another user')
@unittest.skipIf('TEST_SANITIZED' in os.environ, SAME_CODE)
class HostsAsNobody(Hosts):
    wrapper = ('setpriv', f'--reuid={NOBODY}', f'--regid={NOBODY}', '--clear-groups')


@unittest.skipIf(os.geteuid() != 0, 'needs root, to hide a part of /proc')
@unittest.skipIf('TEST_SANITIZED' in os.environ, SAME_CODE)
class HostsWithoutProc(Hosts):
    """As in a container that hides parts of /proc: the kernel does not let a user namespace mount it again."""
    wrapper = ('unshare', '-m', 'sh', '-c', f'mount --bind /dev/null /proc/kallsyms && exec setpriv --reuid={NOBODY} '
               f'--regid={NOBODY} --clear-groups "$@"', 'sh')


if __name__ == '__main__':
    main()
