#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Packets as seen by other programs: a capture of every opcode (capture_all.c), and captures of tests that run on one
device, decoded by tshark, their ICRCs computed by scapy.

tshark 4.0 decodes the headers after BTH for RC, UC and UD; of XRC it knows the opcodes, of DC and of masked atomics
nothing: for these, the bytes that it reports as unknown are compared with bytes built here, after
docs/inside/wire.md."""
import binascii
import importlib.util
import ipaddress
import json
import logging
import os
import re
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

from harness import LIBRARIES, alone, clean_environment, main, softhca

WRITER = os.path.abspath(sys.argv[3])
PROGRAMS = {os.path.basename(path).split('-', 1)[1]: os.path.abspath(path) for path in sys.argv[4:]}
OPCODES = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../src/format/opcodes.def')

# struct packet_opcode.headers
DETH, RETH, ATOMICETH, AETH, ATOMICACKETH, IMMDT, IETH, PAYLOAD, XRCETH, DCETH = (1 << bit for bit in range(10))

CNP = 0x81
ATOMIC_WRITE = 0x1d

NAMES = {
    0: 'Reliable Connection (RC) - SEND First', 1: 'Reliable Connection (RC) - SEND Middle',
    12: 'Reliable Connection (RC) - RDMA READ Request', 17: 'Reliable Connection (RC) - Acknowledge',
    0x14: 'Reliable Connection (RC) - FetchAdd', 0x17: 'Reliable Connection (RC) - SEND Only with Invalidate',
    0x24: 'Unreliable Connection (UC) - SEND Only', 0x64: 'Unreliable Datagram (UD) - SEND only',
    0xb4: 'Extended Reliable Connection (XRC) - FetchAdd',
}

FIELDS = """frame.time_epoch frame.interface_name frame.interface_queue frame.packet_flags_direction frame.comment frame.protocols
_ws.expert.severity eth.src eth.dst ip.src ip.dst ip.id ip.flags.df ip.dsfield ip.ttl ip.checksum.status
ipv6.src ipv6.dst ipv6.tclass ipv6.flow ipv6.hlim udp.srcport udp.dstport udp.length udp.checksum.status udp.payload
infiniband.bth.opcode infiniband.bth.se infiniband.bth.m infiniband.bth.padcnt infiniband.bth.tver infiniband.bth.p_key
infiniband.bth.destqp infiniband.bth.a infiniband.bth.reserved7 infiniband.bth.psn infiniband.deth.q_key
infiniband.deth.srcqp infiniband.reth.va infiniband.reth.r_key infiniband.reth.dmalen infiniband.atomiceth.swapdt
infiniband.atomiceth.cmpdt infiniband.aeth.syndrome infiniband.aeth.msn infiniband.atomicacketh.origremdt
infiniband.immdt infiniband.ieth infiniband.payload infiniband.invariant.crc infiniband.vendor""".split()

# Heuristic dissectors of the payload, which is not a protocol; and comments, which are expert notes to tshark.
GUESSES = ['rpcordma', 'infiniband.eoib']


def mapped(address):
    return address[7:] if address.startswith('::ffff:') and '.' in address else None


def number(text):
    return int(text, 0) if text else None


def decode(path):
    """Returns a dictionary of FIELDS for each packet."""
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
    """Returns the bytes after BTH of a packet with the fields `put`, up to the ICRC."""
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
    """Computes the ICRC of a packet from the IPv6 header on, without ICRC: scapy 2.5 lacks it for IPv6."""
    masked = bytearray(b'\xff' * 8 + ip)
    masked[8] = 0x6f
    masked[9:12] = b'\xff' * 3
    masked[8 + 7] = 0xff
    masked[8 + 46:8 + 48] = b'\xff' * 2
    masked[8 + 48 + 4] = 0xff
    return struct.pack('<I', binascii.crc32(masked))


def scapy_layers():
    from scapy.contrib.roce import BTH
    from scapy.layers.inet import IP
    from scapy.layers.l2 import Ether
    return BTH, IP, Ether


def packets_of(path):
    """Returns the bytes of each packet of a capture."""
    # It reports a comment without a newline as an error.
    logging.getLogger('scapy').setLevel(logging.ERROR)
    from scapy.utils import RawPcapNgReader
    return [bytes(packet) for packet, _ in RawPcapNgReader(path)]


def icrc(data):
    """Returns the ICRC of a frame from the Ethernet header on, as other programs compute it."""
    if data[12:14] != b'\x08\x00':
        return icrc_ipv6(data[14:-4])
    BTH, IP, Ether = scapy_layers()
    packet = Ether(data)
    del packet[BTH].icrc
    return bytes(packet[IP])[-4:]


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
            # Comments are expert notes, and so are short times to live; nothing else may be noted.
            for severity in filter(None, got['_ws.expert.severity'].split(',')):
                self.assertIn(number(severity), (0x100000, 0x400000), put)

    def test_bth(self):
        for put, got in self.packets():
            self.assertEqual(number(got['infiniband.bth.opcode']), put['opcode'])
            self.assertEqual(got['infiniband.bth.se'], str(put['solicited']))
            # A CNP (annex A17.9.3), for which tshark shows no BECN.
            notification = put['opcode'] == CNP
            self.assertEqual(got['infiniband.bth.m'], '0' if notification else '1')
            self.assertEqual(bytes.fromhex(got['udp.payload'])[4], 0x40 if notification else 0)
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
        """Of the transports that tshark decodes; tshark 4.0 does not decode ATOMIC WRITE."""
        for put, got in self.packets(lambda put: put['opcode'] < 0x80 and put['opcode'] != ATOMIC_WRITE):
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
        """The bytes after BTH, of every transport."""
        for put, got in self.packets():
            frame = bytes.fromhex(got['udp.payload'])
            self.assertEqual(frame[12:-4], body(put), put)
            self.assertEqual(number(got['udp.length']), 8 + len(frame))
            if put['opcode'] >= 0x80:
                # With the ICRC, and a part of it again.
                self.assertEqual(got['infiniband.vendor'].split(',')[-1], frame[12:].hex(), put)

    @unittest.skipUnless(importlib.util.find_spec('scapy'), 'python3-scapy is not installed')
    def test_icrc(self):
        """scapy agrees on every IPv4 packet; zlib is used for IPv6."""
        packets = packets_of(self.path)
        self.assertEqual(len(packets), len(self.put))
        for put, data in zip(self.put, packets):
            self.assertEqual(icrc(data), data[-4:], put)
        families = {(put['opcode'], mapped(put['source']) is None) for put in self.put}
        self.assertEqual(len(families), 2 * len({put['opcode'] for put in self.put}))


class Run(unittest.TestCase):
    """Programs that talk to themselves, with packets that never crossed a wire."""

    def capture(self, program, passes=True):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, '%p.pcapng')
            done = softhca('run', '--explain', 'off', '--capture', path, '--', PROGRAMS[program])
            if passes:
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            names = os.listdir(directory)
            self.assertTrue(names)
            for name in names:
                self.assertRegex(name, r'^[0-9]+\.pcapng$')
            # A program that runs itself again in the other profile makes a capture each time.
            path = max((os.path.join(directory, name) for name in names), key=os.path.getsize)
            got = decode(path)
            self.assertGreater(len(got), 100)
            self.check_frames(got)
            if importlib.util.find_spec('scapy'):
                packets = packets_of(path)
                self.assertEqual(len(packets), len(got))
                for data in packets[:5000]:
                    self.assertEqual(icrc(data), data[-4:])
        return got

    def check_frames(self, got):
        for packet in got:
            self.assertIn(':udp:infiniband', packet['frame.protocols'])
            self.assertNotIn('_ws.malformed', packet['frame.protocols'])
            self.assertEqual(packet['udp.checksum.status'], '1')
            self.assertEqual(number(packet['frame.packet_flags_direction']), 2)

    def check_order(self, got, begins, ends):
        """Messages are cut at the path MTU, and their packets are numbered consecutively: SENDs of RC."""
        under_way = {}
        messages = 0
        for packet in got:
            opcode, qpn, psn = (number(packet['infiniband.bth.' + field]) for field in ('opcode', 'destqp', 'psn'))
            length = len(packet['udp.payload']) // 2 - 16
            if opcode in begins:
                under_way[qpn] = (psn, length)
            elif opcode in ends or opcode == 1:
                expected, mtu = under_way[qpn]
                self.assertEqual(psn, (expected + 1) & 0xffffff)
                if opcode == 1:
                    self.assertEqual(length, mtu)
                    self.assertIn(mtu, (256, 512, 1024, 2048, 4096))
                under_way[qpn] = (psn, mtu)
                messages += opcode in ends
        self.assertGreater(messages, 0)

    def opcodes(self, got):
        return {number(packet['infiniband.bth.opcode']) for packet in got}

    def test_transports(self):
        got = self.capture('transport_ops')
        self.assertGreaterEqual(self.opcodes(got), set(range(21)) | set(range(32, 44)) | {22, 23, 100, 101})
        self.check_order(got, begins={0}, ends={2, 3, 22})
        times = [packet['frame.time_epoch'] for packet in got]
        self.assertEqual(times, sorted(times))
        self.assertTrue(any(not time.endswith('000') for time in times), 'nanoseconds')

    def test_dc(self):
        self.assertGreaterEqual(self.opcodes(self.capture('dc_operations')), set(range(0xc0, 0xd3)) | {0xd8, 0xd9})

    def test_xrc(self):
        self.assertGreaterEqual(self.opcodes(self.capture('xrc_traffic')), {0xa0, 0xa1, 0xa2, 0xa4, 0xaa, 0xac, 0xb1})

    def test_masked_atomics(self):
        self.assertGreaterEqual(self.opcodes(self.capture('raw_wqe')), {0xd3, 0xd4, 0x12})

    def test_explanations(self):
        """Checks a refusal, the request that it refused, and the packets dropped after it."""
        # Written for messages in one piece.
        got = self.capture('responder_errors', passes=False)
        naks = [packet for packet in got if (number(packet['infiniband.aeth.syndrome']) or 0) > 0x60]
        self.assertGreater(len(naks), 10)
        for nak in naks:
            self.assertRegex(nak['frame.comment'], r'^mlx5_0 qp 0x\w+: .* \[\d+ \w+; ')
        text = '\n'.join(packet['frame.comment'] for packet in got
                         if number(packet['infiniband.bth.opcode']) != 0x11)
        self.assertRegex(text, r'receive . LOC_ACCESS_ERR: .*\[7 KEY_RANGE; ')
        self.assertRegex(text, r'which is in state ERR: dropped\. \[81 PACKET_STATE; ')


class Manager(unittest.TestCase):
    """Messages between two managers matter most for interoperability: tshark must decode each field of the table,
    with the value that was put there (capture_cm.c)."""
    # tshark's names of the fields of src/format/cm_messages.def, where it has them.
    NAMES = {
        'REQ': {
            'local_comm_id': '', 'local_ca_guid': 'localcaguid', 'local_qkey': 'localqkey', 'local_qpn': 'localqpn',
            'responder_resources': 'responderres', 'local_eecn': 'localeecn', 'initiator_depth': 'initdepth',
            'remote_eecn': 'remoteeecn', 'remote_response_timeout': 'remoteresptout', 'transport_service': 'transpsvctype',
            'flow_control': 'e2eflowctrl', 'starting_psn': 'startpsn', 'local_response_timeout': 'localresptout',
            'retry_count': 'retrcount', 'pkey': 'pkey', 'path_mtu': 'pppmtu', 'rdc_exists': 'rdcexist',
            'rnr_retry_count': 'rnrretrcount', 'max_cm_retries': 'maxcmretr', 'srq': 'srq',
            'extended_transport': 'ext_transport', 'primary_local_lid': 'prim_locallid',
            'primary_remote_lid': 'prim_remotelid', 'primary_traffic_class': 'prim_tfcclass',
            'primary_hop_limit': 'prim_hoplim', 'primary_service_level': 'prim_sl',
            'primary_subnet_local': 'prim_subnetlocal', 'primary_ack_timeout': 'prim_localacktout',
            'alternate_local_lid': 'alt_locallid', 'alternate_remote_lid': 'alt_remotelid',
            'alternate_local_gid': 'alt_localgid', 'alternate_remote_gid': 'alt_remotegid',
            'alternate_traffic_class': 'alt_tfcclass', 'alternate_hop_limit': 'alt_hoplim',
            'alternate_service_level': 'alt_sl', 'alternate_subnet_local': 'alt_subnetlocal',
            'alternate_ack_timeout': 'alt_localacktout'},
        'REP': {
            'local_comm_id': '', 'remote_comm_id': 'remotecommid', 'local_qkey': 'localqkey', 'local_qpn': 'localqpn',
            'local_eecn': 'localeecn', 'starting_psn': 'startpsn', 'responder_resources': 'respres',
            'initiator_depth': 'initdepth', 'target_ack_delay': 'tgtackdelay', 'failover_accepted': 'failoveracc',
            'flow_control': 'e2eflowctrl', 'rnr_retry_count': 'rnrretrcount', 'srq': 'srq',
            'local_ca_guid': 'localcaguid', 'private_data': 'private'},
        'RTU': {'local_comm_id': 'localcommid', 'remote_comm_id': 'remotecommid', 'private_data': 'private'},
        'REJ': {'local_comm_id': 'localcommid', 'remote_comm_id': 'remotecommid', 'message_rejected': 'msgrej',
                'info_length': 'rejinfolen', 'reason': 'reason', 'info': 'ari', 'private_data': 'private'},
        'DREQ': {'local_comm_id': 'localcommid', 'remote_comm_id': 'remotecommid', 'private_data': 'private',
                 'remote_qpn': 'infiniband.cm.req.remoteqpneecn'},
        'DREP': {'local_comm_id': 'localcommid', 'remote_comm_id': 'remotecommid', 'private_data': 'private'},
    }
    # Fields of the REQ that it shows in parts, or in one of two forms.
    PARTS = ['serviceid.prefix', 'serviceid.protocol', 'serviceid.dport', 'ip_cm.majv', 'ip_cm.minv', 'ip_cm.ipv',
             'ip_cm.reserved', 'ip_cm.sport', 'ip_cm.sip4', 'ip_cm.dip4', 'ip_cm.sip6', 'ip_cm.dip6', 'ip_cm.private',
             'prim_localgid_ipv4', 'prim_remotegid_ipv4']
    # Fields that tshark 4.0 does not decode, or reads from another place (the paths' flow label and rate): the bytes,
    # according to the figures of IBTA 12.6 to 12.11; the vendor id according to annex A17 (ECE). Big-endian, first bit
    # and width; raw bytes: width 0.
    PLACES = {
        'REQ': {'vendor_id': (5 * 8, 24), 'primary_flow_label': (88 * 8, 20), 'primary_packet_rate': (91 * 8 + 2, 6),
                'alternate_flow_label': (132 * 8, 20), 'alternate_packet_rate': (135 * 8 + 2, 6)},
        'REP': {'vendor_id_high': (15 * 8, 8), 'vendor_id_middle': (19 * 8, 8), 'vendor_id_low': (23 * 8, 8)},
        'MRA': {'local_comm_id': (0, 32), 'remote_comm_id': (32, 32), 'message_acknowledged': (64, 2),
                'service_timeout': (72, 5), 'private_data': (80, 0)},
        'SIDR_REQ': {'request_id': (0, 32), 'pkey': (32, 16), 'service_id': (64, 64), 'private_data': (128, 0)},
        'SIDR_REP': {'request_id': (0, 32), 'status': (32, 8), 'info_length': (40, 8), 'vendor_id_high': (48, 16),
                     'qpn': (64, 24), 'vendor_id_low': (88, 8), 'service_id': (96, 64), 'qkey': (160, 32),
                     'info': (192, 0), 'private_data': (768, 0)},
    }
    ATTRIBUTES = {'REQ': 0x10, 'MRA': 0x11, 'REJ': 0x12, 'REP': 0x13, 'RTU': 0x14, 'DREQ': 0x15, 'DREP': 0x16,
                  'SIDR_REQ': 0x17, 'SIDR_REP': 0x18}
    FRAME = ['infiniband.bth.opcode', 'infiniband.bth.destqp', 'infiniband.bth.p_key', 'infiniband.deth.q_key',
             'infiniband.deth.srcqp', 'udp.dstport', 'udp.length', 'infiniband.mad.baseversion', 'infiniband.mad.mgmtclass',
             'infiniband.mad.classversion', 'infiniband.mad.method', 'infiniband.mad.status',
             'infiniband.mad.classspecific']

    @staticmethod
    def shown_as(message, name):
        """Returns the name of a field in tshark, from the short one above."""
        prefix = 'infiniband.cm.' + {'DREP': 'drsp'}.get(message, message.lower())
        return name if name.startswith('infiniband') else f'{prefix}.{name}'.rstrip('.')

    def capture(self, *settings):
        """Returns the messages of capture_cm by transaction id, and tshark's output for each."""
        names = self.FRAME + ['infiniband.mad.transactionid', 'infiniband.mad.attributeid',
                              'infiniband.mad.attributemodifier', 'infiniband.mad.data', '_ws.malformed']
        names += [self.shown_as(message, name) for message, known in self.NAMES.items() for name in known.values()]
        names += [self.shown_as('REQ', name) for name in self.PARTS]
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, 'cm.pcapng')
            done = softhca('run', '--gids', 'loopback', '--capture', path, *settings, '--', PROGRAMS['capture_cm'])
            self.assertEqual(done.returncode, 0, done.stderr)
            put = {message['transaction_id']: message for message in map(json.loads, done.stdout.splitlines())}
            fields = [argument for name in names for argument in ('-e', name)]
            done = subprocess.run(['tshark', '-n', '-r', path, '-T', 'fields', *fields], text=True, check=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=60)
        rows = [dict(zip(names, line.split('\t'))) for line in done.stdout.splitlines()]
        got = {number(row['infiniband.mad.transactionid']): row for row in rows}
        self.assertEqual(set(got), set(put))
        return put, got

    def check_frame(self, put, row):
        self.assertEqual([number(row[field]) for field in self.FRAME],
                         [0x64, 1, 0xffff, 0x80010000, 1, 4791, 288, 1, 7, 2, 3, 0, 0])
        self.assertEqual(number(row['infiniband.mad.attributeid']), self.ATTRIBUTES[put['message']])
        # Only these have ECE options (annex A17).
        modifier = put['attribute_modifier'] if put['message'] in ('REQ', 'REP', 'SIDR_REP') else 0
        self.assertEqual(number(row['infiniband.mad.attributemodifier']), modifier, put['message'])
        self.assertEqual(row['_ws.malformed'], '')

    @staticmethod
    def request_parts(row):
        """Fields of a REQ that are shown in parts."""
        get = lambda name: row['infiniband.cm.req.' + name]
        value = lambda name: number(get(name))
        pack = lambda text: ipaddress.ip_address(text).packed
        out = {'service_id': int(get('serviceid.prefix').replace(':', ''), 16) << 24 | value('serviceid.protocol') << 16 |
                             value('serviceid.dport')}
        for field, name in (('primary_local_gid', 'prim_localgid_ipv4'), ('primary_remote_gid', 'prim_remotegid_ipv4')):
            out[field] = (bytes(10) + b'\xff\xff' + pack(get(name))).hex()
        header = bytes([value('ip_cm.majv') << 4 | value('ip_cm.minv'), value('ip_cm.ipv') << 4 | value('ip_cm.reserved')])
        header += struct.pack('>H', value('ip_cm.sport'))
        for name in ('sip', 'dip'):
            header += bytes(12) + pack(get(f'ip_cm.{name}4')) if get(f'ip_cm.{name}4') else pack(get(f'ip_cm.{name}6'))
        out['private_data'] = header.hex() + get('ip_cm.private').replace(':', '')
        return out

    def seen(self, message, row):
        """Returns the fields of @message by the names of our table, as decoded by tshark, otherwise from its bytes."""
        out = {}
        for field, name in self.NAMES.get(message, {}).items():
            text = row[self.shown_as(message, name)]
            out[field] = text.replace(':', '') if field in ('private_data', 'info') or field.endswith('_gid') else number(text)
        data = bytes.fromhex(row['infiniband.mad.data'].replace(':', ''))
        self.assertEqual(len(data), 232)
        for field, (first, width) in self.PLACES.get(message, {}).items():
            bits = int.from_bytes(data, 'big') >> 232 * 8 - first - width & (1 << width) - 1
            out[field] = bits if width else data[first // 8:].hex()
        return out | (self.request_parts(row) if message == 'REQ' else {})

    def check(self, *settings):
        put, got = self.capture(*settings)
        counts = dict.fromkeys(self.ATTRIBUTES, 0)
        for transaction, message in put.items():
            name, row = message['message'], got[transaction]
            self.check_frame(message, row)
            seen = self.seen(name, row)
            # The fields are exactly those of the table.
            self.assertEqual(set(seen), set(message['fields']), name)
            for field, value in message['fields'].items():
                # A field of bytes without its own width ends with the message, or where another begins.
                shown = seen[field][:len(value)] if isinstance(value, str) else seen[field]
                self.assertEqual(shown, value, f'{name}.{field}')
            counts[name] += 1
        self.assertEqual(set(counts.values()), {8})

    def test_local(self):
        self.check('--link', 'local')

    def test_udp(self):
        self.check('--link', 'udp')

    def test_auto(self):
        self.check('--link', 'auto')


class Files(unittest.TestCase):
    def test_two_processes(self):
        """The second one gets a message, and runs without a capture."""
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, 'one.pcapng')
            inner = f'exec {PROGRAMS["raw_wqe"]}'
            done = softhca('run', '--explain', 'stderr', '--capture', path, '--', 'flock', path, 'sh', '-c', inner)
            self.assertIn('another process writes this file', done.stderr)

    def test_may_not_be_that_long(self):
        """RLIMIT_FSIZE: the program continues without the capture, the file ends with a whole block, and a message
        is printed."""
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, 'short.pcapng')
            done = softhca('run', '--explain', 'stderr', '--capture', path, '--', PROGRAMS['raw_wqe'],
                           preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192)))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stderr, 'the capture ends: (no room for a packet|File too large)')
            self.assertLessEqual(os.path.getsize(path), 8192)
            self.assertGreater(len(decode(path)), 5)

    def test_cannot_be_made(self):
        """softhca run does not start the program. Without softhca run the program continues, and the library says why it has no file."""
        done = softhca('run', '--capture', '/nowhere/x.pcapng', '--', PROGRAMS['raw_wqe'])
        self.assertEqual((done.returncode, done.stderr), (1, 'softhca: --capture: /nowhere/x.pcapng: No such file or directory\n'))
        environment = clean_environment(SOFTHCA_CAPTURE='/nowhere/x.pcapng', SOFTHCA_EXPLAIN='stderr', LD_LIBRARY_PATH=LIBRARIES)
        done = subprocess.run([PROGRAMS['raw_wqe']], env=environment, text=True, timeout=60, check=False, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE)
        self.assertIn('SOFTHCA_CAPTURE=/nowhere/x.pcapng: No such file or directory', done.stderr)


if __name__ == '__main__':
    alone()
    if not shutil.which('tshark'):
        print('1..0 # SKIP tshark is not installed')
        sys.exit()
    main()
