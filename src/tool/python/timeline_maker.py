# SPDX-License-Identifier: BSD-2-Clause
"""
Converts records to a trace. Each queue pair has two tracks, requester and responder; each CQ and SRQ has one. A request is a
separate slice, from post to poll; each of its steps is a short slice on the track where it happens, and arrows connect them.

Records are untrusted: a record that does not match becomes a request without its beginning or its end.
"""
from common import Progress
from timeline_requests import Requests
from timeline_tracks import CQ, REQUESTER, RESPONDER, SRQ, Track, mix

# Events between two checks of the progress line.
EVENTS_OFTEN = 1024
# Bits of the index of a completion in records.
INDEX_MASK = 0xffffff


class Tables:
    """The tables of the library (`softhca data timeline`), prepared for lookup."""

    def __init__(self, data):
        self.data = data
        self.messages = [message['text'] for message in data['messages']]
        self.takes_receive, self.is_response, self.is_answered = (
            {number for number, message in enumerate(data['messages']) if message[what]}
            for what in ('takes_receive', 'is_response', 'is_answered'))
        self.opcode_names = {int(opcode): name for opcode, (name, _) in data['wqe_opcodes'].items()}
        self.umr_names = {data['wc_bind_mw']: 'BIND_MW', data['wc_local_inv']: 'LOCAL_INV'}
        self.opcode_of_message = {0: 0}
        for opcode, (_, message) in sorted((int(opcode), row) for opcode, row in data['wqe_opcodes'].items()):
            self.opcode_of_message.setdefault(message, opcode)
        self.naks = {data['nak_' + name.replace(' ', '_')]: f'NAK: {name}'
                     for name in ('sequence', 'invalid request', 'remote access', 'remote operation')}
        self.requester_states, self.responder_states = data['requester_states'], data['responder_states']
        self.requester = {name: text for name, text in data['requester_activities']}
        self.responder = {name: text for name, text in data['responder_activities']}
        self.receive_cqes = {data[f'cqe_resp_{name}'] for name in ('wr_imm', 'send', 'send_imm', 'send_inv', 'err')}
        self.failed_cqes = {data['cqe_req_err'], data['cqe_resp_err']}

    def message_name(self, message):
        return self.messages[message if message < len(self.messages) else 0]

    def wqe_name(self, opcode):
        return self.opcode_names.get(opcode, 'unknown opcode')

    def request_name(self, request):
        """Returns the name of a request. A UMR has the name of the work request from which the driver built it."""
        return self.umr_names.get(request.wc_opcode) or self.wqe_name(request.opcode)

    def status(self, number):
        return self.data['statuses'][min(number, len(self.data['statuses']) - 1)]

    def answer_name(self, message, syndrome):
        """Returns the name of an answer. AETH syndromes: IBTA 9.7.5.1.2."""
        kind = syndrome & self.data['aeth_kind_mask']
        if message != self.data['acknowledge'] or kind == self.data['aeth_ack']:
            return self.message_name(message)
        if kind == self.data['aeth_rnr_nak']:
            return 'RNR NAK'
        return self.naks.get(syndrome & self.data['aeth_code_mask'], 'NAK')


def psn_distance(a, b):
    return (a - b + 0x800000 & 0xffffff) - 0x800000


def psn_end(psn, packets):
    """Returns the last PSN of @packets that start at @psn."""
    return psn + max(packets, 1) - 1 & 0xffffff


