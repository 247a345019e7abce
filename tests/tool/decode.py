#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""softhca decode and encode. Expected values of WQEs and CQEs are built here after docs/inside/mlx5-formats.md;
those of packets are tshark's output for the same capture."""
import os
import re
import struct
import subprocess
import sys
import tempfile
import unittest

from harness import TOOL, clean_environment, main, softhca

WRITER = os.path.abspath(sys.argv[3])
CM_WRITER = os.path.abspath(sys.argv[4])


def parts(text):
    """[(name, {field: value}), …]; data of several lines is joined."""
    found = []
    for line in text.splitlines():
        line = line.split('#')[0].rstrip()
        if not line:
            continue
        if '=' not in line:
            found.append((line, {}))
            continue
        name, value = (word.strip() for word in line.split('=', 1))
        fields = found[-1][1]
        fields[name] = fields.get(name, '') + value
    return found


def number(text):
    return int(text, 0)


def decode(*arguments, **options):
    done = softhca('decode', *arguments, **options)
    assert done.returncode == 0, (done.stdout, done.stderr)
    return parts(done.stdout)


def encode(text):
    done = softhca('encode', input=text)
    assert done.returncode == 0, done.stderr
    return bytes.fromhex(done.stdout)


def ctrl(opcode, ds, opmod=0, index=0, qpn=0x40, fm_ce_se=0, imm=0):
    """mlx5-formats 1.2."""
    return struct.pack('>IIBHBI', opmod << 24 | index << 8 | opcode, qpn << 8 | ds, 0, 0, fm_ce_se, imm)


def data(count, lkey, address):
    return struct.pack('>IIQ', count, lkey, address)


RADDR = struct.pack('>QII', 0x1122334455667788, 0xabcd, 0)


