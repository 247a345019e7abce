# SPDX-License-Identifier: BSD-2-Clause
"""The programs that softhca and the kernel's soft-RoCE run against each other, in one table.

A case runs in both directions: its server in the guest with its client outside, and the other way round. The caller
fills in {device}, {gid}, {port} and {address}, the server's.
"""
import os
import sys
from dataclasses import dataclass

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../clients'))
import cases # the judges of these programs

TCP, CM = cases.TCP, cases.CM
IPV4, IPV6 = 4, 6


@dataclass
class Case:
    name: str
    command: str        # of the server
    client: str
    judge: object       # judge(case, server output, client output) -> what is wrong, or None
    family: int = IPV4
    ready: str = TCP    # the server listens to TCP, or by rdma_cm
    port: int = 0       # of a program that always takes the same
    lossy: bool = False # runs a second time over a network that loses packets
    seconds: int = 60   # time limit, on a loaded machine


def pingpong(kind, family, count=200, **more):
    options = f'ibv_{kind}_pingpong -d {{device}} -g {{gid}} -p {{port}} -n {count}'
    return Case(f'ibv_{kind}_pingpong -n {count}, IPv{family}', options, f'{options} {{address}}', cases.pingpong, family, **more)


def perftest(operation):
    """READ and ATOMIC take the number of outstanding requests of their own device for the peer's: -o 16 suits both."""
    outstanding = ' -o 16' if operation in ('read', 'atomic') else ''
    options = f'ib_{operation}_bw -F -n 96{outstanding}'
    command = f'{options} -d {{device}} -x {{gid}} -p {{port}}'
    return Case(options, command, f'{command} {{address}}', cases.perftest)


def connected(server, client, judge, **more):
    name = server.split()[0] + (' over IPv6' if more.get('family') == IPV6 else '')
    return Case(name, server, client, judge, ready=CM, **more)


CASES = [
    *[pingpong(kind, family, lossy=(kind, family) == ('rc', IPV4)) for family in (IPV4, IPV6) for kind in ('rc', 'uc', 'ud', 'srq')],
    # So many that others use the kernel's counter of IPv4 identifications meanwhile.
    pingpong('uc', IPV4, 600),
    *[perftest(operation) for operation in ('write', 'read', 'send', 'atomic')],
    connected('rping -s -a {address} -p {port} -C 10', 'rping -c -a {address} -p {port} -C 10 -v', cases.rping, lossy=True),
    connected('rping -s -a {address} -p {port} -C 10', 'rping -c -a {address} -p {port} -C 10 -v', cases.rping, family=IPV6),
    connected('ucmatose -p {port}', 'ucmatose -p {port} -s {address}', cases.messages),
    connected('rdma_server -p {port}', 'rdma_client -p {port} -s {address}', cases.ends),
    connected('rstream -p {port} -T v -S 65536 -C 10 -I 5', 'rstream -p {port} -T v -S 65536 -C 10 -I 5 -s {address}', cases.streams),
    connected('udaddy', 'udaddy -s {address}', cases.messages, port=7174),
]
