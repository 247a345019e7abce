# SPDX-License-Identifier: BSD-2-Clause
"""
Reads the files in which processes record (src/observe/timeline_file.h). They are untrusted. Each record becomes one event or
several, with times in ns of CLOCK_REALTIME.
"""
import bisect
import collections
import os
import stat
import struct

from common import Failure

HEAD = struct.Struct('<16s6Iq2Q2Q4Q64s64s64s')
ROW = struct.Struct('<6I16s16s8x')
CHUNK = struct.Struct('<IIQ16x')
RECORD = struct.Struct('<QQIIHBBI')
MOST_SOURCES = 4095
MOST_BYTES = 1 << 32
# Least distance of two clock samples; the rate between closer samples would be mostly noise.
POINT_DISTANCE_NS = 10_000_000
# Longer than any run, in ns.
MOST_SINCE = 10**18

Head = collections.namedtuple('Head', 'magic version clock chunks qp_rows process qps realtime_offset ticks_0 ticks_1 ns_0 ns_1 '
                                      'started taken overwritten dropped host program boot')
# A connected queue pair.
Row = collections.namedtuple('Row', 'number peer send_cq recv_cq device type source destination')
# An event is a plain tuple, as there are hundreds of thousands: ns of CLOCK_REALTIME, number of the source, order among those of one
# time and source, kind, number (of a QP, CQ or SRQ), index, opcode, psn, length, value.


def signed(value):
    """Converts @value to int64_t; malformed values wrap around."""
    return (value + (1 << 63) & (1 << 64) - 1) - (1 << 63)


def text_of(field):
    """Returns the text in a field of a file header, safe for a trace."""
    text = field[:-1].split(b'\0')[0]
    return ''.join(chr(c) if 32 <= c < 127 and c not in b'"\\' else '?' for c in text)


class Host:
    """A host: its processes share one clock."""

    def __init__(self, realtime_offset):
        self.realtime_offset, self.points = realtime_offset, []

    def add_point(self, ticks, ns):
        if ticks and ns:
            self.points.append((ticks, ns))

    def thin_points(self):
        """Keeps both ends and points that are far enough apart; drops points that go back in time."""
        kept = []
        for ticks, ns in sorted(self.points, key=lambda point: point[0]):
            if kept and (ticks <= kept[-1][0] or ns <= kept[-1][1]):
                continue
            if len(kept) > 1 and ns - kept[-2][1] < POINT_DISTANCE_NS:
                kept.pop()
            kept.append((ticks, ns))
        self.points, self.ticks = kept, [ticks for ticks, _ in kept]

    def ns_of(self, ticks):
        """Returns the time of @ticks, interpolated between the points around it, or extrapolated from the nearest pair."""
        if len(self.points) < 2:
            return self.points[0][1] if self.points else ticks
        low = min(max(bisect.bisect_right(self.ticks, ticks) - 1, 0), len(self.points) - 2)
        (from_ticks, from_ns), (to_ticks, to_ns) = self.points[low:low + 2]
        past = signed(ticks - from_ticks)
        since = abs(past) * (to_ns - from_ns) // (to_ticks - from_ticks)
        # Longer spans come from a malformed clock.
        return from_ns if since > MOST_SINCE else from_ns + (since if past >= 0 else -since)


class Source:
    """One file of records."""

    def __init__(self, head, rows, host):
        self.head, self.host = head, host
        self.process = head.process & 0x7fffffff
        self.program, self.host_name = text_of(head.program), text_of(head.host)
        self.rows = {row.number & 0xffffff: row for row in rows if row.number}
        self.lost = head.overwritten + head.dropped
        self.records = []  # events with times in ticks of the file