class Wqes(unittest.TestCase):
    """Each opcode with its segments; docs/inside/mlx5-formats.md by section."""

    def shown(self, wqe, *options):
        """Returns the parts after the control segment; encoding the text gives the same bytes again."""
        done = softhca('decode', 'wqe', *options, wqe.hex())
        self.assertEqual((done.returncode, done.stderr), (0, ''), done.stdout)
        self.assertEqual(encode(done.stdout).hex(), wqe.hex())
        shown = parts(done.stdout)
        self.assertEqual(shown[0][0], 'ctrl')
        return shown[1:]

    def names(self, wqe, *options):
        return [name for name, _ in self.shown(wqe, *options)]

    def test_control(self):
        """1.2, 1.3: IBV_SEND_FENCE, SIGNALED and SOLICITED of libmlx5."""
        wqe = ctrl(0x0b, 1, index=0x1234, qpn=0x123456, fm_ce_se=0x80 | 0x08 | 0x02, imm=0xdeadbeef)
        fields = decode('wqe', wqe.hex())[0][1]
        self.assertEqual({name: number(value) for name, value in fields.items()},
                         {'opmod': 0, 'wqe_index': 0x1234, 'opcode': 0x0b, 'qpn': 0x123456, 'ds': 1, 'signature': 0,
                          'stream': 0, 'fence': 4, 'completion': 2, 'solicited': 1, 'imm': 0xdeadbeef})
        done = softhca('decode', 'wqe', wqe.hex())
        for comment in ('# SEND_IMM', '# small_and_fence', '# always'):
            self.assertIn(comment, done.stdout)

    def test_segments_by_opcode(self):
        """1.4, 1.5."""
        one = data(16, 1, 2)
        for opcode, ds, body, names in (
                (0x00, 1, b'', []), (0x0a, 2, one, ['data']), (0x01, 3, one * 2, ['data', 'data']),
                (0x08, 3, RADDR + one, ['raddr', 'data']), (0x09, 3, RADDR + one, ['raddr', 'data']),
                (0x10, 3, RADDR + one, ['raddr', 'data']),
                (0x11, 4, RADDR + bytes(16) + one, ['raddr', 'atomic', 'data']),
                (0x12, 4, RADDR + bytes(16) + one, ['raddr', 'atomic', 'data']),
                (0x14, 5, RADDR + bytes(32) + one, ['raddr', 'masked_atomic', 'data']),
                (0x15, 5, RADDR + bytes(32) + one, ['raddr', 'masked_atomic', 'data']),
                (0x20, 2, bytes(16), ['psv'])):
            self.assertEqual(self.names(ctrl(opcode, ds) + body), names, hex(opcode))
        for opcode, opmod, name in ((0x14, 8, 'masked_swap_4'), (0x15, 8, 'masked_add_4'), (0x15, 9, 'masked_add_8')):
            self.assertEqual(self.names(ctrl(opcode, 4, opmod=opmod) + RADDR + bytes(16) + one), ['raddr', name, 'data'])

    def test_write(self):
        raddr, sge = self.shown(ctrl(0x08, 3) + RADDR + data(4096, 0x1700, 0x7fff00001000))
        self.assertEqual({name: number(value) for name, value in raddr[1].items()},
                         {'remote_address': 0x1122334455667788, 'rkey': 0xabcd})
        self.assertEqual({name: number(value) for name, value in sge[1].items()},
                         {'byte_count': 4096, 'lkey': 0x1700, 'address': 0x7fff00001000})

    def test_inline(self):
        """1.5: 4 bytes of header, padded to 16; pointers may follow."""
        payload = bytes(range(1, 21))
        wqe = ctrl(0x0a, 4) + struct.pack('>I', 0x80000000 | 20) + payload + bytes(8) + data(1, 2, 3)
        shown = self.shown(wqe)
        self.assertEqual([name for name, _ in shown], ['inline', 'pad', 'data'])
        self.assertEqual((number(shown[0][1]['byte_count']), shown[0][1]['data']), (20, payload.hex()))

    def test_address_vectors(self):
        """1.6, 1.7."""
        av = struct.pack('>IIIBBH4s6sBBI16s', 0x11111111, 0, 0x80000000 | 0x456, 0x32, 5, 49152, bytes(4),
                         bytes.fromhex('020304050607'), 0xb8, 64, 1 << 30 | 3 << 20 | 0x12345, bytes(range(16)))
        (_, ud), (_, grh), sge = self.shown(ctrl(0x0a, 5) + av + data(1, 2, 3), '--transport', 'ud')
        self.assertEqual((number(ud['qkey']), number(ud['qpn']), number(ud['static_rate']), number(ud['service_level']),
                          number(ud['lid_or_udp_port'])), (0x11111111, 0x456, 3, 2, 49152))
        self.assertEqual((grh['mac'], number(grh['traffic_class']), number(grh['hop_limit']), number(grh['sgid_index']),
                          number(grh['flow_label']), grh['gid']),
                         ('020304050607', 0xb8, 64, 3, 0x12345, bytes(range(16)).hex()))
        self.assertEqual(sge[0], 'data')
        (_, dc), *rest = self.shown(ctrl(0x08, 6) + av + RADDR + data(1, 2, 3), '--transport', 'dc')
        self.assertEqual((number(dc['dc_key']), number(dc['dctn'])), (0x1111111100000000, 0x456))
        self.assertEqual([name for name, _ in rest], ['address_grh', 'raddr', 'data'])
        compact = av[:8] + struct.pack('>I', 0x456) + av[12:16]
        self.assertEqual(self.names(ctrl(0x0a, 3) + compact + data(1, 2, 3), '--transport=ud'), ['address_ud', 'data'])
        xrc = self.shown(ctrl(0x08, 4) + struct.pack('>I12x', 0x777) + RADDR + data(1, 2, 3), '--transport', 'xrc')
        self.assertEqual((xrc[0][0], number(xrc[0][1]['srqn'])), ('xrc', 0x777))

    def umr(self, flags, klm, bsf, mask, context, payload=b'', imm=0x1234):
        body = struct.pack('>B3xHHQ32x', flags, klm, bsf, mask) + context + payload
        return ctrl(0x25, 1 + len(body) // 16, imm=imm) + body

    def test_window_bind(self):
        """1.15: a type 2 window of 8192 bytes is bound."""
        mask = 1 << 29 | 1 << 13 | 1 << 0 | 1 << 6 | 1 << 18 | 1 << 19 | 1 << 20 | 1 << 21 | 1 << 14
        context = struct.pack('>BBBBIIIQQI16xI3xBI', 0, 0, 0x30, 0, 0x40 << 8 | 0x35, 0, 0, 0x10000, 8192, 0, 0, 0, 0)
        shown = dict(self.shown(self.umr(0xb0, 4, 0, mask, context, data(8192, 0x99, 0x10000) + bytes(48), imm=0x1234)))
        umr, mkey = shown['umr'], shown['mkey']
        self.assertEqual({name: number(umr[name]) for name in ('inline', 'must_be_free', 'translation_offset_on', 'check_qpn',
                                                               'klm_octowords')},
                         {'inline': 1, 'must_be_free': 1, 'translation_offset_on': 1, 'check_qpn': 0, 'klm_octowords': 4})
        self.assertEqual(number(umr['mkey_mask']), mask)
        self.assertEqual({name: number(mkey[name]) for name in ('free', 'remote_write', 'remote_read', 'local_write', 'qpn', 'tag',
                                                                'start_address', 'length')},
                         {'free': 0, 'remote_write': 1, 'remote_read': 1, 'local_write': 0, 'qpn': 0x40, 'tag': 0x35,
                          'start_address': 0x10000, 'length': 8192})
        text = softhca('decode', 'wqe', self.umr(0xb0, 4, 0, mask, context, bytes(64)).hex()).stdout
        self.assertIn('# LEN|START_ADDR|MKEY|QPN|LW|RR|RW|A|FREE', text)

    def test_layouts(self):
        """1.9, 1.10: the example of mlx5dv_wr_mkey_configure(3), 512 bytes and 8 of each of two blocks."""
        repeat = struct.pack('>IIIHH', 520, 0x400, 2, 0, 2) + struct.pack('>HHIQ', 516, 512, 0x11, 0x1000) + \
            struct.pack('>HHIQ', 8, 8, 0x22, 0x2000) + bytes(16)
        shown = self.shown(self.umr(0x80, 4, 0, 1, bytes(64), repeat))
        self.assertEqual([name for name, _ in shown], ['umr', 'mkey', 'repeat', 'repeat_entry', 'repeat_entry', 'klm'])
        self.assertEqual(number(shown[2][1]['repeat_count']), 2)
        self.assertEqual([number(entry['stride']) for _, entry in shown[3:5]], [516, 8])
        self.assertEqual([number(entry['address']) for _, entry in shown[3:5]], [0x1000, 0x2000])
        self.assertEqual(self.names(self.umr(0x80, 4, 0, 1, bytes(64), data(1, 2, 3) * 3 + bytes(16))),
                         ['umr', 'mkey', 'klm', 'klm', 'klm', 'klm'])
        # Not inline: a data segment names the payload.
        self.assertEqual(self.names(self.umr(0, 4, 4, 1, bytes(64), data(128, 2, 3))), ['umr', 'mkey', 'data'])

    def bsf(self, size_code=2):
        """1.11: T10-DIF of 512 bytes in memory, CRC32C of 4096 on the wire."""
        section = struct.pack('>HHIBB3xBH', 0xc000, 0x1234, 0x56789abc, 1, 0x88, 0x41, 0xffff)
        return struct.pack('>BBBBIII', size_code << 6, 0xff, 3, 1, 0xffffffff, 0x42 << 24 | 0x77, 0x66) + bytes(32) + section

    CRYPTO = struct.pack('>BBBBIB7x16sI4x8s16x', 0xc1, 1, 0, 0, 0xffffffff, 1, bytes(range(16)), 0x1337, b'keytag00')

    def test_bsf(self):
        names = ['bsf', 'bsf_extension', 'bsf_t10', 'bsf_t10']
        shown = self.shown(self.umr(0x80, 0, 4, 1 << 12, bytes(64), self.bsf()))
        self.assertEqual([name for name, _ in shown], ['umr', 'mkey', *names])
        bsf, section = shown[2][1], shown[5][1]
        self.assertEqual((number(bsf['wire_block_or_copy_mask']), number(bsf['memory_block']), number(bsf['wire_format']),
                          number(bsf['wire_psv']), number(bsf['memory_psv'])), (3, 1, 0x42, 0x77, 0x66))
        self.assertEqual({name: number(section[name]) for name in ('valid', 'refresh', 'app_tag', 'ref_tag', 'guard', 'repeat',
                                                                   'seed_ones', 'increment_ref_tag', 'escape_app',
                                                                   'escape_app_ref')},
                         {'valid': 1, 'refresh': 1, 'app_tag': 0x1234, 'ref_tag': 0x56789abc, 'guard': 1, 'repeat': 1,
                          'seed_ones': 1, 'increment_ref_tag': 1, 'escape_app': 1, 'escape_app_ref': 0})
        both = self.bsf(3) + self.CRYPTO
        self.assertEqual(self.names(self.umr(0x80, 0, 8, 1 << 12, bytes(64), both))[2:], [*names, 'bsf_crypto'])
        self.assertEqual([name for name, _ in decode('bsf', both.hex())], [*names, 'bsf_crypto'])
        self.assertEqual([name for name, _ in decode('bsf', bytes(16).hex())], ['bsf'])
        (_, crypto), = decode('bsf', self.CRYPTO.hex())
        self.assertEqual((number(crypto['order']), number(crypto['data_unit']), crypto['initial_tweak'], number(crypto['dek']),
                          crypto['key_tag']), (1, 1, bytes(range(16)).hex(), 0x1337, b'keytag00'.hex()))

    def test_psv_and_memcpy(self):
        """1.13, 1.14."""
        (_, psv), = self.shown(ctrl(0x20, 2) + struct.pack('>IH2xQ', 0x77, 0, 0x1234567800000000))
        self.assertEqual((number(psv['index']), number(psv['transient'])), (0x77, 0x1234567800000000))
        shown = self.shown(ctrl(0x2f, 4, opmod=1) + struct.pack('>IIQ', 0, 0x55, 0x6000) + data(64, 1, 2) + data(64, 3, 4))
        self.assertEqual([name for name, _ in shown], ['mmo', 'data', 'data'])
        self.assertEqual((number(shown[0][1]['opaque_lkey']), number(shown[0][1]['opaque_address'])), (0x55, 0x6000))

    def test_ring(self):
        """1.1: each WQE begins a block of 64 bytes; the rest after the last one is not shown."""
        ring = ctrl(0x0a, 2) + data(1, 2, 3) + b'\xaa' * 32 + ctrl(0x00, 1) + bytes(48 + 64)
        done = softhca('decode', 'wqe', ring.hex())
        self.assertEqual(done.returncode, 0)
        self.assertEqual([name for name, _ in parts(done.stdout)], ['ctrl', 'data', 'bytes', 'ctrl', 'bytes', 'bytes'])
        self.assertIn('# WQE at byte 64: NOP\n', done.stdout)
        self.assertEqual(encode(done.stdout), ring)

    def test_what_is_not_whole(self):
        wqe = ctrl(0x08, 3) + RADDR + data(1, 2, 3)
        for length in [*range(1, 16), *range(16, len(wqe))]:
            done = softhca('decode', 'wqe', wqe[:length].hex())
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, r'^softhca: .* there are \d+\n$')
            self.assertEqual(encode(done.stdout), wqe[:length])
        unknown = ctrl(0x7f, 2) + bytes(16)
        self.assertIn('an opcode that does not exist', softhca('decode', 'wqe', unknown.hex()).stdout)
        no_size = ctrl(0x08, 0) + bytes(48)
        self.assertEqual(softhca('decode', 'wqe', no_size.hex()).returncode, 1)


