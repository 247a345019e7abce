# SPDX-License-Identifier: BSD-2-Clause
"""
`softhca report`: one page of HTML of what runs have left: drawings (--keys), explanations (--explain), counters (--counters), packets
(--capture), latencies (--timeline). Its first bytes say what a file is. The files may be anything.
"""
import base64
import os
import re
import stat

import page
import report_timeline
from common import Failure
from page import Section, escape

MOST_BYTES = 1 << 20
MOST_PACKETS = 300
RULE = re.compile(r'\[0*([1-9]\d{0,3}) (?=[A-Z])')
COUNTERS = 'softhca: counters of '
COUNTER = re.compile(r'\s+([a-z_0-9]{1,63})\s+(\d{1,20})')
TITLES = {'keys': 'Keys', 'explanations': 'Explanations', 'rules': 'Rules', 'timeline': 'Timeline', 'latency': 'Latency',
          'counters': 'Counters', 'packets': 'Packets'}


def open_text(path):
    return open(path, encoding='utf-8', errors='surrogateescape', newline='\n')


class Report:
    """The sections of a page in the making."""

    def __init__(self, tool):
        self.tool, self.told = tool, set()
        self.sections = {name: Section(name, title) for name, title in TITLES.items()}
        self.sections['packets'].most = MOST_PACKETS

    # ---- drawings --------------------------------------------------------------------------------------------------------

    @staticmethod
    def text_beside(path):
        """The text of the drawing @path, which is beside it; not of a pipe, which would be waited for."""
        name = path[:-4] + '.txt'
        if not os.path.isfile(name):
            return ''
        with open_text(name) as file:
            return file.read(MOST_BYTES)

    def add_drawing(self, path):
        section = self.sections['keys']
        if not section.row():
            return
        with open(path, 'rb') as file:
            svg = file.read(MOST_BYTES + 1)
        if len(svg) > MOST_BYTES:
            raise Failure(f'{path} has more than {MOST_BYTES} bytes')
        section.put(f'<figure class="row"><figcaption>{escape(os.path.basename(path))}</figcaption>'
                    f'<img loading="lazy" alt="the text below" src="data:image/svg+xml;base64,{base64.b64encode(svg).decode()}">'
                    f'<details><summary>as text</summary><pre>{escape(self.text_beside(path))}</pre></details></figure>\n')

    # ---- lines -----------------------------------------------------------------------------------------------------------

    def add_lines(self, path):
        """What explanations and counters are written to, together or apart."""
        explanations, counters = self.sections['explanations'], self.sections['counters']
        process = ''
        for section in explanations, counters:
            section.put('<table>\n')
        with open_text(path) as file:
            for line in file:
                line = line.rstrip('\n')
                rule, counter = RULE.search(line), COUNTER.match(line)
                if line.startswith(COUNTERS):
                    process = line[len(COUNTERS):][:127]
                elif rule:
                    self.told.add(int(rule[1]))
                    if explanations.row():
                        explanations.put(f'<tr class="row"><td><a href="#rule-{rule[1]}">{rule[1]}</a></td><td>{escape(line)}</td></tr>\n')
                elif process and line.startswith(' '):
                    if counter and counters.row():
                        counters.put(f'<tr class="row"><td>{escape(process)}</td><td>{counter[1]}</td><td>{counter[2]}</td></tr>\n')
                else:
                    process = ''
        for section in explanations, counters:
            section.put('</table>\n')

    def add_rules(self):
        section = self.sections['rules']
        for rule in self.tool.data('rules') if self.told else ():
            if rule['number'] in self.told and section.row():
                section.put(f'<div class="row" id="rule-{rule["number"]}"><p><b>{rule["number"]} {rule["name"]}</b> {escape(rule["text"])}<br>'
                            f'{escape(rule["advice"])}<br><span class="soft">{escape(rule["source"])}</span></p></div>\n')

    # ---- packets ---------------------------------------------------------------------------------------------------------

    @staticmethod
    def bth(fields, name):
        """The value of field @name of the base transport header; of one with a meaning, that."""
        found = re.search(rf'(?ms)^bth$.*?^  {name} .*?= ([^\n]*)', fields)
        value = found[1] if found else ''
        return (value.split('# ')[1] if '# ' in value else value)[:63]

    def add_packets(self, path, capture):
        section = self.sections['packets']
        section.put(f'<h3>{escape(os.path.basename(path))}</h3>\n<table><tr><th>#<th>opcode<th>to queue pair<th>PSN<th>bytes<th></tr>\n')
        for number, packet in enumerate(capture['packets'], 1):
            if not section.row():
                continue
            columns = ''.join(f'<td>{escape(self.bth(packet["fields"], name))}</td>' for name in ('opcode', 'destination_qpn', 'psn'))
            section.put(f'<tr class="row"><td>{number}</td>{columns}<td>{packet["bytes"]}</td><td>{escape(packet["comment"])}'
                        f'<details><summary>fields</summary><pre>\n{escape(packet["fields"])}</pre></details></td></tr>\n')
        section.left_out += capture['count'] - len(capture['packets'])
        section.put('</table>\n')

    # ---- files -----------------------------------------------------------------------------------------------------------

    def add_file(self, path):
        with open(path, 'rb') as file:
            begin = file.read(8)
        if begin.startswith(b'<svg '):
            self.add_drawing(path)
        elif begin.startswith((b'{', b'[\n')):
            with open_text(path) as file:
                report_timeline.add(self.sections['timeline'], self.sections['latency'], file, os.path.basename(path))
        else:
            capture = self.tool.data('packets', path)
            if capture:
                self.add_packets(path, capture)
            else:
                self.add_lines(path)

    def add(self, path):
        """A file, or the files of a directory; the text of a drawing is shown with it."""
        if not os.path.isdir(path):
            self.add_file(path)
            return
        for name in sorted(os.listdir(path), key=lambda name: [(int(part or 0), text) for text, part in re.findall(r'(\D*)(\d*)', name)]):
            inner = os.path.join(path, name)
            if not name.startswith('.') and not name.endswith('.txt') and stat.S_ISREG(os.stat(inner).st_mode):
                self.add_file(inner)


def make(tool, output, version, paths):
    """Writes the page of all files to the file @output, or to standard output if that is empty."""
    report = Report(tool)
    try:
        for path in paths:
            report.add(path)
        report.add_rules()
    except OSError as error:
        raise Failure(f'cannot read {error.filename}: {error.strerror}') from error
    sources = ', '.join(escape(path) for path in paths)
    try:
        with open(output or '/dev/stdout', 'w', encoding='utf-8', errors='replace') as out:
            page.write(out, version, report.sections.values(), sources)
    except OSError as error:
        raise Failure(f'cannot write {output or "the page"}: {error.strerror}') from error
