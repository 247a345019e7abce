# SPDX-License-Identifier: BSD-2-Clause
"""
`softhca report` and `softhca run --report`: one HTML page from the output files of runs: drawings (--keys), explanations
(--explain), counters (--counters), packets (--capture), requests (--timeline). File types are detected by content; files are
untrusted.
"""
import base64
import datetime
import glob
import json
import os
import re
import shlex
import shutil
import stat

import page
import report_timeline
from common import Failure
from page import Section, duration, escape

MOST_BYTES = 1 << 20
MOST_PACKETS = 300
RULE = re.compile(r'\[0*([1-9]\d{0,3}) (?=[A-Z])')
# Placeholder of an argument in the text of a rule (src/explain/rules.def).
FIGURE = re.compile(r'\{\d:\w+\}')
COUNTERS = 'softhca: counters of '
COUNTER = re.compile(r'\s+([a-z_0-9]{1,63})\s+(\d{1,20})')
# First bytes of the file in which `softhca run --report` describes the run (src/tool/run_report.c).
RUN = '{"softhca run":'
# Failures come first, long tables last.
TITLES = {'failures': 'Failed requests', 'explanations': 'Explanations', 'rules': 'Rules', 'keys': 'Keys', 'timeline': 'Timeline',
          'latency': 'Latency', 'packets': 'Packets', 'counters': 'Counters'}
DIRECTIONS = {'in': '←\xa0in', 'out': '→\xa0out'}


def open_text(path):
    return open(path, encoding='utf-8', errors='surrogateescape', newline='\n')


def in_order(names):
    """Sorts @names; numbers in them by value."""
    return sorted(names, key=lambda name: [(int(part or 0), text) for text, part in re.findall(r'(\D*)(\d*)', name)])