class Cqes(unittest.TestCase):
    def cqe(self, opcode, body=b'', qpn=0x40, send_opcode=0):
        return (body + bytes(56 - len(body)) + struct.pack('>IHBB', send_opcode << 24 | qpn, 7, 0, opcode << 4 | 1))

    def test_forms(self):
        """3.2 to 3.5."""
        (name, fields), = decode('cqe', self.cqe(0, send_opcode=8).hex())
        self.assertEqual((name, number(fields['send_opcode']), number(fields['qpn']), number(fields['wqe_counter']),
                          number(fields['owner'])), ('cqe', 8, 0x40, 7, 1))
        done = softhca('decode', 'cqe', self.cqe(13, bytes(54) + b'\x07\x04', send_opcode=8).hex())
        (name, fields), = parts(done.stdout)
        self.assertEqual((name, number(fields['vendor_syndrome']), number(fields['syndrome'])), ('cqe_error', 7, 4))
        self.assertIn('# KEY_RANGE\n', done.stdout)
        self.assertIn('# LOC_PROT_ERR\n', done.stdout)
        body = bytes(16) + struct.pack('>IIIIHBBIQ', 1, 2, 3, 4, 0x2000, 0, 1, 0x123400, 4096)
        (name, fields), = decode('cqe', self.cqe(12, body).hex())
        self.assertEqual((name, number(fields['syndrome']), number(fields['domain']), number(fields['mkey']),
                          number(fields['offset'])), ('cqe_signature', 0x2000, 1, 0x123400, 4096))

    def test_data_in_the_entry(self):
        """3.2: data of a READ is in the first half, which then has no fields."""
        data_in = bytes(range(1, 33))
        cqe = bytearray(self.cqe(0, data_in + bytes(12) + struct.pack('>I', 20), send_opcode=0x10))
        cqe[63] |= 1 << 2
        text = softhca('decode', 'cqe', cqe.hex()).stdout
        (name, fields), = parts(text)
        self.assertEqual((name, fields['data'], number(fields['byte_count']), number(fields['send_opcode']), number(fields['qpn'])),
                         ('cqe_inline', data_in.hex(), 20, 0x10, 0x40))
        self.assertNotIn('slid', fields)
        self.assertEqual(encode(text), cqe)
        # In entries of 128 bytes the data comes first; an error has none.
        cqe[63] = 2 << 2 | 1
        self.assertEqual([name for name, _ in decode('cqe', '--cqe-size=128', (bytes(64) + cqe).hex())], ['cqe_front', 'cqe'])
        cqe[63] = 13 << 4 | 1 << 2
        self.assertEqual(decode('cqe', cqe.hex())[0][0], 'cqe_error')

    def test_sizes(self):
        two = self.cqe(0) + self.cqe(2)
        self.assertEqual([name for name, _ in decode('cqe', two.hex())], ['cqe', 'cqe'])
        self.assertEqual([name for name, _ in decode('cqe', '--cqe-size', '128', two.hex())], ['cqe_front', 'cqe'])
        self.assertEqual(softhca('decode', 'cqe', two[:127].hex()).returncode, 1)


