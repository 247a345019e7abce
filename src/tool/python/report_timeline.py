# SPDX-License-Identifier: BSD-2-Clause
"""The requests of a trace, for a report: failed requests, bars in lanes, and latencies by kind of request."""
import re
import statistics

from page import duration, escape

LANES, BARS, LEVELS, KINDS, BUCKETS = 40, 600, 6, 64, 40
# Longer than any run, in ns.
LONGEST = 1e18
# Most labels on the axis, and possible steps between them.
LABELS, STEPS = 6, (1, 2, 5, 10)
MEMBER = re.compile(r'"(\w+)":(?:"([^"]*)"|([^",{}\s]+))')


def number(text):
    """Returns the number in a member, or 0 if it is missing or not a time."""
    try:
        value = float(text)
    except (TypeError, ValueError):
        return 0.0
    return value if 0 < value < LONGEST else 0.0


class Request:
    """A request with its times in ns: time of the post, and the delays of completion and poll after it."""

    def __init__(self, members):
        text = {name: string or figure for name, string, figure in reversed(members)}
        self.queue = f'{text.get("cat", "")[len("requests of "):]}, process {number(text.get("pid")):.0f}'
        self.name, self.wr_id, self.status = (text.get(name, '')[:47] for name in ('name', 'wr_id', 'status'))
        self.begin, self.complete, self.poll = (number(text.get(name)) for name in ('ts', 'complete_ns', 'poll_ns'))
        self.begin *= 1e3
        self.bytes = int(number(text.get('bytes')))
        self.failed = self.status not in ('', 'success')
        self.end = self.begin + max(self.poll, self.complete)


def requests_of(file):
    """
    Yields the requests of a trace with one event per line (docs/use/timeline.md). The file is untrusted: only members in the form
    that softhca writes are recognised.
    """
    for line in file:
        if '"ph":"b"' in line and '"complete_ns":' in line and '"posted":false' not in line:
            yield Request(MEMBER.findall(line))


class Failures:
    """The requests that failed. Flushed requests are consequences and are only counted."""

    def __init__(self):
        self.rows, self.flushed = [], 0

    def add(self, request):
        if request.failed and 'flush' in request.status.lower():
            self.flushed += 1
        elif request.failed:
            self.rows.append(request)

    def data(self):
        """Returns the rows for JSON."""
        rows = [{'request': request.name, 'wr_id': request.wr_id, 'queue': request.queue, 'status': request.status,
                 'after_ns': request.complete} for request in self.rows]
        return rows + ([{'flushed': self.flushed}] if self.flushed else [])

    def put(self, section):
        section.table(('request', 'wr_id', 'queue', 'status', 'after'),
                      ([escape(request.name), escape(request.wr_id), escape(request.queue), f'<b class="bad">{escape(request.status)}</b>',
                        duration(request.complete)] for request in self.rows))
        if self.flushed:
            section.table((), [[f'{self.flushed} requests were flushed, which follows from an error of their queue']])


