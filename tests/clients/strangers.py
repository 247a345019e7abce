#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Packets of strangers for connected queue pairs, as bytes made here from IBTA 9.2, 9.3 and annex A17.

    strangers.py PROGRAM      the test: PROGRAM is strangers.c; prints TAP
    strangers.py --send raw|ask|plain SOURCE DESTINATION HEX      sends one packet, given from BTH to its pad

A stranger knows all numbers: queue pair, sequence number, address, key. On another host it forges any source address,
with a raw socket; on the same host it is another user, with a plain socket. The test also sends packets as the peer,
which must be accepted.
"""
import os
import signal
import socket
import struct
import sys
import time
import zlib

from place import A, ADDRESS, B, Hosts, enter, ip

PORT = 4791
SOURCE_PORT = 0xc123
FORGED = '10.77.0.9'
SECOND = '10.77.0.11'
NOBODY = 65534
PEER_QPN = 0x11
PSN = 1000
WRITE_ONLY = {'rc': 0x0a, 'uc': 0x2a}
DONT_FRAGMENT = 2
IP_MTU_DISCOVER = 10


# ---- packets ----

def write(kind, qpn, rkey, address, text):
    """Returns BTH and RETH of a WRITE of one packet, with its payload."""
    data = text.encode().ljust(16, b'\0')
    return struct.pack('>BBHIIQII', WRITE_ONLY[kind], 0x40, 0xffff, qpn, 0x80000000 | PSN, address, rkey, len(data)) + data


def with_headers(source, destination, packet):
    """Returns the IPv4 and UDP headers, and the packet with its ICRC."""
    length = len(packet) + 4
    ipv4 = struct.pack('>BBHHHBBH4s4s', 0x45, 0, 28 + length, 0, 0x4000, 64, 17, 0, socket.inet_aton(source),
                       socket.inet_aton(destination))
    udp = struct.pack('>HHHH', SOURCE_PORT, PORT, 8 + length, 0)
    masked = bytearray(b'\xff' * 8 + ipv4 + udp + packet)
    # Traffic class, time to live, both checksums, and the byte of BTH that routers may change (7.8.1, annex A17.3.3).
    for at in (9, 16, 18, 19, 34, 35, 40):
        masked[at] = 0xff
    return ipv4 + udp + packet + struct.pack('<I', zlib.crc32(bytes(masked)))


def send(how, source, destination, packet):
    whole = with_headers(source, destination, packet)
    if how == 'plain':
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sender.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, DONT_FRAGMENT)
        sender.bind((source, SOURCE_PORT))
        sender.sendto(whole[28:], (destination, PORT))
        return
    ear = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    ear.bind(('0.0.0.0', PORT))
    ear.settimeout(10)
    socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW).sendto(whole, (destination, 0))
    if how == 'ask':
        print(ear.recv(4096).hex())


# ---- the test ----

class Test:
    def __init__(self, hosts, program):
        self.hosts = hosts
        self.program = os.path.abspath(program)
        self.count = 0
        self.failed = 0

    def check(self, what, right, *reports):
        self.count += 1
        self.failed += not right
        print(f'{"ok" if right else "not ok"} {self.count} - {what}')
        for report in reports if not right else ():
            for line in report.report():
                print('#', line)

    def send(self, host, how, source, destination, packet):
        """Returns the answer, if one was requested; None: the packet could not be sent."""
        sender = self.hosts.start(host, [sys.executable, os.path.abspath(__file__), '--send', how, source, destination,
                                         packet.hex()])
        until(lambda: sender.poll() is not None)
        if sender.poll() != 0:
            print('#', *sender.report(), sep='\n# ')
            return None
        return sender.read('out').strip()


def until(condition, seconds=20):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def lines(program, word):
    return [line.split() for line in program.read('out').splitlines() if line.startswith(word)]


def known_by(program, name):
    """Returns the values of the line "NAME QPN RKEY ADDRESS"."""
    until(lambda: lines(program, name + ' '))
    return [int(word, 16) for word in lines(program, name + ' ')[0][1:]]


def slots(program):
    return sorted(int(words[1]) for words in lines(program, 'slot '))


def from_elsewhere(test):
    """Both the victim's peer and the stranger are on host b."""
    victim = test.hosts.start(A, [test.program, 'far', ADDRESS[B]])
    known = {kind: known_by(victim, kind) for kind in ('rc', 'uc')}
    # An address that the victim gained since, and that none of its queue pairs has.
    ip('addr', 'add', f'{SECOND}/24', 'dev', 'a0')
    for first, (kind, (qpn, rkey, address)) in zip((0, 8), known.items()):
        def packet(slot, text):
            return write(kind, qpn, rkey, address + 64 * (first + slot), text)

        test.send(B, 'raw', FORGED, ADDRESS[A], packet(1, 'forged'))
        test.send(B, 'raw', ADDRESS[B], SECOND, packet(2, 'misdirected'))
        for rule in ('68 PACKET_SOURCE', '69 PACKET_TARGET'):
            heard = until(lambda: any(f'{qpn:#x}' in line and rule in line
                                      for line in victim.read('explanations').splitlines()))
            test.check(f'{kind}: a stranger is explained by rule {rule}', heard, victim)
        answer = test.send(B, 'ask' if kind == 'rc' else 'raw', ADDRESS[B], ADDRESS[A], packet(3, 'peer'))
        test.check(f'{kind}: the peer is heard', until(lambda: first + 3 in slots(victim)), victim)
        if kind == 'rc':
            # BTH, AETH, ICRC: an acknowledgement of that packet, which gives no credits, after one message.
            answer = bytes.fromhex(answer or '00' * 20)
            test.check('rc: the peer is answered', answer[0] == 0x11 and answer[5:8] == bytes([0, 0, PEER_QPN]) and
                       answer[9:12] == PSN.to_bytes(3, 'big') and answer[12:16] == bytes([0x1f, 0, 0, 1]), victim)
    test.check('and strangers are not', slots(victim) == [3, 11], victim)


def has_other_user():
    with open('/proc/self/uid_map', encoding='ascii') as table:
        ranges = [[int(word) for word in line.split()] for line in table]
    return any(first <= NOBODY < first + count for first, _, count in ranges)


def from_another_user(test):
    """The peers are two processes of host a; the stranger is another user of it."""
    if not has_other_user():
        print('# this namespace has no other user')
        return
    pair = test.hosts.start(A, [test.program, 'near'])
    for name in ('owner', 'other'):
        qpn, rkey, address = known_by(pair, name)
        sent = test.send(A, 'plain', ADDRESS[A], ADDRESS[A], write('rc', qpn, rkey, address + 64, 'user'))
        test.check(f'{name}: another user sends', sent is not None)
        heard = until(lambda: any(f'{qpn:#x}' in line and '67 PACKET_LINK' in line
                                  for line in pair.read('explanations').splitlines()))
        test.check(f'{name}: a stranger is explained', heard, pair)
    until(lambda: len(lines(pair, 'process ')) == 2)
    for _, pid in lines(pair, 'process '):
        os.kill(int(pid), signal.SIGUSR1)
    test.check('the peers hear each other only', until(lambda: slots(pair) == [63, 63]), pair)


def main():
    if sys.argv[1] == '--send':
        send(*sys.argv[2:5], bytes.fromhex(sys.argv[5]))
        return
    with Hosts() as hosts:
        test = Test(hosts, sys.argv[1])
        from_elsewhere(test)
        hosts.stop()
        from_another_user(test)
    print(f'1..{test.count}')
    sys.exit(1 if test.failed else 0)


if __name__ == '__main__':
    if sys.argv[1] != '--send':
        enter()
    main()
