#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""softhca run: files in /dev/infiniband and in /sys/class/infiniband that programs look for, as root and as user
nobody."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from harness import LIBRARIES, TOOL, clean_environment, main, softhca

# UCX's checks of each device.
LOOKED_FOR = 'test -c {0} && test -r {0} && test -w {0} && echo >{0}'
NOBODY = 65534
REFUSE = os.path.abspath(sys.argv[3])


def may(*command, **options):
    """Returns true if the kernel allows this here."""
    return subprocess.run([*command, 'true'], stderr=subprocess.DEVNULL, check=False, **options).returncode == 0


SANITIZED = 'TEST_SANITIZED' in os.environ
ALREADY = os.path.exists('/dev/infiniband')
ALLOWED = may('unshare', '--mount') or may('unshare', '--user', '--mount')


@unittest.skipIf(ALREADY, 'this machine has a /dev/infiniband')
@unittest.skipUnless(ALLOWED, 'mount namespaces are forbidden here')
class Presence(unittest.TestCase):
    user = None

    def run_shell(self, script, *options):
        arguments = [TOOL, 'run', *options, '--', 'sh', '-c', script]
        if self.user is not None:
            # Two users of one host share UDP port 4791 but are not connected: tests beside this one would lose packets.
            arguments = ['unshare', '--net', 'sh', '-c', 'ip link set lo up && exec "$@"', 'sh', 'setpriv',
                         f'--reuid={self.user}', f'--regid={self.user}', '--clear-groups', *arguments]
        return subprocess.run(arguments, env=clean_environment(), text=True, timeout=60, check=False, cwd='/',
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def works(self, script, *options):
        done = self.run_shell(script, *options)
        self.assertEqual((done.returncode, done.stderr), (0, ''), done)
        return done.stdout

    def test_device_is_there(self):
        self.works(LOOKED_FOR.format('/dev/infiniband/uverbs0'))

    def test_names_are_those_of_the_devices(self):
        self.assertEqual(self.works('ls /dev/infiniband', '--devices', '3').split(), ['uverbs0', 'uverbs1', 'uverbs2'])
        self.works(LOOKED_FOR.format('/dev/infiniband/uverbs2'), '--devices=3')

    def test_nothing_is_left_outside(self):
        before = sorted(os.listdir('/dev')), sorted(os.listdir('/sys/class'))
        self.works('true')
        self.assertEqual((sorted(os.listdir('/dev')), sorted(os.listdir('/sys/class'))), before)
        with open('/proc/self/mounts', encoding='utf-8') as mounts:
            mounts = mounts.read()
        self.assertNotIn('/dev/infiniband', mounts)
        self.assertNotIn(' /sys/class', mounts)

    def test_rest_of_dev_is_as_it_was(self):
        names = set(self.works('ls -A /dev').split())
        self.assertEqual(names ^ set(os.listdir('/dev')), {'infiniband'})
        self.works('echo >/dev/null && head -c 1 /dev/zero >/dev/null && ls /dev/fd/0 >/dev/null')
        self.assertEqual(self.works('stat -c %t:%T /dev/null').strip(), '1:3')
        if os.access('/dev/shm', os.W_OK):
            self.works('f=/dev/shm/softhca-presence-$$ && echo >$f && rm $f')
        if os.path.exists('/dev/pts/ptmx'):
            self.assertEqual(self.works('stat -f -c %T /dev/pts').strip(), 'devpts')

    def test_who_and_where_stay(self):
        uid = os.getuid() if self.user is None else self.user
        self.assertEqual(self.works('id -u; id -g; pwd').split(), [str(uid), str(uid), '/'])

    def test_once_is_enough(self):
        done = self.works(f'{TOOL} run -- ls /dev/infiniband')
        self.assertEqual(done, 'uverbs0\n')
        # A program that finds everything present gets nothing a second time.
        for options in ([], ['--pci=off'], ['--devices=2']):
            outer, inner = self.works(f'readlink /proc/self/ns/mnt; {TOOL} run -- readlink /proc/self/ns/mnt', *options).split()
            self.assertEqual(inner, outer, options)

    def test_rest_of_sys_is_as_it_was(self):
        names = set(self.works('ls -A /sys/class').split())
        self.assertEqual(names ^ set(os.listdir('/sys/class')), {'infiniband', 'infiniband_verbs'})
        self.assertEqual(self.works('cat /sys/class/net/lo/address').strip(), '00:00:00:00:00:00')

    def test_files_of_each_device(self):
        self.assertEqual(self.works('ls /sys/class/infiniband', '--devices=2').split(), ['mlx5_0', 'mlx5_1'])
        self.assertEqual(self.works('cat /sys/class/infiniband_verbs/uverbs1/ibdev', '--devices=2'), 'mlx5_1\n')
        self.assertEqual(self.works('ls /sys/class/infiniband', '--device-name=rocep1s').split(), ['rocep1s0'])
        self.assertEqual(self.works('cat /sys/class/infiniband/mlx5_0/ports/1/hw_counters/out_of_sequence'), '0\n')

    def test_function_of_each_device(self):
        """Looked up as by UCX: from the path of the device, through any links, up to the PCI function."""
        for index in range(2):
            found = self.works(f"""
                cd $(realpath /sys/class/infiniband/mlx5_{index})/../.. && pwd -P
                cat vendor device class numa_node current_link_width current_link_speed infiniband/mlx5_{index}/node_type
                basename $(readlink driver); uniq -c resource; grep PCI_SLOT_NAME uevent; ls infiniband infiniband_verbs
                test infiniband/mlx5_{index}/device -ef . && test /sys/class/infiniband_verbs/uverbs{index}/device -ef .
                """, '--devices=2').split('\n')
            self.assertEqual(found, [f'/sys/devices/pci5348:00/5348:00:0{index}.0', '0x15b3', '0x101d', '0x020000', '-1', '16',
                                     '16.0 GT/s PCIe', '1: CA', 'mlx5_core', '      7' + 3 * ' 0x0000000000000000', f'PCI_SLOT_NAME=5348:00:0{index}.0', 'infiniband:',
                                     f'mlx5_{index}', '', 'infiniband_verbs:', f'uverbs{index}', ''])

    def test_no_function(self):
        self.assertEqual(self.works('realpath /sys/class/infiniband/mlx5_0; ls /sys/class/infiniband/mlx5_0/device',
                                    '--pci=off').split(), ['/sys/class/infiniband/mlx5_0', 'net'])
        self.works('! test -e /sys/class/infiniband/mlx5_0 && ! test -e /sys/devices/pci5348:00', '--no-presence')
        inner = f'{TOOL} run --pci={{}} -- test -e /sys/class/infiniband/mlx5_0/device/vendor'
        self.works(f'! {inner.format("off")}')
        self.works(inner.format('on'), '--pci=off')

    def test_rest_of_devices_is_as_it_was(self):
        names = set(self.works('ls -A /sys/devices').split())
        self.assertEqual(names ^ set(os.listdir('/sys/devices')), {'pci5348:00'})
        self.works('test "$(cat /sys/devices/system/cpu/online)" && cat /sys/class/net/lo/mtu')

    def test_interface_of_a_gid(self):
        """Looked up as by programs that search the interface of an address: by its GID, type and the name next to
        it."""
        found = self.works("""
            cd /sys/class/infiniband/mlx5_0/ports/1
            for gid in gids/*; do
                index=${gid#gids/}
                test -e gid_attrs/types/$index || continue
                echo "$(cat $gid) $(cat gid_attrs/types/$index | tr -d ' ') $(cat gid_attrs/ndevs/$index)"
            done
            ls /sys/class/infiniband/mlx5_0/device/net""", '--gids=loopback').splitlines()
        interface = found.pop()
        self.assertEqual(interface, 'lo')
        self.assertEqual(os.listdir('/sys/class/net').count(interface), 1)
        self.assertIn('0000:0000:0000:0000:0000:ffff:7f00:0001 RoCEv2 lo', found)
        self.assertIn('0000:0000:0000:0000:0000:ffff:7f00:0001 IB/RoCEv1 lo', found)

    @unittest.skipIf(SANITIZED, 'programs that are not built here do not run under a sanitizer')
    @unittest.skipUnless(shutil.which('ibv_devinfo'), 'no ibverbs-utils')
    def test_files_say_what_the_library_says(self):
        said = self.works('ibv_devinfo', '--explain=off')
        files = self.works('cd /sys/class/infiniband/mlx5_0; cat node_guid fw_ver board_id').split()
        for value, name in zip(files, ('node_guid', 'fw_ver', 'board_id')):
            self.assertRegex(said, rf'{name}:\s+{value}\n')

    def test_no_presence(self):
        self.works('! test -e /dev/infiniband && ! test -e /sys/class/infiniband', '--no-presence')
        inside, outside = self.works('readlink /proc/self/ns/mnt', '--no-presence'), os.readlink('/proc/self/ns/mnt')
        self.assertEqual(inside.strip(), outside)

    @unittest.skipIf(SANITIZED, 'programs that are not built here do not run under a sanitizer')
    @unittest.skipUnless(shutil.which('ucx_info'), 'no ucx-utils')
    def test_ucx_sees_the_device(self):
        self.assertIn('rc_verbs', self.works('ucx_info -d | grep Transport', '--explain=off'))
        self.assertNotIn('rc_verbs', self.works('ucx_info -d | grep Transport', '--explain=off', '--no-presence'))

    @unittest.skipIf(SANITIZED, 'programs that are not built here do not run under a sanitizer')
    @unittest.skipUnless(shutil.which('ucx_info'), 'no ucx-utils')
    def test_ucx_finds_the_function(self):
        """UCX drives the queues of a device directly if it finds the identifiers of a known one."""
        transports = 'ucx_info -d 2>&1 | grep -o "[a-z]*_mlx5$" | sort'
        self.assertEqual(self.works(transports, '--explain=off').split(), ['dc_mlx5', 'rc_mlx5', 'ud_mlx5'])
        self.assertEqual(self.works(transports, '--explain=off', '--pci=off').split(), [])
        for devx in 'n', 'try', 'y':
            found = self.works(f'UCX_IB_MLX5_DEVX={devx} {transports}', '--explain=off').split()
            self.assertIn('rc_mlx5', found, devx)


@unittest.skipIf(ALREADY, 'this machine has a /dev/infiniband')
@unittest.skipUnless(may('unshare', '--user', '--map-root-user', '--mount'), 'user namespaces are forbidden here')
class Container(unittest.TestCase):
    """
    A container with Docker's default seccomp profile, which refuses mount(2) and unshare(2), and
    `--device /dev/null:/dev/infiniband/uverbs0`.
    """
    SETUP = """
        mount -t tmpfs none "$0"
        for name in null zero urandom random; do touch "$0/$name" && mount --bind /dev/$name "$0/$name"; done
        mkdir "$0/shm" "$0/pts" "$0/infiniband"
        mount --rbind "$0" /dev
        if [ "$1" = node ]; then touch /dev/infiniband/uverbs0 && mount --bind /dev/null /dev/infiniband/uverbs0; fi
        shift
        exec "$@"
    """

    def run_in_container(self, node, *command):
        with tempfile.TemporaryDirectory() as directory:
            return subprocess.run(['unshare', '--user', '--map-root-user', '--mount', 'sh', '-c', self.SETUP, directory, node, REFUSE,
                                   'unshare,mount', *command], env=clean_environment(), text=True, timeout=60, check=False,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    @unittest.skipIf(SANITIZED, 'programs that are not built here do not run under a sanitizer')
    @unittest.skipUnless(shutil.which('ucx_info'), 'no ucx-utils')
    def test_ucx_sees_the_device(self):
        done = self.run_in_container('node', TOOL, 'run', '--', 'ucx_info', '-d')
        self.assertEqual((done.returncode, done.stderr), (0, ''))
        self.assertIn('Memory domain: mlx5_0', done.stdout)
        done = self.run_in_container('none', TOOL, 'run', '--', 'ucx_info', '-d')
        self.assertNotIn('Memory domain: mlx5_0', done.stdout)
        self.assertRegex(done.stderr, r'^softhca: no /dev/infiniband/uverbs0 for the program \(.*softhca doctor.*\n')

    def test_doctor(self):
        for node, verdict, advice in (('node', 'ok', ''), ('none', 'less', '--device /dev/null:/dev/infiniband/uverbs0')):
            done = self.run_in_container(node, TOOL, 'doctor', '--json')
            [finding] = [finding for finding in json.loads(done.stdout) if finding['name'] == 'namespaces']
            self.assertEqual(finding['verdict'], verdict, finding)
            self.assertIn(advice, finding['advice'])


def unprivileged_can():
    """Returns true if root can become nobody, and nobody can make user namespaces and read the build."""
    if os.getuid() != 0:
        return False
    if not all(map(shutil.which, ('setpriv', 'ip'))) or not may('unshare', '--net'):
        return False
    as_unprivileged = {'user': NOBODY, 'group': NOBODY, 'extra_groups': []}
    readable = subprocess.run(['test', '-r', f'{LIBRARIES}/libsofthca.so.0'], check=False, **as_unprivileged)
    runnable = subprocess.run(['test', '-x', TOOL], check=False, **as_unprivileged)
    return readable.returncode == runnable.returncode == 0 and may('unshare', '--user', '--mount', **as_unprivileged)


@unittest.skipUnless(unprivileged_can(), 'the user nobody cannot make namespaces or read the build')
class PresenceAsNobody(Presence):
    user = NOBODY

    def test_directory_of_another_user(self):
        """As left by sudo(8): the current directory is one that this user may not even enter."""
        with tempfile.TemporaryDirectory() as directory:
            os.chmod(directory, 0o700)
            command = [TOOL, 'run', '--', 'readlink', '/proc/self/cwd']
            done = subprocess.run(command, cwd=directory, user=NOBODY, group=NOBODY, extra_groups=[], env=clean_environment(),
                                  text=True, timeout=60, check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, f'{os.path.realpath(directory)}\n', ''))


@unittest.skipIf(ALREADY, 'this machine has a /dev/infiniband')
@unittest.skipUnless(may('unshare', '--user', '--map-root-user'), 'user namespaces are forbidden here')
class Forbidden(unittest.TestCase):
    """The limit of mount namespaces belongs to a user namespace, so it can be set to zero for a test."""

    def run_shell(self, script, *options):
        forbid = 'echo 0 >/proc/sys/user/max_mnt_namespaces && exec "$@"'
        return subprocess.run(['unshare', '--user', '--map-root-user', 'sh', '-c', forbid, 'sh',
                               TOOL, 'run', *options, '--', 'sh', '-c', script], env=clean_environment(),
                              text=True, timeout=60, check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def test_program_runs_all_the_same(self):
        done = self.run_shell('echo out; exit 3')
        self.assertEqual((done.returncode, done.stdout), (3, 'out\n'), done)

    @unittest.skipIf(SANITIZED, 'programs that are not built here do not run under a sanitizer')
    @unittest.skipUnless(shutil.which('ucx_info'), 'no ucx-utils')
    def test_programs_with_ucx_say_so(self):
        done = self.run_shell('ucx_info -d')
        self.assertEqual(done.stderr.count('softhca: '), 1, done)
        self.assertRegex(done.stderr, r'(?m)^softhca: no /dev/infiniband/uverbs0 for the program \(.*\)$')
        self.assertEqual(self.run_shell('ibv_devices').stderr, '')

    def test_other_programs_are_silent(self):
        self.assertEqual(self.run_shell('true').stderr, '')


def two_users_can():
    return (os.geteuid() == 0 and all(map(shutil.which, ('setpriv', 'unshare', 'ibv_rc_pingpong'))) and
            may('unshare', '--net', 'true') and
            may('setpriv', '--reuid=1000', '--regid=1000', '--clear-groups', TOOL, '--version'))


@unittest.skipUnless(two_users_can(), 'needs root, setpriv and ibv_rc_pingpong')
@unittest.skipIf(SANITIZED, 'programs that are not built here do not run under a sanitizer')
class Users(unittest.TestCase):
    """Each `softhca run` of a user makes its own user namespace; nevertheless the processes of one user reach each
    other, also of the user with the number that stands for all unmapped ones, and those of two users do not."""

    SCRIPT = """
        set -m
        ip link set lo up
        one() {
            user=$1; shift
            setpriv --reuid=$user --regid=$user --clear-groups timeout --foreground 20 "$TOOL" run -- ibv_rc_pingpong -g 0 -n 50 "$@"
        }
        one $1 >/dev/null & sleep 1
        one $2 127.0.0.1; status=$?
        kill -- -$! 2>/dev/null; wait; exit $status
    """

    def pingpong(self, server, client):
        return subprocess.run(['unshare', '--net', 'bash', '-c', self.SCRIPT, 'bash', str(server), str(client)],
                              env=clean_environment(TOOL=TOOL, HOME='/', SOFTHCA_GIDS='loopback'), text=True, timeout=60,
                              check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def test_one_user(self):
        for user in (1000, 65534):
            done = self.pingpong(user, user)
            self.assertEqual(done.returncode, 0, (user, done.stderr))

    def test_two_users(self):
        for server, client in ((1000, 65534), (65534, 1000)):
            done = self.pingpong(server, client)
            self.assertNotEqual(done.returncode, 0, (server, client))
            self.assertIn('HOST_OTHER_USER', done.stderr)


class Options(unittest.TestCase):
    def test_only_run_has_it(self):
        for command in ('env', 'info'):
            done = softhca(command, '--no-presence')
            self.assertEqual(done.returncode, 2)
            self.assertIn('unknown option "--no-presence"', done.stderr)


if __name__ == '__main__':
    main()