class Input(unittest.TestCase):
    WQE = ctrl(0x0a, 2) + data(1, 2, 3)

    def test_forms_of_hex(self):
        want = softhca('decode', 'wqe', self.WQE.hex()).stdout
        text = self.WQE.hex()
        gdb = ''.join(f'0x7fff{at:04x} <ring+{at}>:\t' + '\t'.join(f'0x{byte:02x}' for byte in self.WQE[at:at + 8]) + '\n'
                      for at in range(0, 32, 8))
        for arguments in ([text.upper()], ['0x' + text[:2], text[2:]], [text[:32], text[32:]], [self.WQE.hex(':')],
                          [self.WQE.hex(' ')], [self.WQE.hex(',')], [gdb], ['\n'.join(f'{at:04x}: {self.WQE[at:at + 16].hex(" ")}'
                                                                                     for at in (0, 16))]):
            done = softhca('decode', 'wqe', *arguments)
            self.assertEqual((done.stdout, done.stderr), (want, ''), arguments)

    def test_dumps(self):
        """Bytes as printed by od -Ax -tx1, hexdump -C and Wireshark, and numbers that only look like offsets."""
        wqe = self.WQE + ctrl(0x0a, 2) + data(4, 5, 6)
        want = softhca('decode', 'wqe', wqe.hex()).stdout
        lines = [(at, wqe[at:at + 16]) for at in range(0, len(wqe), 16)]
        for text in (''.join(f'{at:06x} {line.hex(" ")}\n' for at, line in lines) + f'{len(wqe):06x}\n',
                     ''.join(f'{at:04x}   {line.hex(" ")}\n' for at, line in lines),
                     ''.join(f'{at:08x}  {line[:8].hex(" ")}  {line[8:].hex(" ")}  |..a.0 0|\n' for at, line in lines) +
                     f'{len(wqe):08x}\n'):
            done = softhca('decode', 'wqe', '-', input=text)
            self.assertEqual((done.stdout, done.stderr), (want, ''), text)
        # Bytes that look like an offset.
        self.assertEqual(decode('bsf', '0000 0000 0000 0000 0000 0000 0000 0000')[0][0], 'bsf')
        words = struct.pack('>IIII', 8, 4, 8, 12)
        self.assertEqual(decode('bsf', '\n'.join(words[at:at + 4].hex() for at in range(0, 16, 4))), decode('bsf', words.hex()))
        self.wrong(1, 'is not hexadecimal', 'decode', 'wqe', '-', input='what is this?\n')

    def test_files_and_stdin(self):
        want = softhca('decode', 'wqe', self.WQE.hex()).stdout
        with tempfile.TemporaryDirectory() as directory:
            path = f'{directory}/wqe'
            for content in (self.WQE, self.WQE.hex(' ').encode(), self.WQE.hex().encode() + b'\n'):
                with open(path, 'wb') as file:
                    file.write(content)
                self.assertEqual(softhca('decode', 'wqe', path).stdout, want)
                with open(path, 'rb') as file:
                    self.assertEqual(softhca('decode', 'wqe', '-', stdin=file).stdout, want)
            with open(f'{directory}/text', 'w', encoding='ascii') as file:
                file.write(want)
            self.assertEqual(softhca('encode', f'{directory}/text').stdout, self.WQE.hex() + '\n')
            done = subprocess.run([TOOL, 'encode', '--binary', f'{directory}/text'], env=clean_environment(), check=True,
                                  stdout=subprocess.PIPE)
            self.assertEqual(done.stdout, self.WQE)

    def wrong(self, status, text, *arguments, **options):
        done = softhca(*arguments, **options)
        self.assertEqual((done.returncode, done.stderr.count('\n')), (status, 1), done.stderr)
        self.assertIn(text, done.stderr)

    def test_wrong_use(self):
        self.wrong(2, 'say what it is', 'decode')
        self.wrong(2, 'say what it is', 'decode', 'wqes', '00')
        self.wrong(2, 'no bytes given', 'decode', 'wqe')
        self.wrong(2, 'has an odd number of digits', 'decode', 'wqe', '000')
        self.wrong(2, '"zz" is not hexadecimal', 'decode', 'wqe', '00', 'zz')
        self.wrong(2, 'not said; give bytes', 'decode', 'wqe', '0x00000008', '0x00004003')
        self.wrong(2, '--transport: it is one of rc|uc|ud|xrc|dc', 'decode', 'wqe', '--transport', 'tcp', '00')
        self.wrong(2, '--cqe-size: it is one of 64|128', 'decode', 'cqe', '--cqe-size', '6', '00')
        self.wrong(2, '--number', 'decode', 'packet', '--number', '0', '00')
        self.wrong(2, 'unexpected argument', 'encode', 'a', 'b')
        self.wrong(1, 'cannot read ./none', 'decode', 'wqe', './none')
        self.wrong(1, 'cannot read nowhere: No such file', 'decode', 'wqe', 'nowhere')
        self.wrong(1, 'cannot read /', 'decode', 'wqe', '/')
        self.wrong(1, 'no bytes were given', 'decode', 'wqe', '')
        self.wrong(1, 'has more than 1048576 bytes', 'decode', 'wqe', '/dev/zero')
        self.wrong(1, '-: line 2: "junk" is not a part', 'encode', input='data\njunk\n')


