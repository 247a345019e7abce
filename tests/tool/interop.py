# SPDX-License-Identifier: BSD-2-Clause
"""Packets as other makers send them, replayed to a queue pair through the kernel's network (docs/inside/interop.md).

    interop.py TOOL LIBRARIES TARGET

Host "b" runs softhca; host "a" is the foreign adapter: a raw socket that sends bytes, and a packet socket that sees what
comes back. Nothing here is softhca's: frames and ICRCs are put together in this file, answers are decoded by tshark and
their ICRCs computed by scapy, where these are installed, and by zlib.
"""
import importlib.util
import os
import shutil
import socket
import struct
import subprocess
import sys
import time
import unittest
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../clients'))
import place
from harness import main

ROCE, PEER_QPN, PSN, MTU = 4791, 0x118, 0x123, 1024
TARGET = os.path.abspath(sys.argv[3])
CAPTURES = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../data/rxe')
RXE = '10.9.0.3'
AETH = {0x0d, 0x0f, 0x10, 0x11, 0x12}

# As published: captured from a ConnectX-4 Lx and from a Linux host, in the tests of scapy's RoCE layer. From the IPv4
# header.
CONNECTX_CNP = bytes.fromhex(
    '45c2003c718c4000401191610a0011010a001201000012b7002800008100ffff4000011800000000'
    '00000000000000000000000000000000' '82fd002a')
LINUX_UC_SEND = bytes.fromhex(
    '45010040047840004011b4d5c0a80007c0a80007c00012b7002caca22460ffff000000d300cf1710'
    '4630818be28935d90e9a95505401be885e50000078f353f3')


def icrc(ip, bth):
    """Computes the ICRC of @ip, IPv4 and UDP headers, and the rest up to the padding (IBTA 7.8.1, annex A17.3.3)."""
    ip, bth = bytearray(ip), bytearray(bth)
    ip[1] = ip[8] = ip[10] = ip[11] = ip[26] = ip[27] = 0xff
    bth[4] = 0xff
    return struct.pack('<I', zlib.crc32(b'\xff' * 8 + bytes(ip) + bytes(bth)))


class Maker:
    """The values that a maker of adapters uses for fields that the standard leaves open."""

    def __init__(self, name, *, migrated, first, df=True, tos=0, port=0xc234, checksum=0, ttl=64):
        self.name, self.migrated, self.df, self.tos = name, migrated, df, tos
        self.port, self.checksum, self.ttl = port, checksum, ttl
        self.identification = first

    def bth(self, opcode, psn, payload=b'', *, headers=b'', ack=True, solicited=False, qpn=0):
        pad = -len(payload) % 4
        return struct.pack('>BBHIBBH', opcode, solicited << 7 | self.migrated << 6 | pad << 4, 0xffff, qpn, ack << 7,
                           psn >> 16 & 255, psn & 0xffff) + headers + payload + bytes(pad)

    def frame(self, bth, tos=None):
        self.identification = self.identification % 0xffff + 1
        ip = struct.pack('>BBHHHBBH4s4s', 0x45, self.tos if tos is None else tos, 28 + len(bth) + 4, self.identification,
                         0x4000 if self.df else 0, self.ttl, 17, 0, socket.inet_aton(place.ADDRESS['a']),
                         socket.inet_aton(place.ADDRESS['b']))
        udp = struct.pack('>HHHH', self.port, ROCE, 8 + len(bth) + 4, self.checksum)
        return ip + udp + bth + icrc(ip + udp, bth)


# Made by hand: docs/inside/interop.md lists the published values. The last one wraps the identifications.
MAKERS = [
    Maker('ConnectX', migrated=1, first=0x718b, tos=0x02, port=0xe5a1),
    Maker('Linux rxe', migrated=0, first=0x20dc, port=0xc462),
    Maker('may be fragmented', migrated=1, first=0xffc0, df=False, port=0xc777, ttl=3),
]


def read_pcapng(path):
    """Returns the frames of a file with enhanced packet blocks, from the IP header on."""
    with open(path, 'rb') as file:
        data = file.read()
    frames, at = [], 0
    while at < len(data):
        kind, length = struct.unpack_from('<II', data, at)
        if kind == 6:
            captured, = struct.unpack_from('<I', data, at + 20)
            frames.append(data[at + 28 + 14:at + 28 + captured])
        at += length
    return frames


