#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
softhca data: JSON for scripts. Captures are made here, by draft-ietf-opsawg-pcapng and draft-ietf-opsawg-pcap.

data.py COMMAND LIBRARIES
"""
import json
import os
import re
import struct
import tempfile
import unittest

from harness import alone, main, softhca

# Time in ns since 1970.
TIME = 1_700_000_000_123_456_789


def data(*arguments):
    done = softhca('data', *arguments)
    assert (done.returncode, done.stderr) == (0, ''), done.stderr
    return json.loads(done.stdout)


def option(order, code, value):
    return struct.pack(order + 'HH', code, len(value)) + value + bytes(-len(value) % 4)


def block(order, kind, body):
    body += bytes(-len(body) % 4)
    return struct.pack(order + 'II', kind, len(body) + 12) + body + struct.pack(order + 'I', len(body) + 12)


def pcapng(order, resolution, ticks, flags=None, comment=b''):
    """One packet of four bytes; @resolution: the value of if_tsresol, or None."""
    interface = struct.pack(order + 'HHI', 1, 0, 0) + (option(order, 9, bytes([resolution])) if resolution is not None else b'')
    packet = struct.pack(order + 'IIIII', 0, ticks >> 32, ticks & 0xffffffff, 4, 4) + b'\1\2\3\4'
    if flags is not None:
        packet += option(order, 2, struct.pack(order + 'I', flags))
    if comment:
        packet += option(order, 1, comment)
    return block(order, 0x0a0d0d0a, struct.pack(order + 'IHHq', 0x1a2b3c4d, 1, 0, -1)) + block(order, 1, interface) + block(order, 6, packet)


def pcap(order, magic, fraction):
    head = struct.pack(order + 'IHHiIII', magic, 2, 4, 0, 0, 65535, 1)
    return head + struct.pack(order + 'IIII', TIME // 10**9, fraction, 4, 4) + b'\1\2\3\4'


class Data(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)

    def packets(self, content):
        path = os.path.join(self.directory.name, 'capture')
        with open(path, 'wb') as file:
            file.write(content)
        return data('packets', path)

    def test_rules(self):
        rules = data('rules')
        listed = re.findall(r'(?m)^(\d+) +(\w+) ', softhca('explain').stdout)
        self.assertEqual([(str(rule['number']), rule['name']) for rule in rules], listed)
        self.assertGreater(len(rules), 200)
        for rule in rules:
            self.assertTrue(rule['text'] and rule['source'] and rule['advice'], rule)

    def test_timeline(self):
        """The magic and the suffix are those of docs/use/timeline.md and softhca(1); numbers of the other tables are those of IBTA and mlx5."""
        tables = data('timeline')
        self.assertEqual((tables['magic'], tables['suffix']), ('softhca timeline', '.records'))
        self.assertEqual(tables['wqe_opcodes']['8'][0], 'RDMA_WRITE')
        self.assertEqual(tables['wqe_opcodes']['16'][0], 'RDMA_READ')
        self.assertEqual([tables[f'nak_{name}'] for name in ('sequence', 'invalid_request', 'remote_access', 'remote_operation')], [0, 1, 2, 3])
        self.assertEqual(tables['statuses'][:2], ['success', 'local length error'])

    def test_times(self):
        for order in '<>':
            for resolution, ticks, ns in ((9, TIME, TIME), (6, TIME // 1000, TIME // 1000 * 1000), (None, TIME // 1000, TIME // 1000 * 1000),
                                          (3, TIME // 10**6, TIME // 10**6 * 10**6), (0x80 | 20, 5 << 20 | 1 << 19, 5_500_000_000),
                                          (0, 7, 7 * 10**9), (64, 1, 0)):
                [packet] = self.packets(pcapng(order, resolution, ticks))['packets']
                self.assertEqual((packet['ns'], packet['bytes'], packet['direction']), (ns, 4, ''), (order, resolution))
            for magic, fraction, ns in ((0xa1b2c3d4, 123456, TIME // 1000 * 1000), (0xa1b23c4d, 123456789, TIME)):
                [packet] = self.packets(pcap(order, magic, fraction))['packets']
                self.assertEqual((packet['ns'], packet['bytes'], packet['direction']), (ns, 4, ''), (order, magic))

    def test_directions(self):
        for order in '<>':
            for flags, direction in ((0, ''), (1, 'in'), (2, 'out'), (0x20001, 'in')):
                found = self.packets(pcapng(order, 9, TIME, flags, b'a "comment"\n\x01'))
                self.assertEqual((found['packets'][0]['direction'], found['packets'][0]['comment']), (direction, 'a "comment"\n\x01'))

    def test_many(self):
        """The first 300 and the total; of a damaged capture those before the damage."""
        whole = pcap('<', 0xa1b23c4d, 5)
        many = whole + whole[24:] * 400
        found = self.packets(many)
        self.assertEqual((len(found['packets']), found['count']), (300, 401))
        self.assertEqual(self.packets(many[:-1])['count'], 400)
        self.assertEqual(self.packets(whole[:24]), {'packets': [], 'count': 0})
        for content in (b'', b'\n', b'abc', b'\0' * 100):
            self.assertIsNone(self.packets(content))

    def test_wrong_use(self):
        for arguments, status in (((), 2), (('tables',), 2), (('rules', 'x'), 2), (('packets',), 2), (('packets', '/none'), 1)):
            done = softhca('data', *arguments)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count('\n')), (status, '', 1), arguments)


class Json(unittest.TestCase):
    """With --json the commands output the same data as without it."""

    def output(self, *arguments, status=0):
        done = softhca(*arguments)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout

    def test_info(self):
        text, shown = self.output('info', '--mtu', '512'), json.loads(self.output('info', '--json', '--mtu', '512'))
        settings = re.findall(r'(?m)^  (SOFTHCA_\w+) +(.*?) +(default|environment|option)$', text)
        self.assertEqual(shown['settings'], {name: {'value': value, 'origin': origin} for name, value, origin in settings})
        self.assertEqual(shown['settings']['SOFTHCA_MTU'], {'value': '512', 'origin': 'option'})
        [device] = shown['devices']
        self.assertIn(f'device {device["name"]}: vendor 0x{device["vendor_id"]:04x} part {device["vendor_part_id"]}, firmware '
                      f'{device["firmware"]}, guid {device["guid"]}\n', text)
        [port] = device['ports']
        self.assertEqual((port['active_mtu'], port['max_mtu']), (512, 4096))
        gids = re.findall(r'(?m)^    gid (\d+) +(\S+) +(RoCE v\d|IB) +(\S+)$', text)
        self.assertEqual([(str(gid['index']), gid['gid'], gid['type'], gid.get('interface', '-')) for gid in port['gids']], gids)
        limits = re.findall(r'(?m)^    (max_\w+) +(\d+)$', text)
        self.assertEqual(device['limits'], {name: int(value) for name, value in limits})
        counters = re.findall(r'(?m)^  ([a-z_0-9]+) +(\S.*)$', text[text.index('\ncounters\n'):])
        self.assertEqual(shown['counters'], dict(counters))
        for name, description in shown['links'].items():
            self.assertRegex(text, rf'(?m)^  {name} +{re.escape(description)}$')
        self.assertEqual((shown['listeners'], shown['connections']), ([], []))

    def test_explain(self):
        rules = data('rules')
        self.assertEqual(json.loads(self.output('explain', '--json')), rules)
        by_name = {rule['name']: rule for rule in rules}
        self.assertEqual(json.loads(self.output('explain', '--json', '7', 'KEY_STALE')), [by_name['KEY_RANGE'], by_name['KEY_STALE']])
        self.assertEqual(json.loads(self.output('explain', 'no-such-rule', '--json', '7', status=1)), [by_name['KEY_RANGE']])
        self.assertEqual(json.loads(self.output('explain', 'no-such-rule', '--json', status=1)), [])

    def decoded(self, *arguments, status=0):
        """Returns the output of decode, and the same text made from the JSON."""
        text, shown = self.output('decode', *arguments, status=status), json.loads(self.output('decode', '--json', *arguments, status=status))
        lines = []
        for part in shown['parts']:
            lines.append(part['part'])
            for field in part['fields']:
                value = field['value']
                values = [value[at:at + 64] for at in range(0, len(value), 64)] if field['name'] == 'data' else [value]
                meaning = f'  # {field["meaning"]}' if 'meaning' in field else ''
                lines += [f'  {field["name"]:24} = {piece}{meaning}' for piece in values]
        self.assertEqual(lines, [line for line in text.splitlines() if not line.startswith('# ')])
        self.assertEqual([line[2:] for line in text.splitlines() if line.startswith('# ')], shown['notes'])
        return shown

    def test_decode(self):
        # An inline WRITE of 76 bytes; a truncated WQE.
        ctrl = '00000008 00004007 00000000 00000000 0000000000001000 00000100 00000000'
        shown = self.decoded('wqe', ctrl, '8000004c', ''.join(f'{byte:02x}' for byte in range(76)))
        self.assertIsNone(shown['fault'])
        self.assertEqual(shown['parts'][0]['fields'][2], {'name': 'opcode', 'value': '0x8', 'meaning': 'RDMA_WRITE'})
        self.assertIn('data', [field['name'] for field in shown['parts'][-1]['fields']])
        self.assertRegex(self.decoded('wqe', '0000000a 00004002', status=1)['fault'], '^ctrl at byte 0 has 16 bytes')
        path = os.path.join(self.enterContext(tempfile.TemporaryDirectory()), 'capture')
        with open(path, 'wb') as file:
            file.write(pcapng('<', 9, TIME, comment=b'first \x1b\nsecond'))
        shown = self.decoded('packet', path, status=1)
        self.assertEqual(shown['notes'][:2], ['first ?', 'second'])


if __name__ == '__main__':
    alone()
    main()
