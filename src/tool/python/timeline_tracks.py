# SPDX-License-Identifier: BSD-2-Clause
"""
Writes the JSON trace event format: one event per line, beginning with its time and its process, so that traces can be merged
line by line. Times are microseconds after a base of whole seconds that the first line names.
"""
import collections

TRACE_BEGIN = '{"displayTimeUnit":"ns","otherData":{"made by":"softhca timeline","base_ns":"'
TRACE_BEGUN = '"},"traceEvents":['
TRACE_END = ']}'
# Length of an event, unless another one begins earlier on its track.
EVENT_NS = 100
REQUESTER, RESPONDER, CQ, SRQ = range(4)
TRACK_NAMES = ('QP 0x{:x}, requester', 'QP 0x{:x}, responder', 'CQ {}', 'SRQ {}')
MASK = (1 << 64) - 1


def mix(value):
    """Returns a number for an arrow (splitmix64)."""
    value = value + 0x9e3779b97f4a7c15 & MASK
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9 & MASK
    value = (value ^ value >> 27) * 0x94d049bb133111eb & MASK
    return value ^ value >> 31


def us(ns):
    """Formats microseconds with three decimals; a double cannot hold ns since 1970."""
    return f'{ns // 1000}.{ns % 1000:03}' if ns >= 0 else f'-{-ns // 1000}.{-ns % 1000:03}'


class Trace:
    """Writes a trace to @out. Callers pass the rest of an event's line, after its process."""

    def __init__(self, out, base_ns):
        self.out, self.base_ns, self.separator = out, base_ns, ''
        out.write(f'{TRACE_BEGIN}{base_ns}{TRACE_BEGUN}\n')

    def event(self, ns, process, rest):
        self.out.write(f'{self.separator}{{"ts":{us(ns - self.base_ns)},"pid":{process}{rest}}}')
        self.separator = ',\n'

    def named(self, process, track, what, members):
        """Writes a metadata event."""
        self.event(self.base_ns, process, f',"tid":{track},"ph":"M","name":"{what}","args":{{{members}}}')

    def end(self):
        self.out.write(f'\n{TRACE_END}\n')


class Track:
    """A requester, a responder, a CQ or an SRQ: slices that follow each other, activities around them, arrows."""

    def __init__(self, trace, kind, process, number):
        self.trace, self.process = trace, process
        self.id = kind << 24 | number
        self.slice = None  # the one that was begun last and is not written yet: [ns, name, members of args, arrows]
        self.activity = None
        self.newest_psn = self.awaited_psn = 0  # of the requests sent or to be answered; of the packet that a responder waits for
        self.message = 0                        # arrow of the message that arrived last
        self.open = collections.deque()         # requests that are not completed
        trace.named(process, self.id, 'thread_name', f'"name":"{TRACK_NAMES[kind].format(number)}"')
        trace.named(process, self.id, 'thread_sort_index', f'"sort_index":{number * 4 + kind}')

    def put_slice(self, ns):
        """Writes the current slice, which ends at @ns, at most EVENT_NS long."""
        if not self.slice:
            return
        (begin, name, members, arrows), self.slice = self.slice, None
        event, where = self.trace.event, f',"tid":{self.id},"ph":"'
        length = ns - begin if 0 < ns - begin < EVENT_NS else EVENT_NS
        arguments = f',"args":{{{members}}}' if members else ''
        event(begin, self.process, f'{where}X","name":"{name}","dur":{us(length)}{arguments}')
        for phase, kind, number in arrows:
            binding = '' if phase == 's' else ',"bp":"e"'
            event(begin, self.process, f'{where}{phase}","name":"{kind}","cat":"{kind}","id":"0x{number:x}"{binding}')

    def begin(self, ns, name, members, *arrows):
        """Begins a slice. An arrow (phase, name, number) begins (s), passes (t) or ends (f) in it."""
        self.put_slice(ns)
        self.slice = ns, name, members, arrows

    def set_activity(self, ns, activity):
        """Changes the activity of a requester or responder at @ns; None: idle."""
        if self.activity == activity:
            return
        self.put_slice(ns)
        for phase, name in ('E', self.activity), ('B', activity):
            if name:
                self.trace.event(ns, self.process, f',"tid":{self.id},"ph":"{phase}","name":"{name}"')
        self.activity = activity
