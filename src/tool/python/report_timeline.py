# SPDX-License-Identifier: BSD-2-Clause
"""The requests of a trace, for a report: bars in lanes, and how long requests of each kind took."""
import re

from page import escape

LANES, BARS, LEVELS, KINDS, BUCKETS = 40, 600, 6, 64, 40
# Longer than any run, in ns.
LONGEST = 1e18
MEMBER = re.compile(r'"(\w+)":(?:"([^"]*)"|([^",{}\s]+))')


def number(text):
    """The figure of a member, or 0 if it is not there, or not one of a time."""
    try:
        value = float(text)
    except (TypeError, ValueError):
        return 0.0
    return value if 0 < value < LONGEST else 0.0


class Bar:
    def __init__(self, members):
        text = {name: string or figure for name, string, figure in reversed(members)}
        self.queue, self.process = text.get('cat', '')[len('requests of '):], number(text.get('pid'))
        self.name, self.wr_id, self.status = (text.get(name, '')[:47] for name in ('name', 'wr_id', 'status'))
        self.begin, self.complete, self.poll = (number(text.get(name)) for name in ('ts', 'complete_ns', 'poll_ns'))
        self.begin *= 1e3
        self.bytes = int(number(text.get('bytes')))
        self.failed = self.status not in ('', 'success')
        self.end = self.begin + max(self.poll, self.complete)


def requests_of(file):
    """
    The requests of a trace, whose lines are one event each (docs/timeline.md). The file may be anything: nothing but members of the form
    that softhca writes is looked for.
    """
    for line in file:
        if '"ph":"b"' in line and '"complete_ns":' in line and '"posted":false' not in line:
            yield Bar(MEMBER.findall(line))


class Lanes:
    """A lane for each queue of each process, in it a bar for each request from its post to its completion."""

    def __init__(self):
        self.lanes, self.bars, self.left_out = {}, 0, 0

    def add(self, bar):
        name = f'{bar.queue}, process {bar.process:.0f}'
        if self.bars == BARS or (name not in self.lanes and len(self.lanes) == LANES):
            self.left_out += 1
            return
        self.bars += 1
        self.lanes.setdefault(name, []).append(bar)

    def put(self, section):
        bars = [bar for lane in self.lanes.values() for bar in lane]
        if not bars:
            return
        first, last = min(bar.begin for bar in bars), max(bar.end for bar in bars)
        section.put(f'<p class="soft">{len(bars)} requests in {(last - first) / 1e3:.3f} µs, from post to completion, thin until polled')
        if self.left_out:
            section.put(f'; {self.left_out} more are not drawn')
        section.put('. <code>ui.perfetto.dev</code> shows all of the trace.</p>\n<figure>\n')
        for name, lane in self.lanes.items():
            if section.row():
                self.put_lane(section, name, lane, first, 100 / (last - first) if last > first else 0)
        section.put('</figure>\n')

    @staticmethod
    def put_lane(section, name, lane, first, scale):
        kinds = dict.fromkeys(f' {bar.name}' + (f' ({bar.status})' if bar.failed else '') for bar in lane)
        section.put(f'<div class="row lane"><b>{escape(name)}<small>{escape("".join(kinds))}</small></b><span>')
        busy_until = [0.0] * LEVELS
        for bar in lane:
            # Requests of a queue that overlap are below each other, as far as there are levels.
            level = 0
            while level < LEVELS - 1 and busy_until[level] > bar.begin:
                level += 1
            busy_until[level] = bar.end
            left = f'left:{(bar.begin - first) * scale:.3f}%'
            if bar.poll > bar.complete:
                section.put(f'<i class="poll" style="{left};width:{bar.poll * scale:.3f}%;top:{level * 7 + 2}px"></i>')
            polled = f', polled after {bar.poll:.0f} ns' if bar.poll > 0 else ''
            section.put(f'<i{" class=" + chr(34) + "bad" + chr(34) if bar.failed else ""} style="{left};width:{bar.complete * scale:.3f}%;top:{level * 7}px" '
                        f'title="{escape(bar.name)} wr_id {escape(bar.wr_id)}, {bar.bytes} bytes: completed after {bar.complete:.0f} ns'
                        f'{polled}, {escape(bar.status)}"></i>')
        section.put('</span></div>\n')


class Latencies:
    """How long requests took, by opcode and size."""

    def __init__(self):
        self.kinds = {}

    def add(self, bar):
        key = bar.name, 1 << (bar.bytes - 1).bit_length() if bar.bytes > 1 else bar.bytes
        if key in self.kinds or len(self.kinds) < KINDS:
            self.kinds.setdefault(key, []).append(int(bar.complete))

    def put(self, section):
        section.put('<p class="soft">From post to completion, in nanoseconds.</p>\n<table><tr><th>opcode<th>bytes up to<th>requests<th>least'
                    '<th>median<th>most<th>powers of two</tr>\n')
        for (name, size), took in self.kinds.items():
            if not section.row():
                continue
            buckets = [0] * BUCKETS
            for ns in took:
                buckets[min(max(ns.bit_length() - 1, 0), BUCKETS - 1)] += 1
            used = [bucket for bucket, count in enumerate(buckets) if count]
            seen, median = 0, 0
            for median, count in enumerate(buckets):
                seen += count
                if seen * 2 >= len(took):
                    break
            bars = ''.join(f'<i style="height:{buckets[i] * 100 // max(buckets)}%" title="{1 << i} ns and more: {buckets[i]}"></i>'
                           for i in range(used[0], used[-1] + 1))
            section.put(f'<tr class="row"><td>{escape(name)}</td><td>{size}</td><td>{len(took)}</td><td>{min(took)}</td>'
                        f'<td>{1 << median}…{2 << median}</td><td>{max(took)}</td><td><span class="bars">{bars}</span></td></tr>\n')
        section.put('</table>\n')


def add(timeline, latency, file, name):
    """Puts the requests of the trace @file into the section @timeline, how long they took into @latency."""
    lanes, latencies = Lanes(), Latencies()
    for bar in requests_of(file):
        lanes.add(bar)
        latencies.add(bar)
    for section, part in (timeline, lanes), (latency, latencies):
        section.put(f'<h3>{escape(name)}</h3>\n')
        part.put(section)