def tshark(path, *fields):
    command = ['tshark', '-n', '-r', path, '-T', 'fields', '-E', 'separator=/t', '-E', 'occurrence=f']
    for protocol in ('rpcordma', 'infiniband.eoib'):
        command += ['--disable-protocol', protocol]
    for field in fields:
        command += ['-e', field]
    done = subprocess.run(command, text=True, capture_output=True, timeout=120, check=True, env=clean_environment())
    return [line.split('\t') for line in done.stdout.splitlines()]


# tshark 4.0's names: part, field, and whether it consists of bytes.
PACKET_FIELDS = {
    'infiniband.bth.opcode': ('bth', 'opcode'), 'infiniband.bth.se': ('bth', 'solicited'), 'infiniband.bth.m': ('bth', 'migrated'),
    'infiniband.bth.padcnt': ('bth', 'pad'), 'infiniband.bth.tver': ('bth', 'version'), 'infiniband.bth.p_key': ('bth', 'p_key'),
    'infiniband.bth.destqp': ('bth', 'destination_qpn'), 'infiniband.bth.a': ('bth', 'acknowledge'),
    'infiniband.bth.psn': ('bth', 'psn'), 'infiniband.deth.q_key': ('deth', 'qkey'), 'infiniband.deth.srcqp': ('deth', 'source_qpn'),
    'infiniband.reth.va': ('reth', 'remote_address'), 'infiniband.reth.r_key': ('reth', 'rkey'),
    'infiniband.reth.dmalen': ('reth', 'dma_length'), 'infiniband.atomiceth.swapdt': ('atomiceth', 'swap_add'),
    'infiniband.atomiceth.cmpdt': ('atomiceth', 'compare'), 'infiniband.aeth.syndrome': ('aeth', 'syndrome'),
    'infiniband.aeth.msn': ('aeth', 'msn'), 'infiniband.atomicacketh.origremdt': ('atomicacketh', 'original'),
    'udp.srcport': ('udp', 'source_port'), 'udp.dstport': ('udp', 'destination_port'), 'udp.length': ('udp', 'length'),
    'ip.id': ('ipv4', 'identification'), 'ip.dsfield': ('ipv4', 'traffic_class'), 'ip.ttl': ('ipv4', 'ttl'),
    'ipv6.flow': ('ipv6', 'flow_label'), 'ipv6.hlim': ('ipv6', 'hop_limit'), 'ipv6.tclass': ('ipv6', 'traffic_class'),
}
PACKET_BYTES = {'infiniband.immdt': ('immdt', 'immediate', 8), 'infiniband.ieth': ('ieth', 'rkey', 8),
                'infiniband.invariant.crc': ('icrc', 'crc', 8), 'eth.src': ('ethernet', 'source', 12),
                'eth.dst': ('ethernet', 'destination', 12)}