class Reader:
    """The files of one timeline."""

    def __init__(self, tables):
        self.tables, self.sources, self.hosts = tables, [], {}
        self.kind = {name: number for number, (name, _) in enumerate(tables['kinds'])}
        self.messages = {int(opcode): message for opcode, (_, message) in tables['wqe_opcodes'].items()}
        if tables['struct_bytes'] != [HEAD.size, ROW.size, CHUNK.size, RECORD.size]:
            raise Failure('these scripts are of another version of softhca')

    def started(self, path):
        """Returns the start of the process of the file @path, ns of CLOCK_REALTIME, or None if it is not a file of records."""
        try:
            # Does not block on a pipe or a terminal.
            with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), 'rb') as file:
                head = file.read(HEAD.size) or b''
        except OSError:
            return None
        good = len(head) == HEAD.size and head.startswith(self.tables['magic'].encode())
        return Head(*HEAD.unpack(head)).started if good else None

    def add(self, path):
        """Reads the file @path. Raises Failure if it is not a file of records or cannot be read."""
        try:
            with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), 'rb') as file:
                status = os.fstat(file.fileno())
                if status.st_size > MOST_BYTES:
                    raise Failure(f'{path} is larger than any process makes one')
                content = file.read(status.st_size) if stat.S_ISREG(status.st_mode) else b''
        except OSError as error:
            raise Failure(f'{path}: {error.strerror}') from error
        # The process may still write to it.
        content += bytes(max(0, status.st_size - len(content))) if stat.S_ISREG(status.st_mode) else b''
        if len(self.sources) == MOST_SOURCES:
            raise Failure(f'{path} is not read: these are too many files')
        if len(content) < self.tables['head_bytes'] or not content.startswith(self.tables['magic'].encode()):
            raise Failure(f'{path} has no records of a timeline')
        head = Head(*HEAD.unpack_from(content))
        if head.version != self.tables['version']:
            raise Failure(f'{path} is of another version of softhca')
        rows_end = self.tables['head_bytes'] + head.qp_rows * ROW.size
        chunk_bytes = self.tables['chunk_records'] * RECORD.size
        if rows_end + head.chunks * chunk_bytes > len(content):
            raise Failure(f'{path} is shorter than it says')
        self.add_source(head, memoryview(content), rows_end, chunk_bytes)

    def add_source(self, head, content, rows_end, chunk_bytes):
        host = self.hosts.setdefault(head.boot[:-1].split(b'\0')[0], Host(head.realtime_offset))
        rows = content[self.tables['head_bytes']:self.tables['head_bytes'] + min(head.qps, head.qp_rows) * ROW.size]
        source = Source(head, [Row(*row) for row in ROW.iter_unpack(rows)], host)
        if head.clock == self.tables['clock_ticks']:
            host.add_point(head.ticks_0, head.ns_0)
            host.add_point(head.ticks_1, head.ns_1)
        for at in range(rows_end, rows_end + head.chunks * chunk_bytes, chunk_bytes):
            self.add_chunk(source, content[at:at + chunk_bytes])
        self.sources.append(source)

    def add_chunk(self, source, content):
        _, lap, turn = CHUNK.unpack_from(content)
        if not lap:
            return
        number, clock, split = len(self.sources), self.kind['CLOCK'], self.splitters()
        ticks = source.head.clock == self.tables['clock_ticks']
        order = turn * self.tables['chunk_records'] << 16
        add = source.records.append
        for time, value, length, psn, index, opcode, kind, what in RECORD.iter_unpack(content[RECORD.size:]):
            # The rest is not written yet, or from an earlier lap.
            if what >> 24 != lap & 0xff:
                return
            order += 1 << 16
            if kind == clock and ticks:
                source.host.add_point(time, value)
            elif kind in split:
                split[kind](source.records, (time, number, order), (kind, what & 0xffffff, index, opcode, psn, length, value))
            elif 0 < kind < len(self.kind):
                add((time, number, order, kind, what & 0xffffff, index, opcode, psn, length, value))

    # ---- records of several events (the end of src/observe/timeline_file.h) ----------------------------------------------

    def splitters(self):
        return {self.kind['POST_SEND']: self.split_post, self.kind['POST_CALL']: self.split_post,
                self.kind['ACKNOWLEDGED']: self.split_acknowledged, self.kind['POLL_SOME']: self.split_polls}

    def one_packet(self, peer):
        return peer | 1 << 24 | (self.tables['place_first'] | self.tables['place_last']) << 48

    def split_post(self, records, when, record):
        kind, number, index, opcode, psn, length, value = record
        time, source, order = when
        message = self.kind['CALL' if kind == self.kind['POST_CALL'] else 'SEND']
        records.append((*when, self.kind['POST'], number, index, opcode, 0, 0, value))
        records.append((time, source, order + 1, message, number, index, self.messages.get(opcode, 0), psn & 0xffffff,
                        length >> 24 | psn >> 24 << 8, self.one_packet(length & 0xffffff)))

    def split_acknowledged(self, records, when, record):
        _, number, index, opcode, psn, length, value = record
        time, source, order = when
        records.append((*when, self.kind['ARRIVE'], number, psn >> 24, self.tables['acknowledge'], psn & 0xffffff, 0,
                        self.one_packet(length & 0xffffff)))
        records.append((time, source, order + 1, self.kind['COMPLETE'], value & 0xffffff, index, self.tables['cqe_req'],
                        value >> 32 & 0xffffff, length >> 24 | opcode << 8,
                        number | (value >> 24 & 0xff) << 24 | value >> 56 << 48))

    def split_polls(self, records, when, record):
        _, number, count, _, psn, rise, value = record
        time, source, order = when
        rise -= rise >> 31 << 32
        for part in range(max(1, min(count, self.tables['most_polls']))):
            records.append((time, source, order + part, self.kind['POLL'], number, 0, 0, psn + part & 0xffffff, psn & 0xff000000,
                            value + rise * part & (1 << 64) - 1))

    # ---- times -----------------------------------------------------------------------------------------------------------

    def events(self):
        """Returns all events in the order of time and consumes the records."""
        for host in self.hosts.values():
            host.thin_points()
        found = []
        for source in self.sources:
            offset, ticks = source.host.realtime_offset, source.head.clock == self.tables['clock_ticks']
            ns_of = source.host.ns_of if ticks else int
            found += [(signed(ns_of(record[0]) + offset), *record[1:]) for record in source.records]
            source.records = []
        found.sort()
        return found
