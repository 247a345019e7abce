#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Two hosts in different subnets, with a router between them: ibv_rc_pingpong(1) and ibv_uc_pingpong(1) unmodified, which ask for
a hop limit of 1. The kernel overwrites it by that of the route.

    router.py      prints TAP
"""
import os
import shutil
import subprocess
import sys
import time

from place import LIBRARIES, await_link, enter, ip, skip

SERVER = '10.77.2.1'
FORWARDING = '/proc/sys/net/ipv4/ip_forward'
# Link-local, then the IPv4 address, each as RoCE v1 and v2.
GID = '3'
ROUNDS = '200'
TIMEOUT_S = 30


class Namespace:
    """A network namespace with the loopback interface up, which exists as long as this object."""

    def __init__(self):
        self.holder = subprocess.Popen(['unshare', '--net', 'sh', '-c', 'ip link set lo up; echo; exec sleep inf'],
                                       stdout=subprocess.PIPE)
        self.holder.stdout.readline()
        self.enter = ['nsenter', '-t', str(self.holder.pid), '-n', '--']

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.holder.kill()
        self.holder.wait()

    def run(self, *command):
        subprocess.run([*self.enter, *command], check=True)

    def start(self, *command):
        environment = dict(os.environ, LD_LIBRARY_PATH=LIBRARIES, SOFTHCA_EXPLAIN='stderr')
        return subprocess.Popen([*self.enter, *command], env=environment, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True)


def join(router, host, network, name):
    """Joins @host, 10.77.@network.1, to @router, 10.77.@network.2, its default route."""
    ip('link', 'add', name, 'type', 'veth', 'peer', 'name', 'eth0')
    ip('link', 'set', name, 'netns', str(router.holder.pid))
    ip('link', 'set', 'eth0', 'netns', str(host.holder.pid))
    for namespace, interface, last in ((router, name, 2), (host, 'eth0', 1)):
        namespace.run('ip', 'addr', 'add', f'10.77.{network}.{last}/24', 'dev', interface)
        namespace.run('ip', 'link', 'set', interface, 'up')
    for namespace, interface in ((router, name), (host, 'eth0')):
        await_link([*namespace.enter, 'ip', '-o', 'link', 'show', 'dev', interface])
    host.run('ip', 'route', 'add', 'default', 'via', f'10.77.{network}.2')


def await_listener(host, port):
    deadline = time.monotonic() + TIMEOUT_S
    while f':{port} ' not in subprocess.run([*host.enter, 'ss', '-ltn'], stdout=subprocess.PIPE, text=True, check=True).stdout:
        if time.monotonic() > deadline:
            raise TimeoutError(f'nothing listens on port {port}')
        time.sleep(0.05)


def pingpong(program, client, server):
    """Returns true if both ends of @program succeed, with data that both check."""
    command = [program, '-d', 'mlx5_0', '-g', GID, '-n', ROUNDS, '-c']
    there = server.start(*command)
    await_listener(server, 18515)
    ends = (client.start(*command, SERVER), there)
    good = True
    for end in ends:
        try:
            output = end.communicate(timeout=TIMEOUT_S)[0]
        except subprocess.TimeoutExpired:
            end.kill()
            output = end.communicate()[0] + '(still running)'
        if end.returncode or f'{ROUNDS} iters in' not in output:
            good = False
            print(''.join(f'# {line}\n' for line in output.splitlines()), end='')
    return good


def main():
    programs = ['ibv_rc_pingpong', 'ibv_uc_pingpong']
    for program in [*programs, 'ss']:
        if not shutil.which(program):
            skip(f'there is no {program}')
    enter()
    failed = 0
    with Namespace() as router, Namespace() as client, Namespace() as server:
        router.run('sh', '-c', f'echo 1 >{FORWARDING}')
        join(router, client, 1, 'client')
        join(router, server, 2, 'server')
        print(f'1..{len(programs)}')
        for number, program in enumerate(programs, 1):
            good = pingpong(program, client, server)
            failed += not good
            print(f'{"ok" if good else "not ok"} {number} - {program} over a router', flush=True)
    sys.exit(failed)


main()
