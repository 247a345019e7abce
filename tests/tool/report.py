#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
softhca report: contents of the page, that markup in its files has no effect, and, in Chromium if installed, that its
filter works.

report.py COMMAND LIBRARIES SCATTERED_RECORDS LENT_WINDOW
"""
import base64
import datetime
import html as html_module
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from html.parser import HTMLParser

from harness import main, softhca

SCATTERED_RECORDS, LENT_WINDOW = map(os.path.abspath, sys.argv[3:5])
CHROMIUM = shutil.which('chromium') or shutil.which('google-chrome')
SECTIONS = ('failures', 'explanations', 'rules', 'keys', 'timeline', 'latency', 'packets', 'counters')

# Requests as docs/use/timeline.md has them: three of up to 64 bytes, one of up to 4096, one with a lost post.
TRACE = '''{"traceEvents":[
{"pid":1,"ph":"b","name":"SEND","args":{"bytes":33,"complete_ns":120,"poll_ns":200}},
{"pid":1,"ph":"b","name":"SEND","args":{"bytes":64,"complete_ns":150,"poll_ns":200}},
{"pid":1,"ph":"b","name":"SEND","args":{"bytes":64,"complete_ns":1500,"poll_ns":2000}},
{"pid":1,"ph":"b","name":"RDMA_WRITE","args":{"bytes":4096,"complete_ns":900,"poll_ns":950}},
{"pid":1,"ph":"b","name":"SEND","args":{"bytes":64,"posted":false,"complete_ns":0,"poll_ns":7}},
{"pid":1,"ph":"e","name":"SEND","args":{"bytes":64}}
]}
'''


class Page(HTMLParser):
    """Collects the rows of each section as text; elements; addresses that are loaded or linked."""

    def __init__(self, html):
        super().__init__()
        self.rows, self.section, self.elements, self.addresses = {}, None, [], []
        self.opened = []  # whether each key is opened
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.elements.append(tag)
        self.addresses += [attrs[name] for name in ('src', 'href') if name in attrs]
        if tag == 'section':
            self.section = attrs['id']
            self.rows[self.section] = []
        elif 'row' in attrs.get('class', '').split():
            self.rows[self.section].append('')
            if tag == 'details':
                self.opened.append('open' in attrs)

    def handle_data(self, data):
        if self.section and self.rows.get(self.section):
            self.rows[self.section][-1] += data + ' '


class Report(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()

    def tearDown(self):
        self.directory.cleanup()

    def path(self, name):
        return os.path.join(self.directory.name, name)

    def write(self, name, content):
        with open(self.path(name), 'w', encoding='utf-8') as file:
            file.write(content)
        return self.path(name)

    def run_examples(self):
        table = self.path('table')
        with open(table, 'wb') as file:
            file.write(bytes(6400))
        settings = ('--explain', self.path('why'), '--counters', self.path('counters'), '--keys', self.path('keys'))
        for name, program in ('a', (SCATTERED_RECORDS, '--out-of-range', table)), ('b', (LENT_WINDOW,)):
            done = softhca('run', *settings, '--timeline', self.path(name + '.json'), '--link', 'udp', '--capture', self.path(name), '--', *program)
            self.assertEqual(done.returncode, 0, done.stderr)
        return [self.path(name) for name in ('keys', 'why', 'counters', 'a', 'b', 'a.json', 'b.json')] + [self.write('trace', TRACE)]

    def report(self, *files):
        done = softhca('report', *files)
        self.assertEqual((done.returncode, done.stderr), (0, ''))
        self.page = page = Page(done.stdout)
        # In this order, and not empty.
        self.assertEqual([name for name in SECTIONS if name in page.rows], list(page.rows))
        self.assertTrue(all(page.rows.values()), page.rows)
        self.assertEqual(page.elements.count('script'), 1)
        for address in page.addresses:
            self.assertRegex(address, r'^(#|data:image/svg\+xml;base64,)')
        return done.stdout, {**dict.fromkeys(SECTIONS, []), **page.rows}

    def test_everything(self):
        html, rows = self.report(*self.run_examples())
        self.assertEqual(len(rows['keys']), len([name for name in os.listdir(self.path('keys')) if name.endswith('.svg')]))
        images = re.findall(r'base64,([^"]+)"', html)
        with open(os.path.join(self.path('keys'), re.search(r'\S+\.svg', rows['keys'][0])[0]), 'rb') as file:
            self.assertEqual(base64.b64decode(images[0], validate=True), file.read())
        told = ' '.join(rows['explanations'])
        for number, name in (7, 'KEY_RANGE'), (2, 'KEY_FREE'):
            self.assertIn(f'[{number} {name};', told)
            self.assertTrue(any(row.startswith(f'{number} {name}') for row in rows['rules']))
            self.assertIn(f'href="#rule-{number}"', html)
            self.assertIn(f'id="rule-{number}"', html)
        self.assertTrue(any(' udp_packets_sent ' in f' {row} ' for row in rows['counters']))
        # The window is written to twice, and the second WRITE is refused.
        writes = [row for row in rows['packets'] if 'RC_WRITE_ONLY' in row]
        self.assertTrue(writes)
        for row in writes:
            self.assertIn('remote_address', row)
        self.assertTrue(any('[2 KEY_FREE' in row for row in rows['packets']))
        # Opcode, maximum bytes, requests, minimum, median, maximum.
        self.assertEqual([row.split() for row in rows['latency']][-2:],
                         [['SEND', '64', '3', '120', '150', '1500'], ['RDMA_WRITE', '4096', '1', '900', '900', '900']])
        # Keys with a refused use are open.
        for row, opened in zip(rows['keys'], self.page.opened):
            self.assertEqual(opened, '!!' in row, row)
        self.assertEqual(set(self.page.opened), {True, False})
        failed = ' '.join(rows['failures'])
        self.assertIn('local protection error', failed)
        self.assertIn('remote access error', failed)

    def test_timeline(self):
        """From the device's own timeline: the request that configures the key, and the WRITE that is refused."""
        self.run_examples()
        html, rows = self.report(self.path('a.json'))
        with open(self.path('a.json'), encoding='utf-8') as file:
            begun = [event for event in json.load(file)['traceEvents'] if event['ph'] == 'b' and event['args'].get('posted')]
        queues = {(event['cat'].removeprefix('requests of '), event['pid']) for event in begun}
        self.assertEqual(len(rows['timeline']), len(queues))
        for queue, process in queues:
            self.assertTrue(any(row.startswith(f'{queue}, process {process}') for row in rows['timeline']), rows['timeline'])
        self.assertIn('RDMA_WRITE (', ' '.join(rows['timeline']))
        bars = re.findall(r'<i( class="bad")? style="left:([\d.]+)%;width:([\d.]+)%;top:(\d+)px" title="(\w+) wr_id (\w+), (\d+) bytes: '
                          r'completed after (\d+) ns', html)
        self.assertEqual(sorted((name, wr_id, int(length), int(took), bool(bad)) for bad, _, _, _, name, wr_id, length, took in bars),
                         sorted((event['name'], event['args']['wr_id'], event['args']['bytes'], event['args']['complete_ns'],
                                 event['args']['status'] != 'success') for event in begun))
        begin = min(event['ts'] for event in begun)
        whole = max(event['ts'] + max(event['args']['complete_ns'], event['args'].get('poll_ns', 0)) / 1e3 for event in begun) - begin
        for event in begun:
            left, width = 100 * (event['ts'] - begin) / whole, event['args']['complete_ns'] / 10 / whole
            self.assertTrue(any(abs(float(bar[1]) - left) < 0.01 and abs(float(bar[2]) - width) < 0.01 for bar in bars), (bars, event))

    def test_many_requests(self):
        """A line each, as softhca timeline writes them; overlapping ones are drawn below each other, and 600 are
        drawn."""
        line = '{{"ts":{ts}.000,"pid":{pid},"ph":"b","name":"SEND","cat":"requests of QP 0x40","args":{{"wr_id":"0x1","bytes":8,' \
               '"posted":true,"complete_ns":3000,"status":"success"}}}},\n'
        trace = self.write('trace', '{"traceEvents":[\n' + ''.join(line.format(ts=i, pid=1) for i in range(700)))
        html, rows = self.report(trace)
        self.assertEqual(len(rows['timeline']), 1)
        self.assertEqual(html.count('px" title="SEND wr_id 0x1, 8 bytes: completed after 3000 ns, success"'), 600)
        self.assertIn('600 requests in 602.000 µs', html)
        self.assertIn('100 more are not drawn', html)
        self.assertEqual(re.findall(r';top:(\d+)px', html)[:6], ['0', '7', '14', '0', '7', '14'])
        _, rows = self.report(self.write('lanes', '{"traceEvents":[\n' + ''.join(line.format(ts=i, pid=i) for i in range(1, 100))))
        self.assertEqual(len(rows['timeline']), 40)

    def test_latency(self):
        self.run_examples()
        _, rows = self.report(self.path('a.json'))
        requests = [row.split() for row in rows['latency']]
        self.assertEqual(sorted(row[0] for row in requests), ['RDMA_WRITE', 'UMR'])
        self.assertEqual([row[2] for row in requests], ['1', '1'])

    def test_nothing_is_obeyed(self):
        svg = '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
        os.mkdir(self.path('keys'))
        self.write('keys/"><script>x.svg', svg)
        self.write('keys/"><script>x.txt', '</pre><script>alert(2)</script>')
        why = self.write('why', 'x [7 KEY_RANGE; <img src=x onerror=alert(3)>]\n[99999999999999999999 X\n[7 X\0hidden\n\x1b\n')
        with open(why, 'ab') as file:
            file.write(b'[2 KEY_FREE \xff\xc3\xe2\x82 \x80\n[2 KEY')
        counters = self.write('counters', 'softhca: counters of <b>x</b>\n  <script> 3\n  a_b 18446744073709551615\n')
        trace = self.write('trace', '{\n"name":"<script>","ph":"b","complete_ns":99999999999999999999,"bytes":-1\n"name":"')
        html, rows = self.report(self.path('keys'), why, counters, trace)
        self.assertEqual(html.count('<script'), 1)
        self.assertNotIn('<img src=x', html)
        self.assertNotIn('<b>x', html)
        self.assertEqual([len(rows[name]) for name in SECTIONS], [0, 4, 2, 1, 1, 1, 0, 1])
        self.assertIn("default-src 'none'", html)
        # A truncated capture, and an empty one.
        examples = self.run_examples()
        with open(examples[4], 'rb') as file:
            whole = file.read()
        with open(self.path('cut'), 'wb') as file:
            file.write(whole[:-7])
        _, cut = self.report(self.path('cut'))
        _, complete = self.report(examples[4])
        self.assertEqual(len(cut['packets']), len(complete['packets']) - 1)
        html, rows = self.report(self.write('empty', ''))
        self.assertFalse(any(rows.values()))
        self.assertIn('Nothing was recorded', html)
        self.assertNotIn('<section', html)

    def test_no_figures(self):
        """Invalid figures in a trace, or figures out of range."""
        lines = [f'{{"name":"WRITE","cat":"requests of QP {i}","ph":"b","pid":1,"ts":{ts},"complete_ns":{ns},"bytes":{bytes_},"poll_ns":{ns}}}'
                 for i, (ts, ns, bytes_) in enumerate([('1', '2', '3'), ('inf', '5', '1e400'), ('nan', 'nan', 'nan'), ('4', '1e400', '-1')])]
        html, rows = self.report(self.write('trace', '{\n' + '\n'.join(lines) + '\n'))
        self.assertEqual(len(rows['timeline']), 4)
        self.assertNotRegex(html, r'(nan|inf)(%| )')

    def test_pipes(self):
        """Other types of files are not waited for, including those in place of a drawing's text."""
        os.mkdir(self.path('keys'))
        self.write('keys/x.svg', '<svg xmlns="http://www.w3.org/2000/svg"></svg>')
        os.mkfifo(self.path('keys/x.txt'))
        os.mkfifo(self.path('keys/y.svg'))
        _, rows = self.report(self.path('keys'))
        self.assertEqual(len(rows['keys']), 1)

    def test_bounded(self):
        why = self.write('why', ''.join(f'mlx5_0: line {i} [7 KEY_RANGE; x\n' for i in range(1500)))
        html, rows = self.report(why)
        self.assertEqual(len(rows['explanations']), 1000)
        self.assertIn('… 500 more', html)

    def test_median(self):
        """Exact, also for an even number of requests."""
        line = '{{"pid":1,"ph":"b","name":"SEND","args":{{"bytes":8,"complete_ns":{},"poll_ns":9}}}}\n'
        for took, median in ([3, 1, 2], '2'), ([1, 10], '5.5'), ([4, 4, 6, 1000000], '5'):
            _, rows = self.report(self.write('trace', '{"traceEvents":[\n' + ''.join(line.format(ns) for ns in took)))
            self.assertEqual(rows['latency'][0].split()[4], median)

    def test_json(self):
        """--json has the data of the page."""
        files = self.run_examples()
        _, rows = self.report(*files)
        done = softhca('report', '--json', *files)
        self.assertEqual((done.returncode, done.stderr), (0, ''))
        shown = json.loads(done.stdout)
        for section, name in ('explanations', 'explanations'), ('rules', 'rules'), ('keys', 'keys'), ('latency', 'latencies'), \
                ('counters', 'counters'):
            self.assertEqual(len(shown[name]), len(rows[section]), name)
        self.assertEqual(sum(file['count'] for file in shown['packets']), len(rows['packets']))
        self.assertEqual({rule['number'] for rule in shown['rules']}, {line['rule'] for line in shown['explanations']})
        self.assertEqual({key['refused'] for key in shown['keys']}, {True, False})
        self.assertEqual(shown['latencies'][-2], {'file': files[-1], 'opcode': 'SEND', 'bytes_up_to': 64, 'requests': 3, 'least_ns': 120,
                                                  'median_ns': 150, 'most_ns': 1500})
        self.assertIn('remote access error', [row.get('status') for row in shown['failures']])

    def test_axis(self):
        """Round times, at the right positions."""
        line = '{{"ts":{}.000,"pid":1,"ph":"b","name":"SEND","args":{{"bytes":8,"complete_ns":1000,"status":"success"}}}}\n'
        for span, labels in (9, ['0', '2 µs', '4 µs', '6 µs', '8 µs']), (999, ['0', '200 µs', '400 µs', '600 µs', '800 µs']), \
                (2_499_999, ['0', '500 ms', '1 s', '1.5 s', '2 s']):
            html, _ = self.report(self.write('trace', '{"traceEvents":[\n' + line.format(0) + line.format(span)))
            places = re.findall(r'<u style="left:([\d.]+)%">([^<]+)</u>', html)
            self.assertEqual([text for _, text in places], labels)
            step = float(re.search(r'--step:([\d.]+)%', html)[1])
            for number, (place, _) in enumerate(places):
                self.assertAlmostEqual(float(place), number * step, delta=0.01)
        self.assertIn('until polled', html)

    def test_flushed(self):
        """Consequences of a failure are only counted."""
        line = '{{"pid":1,"ph":"b","name":"SEND","cat":"requests of QP 0x40","args":{{"wr_id":"0x{:x}","complete_ns":5,"status":"{}"}}}}\n'
        trace = line.format(7, 'transport retry counter exceeded') + ''.join(line.format(i, 'Work Request Flushed Error') for i in range(20))
        _, rows = self.report(self.write('trace', '{"traceEvents":[\n' + trace))
        self.assertEqual(len(rows['failures']), 2)
        self.assertIn('SEND 0x7 QP 0x40, process 1 transport retry counter exceeded', ' '.join(rows['failures'][0].split()))
        self.assertRegex(rows['failures'][1], '^20 requests were flushed')

    def test_packets(self):
        """Each packet within a process is sent and received; times are relative to the first."""
        _, rows = self.report(self.run_examples()[4])
        packets = [row.split() for row in rows['packets']]
        self.assertEqual([packet[0] for packet in packets], [str(number) for number in range(1, len(packets) + 1)])
        times = [float(packet[1]) for packet in packets]
        self.assertEqual(times[0], 0)
        self.assertTrue(all(-1e3 < time < 60e6 for time in times))
        directions = [packet[3] for packet in packets]
        self.assertEqual(directions.count('in'), directions.count('out'))

    # ---- softhca run --report ----------------------------------------------------------------------------------------------

    def run_report(self, *arguments, env=None):
        """Runs a program for a page; returns the CompletedProcess, the page and its rows. Checks that TMPDIR is left
        empty."""
        page, place = self.path('page.html'), self.path('tmp')
        os.makedirs(place, exist_ok=True)
        done = softhca('run', '--no-presence', '--report', page, *arguments, env={'TMPDIR': place, **(env or {})})
        self.assertEqual(os.listdir(place), [])
        with open(page, encoding='utf-8') as file:
            html = file.read()
        return done, html, {**dict.fromkeys(SECTIONS, []), **Page(html).rows}

    def test_run(self):
        """One option does everything; explanations go to standard error as well, and the exit status is the
        program's."""
        script = f'{LENT_WINDOW} first "a  b"; {LENT_WINDOW}; exit 3'
        before = time.time()
        done, html, rows = self.run_report('--link', 'udp', '--', 'sh', '-c', script, 'name')
        took = time.time() - before
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertEqual(len(re.findall(r'\[2 KEY_FREE;', done.stderr)), 2)
        self.assertNotIn('drawing', done.stderr)
        for name in SECTIONS:
            self.assertTrue(rows[name], name)
        # Two processes.
        self.assertEqual(len(re.findall(r'<h3>wire\.\d+\.pcapng</h3>', html)), 2)
        self.assertEqual(len({row.split()[3] for row in rows['counters']}), 2, rows['counters'])
        head = dict(re.findall(r'<dt>(\w+)</dt><dd[^>]*>(.*?)</dd>', html))
        self.assertEqual(html_module.unescape(re.sub('<.*?>', '', head['program'])), shlex.join(['sh', '-c', script, 'name']))
        began = datetime.datetime.strptime(head['began'], '%Y-%m-%d %H:%M:%S %z').timestamp()
        self.assertTrue(before - 1 <= began <= before + took, head)
        number, unit = head['took'].split()
        self.assertTrue(0 < float(number) * {'s': 1, 'ms': 1e-3}[unit] <= took, head)
        self.assertEqual(head['ended'], 'exit status 3')
        self.assertIn('<dd class="bad">exit status 3', html)
        # Failures first, then explanations.
        self.assertLess(html.index('id="failures"'), html.index('id="explanations"'))
        self.assertLess(html.index('id="explanations"'), html.index('id="keys"'))

    def test_run_without_a_device(self):
        done, html, rows = self.run_report('--', 'true')
        self.assertEqual(done.returncode, 0)
        self.assertFalse(any(rows.values()))
        self.assertIn('Nothing was recorded', html)
        done, html, _ = self.run_report('--', 'sh', '-c', 'kill -9 $$')
        self.assertEqual(done.returncode, -9)
        self.assertIn('<dd class="bad">signal 9 (Killed)</dd>', html)

    def test_run_with_files(self):
        """Files named by other options or variables are written and shown; off stays off; output to standard error
        stays there."""
        wire, trace = self.path('wire.%p.pcapng'), self.path('trace.json')
        done, html, rows = self.run_report('--link', 'udp', '--capture', wire, '--timeline', trace, '--counters', 'stderr', '--keys', 'off', '--',
                                           LENT_WINDOW, env={'SOFTHCA_EXPLAIN': 'off'})
        self.assertEqual(done.returncode, 0, done.stderr)
        [capture] = [name for name in os.listdir(self.directory.name) if name.endswith('.pcapng')]
        self.assertIn(f'<h3>{capture}</h3>', html)
        self.assertIn('<h3>trace.json</h3>', html)
        self.assertEqual((rows['keys'], rows['explanations']), ([], []))
        self.assertTrue(rows['packets'] and rows['timeline'] and rows['counters'])
        self.assertIn('udp_packets_sent', done.stderr)
        self.assertNotIn('KEY_FREE', done.stderr)

    def test_run_wrong_use(self):
        done = softhca('run', '--report', self.path('none/page.html'), '--', 'touch', self.path('ran'))
        self.assertEqual((done.returncode, done.stderr.count('\n')), (1, 1))
        self.assertIn('none/page.html', done.stderr)
        self.assertFalse(os.path.exists(self.path('ran')))

    def test_wrong_use(self):
        for arguments, status in ((), 2), (('--output',), 2), ((self.path('none'),), 1), (('--output', '/dev/full', '/dev/null'), 1):
            done = softhca('report', *arguments)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count('\n')), (status, '', 1), done.stderr)

    def chromium(self, page, query):
        done = subprocess.run(
            [CHROMIUM, '--headless', '--no-sandbox', '--disable-gpu', f'--user-data-dir={self.path("profile")}', '--enable-logging=stderr',
             '--dump-dom', f'file://{page}{query}'], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([line for line in done.stderr.splitlines() if 'CONSOLE' in line], [])
        return re.findall(r'class="soft shown">(\d+) of (\d+)<', done.stdout)

    @unittest.skipUnless(CHROMIUM, 'chromium is not installed')
    def test_filter(self):
        page = self.path('page.html')
        done = softhca('report', '--output', page, *self.run_examples())
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, '', ''))
        every = self.chromium(page, '')
        self.assertEqual(len(every), len(SECTIONS))
        for shown, all_ in every:
            self.assertEqual(shown, all_)
        filtered = dict(zip(SECTIONS, self.chromium(page, '#filter=key_RANGE')))
        self.assertEqual(filtered['rules'][0], '1')
        self.assertEqual(filtered['latency'][0], '0')
        self.assertEqual([all_ for _, all_ in filtered.values()], [all_ for _, all_ in every])


if __name__ == '__main__':
    main()