class Maker:
    """Builds a trace from events in the order of time."""

    def __init__(self, tables, sources, trace):
        self.tables, self.sources, self.trace = tables, sources, trace
        self.requests, self.tracks, self.pairs = Requests(sources), {}, {}
        data = tables.data
        self.first, self.last = data['place_first'] << 48, data['place_last'] << 48
        self.unreliable = {data['qpt_uc'], data['qpt_ud']}
        self.acknowledge, self.read_response = data['acknowledge'], data['read_response']
        self.kind_mask, self.rnr_nak, self.nak, self.ack = (data[f'aeth_{name}'] for name in ('kind_mask', 'rnr_nak', 'nak', 'ack'))
        self.state = {name: number for number, (name, _) in enumerate(tables.responder_states)}
        self.shown_states = {number: text for number, (name, text) in enumerate(tables.requester_states) if name in ('DRAINED', 'FLUSH')}
        handlers = {'POST': self.on_post, 'POST_RECEIVE': self.on_post_receive, 'POST_SRQ': self.on_post_srq, 'LOCAL': self.on_local,
                    'CALL': self.on_call, 'SEND': self.on_send, 'SEND_AGAIN': self.on_send_again, 'NO_ROOM': self.on_no_room,
                    'ARRIVE': self.on_arrive, 'ANSWER': self.on_answer, 'TIMEOUT': self.on_timeout, 'STATE': self.on_state,
                    'COMPLETE': self.on_complete, 'POLL': self.on_poll, 'STOP': self.on_stop}
        self.kinds = [name for name, _ in data['kinds']]
        self.handlers = [handlers.get(name) for name in self.kinds]

    def track(self, kind, source, number):
        key = kind, source, number
        track = self.tracks.get(key)
        if not track:
            track = self.tracks[key] = Track(self.trace, kind, self.sources[source].process, number)
        return track

    # ---- messages --------------------------------------------------------------------------------------------------------

    def message_arrow(self, gid, sender, receiver, psn, answer):
        """
        Returns the arrow of packets that begin with @psn. Both ends compute it from the GID of the sending queue pair, if that is
        connected, the numbers of both queue pairs, and the PSN.
        """
        key = gid, sender, receiver
        pair = self.pairs.get(key)
        if pair is None:
            halves = [int.from_bytes(gid[at:at + 8], 'little') for at in (0, 8)] if gid else [0, 0]
            pair = self.pairs[key] = mix(mix(mix(halves[0]) ^ halves[1]) ^ mix(sender << 32 | receiver))
        return pair ^ mix(answer << 32 | psn & 0xffffff)

    def sent_arrow(self, source, number, psn, value, answer):
        row = self.sources[source].rows.get(number)
        return self.message_arrow(row.source if row and row.peer else None, number, value & 0xffffff, psn, answer)

    def arrived_arrow(self, source, number, psn, value, answer):
        row = self.sources[source].rows.get(number)
        # A packet of a connection need not name its sender.
        if row and row.peer:
            return self.message_arrow(row.destination, row.peer, number, psn, answer)
        return self.message_arrow(None, value & 0xffffff, number, psn, answer)

    def is_reliable(self, source, number):
        row = self.sources[source].rows.get(number)
        return not row or row.type not in self.unreliable

    @staticmethod
    def packets(psn, value, length, index):
        return f'"psn":{psn},"packets":{value >> 24 & 0xffffff},"bytes":{length},"peer":{value & 0xffffff},"wqe":{index}'

    def after_request(self, track, psn, value, message, call):
        """Returns the activity of a responder after a request has arrived. @call: it answers before the call returns."""
        names, packets = self.tables.responder, value >> 24 & 0xffffff
        waits = track.activity in (names['WAITING_FOR_PACKET'], names['WAITING_FOR_REPETITION'])
        if waits and not 0 <= psn_distance(track.awaited_psn, psn) < max(packets, 1):
            return track.activity
        if message in self.tables.is_answered and not call:
            track.newest_psn = psn_end(psn, packets)
            return names['ANSWERING']
        if track.activity == names['ANSWERING']:
            return track.activity
        return None if value & self.last or call else names['RECEIVING']

    def arrive(self, track, ns, index, message, psn, length, value, arrow, call=False):
        """Handles the arrival of a request at the responder of @track."""
        track.set_activity(ns, self.after_request(track, psn, value, message, call))
        arrows = []
        if value & self.first:
            takes = message in self.tables.takes_receive
            arrows.append(('t' if takes else 'f', 'message', arrow))
            track.message = arrow if takes else 0
        track.begin(ns, f'arrive: {self.tables.message_name(message)}', self.packets(psn, value, length, index), *arrows)

    # ---- one function for each kind of record ----------------------------------------------------------------------------

    def on_post(self, ns, source, number, index, opcode, psn, length, value):
        request = self.requests.new(source, number, index)
        track = self.track(REQUESTER, source, number)
        request.posted, request.wr_id, request.opcode, request.wc_opcode = ns, value, opcode, length
        track.open.append(request)
        track.begin(ns, f'post: {self.tables.request_name(request)}', f'"wr_id":"0x{value:x}","wqe":{index}', ('s', 'request', request.arrow))

    def on_post_receive(self, ns, source, number, index, opcode, psn, length, value):
        track, request = self.track(RESPONDER, source, number), self.requests.new(source, number, index, receive=True)
        request.posted, request.wr_id, request.bytes = ns, value, length
        track.begin(ns, 'post: RECEIVE', f'"wr_id":"0x{value:x}","bytes":{length}', ('s', 'request', request.arrow))

    def on_post_srq(self, ns, source, number, index, opcode, psn, length, value):
        """Handles a post to an SRQ; the queue pair that will take it is unknown yet."""
        self.track(SRQ, source, number).begin(ns, 'post: RECEIVE', f'"wr_id":"0x{value:x}","bytes":{length}')

    def on_local(self, ns, source, number, index, opcode, psn, length, value):
        request, track = self.requests.at(source, number, index), self.track(REQUESTER, source, number)
        request.executed, request.opcode = ns, opcode
        track.begin(ns, f'execute: {self.tables.request_name(request)}', f'"wqe":{index}', ('t', 'request', request.arrow))

    def on_send(self, ns, source, number, index, message, psn, length, value, call=False, again=False):
        request, track = self.requests.at(source, number, index), self.track(REQUESTER, source, number)
        arrow = self.sent_arrow(source, number, psn, value, False)
        packets = value >> 24 & 0xffffff
        if request.executed is None:
            request.executed, request.psn = ns, psn
            if request.posted is None:
                request.opcode = self.tables.opcode_of_message.get(message, 0)
        if again:
            request.again = True
        else:
            request.packets += packets
            request.bytes += length
        if not call:
            track.newest_psn = psn + packets - 1 & 0xffffff
            track.set_activity(ns, self.after_sending(source, number, message, value, again))
        arrows = [('t', 'request', request.arrow)]
        if value & self.first:
            arrows.append(('s', 'message', arrow))
        track.begin(ns, f'{"send again" if again else "send"}: {self.tables.message_name(message)}',
                    self.packets(psn, value, length, index), *arrows)
        if call:
            self.arrive(self.track(RESPONDER, source, value & 0xffffff), ns + 1, index, message, psn, length, value, arrow, call=True)

    def on_send_again(self, *event):
        self.on_send(*event, again=True)

    def on_call(self, *event):
        self.on_send(*event, call=True)

    def after_sending(self, source, number, message, value, again):
        names, answered = self.tables.requester, message in self.tables.is_answered
        if not value & self.last and not answered:
            return names['SENDING_AGAIN' if again else 'SENDING']
        if not self.is_reliable(source, number):
            return None
        return names['WAITING_FOR_RESPONSE' if answered else 'WAITING_FOR_ACK']

    def on_no_room(self, ns, source, number, *rest):
        self.track(REQUESTER, source, number).set_activity(ns, self.tables.requester['WAITING_FOR_ROOM'])

    def on_arrive(self, ns, source, number, index, message, psn, length, value):
        if message not in self.tables.is_response:
            self.arrive(self.track(RESPONDER, source, number), ns, index, message, psn, length, value,
                        self.arrived_arrow(source, number, psn, value, False))
            return
        track = self.track(REQUESTER, source, number)
        track.set_activity(ns, self.after_answer(track, index, message, psn, value))
        arrows = []
        if message != self.read_response or value & self.first:
            arrows.append(('f', 'message', self.arrived_arrow(source, number, psn, value, True)))
        track.begin(ns, f'arrive: {self.tables.answer_name(message, index & 0xff)}', self.packets(psn, value, length, index), *arrows)

    def after_answer(self, track, syndrome, message, psn, value):
        names, last = self.tables.requester, psn_end(psn, value >> 24 & 0xffffff)
        if message == self.acknowledge:
            kind, last = syndrome & self.kind_mask, psn
            if kind == self.rnr_nak:
                return names['WAITING_FOR_RECEIVE']
            if kind != self.ack:
                return names['SENDING_AGAIN']
        return None if psn_distance(last, track.newest_psn) >= 0 else track.activity

    def on_answer(self, ns, source, number, index, message, psn, length, value):
        track = self.track(RESPONDER, source, number)
        if track.activity == self.tables.responder['ANSWERING']:
            refused = index & self.kind_mask == self.nak
            done = psn_distance(psn_end(psn, value >> 24 & 0xffffff), track.newest_psn) >= 0
            if refused if message == self.acknowledge else done:
                track.set_activity(ns, None)
        arrows = []
        if message != self.read_response or value & self.first:
            arrows.append(('s', 'message', self.sent_arrow(source, number, psn, value, True)))
        track.begin(ns, f'answer: {self.tables.answer_name(message, index & 0xff)}', self.packets(psn, value, length, index), *arrows)

    def on_stop(self, ns, source, number, followed, stopped, psn, rule, value):
        """Handles a request that left the usual order of states of the responder."""
        track, states = self.track(RESPONDER, source, number), self.tables.responder_states
        if stopped >= len(states) or followed >= len(states):
            return
        if followed != self.state['DUPLICATE']:
            track.awaited_psn = psn
            activity = None
            if followed == self.state['DONE'] and self.is_reliable(source, number):
                waiting = {self.state['CHECK_PSN']: 'WAITING_FOR_PACKET', self.state['CHECK_RECEIVE']: 'WAITING_FOR_REPETITION'}
                activity = self.tables.responder.get(waiting.get(stopped))
            track.set_activity(ns, activity)
        track.begin(ns, f'{states[stopped][1]}: {states[followed][1]}', f'"expected_psn":{psn},"peer":{value & 0xffffff},"rule":{rule}')

    def on_timeout(self, ns, source, number, index, opcode, psn, *rest):
        track = self.track(REQUESTER, source, number)
        track.set_activity(ns, self.tables.requester['SENDING_AGAIN'])
        track.begin(ns, 'timeout', f'"psn":{psn}')

    def on_state(self, ns, source, number, index, state, *rest):
        self.track(REQUESTER, source, number).set_activity(ns, self.shown_states.get(state))

    @staticmethod
    def cq_of(number, device):
        """Makes CQ numbers, which each device assigns independently, unique for up to 16 devices."""
        return number ^ (device & 0xf) << 20

    def on_complete(self, ns, source, cq, index, opcode, producer, length, value):
        number, device = value & 0xffffff, value >> 48 & 0xff
        receive, failed = opcode in self.tables.receive_cqes, opcode in self.tables.failed_cqes
        message, wqe, cq = 0, value >> 24 & 0xff, self.cq_of(cq, device)
        if receive:
            responder = self.track(RESPONDER, source, number)
            message, responder.message = responder.message, 0
        request = self.requests.at(source, number, index, receive)
        if receive:
            request.completed, request.bytes = ns, length
        else:
            request.opcode = wqe
            self.requests.complete_up_to(self.track(REQUESTER, source, number), request, ns)
        self.requests.completed(request, (source, cq, producer & INDEX_MASK))
        arrows = [('f', 'request', request.arrow)]
        if message:
            arrows.append(('f', 'message', message))
        last = f'"syndrome":{value >> 32 & 0xff}' if failed else f'"device":{device}'
        self.track(CQ, source, cq).begin(
            ns, f'{"error" if failed else "completion"}: {"RECEIVE" if receive else self.tables.request_name(request)}',
            f'"qp":{number},"wqe":{index},"bytes":{length},"wr_id":"0x{request.wr_id:x}",{last}', *arrows)

    def on_poll(self, ns, source, cq, index, status, consumer, length, wr_id):
        cq = self.cq_of(cq, length >> 24)
        self.track(CQ, source, cq).begin(ns, 'poll', f'"wr_id":"0x{wr_id:x}","status":"{self.tables.status(status)}"')
        self.requests.polled((source, cq, consumer & INDEX_MASK), ns, status, wr_id)

    # ---- all of it -------------------------------------------------------------------------------------------------------

    def put_processes(self):
        for source in self.sources:
            self.trace.named(source.process, 0, 'process_name', f'"name":"{source.program} on {source.host_name}"')
            if source.lost:
                self.trace.named(source.process, 0, 'process_labels', f'"labels":"{source.lost} older records are lost"')

    def put_events(self, events):
        """Writes all @events. Returns the time of the last."""
        progress = Progress('making the timeline', self.trace.out)
        end = events[-1][0] if events else 0
        # The times of one process differ, so that its slices have an order.
        latest = [-1 << 63] * len(self.sources)
        for place, (ns, source, _, kind, *event) in enumerate(events):
            if ns <= latest[source]:
                ns = latest[source] + 1
            # A message handled within a call arrives one ns later.
            latest[source] = ns + (self.kinds[kind] == 'CALL')
            if self.handlers[kind]:
                self.handlers[kind](ns, source, *event)
            end = max(end, ns)
            if place % EVENTS_OFTEN == 0:
                progress.tell(place, len(events))
        progress.end()
        return end


def base_of(events):
    """Returns the base of the times of @events: the full second before the first."""
    return events[0][0] // 1_000_000_000 * 1_000_000_000 if events else 0


def write(data, sources, events, trace):
    """Writes the @events of @sources, which are in order."""
    tables = Tables(data)
    maker = Maker(tables, sources, trace)
    maker.put_processes()
    end = maker.put_events(events)
    for track in maker.tracks.values():
        track.put_slice(end)
        track.set_activity(end, None)
    maker.requests.put(trace, sources, tables, end)
