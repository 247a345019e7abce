# SPDX-License-Identifier: BSD-2-Clause
"""The requests of a trace, from their posts to their polls."""
from timeline_tracks import MASK, REQUESTER, RESPONDER, mix

# Clocks of two CPUs differ by less; a poll that precedes a completion by more belongs to another one.
EARLY_NS = 1_000_000


class Request:
    """A request or a receive. Times are None until they are known."""
    __slots__ = ('source', 'qpn', 'index', 'receive', 'arrow', 'posted', 'executed', 'completed', 'polled', 'wr_id', 'opcode', 'wc_opcode',
                 'psn', 'packets', 'bytes', 'again', 'status')

    def __init__(self, source, qpn, index, receive, arrow):
        self.source, self.qpn, self.index, self.receive, self.arrow = source, qpn, index, receive, arrow
        self.posted = self.executed = self.completed = self.polled = None
        self.wr_id = self.opcode = self.wc_opcode = self.psn = self.packets = self.bytes = self.status = 0
        self.again = False

    def set_polled(self, ns, status, wr_id):
        self.polled, self.status, self.wr_id = ns, status, wr_id


class Requests:
    """All requests, in the order of their first appearance."""

    def __init__(self, sources):
        self.all, self.newest = [], {}
        self.seeds = [mix(source.head.started ^ source.process << 32 & MASK) for source in sources]
        self.completions, self.early = {}, {}  # by (source, CQ, index in the CQ)

    def new(self, source, qpn, index, receive=False):
        """Adds an empty request, which replaces an earlier one with the same @index."""
        request = Request(source, qpn, index, receive, mix(self.seeds[source] + len(self.all)))
        self.all.append(request)
        self.newest[source, qpn, index, receive] = request
        return request

    def at(self, source, qpn, index, receive=False):
        """Returns the newest incomplete request with @index, or a new one, since programs may fill rings directly."""
        request = self.newest.get((source, qpn, index, receive))
        return request if request and request.completed is None else self.new(source, qpn, index, receive)

    def complete_up_to(self, track, last, ns):
        """Completes @last and all requests posted to the queue of @track before it."""
        last.completed = ns
        if last.posted is None:
            return
        while track.open:
            request = track.open.popleft()
            if request is last:
                return
            if request.completed is None:
                request.completed = ns

    def completed(self, request, key):
        """Assigns the completion @key to @request. If its poll was already seen, it counts as polled at its completion."""
        self.completions[key] = request
        early = self.early.pop(key, None)
        if early and 0 <= request.completed - early[0] < EARLY_NS:
            request.set_polled(request.completed, *early[1:])

    def polled(self, key, ns, status, wr_id):
        """Handles the poll of completion @key. A poll without a known completion is kept."""
        request = self.completions.get(key)
        if request and request.polled is None:
            request.set_polled(ns, status, wr_id)
        else:
            self.early[key] = ns, status, wr_id

    def put(self, trace, sources, tables, end):
        """Writes the slice of each request, from its first to its last step; incomplete requests last to the @end."""
        for request in self.all:
            steps = [step for step in (request.posted, request.executed, request.completed, request.polled) if step is not None]
            if not steps:
                continue
            first = steps[0]
            name = 'RECEIVE' if request.receive else tables.request_name(request)
            process = sources[request.source].process
            track = (RESPONDER if request.receive else REQUESTER) << 24 | request.qpn
            where = f'"name":"{name}","cat":"requests of QP 0x{request.qpn:x}","id":"0x{request.arrow:x}"'
            members = [f'"wr_id":"0x{request.wr_id:x}","qp":{request.qpn},"wqe":{request.index}']
            if request.executed is not None and request.packets:
                members.append(f'"psn":{request.psn},"packets":{request.packets}')
            members.append(f'"bytes":{request.bytes}')
            if request.again:
                members.append('"sent_again":true')
            members.append('"posted":false' if request.posted is None else '"posted":true')
            for step, ns in ('execute', request.executed), ('complete', request.completed), ('poll', request.polled):
                if ns is not None:
                    members.append(f'"{step}_ns":{ns - first}')
            if request.polled is not None:
                members.append(f'"status":"{tables.status(request.status)}"')
            trace.event(first, process, f',"tid":{track},"ph":"b",{where},"args":{{{",".join(members)}}}')
            trace.event(end if request.completed is None else steps[-1], process, f',"tid":{track},"ph":"e",{where}')