class Report:
    """Collects the sections of a page."""

    def __init__(self, tool):
        self.tool, self.told, self.header, self.failures = tool, set(), '', report_timeline.Failures()
        self.sections = {name: Section(name, title) for name, title in TITLES.items()}
        self.sections['packets'].most = MOST_PACKETS
        self.data = {name: [] for name in ('runs', 'failures', 'explanations', 'rules', 'keys', 'latencies', 'packets', 'counters')}

    # ---- the run ---------------------------------------------------------------------------------------------------------

    def add_run(self, path):
        """Adds program, arguments, date, duration and exit status to the head of the page."""
        with open_text(path) as file:
            text = file.read(MOST_BYTES)
        try:
            run = json.loads(text)['softhca run']
            command = ' '.join(shlex.quote(str(word)) for word in run['command'])
            began = datetime.datetime.fromtimestamp(int(run['began_ns']) // 10**9).astimezone()
            took, status, good = int(run['took_ns']), str(run['status']), run['status'] == 'exit status 0'
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
            raise Failure(f'{path} is damaged') from None
        self.data['runs'].append(run)
        bad = '' if good else ' class="bad"'
        self.header += (f'<dl><dt>program</dt><dd><code>{escape(command)}</code></dd><dt>began</dt><dd>{began:%Y-%m-%d %H:%M:%S %z}</dd>'
                        f'<dt>took</dt><dd>{duration(took)}</dd><dt>ended</dt><dd{bad}>{escape(status)}</dd></dl>\n')

    # ---- drawings --------------------------------------------------------------------------------------------------------

    @staticmethod
    def text_beside(path):
        """Returns the text next to the drawing @path; opens no pipe, which would block."""
        name = path[:-4] + '.txt'
        if not os.path.isfile(name):
            return ''
        with open_text(name) as file:
            return file.read(MOST_BYTES)

    def add_drawing(self, path):
        """Adds a drawing: folded, or open if it shows refused accesses (docs/use/keys.md)."""
        section = self.sections['keys']
        if not section.row():
            return
        with open(path, 'rb') as file:
            svg = file.read(MOST_BYTES + 1)
        if len(svg) > MOST_BYTES:
            raise Failure(f'{path} has more than {MOST_BYTES} bytes')
        text = self.text_beside(path)
        refused = ' open' if re.search('(?m)^!!', text) else ''
        self.data['keys'].append({'file': path, 'text': text, 'refused': bool(refused)})
        section.put(f'<details class="row key"{refused}><summary>{escape(text.split(chr(10))[0])} '
                    f'<span class="soft">{escape(os.path.basename(path))}</span></summary>'
                    '<div class="wide"><img alt="the text below" '
                    f'src="data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"></div>'
                    f'<details><summary>as text</summary><pre>{escape(text)}</pre></details></details>\n')

    # ---- lines -----------------------------------------------------------------------------------------------------------

    def add_lines(self, path):
        """Adds the explanations and the counters of a file that has either, or both."""
        explanations, counters, process = [], [], ''
        with open_text(path) as file:
            for line in file:
                line = line.rstrip('\n')
                rule, counter = RULE.search(line), COUNTER.match(line)
                if line.startswith(COUNTERS):
                    process = line[len(COUNTERS):][:127]
                elif rule:
                    self.told.add(int(rule[1]))
                    self.data['explanations'].append({'rule': int(rule[1]), 'line': line})
                    explanations.append([f'<a href="#rule-{rule[1]}">{rule[1]}</a>', escape(line)])
                elif process and line.startswith(' '):
                    if counter:
                        self.data['counters'].append({'process': process, 'counter': counter[1], 'value': int(counter[2])})
                        counters.append([escape(process), counter[1], counter[2]])
                else:
                    process = ''
        self.sections['explanations'].table((), explanations)
        self.sections['counters'].table((), counters)

    def add_rules(self):
        section = self.sections['rules']
        for rule in self.tool.data('rules') if self.told else ():
            if rule['number'] in self.told and section.row():
                self.data['rules'].append(rule)
                text = escape(FIGURE.sub('…', rule['text']))
                section.put(f'<div class="row" id="rule-{rule["number"]}"><p><b>{rule["number"]} {rule["name"]}</b> {text}<br>'
                            f'{escape(rule["advice"])}<br><span class="soft">{escape(rule["source"])}</span></p></div>\n')

    # ---- packets ---------------------------------------------------------------------------------------------------------

    @staticmethod
    def bth(fields, name):
        """Returns the meaning of field @name of the base transport header, or else its value."""
        found = re.search(rf'(?ms)^bth$.*?^  {name} .*?= ([^\n]*)', fields)
        value = found[1] if found else ''
        return (value.split('# ')[1] if '# ' in value else value)[:63]

    def add_packets(self, path, capture):
        section, packets = self.sections['packets'], capture['packets']
        self.data['packets'].append({'file': path, **capture})
        first, rows = packets[0]['ns'] if packets else 0, []
        for number, packet in enumerate(packets, 1):
            # µs since the first packet; negative if the clock of the host was set back.
            time = f'{(packet["ns"] - first) / 1e3:.3f}' if packet['ns'] else ''
            rows.append([str(number), time, DIRECTIONS.get(packet['direction'], ''),
                         *(escape(self.bth(packet['fields'], name)) for name in ('opcode', 'destination_qpn', 'psn')), str(packet['bytes']),
                         f'{escape(packet["comment"])}<details><summary>fields</summary><pre>\n{escape(packet["fields"])}</pre></details>'])
        if rows:
            section.put(f'<h3>{escape(os.path.basename(path))}</h3>\n')
        section.table(('#', 'µs', '', 'opcode', 'to queue pair', 'PSN', 'bytes', ''), rows)
        section.left_out += capture['count'] - len(packets)

    # ---- files -----------------------------------------------------------------------------------------------------------

    def add_file(self, path):
        with open(path, 'rb') as file:
            begin = file.read(len(RUN))
        if begin == RUN.encode():
            self.add_run(path)
        elif begin.startswith(b'<svg '):
            self.add_drawing(path)
        elif begin.startswith((b'{', b'[\n')):
            with open_text(path) as file:
                latencies = report_timeline.add(self.failures, self.sections['timeline'], self.sections['latency'], file,
                                                os.path.basename(path))
            self.data['latencies'] += [{'file': path, **row} for row in latencies]
        else:
            capture = self.tool.data('packets', path)
            if capture:
                self.add_packets(path, capture)
            else:
                self.add_lines(path)

    def add(self, path):
        """Adds a file, or the files of a directory; texts of drawings are shown with the drawings."""
        if not os.path.isdir(path):
            self.add_file(path)
            return
        for name in in_order(os.listdir(path)):
            inner = os.path.join(path, name)
            if not name.startswith('.') and not name.endswith('.txt') and stat.S_ISREG(os.stat(inner).st_mode):
                self.add_file(inner)


def read(tool, paths):
    """Returns a Report of all files."""
    report = Report(tool)
    try:
        for path in paths:
            report.add(path)
        report.add_rules()
        report.failures.put(report.sections['failures'])
        report.data['failures'] = report.failures.data()
    except OSError as error:
        raise Failure(f'cannot read {error.filename}: {error.strerror}') from error
    return report


def make_json(tool, output, paths):
    """Writes the contents of the page of all files as JSON to the file @output, or to standard output if that is empty."""
    report = read(tool, paths)
    write(output, lambda out: out.write(f'{json.dumps(report.data, indent=1)}\n'))


def make(tool, output, version, paths, sources=None):
    """Writes the page of all files to the file @output, or to standard output if that is empty."""
    report = read(tool, paths)
    sources = f'softhca {version}, from {escape(sources or ", ".join(paths))}'
    write(output, lambda out: page.write(out, 'softhca report', report.header, report.sections.values(), sources))


def write(output, put):
    """Has @put write to the file @output, or to standard output if that is empty."""
    try:
        with open(output or '/dev/stdout', 'w', encoding='utf-8', errors='replace') as out:
            put(out)
    except OSError as error:
        raise Failure(f'cannot write {output or "the page"}: {error.strerror}') from error


def make_of_run(tool, output, version, directory, *more):
    """Writes the page of `softhca run --report` from the files in @directory, which is removed, and those that the user chose."""
    keys = os.path.join(directory, 'keys')
    # One capture per process (docs/inside/wire.md).
    chosen = [path for name in more for path in (in_order(glob.glob(glob.escape(name).replace('%p', '*'))) if '%p' in name else [name])]
    paths = [path for path in (directory, keys, *chosen) if os.path.exists(path)]
    make(tool, output, version, paths, f'softhca run --report {shlex.quote(output)}')
    shutil.rmtree(directory, ignore_errors=True)
