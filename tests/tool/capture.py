#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The wire, as others see it: a capture of every opcode (capture_all.c), decoded by tshark, its ICRCs computed by scapy.

tshark 4.0 decodes what follows BTH for RC, UC and UD; of XRC it knows the opcodes, of DC and of masked atomics nothing: for
these, what it calls unknown is held against bytes that are put together here, after docs/wire.md."""
import binascii
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

from harness import LIBRARIES, clean_environment, main

WRITER = os.path.abspath(sys.argv[3])
OPCODES = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../src/transport/opcodes.def')

# struct packet_opcode.headers
DETH, RETH, ATOMICETH, AETH, ATOMICACKETH, IMMDT, IETH, PAYLOAD, XRCETH, DCETH = (1 << bit for bit in range(10))

NAMES = {
    0: 'Reliable Connection (RC) - SEND First', 1: 'Reliable Connection (RC) - SEND Middle',
    12: 'Reliable Connection (RC) - RDMA READ Request', 17: 'Reliable Connection (RC) - Acknowledge',
    0x14: 'Reliable Connection (RC) - FetchAdd', 0x17: 'Reliable Connection (RC) - SEND Only with Invalidate',
    0x24: 'Unreliable Connection (UC) - SEND Only', 0x64: 'Unreliable Datagram (UD) - SEND only',
    0xb4: 'Extended Reliable Connection (XRC) - FetchAdd',
}

FIELDS = """frame.interface_name frame.interface_queue frame.packet_flags_direction frame.comment frame.protocols
_ws.expert.severity eth.src eth.dst ip.src ip.dst ip.id ip.flags.df ip.dsfield ip.ttl ip.checksum.status
ipv6.src ipv6.dst ipv6.tclass ipv6.flow ipv6.hlim udp.srcport udp.dstport udp.length udp.checksum.status udp.payload
infiniband.bth.opcode infiniband.bth.se infiniband.bth.m infiniband.bth.padcnt infiniband.bth.tver infiniband.bth.p_key
infiniband.bth.destqp infiniband.bth.a infiniband.bth.reserved7 infiniband.bth.psn infiniband.deth.q_key
infiniband.deth.srcqp infiniband.reth.va infiniband.reth.r_key infiniband.reth.dmalen infiniband.atomiceth.swapdt
infiniband.atomiceth.cmpdt infiniband.aeth.syndrome infiniband.aeth.msn infiniband.atomicacketh.origremdt
infiniband.immdt infiniband.ieth infiniband.payload infiniband.invariant.crc infiniband.vendor""".split()

# What guesses at the payload, which is no protocol at all; and comments, which are experts' notes to tshark.
GUESSES = ['rpcordma', 'infiniband.eoib']


def mapped(address):
    return address[7:] if address.startswith('::ffff:') and '.' in address else None


def number(text):
    return int(text, 0) if text else None


def decode(path):
    """A dictionary of FIELDS for each packet."""
    command = ['tshark', '-n', '-r', path, '-T', 'fields', '-E', 'separator=/t', '-E', 'occurrence=a',
               '-o', 'udp.check_checksum:TRUE', '-o', 'ip.check_checksum:TRUE']
    for guess in GUESSES:
        command += ['--disable-protocol', guess]
    for field in FIELDS:
        command += ['-e', field]
    done = subprocess.run(command, text=True, capture_output=True, timeout=120, check=False, env=clean_environment())
    assert done.returncode == 0, done.stderr
    return [dict(zip(FIELDS, line.split('\t'))) for line in done.stdout.splitlines()]


def body(put):
    """What follows BTH in a packet with the fields `put`, up to the ICRC."""
    headers = put['headers']
    out = b''
    if headers & DETH:
        out += struct.pack('>II', put['qkey'], put['source_qpn'])
    if headers & XRCETH:
        out += struct.pack('>I', put['xrc_srqn'])
    if headers & DCETH:
        out += struct.pack('>QQII', put['dc_key'], put['dc_connection'], put['dc_first_psn'], put['source_qpn'])
    if headers & RETH:
        out += struct.pack('>QII', put['remote_address'], put['rkey'], put['dma_length'])
    if headers & ATOMICETH:
        out += struct.pack('>QIQQ', put['remote_address'], put['rkey'], put['swap_add'], put['compare'])
    if headers & AETH:
        out += struct.pack('>I', put['syndrome'] << 24 | put['msn'])
    if headers & ATOMICACKETH:
        out += struct.pack('>Q', put['original'])
    if headers & IMMDT:
        out += bytes.fromhex(put['immediate'])
    if headers & IETH:
        out += bytes.fromhex(put['invalidate'])
    if 'MASKED' in put['name']:
        adds = 'FETCH_ADD' in put['name']
        return out + struct.pack('>II' if put['operand_bytes'] == 4 else '>QQ', put['swap_mask'],
                                 0 if adds else put['compare_mask'])
    out += payload(put)
    return out + bytes(-len(out) % 4)


def payload(put):
    return bytes(i & 0xff for i in range(put['payload']))


def icrc_ipv6(ip):
    """Of a packet from the IPv6 header on, without ICRC: scapy 2.5 has none for it."""
    masked = bytearray(b'\xff' * 8 + ip)
    masked[8] = 0x6f
    masked[9:12] = b'\xff' * 3
    masked[8 + 7] = 0xff
    masked[8 + 46:8 + 48] = b'\xff' * 2
    masked[8 + 48 + 4] = 0xff
    return struct.pack('<I', binascii.crc32(masked))


class Capture(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.path = os.path.join(cls.directory.name, 'all.pcapng')
        done = subprocess.run([WRITER, cls.path], text=True, capture_output=True, timeout=60, check=False,
                              env=clean_environment(LD_LIBRARY_PATH=LIBRARIES, SOFTHCA_GIDS='loopback'))
        assert done.returncode == 0, done.stderr
        cls.put = [json.loads(line) for line in done.stdout.splitlines()]
        cls.got = decode(cls.path)

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()

    def packets(self, wanted=lambda put: True):
        self.assertEqual(len(self.put), len(self.got))
        chosen = [(put, got) for put, got in zip(self.put, self.got) if wanted(put)]
        self.assertGreater(len(chosen), 0)
        return chosen

    def test_every_opcode(self):
        with open(OPCODES, encoding='utf-8') as table:
            opcodes = {int(code, 0) for code in re.findall(r'^OPCODE\((0x\w+),', table.read(), re.M)}
        self.assertGreater(len(opcodes), 80)
        self.assertEqual({number(got['infiniband.bth.opcode']) for got in self.got}, opcodes)

    def test_frame(self):
        for i, (put, got) in enumerate(self.packets()):
            self.assertEqual(got['frame.interface_name'], 'mlx5_0')
            self.assertEqual(number(got['frame.packet_flags_direction']), 1 if i & 1 else 2)
            self.assertEqual(number(got['frame.interface_queue']) or 0, put['qpn'])
            self.assertEqual(got['frame.comment'], put['comment'])

    def test_ip_and_udp(self):
        for put, got in self.packets():
            ipv4 = mapped(put['source'])
            if ipv4:
                self.assertEqual(got['ip.src'], ipv4)
                self.assertEqual((number(got['ip.id']), got['ip.flags.df']), (0, '1'))
                self.assertEqual(number(got['ip.dsfield']), put['traffic_class'])
                self.assertEqual(number(got['ip.ttl']), put['hop_limit'])
                self.assertEqual(got['ip.checksum.status'], '1')
            else:
                self.assertEqual((got['ipv6.src'], got['ipv6.dst']), (put['source'], put['destination']))
                self.assertEqual(number(got['ipv6.tclass']), put['traffic_class'])
                self.assertEqual(number(got['ipv6.flow']), put['flow_label'])
                self.assertEqual(number(got['ipv6.hlim']), put['hop_limit'])
            self.assertEqual((number(got['udp.srcport']), got['udp.dstport']), (put['port'], '4791'))
            self.assertEqual(got['udp.checksum.status'], '1')

    def test_ethernet(self):
        macs = {put['destination']: (got['eth.src'], got['eth.dst']) for put, got in self.packets()}
        self.assertEqual(macs['::ffff:192.168.1.2'], ('02:00:c0:a8:01:01', '02:00:c0:a8:01:02'))
        self.assertEqual(macs['fe80::a8bb:ccff:fedd:ee02'], ('aa:bb:cc:dd:ee:01', 'aa:bb:cc:dd:ee:02'))
        self.assertEqual(macs['ff0e::ffff:e001:203'][1], '01:00:5e:01:02:03')

    def test_nothing_malformed(self):
        for put, got in self.packets():
            self.assertIn(':udp:infiniband', got['frame.protocols'])
            self.assertNotIn('_ws.malformed', got['frame.protocols'], put)
            # Comments are noted as such, and short times to live; nothing beyond.
            for severity in filter(None, got['_ws.expert.severity'].split(',')):
                self.assertIn(number(severity), (0x100000, 0x400000), put)

    def test_bth(self):
        for put, got in self.packets():
            self.assertEqual(number(got['infiniband.bth.opcode']), put['opcode'])
            self.assertEqual(got['infiniband.bth.se'], str(put['solicited']))
            self.assertEqual(got['infiniband.bth.m'], '1')
            self.assertEqual(number(got['infiniband.bth.padcnt']), -put['payload'] % 4)
            self.assertEqual((got['infiniband.bth.tver'], number(got['infiniband.bth.p_key'])), ('0', 0xffff))
            self.assertEqual(number(got['infiniband.bth.destqp']), put['destination_qpn'])
            self.assertEqual(got['infiniband.bth.a'], str(put['acknowledge']))
            self.assertEqual(number(got['infiniband.bth.reserved7']), 0)
            self.assertEqual(number(got['infiniband.bth.psn']), put['psn'])

    def test_opcode_names(self):
        done = subprocess.run(['tshark', '-n', '-r', self.path, '-T', 'text', '-V', '-O', 'infiniband'], text=True,
                              capture_output=True, timeout=120, check=True, env=clean_environment())
        for opcode, name in NAMES.items():
            self.assertIn(f'Opcode: {name} ({opcode})', done.stdout)

    def field(self, put, got, header, name, value):
        """tshark shows some fields twice, once as their header."""
        shown = ','.join(set(got[name].split(',')))
        if put['headers'] & header:
            self.assertEqual(number(shown) if isinstance(value, int) else shown, value, (name, put))
        else:
            self.assertEqual(shown, '', (name, put))

    def test_extension_headers(self):
        """Of the transports that tshark decodes."""
        for put, got in self.packets(lambda put: put['opcode'] < 0x80):
            field = self.field
            field(put, got, DETH, 'infiniband.deth.q_key', put['qkey'])
            field(put, got, DETH, 'infiniband.deth.srcqp', put['source_qpn'])
            field(put, got, RETH | ATOMICETH, 'infiniband.reth.va', put['remote_address'])
            field(put, got, RETH | ATOMICETH, 'infiniband.reth.r_key', put['rkey'])
            field(put, got, RETH, 'infiniband.reth.dmalen', put['dma_length'])
            field(put, got, ATOMICETH, 'infiniband.atomiceth.swapdt', put['swap_add'])
            field(put, got, ATOMICETH, 'infiniband.atomiceth.cmpdt', put['compare'])
            field(put, got, AETH, 'infiniband.aeth.syndrome', put['syndrome'])
            field(put, got, AETH, 'infiniband.aeth.msn', put['msn'])
            field(put, got, ATOMICACKETH, 'infiniband.atomicacketh.origremdt', put['original'])
            field(put, got, IMMDT, 'infiniband.immdt', put['immediate'])
            field(put, got, IETH, 'infiniband.ieth', put['invalidate'])
            self.assertEqual(got['infiniband.vendor'], '', put)

    def test_bytes(self):
        """What follows BTH, of every transport."""
        for put, got in self.packets():
            frame = bytes.fromhex(got['udp.payload'])
            self.assertEqual(frame[12:-4], body(put), put)
            self.assertEqual(number(got['udp.length']), 8 + len(frame))
            if put['opcode'] >= 0x80:
                # With the ICRC, and once more in part.
                self.assertEqual(got['infiniband.vendor'].split(',')[-1], frame[12:].hex(), put)

    def test_icrc(self):
        """scapy agrees on every IPv4 packet, for IPv6 zlib does."""
        import logging
        logging.getLogger('scapy').setLevel(logging.ERROR)
        try:
            from scapy.contrib.roce import BTH
        except ImportError:
            self.skipTest('python3-scapy is not installed')
        from scapy.layers.inet import IP
        from scapy.layers.l2 import Ether
        from scapy.utils import RawPcapNgReader
        kinds = set()
        packets = [bytes(packet) for packet, _ in RawPcapNgReader(self.path)]
        self.assertEqual(len(packets), len(self.put))
        for put, data in zip(self.put, packets):
            packet = Ether(data)
            if IP in packet:
                del packet[BTH].icrc
                self.assertEqual(bytes(packet[IP])[-4:], data[-4:], put)
            else:
                self.assertEqual(icrc_ipv6(data[14:-4]), data[-4:], put)
            kinds.add((put['opcode'], IP in packet))
        self.assertEqual(len(kinds), 2 * len({put['opcode'] for put in self.put}))


if __name__ == '__main__':
    if not shutil.which('tshark'):
        print('1..0 # SKIP tshark is not installed')
        sys.exit()
    main()