def write_pcap(path, frames):
    with open(path, 'wb') as file:
        file.write(struct.pack('<IHHiIII', 0xa1b2c3d4, 2, 4, 0, 0, 1 << 16, 1))
        for number, frame in enumerate(frames):
            file.write(struct.pack('<IIII', number, 0, len(frame), len(frame)) + frame)


class Foreign:
    """The adapter on host "a", and the program on host "b" that it is connected to."""

    def __init__(self, hosts):
        self.capture = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
        self.capture.bind(('a0', 0))
        self.raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
        self.target = hosts.start('b', [TARGET, place.ADDRESS['b'], place.ADDRESS['a'], hex(PEER_QPN)],
                                   {'SOFTHCA_COUNTERS': 'stderr'})
        end = time.monotonic() + 20
        while '\n' not in self.target.read('out'):
            assert self.target.poll() is None and time.monotonic() < end, self.target.report()
            time.sleep(0.02)
        self.qpn, self.rkey, self.address = map(int, self.target.read('out').split('\n')[0].split())
        self.psn = PSN
        self.answers = []

    def send(self, maker, opcode, payload=b'', *, headers=b'', psn=None, tos=None, packets=1, **more):
        """Sends one packet, with the next sequence number, and advances that by @packets."""
        bth = maker.bth(opcode, self.psn if psn is None else psn, payload, headers=headers, qpn=self.qpn, **more)
        self.raw.sendto(maker.frame(bth, tos), (place.ADDRESS['b'], 0))
        if psn is None:
            self.psn += packets

    def reth(self, offset, length):
        return struct.pack('>QII', self.address + offset, self.rkey, length)

    def receive(self, last_psn, opcode=None, seconds=5):
        """Returns frames from host "b" until one answers @last_psn."""
        end = time.monotonic() + seconds
        got = []
        while time.monotonic() < end:
            self.capture.settimeout(max(0.01, end - time.monotonic()))
            try:
                frame = self.capture.recv(1 << 16)
            except TimeoutError:
                break
            if len(frame) < 54 or frame[23] != 17 or frame[26:30] != socket.inet_aton(place.ADDRESS['b']):
                continue
            if frame[36:38] != struct.pack('>H', ROCE):
                continue
            # Ethernet may pad after the end of the IP packet.
            frame = frame[:14 + struct.unpack('>H', frame[16:18])[0]]
            got.append(frame)
            if frame[42] != 0x81 and int.from_bytes(frame[51:54], 'big') == last_psn & 0xffffff and \
                    opcode in (None, frame[42]):
                self.answers += got
                return got
        raise AssertionError(f'no answer to {last_psn:#x}: {[frame[42:].hex() for frame in got]}, {self.target.report()}')


