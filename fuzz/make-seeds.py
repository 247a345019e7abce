#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Writes the seeds of the fuzzers: rings as a driver would fill them, and a few that it would not.

    fuzz/make-seeds.py DIRECTORY        into DIRECTORY/NAME

The keys and addresses are those of world.h, the layout of an input that of wqe_input.h (block_input.h, srq.c, settings.c,
cm.c, packet.c, shm.c, udp.c), the formats those of mlx5-formats 1 and 2.
"""
import os
import struct
import sys

BASE = 0x10000000
KEYS = ['full', 'zero_based', 'read_only', 'local', 'foreign', 'on_demand', 'null', 'device', 'gone', 'mkey_4',
        'mkey_8', 'mkey_64', 'mkey_foreign', 'window_1', 'window_2', 'window_2_also', 'mkey_signature', 'mkey_cipher']
PSV, FOREIGN_PSV, DEK, DEK_WITH_TAG, FOREIGN_DEK, KEYTAG = 1, 5, 1, 2, 3, b'\x74' * 8
KEY = {name: (16 + i) << 8 for i, name in enumerate(KEYS)}
FULL, READ_ONLY, LOCAL, ON_DEMAND = BASE + 0x1040, BASE + 0x6000, BASE + 0x8000, BASE + 0xc000
OWN_QPN, OWN_GID = 0x515151, b'\x51' * 16
QPN = {'rc': 0x40, 'uc': 0x42, 'ud': 0x44, 'rc_small': 0x46, 'dc': 0x48, 'xrc': 0x4a}
OTHER_TARGET, DC_KEY, XRC_SRQ, FOREIGN_XRC_SRQ = 0x4c, 0x5eed, 2, 4
PAIRS = list(QPN)
PACKETS = 16
WITH_SRQ = ('rc_small', 'dc', 'xrc')
OPS = ['send_a', 'send_b', 'receive_a', 'receive_b', 'timer_a', 'timer_b', 'modify_a', 'modify_b', 'rewrite_a',
       'rewrite_b', 'jump_a', 'jump_b', 'poll', 'key', 'arm', 'limit']

NOP, SEND_INVAL, WRITE, WRITE_IMM, SEND, SEND_IMM, READ, CS, FA = 0, 1, 8, 9, 10, 11, 16, 17, 18
MASKED_CS, MASKED_FA, SET_PSV, UMR, MMO = 0x14, 0x15, 0x20, 0x25, 0x2f
SIGNALLED, SOLICITED, FENCE = 8, 2, 0x80
FREE, ANY_QPN = 0x40, 0xffffff
# Bits of mkey_mask.
LEN, START, SIG_ERR, BSF_EN, MKEY, QPN_BIT, IS_FREE = 1 << 0, 1 << 6, 1 << 9, 1 << 12, 1 << 13, 1 << 14, 1 << 29
RIGHTS = 1 << 18 | 1 << 19 | 1 << 20 | 1 << 21
BIND = IS_FREE | MKEY | LEN | START | RIGHTS
CONFIGURE = IS_FREE | MKEY | RIGHTS
INLINE, MUST_BE_FREE, CHECK_QPN = 0x80, 0x20, 0x08


def data(key, address, length):
    return struct.pack('>IIQ', length, KEY.get(key, key), address)


def remote(key, address):
    return struct.pack('>QII', address, KEY.get(key, key), 0)


def atomic(value, compare=0):
    return struct.pack('>QQ', value, compare)


def inline(payload):
    segment = struct.pack('>I', 1 << 31 | len(payload)) + payload
    return segment + bytes(-len(segment) % 16)


def address(qpn, qkey=0x11111111):
    """Returns the 48 bytes of the address of a datagram to the own GID."""
    return struct.pack('>IIIBBH4x6sBBI16s', qkey, 0, 1 << 31 | qpn, 0, 0, 0xc000, bytes(6), 0, 1, 1 << 30, OWN_GID)


def dc_address(number=QPN['dc'] + 1, key=DC_KEY, gid=OWN_GID):
    return struct.pack('>QIBBH4x6sBBI16s', key, 1 << 31 | number, 0, 0, 0, bytes(6), 0, 1, 1 << 30, gid)


def short_address(number=QPN['dc'] + 1, key=DC_KEY, loopback=0x80):
    return struct.pack('>QIBBH', key, number, 0, loopback, 0)


def xrc(srq=XRC_SRQ):
    return struct.pack('>I12x', srq)


def wqe(opcode, *segments, flags=SIGNALLED, imm=0, ds=None, qpn=OWN_QPN, opmod=0):
    body = b''.join(segments)
    units = 1 + len(body) // 16 if ds is None else ds
    ctrl = struct.pack('>IIBBBBI', opmod << 24 | opcode, qpn << 8 | units, 0, 0, 0, flags, KEY.get(imm, imm))
    block = ctrl + body
    return block + bytes(-len(block) % 64)


def through(segment, wqes, stream=0):
    """Returns the RC @wqes as those of a transport with @segment after the control segment."""
    for block in wqes:
        units = block[7] & 63
        if block[3] in (SEND_INVAL, WRITE, WRITE_IMM, SEND, SEND_IMM, READ, CS, FA, MASKED_CS, MASKED_FA):
            units += len(segment) // 16
            block = block[:7] + bytes([units]) + block[8:16] + segment + block[16:]
        block = block[:9] + struct.pack('>H', stream) + block[11:]
        used = block[:units * 16]
        yield used + bytes(-len(used) % 64)


def umr(key, mask, entries=b'', *, flags=INLINE, free=0, rights=0x7c, qpn=ANY_QPN, tag=0, start=0, length=0,
        bsf=b'', offset=0, **more):
    entries += bytes(-len(entries) % 64)
    control = struct.pack('>B3xHHQ32x', flags, len(entries) // 16, offset or len(bsf) // 16,
                          mask | (BSF_EN | SIG_ERR if bsf else 0))
    context = struct.pack('>BBBBIIIQQ32x', free, 0, rights, 0, qpn << 8 | tag, 0, 1 << 30 if bsf else 0, start, length)
    return wqe(UMR, control, context, entries, bsf, imm=key, **more)


BLOCKS = {0: 0, 512: 1, 520: 2, 4096: 3, 4160: 4, 4048: 6}
FORMATS = {'crc32': 0x22, 'crc32_0': 0x23, 'crc32c': 0x42, 'crc64': 0x52, 't10': 0, 'csum': 0}
FIELDS = {'crc32': 4, 'crc32_0': 4, 'crc32c': 4, 'crc64': 8, 't10': 8, 'csum': 8}


def inline_domain(kind, app=0x3a3a, ref=0x3a3a3a3a, checks=0x40):
    if kind not in ('t10', 'csum'):
        return bytes(16)
    return struct.pack('>HHIBB3xBH', 0xc000, app, ref, 1 if kind == 't10' else 2, 0x80, checks, 0xffff)


def signature(memory=None, wire=None, block=512, wire_block=None, *, check=0xff, copy=None, psv=PSV, code=2, limit=0xffffffff,
              **tags):
    """@memory and @wire: names of FORMATS, or None. @copy: number of bytes copied if both have the same structure."""
    selector = BLOCKS.get(wire_block or block, 5) if wire else 0
    first = code << 6 | (0 if copy is None else 0x10)
    return (struct.pack('>BBBBI', first, check, selector if copy is None else copy,
                        BLOCKS.get(block, 5) if memory else 0, limit) +
            struct.pack('>II16x', FORMATS.get(wire, 0) << 24 | psv + 1, FORMATS.get(memory, 0) << 24 | psv) +
            inline_domain(wire, **tags) + inline_domain(memory, **tags))


def cipher(unit=512, *, order=0, dek=DEK, tag=bytes(8), code=2, standard=0):
    return struct.pack('>BBBBIB7xQQI4x8s16x', code << 6 | 1, order, 0, standard, 0xffffffff, BLOCKS.get(unit, 5), 0, 1, dek,
                       tag)


def set_psv(number, value=0, syndrome=0):
    return wqe(SET_PSV, struct.pack('>IHHQ', number, syndrome, 0, value))


def list_layout(key, *pieces, **more):
    return umr(key, CONFIGURE | LEN, b''.join(data(*piece) for piece in pieces),
               length=sum(piece[2] for piece in pieces), **more)


def interleaved(key, repeat, *pieces, **more):
    """Pieces: (key, address, bytes, skip)."""
    size = sum(piece[2] for piece in pieces)
    entries = struct.pack('>IIIHH', size, 0x400, repeat, 0, len(pieces))
    for name, where, count, skip in pieces:
        entries += struct.pack('>HHIQ', count + skip, count, KEY[name], where)
    return umr(key, CONFIGURE | LEN, entries, length=size * repeat, **more)


def bind(window, region, where, length, tag, *, second=False, start=None, **more):
    mask = BIND | (QPN_BIT if second else 0)
    return umr(window, mask, data(region, where, length), tag=tag,
               flags=INLINE | 0x10 | (MUST_BE_FREE if second else 0),
               qpn=OWN_QPN if second else ANY_QPN, start=where if start is None else start, length=length, **more)


def invalidate(key, **more):
    return umr(key, IS_FREE | MKEY | QPN_BIT, flags=INLINE | 0x10 | CHECK_QPN, free=FREE, **more)


def copy(source, target, *, opmod=1, **more):
    return wqe(MMO, data(0, 0, 0), source, target, opmod=opmod, **more)


def receive(*segments, size=32):
    entry = b''.join(segments)
    if len(entry) < size:
        entry += struct.pack('>IIQ', 0, 0x100, 0)
    return entry.ljust(size, b'\0')[:size]


def linked(following, *segments):
    return struct.pack('>2xH12x', following) + receive(*segments, size=48)


def make(pair='rc', sq_a=(), rq_b=(), srq=(), sq_b=(), rq_a=(), ops=None, *, start=0, rq_start=0, flags=0, access=15,
         rnr_retry=0, retry=7, mtu=3, reads=0x44, lose=0, double=0, damage=0, field=0, value=0):
    """@ops: (name, argument) pairs; by default everything is announced, receives first."""
    a, b = b''.join(sq_a), b''.join(sq_b)
    if ops is None:
        ops = [('receive_b', len(srq) if pair in WITH_SRQ else len(rq_b)), ('receive_a', len(rq_a)),
               ('send_a', len(a) // 64), ('send_b', len(b) // 64)]
    config = struct.pack('<BBHHBBBBBBB', PAIRS.index(pair), flags, start, rq_start, access,
                         rnr_retry | retry << 3 | mtu << 6, reads, lose, double, damage, field)
    config += value.to_bytes(3, 'little')
    out = config + b''.join(bytes([OPS.index(name), argument & 255]) for name, argument in ops).ljust(32, b'\0')
    for part, size in ((a, 1024), (b''.join(rq_b), 256), (b''.join(srq), 512), (b, 1024), (b''.join(rq_a), 256)):
        assert len(part) <= size, len(part)
        out += part.ljust(size, b'\0')
    return out.rstrip(b'\0')


def messages(pair):
    """Returns each kind of message once, by name."""
    to = [address(QPN[pair] + 1)] if pair == 'ud' else []
    rq = [receive(data('full', FULL + 0x800, 512), data('local', LOCAL, 4096))] * 8
    yield 'send', dict(sq_a=[wqe(SEND, *to, data('full', FULL, 256))], rq_b=rq)
    yield 'send_imm', dict(sq_a=[wqe(SEND_IMM, *to, data('local', LOCAL, 64), imm=7, flags=SIGNALLED | SOLICITED)],
                           rq_b=rq)
    yield 'send_inline', dict(sq_a=[wqe(SEND, *to, inline(b'twenty bytes or more'))], rq_b=rq)
    yield 'send_empty', dict(sq_a=[wqe(SEND, *to)], rq_b=rq)
    yield 'send_gather', dict(
        sq_a=[wqe(SEND, *to, data('full', FULL, 100), inline(b'x' * 20), data('zero_based', 0, 33))], rq_b=rq)
    yield 'send_too_long', dict(sq_a=[wqe(SEND, *to, data('full', FULL, 4000))],
                                rq_b=[receive(data('full', FULL, 8))])
    yield 'send_null', dict(sq_a=[wqe(SEND, *to, data('null', 0, 300))], rq_b=rq)
    yield 'receive_bad_key', dict(sq_a=[wqe(SEND, *to, data('full', FULL, 8))], rq_b=[receive(data('gone', 0, 64))])
    if pair == 'ud':
        yield 'wrong_qkey', dict(sq_a=[wqe(SEND, address(QPN[pair] + 1, 5), data('full', FULL, 8))], rq_b=rq)
        yield 'own_qkey', dict(sq_a=[wqe(SEND, address(QPN[pair] + 1, 1 << 31), data('full', FULL, 8))], rq_b=rq)
        yield 'too_long', dict(sq_a=[wqe(SEND, *to, data('null', 0, 5000))], rq_b=rq)
        yield 'nobody', dict(sq_a=[wqe(SEND, address(0x999), data('full', FULL, 8))])
        return
    yield 'write', dict(sq_a=[wqe(WRITE, remote('full', FULL + 64), data('local', LOCAL, 64))])
    yield 'write_imm', dict(sq_a=[wqe(WRITE_IMM, remote('zero_based', 8), data('full', FULL, 1000), imm=9)], rq_b=rq)
    yield 'write_device', dict(sq_a=[wqe(WRITE, remote('device', 0), data('device', 64, 512))])
    yield 'write_read_only', dict(sq_a=[wqe(WRITE, remote('read_only', READ_ONLY), data('full', FULL, 8))])
    yield 'write_foreign', dict(sq_a=[wqe(WRITE, remote('foreign', BASE + 0xa000), data('full', FULL, 8))])
    yield 'write_past_end', dict(sq_a=[wqe(WRITE, remote('full', FULL + 0x1f7c), data('full', FULL, 8))])
    yield 'write_on_demand', dict(sq_a=[wqe(WRITE, remote('on_demand', ON_DEMAND), data('full', FULL, 512)),
                                        wqe(WRITE, remote('on_demand', ON_DEMAND + 0xffc), data('full', FULL, 8))])
    yield 'send_invalidate', dict(
        sq_a=[list_layout('mkey_64', ('full', FULL, 64)), wqe(SEND_INVAL, data('full', FULL, 8), imm='mkey_64'),
              wqe(WRITE, remote('mkey_64', 0), data('full', FULL, 8))], rq_b=rq)
    yield 'silent', dict(sq_a=[wqe(WRITE, remote('full', FULL), data('local', LOCAL, 8), flags=0)] * 4 +
                         [wqe(WRITE, remote('full', FULL), data('local', LOCAL, 8))])
    yield 'completion_modes', dict(
        sq_a=[wqe(NOP, flags=ce << 2) for ce in range(4)] + [wqe(WRITE, remote('gone', 0), data('full', FULL, 8))] +
        [wqe(NOP, flags=ce << 2) for ce in range(4)])
    if pair == 'uc':
        yield 'recover', dict(sq_a=[wqe(WRITE, remote('full', FULL), data('gone', 0, 8)), wqe(NOP)],
                              ops=[('send_a', 2), ('poll', 0), ('modify_a', 1), ('send_a', 1)])
        return
    yield 'read', dict(
        sq_a=[wqe(READ, remote('read_only', READ_ONLY), data('full', FULL, 512), data('local', LOCAL, 512))])
    yield 'read_empty', dict(sq_a=[wqe(READ, remote('gone', 0))])
    yield 'read_bad_sink', dict(sq_a=[wqe(READ, remote('full', FULL), data('read_only', READ_ONLY, 8)), wqe(NOP)])
    yield 'reads_and_fence', dict(
        sq_a=[wqe(READ, remote('full', FULL), data('local', LOCAL, 8))] * 6 + [wqe(NOP, flags=SIGNALLED | FENCE)],
        reads=0x21)
    yield 'compare_swap', dict(
        sq_a=[wqe(CS, remote('full', FULL), atomic(1, 0x3a3a3a3a3a3a3a3a), data('local', LOCAL, 8))])
    yield 'fetch_add', dict(sq_a=[wqe(FA, remote('full', FULL + 8), atomic(5), data('zero_based', 0, 8))])
    yield 'atomic_misaligned', dict(sq_a=[wqe(FA, remote('full', FULL + 4), atomic(5), data('local', LOCAL, 8))])
    for name, opcode, opmod, operands in (
            ('masked_cs', MASKED_CS, 0, atomic(0x55, 0x3a3a3a3a3a3a3a3a) + atomic(0xff00, 0xff)),
            ('masked_fa', MASKED_FA, 0, atomic(0x55) + atomic(0x8080)),
            ('masked_cs_4', MASKED_CS, 8, struct.pack('>4I', 7, 0x3a3a3a3a, 0xffff, 0xffffffff)),
            ('masked_cs_8', MASKED_CS, 9, atomic(7, 0x3a) + atomic(0xffff, 0xff)),
            ('masked_fa_4', MASKED_FA, 8, struct.pack('>2I8x', 7, 0x80008000)),
            ('masked_fa_8', MASKED_FA, 9, atomic(7, 0x80008000)), ('masked_fa_16', MASKED_FA, 10, atomic(7))):
        yield name, dict(sq_a=[wqe(opcode, remote('full', FULL), operands,
                                   data('local', LOCAL, 4 if opmod == 8 else 8), opmod=opmod)])
    yield 'masked_in_pieces', dict(
        sq_a=[list_layout('mkey_4', ('full', FULL + 3, 3), ('local', LOCAL + 9, 11)),
              wqe(MASKED_FA, remote('mkey_4', 0), struct.pack('>2I8x', 7, 0), data('mkey_4', 4, 4), opmod=8)])
    yield 'copies', dict(
        sq_a=[copy(data('full', FULL, 500), data('local', LOCAL, 500)),
              copy(data('on_demand', ON_DEMAND, 500), data('zero_based', 7, 500), flags=SIGNALLED | FENCE),
              copy(data('null', 0, 0), data('null', 0, 0)), copy(data('full', FULL, 100), data('full', FULL + 50, 100)),
              copy(data('full', FULL, 8), data('read_only', READ_ONLY, 8))])
    yield 'copy_lengths', dict(sq_a=[copy(data('full', FULL, 8), data('local', LOCAL, 9))])
    yield 'copy_inline', dict(sq_a=[copy(data('full', FULL, 1 << 31 | 8), data('local', LOCAL, 1 << 31 | 8))])
    yield 'copy_records', dict(
        sq_a=[interleaved('mkey_4', 8, ('full', FULL, 24, 40)), interleaved('mkey_8', 12, ('local', LOCAL, 16, 8)),
              copy(data('mkey_4', 3, 180), data('mkey_8', 5, 180)), copy(data('mkey_8', 0, 192), data('mkey_4', 0, 192))])
    yield 'atomic_in_pieces', dict(
        sq_a=[list_layout('mkey_4', ('full', FULL + 3, 5), ('local', LOCAL + 9, 11)),
              wqe(FA, remote('mkey_4', 0), atomic(5), data('mkey_4', 8, 8))])


def entries_of_srq(*segments):
    return [linked((i + 1) % 8, *segments) for i in range(8)]


def other_transports():
    """RC messages on DC and XRC, and errors that only these can have."""
    srq = entries_of_srq(data('full', FULL + 0x800, 512), data('local', LOCAL, 4096))
    for name, parts in messages('rc'):
        if any(len(b''.join(through(segment, parts['sq_a']))) > 1024 for segment in (dc_address(), xrc())):
            continue
        for pair, segment in (('dc', dc_address()), ('xrc', xrc())):
            more = {**parts, 'sq_a': list(through(segment, parts['sq_a'])), 'rq_b': (), 'srq': srq}
            yield f'{pair}_{name}', make(pair, **more)
            yield f'{pair}_lossy_{name}', make(pair, **{**more, 'lose': 5, 'mtu': 0, 'ops': [
                ('receive_b', 8), ('send_a', 16)] + [('timer_a', 0)] * 4})
    write, bad = wqe(WRITE, remote('full', FULL), data('local', LOCAL, 64)), wqe(WRITE, remote('gone', 0), data('local', LOCAL, 8))
    send = wqe(SEND, data('local', LOCAL, 64))

    def dc(name, *requests, **more):
        return f'dc_{name}', make('dc', [b''.join(through(request[0], [request[1]], *request[2:])) for request in requests],
                                  srq=srq, **more)

    to, other = dc_address(), dc_address(OTHER_TARGET)
    yield dc('short_address', (short_address(), write), (short_address(), send), (short_address(loopback=0), write))
    yield dc('two_targets', (to, write), (other, send), (to, send), (other, write))
    yield dc('two_targets_lossy', (to, write), (other, send), (to, send), lose=2,
             ops=[('receive_b', 8), ('send_a', 6), ('timer_a', 0), ('timer_a', 0)])
    yield dc('wrong_key', (dc_address(key=1), write), (to, write), flags=8)
    yield dc('no_target', (dc_address(0x999), write), (to, write), flags=8, retry=0,
             ops=[('send_a', 4), ('timer_a', 0), ('timer_a', 0)])
    yield dc('unreachable', (dc_address(gid=b'\x5a' * 16), write), retry=0, ops=[('send_a', 2), ('timer_a', 0), ('timer_a', 0)])
    yield dc('streams', (to, write, 1), (to, bad, 2), (to, write, 1), (to, write, 2), (to, send, 1), flags=8)
    yield dc('streams_end', (to, bad, 1), (to, write, 2), (to, bad, 2), (to, write, 3), flags=8)
    yield dc('without_streams', (to, write, 1), (to, bad, 2), (to, write, 1))
    for field in (5, 10, 15, 16, 17):
        yield dc(f'damaged_{field}', (to, write), (to, send), (other, write), damage=1, field=field, value=0x800001)
        yield dc(f'damaged_later_{field}', (to, write), (to, send), (other, write), damage=3, field=field, value=0x7fffff)
    for number in (XRC_SRQ + 1, FOREIGN_XRC_SRQ, 1, 99):
        yield f'xrc_srq_{number}', make('xrc', list(through(xrc(number), [send, write])), srq=srq)
    yield 'xrc_srq_changes', make('xrc', list(through(xrc(), [send] * 2)), srq=srq, mtu=0, damage=1, field=14, value=1)


def keys():
    full = ('full', FULL, 64, 64)
    yield 'list', [list_layout('mkey_4', ('full', FULL, 64), ('local', LOCAL, 64), ('zero_based', 0, 128)),
                   wqe(WRITE, remote('full', FULL + 0x800), data('mkey_4', 10, 200)),
                   wqe(READ, remote('full', FULL + 0x800), data('mkey_4', 0, 256))]
    yield 'interleaved', [interleaved('mkey_4', 8, full, ('local', LOCAL, 8, 0)),
                          wqe(WRITE, remote('mkey_4', 60), data('full', FULL + 0x1000, 300)),
                          wqe(WRITE, remote('full', FULL + 0x1000), data('mkey_4', 0, 576))]
    yield 'interleaved_on_demand', [interleaved('mkey_8', 100, ('on_demand', ON_DEMAND, 8, 32)),
                                    wqe(WRITE, remote('mkey_8', 0), data('full', FULL, 800)),
                                    wqe(WRITE, remote('mkey_8', 4), data('full', FULL, 8))]
    for size in (1, 2, 3, 4, 8, 16, 32, 64, 65, 128):
        yield f'records_{size}', [interleaved('mkey_4', 12, ('full', FULL, size, size)),
                                  wqe(WRITE, remote('mkey_4', size // 2), data('local', LOCAL, 11 * size)),
                                  wqe(READ, remote('local', LOCAL), data('mkey_4', 1, 10 * size)),
                                  wqe(WRITE, remote('full', FULL + 0x1000), data('mkey_4', 1, 10 * size))]
    yield 'records_to_records', [interleaved('mkey_4', 12, ('full', FULL, 64, 64)),
                                 interleaved('mkey_8', 24, ('zero_based', 0, 32, 16)),
                                 wqe(WRITE, remote('mkey_8', 0), data('mkey_4', 0, 768))]
    yield 'same_byte_again', [interleaved('mkey_4', 4000, ('full', FULL, 1, -1)),
                              wqe(WRITE, remote('mkey_4', 0), data('full', FULL + 0x800, 4000))]
    yield 'nested', [list_layout('mkey_4', ('full', FULL, 100), ('local', LOCAL, 100)),
                     interleaved('mkey_8', 5, ('mkey_4', 10, 20, 5), ('full', FULL + 0x400, 3, 0)),
                     list_layout('mkey_64', ('mkey_8', 0, 50), ('mkey_4', 0, 200), ('mkey_8', 50, 65)),
                     wqe(WRITE, remote('mkey_64', 3), data('full', FULL + 0x1000, 300))]
    yield 'ring_of_keys', [list_layout('mkey_4', ('mkey_8', 0, 64)), list_layout('mkey_8', ('mkey_4', 0, 64)),
                           wqe(WRITE, remote('mkey_4', 0), data('full', FULL, 8))]
    yield 'itself', [list_layout('mkey_4', ('mkey_4', 0, 64)), wqe(WRITE, remote('mkey_4', 0), data('full', FULL, 8))]
    yield 'two_gib', [list_layout('mkey_4', ('null', 0, 0), ('full', FULL, 64)),
                      umr('mkey_4', LEN, length=4000), wqe(WRITE, remote('full', FULL), data('mkey_4', 0, 4000))]
    yield 'reconfigure', [list_layout('mkey_64', ('full', FULL, 64), rights=0x04),
                          wqe(READ, remote('full', FULL), data('mkey_64', 0, 8))]
    yield 'tag', [list_layout('mkey_64', ('full', FULL, 64), tag=5),
                  wqe(WRITE, remote(KEY['mkey_64'] | 5, 0), data(KEY['mkey_64'] | 5, 0, 8)),
                  wqe(WRITE, remote(KEY['mkey_64'], 0), data('full', FULL, 8))]
    yield 'too_many_entries', [list_layout('mkey_4', *[('full', FULL, 8)] * 8)]
    yield 'repeat_too_many', [umr('mkey_8', CONFIGURE | LEN, struct.pack('>IIIHH', 8, 0x400, 1, 0, 60), length=8)]
    yield 'foreign', [list_layout('mkey_foreign', ('full', FULL, 64))]
    yield 'of_a_region', [list_layout('full', ('full', FULL, 64))]
    yield 'forbidden_mask', [umr('mkey_4', 1 << 7 | 1 << 1 | 1 << 63)]
    yield 'from_memory', [wqe(WRITE, remote('full', FULL), inline(data('local', LOCAL, 64) + bytes(48))),
                          wqe(UMR, struct.pack('>B3xHHQ32x', 0, 4, 0, CONFIGURE | LEN),
                              struct.pack('>BBBBIIIQQ32x', 0, 0, 0x7c, 0, ANY_QPN << 8, 0, 0, 0, 64),
                              data('full', FULL, 64), imm='mkey_4'),
                          wqe(WRITE, remote('mkey_4', 0), data('full', FULL, 64))]
    yield 'some_entries', [list_layout('mkey_8', *[('full', FULL + 64 * i, 64) for i in range(8)]),
                           umr('mkey_8', 0, data('local', LOCAL, 32), flags=INLINE | 0x10, offset=2),
                           umr('mkey_8', 0, data('local', LOCAL, 32), flags=INLINE | 0x10, offset=7),
                           wqe(WRITE, remote('mkey_8', 0), data('local', LOCAL, 400))]
    yield 'not_inline', [umr('mkey_4', CONFIGURE | LEN, data('full', FULL, 64), flags=0, length=64)]
    yield 'block_setup', [umr('mkey_64', CONFIGURE | LEN, bsf=bytes(64))]
    yield 'short', [umr('mkey_4', CONFIGURE | LEN, data('full', FULL, 64), length=64, ds=8), wqe(UMR, ds=3)]
    yield 'local_invalidate', [list_layout('mkey_4', ('full', FULL, 64)), invalidate('mkey_4'),
                               wqe(WRITE, remote('full', FULL), data('mkey_4', 0, 8))]
    yield 'invalidate_region', [invalidate('full')]
    yield 'window_1', [bind('window_1', 'full', FULL, 256, 1),
                       wqe(WRITE, remote(KEY['window_1'] | 1, FULL + 8), data('local', LOCAL, 64)),
                       wqe(READ, remote(KEY['window_1'] | 1, FULL + 200), data('local', LOCAL, 57))]
    yield 'window_1_zero_based', [bind('window_1', 'full', FULL, 256, 1, start=0),
                                  wqe(WRITE, remote(KEY['window_1'] | 1, 8), data('local', LOCAL, 64))]
    yield 'window_1_again', [bind('window_1', 'full', FULL, 256, 1), bind('window_1', 'zero_based', 0, 64, 2),
                             umr('window_1', IS_FREE | MKEY, flags=INLINE | 0x10, free=FREE, tag=3)]
    yield 'window_2', [bind('window_2', 'full', FULL, 256, 7, second=True),
                       wqe(WRITE, remote(KEY['window_2'] | 7, FULL), data('local', LOCAL, 64)),
                       invalidate(KEY['window_2'] | 7),
                       wqe(WRITE, remote(KEY['window_2'] | 7, FULL), data('local', LOCAL, 64))]
    yield 'window_2_twice', [bind('window_2', 'full', FULL, 256, 7, second=True)] * 2
    yield 'window_2_remote_invalidate', [bind('window_2_also', 'full', FULL, 256, 9, second=True),
                                         wqe(SEND_INVAL, data('full', FULL, 8), imm=KEY['window_2_also'] | 9)]
    for region in ('read_only', 'local', 'foreign', 'gone', 'mkey_8', 'null', 'device'):
        yield 'window_over_' + region, [bind('window_1', region, 0 if region in ('null', 'device') else FULL, 64, 1)]


def blocks():
    """Keys with signatures and ciphers."""
    big = ('full', FULL, 0x1f80)
    for kind, size in FIELDS.items():
        wire = 512 + size
        yield 'insert_' + kind, [list_layout('mkey_signature', ('full', FULL, 1024), bsf=signature(None, kind)),
                                 set_psv(PSV), set_psv(PSV + 1),
                                 wqe(WRITE, remote('full', FULL + 0x800), data('mkey_signature', 0, 2 * wire)),
                                 wqe(READ, remote('mkey_signature', 0), data('local', LOCAL, 2 * wire))]
        # The data in memory is wrong: an error, which later transfers do not repeat.
        yield 'check_' + kind, [list_layout('mkey_signature', big, bsf=signature(kind, None)),
                                wqe(WRITE, remote('device', 0), data('mkey_signature', 0, 1024)),
                                wqe(READ, remote('mkey_signature', 512), data('local', LOCAL, 512)),
                                umr('mkey_signature', SIG_ERR),
                                wqe(WRITE, remote('mkey_signature', 100), data('local', LOCAL, 1000))]
        yield 'pass_' + kind, [list_layout('mkey_signature', big, bsf=signature(kind, kind, copy=0xff)),
                               wqe(WRITE, remote('mkey_signature', 0), data('local', LOCAL, 3 * wire)),
                               wqe(WRITE, remote('device', 0), data('mkey_signature', wire, 2 * wire))]
    for check, copy in ((0, 0), (0x10, 0xff), (0xff, 0x30), (0xc0, 0)):
        yield f'masks_{check:x}_{copy:x}', [
            list_layout('mkey_signature', big, bsf=signature('t10', 't10', check=check, copy=copy)),
            wqe(WRITE, remote('mkey_signature', 0), data('local', LOCAL, 1040)),
            wqe(READ, remote('mkey_signature', 0), data('local', LOCAL, 1040))]
    for checks in range(4):
        yield f'escapes_{checks}', [
            list_layout('mkey_signature', big, bsf=signature('t10', None, app=0, ref=0, checks=0x40 | checks)),
            wqe(WRITE, remote('device', 0), data('mkey_signature', 0, 1024))]
    for memory, wire in ((512, 520), (520, 4096), (4096, 512), (4160, 4048)):
        yield f'reblock_{memory}_{wire}', [
            list_layout('mkey_signature', big, bsf=signature('crc32', 't10', memory, wire)),
            wqe(WRITE, remote('mkey_signature', 0), data('local', LOCAL, 4096)),
            wqe(READ, remote('mkey_signature', 0), data('local', LOCAL, 4096))]
    yield 'in_parts', [list_layout('mkey_signature', big, bsf=signature(None, 't10'))] + [
        wqe(WRITE, remote('mkey_signature', at), data('local', LOCAL + at, length))
        for at, length in ((0, 100), (100, 412), (512, 3), (515, 5), (520, 700), (700, 1))]
    yield 'cut_anywhere', [
        interleaved('mkey_signature', 40, ('full', FULL, 13, 3), ('local', LOCAL, 37, 0), bsf=signature('t10', None)),
        wqe(WRITE, remote('full', FULL + 0x1000), data('mkey_signature', 0, 1024)),
        wqe(READ, remote('mkey_signature', 5), data('full', FULL + 0x1000, 1000))]
    yield 'inside_a_key', [list_layout('mkey_signature', ('full', FULL, 1024), bsf=signature(None, 'crc32')),
                           list_layout('mkey_8', ('mkey_signature', 10, 400), ('mkey_signature', 516, 516)),
                           wqe(WRITE, remote('device', 0), data('mkey_8', 0, 916))]
    yield 'in_itself', [list_layout('mkey_signature', ('mkey_64', 0, 1024), bsf=signature(None, 'crc32')),
                        list_layout('mkey_64', ('mkey_signature', 0, 1024), bsf=signature('crc32', None, psv=PSV + 2)),
                        wqe(WRITE, remote('device', 0), data('mkey_64', 0, 516))]
    yield 'by_send', [list_layout('mkey_signature', ('full', FULL, 1024), bsf=signature(None, 'crc32c')),
                      wqe(SEND, data('mkey_signature', 0, 300)), wqe(SEND, data('mkey_signature', 300, 200))]
    yield 'switched_off', [list_layout('mkey_signature', ('full', FULL, 1024), bsf=signature(None, 'crc32')),
                           umr('mkey_signature', BSF_EN),
                           wqe(WRITE, remote('device', 0), data('mkey_signature', 0, 1024))]
    yield 'atomic', [list_layout('mkey_signature', ('full', FULL, 1024), bsf=signature(None, 'crc32')),
                     wqe(FA, remote('mkey_signature', 0), atomic(5), data('local', LOCAL, 8))]
    yield 'limited', [list_layout('mkey_signature', big, bsf=signature(None, 'crc32', limit=600)),
                      wqe(WRITE, remote('device', 0), data('mkey_signature', 0, 1032))]
    yield 'stop', [list_layout('mkey_signature', big, bsf=signature('crc32', None)),
                   wqe(WRITE, remote('device', 0), data('mkey_signature', 0, 512)), wqe(NOP), wqe(NOP)]
    refused = {
        'psv': signature('crc32', None, psv=FOREIGN_PSV), 'no_psv': signature('crc32', None, psv=77),
        'block': signature('crc32', None, 700), 'short': signature('crc32', None)[:16], 'code_1': signature('t10', code=1),
        'not_same': signature('crc32', 'crc64', copy=0xff), 'transaction': signature('crc32')[:16] + b'\1' * 48,
        'dek': cipher(dek=99), 'foreign_dek': cipher(dek=FOREIGN_DEK), 'tag': cipher(dek=DEK_WITH_TAG),
        'order': cipher(order=9), 'standard': cipher(standard=1), 'unit': cipher(unit=700),
        'half': signature('crc32', code=3)}
    for name, bsf in refused.items():
        yield 'refused_' + name, [list_layout('mkey_cipher', big, bsf=bsf)]
    yield 'refused_capacity', [list_layout('mkey_signature', big, bsf=signature('crc32', code=3) + cipher(code=3))]
    yield 'refused_without_room', [list_layout('mkey_4', big, bsf=signature('crc32'))]
    yield 'unconfigured', [list_layout('mkey_cipher', big),
                           wqe(WRITE, remote('device', 0), data('mkey_cipher', 0, 512))]
    for order in range(4):
        for unit in (512, 520):
            setup = list_layout('mkey_cipher', big, bsf=cipher(unit, order=order, dek=DEK_WITH_TAG, tag=KEYTAG))
            yield f'cipher_{order}_{unit}', [
                setup, wqe(WRITE, remote('device', 0), data('mkey_cipher', 0, 2000)),
                wqe(WRITE, remote('mkey_cipher', unit), data('local', LOCAL, 3 * unit)),
                wqe(READ, remote('mkey_cipher', 100), data('local', LOCAL, 1000)),
                wqe(SEND, data('mkey_cipher', 7, 300)),
                wqe(WRITE, remote('mkey_cipher', 0), data('local', LOCAL, 100))]
        yield f'both_{order}', [
            list_layout('mkey_cipher', big, bsf=signature('t10', 't10', copy=0xff, code=3) + cipher(520, order=order, code=3)),
            wqe(WRITE, remote('device', 0), data('mkey_cipher', 0, 1040)),
            wqe(WRITE, remote('mkey_cipher', 520), data('local', LOCAL, 2080))]


def block_places():
    """Keys with setups at both ends, inside layouts, in copies, starting in the middle of structures."""
    big, small = ('full', FULL, 0x1f80), ('local', LOCAL, 1024)
    dif = list_layout('mkey_signature', big, bsf=signature(None, 't10'))
    both = list_layout('mkey_cipher', big, bsf=signature('crc64', 't10', 512, 520, code=3) + cipher(520, code=3))
    plain = list_layout('mkey_cipher', small, bsf=signature('crc32', None, psv=PSV + 2))
    inside = interleaved('mkey_8', 4, ('mkey_signature', 3, 200, 320), ('local', LOCAL + 0x800, 16, 0))
    for name, setup in (('insert', [dif, plain]), ('both', [dif, both])):
        yield f'key_to_key_{name}', [*setup, wqe(WRITE, remote('mkey_signature', 0), data('mkey_cipher', 0, 1040)),
                                     wqe(READ, remote('mkey_signature', 517), data('mkey_cipher', 0, 520))]
        yield f'copies_{name}', [*setup, copy(data('mkey_signature', 0, 1040), data('mkey_cipher', 0, 1040)),
                                 copy(data('mkey_cipher', 520, 520), data('mkey_signature', 100, 520))]
        yield f'sends_{name}', [*setup, wqe(SEND, data('mkey_signature', 100, 900)), wqe(SEND, data('mkey_cipher', 0, 520))]
    for at, length in ((0, 816), (199, 2), (100, 700), (216, 216)):
        yield f'nested_{at}_{length}', [dif, inside, wqe(WRITE, remote('mkey_8', at), data('device', 0, length)),
                                        wqe(READ, remote('mkey_8', at), data('device', 0, length)),
                                        wqe(WRITE, remote('device', 8), data('mkey_8', at, length))]
    yield 'segments', [dif, plain, wqe(WRITE, remote('device', 0), data('mkey_signature', 0, 300), data('mkey_cipher', 5, 512),
                                       data('mkey_signature', 300, 220)),
                       wqe(READ, remote('device', 0), data('mkey_signature', 0, 515), data('mkey_cipher', 0, 2),
                           data('mkey_signature', 515, 525))]


def oddities():
    write = wqe(WRITE, remote('full', FULL), data('local', LOCAL, 64))
    long = wqe(WRITE, remote('full', FULL), *[data('local', LOCAL, 8)] * 13)
    umr4 = list_layout('mkey_4', ('full', FULL, 64), ('local', LOCAL, 64))
    bodies = {'write': [write] * 3, 'long': [long] * 2, 'umr': [umr4] * 2,
              'inline': [wqe(WRITE, remote('full', FULL), inline(bytes(range(200))))] * 2}
    for name, body in bodies.items():
        # Every position of the end of the ring, and 16-bit counters that wrap.
        for start in (13, 14, 15, 0xffff, 0xfffd):
            yield f'wrap_{name}_{start:x}', make(sq_a=body, start=start)
    yield 'receive_wraps', make(sq_a=[wqe(SEND, data('full', FULL, 8))] * 6,
                                rq_b=[receive(data('full', FULL, 64))] * 6, rq_start=0xfffd)
    yield 'opcodes', make(sq_a=[wqe(op) for op in (0x0e, 0x0f, 0x14, 0x20, 0x2f, 0xff)])
    yield 'no_ds', make(sq_a=[wqe(NOP, ds=0), write])
    yield 'ds_past_doorbell', make(sq_a=[wqe(WRITE, remote('full', FULL), ds=63)])
    yield 'wrong_qpn', make(sq_a=[wqe(NOP, qpn=0x41)])
    yield 'short_write', make(sq_a=[wqe(WRITE, ds=1)])
    yield 'half_segment', make(sq_a=[wqe(CS, remote('full', FULL), ds=2)])
    yield 'inline_too_long', make(sq_a=[wqe(SEND, struct.pack('>I12x', 1 << 31 | 900))])
    yield 'doorbell_jumps', make(sq_a=[write], ops=[('jump_a', 3), ('send_a', 1), ('poll', 0), ('send_a', 9)])
    yield 'receive_jumps', make(sq_a=[wqe(SEND, data('full', FULL, 8))], rq_b=[receive(data('full', FULL, 64))],
                                ops=[('jump_b', 2), ('receive_b', 0), ('send_a', 1), ('modify_b', 2)])
    yield 'no_receive', make(sq_a=[wqe(SEND, data('full', FULL, 8))] * 2)
    yield 'receive_in_time', make(sq_a=[wqe(SEND, data('full', FULL, 8))] * 2,
                                  rq_b=[receive(data('full', FULL, 64))] * 2, rnr_retry=7, ops=[('send_a', 2), ('timer_a', 0), ('receive_b', 2), ('timer_a', 0)])
    yield 'unreachable', make(sq_a=[write], flags=2, retry=1, ops=[('send_a', 1)] + [('timer_a', 0)] * 3)
    yield 'to_itself', make(sq_a=[write, wqe(READ, remote('full', FULL), data('local', LOCAL, 8))], flags=1)
    yield 'peer_in_rtr', make(sq_a=[write], sq_b=[write], flags=4)
    yield 'drain', make(sq_a=[write] * 4, ops=[('send_a', 2), ('modify_a', 0x80), ('send_a', 2), ('modify_a', 1)])
    yield 'error_and_flush', make(sq_a=[write] * 4, rq_a=[receive(data('full', FULL, 8))] * 4,
                                  ops=[('receive_a', 3), ('modify_a', 2), ('send_a', 4), ('receive_a', 1)])
    yield 'lost_request', make(sq_a=[write] * 3, lose=1, ops=[('send_a', 3), ('timer_a', 0), ('timer_a', 0)])
    yield 'lost_ack', make(sq_a=[wqe(SEND, data('full', FULL, 64))] * 2,
                           rq_b=[receive(data('full', FULL, 64))] * 2, lose=2,
                           ops=[('receive_b', 2), ('send_a', 2), ('timer_a', 0)])
    read = wqe(READ, remote('full', FULL), data('local', LOCAL, 2048))
    add = wqe(FA, remote('full', FULL), atomic(1), data('local', LOCAL, 8))
    for name, body in (('read', read), ('atomic', add)):
        yield f'lost_{name}_response', make(sq_a=[body] * 2, lose=2, ops=[('send_a', 2), ('timer_a', 0), ('timer_a', 0)])
        yield f'twice_{name}', make(sq_a=[body] * 2, double=0xff)
    yield 'twice_write', make(sq_a=[write] * 2, double=0xff)
    yield 'twice_send', make(sq_a=[wqe(SEND, data('full', FULL, 8))] * 2, rq_b=[receive(data('full', FULL, 64))] * 4, double=5)
    yield 'rewritten_before_resend', make(
        sq_a=[write, read, umr4], lose=1,
        ops=[('send_a', 1), ('rewrite_a', 0x10), ('timer_a', 0), ('send_a', 1), ('timer_a', 0)])
    yield 'key_goes_before_resend', make(
        sq_a=[umr4, wqe(WRITE, remote('full', FULL), data('mkey_4', 0, 100))], lose=1,
        ops=[('send_a', 4), ('key', KEYS.index('mkey_4')), ('timer_a', 0)])
    yield 'region_shrinks', make(
        sq_a=[umr4, wqe(WRITE, remote('full', FULL), data('mkey_4', 0, 100)),
              wqe(WRITE, remote('local', LOCAL), data('full', FULL + 0x1000, 64))],
        ops=[('send_a', 4), ('key', 0), ('send_a', 1), ('send_a', 1)])
    for field in range(14):
        for number, body in ((1, [write, write]), (2, [read, add])):
            yield f'damaged_{field}_{number}', make(sq_a=body, damage=number, field=field, value=0x412)


def shared():
    entries = [linked((i + 1) % 8, data('full', FULL + 64 * i, 64)) for i in range(8)]
    send = wqe(SEND, data('local', LOCAL, 48))
    yield 'in_order', make('rc_small', [send] * 3, srq=entries)
    yield 'overrun', make('rc_small', [send] * 8, srq=entries)
    yield 'polled', make('rc_small', [send] * 8, srq=entries,
                         ops=[('receive_b', 8)] + [('send_a', 2), ('poll', 0)] * 4)
    yield 'limit', make('rc_small', [send] * 3, srq=entries,
                        ops=[('receive_b', 4), ('limit', 2), ('send_a', 3), ('limit', 3)])
    yield 'links_astray', make('rc_small', [send] * 3,
                               srq=[linked(0xffff, data('full', FULL, 64)), *entries[1:7], linked(0x1234, data('gone', 0, 9))])
    yield 'armed', make('rc_small', [wqe(SEND, data('local', LOCAL, 8), flags=SIGNALLED | SOLICITED)] * 2, srq=entries,
                        ops=[('receive_b', 4), ('arm', 1), ('arm', 2), ('send_a', 1), ('poll', 0), ('arm', 0x40), ('send_a', 1)])


def in_packets():
    """Messages in packets: placed packet by packet, some of which are lost, duplicated, late, damaged."""
    again = [('receive_b', 8), ('send_a', 16)] + [('timer_a', 0)] * 4
    for pair in ('rc', 'uc'):
        for name, parts in messages(pair):
            yield f'{pair}_packets_{name}', make(pair, **{**parts, 'flags': PACKETS, 'mtu': 0})
    rq = [receive(data('mkey_cipher', 0, 520), data('mkey_8', 7, 2000))] * 2
    srq = entries_of_srq(data('mkey_cipher', 0, 520), data('mkey_8', 7, 2000))
    for name, wqes in [*blocks(), *block_places()]:
        yield f'packets_{name}', make('rc', wqes, rq_b=rq, mtu=0, flags=PACKETS)
        yield f'packets_lossy_{name}', make('rc', wqes, rq_b=rq, mtu=0, flags=PACKETS, lose=0x35, double=0x18, ops=again)
        yield f'packets_uc_{name}', make('uc', wqes, rq_b=rq, mtu=0, flags=PACKETS, lose=0x24)
        yield f'packets_dc_{name}', make('dc', list(through(dc_address(), wqes)), srq=srq, mtu=0, flags=PACKETS)
        yield f'packets_xrc_{name}', make('xrc', list(through(xrc(), wqes)), srq=srq, mtu=0, flags=PACKETS, lose=0x40, ops=again)
    # A message continues after the part with the cipher.
    setup = [list_layout('mkey_cipher', ('full', FULL, 1024), bsf=cipher(512)),
             list_layout('mkey_8', ('mkey_cipher', 0, 256), ('local', LOCAL + 2048, 1024))]
    yield 'packets_behind', make('rc', [*setup, wqe(WRITE, remote('mkey_8', 0), data('local', LOCAL, 956)),
                                        wqe(READ, remote('full', FULL + 0x1000), data('mkey_cipher', 0, 272), data('local', LOCAL + 2048, 900)),
                                        wqe(SEND, data('local', LOCAL, 900))],
                                 rq_b=[receive(data('mkey_cipher', 0, 256), data('local', LOCAL + 2048, 1024))] * 2, mtu=0,
                                 flags=PACKETS)
    write, read = (wqe(opcode, remote('full', FULL), data('local', LOCAL, 1000)) for opcode in (WRITE, READ))
    for field in range(16):
        for number in (1, 2, 4, 6):
            yield f'packets_damaged_{field}_{number}', make(sq_a=[write, read], mtu=0, flags=PACKETS, damage=number, field=field,
                                                            value=0x412, ops=again)


def all_seeds():
    for pair in ('rc', 'uc', 'ud'):
        for name, parts in messages(pair):
            yield f'{pair}_{name}', make(pair, **parts)
    for name, wqes in keys():
        yield f'key_{name}', make('rc', wqes, rq_b=[receive(data('full', FULL + 0x800, 512))] * 2)
    for name, wqes in list(keys())[-12:-6]:
        yield f'uc_key_{name}', make('uc', wqes)
    rq = [receive(data('mkey_signature', 0, 300)), receive(data('mkey_signature', 300, 216))]
    for name, wqes in blocks():
        for pair in ('rc', 'uc', 'rc_small'):
            yield f'{pair}_block_{name}', make(pair, wqes, rq_b=rq if pair != 'rc_small' else (), mtu=0)
        yield f'lossy_block_{name}', make('rc', wqes, rq_b=rq, mtu=0, lose=0xb, ops=[
            ('receive_b', 2), ('send_a', 16)] + [('timer_a', 0)] * 4)
    srq = entries_of_srq(data('mkey_signature', 0, 300), data('mkey_signature', 300, 216))
    for name, wqes in [*blocks(), *block_places()]:
        for pair, segment in (('dc', dc_address()), ('xrc', xrc())):
            yield f'{pair}_block_{name}', make(pair, list(through(segment, wqes)), srq=srq, mtu=0)
    for name, wqes in block_places():
        rq = [receive(data('mkey_cipher', 0, 520), data('mkey_8', 7, 2000))] * 2
        yield f'rc_place_{name}', make('rc', wqes, rq_b=rq, mtu=1)
        yield f'lossy_place_{name}', make('rc', wqes, rq_b=rq, mtu=0, lose=0x15, ops=[
            ('receive_b', 2), ('send_a', 16)] + [('timer_a', 0)] * 4)
    yield from oddities()
    yield from other_transports()
    yield from in_packets()
    for name, seed in shared():
        yield f'srq_{name}', seed


def block_seeds():
    """Inputs of block.c: block_input.h."""
    kinds, sizes = ['none', 't10', 'csum', 'crc32', 'crc32c', 'crc64'], [512, 520, 4096, 4160, 4048]
    same, ciphers, starts, at_end, null, nested, vanishes, far = (1 << i for i in range(8))

    def domain(kind, block, seed=0, checks=0x40, app=0x3a3a, ref=0x3a3a3a3a):
        return struct.pack('>BBBBHI', kinds.index(kind), sizes.index(block), seed, checks, app, ref)

    def seed(memory, wire, form=0, *, check=0xff, copied=0, order=0, unit=512, limit=0, patch=bytes(6), size=2080,
             entries=(), first=0, length=1040, cuts=(), contents=0):
        return (domain(*memory) + domain(*wire) +
                struct.pack('<BBBBB8sH6sH', form, check, copied, order, sizes.index(unit), b'tweaking', limit, patch, size - 1) +
                struct.pack('<6H', *(tuple(entries) + (0,) * 6)[:6]) + struct.pack('<HH', first, length - 1) +
                struct.pack('<12H', *(tuple(cuts) + (0,) * 12)[:12]) + bytes([contents, 1]))

    none = ('none', 512)
    for kind in kinds[1:]:
        for block in sizes:
            yield f'insert_{kind}_{block}', seed(none, (kind, block), cuts=(100, 3), size=2 * block)
            yield f'strip_{kind}_{block}', seed((kind, block), none, far, cuts=(256,), size=2 * block + 16)
            yield f'pass_{kind}_{block}', seed((kind, block), (kind, block), same, copied=0xff, first=100, cuts=(7, 300),
                                               size=3 * block)
    for memory, wire in ((512, 520), (520, 4096), (4096, 512), (4160, 4048)):
        yield f'reblock_{memory}_{wire}', seed(('crc32', memory), ('t10', wire), starts, size=9000, length=6000, cuts=(512, 1))
    for order in range(4):
        for unit in sizes:
            yield f'cipher_{order}_{unit}', seed(none, none, ciphers, order=order, unit=unit, size=9000, length=8000,
                                                 cuts=(256,))
            yield f'both_{order}_{unit}', seed(('t10', 512), ('crc64', 520), ciphers | at_end, order=order, unit=unit,
                                               size=9000, length=6000, cuts=(1000, 8))
    for checks in range(4):
        yield f'escapes_{checks}', seed(('t10', 512, 0, checks, 0xffff), ('csum', 512, 1, checks, 0xffff), contents=2)
    yield 'layout', seed(('t10', 512), none, null | nested | vanishes, entries=(100, 200, 700, 3), cuts=(50, 60))
    # The last data of a unit, then a part of a field.
    yield 'field_alone', seed(none, ('t10', 512), ciphers, order=1, unit=4096, size=4096, length=515, cuts=(512, 2, 1))
    yield 'field_behind', seed(none, ('csum', 512), ciphers, order=1, unit=4048, size=1024, length=1040, cuts=(1032,))
    yield 'limited', seed(('t10', 512), none, limit=600)
    yield 'damaged', seed(('t10', 512), none, patch=bytes([3, 0x17, 0, 0, 0, 0]))


def srq_seeds():
    """The operations of srq.c."""
    ring = b''.join(linked((i + 1) % 8, data('full', FULL, 64)) for i in range(8))
    device = bytes([0, 3, 1]) + ring
    yield 'device', device + bytes([0, 5] + [4] * 6)
    yield 'device_claims', device + bytes([1, 0, 0x80, 0] + [4] * 12)
    yield 'device_limit', device + bytes([0, 4, 3, 3, 4, 4, 4])
    yield 'device_grows', device + bytes([0, 4, 4, 2, 4]) + ring * 2 + bytes([4] * 4)
    yield 'device_links', bytes([0, 2, 0]) + b'\xff' * 128 + bytes([0, 9] + [4] * 9)
    post, take, complete, modify = [0, 8, 1], [3], [5, 0], [7, 60, 2, 3]
    yield 'driver', bytes([1, 7, 3] + post * 3 + take * 4 + complete * 2 + post * 3)
    yield 'driver_full', bytes([1, 1, 0] + post * 6 + take * 2 + [5, 1] + post)
    yield 'driver_grows', bytes([1, 3, 1] + post * 2 + take + modify + post * 4 + take * 3 + complete * 3 + post)


def settings_seeds():
    """Number of the setting, its text, NUL, the list of options."""
    texts = ['man', 'connectx', '1', '16', '17', '0x10', '-1', ' 1', 'mlx5_', 'a b', 'stderr', 'off', '18446744073709551615',
             '18446744073709551616', '0x', '4096', '4095', 'loopback', 'local', 'auto', 'x' * 40, '\x7f\n']
    for i, text in enumerate(texts):
        yield str(i), bytes([i % 8]) + text.encode('latin-1') + b'\0DEVICES,SEED,MTU'


def packet_seeds():
    """A BTH with each possible opcode, followed by data."""
    for opcode in range(256):
        bth = struct.pack('>BBHII', opcode, 0x40, 0xffff, 0x4711, 1 << 31 | 7)
        for length in (0, 4, 64):
            yield f'{opcode}_{length}', bth + bytes(length)


def transport_step(kind, end=0, opcode=0, flags=0, number=0, key=0, syndrome=0, fill=0, offset=0, length=0, value=0):
    return struct.pack('<8BHHI', kind, end, opcode, flags, number, key, syndrome, fill, offset, length, value)


def transport_seeds():
    """Own requests of each kind with packets of a stranger in between; layout in transport.c."""
    request, receive, deliver, lose, double, timer, packet, spoil = range(8)
    for pair in range(6):
        for link in (bytes(2), bytes([1, 1]), bytes([2, 0])):
            head = bytes([pair, 0, 7 | 7 << 3, 4 | 4 << 4]) + link + bytes(2)
            for opcode in range(12):
                own = transport_step(request, opcode=opcode, flags=8, length=700, offset=64)
                yield f'own_{pair}_{link[0]}_{opcode}', (
                    head + transport_step(receive, end=1, number=3) + own + transport_step(deliver, number=3) + own +
                    transport_step(lose) + transport_step(double) + transport_step(deliver, number=200) +
                    transport_step(timer) + transport_step(deliver, number=200))
            for opcode in range(32):
                yield f'strange_{pair}_{link[0]}_{opcode}', (
                    head + transport_step(receive, end=1, number=3) +
                    transport_step(packet, end=1, opcode=opcode, length=100) +
                    transport_step(request, opcode=4, flags=8, length=700) +
                    transport_step(packet, end=0, opcode=opcode, length=100) +
                    transport_step(spoil, number=opcode) + transport_step(deliver, number=200))


def shm_record(opcode, aid=0x0f, flags=0, headers=12, pieces=0, length=0, rest=b'', data=b''):
    """A record of the shared ring; aid as in shm.c."""
    bth = bytes([opcode, 0x40, 0xff, 0xff, 0, 0, 0, 0, 0x80, 0, 0, 0])
    return (struct.pack('<BBBBBBI', aid, len(data), flags, headers, pieces, 0, length) + (bth + rest).ljust(116, b'\0') +
            data)


def shm_seeds():
    reth = lambda length: struct.pack('>QII', FULL, KEY['full'], length)
    write = lambda length, **more: shm_record(0x0a, headers=28, length=length, rest=reth(length), **more)
    yield 'write', b''.join(write(length, data=b'x' * min(length, 100)) for length in (0, 1, 8, 64, 88, 89, 100, 2000, 4000))
    yield 'send', shm_record(0x04, length=10) + shm_record(0x00, length=1024) + shm_record(0x02, length=5)
    yield 'read', shm_record(0x0c, headers=28, rest=reth(64)) + shm_record(0x13, headers=40, rest=reth(0))
    yield 'response', shm_record(0x11, headers=16) + shm_record(0x10, headers=16, length=64) + shm_record(0x12, headers=24)
    yield 'reference', b''.join(write(length, aid=0x1f, flags=4, pieces=1) for length in (1, 100, 4000, 5000))
    yield 'false_reference', write(100, flags=4, pieces=2, data=struct.pack('<IIQQQQ', 1, 0, 4096, 50, 8192, 50))
    yield 'frame', write(100, flags=3, data=bytes(64)) + shm_record(0x64, flags=1, headers=20, length=9, data=bytes(80))
    yield 'long_headers', shm_record(0xd9, headers=64, flags=1, data=bytes(200)) + shm_record(0xd3, headers=40, length=16)
    for name, more in (('flags', {'flags': 0x80}), ('short', {'headers': 8}), ('long', {'headers': 76}),
                       ('odd', {'headers': 13}), ('pieces', {'pieces': 1}), ('length', {'length': 0x10001}),
                       ('no_pieces', {'flags': 4}), ('many_pieces', {'flags': 4, 'pieces': 31}), ('no_path', {'flags': 2})):
        yield 'bad_' + name, shm_record(0x04) + shm_record(0x04, **{'length': 4, **more}) + shm_record(0x04)


QPN_PAIR = {name: number for number, name in enumerate(PAIRS)}


def udp_datagram(*packets, aid=0x5f, manner=0, pair='rc', end=1, traffic_class=0, segment=0, identification=0, port=1):
    """A datagram as udp.c reads it; packets are (opcode, extension headers, payload)."""
    frames = b''
    for opcode, headers, payload in packets:
        pad = -len(payload) % 4
        frames += bytes([opcode, 0x40 | pad << 4, 0xff, 0xff, 0, 0, 0, 0, 0x80, 0, 0, 0]) + headers + payload
        frames += bytes(pad + 4)
    return struct.pack('<BBBBHHHBx', aid, manner, QPN_PAIR[pair] + len(PAIRS) * end, traffic_class, segment, len(frames),
                       identification, port) + frames


def udp_seeds():
    """Packets alone and in trains, of both families, marked, counted, spoilt, for others."""
    reth = lambda length: struct.pack('>QII', FULL, KEY['full'], length)
    full = bytes(range(256)) * 4
    write, read = (0x0a, reth(100), b'w' * 100), (0x0c, reth(3000), b'')
    train = [udp_datagram((0x06, reth(5 * 1024 + 9), full)),
             udp_datagram(*[(0x07, b'', full)] * 4, (0x08, b'', b'after it'), segment=1040)]
    yield 'write', udp_datagram(write)
    yield 'train', b''.join(train)
    yield 'train_in_filters', udp_datagram(write, manner=0x20) + b''.join(train)
    yield 'read', udp_datagram(read) + udp_datagram((0x14, reth(0) + bytes(12), b''))
    for name, manner in (('ipv6', 1), ('mapped', 2), ('inner', 4), ('nowhere', 8), ('short', 16)):
        yield name, udp_datagram(write, manner=manner, traffic_class=3) * 3
    yield 'counted', b''.join(udp_datagram(write, identification=65500 + i & 0xffff) for i in range(60))
    yield 'leap', b''.join(udp_datagram(write, identification=i, port=2) for i in [*range(99, 180), 9000, 9001])
    yield 'notification', udp_datagram((0x81, b'', bytes(16)), manner=0x20) + udp_datagram((0x81, b'', bytes(16)), aid=0x69)
    yield 'forwarded', udp_datagram(write, aid=0x6d) + udp_datagram(*[(0x07, b'', full)] * 3, aid=0x69, segment=1040)
    yield 'uc', udp_datagram((0x26, reth(1028), full), pair='uc') + udp_datagram((0x28, b'', b'four'), pair='uc')
    yield 'ud', udp_datagram((0x64, struct.pack('>II', 0x11111111, 5), b'datagram'), pair='ud', manner=1)
    yield 'xrc', udp_datagram((0xaa, struct.pack('>I', XRC_SRQ) + reth(8), b'8 bytes.'), pair='xrc')
    yield 'dc', udp_datagram((0xc4, struct.pack('>QQII', DC_KEY, 1, 0, 0x99), b'8 bytes.'), pair='dc')
    yield 'acknowledge', udp_datagram((0x11, bytes([0x1f, 0, 0, 1]), b''), end=0)
    # Connection manager messages by number: for this process (slot 0), for the other one, for none.
    for attribute in range(0x10, 0x1b):
        for slot in (0, 5, 9):
            mad = struct.pack('>IIQHHI', 0x01070203, 0, 1, attribute, 0, 0) + struct.pack('>IIQ', 9, slot << 18 | 1, 0x01061c06)
            mad = (0x64, struct.pack('>II', 0x80010000, 1), mad.ljust(256, b'\0'))
            yield f'manager_{attribute:x}_{slot}', udp_datagram(mad, aid=0x88) * 2
            yield f'manager_inner_{attribute:x}_{slot}', udp_datagram(mad, aid=0x88, manner=4) + udp_datagram(mad, aid=8)
    yield 'spoilt', udp_datagram(write, aid=0x47) + udp_datagram(write)


CM_KINDS = ['req', 'mra', 'rej', 'rep', 'rtu', 'dreq', 'drep', 'sidr_req', 'sidr_rep']
CM_ACTIONS = ['accept', 'reject', 'ready', 'establish', 'disconnect', 'answer', 'destroy', 'query']
CM_OPS = ['message', 'raw', 'again', 'back', 'time', 'program', 'connect', 'ended', 'verdict', 'listen']
CM_IDS, CM_HONEST, CM_SPOOFED, CM_LATE, CM_QPN = 1, 2, 4, 8, 16
# First id created by C's actions; the two listeners and the two ends of A's connection come before.
CM_FIRST = 4


def cm_step(op, kind=0, aid=CM_IDS | CM_QPN, which=0, fields=(), byte=0, to=0, value=0):
    """@fields: (number in its message, value)."""
    fields = [*fields, (0xff, 0), (0xff, 0)][:2]
    values = [value or fields[0][1], fields[1][1]]
    return struct.pack('<8B2I', CM_OPS.index(op), kind, aid, which, fields[0][0], fields[1][0], byte, to, *values)


def cm_say(kind, which=0, op='message', **more):
    return cm_step(op, CM_KINDS.index(kind), which=which, **more)


def cm_do(action, which=0, **more):
    return cm_step('program', CM_ACTIONS.index(action), which=CM_FIRST + which, **more)


def cm_wait(ms):
    return cm_step('time', value=ms)


def cm_seeds():
    """Connections that C makes and accepts, its messages in each of their states, and its messages about A's."""
    head = bytes([1, 3, 20, 0])
    passive = {'request': [cm_say('req')]}
    passive['reply'] = passive['request'] + [cm_do('accept')]
    passive['established'] = passive['reply'] + [cm_say('rtu')]
    passive['released'] = passive['established'] + [cm_say('dreq')]
    passive['answered'] = passive['released'] + [cm_do('answer')]
    passive['dreq'] = passive['established'] + [cm_do('disconnect')]
    passive['rejected'] = passive['request'] + [cm_do('reject')]
    passive['sidr'] = [cm_say('sidr_req')]
    active = {'asked': [cm_step('connect')]}
    active['response'] = active['asked'] + [cm_say('rep')]
    active['ready'] = active['response'] + [cm_do('ready')]
    active['mra'] = active['asked'] + [cm_say('mra')]
    active['sidr_asked'] = [cm_step('connect', 1)]
    for name, steps in (passive | active).items():
        for kind in CM_KINDS:
            for more in ([], [cm_wait(5000)], [cm_wait(200000)]):
                yield f'{name}_{kind}_{len(more) and more[0][8]}', head + b''.join(
                    [*steps, cm_say(kind), *more, cm_step('again'), cm_step('back'), cm_do('destroy')])
        for ending in range(3):
            yield f'{name}_ending_{ending}', bytes([0, 15, 20, ending]) + b''.join(steps)
        yield f'{name}_gone', head + b''.join([*steps, cm_step('ended'), cm_wait(2000)])
        yield f'{name}_refuses', head + b''.join([*steps, cm_step('ended', 1), cm_wait(2000)])
    for kind in CM_KINDS:
        for reason in (4, 10, 28):
            for aid in (CM_HONEST, CM_HONEST | CM_SPOOFED):
                yield f'honest_{kind}_{reason}_{aid}', head + b''.join(
                    cm_say(kind, aid=aid, byte=reason, to=to) for to in range(3))
    # C's own ids with the queue pair and GUID of A: fields of REQ and REP by number.
    yield 'others_qpn', head + b''.join(
        [cm_say('req', fields=[(5, 0x1001)]), cm_say('req', 1, aid=CM_HONEST, fields=[(0, 77)]),
         *active['asked'], cm_say('rep', aid=CM_HONEST, fields=[(1, 77)])])
    yield 'late', head + cm_say('req', aid=CM_IDS | CM_LATE) + cm_step('listen') + cm_wait(60)
    yield 'nobody', head + cm_say('req', aid=CM_IDS | CM_LATE) + cm_wait(60)
    for verdict in range(1, 4):
        yield f'verdict_{verdict}', head + b''.join(
            [cm_step('verdict', verdict), cm_say('req'), cm_say('sidr_req', 1), cm_step('verdict'), cm_step('again')])
    yield 'raw', head + b''.join(cm_say('req', op='raw', byte=byte, to=0xff) for byte in range(20))
    yield 'many', head + b''.join(cm_say('req', i % 6, fields=[(0, i)]) + cm_wait(1) for i in range(45))


def main():
    for name, seeds in (('block', block_seeds()), ('wqe', all_seeds()), ('srq', srq_seeds()), ('settings', settings_seeds()),
                        ('cm', cm_seeds()), ('packet', packet_seeds()), ('shm', shm_seeds()), ('transport', transport_seeds()),
                        ('udp', udp_seeds())):
        directory = os.path.join(sys.argv[1], name)
        os.makedirs(directory, exist_ok=True)
        for old in os.listdir(directory):
            os.remove(os.path.join(directory, old))
        for seed_name, seed in seeds:
            with open(os.path.join(directory, seed_name), 'xb') as file:
                file.write(seed)


if __name__ == '__main__':
    main()