class Packets(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.path = os.path.join(cls.directory.name, 'all.pcapng')
        subprocess.run([WRITER, cls.path], stdout=subprocess.DEVNULL, timeout=60, check=True, env=clean_environment())

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()

    def one(self, at, path=None):
        done = softhca('decode', 'packet', '--number', str(at), path or self.path)
        self.assertEqual((done.returncode, done.stderr), (0, ''), at)
        self.assertIn('# the ICRC is right\n', done.stdout)
        return done.stdout

    @unittest.skipIf('TEST_SANITIZED' in os.environ, 'the other tests run the same code')
    def test_each_field_as_tshark_has_it(self):
        rows = tshark(self.path, *PACKET_FIELDS, *PACKET_BYTES, 'infiniband.bth.opcode')
        self.assertGreater(len(rows), 1000)
        opcodes, compared = set(), 0
        # Every 13th: all opcodes, each with several forms.
        for at in range(0, len(rows), 13):
            shown = {name: fields for name, fields in parts(self.one(at + 1))}
            opcodes.add(number(shown['bth']['opcode']))
            for value, (part, field) in zip(rows[at], PACKET_FIELDS.values()):
                if value:
                    value = {'True': '1', 'False': '0'}.get(value, value)
                    # tshark names the first two fields of AtomicETH like those of RETH.
                    part = 'atomiceth' if part == 'reth' and part not in shown else part
                    self.assertEqual(number(shown[part][field]), number(value), (at, part, field))
                    compared += 1
            for value, (part, field, digits) in zip(rows[at][len(PACKET_FIELDS):], PACKET_BYTES.values()):
                if value:
                    value = int(value.replace(':', ''), 16)
                    self.assertEqual(int(shown[part][field].replace('0x', ''), 16), value, (at, part, field))
        self.assertGreater(len(opcodes), 60)
        self.assertGreater(compared, 1500)

    def frame(self, at):
        """Returns the bytes of a packet as decoded by tshark."""
        done = subprocess.run(['tshark', '-n', '-r', self.path, '-Y', f'frame.number == {at}', '-x'], text=True, check=True,
                              capture_output=True, timeout=60, env=clean_environment())
        return bytes.fromhex(''.join(line[6:53] for line in done.stdout.split('\n\n')[0].splitlines()))

    def test_headers_before(self):
        """The same packet from its Ethernet, IP or base transport header on."""
        for at in (1, 5, 40):
            frame = self.frame(at)
            ip = 40 if frame[12:14] == b'\x86\xdd' else 20
            whole = decode('packet', '--number', str(at), self.path)
            self.assertEqual(decode('packet', frame.hex()), whole)
            self.assertEqual(decode('packet', frame[14:].hex()), whole[1:])
            self.assertEqual(decode('packet', frame[14 + ip + 8:].hex()), whole[3:])
            self.assertEqual(encode(softhca('decode', 'packet', frame.hex()).stdout), frame)

    def test_wrong_icrc(self):
        frame = bytearray(self.frame(1))
        right = frame[-4:].hex()
        frame[-5] ^= 1
        frame[-1] ^= 0x80
        done = softhca('decode', 'packet', bytes(frame).hex())
        self.assertEqual((done.returncode, done.stderr), (1, 'softhca: the ICRC is wrong\n'))
        self.assertRegex(done.stdout, r'# the ICRC is wrong: that of this packet is [0-9a-f]{8}\n')
        frame[-5] ^= 1
        self.assertIn(f'is {right}\n', softhca('decode', 'packet', bytes(frame).hex()).stdout)

    def test_capture_of_others(self):
        """pcap of either byte order, and pcapng of another program."""
        want = self.one(7)
        with tempfile.TemporaryDirectory() as directory:
            for form in ('pcap', 'nsecpcap', 'pcapng'):
                path = f'{directory}/{form}'
                subprocess.run(['editcap', '-F', form, self.path, path], check=True, timeout=60, env=clean_environment(),
                               stderr=subprocess.DEVNULL)
                self.assertEqual(re.sub('(?m)^# .*\n', '', self.one(7, path)), re.sub('(?m)^# .*\n', '', want))
            with open(f'{directory}/pcap', 'rb') as file:
                little = file.read()
            magic, major, minor, zone, figures, snap, link = struct.unpack('<IHHiIII', little[:24])
            big = struct.pack('>IHHiIII', magic, major, minor, zone, figures, snap, link)
            at = 24
            while at < 20000:
                head = struct.unpack('<IIII', little[at:at + 16])
                big += struct.pack('>IIII', *head) + little[at + 16:at + 16 + head[2]]
                at += 16 + head[2]
            with open(f'{directory}/big', 'wb') as file:
                file.write(big)
            self.assertEqual(parts(self.one(7, f'{directory}/big')), parts(want))

    def in_capture(self, link_type, frame):
        """Runs softhca decode on a capture of that packet, in each format."""
        pcap = struct.pack('<IHHiIIIIIII', 0xa1b2c3d4, 2, 4, 0, 0, 65535, link_type, 0, 0, len(frame), len(frame)) + frame
        body = struct.pack('<IIIII', 1, 0, 0, len(frame), len(frame)) + frame + bytes(-len(frame) % 4)
        pcapng = struct.pack('<IIIHHqI', 0x0a0d0d0a, 28, 0x1a2b3c4d, 1, 0, -1, 28)
        for kind in (link_type ^ 0x55, link_type):
            pcapng += struct.pack('<IIHHII', 1, 20, kind, 0, 0, 20)
        pcapng += struct.pack('<II', 6, len(body) + 12) + body + struct.pack('<I', len(body) + 12)
        results = []
        with tempfile.TemporaryDirectory() as directory:
            for content in (pcap, pcapng):
                with open(f'{directory}/capture', 'wb') as file:
                    file.write(content)
                results.append(softhca('decode', 'packet', f'{directory}/capture'))
        self.assertEqual(results[0].stdout, results[1].stdout)
        return results[0]

    def test_what_packets_begin_with(self):
        """VLAN tags, and the link types of tcpdump -i any and of interfaces without Ethernet."""
        for at in (1, 5):
            frame = self.frame(at)
            ethernet, kind, packet = frame[:12], frame[12:14], frame[14:]
            whole = decode('packet', frame.hex())
            tagged = ethernet + bytes.fromhex('88a8 0064 8100 a00a') + kind + packet
            for done in softhca('decode', 'packet', tagged.hex()), self.in_capture(1, tagged):
                self.assertEqual((done.returncode, encode(done.stdout)), (0, tagged), done.stderr)
                shown = parts(done.stdout)
                self.assertEqual([name for name, _ in shown[:3]], ['ethernet', 'vlan', 'vlan'])
                self.assertEqual([(number(tag['id']), number(tag['priority'])) for _, tag in shown[1:3]], [(100, 0), (10, 5)])
                self.assertEqual(shown[3:], whole[1:])
            for link_type, header, name in ((101, b'', None), (113, struct.pack('>HHH8s', 4, 1, 6, bytes(8)) + kind, 'cooked'),
                                            (276, kind + struct.pack('>HIHBB8s', 0, 3, 1, 4, 6, bytes(8)), 'cooked_2')):
                done = self.in_capture(link_type, header + packet)
                self.assertEqual((done.returncode, encode(done.stdout)), (0, header + packet), done.stderr)
                shown = parts(done.stdout)
                self.assertEqual([part for part, _ in shown[:-len(whole) + 1]], [name] if name else [])
                self.assertEqual(shown[-len(whole) + 1:], whole[1:])

    def test_packets_that_are_none(self):
        """Other packets are not decoded as a base transport header."""
        arp = bytes(12) + bytes.fromhex('0806 0001 0800 0604 0001') + bytes(40)
        done = self.in_capture(1, arp)
        self.assertEqual((done.returncode, done.stderr), (1, 'softhca: it is not a UDP datagram\n'))
        self.assertEqual(encode(done.stdout), arp)
        done = self.in_capture(127, self.frame(1))
        self.assertEqual((done.returncode, done.stdout), (1, ''))
        self.assertRegex(done.stderr, r'packet 1 is of link type 127; known are Ethernet \(1\)')

    def test_damaged_captures(self):
        with open(self.path, 'rb') as file:
            whole = file.read(4096)
        with tempfile.TemporaryDirectory() as directory:
            path = f'{directory}/cut'
            for length in (*range(0, 120), 300, 301, 302, 303, 1000):
                with open(path, 'wb') as file:
                    file.write(whole[:length])
                done = softhca('decode', 'packet', '--number', '1000000', path)
                self.assertEqual((done.returncode, done.stdout.count('icrc')), (1, 0), length)
                self.assertEqual(done.stderr.count('\n'), 1, done.stderr)
            # Wrong lengths of blocks and packets.
            for at in range(8, 400, 4):
                for value in (0, 1, 4, 0x7fffffff, 0xffffffff, 0xfffffffc, 0x100000):
                    with open(path, 'wb') as file:
                        file.write(whole[:at] + struct.pack('<I', value) + whole[at + 4:])
                    if at % 20 == value % 5 * 4:
                        self.assertIn(softhca('decode', 'packet', '--number', '2', path).returncode, (0, 1), (at, value))
        self.assertIn('has no packet 999999', softhca('decode', 'packet', '--number', '999999', self.path).stderr)
        self.assertEqual(softhca('decode', 'wqe', self.path).returncode, 2)

    def test_messages_of_the_connection_manager(self):
        """REQ and DREQ, each field as decoded by tshark."""
        fields = {'infiniband.mad.attributeid': ('mad', 'attribute_id'), 'infiniband.mad.transactionid': ('mad', 'transaction_id'),
                  'infiniband.cm.req': ('cm_req', 'local_comm_id'), 'infiniband.cm.req.localqpn': ('cm_req', 'local_qpn'),
                  'infiniband.cm.req.localqkey': ('cm_req', 'local_qkey'), 'infiniband.cm.req.startpsn': ('cm_req', 'starting_psn'),
                  'infiniband.cm.req.pkey': ('cm_req', 'pkey'), 'infiniband.cm.dreq.localcommid': ('cm_dreq', 'local_comm_id'),
                  'infiniband.cm.dreq.remotecommid': ('cm_dreq', 'remote_comm_id')}
        known = subprocess.run(['tshark', '-G', 'fields'], text=True, capture_output=True, check=True, timeout=60,
                               env=clean_environment()).stdout
        fields = {name: place for name, place in fields.items() if f'\t{name}\t' in known}
        self.assertGreater(len(fields), 5)
        path = os.path.join(self.directory.name, 'cm.pcapng')
        done = softhca('run', '--gids', 'loopback', '--capture', path, '--', CM_WRITER)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = tshark(path, *fields)
        names = set()
        for at, row in enumerate(rows):
            shown = {name: values for name, values in parts(self.one(at + 1, path))}
            names |= set(shown)
            for value, (part, field) in zip(row, fields.values()):
                if value and part in shown:
                    self.assertEqual(number(shown[part][field]), number(value), (part, field))
        self.assertTrue({'mad', 'cm_req', 'cm_dreq'} <= names, names)


if __name__ == '__main__':
    main()
