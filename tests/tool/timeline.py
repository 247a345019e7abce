#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""softhca run --timeline and softhca timeline: the traces of programs are parsed according to the trace event
format, and compared with the actions of the programs."""
import collections
import json
import os
import pty
import random
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

from harness import TOOL, clean_environment, main, softhca

PING_PONG = os.path.abspath(sys.argv[3])
PAIR = shutil.which('ibv_rc_pingpong')
PATIENCE = 30


class Trace:
    """A trace, parsed as by a viewer."""

    def __init__(self, path):
        with open(path, encoding='ascii') as file:
            self.text = file.read()
        document = json.loads(self.text)
        self.base_ns = int(document['otherData']['base_ns'])
        self.events = document['traceEvents']
        self.names = {(e['pid'], e['tid']): e['args']['name'] for e in self.events
                      if e['ph'] == 'M' and e['name'] == 'thread_name'}

    def of(self, phase, name=None):
        return [e for e in self.events if e['ph'] == phase and name in (None, e['name'])]

    def requests(self, name=None):
        return self.of('b', name)

    def ns(self, event):
        """Integers, because floating point is too imprecise for the comparisons."""
        return round(event['ts'] * 1000)

    def flows(self, name):
        found = collections.defaultdict(list)
        for event in self.events:
            if event['ph'] in 'stf' and event['name'] == name:
                found[event['id']].append(event)
        return {key: sorted(events, key=self.ns) for key, events in found.items()}

    def check(self, test):
        """Properties of every trace: Trace Event Format, "Duration Events", "Complete Events", "Flow Events"."""
        tracks = collections.defaultdict(list)
        for place, event in enumerate(self.events):
            test.assertIn(event['ph'], 'MXBEbestf', event)
            for member in ('ts', 'pid', 'tid', 'name'):
                test.assertIn(member, event)
            if event['ph'] == 'M':
                continue
            if event['ph'] in 'XBE':
                test.assertIn((event['pid'], event['tid']), self.names)
            if event['ph'] in 'XBEstf':
                tracks[event['pid'], event['tid']].append((self.ns(event), place, event))
        for track in tracks.values():
            self.check_track(test, sorted(track, key=lambda entry: entry[:2]))
        for flow in [*self.flows('request').values(), *self.flows('message').values()]:
            for event in flow:
                test.assertTrue(event['ph'] == 's' or event.get('bp') == 'e', event)
        begun = collections.Counter((e['cat'], e['id']) for e in self.of('b'))
        test.assertEqual(begun, collections.Counter((e['cat'], e['id']) for e in self.of('e')))
        test.assertFalse([key for key, count in begun.items() if count != 1])

    def check_track(self, test, track):
        """Slices of a track nest, and each arrow begins and ends in one."""
        stack = []
        for ns, _, event in track:
            while stack and stack[-1][0] is not None and stack[-1][0] <= ns:
                stack.pop()
            if event['ph'] == 'X':
                end = ns + round(event['dur'] * 1000)
                test.assertGreater(end, ns, event)
                test.assertFalse(stack and stack[-1][0] is not None and stack[-1][0] < end, (event, stack))
                stack.append((end, event['name']))
            elif event['ph'] == 'B':
                test.assertFalse(stack, (event, stack))
                stack.append((None, event['name']))
            elif event['ph'] == 'E':
                test.assertTrue(stack and stack[-1] == (None, event['name']), (event, stack))
                stack.pop()
            else:
                test.assertTrue(stack and stack[-1][0] is not None, event)
        test.assertFalse([entry for entry in stack if entry[0] is None])

    def check_order(self, test, requests):
        """post <= execution <= completion <= poll; all times are after the first."""
        for request in requests:
            args = request['args']
            test.assertTrue(args['posted'], request)
            steps = [0, *(args[name] for name in ('execute_ns', 'complete_ns', 'poll_ns') if name in args)]
            test.assertEqual(steps, sorted(steps), request)


def end(process):
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        pass


def phases(flow):
    return ''.join(event['ph'] for event in flow)


class Timeline(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.directory)
        self.path = f'{self.directory}/trace.json'

    def left(self):
        return sorted(name for name in os.listdir(self.directory) if name.endswith('.records'))

    def records(self):
        return [f'{self.directory}/{name}' for name in self.left()]

    def run_ping_pong(self, rounds, *options, env=None):
        done = softhca('run', '--no-presence', '--timeline', self.path, *options, '--', PING_PONG, str(rounds), env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.left(), [])
        trace = Trace(self.path)
        trace.check(self)
        return trace, done

    def check_ping_pong(self, trace, rounds):
        """Each round is two messages, each with its receive; at each end one receive is left."""
        sends, receives = trace.requests('SEND'), trace.requests('RECEIVE')
        self.assertEqual(len(sends), 2 * rounds)
        self.assertIn(len(receives) - len(sends), (0, 1, 2))
        trace.check_order(self, sends + receives)
        for request in sends:
            for step in ('execute_ns', 'complete_ns', 'poll_ns'):
                self.assertIn(step, request['args'])
            self.assertEqual(request['args']['status'], 'success')
            self.assertEqual((request['args']['bytes'], request['args']['packets']), (64, 1))
        self.assertEqual(len([r for r in receives if 'poll_ns' in r['args']]), 2 * rounds)
        self.check_arrows(trace, 2 * rounds)

    def check_arrows(self, trace, messages):
        """Arrows lead from each post to its completion; from each SEND to its arrival, and to the completion of the
        receive."""
        paths = collections.Counter(re.sub('t+', 't', phases(flow)) for flow in trace.flows('request').values())
        self.assertEqual(paths['stf'], messages)        # of requests
        self.assertEqual(paths['sf'], messages)         # of receives
        # Retransmitted messages begin, and arrive, more often.
        whole = [flow for flow in trace.flows('message').values() if re.match('s+t+f', phases(flow))]
        self.assertEqual(len(whole), messages)
        for flow in whole:
            sent, arrived, completed = (next(e for e in flow if e['ph'] == phase) for phase in 'stf')
            self.assertRegex(trace.names[sent['pid'], sent['tid']], 'requester$')
            self.assertRegex(trace.names[arrived['pid'], arrived['tid']], 'responder$')
            self.assertRegex(trace.names[completed['pid'], completed['tid']], '^CQ')
            self.assertEqual(arrived['pid'], completed['pid'])

    def test_a_process(self):
        trace, done = self.run_ping_pong(100)
        self.check_ping_pong(trace, 100)
        self.assertEqual(done.stderr, '')
        self.assertEqual(len(set(trace.names.values())), 6, trace.names)   # two of each QP, two CQs
        now = time.time_ns()
        self.assertTrue(now - 60 * 10**9 < trace.base_ns <= now)
        self.assertTrue(all(0 <= event['ts'] < 60e6 for event in trace.events))

    def test_links(self):
        for link in ('shm', 'udp'):
            trace, _ = self.run_ping_pong(100, '--link', link)
            self.check_ping_pong(trace, 100)
            self.assertIn('arrive: acknowledgement', {e['name'] for e in trace.of('X')})
            self.assertTrue(trace.of('B', 'waiting for an acknowledgement'))

    def test_lost_packets(self):
        """Retransmissions are marked, and still complete."""
        trace, done = self.run_ping_pong(25, '--link', 'udp', '--faults', 'drop 5%; seed 7', '--counters', 'stderr')
        again = trace.of('X', 'send again: SEND')
        counted = [int(line.split()[1]) for line in done.stderr.splitlines() if line.split()[:1] == ['packets_resent']]
        self.assertEqual(sum(e['args']['packets'] for e in again), sum(counted))
        self.assertTrue(again)
        marked = [r for r in trace.requests('SEND') if r['args'].get('sent_again')]
        self.assertTrue(0 < len(marked) <= len(again))
        self.assertTrue(trace.of('B', 'sending again'))
        self.check_ping_pong(trace, 25)

    def responder_slices(self, trace, phase):
        return collections.Counter(e['name'] for e in trace.of(phase) if trace.names[e['pid'], e['tid']].endswith('responder'))

    def run_example(self, name, *options, status=0, arguments=()):
        done = softhca('run', '--no-presence', '--timeline', self.path, *options, '--', os.path.join(os.path.dirname(PING_PONG), name),
                       *arguments)
        self.assertEqual(done.returncode, status, done.stderr)
        trace = Trace(self.path)
        trace.check(self)
        return trace

    def test_responder(self):
        """The states of the responder: the tutorial is a WRITE of two packets and a READ."""
        for _ in range(5):
            # On a slow machine a timeout may repeat a request.
            trace = self.run_example('tutorial', '--link', 'udp')
            if self.responder_slices(trace, 'B')['receiving'] == 1:
                break
        self.assertEqual(self.responder_slices(trace, 'B'), {'receiving': 1, 'answering': 1})
        self.assertFalse([name for name in self.responder_slices(trace, 'X') if name.startswith('check')])
        # IBTA 9.7.5.2.8: packets after a lost one are not accepted.
        trace = self.run_example('tutorial', '--link', 'udp', '--faults', 'of write drop 1')
        self.assertIn('check of the PSN: done', self.responder_slices(trace, 'X'))
        begun = self.responder_slices(trace, 'B')
        self.assertEqual((begun['waiting for a missing packet'], begun['answering']), (1, 1))

    def test_responder_does_not_go_straight_on(self):
        """Each repetition, each request without a receive, and the WRITE through a revoked window."""
        trace, done = self.run_ping_pong(100, '--link', 'udp', '--faults', 'of send duplicate 20%; seed 7', '--counters', 'stderr')
        counted = [int(line.split()[1]) for line in done.stderr.splitlines() if line.split()[:1] == ['duplicate_requests']]
        self.assertEqual(self.responder_slices(trace, 'X')['check of the PSN: duplicate'], sum(counted))
        self.assertTrue(sum(counted))
        for link in ('auto', 'udp'):
            trace, _ = self.run_ping_pong(20, '--link', link, '--faults', 'rnr 10%; seed 7')
            naks = self.responder_slices(trace, 'X')['answer: RNR NAK']
            self.assertTrue(naks)
            self.assertEqual(self.responder_slices(trace, 'X')['check of the receive: done'], naks)
            self.assertEqual(self.responder_slices(trace, 'B')['waiting for a repetition (RNR)'], naks)
        trace = self.run_example('lent_window')
        refused = trace.of('X', 'check of the target: refuse')
        self.assertEqual([e['args']['rule'] for e in refused], [2])

    def test_changes_of_keys(self):
        """ibv_post_send(3), mlx5dv_wr_post(3): a request is executed, then complete, then polled, and has the name
        of its work request."""
        with open(f'{self.directory}/records', 'wb') as file:
            file.write(b'x' * 4096)
        for program, names, arguments in ('lent_window', ('BIND_MW', 'LOCAL_INV'), ()), ('scattered_records', ('UMR',), (file.name,)):
            for link in 'auto', 'udp':
                trace = self.run_example(program, '--link', link, arguments=arguments)
                for name in names:
                    with self.subTest(program, link=link, name=name):
                        [request] = trace.requests(name)
                        trace.check_order(self, [request])
                        args = request['args']
                        self.assertLess(0, args['execute_ns'])
                        self.assertIn('poll_ns', args)
                        paths = [phases(flow) for flow in trace.flows('request').values()
                                 if f'execute: {name}' in self.slices_of(trace, flow)]
                        self.assertEqual(paths, ['stf'])
                        for slice_ in f'post: {name}', f'execute: {name}', f'completion: {name}':
                            self.assertEqual(len(trace.of('X', slice_)), 1, slice_)

    def test_request_that_fails_at_its_start(self):
        """It completes when the error is found rather than at its post."""
        with open(f'{self.directory}/records', 'wb') as file:
            file.write(b'x' * 6400)
        trace = self.run_example('scattered_records', '--explain', 'off', arguments=('--out-of-range', file.name))
        [failed] = [request for request in trace.requests() if request['args']['status'] == 'local protection error']
        self.assertGreater(failed['args']['complete_ns'], 1)

    @staticmethod
    def slices_of(trace, flow):
        """Returns the names of the slices that the arrows of @flow touch."""
        return {slice_['name'] for event in flow for slice_ in trace.of('X')
                if (slice_['pid'], slice_['tid'], slice_['ts']) == (event['pid'], event['tid'], event['ts'])}

    def test_too_many_records(self):
        trace, done = self.run_ping_pong(2000, '--timeline-records', '1024')
        self.assertRegex(done.stderr, r'^softhca: timeline: the oldest \d+ records of process \d+ \(.*\) are lost')
        self.assertRegex(trace.of('M', 'process_labels')[0]['args']['labels'], r'^\d+ older records are lost$')
        # At most 1023 records, five for each request.
        self.assertTrue(10 < len(trace.requests('SEND')) < 400)

    def start(self, *command):
        return subprocess.Popen([TOOL, 'run', '--no-presence', '--timeline', self.path, '--timeline-records', '8192', '--', *command],
                                env=clean_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def child_of(self, process):
        """Returns the child of the process once it records."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            with open(f'/proc/{process.pid}/task/{process.pid}/children', encoding='ascii') as file:
                children = file.read().split()
            if children and self.left():
                time.sleep(0.2)
                return int(children[0])
            time.sleep(0.01)
        self.fail('the program does not run')

    def test_killed(self):
        """The program is killed, and its records are there; then softhca run is killed, and the records are there."""
        running = self.start(PING_PONG, '100000000')
        os.kill(self.child_of(running), signal.SIGKILL)
        running.communicate(timeout=PATIENCE)
        self.assertEqual(running.returncode, -signal.SIGKILL)
        trace = Trace(self.path)
        trace.check(self)
        self.assertGreater(len(trace.requests('SEND')), 100)
        self.assertEqual(self.left(), [])

        running = self.start(PING_PONG, '100000000')
        child = self.child_of(running)
        self.addCleanup(end, child)
        running.kill()
        running.wait(PATIENCE)
        running.stderr.close()
        # Running programs are read as well.
        for _ in range(2):
            with open(self.path, 'w', encoding='ascii') as file:
                self.assertEqual(softhca('timeline', *self.records(), stdout=file).returncode, 0)
            trace = Trace(self.path)
            trace.check(self)
            self.assertGreater(len(trace.requests('SEND')), 100)
            end(child)

    def test_exit_status(self):
        for code in (0, 3):
            self.assertEqual(softhca('run', '--timeline', self.path, '--', 'sh', '-c', f'exit {code}').returncode, code)
            self.assertEqual(json.load(open(self.path, encoding='ascii'))['traceEvents'], [])
        done = softhca('run', '--timeline', f'{self.directory}/none/trace.json', '--', 'true')
        self.assertEqual((done.returncode, 'none/trace.json' in done.stderr), (1, True))
        self.assertEqual(softhca('timeline').returncode, 2)

    def test_signals_reach_the_program(self):
        running = self.start('sh', '-c', f'trap "exit 7" TERM; touch {self.directory}/x.records; while :; do sleep 0.05; done')
        self.child_of(running)
        running.terminate()
        running.communicate(timeout=PATIENCE)
        self.assertEqual(running.returncode, 7)

    def test_processes_of_a_run(self):
        """A script that starts two programs, one of which is another softhca run: one trace of both."""
        script = f'{PING_PONG} 10 && {TOOL} run --no-presence -- {PING_PONG} 20'
        done = softhca('run', '--no-presence', '--timeline', self.path, '--', 'sh', '-c', script)
        self.assertEqual((done.returncode, done.stderr), (0, ''))
        trace = Trace(self.path)
        trace.check(self)
        counts = collections.Counter(r['pid'] for r in trace.requests('SEND'))
        self.assertEqual(sorted(counts.values()), [20, 40])

    @unittest.skipUnless(PAIR, 'ibv_rc_pingpong is not installed')
    def test_two_traces_become_one(self):
        """Each process has a trace; merged, their arrows meet for any process numbers and time bases."""
        for link in ('auto', 'udp'):
            with self.subTest(link):
                self.two_traces(link)

    def two_traces(self, link):
        rounds = 50
        port = str(random.randrange(20000, 30000))
        common = ['-d', 'mlx5_0', '-g', '0', '-n', str(rounds), '-p', port]
        paths = [f'{self.directory}/{name}.json' for name in ('server', 'client')]
        env = clean_environment(SOFTHCA_GIDS='loopback', SOFTHCA_LINK=link)
        server = subprocess.Popen([TOOL, 'run', '--no-presence', '--timeline', paths[0], '--', PAIR, *common], env=env,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + PATIENCE
        while True:
            client = subprocess.run([TOOL, 'run', '--no-presence', '--timeline', paths[1], '--', PAIR, *common, '127.0.0.1'],
                                    env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=PATIENCE,
                                    check=False)
            if client.returncode == 0 or time.monotonic() > deadline or server.poll() is not None:
                break
        self.assertEqual(client.returncode, 0, client.stderr)
        self.assertEqual((server.wait(PATIENCE), server.stderr.read()), (0, ''))
        server.stderr.close()
        # Another base, and the same process twice.
        with open(paths[1], encoding='ascii') as file:
            text = file.read()
        alone = Trace(paths[1])
        with open(paths[1], 'w', encoding='ascii') as file:
            file.write(text.replace(f'"base_ns":"{alone.base_ns}"', f'"base_ns":"{alone.base_ns - 5 * 10**9}"', 1))
        with open(self.path, 'w', encoding='ascii') as file:
            done = softhca('timeline', *paths, stdout=file)
        self.assertEqual((done.returncode, done.stderr), (0, ''))
        shifted = Trace(self.path)
        shifted.check(self)
        first, last = (min(e['ts'] for e in trace.of('X')) + trace.base_ns / 1e3 for trace in (shifted, alone))
        self.assertLess(first, last)
        with open(paths[1], 'w', encoding='ascii') as file:
            file.write(text)
        with open(self.path, 'w', encoding='ascii') as file:
            self.assertEqual(softhca('timeline', *paths, stdout=file).returncode, 0)
        trace = Trace(self.path)
        trace.check(self)
        trace.check_order(self, trace.requests())
        self.assertEqual(len(trace.requests('SEND')), 2 * rounds)
        # Headers do not carry the sender's number; the receiving end has it as dest_qp_num.
        peers = [(e['pid'], e['args']['peer']) for e in trace.events if 'peer' in e.get('args', {})]
        self.assertEqual(len(set(peers)), 2)
        self.assertNotIn(0, {peer for _, peer in peers})
        # Messages of a process that a busy machine stops for longer than the timeout are retransmitted.
        whole = [flow for flow in trace.flows('message').values() if re.match('s+t+f', phases(flow))]
        self.assertEqual(len(whole), 2 * rounds)
        for flow in whole:
            sent, arrived = (next(e for e in flow if e['ph'] == phase) for phase in 'st')
            self.assertNotEqual(sent['pid'], arrived['pid'])
        # Arrows of answers lead back.
        answers = [flow for flow in trace.flows('message').values() if phases(flow) == 'sf']
        self.assertTrue(answers)
        self.assertTrue(all(flow[0]['pid'] != flow[1]['pid'] for flow in answers))
        # The same trace twice gets different process numbers.
        with open(self.path, 'w', encoding='ascii') as file:
            self.assertEqual(softhca('timeline', paths[0], paths[0], stdout=file).returncode, 0)
        self.assertEqual(len({e['pid'] for e in Trace(self.path).events}), 2)

    def slowly(self, *files, terminal=True):
        """Returns the output of `softhca timeline` on standard error, a terminal or a pipe, while its standard
        output is not read for a time."""
        here, there = pty.openpty() if terminal else os.pipe()
        with subprocess.Popen([TOOL, 'timeline', *files], env=clean_environment(), stdout=subprocess.PIPE, stderr=there) as process:
            os.close(there)
            # On a busy machine the command takes a while to begin, and its operation must take longer than a second.
            select.select([process.stdout], [], [], PATIENCE)
            time.sleep(1.3)
            out = process.stdout.read()
        self.assertEqual(process.returncode, 0)
        said = b''
        try:
            while part := os.read(here, 65536):
                said += part
        except OSError:
            pass # a terminal that no process has open any more
        os.close(here)
        return out, said.decode('ascii')

    def test_progress(self):
        """Operations longer than a second show their progress on a terminal, and erase it."""
        env = {'SOFTHCA_TIMELINE': self.path, 'LD_LIBRARY_PATH': os.path.realpath(sys.argv[2])}
        subprocess.run([PING_PONG, '5000'], env=clean_environment(**env), check=True, stdout=subprocess.DEVNULL, timeout=PATIENCE)
        trace, said = self.slowly(*self.records())
        self.assertRegex(said, r'^\r\x1b\[Ksofthca: making the timeline: \d+ %')
        self.assertTrue(said.endswith('%\r\x1b[K'), said)
        self.assertEqual(self.slowly(*self.records(), terminal=False), (trace, ''))
        merged = f'{self.directory}/merged.json'
        with open(merged, 'wb') as file:
            file.write(trace)
        self.assertRegex(self.slowly(merged)[1], r'^\r\x1b\[Ksofthca: copying the trace: \d+ %')
        # Short operations print nothing.
        for path in self.records():
            os.unlink(path)
        self.run_ping_pong(5)
        here, there = pty.openpty()
        subprocess.run([TOOL, 'timeline', self.path], env=clean_environment(), stdout=subprocess.DEVNULL, stderr=there, check=True)
        self.assertEqual(select.select([here], [], [], 0)[0], [])
        os.close(here)
        os.close(there)

    def test_damaged_files(self):
        """Any file gives a trace or a line that describes the error."""
        env = {'SOFTHCA_TIMELINE': self.path, 'SOFTHCA_TIMELINE_RECORDS': '1024', 'LD_LIBRARY_PATH': os.path.realpath(sys.argv[2])}
        subprocess.run([PING_PONG, '50'], env=clean_environment(**env), check=True, stdout=subprocess.DEVNULL, timeout=PATIENCE)
        [path] = self.records()
        with open(path, 'rb') as file:
            good = file.read()
        table = 4096 + 4096 * 64
        cases = [good[:n] for n in (0, 15, 4096, table - 1, len(good) - 1)]
        randomness = random.Random(11)
        for round_ in range(30):
            damaged = bytearray(good)
            # Those of the head, of the rows, or of the records.
            low, high = ((16, 400), (4096, 4096 + 256), (table, table + 16384))[round_ % 3]
            for _ in range(randomness.choice((1, 8, 200))):
                damaged[randomness.randrange(low, high)] = randomness.choice((0, 1, 127, 255, randomness.randrange(256)))
            cases.append(bytes(damaged))
        cases += [good[:table] + randomness.randbytes(len(good) - table), b'{"traceEvents":[]}', b'\0' * 70000]
        # All records count, with any lap numbers.
        cases.append(good[:table] + (good[table:table + 32] + randomness.randbytes(31) + b'\1') * ((len(good) - table) // 64))
        # Wrong clocks: at the time of a record, and beyond the range of numbers.
        [time_] = struct.unpack_from('<Q', good, table + 32 * 8)
        for ticks, rise in ((time_ - 1, 2**63 - 1), (1, 2**63 - 1), (time_ + 5, 2**63 - 1)):
            wild = bytearray(good)
            struct.pack_into('<I', wild, 20, 1)
            struct.pack_into('<QQQQ', wild, 48, ticks, ticks + 1, 2**62, 2**62 + rise)
            cases.append(bytes(wild))
        made = 0
        for case in cases:
            with open(path, 'wb') as file:
                file.write(case)
            with open(self.path, 'w', encoding='ascii') as file:
                done = softhca('timeline', path, stdout=file)
            self.assertIn(done.returncode, (0, 1), done)
            if done.returncode:
                self.assertRegex(done.stderr, '^softhca: ')
            else:
                self.assertIsInstance(json.load(open(self.path, encoding='ascii'))['traceEvents'], list)
                made += 1
        self.assertGreater(made, 10)

    def test_records_of_several(self):
        """A record of several events (observe/timeline_file.h) becomes these events, one after the other."""
        env = {'SOFTHCA_TIMELINE': self.path, 'SOFTHCA_TIMELINE_RECORDS': '1024', 'LD_LIBRARY_PATH': os.path.realpath(sys.argv[2])}
        subprocess.run([PING_PONG, '50'], env=clean_environment(**env), check=True, stdout=subprocess.DEVNULL, timeout=PATIENCE)
        [path] = self.records()
        with open(path, 'rb') as file:
            good = file.read()
        table = 4096 + 4096 * 64
        kinds = {good[at + 27] for at in range(table + 32, len(good), 32) if good[at + 31]}
        names = 'NONE CLOCK POST POST_RECEIVE POST_SRQ LOCAL CALL SEND SEND_AGAIN NO_ROOM ARRIVE ANSWER TIMEOUT STATE COMPLETE POLL STOP ' \
                'POST_SEND POST_CALL ACKNOWLEDGED POLL_SOME'
        kind = {name: number for number, name in enumerate(names.split())}
        self.assertIn(kind['POST_CALL'], kinds)
        qpn = int.from_bytes(good[4096:4100], 'little')
        start = int.from_bytes(good[table + 32:table + 40], 'little')
        peer, cq, write, message, acknowledge, only = qpn + 1, 1, 8, 4, 14, 3 << 48

        def trace(*records):
            with open(path, 'wb') as file:
                file.write(good[:table] + struct.pack('<IIQ16x', 0, 1, 0))
                for time_, value, length, psn, index, opcode, name, number in records:
                    file.write(struct.pack('<QQIIHBBI', start + time_, value & (1 << 64) - 1, length, psn, index, opcode, kind[name],
                                           number | 1 << 24))
                file.write(bytes(len(good) - file.tell()))
            done = softhca('timeline', path)
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stdout.replace(path, '')

        # WRITEs of 0x1234 and of 5 bytes; one acknowledgement of the second one, AETH syndrome 0x1f; wr_id 7, 4.
        for name in 'SEND', 'CALL':
            plain = trace((0, 7, 0, 0, 3, write, 'POST', qpn),
                          (0, peer | 1 << 24 | only, 0x1234, 9, 3, message, name, qpn),
                          (100, 4, 0, 0, 4, write, 'POST', qpn),
                          (100, peer | 1 << 24 | only, 5, 10, 4, message, name, qpn),
                          (900, peer | 1 << 24 | only, 0, 10, 0x1f, acknowledge, 'ARRIVE', qpn),
                          (900, qpn | write << 24, 0x1234, 20, 3, 0, 'COMPLETE', cq),
                          (900, qpn | write << 24, 5, 21, 4, 0, 'COMPLETE', cq),
                          (2000, 7, 0, 20, 3, 0, 'POLL', cq),
                          (2000, 4, 0, 21, 4, 0, 'POLL', cq))
            several = trace((0, 7, peer | 0x34 << 24, 9 | 0x12 << 24, 3, write, f'POST_{name}', qpn),
                            (100, 4, peer | 5 << 24, 10, 4, write, f'POST_{name}', qpn),
                            (900, cq | write << 24 | 20 << 32, peer | 0x34 << 24, 10 | 0x1f << 24, 3, 0x12, 'ACKNOWLEDGED', qpn),
                            (900, qpn | write << 24, 5, 21, 4, 0, 'COMPLETE', cq),
                            (2000, 7, -3 & 0xffffffff, 20, 2, 0, 'POLL_SOME', cq))
            self.assertIn('"wr_id":"0x4"', plain)
            self.assertEqual(several, plain)

        # The clocks of two CPUs differ a little; a poll long before a completion belongs to another one.
        for before, polled in (40, True), (10**9, False):
            text = trace((0, 7, 0, 0, 3, write, 'POST', qpn),
                         (2 * 10**9 - before, 7, 0, 20, 0, 0, 'POLL', cq),
                         (2 * 10**9, qpn | write << 24, 8, 20, 3, 0, 'COMPLETE', cq))
            [request] = [e['args'] for e in json.loads(text)['traceEvents'] if e['ph'] == 'b']
            self.assertEqual(request.get('poll_ns'), request['complete_ns'] if polled else None)

    def test_without_python(self):
        """Only for these commands: one line reports it, and a program that was to be recorded is not started."""
        place = f'{self.directory}/bin'
        os.mkdir(place)
        os.symlink(shutil.which('touch'), f'{place}/touch')
        ran = f'{self.directory}/ran'
        for arguments, command in ((('timeline', self.path), 'timeline'), (('report', self.path), 'report'),
                               (('run', '--no-presence', '--timeline', self.path, '--', 'touch', ran), '--timeline')):
            done = softhca(*arguments, env={'PATH': place})
            self.assertEqual((done.returncode, done.stdout, done.stderr),
                             (1, '', f'softhca: {command} needs python3, which is not installed\n'))
        self.assertFalse(os.path.exists(ran))
        self.assertEqual(softhca('run', '--no-presence', '--', 'touch', ran, env={'PATH': place}).returncode, 0)
        self.assertTrue(os.path.exists(ran))

    def test_python_of_the_user(self):
        """The user's Python modules and variables do not change the output, and no files are written next to the
        scripts."""
        trace, _ = self.run_ping_pong(5)
        with open(f'{self.directory}/json.py', 'w', encoding='ascii') as file:
            file.write('raise SystemExit(9)\n')
        shutil.copy(f'{self.directory}/json.py', f'{self.directory}/sitecustomize.py')
        done = softhca('timeline', self.path, cwd=self.directory, env={'PYTHONPATH': self.directory, 'PYTHONSTARTUP': f'{self.directory}/json.py'})
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, trace.text, ''))
        self.assertEqual(os.listdir(self.directory), [name for name in os.listdir(self.directory) if name != '__pycache__'])
        self.assertFalse(os.path.exists(os.path.join(os.path.dirname(TOOL), 'python', '__pycache__')))

    def test_damaged_traces(self):
        trace, _ = self.run_ping_pong(5)
        lines = trace.text.splitlines(keepends=True)
        other = f'{self.directory}/other.json'
        for text in ('', lines[0], ''.join(lines[:-1]), ''.join(lines[:5]) + '{"ts":1,"pid":2}\n' + ''.join(lines[5:]),
                     lines[0].replace('base_ns', 'bass_ns') + ''.join(lines[1:])):
            with open(other, 'w', encoding='ascii') as file:
                file.write(text)
            done = softhca('timeline', other)
            self.assertEqual(done.returncode, 1, text[:200])
            self.assertRegex(done.stderr, '^softhca: .*other.json')


if __name__ == '__main__':
    main()
