# SPDX-License-Identifier: BSD-2-Clause
"""Table of the programs that run between softhca and the kernel's soft-RoCE.

A case runs in both directions: its server in the guest with its client outside, and the other way round. The caller
fills in {device}, {gid}, {port} and the server's {address}; {address4} is IPv4 also where the GID is not.
"""
import os
import re
import sys
from dataclasses import dataclass

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../clients'))
import cases # the judges of these programs
import iser

TCP, CM = cases.TCP, cases.CM
IPV4, IPV6 = 4, 6


@dataclass
class Case:
    name: str
    command: str = ''   # of the server
    client: str = ''
    judge: object = None    # judge(case, server output, client output) -> error or None
    family: int = IPV4
    ready: str = TCP    # the server listens to TCP, or by rdma_cm
    port: int = 0       # fixed port of the program
    lossy: bool = False # runs again with packet loss
    seconds: int = 60   # time limit, on a loaded machine
    # Known outcomes of the kernel that differ from IBTA, as the responder and as the requester; for checked() only.
    server_known: tuple = ()
    client_known: tuple = ()
    script: object = None   # script(runner, deadline) -> (error or None, output), replaces the fields above
    since: tuple = (0, 0) # the first kernel that has it


def pingpong(kind, family, count=200, **more):
    options = f'ibv_{kind}_pingpong -d {{device}} -g {{gid}} -p {{port}} -n {count}'
    return Case(f'ibv_{kind}_pingpong -n {count}, IPv{family}', options, f'{options} {{address4}}', cases.pingpong, family, **more)


def perftest(operation, **more):
    """READ and ATOMIC get -o 16: by default they use the limit of the local device, which may exceed the peer's."""
    outstanding = ' -o 16' if operation in ('read', 'atomic') else ''
    options = f'ib_{operation}_bw -F -n 96{outstanding}'
    command = f'{options} -d {{device}} -x {{gid}} -p {{port}}'
    return Case(options, command, f'{command} {{address}}', transfers, **more)


def transfers(case, _, client):
    """Checks the row of results. The message rate must be positive; the data rate may be rounded to 0."""
    wanted = int(re.search(r'-n (\d+)', case.command)[1])
    rows = cases.rows(client)
    return None if len(rows) == 1 and rows[0][1] >= wanted and rows[0][4] > 0 else f'the client prints the rows {rows}'


def connected(server, client, judge, **more):
    name = server.split()[0] + (' over IPv6' if more.get('family') == IPV6 else '')
    return Case(name, server, client, judge, ready=CM, **more)


def checked(group, **more):
    """Returns a case of checked.c."""
    command = 'checked -d {device} -g {gid} -p {port}'
    return Case(f'checked {group}', command, f'{command} {{known}} {group} {{address}}', all_right, **more)


def all_right(_, server, client):
    """Checks that every case of checked.c passed."""
    counts = re.search(r'(?m)^(\d+) of (\d+)$', client)
    if not counts or counts[1] == '0':
        return 'the requester does not count its cases'
    wrong = [line for line in client.splitlines() if line.startswith('not ok')]
    return '; '.join(wrong) or None


# Outcomes of rxe as the responder that differ from IBTA, also between two kernels: it does not check the bounds of windows,
# answers a SEND that is too long by "remote operation error", and completes all failed receives with the same status.
RXE_ANSWERS = ('send-long=REM_OP_ERR', 'send-long-packets=REM_OP_ERR', 'window-end=SUCCESS', 'send-long-responder=LOC_QP_OP_ERR',
               'send-long-packets-responder=LOC_QP_OP_ERR', 'receive-key-responder=LOC_QP_OP_ERR')
# Outcomes of rxe as the requester. For an unknown local key, 6.1 and 6.12 differ.
RXE_ASKS = ('atomic-odd=EINVAL', 'local-key=LOC_QP_OP_ERR', 'local-key=WR_FLUSH_ERR')

CASES = [
    *[pingpong(kind, family, lossy=(kind, family) == ('rc', IPV4)) for family in (IPV4, IPV6) for kind in ('rc', 'uc', 'ud', 'srq')],
    # Long enough for other traffic to advance the kernel's shared counter of IPv4 identifications.
    pingpong('uc', IPV4, 600),
    *[perftest(operation, lossy=operation == 'send') for operation in ('write', 'read', 'send', 'atomic')],
    connected('rping -s -a {address} -p {port} -C 10', 'rping -c -a {address} -p {port} -C 10 -v', cases.rping, lossy=True),
    connected('rping -s -a {address} -p {port} -C 10', 'rping -c -a {address} -p {port} -C 10 -v', cases.rping, family=IPV6),
    connected('ucmatose -p {port}', 'ucmatose -p {port} -s {address}', cases.messages),
    connected('rdma_server -p {port}', 'rdma_client -p {port} -s {address}', cases.ends),
    connected('rstream -p {port} -T v -S 65536 -C 10 -I 5', 'rstream -p {port} -T v -S 65536 -C 10 -I 5 -s {address}',
              cases.streams, lossy=True),
    # rxe reports an invalidated key by the kernel's flag, which has another value than IBV_WC_WITH_INV.
    checked('data', lossy=True, seconds=120, server_known=('invalidate-flag=absent',)),
    checked('atomic-write', since=(6, 2)),
    checked('unreliable'),
    checked('errors', seconds=120, server_known=RXE_ANSWERS, client_known=RXE_ASKS),
    connected('udaddy', 'udaddy -s {address}', cases.messages, port=7174),
    Case('iSER: open-iscsi, tgt', script=iser.run, seconds=150),
]
