#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
softhca report: what is in the page, that nothing in its files is obeyed, and, in Chromium if there is one, that its filter works.

report.py COMMAND LIBRARIES SCATTERED_RECORDS LENT_WINDOW
"""
import base64
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from html.parser import HTMLParser

from harness import main, softhca

SCATTERED_RECORDS, LENT_WINDOW = map(os.path.abspath, sys.argv[3:5])
CHROMIUM = shutil.which('chromium') or shutil.which('google-chrome')
SECTIONS = ('keys', 'explanations', 'rules', 'timeline', 'latency', 'counters', 'packets')

# Requests as docs/timeline.md has them: three of up to 64 bytes, one of up to 4096, one whose post is lost.
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
    """Rows, as text, of each section; elements; addresses that something is loaded from or leads to."""

    def __init__(self, html):
        super().__init__()
        self.rows, self.section, self.elements, self.addresses = {}, None, [], []
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

    def handle_data(self, data):
        if self.section and self.rows[self.section]:
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
        return [self.path(name) for name in ('keys', 'why', 'counters', 'a', 'b')] + [self.write('trace', TRACE)]

    def report(self, *files):
        done = softhca('report', *files)
        self.assertEqual((done.returncode, done.stderr), (0, ''))
        page = Page(done.stdout)
        self.assertEqual(tuple(page.rows), SECTIONS)
        self.assertEqual(page.elements.count('script'), 1)
        for address in page.addresses:
            self.assertRegex(address, r'^(#|data:image/svg\+xml;base64,)')
        return done.stdout, page.rows

    def test_everything(self):
        html, rows = self.report(*self.run_examples())
        self.assertEqual(len(rows['keys']), len([name for name in os.listdir(self.path('keys')) if name.endswith('.svg')]))
        images = re.findall(r'base64,([^"]+)"', html)
        with open(os.path.join(self.path('keys'), rows['keys'][0].split()[0]), 'rb') as file:
            self.assertEqual(base64.b64decode(images[0], validate=True), file.read())
        told = ' '.join(rows['explanations'])
        for number, name in (7, 'KEY_RANGE'), (2, 'KEY_FREE'):
            self.assertIn(f'[{number} {name};', told)
            self.assertTrue(any(row.startswith(f'{number} {name}') for row in rows['rules']))
            self.assertIn(f'href="#rule-{number}"', html)
            self.assertIn(f'id="rule-{number}"', html)
        self.assertTrue(any(' udp_packets_sent ' in f' {row} ' for row in rows['counters']))
        # The window is written to twice, and the second time that is refused.
        writes = [row for row in rows['packets'] if 'RC_WRITE_ONLY' in row]
        self.assertTrue(writes)
        for row in writes:
            self.assertIn('remote_address', row)
        self.assertTrue(any('[2 KEY_FREE' in row for row in rows['packets']))
        # Opcode, bytes up to, requests, least, median, most: 120 and 150 are between 64 and 256, in [64, 128) and [128, 256).
        self.assertEqual([row.split() for row in rows['latency']],
                         [['SEND', '64', '3', '120', '128…256', '1500'], ['RDMA_WRITE', '4096', '1', '900', '512…1024', '900']])

    def test_timeline(self):
        """Of the device's own: the request that configures the key, and the WRITE that is refused."""
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
        """A line each, as softhca timeline writes them; overlapping ones are below each other, and 600 are drawn."""
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
        self.assertEqual([len(rows[name]) for name in SECTIONS], [1, 4, 2, 1, 1, 1, 0])
        self.assertIn("default-src 'none'", html)
        # A capture that ends in the middle, and one of nothing.
        examples = self.run_examples()
        with open(examples[4], 'rb') as file:
            whole = file.read()
        with open(self.path('cut'), 'wb') as file:
            file.write(whole[:-7])
        _, cut = self.report(self.path('cut'))
        _, complete = self.report(examples[4])
        self.assertEqual(len(cut['packets']), len(complete['packets']) - 1)
        _, rows = self.report(self.write('empty', ''))
        self.assertFalse(any(rows.values()))

    def test_no_figures(self):
        """Figures of a trace that are none, or beyond all places."""
        lines = [f'{{"name":"WRITE","cat":"requests of QP {i}","ph":"b","pid":1,"ts":{ts},"complete_ns":{ns},"bytes":{bytes_},"poll_ns":{ns}}}'
                 for i, (ts, ns, bytes_) in enumerate([('1', '2', '3'), ('inf', '5', '1e400'), ('nan', 'nan', 'nan'), ('4', '1e400', '-1')])]
        html, rows = self.report(self.write('trace', '{\n' + '\n'.join(lines) + '\n'))
        self.assertEqual(len(rows['timeline']), 4)
        self.assertNotRegex(html, r'(nan|inf)(%| )')

    def test_pipes(self):
        """What is no file is not waited for, nor what stands in the place of a drawing's text."""
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

    def test_wrong_use(self):
        for arguments, status in ((), 2), (('--output',), 2), ((self.path('none'),), 1), (('--output', '/dev/full', '/dev/null'), 1):
            done = softhca('report', *arguments)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count('\n')), (status, '', 1), done.stderr)

    def chromium(self, page, query):
        done = subprocess.run(
            [CHROMIUM, '--headless', '--no-sandbox', '--disable-gpu', f'--user-data-dir={self.path("profile")}', '--enable-logging=stderr',
             '--dump-dom', f'file://{page}{query}'], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn('CONSOLE', done.stderr)
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
        self.assertEqual(filtered['latency'], ('0', '2'))
        self.assertEqual([all_ for _, all_ in filtered.values()], [all_ for _, all_ in every])


if __name__ == '__main__':
    main()