class Lanes:
    """One lane per queue and process, with a bar per request from post to completion."""

    def __init__(self):
        self.lanes, self.bars, self.left_out = {}, [], 0

    def add(self, request):
        if len(self.bars) == BARS or (request.queue not in self.lanes and len(self.lanes) == LANES):
            self.left_out += 1
            return
        self.bars.append(request)
        self.lanes.setdefault(request.queue, []).append(request)

    def put(self, section):
        if not self.bars:
            return
        first, last = min(bar.begin for bar in self.bars), max(bar.end for bar in self.bars)
        scale = 100 / (last - first) if last > first else 0
        left_out = f'; {self.left_out} more are not drawn' if self.left_out else ''
        section.put(f'<p class="soft">{len(self.bars)} requests in {(last - first) / 1e3:.3f} µs{left_out}. <code>ui.perfetto.dev</code> shows all '
                    'of the trace.</p>\n<p class="legend"><span><i></i>from post to completion</span> <span><i class="poll"></i>until polled</span> '
                    f'<span><i class="bad"></i>failed</span></p>\n{self.figure(last - first)}')
        for name, lane in self.lanes.items():
            if section.row():
                self.put_lane(section, name, lane, first, scale)
        section.put('</figure>\n')

    @staticmethod
    def figure(span):
        """Begins the picture, with an axis of round times. Its grid lines are the background of the lanes."""
        if span <= 0:
            return '<figure>\n'
        power = 10 ** max(len(str(int(span))) - 2, 0)
        step = next(step for step in (power * step for step in (*STEPS, 20, 50, 100)) if span / step < LABELS)
        labels = ''.join(f'<u style="left:{100 * at * step / span:.3f}%">{duration(at * step) if at else "0"}</u>'
                         for at in range(int(span // step) + 1) if at * step < 0.85 * span)
        return f'<figure style="--step:{100 * step / span:.3f}%">\n<div class="lane axis"><b></b><span>{labels}</span></div>\n'

    @staticmethod
    def put_lane(section, name, lane, first, scale):
        kinds = dict.fromkeys(f' {bar.name}' + (f' ({bar.status})' if bar.failed else '') for bar in lane)
        section.put(f'<div class="row lane"><b>{escape(name)}<small>{escape("".join(kinds))}</small></b><span>')
        busy_until = [0.0] * LEVELS
        for bar in lane:
            # Overlapping requests of a queue are stacked, up to the number of levels.
            level = 0
            while level < LEVELS - 1 and busy_until[level] > bar.begin:
                level += 1
            busy_until[level] = bar.end
            left = f'left:{(bar.begin - first) * scale:.3f}%'
            if bar.poll > bar.complete:
                section.put(f'<i class="poll" style="{left};width:{bar.poll * scale:.3f}%;top:{level * 7 + 2}px"></i>')
            bad = ' class="bad"' if bar.failed else ''
            polled = f', polled after {bar.poll:.0f} ns' if bar.poll > 0 else ''
            section.put(f'<i{bad} style="{left};width:{bar.complete * scale:.3f}%;top:{level * 7}px" '
                        f'title="{escape(bar.name)} wr_id {escape(bar.wr_id)}, {bar.bytes} bytes: completed after {bar.complete:.0f} ns'
                        f'{polled}, {escape(bar.status)}"></i>')
        section.put('</span></div>\n')


class Latencies:
    """Latencies of requests by opcode and size."""

    def __init__(self):
        self.kinds = {}

    def add(self, request):
        key = request.name, 1 << (request.bytes - 1).bit_length() if request.bytes > 1 else request.bytes
        if key in self.kinds or len(self.kinds) < KINDS:
            self.kinds.setdefault(key, []).append(int(request.complete))

    def data(self):
        """Returns the rows for JSON. The median of an even number of requests is the mean of the two in the middle."""
        return [{'opcode': name, 'bytes_up_to': size, 'requests': len(took), 'least_ns': min(took), 'median_ns': statistics.median(took),
                 'most_ns': max(took)} for (name, size), took in self.kinds.items()]

    def put(self, section):
        section.put('<p class="soft">From post to completion, in nanoseconds.</p>\n')
        section.table(('opcode', 'bytes up to', 'requests', 'least', 'median', 'most', 'powers of two'),
                      ([escape(row['opcode']), *(str(row[name]).removesuffix('.0')
                                                 for name in ('bytes_up_to', 'requests', 'least_ns', 'median_ns', 'most_ns')),
                        self.histogram(took)] for row, took in zip(self.data(), self.kinds.values())))

    @staticmethod
    def histogram(took):
        buckets = [0] * BUCKETS
        for ns in took:
            buckets[min(max(ns.bit_length() - 1, 0), BUCKETS - 1)] += 1
        used = [bucket for bucket, count in enumerate(buckets) if count]
        bars = ''.join(f'<i style="height:{buckets[i] * 100 // max(buckets)}%" title="{1 << i} ns and more: {buckets[i]}"></i>'
                       for i in range(used[0], used[-1] + 1))
        return f'<span class="bars">{bars}</span>'


def add(failures, timeline, latency, file, name):
    """
    Adds the requests of the trace @file to the sections @timeline and @latency, and failed ones to @failures. Returns the rows
    of latencies for JSON.
    """
    lanes, latencies = Lanes(), Latencies()
    for request in requests_of(file):
        for part in failures, lanes, latencies:
            part.add(request)
    for section, part in ((timeline, lanes), (latency, latencies)) if lanes.bars else ():
        section.put(f'<h3>{escape(name)}</h3>\n')
        part.put(section)
    return latencies.data()