class Interop(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.hosts = place.Hosts()
        # The packet socket must see the packets of a wire: no trains, which the kernel would segment later.
        subprocess.run([*cls.hosts.enter('b'), 'ip', 'link', 'set', 'b0', 'gso_max_segs', '1'], check=True)
        for host, address in (('a', '10.0.17.1/32'), ('b', '10.0.18.1/32'), ('a', RXE + '/32'), ('b', '10.9.0.1/32')):
            subprocess.run([*cls.hosts.enter(host), 'ip', 'addr', 'add', address, 'dev', f'{host}0'], check=True)
        for far, near in (('10.0.17.1', '10.0.18.1'), (RXE, '10.9.0.1')):
            subprocess.run(['ip', 'route', 'add', near, 'dev', 'a0', 'src', far], check=True)
            subprocess.run([*cls.hosts.enter('b'), 'ip', 'route', 'add', far, 'dev', 'b0', 'src', near], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.hosts.__exit__()

    def setUp(self):
        self.foreign = Foreign(self.hosts)

    def tearDown(self):
        self.hosts.stop()

    def decode(self):
        """Returns tshark's output for all answers, and checks every ICRC."""
        frames = self.foreign.answers
        path = f'{self.hosts.directory}/answers.pcap'
        write_pcap(path, frames)
        for frame in frames:
            self.assertEqual(icrc(frame[14:42], frame[42:-4]), frame[-4:], frame.hex())
        if importlib.util.find_spec('scapy'):
            from scapy.contrib.roce import BTH
            from scapy.layers.l2 import Ether
            for frame in frames:
                self.assertEqual(Ether(frame)[BTH].compute_icrc(None), frame[-4:])
        if not shutil.which('tshark'):
            return
        fields = ['infiniband.bth.opcode', 'infiniband.bth.tver', 'infiniband.bth.p_key', 'infiniband.bth.destqp',
                  'infiniband.bth.psn', 'infiniband.aeth.syndrome', '_ws.malformed']
        done = subprocess.run(['tshark', '-n', '-r', path, '-T', 'fields', *[a for f in fields for a in ('-e', f)]],
                              text=True, capture_output=True, timeout=60, check=True)
        rows = [line.split('\t') for line in done.stdout.splitlines()]
        self.assertEqual(len(rows), len(frames))
        for frame, (opcode, version, p_key, qpn, psn, syndrome, malformed) in zip(frames, rows):
            self.assertEqual((int(opcode, 0), int(version, 0), int(p_key, 0), int(qpn, 0), malformed),
                             (frame[42], 0, 0xffff, PEER_QPN, ''))
            self.assertEqual(int(psn, 0), int.from_bytes(frame[51:54], 'big'))
            if frame[42] in AETH:
                # An ACK: neither NAK nor RNR NAK, with any credits.
                self.assertEqual(int(syndrome.split(',')[0], 0) & 0xe0, 0, frame.hex())

    def finish(self, maker):
        """Ends the program by the last byte. Returns the bytes of its memory, and its completions."""
        self.foreign.send(maker, 0x0a, b'\xff', headers=self.foreign.reth((1 << 16) - 1, 1))
        self.assertEqual(self.foreign.target.process.wait(20), 0, self.foreign.target.report())
        lines = self.foreign.target.read('out').splitlines()[1:]
        return bytes.fromhex(lines[-1].split()[1]), [line.split(' ') for line in lines[:-1]]

    def converse(self, maker):
        """Performs all operations of RC as @maker sends them; over 64 identifications, including the wrap."""
        foreign = self.foreign
        expected = bytearray(4096)
        for i in range(100):
            text = bytes([i + 1]) * (i % 9 + 1)
            foreign.send(maker, 0x0a, text, headers=foreign.reth(16 * i, len(text)))
            expected[16 * i:16 * i + len(text)] = text
        foreign.receive(foreign.psn - 1, 0x11)
        for text in (b'', b'a', b'ab', b'abc', b'abcd', b'x' * 61):
            foreign.send(maker, 0x04, text, solicited=True)
        foreign.send(maker, 0x05, b'now', headers=bytes([1, 2, 3, 4]))
        foreign.receive(foreign.psn - 1, 0x11)
        # A WRITE of three packets, only the last of which requests an acknowledgement.
        body = bytes(range(256)) * 8 + b'end'
        foreign.send(maker, 0x06, body[:MTU], headers=foreign.reth(1700, len(body)), ack=False)
        foreign.send(maker, 0x07, body[MTU:2 * MTU], ack=False)
        foreign.send(maker, 0x08, body[2 * MTU:])
        expected[1700:1700 + len(body)] = body
        foreign.receive(foreign.psn - 1, 0x11)
        # READ: first, middle, last; then the last again, as a requester that lost it would.
        read = foreign.psn
        foreign.send(maker, 0x0c, headers=foreign.reth(1700, 2 * MTU + 3), packets=3)
        got = foreign.receive(read + 2)
        responses = [frame for frame in got if frame[42] in (0x0d, 0x0e, 0x0f)]
        self.assertEqual([frame[42] for frame in responses], [0x0d, 0x0e, 0x0f])
        data = b''.join(frame[54 + (0 if frame[42] == 0x0e else 4):-4] for frame in responses)
        self.assertEqual(data[:-1], body)
        foreign.send(maker, 0x0c, headers=foreign.reth(1700 + 2 * MTU, 3), psn=read + 2)
        self.assertEqual(foreign.receive(read + 2, 0x10)[-1][58:61], b'end')
        # Atomics, and a repeated one.
        for compare, value, opcode in ((0, 5, 0x14), (5, 9, 0x13)):
            operands = struct.pack('>QIQQ', foreign.address + 4000 // 8 * 8, foreign.rkey, value, compare)
            foreign.send(maker, opcode, headers=operands)
            before = foreign.receive(foreign.psn - 1, 0x12)[-1][58:66]
            self.assertEqual(before, struct.pack('>Q', compare))
            foreign.send(maker, opcode, headers=operands, psn=foreign.psn - 1)
            self.assertEqual(foreign.receive(foreign.psn - 1, 0x12)[-1][58:66], before)
        expected[4000:4008] = struct.pack('=Q', 9)
        memory, completions = self.finish(maker)
        self.assertEqual(memory, bytes(expected))
        self.assertEqual(completions, [['0', 'recv', text.hex()] for text in
                                       (b'', b'a', b'ab', b'abc', b'abcd', b'x' * 61)] + [['0', 'imm', b'now'.hex()]])
        self.decode()
        self.assertEqual(foreign.target.read('explanations'), '')
        self.expect_heard(0)

    def test_congestion(self):
        """A marked packet causes the same CNP as on adapters."""
        foreign, maker = self.foreign, MAKERS[0]
        foreign.send(maker, 0x0a, b'marked', headers=foreign.reth(0, 6), tos=0x03)
        got = foreign.receive(PSN, 0x11)
        cnp = [frame for frame in got if frame[42] == 0x81]
        self.assertEqual(len(cnp), 1)
        published = bytearray(CONNECTX_CNP[28:-4])
        published[4:8] = struct.pack('>I', 0x40000000 | PEER_QPN)
        self.assertEqual(cnp[0][42:-4], bytes(published))
        self.assertEqual(cnp[0][15], CONNECTX_CNP[1])
        self.finish(maker)
        self.decode()

    def counters(self):
        """Returns the counters of the program, which has ended."""
        lines = [line.split() for line in self.foreign.target.read('err').splitlines()]
        return {fields[0]: int(fields[1]) for fields in lines if len(fields) == 2}

    def expect_heard(self, others):
        """All packets were read and valid; @others of them were for queue pairs that do not exist here."""
        counters = self.counters()
        self.assertEqual(counters.get('udp_forwarded', 0), others, counters)
        for name in ('udp_bad_icrc', 'udp_malformed'):
            self.assertNotIn(name, counters)
        return counters

    def test_published_cnp(self):
        """A CNP byte by byte as an adapter sent it, and one for this queue pair, with another number and ICRC."""
        foreign, maker = self.foreign, MAKERS[0]
        foreign.raw.sendto(CONNECTX_CNP, ('10.0.18.1', 0))
        bth = bytearray(CONNECTX_CNP[28:-4])
        bth[4:8] = struct.pack('>I', 0x40000000 | foreign.qpn)
        foreign.raw.sendto(maker.frame(bytes(bth), tos=0xc2), (place.ADDRESS['b'], 0))
        self.finish(maker)
        self.assertEqual(self.expect_heard(1)['udp_cnps_received'], 1)
        self.assertEqual(foreign.target.read('explanations'), '')

    def test_captured_rxe(self):
        """Packets of Linux rxe, byte by byte with their addresses, for queue pairs that do not exist here."""
        foreign = self.foreign
        sent = 0
        for name in sorted(os.listdir(CAPTURES)):
            if not name.endswith('.pcapng') or 'bad-icrc' in name:
                continue
            for frame in read_pcapng(os.path.join(CAPTURES, name)):
                # IPv4 packets, except datagrams for queue pair 1.
                if frame[0] != 0x45 or socket.inet_ntoa(frame[12:16]) != RXE or frame[28] == 0x64:
                    continue
                foreign.raw.sendto(frame, ('10.9.0.1', 0))
                sent += 1
        self.assertEqual(sent, 58)
        self.finish(MAKERS[1])
        counters = self.expect_heard(sent)
        # The last one is sent by finish().
        self.assertEqual(counters['udp_packets_received'], sent + 1)
        self.assertEqual(counters['udp_icrc_15_bits'], sent + 1)

    def test_published_send(self):
        """A packet of a Linux host that talked to itself."""
        subprocess.run([*self.hosts.enter('b'), 'ip', 'addr', 'add', '192.168.0.7/32', 'dev', 'lo'], check=True)
        subprocess.run(['ip', 'route', 'add', '192.168.0.7', 'dev', 'a0', 'src', place.ADDRESS['a']], check=True)
        for name in ('all', 'b0'):
            for setting, value in (('accept_local', 1), ('rp_filter', 0)):
                command = f'echo {value} > /proc/sys/net/ipv4/conf/{name}/{setting}'
                subprocess.run([*self.hosts.enter('b'), 'sh', '-c', command], check=True)
        self.foreign.raw.sendto(LINUX_UC_SEND, ('192.168.0.7', 0))
        self.finish(MAKERS[1])
        self.assertEqual(self.expect_heard(1)['udp_packets_received'], 2)


for one in MAKERS:
    setattr(Interop, 'test_' + one.name.lower().replace(' ', '_'), lambda self, maker=one: self.converse(maker))

if __name__ == '__main__':
    place.enter()
    main()
